"""The answering half of FME (Wu and Mooney 2019): Up-Down VQA (Anderson et al., CVPR 2018; Teney et al., CVPR 2018).

    q      = last state of a GRU over word embeddings
    a      = softmax_r(attention(v_r, q))       top-down attention over regions
    answer = W f(f_q(q) * f_v(sum_r a_r v_r))   f, f_q, f_v: weight-normalised layers

`model.task.gate` says which: 'tanh', gated tanh, and attention by [v; q] (Teney et al. 2018), or 'relu', ReLU, and
attention by a product, as in later code. M_E reads vectors of M_T's width, so a region's features are mapped to it
first, v_r = W f_r, and all else works on these; the memory are the v, the pooled vector is q.

Ours, where a Size has it: v_r = W f_r + V p_r with the location p of a region, without which nobody could say what is
left of what (regions of the published models see much of their surroundings); several glimpses side by side, as in MCB
(Fukui et al. 2016), since a sentence can be about two things; and layer normalisation: of W f and of V p, so that a
place weighs as much as what stands there, of q, and of the product, since products of small signals take several times
as many steps to train. The last layer is a plain linear map, so that its columns can be exchanged for other answers.

Where every example has choices of its own (VCR), the net reads each pair of question and choice, and the question
alone for the context. A word that stands for a region has that region's vector added, through a linear map.

Legend: B batch, C choices, K rows of text (B, or B (C + 1)), Q question tokens, R regions, F region width 2048,
G glimpses, E embedding, D width, A answers.
"""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from evil_jax import lookup
from evil_jax.data.features.regions import WIDTH
from evil_jax.models import rows
from evil_jax.models.context import Context
from evil_jax.nn import lstm, ops, topdown

LOCATIONS = 7
EPS = 1e-5


@dataclasses.dataclass(frozen=True)
class Size:
    """embedding E, width D of the GRU and all layers, hidden width of the answer head, glimpses G; whether regions have
    locations, and whether there are norms."""

    embedding: int
    width: int
    hidden: int
    glimpses: int = 1
    locations: bool = False
    norms: bool = False


class AnswerHead(ops.Op):
    """D -> hidden layer, dropout, -> A."""

    def __init__(self, size: Size, answers: int, gate: str, *, dropout, dtype, rngs: nnx.Rngs):
        self.up = topdown.Layer(size.width, size.hidden, gate, dtype=dtype, rngs=rngs)
        self.answer = ops.Linear(size.hidden, answers, std=size.hidden**-0.5, dtype=jnp.float32, rngs=rngs)
        self.dropout = dropout

    def __call__(self, x, key=None):
        return self.answer(ops.dropout(self.up(x), self.dropout, key))


class UpDown(ops.Op):
    """M_T: `(batch) -> (answer_logits_BA, Context)`, with choices answer_logits_BC.

    Args:
      answers: outputs of the answer head, where examples share one set of answers.
      choices: C, where each example has its own instead; the batch then has choices, choices_tags BCQ, choices_length
        BC and text_tags BQ as well.
      gate: 'tanh' or 'relu'.
    """

    def __init__(
        self, size: Size, *, words, answers=0, choices=0, gate='tanh', dropout=0.0, dtype=jnp.float32, rngs: nnx.Rngs
    ):
        linear = lambda i, o: ops.Linear(i, o, std=i**-0.5, dtype=dtype, rngs=rngs)
        layer = lambda i, o: topdown.Layer(i, o, gate, dtype=dtype, rngs=rngs)
        width = size.width
        self.word = ops.Embedding(words, size.embedding, std=1.0, dtype=dtype, rngs=rngs)
        if choices:
            self.tag = linear(width, size.embedding)
        self.question = lstm.Gru(size.embedding, width, dtype=dtype, rngs=rngs)
        self.image = linear(WIDTH, width)
        if size.locations:
            self.location = linear(LOCATIONS, width)
        if size.norms:
            self.image_norm, self.question_norm, self.joint_norm = (ops.Norm(width, eps=EPS) for _ in range(3))
            if size.locations:
                self.location_norm = ops.Norm(width, eps=EPS)
        self.glimpses = nnx.List([
            topdown.Attention(width, width, width, gate, dropout=dropout, dtype=dtype, rngs=rngs)
            for _ in range(size.glimpses)
        ])  # fmt: skip
        self.question_net, self.image_net = layer(width, width), layer(size.glimpses * width, width)
        head = dict(gate=gate, dropout=dropout, dtype=dtype, rngs=rngs)
        if choices:  # its own name: the parameters of one kind of head are of no use to the other
            self.head_vcr = AnswerHead(size, 1, **head)
        else:
            self.head = AnswerHead(size, answers, **head)
        self.size, self.choices, self.dropout, self.dtype = size, choices, dropout, dtype

    @property
    def width(self) -> int:
        return self.size.width

    def inputs(self, batch):
        """What it reads: features of regions BRF, and vectors of words KQE without the regions that they stand for."""
        return batch['features'], self.word(rows.join(batch, '', self.choices))

    def regions(self, batch, features_BRF):
        """v_BRD, zero beyond a picture's regions."""
        norms, x_BRD = self.size.norms, self.image(features_BRF)
        if norms:
            x_BRD = self.image_norm(x_BRD)
        if self.size.locations:
            place_BRD = self.location(batch['locations'])
            x_BRD = self.op.add(x_BRD, self.location_norm(place_BRD) if norms else place_BRD)
        inside_BR = jnp.arange(x_BRD.shape[1]) < batch['region_length'][:, None]
        return jnp.where(inside_BR[..., None], x_BRD, 0)

    def read(self, batch, x_KQE, regions_BRD, key=None):
        """q_KD: the text of each row, of the vectors of its words."""
        if self.choices:
            tags_KQ = rows.join(batch, 'tags', self.choices)
            linked_KQE = self.op.select(rows.repeat(self.tag(regions_BRD), self.choices), jnp.maximum(tags_KQ, 0))
            x_KQE = self.op.add(x_KQE, jnp.where((tags_KQ >= 0)[..., None], linked_KQE, 0))
        x_KQE = ops.dropout(x_KQE, self.dropout, key)
        _, last_KD = self.question(x_KQE, rows.join(batch, 'length', self.choices))
        return self.question_norm(last_KD) if self.size.norms else last_KD

    def attend(self, x_KRD, length_K, question_KD, key=None):
        """(attended_KGD, weights_KGR)."""
        weights = [
            glimpse(x_KRD, length_K, question_KD, key=ops.fold(key, number))
            for number, glimpse in enumerate(self.glimpses)
        ]
        weights_KGR = jnp.stack(weights, axis=1)
        return self.op.pool(weights_KGR.astype(self.dtype), x_KRD), weights_KGR

    def __call__(self, batch, *, key=None):
        return self.answer(batch, key=key)[:2]

    def answer(self, batch, *, key=None, inputs=None):
        """(answer_logits, Context, weights_BNGR of the glimpses, N = C, or 1 without choices); `inputs`: others than
        `inputs(batch)`."""
        features_BRF, words_KQE = self.inputs(batch) if inputs is None else inputs
        regions_BRD, region_B = self.regions(batch, features_BRF), batch['region_length']
        question_KD = self.read(batch, words_KQE, regions_BRD, ops.fold(key, 0))
        x_KRD, length_K = (rows.repeat(x, self.choices) for x in (regions_BRD, region_B))
        attended_KGD, weights_KGR = self.attend(x_KRD, length_K, question_KD, ops.fold(key, 1))
        image_KD = self.image_net(attended_KGD.reshape(len(attended_KGD), -1))
        joint_KD = self.op.product(self.question_net(question_KD), image_KD)
        if self.size.norms:
            joint_KD = self.joint_norm(joint_KD)
        if self.choices:
            logits_BA = self.head_vcr(rows.split(joint_KD, self.choices)[:, :-1], ops.fold(key, 2))[..., 0]
        else:
            logits_BA = self.head(joint_KD, ops.fold(key, 2))
        spans = {'regions': (jnp.zeros_like(region_B), region_B)}
        context = Context(regions_BRD, region_B, rows.alone(question_KD, self.choices), spans)
        weights_BNGR = rows.split(weights_KGR, self.choices)[:, :-1] if self.choices else weights_KGR[:, None]
        return logits_BA, context, weights_BNGR


SIZES = {
    # Teney et al. 2018, section 4: GRU and layers; the head's hidden layer as in later code.
    'base': Size(embedding=300, width=1024, hidden=2048),
    'tiny': Size(embedding=64, width=128, hidden=256, glimpses=2, locations=True, norms=True),  # ours, for laptops
}
READS = ('model.task.gate',)


def build_task(config, assets, *, rngs: nnx.Rngs) -> UpDown:
    """M_T of a config; `assets` gives the word vocabulary and the answers."""
    return UpDown(
        lookup.entry(SIZES, config.model.task.size, 'config.model.task.size'),
        words=len(assets.word),
        answers=len(assets.answers),
        choices=config.data.choices,
        gate=config.model.task.gate,
        dropout=config.model.dropout,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )
