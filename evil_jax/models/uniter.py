"""UNITER (Chen et al., ECCV 2020, arXiv 1909.11740): one BERT encoder over words and image regions, with answer head.

The task module M_T of e-UG (Kayser et al. 2021). A row is compacted: its words first, then its regions, then padding,
so that attention needs one length a row and no result depends on how much padding a batch happens to have.

Legend: B batch, Q question tokens, R regions, S = Q + R, F region width 2048, D width, A answers.
"""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from evil_jax import lookup
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


class TextEmbedding(ops.Op):
    """norm(word + position + type)."""

    def __init__(self, size: Size, words: int, types: int, *, dtype, rngs: nnx.Rngs):
        table = lambda rows, std: ops.Embedding(rows, size.width, std=std, dtype=dtype, rngs=rngs)
        self.word = table(words, size.word_std)
        self.position, self.type = table(size.positions, size.std), table(types, size.std)
        self.norm = ops.Norm(size.width, eps=EPS)

    def __call__(self, ids_BQ, type_BQ):
        position_Q = jnp.arange(ids_BQ.shape[1])
        x_BQD = self.op.add(self.op.add(self.word(ids_BQ), self.position(position_Q)), self.type(type_BQ))
        return self.norm(x_BQD)


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
    """D -> 2 D, GELU, norm, -> A (e-UG's `logit_fc`)."""

    def __init__(self, width: int, answers: int, *, std: float, dtype, rngs: nnx.Rngs):
        self.up = ops.Linear(width, 2 * width, std=std, dtype=dtype, rngs=rngs)
        self.norm = ops.Norm(2 * width, eps=EPS)
        self.answer = ops.Linear(2 * width, answers, std=std, dtype=jnp.float32, rngs=rngs)

    def __call__(self, pooled_BD):
        return self.answer(self.norm(self.op.gelu(self.up(pooled_BD))))


class Uniter(ops.Op):
    """M_T: `(batch) -> (answer_logits_BA, Context)`."""

    def __init__(
        self, size: Size, *, words, answers, types=2, dropout=0.0, remat=False, dtype=jnp.float32, rngs: nnx.Rngs
    ):
        self.text = TextEmbedding(size, words, types, dtype=dtype, rngs=rngs)
        self.image = ImageEmbedding(size, dtype=dtype, rngs=rngs)
        block = lambda: transformer.PostNormBlock(
            size.width, size.heads, size.hidden, eps=EPS, std=size.std, dropout=dropout, dtype=dtype, rngs=rngs
        )
        self.layers = nnx.List([block() for _ in range(size.layers)])
        self.pooler = ops.Linear(size.width, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.head = AnswerHead(size.width, answers, std=size.std, dtype=dtype, rngs=rngs)
        self.size, self.dropout, self.remat = size, dropout, remat

    @property
    def width(self) -> int:
        return self.size.width

    def embed(self, batch, key=None):
        """Compacted input of the encoder: (x_BSD, length_B, spans)."""
        text_BQD = self.text(batch['text'], batch['text_type'])
        type_D = self.text.type(jnp.asarray(1))
        image_BRD = self.image(batch['features'], batch['locations'], type_D)
        lengths = batch['text_length'], batch['region_length']
        capacities = text_BQD.shape[1], image_BRD.shape[1]
        index_BS, valid_BS, starts = embed.layout(lengths, capacities, sum(capacities))
        x_BSD = self.op.select(jnp.concatenate([text_BQD, image_BRD], axis=1), index_BS)
        x_BSD = ops.dropout(jnp.where(valid_BS[..., None], x_BSD, 0), self.dropout, key)
        return x_BSD, starts[-1], {'text': (starts[0], lengths[0]), 'regions': (starts[1], lengths[1])}

    def __call__(self, batch, *, key=None, taps=None):
        x_BSD, length_B, spans = self.embed(batch, ops.fold(key, 0))
        x_BSD, maps = transformer.run(self.layers, x_BSD, length_B, remat=self.remat, key=ops.fold(key, 1), taps=taps)
        pooled_BD = self.op.tanh(self.pooler(x_BSD[:, 0]))
        logits_BA = self.head(ops.dropout(pooled_BD, self.dropout, ops.fold(key, 2)))
        valid_BS = jnp.arange(x_BSD.shape[1]) < length_B[:, None]
        context = Context(jnp.where(valid_BS[..., None], x_BSD, 0), length_B, pooled_BD, spans)
        return (logits_BA, context) if taps is None else (logits_BA, context, maps)


SIZES = {
    # UNITER-base, section 4; BERT's initial weights.
    'base': Size(layers=12, width=768, heads=12, hidden=3072, positions=512, std=0.02, word_std=0.02),
    # Ours, for laptops. Trained from scratch it has to find out which word goes with which region. That takes a third
    # of the steps when words stand out from their positions, weights keep variances (128 ** -0.5) and heads are many.
    'tiny': Size(layers=2, width=128, heads=8, hidden=512, positions=64, std=0.09, word_std=1.0),
}


def build_task(config, assets, *, rngs: nnx.Rngs) -> Uniter:
    """M_T of a config; `assets` gives the word vocabulary and the answers."""
    size = lookup.entry(SIZES, config.model.task.size, 'config.model.task.size')
    if config.data.max_text > size.positions:
        raise ValueError(f'data.max_text {config.data.max_text} exceeds the {size.positions} positions of UNITER')
    return Uniter(
        size,
        words=len(assets.word),
        answers=len(assets.answers),
        dropout=config.model.dropout,
        remat=config.model.remat,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )
