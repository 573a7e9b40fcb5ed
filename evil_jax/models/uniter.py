"""UNITER (Chen et al., ECCV 2020, arXiv 1909.11740): one BERT encoder over words and image regions, with answer head.

The task module M_T of e-UG (Kayser et al. 2021). A row is compacted: its words first, then its regions, then padding,
so that attention needs one length a row and no result depends on how much padding a batch happens to have.

Where every example has choices of its own (VCR), the encoder reads a picture once with each pair of question and choice
and once with the question alone: the pairs give the answer, the question alone the context of the explanation.

Legend: B batch, C choices, K rows of the encoder (B, or B (C + 1): a row's choices, then its question), Q question
tokens, R regions, S = Q + R, F region width 2048, D width, A answers.
"""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from evil_jax import compat, lookup
from evil_jax.models import rows, steps
from evil_jax.models.context import Context
from evil_jax.nn import embed, ops, transformer

REGION_WIDTH = 2048
LOCATIONS = 7
EPS = 1e-12


@dataclasses.dataclass(frozen=True)
class Size:
    """Numbers of an encoder: layers, width, heads, feed-forward width, positions.

    std, word_std: of the initial weights, and of the initial word table.
    """

    layers: int
    width: int
    heads: int
    hidden: int
    positions: int
    std: float
    word_std: float


class ImageEmbedding(ops.Op):
    """norm(norm(W f) + norm(V p) + type row 1) for region features f and locations p (UNITER section 3.1)."""

    def __init__(self, size: Size, *, dtype, rngs: nnx.Rngs):
        # Region features are not of unit length; 1/sqrt(F)-like weights would need the data, so BERT's std is kept.
        self.feature = ops.Linear(REGION_WIDTH, size.width, std=0.02, dtype=dtype, rngs=rngs)
        self.feature_norm = ops.Norm(size.width, eps=EPS)
        self.location = ops.Linear(LOCATIONS, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.location_norm = ops.Norm(size.width, eps=EPS)
        self.norm = ops.Norm(size.width, eps=EPS)

    def __call__(self, features_BRF, locations_BR7, type_D):
        feature_BRD = self.feature_norm(self.feature(features_BRF))
        location_BRD = self.location_norm(self.location(locations_BR7))
        return self.norm(self.op.add(self.op.add(feature_BRD, location_BRD), type_D))


class AnswerHead(ops.Op):
    """D -> 2 D, activation, norm, -> A (e-UG's `logit_fc` with GELU, `vcr_fc` with ReLU).

    Args:
      last: kind of the last map; with `ops.Contrast` the outputs are 'false' and 'true', and [...] comes out.
    """

    def __init__(
        self, width: int, answers: int, *, activation='gelu', last=ops.Linear, std: float, dtype, rngs: nnx.Rngs
    ):
        self.up = ops.Linear(width, 2 * width, std=std, dtype=dtype, rngs=rngs)
        self.norm = ops.Norm(2 * width, eps=EPS)
        self.answer = last(2 * width, answers, std=std, dtype=ops.wide_type(dtype), rngs=rngs)
        self.activation = activation

    def __call__(self, pooled):
        return self.answer(self.norm(getattr(self.op, self.activation)(self.up(pooled))))


class Uniter(steps.Steps):
    """M_T: `(batch) -> (answer_logits_BA, Context)`, in three steps.

    Args:
      answers: outputs of the answer head, where examples share one set of answers.
      choices: C, where each example has its own instead: `answer_logits_BC` are those of 'true' minus 'false'. The
        batch then has choices, choices_type, choices_tags BCQ, choices_length BC and text_tags BQ as well.
      pad_regions: e-UG's quirk 3: every row has as many regions as the largest of the batch, zero vectors among them.
      read_padding: e-UG's quirk 4: the context is [text, its padding up to Q, regions]. Padding sees words and regions,
        and is seen by nothing.
    """

    def __init__(
        self, size: Size, *, words, answers=0, choices=0, types=2, pad_regions=False, read_padding=False, dropout=0.0,
        attention_dropout=0.0, remat=False, dtype=jnp.float32, rngs: nnx.Rngs,
    ):  # fmt: skip
        self.text = embed.TextEmbedding(
            size.width, words=words, positions=size.positions, types=types, eps=EPS, std=size.std,
            word_std=size.word_std, dtype=dtype, rngs=rngs,
        )  # fmt: skip
        self.image = ImageEmbedding(size, dtype=dtype, rngs=rngs)
        block = lambda: transformer.PostNormBlock(
            size.width, size.heads, size.hidden, eps=EPS, std=size.std, dropout=dropout,
            attention_dropout=attention_dropout, dtype=dtype, rngs=rngs,
        )  # fmt: skip
        self.layers = nnx.List([block() for _ in range(size.layers)])
        self.pooler = ops.Linear(size.width, size.width, std=size.std, dtype=dtype, rngs=rngs)
        head = dict(std=size.std, dtype=dtype, rngs=rngs)
        if choices:  # its own name: the parameters of one kind of head are of no use to the other
            self.head_vcr = AnswerHead(size.width, 2, activation='relu', last=ops.Contrast, **head)
        else:
            self.head = AnswerHead(size.width, answers, **head)
        self.size, self.choices, self.dropout, self.remat = size, choices, dropout, remat
        self.pad_regions, self.read_padding = pad_regions, read_padding

    @property
    def width(self) -> int:
        return self.size.width

    def embed(self, batch, key=None):
        """Compacted input of the encoder: (x_KSD, number of keys of each row length_K, spans)."""
        features_BRF, locations_BR7, region_B = batch['features'], batch['locations'], batch['region_length']
        if self.pad_regions:
            real_BR1 = (jnp.arange(features_BRF.shape[1]) < region_B[:, None])[..., None]
            features_BRF, locations_BR7 = (jnp.where(real_BR1, x, 0) for x in (features_BRF, locations_BR7))
            region_B = jnp.full_like(region_B, region_B.max())
        image_BRD = self.image(features_BRF, locations_BR7, self.text.type(jnp.asarray(1)))
        # The image embedding is computed once a picture.
        repeat = lambda x_B: rows.repeat(x_B, self.choices)
        image_KRD, region_K = repeat(image_BRD), repeat(region_B)
        text_K, linked_KQD = rows.join(batch, 'length', self.choices), None
        if self.choices:
            tags_KQ = rows.join(batch, 'tags', self.choices)
            linked_KQD = self.op.select(image_KRD, jnp.maximum(tags_KQ, 0))
            linked_KQD = jnp.where((tags_KQ >= 0)[..., None], linked_KQD, 0)
        ids_KQ, type_KQ = rows.join(batch, '', self.choices), rows.join(batch, 'type', self.choices)
        text_KQD = self.text(ids_KQ, type_KQ, linked_KQD)  # a tag carries the region that it stands for
        lengths, capacities = (text_K, region_K), (text_KQD.shape[1], image_KRD.shape[1])
        index_KS, valid_KS, starts = embed.layout(lengths, capacities, sum(capacities))
        if self.read_padding:
            # Padding of the text stands last, beyond the keys: it takes part as queries only.
            behind_KS = jnp.arange(sum(capacities)) - region_K[:, None]
            index_KS = jnp.where(valid_KS, index_KS, behind_KS)
            valid_KS = behind_KS < capacities[0]
        x_KSD = self.op.select(jnp.concatenate([text_KQD, image_KRD], axis=1), index_KS)
        x_KSD = ops.dropout(jnp.where(valid_KS[..., None], x_KSD, 0), self.dropout, key)
        return x_KSD, starts[-1], {'text': (starts[0], text_K), 'regions': (starts[1], region_K)}

    def finish(self, x_KSD, length_K, spans, batch, key=None):
        """(answer_logits_BA, Context) from what the last layer says; nothing is dropped here."""
        pooled_KD = self.op.tanh(self.pooler(self.op.first(x_KSD)))
        if self.choices:
            logits_BA = self.head_vcr(rows.split(pooled_KD, self.choices)[:, :-1])
        else:
            logits_BA = self.head(pooled_KD)
        return logits_BA, self._context(x_KSD, length_K, pooled_KD, spans, batch['text'].shape[1])

    def _context(self, x_KSD, length_K, pooled_KD, spans, capacity):
        """What M_E reads: rows without a choice. `capacity`: Q."""
        alone = lambda x_K: rows.alone(x_K, self.choices)
        x_BSD, length_B = alone(x_KSD), alone(length_K)
        (start_B, text_B), (first_B, region_B) = (tuple(map(alone, spans[name])) for name in ('text', 'regions'))
        position_S = jnp.arange(x_BSD.shape[1])
        if self.read_padding:  # it stood last
            text_B1, region_B1 = text_B[:, None], region_B[:, None]
            before_BS = jnp.where(position_S < text_B1, position_S, position_S + region_B1)
            index_BS = jnp.where(position_S < capacity, before_BS, position_S - capacity + text_B1)
            x_BSD = self.op.select(x_BSD, index_BS)
            first_B, length_B = jnp.full_like(first_B, capacity), capacity + region_B
        valid_BS = position_S < length_B[:, None]
        spans = {'text': (start_B, text_B), 'regions': (first_B, region_B)}
        return Context(jnp.where(valid_BS[..., None], x_BSD, 0), length_B, alone(pooled_KD), spans)


SIZES = {
    # UNITER-base, section 4; BERT's initial weights.
    'base': Size(layers=12, width=768, heads=12, hidden=3072, positions=512, std=0.02, word_std=0.02),
    # Ours, for laptops. Trained from scratch it has to find out which word goes with which region. That takes a third
    # of the steps when words stand out from their positions, weights keep variances (128 ** -0.5) and heads are many.
    'tiny': Size(layers=2, width=128, heads=8, hidden=512, positions=64, std=0.09, word_std=1.0),
}
READS, QUIRKS = ('model.remat',), (3, 4)


def build_task(config, assets, *, rngs: nnx.Rngs) -> Uniter:
    """M_T of a config; `assets` gives the word vocabulary and the answers."""
    size = lookup.entry(SIZES, config.model.task.size, 'config.model.task.size')
    if config.data.max_text > size.positions:
        raise ValueError(f'data.max_text {config.data.max_text} exceeds the {size.positions} positions of UNITER')
    choices = config.data.choices
    return Uniter(
        size,
        words=len(assets.word),
        answers=len(assets.answers),
        choices=choices,
        types=3 if choices else 2,  # question and regions are 0 and 1, choices 2
        pad_regions=compat.has(config, 3),
        read_padding=compat.has(config, 4),
        dropout=config.model.dropout,
        attention_dropout=compat.attention_dropout(config),
        remat=config.model.remat,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )
