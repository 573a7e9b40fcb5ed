"""The answering half of PJ-X (Park et al., CVPR 2018, arXiv 1802.08129): a question finds cells of a picture, twice
fused with it by multimodal compact bilinear pooling (Fukui et al., EMNLP 2016, arXiv 1606.01847).

    q      = last states of two LSTMs, one above the other, over tanh(word embeddings)
    v_r    = W f_r + norm(V p_r)                cell r: its features, and its place
    a_g    = softmax_r(w_g . relu(U fuse(v_r, q)))     glimpse g
    answer = A fuse([sum_r a_1r v_r, ...], q)

f are a picture's features divided by their L2 norm, all cells together, as PJ-X does when it loads them. The fusion is,
as `model.task.fusion` says,

    mcb      count sketch of the outer product, signed square root, layer normalisation. Fukui et al. divide by the L2
             norm there; Kayser et al. 2021 add a LayerNorm for stable training, without saying where. One behind the
             other would undo it, so here it stands in its place.
    product  what PJ-X's released code computes: element by element, signed square root, L2 norm; what the glimpses
             found passes a linear map before it. One glimpse only.

Ours, in size tiny only: the place p of a cell (its box). The cells of PJ-X come from a ResNet, which sees their
surroundings, and in them the picture's edges; those of a grid of pixels do not know where they are. The norm lets a
place weigh as much as what stands there: without it no explanation learns to say where something is. Size base has
v_r = W f_r, as published.

Where every example has choices of its own (VCR), each pair of question and choice gets one logit, and the context is
that of the question alone. What depends on the picture only is computed once a picture.

Legend: B batch, C choices, K rows of text (B, or B (C + 1)), N questions about a picture (C, or 1), Q question tokens,
R cells, F their width 2048, G glimpses, D width, E embedding, A answers.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax import lookup
from evil_jax.data.features.regions import WIDTH
from evil_jax.models import rows
from evil_jax.models.context import Context
from evil_jax.nn import lstm, ops, pooling

LOCATIONS = 7
EPS = 1e-5


@dataclasses.dataclass(frozen=True)
class Size:
    """embedding E, width D of cells and questions (an LSTM has half of it), sketch, hidden units of the attention,
    glimpses (with 'mcb'); places: cells know where they are."""

    embedding: int
    width: int
    sketch: int
    hidden: int
    glimpses: int
    places: bool = False


class Question(ops.Op):
    """Text to one vector: `(ids_KQ, length_K) -> question_KD`; `read` is the same for vectors of words."""

    def __init__(self, size: Size, words: int, *, dropout, dtype, rngs: nnx.Rngs):
        # tanh of numbers of this order uses its whole range. PJ-X draws all weights from -0.08 ... 0.08.
        self.word = ops.Embedding(words, size.embedding, std=1.0, dtype=dtype, rngs=rngs)
        half = size.width // 2
        self.layers = nnx.List([lstm.Lstm(width, half, dtype=dtype, rngs=rngs) for width in (size.embedding, half)])
        self.dropout = dropout

    def __call__(self, ids_KQ, length_K, key=None):
        return self.read(self.word(ids_KQ), length_K, key)

    def read(self, words_KQE, length_K, key=None):
        x_KQD, lasts = self.op.tanh(words_KQE), []
        for number, layer in enumerate(self.layers):
            x_KQD, last_KD = layer(x_KQD, length_K)
            x_KQD = ops.dropout(x_KQD, self.dropout, ops.fold(key, 2 * number))
            lasts.append(ops.dropout(last_KD, self.dropout, ops.fold(key, 2 * number + 1)))
        return jnp.concatenate(lasts, axis=-1)


class Mcb(ops.Op):
    """Count sketch of the outer product, signed square root, layer normalisation: float32 up to its outputs."""

    def __init__(self, inputs: int, width: int, outputs: int, *, dropout, dtype, rngs: nnx.Rngs):
        self.bilinear = pooling.CompactBilinear(inputs, width, outputs, rngs=rngs)
        self.norm = ops.Norm(outputs, eps=EPS)
        self.outputs, self.std, self.dropout, self.dtype = outputs, outputs**-0.5, dropout, dtype

    def __call__(self, x, question, key=None):
        fused = self.norm(self.op.signed_root(self.bilinear(x, question)))
        return ops.dropout(fused.astype(self.dtype), self.dropout, key)


class Product(ops.Op):
    """Element by element, signed square root, L2 norm; what was attended to passes a linear map before."""

    def __init__(self, width: int, *, attended: bool, dropout, dtype, rngs: nnx.Rngs):
        self.map = ops.Linear(width, width, std=width**-0.5, dtype=dtype, rngs=rngs) if attended else None
        self.outputs, self.std, self.dropout = width, 1.0, dropout  # std: its outputs are vectors of length 1

    def __call__(self, x, question, key=None):
        x = x if self.map is None else self.map(x)
        fused = self.op.unit(self.op.signed_root(self.op.product(x, question)))
        return ops.dropout(fused, self.dropout, key)


class Attention(ops.Op):
    """What G glimpses see: `(fused_BNRI, cells_BRD, valid_BR) -> (attended_BN(GD), weights_BNGR)`."""

    def __init__(self, inputs: int, hidden: int, glimpses: int, *, std, dtype, rngs: nnx.Rngs):
        self.hidden = ops.Linear(inputs, hidden, std=std, dtype=dtype, rngs=rngs)
        self.score = ops.Linear(hidden, glimpses, std=hidden**-0.5, dtype=dtype, rngs=rngs)

    def __call__(self, fused_BNRI, cells_BRD, valid_BR):
        scores_BNRG = self.score(self.op.relu(self.hidden(fused_BNRI))).astype(jnp.float32)
        valid_BN1R = valid_BR[:, None, None]
        weights_BNGR = self.op.softmax(jnp.where(valid_BN1R, scores_BNRG.swapaxes(-1, -2), -1e9))
        weights_BNGR = jnp.where(valid_BN1R, weights_BNGR, 0)  # of a picture without cells there is nothing
        attended_BNGD = self.op.pool(weights_BNGR.astype(cells_BRD.dtype), cells_BRD)
        return attended_BNGD.reshape(*attended_BNGD.shape[:2], -1), weights_BNGR


class AnswerHead(ops.Op):
    """One linear map, in float32."""

    def __init__(self, inputs: int, answers: int, *, std, rngs: nnx.Rngs):
        self.answer = ops.Linear(inputs, answers, std=std, dtype=jnp.float32, rngs=rngs)

    def __call__(self, fused):
        return self.answer(fused)


class Pjx(ops.Op):
    """M_T: `(batch) -> (answer_logits_BA, Context)`, with choices answer_logits_BC. Memory are the cells v, the pooled
    vector is the question q.

    Args:
      answers: outputs of the answer head, where examples share one set of answers.
      choices: C, where each example has its own instead; the batch then has choices BCQ and choices_length BC as well.
      fusion: 'mcb' or 'product'.
      remat: what a question finds in cells is computed again in the backward pass. With 'mcb' of size base each array
        of it takes 12.5 MB a picture of 14 x 14 cells.
    """

    def __init__(
        self, size: Size, *, words, answers=0, choices=0, fusion='mcb', dropout=0.0, remat=False, dtype=jnp.float32,
        rngs: nnx.Rngs,
    ):  # fmt: skip
        self.question = Question(size, words, dropout=dropout, dtype=dtype, rngs=rngs)
        self.image = ops.Linear(WIDTH, size.width, std=WIDTH**-0.5, dtype=dtype, rngs=rngs)
        if size.places:
            self.location = ops.Linear(LOCATIONS, size.width, std=LOCATIONS**-0.5, dtype=dtype, rngs=rngs)
            self.location_norm = ops.Norm(size.width, eps=EPS)
        shared = dict(dropout=dropout, dtype=dtype, rngs=rngs)
        if fusion == 'mcb':
            self.glimpses = size.glimpses
            fuse = lambda glimpses: Mcb(glimpses * size.width, size.width, size.sketch, **shared)
            self.fuse, self.fuse_again = fuse(1), fuse(self.glimpses)
        else:
            self.glimpses = 1
            fuse = lambda attended: Product(size.width, attended=attended, **shared)
            self.fuse, self.fuse_again = fuse(False), fuse(True)
        self.attention = Attention(
            self.fuse.outputs, size.hidden, self.glimpses, std=self.fuse.std, dtype=dtype, rngs=rngs
        )
        head = dict(std=self.fuse_again.std, rngs=rngs)
        if choices:  # its own name: the parameters of one kind of head are of no use to the other
            self.head_vcr = AnswerHead(self.fuse_again.outputs, 1, **head)
        else:
            self.head = AnswerHead(self.fuse_again.outputs, answers, **head)
        self.size, self.choices, self.remat = size, choices, remat

    @property
    def width(self) -> int:
        return self.size.width

    def inputs(self, batch):
        """What it reads: features of cells BRF, divided by the norm of their picture, and vectors of words KQE."""
        features_BRF = batch['features'].astype(jnp.float32)
        valid_BR = jnp.arange(features_BRF.shape[1]) < batch['region_length'][:, None]
        features_BRF = jnp.where(valid_BR[..., None], features_BRF, 0)
        unit_BRF = self.op.unit(features_BRF.reshape(len(features_BRF), -1)).reshape(features_BRF.shape)
        # Numbers of order 1 again: what follows is linear, so this changes only where training starts, and how fast.
        unit_BRF = unit_BRF * (batch['region_length'] * WIDTH).astype(jnp.float32)[:, None, None] ** 0.5
        return unit_BRF, self.question.word(rows.join(batch, '', self.choices))

    def cells(self, batch, unit_BRF=None):
        """(cells_BRD, zero where there is none; valid_BR). `unit_BRF`: other features, see `inputs`."""
        unit_BRF = self.inputs(batch)[0] if unit_BRF is None else unit_BRF
        valid_BR = jnp.arange(unit_BRF.shape[1]) < batch['region_length'][:, None]
        cells_BRD = self.image(unit_BRF)
        if self.size.places:
            cells_BRD = self.op.add(cells_BRD, self.location_norm(self.location(batch['locations'])))
        return jnp.where(valid_BR[..., None], cells_BRD, 0), valid_BR

    def attend(self, cells_BRD, valid_BR, asked_BND, key=None):
        """What each question sees: (attended_BN(GD), weights_BNGR)."""

        def run(parts, cells_BRD, asked_BND, key):
            fuse, attention = nnx.merge(graph, parts)
            return attention(fuse(cells_BRD[:, None], asked_BND[:, :, None], key), cells_BRD, valid_BR)

        graph, parts = nnx.split((self.fuse, self.attention))
        return (jax.checkpoint(run) if self.remat else run)(parts, cells_BRD, asked_BND, key)

    def __call__(self, batch, *, key=None):
        return self.answer(batch, key=key)[:2]

    def answer(self, batch, *, key=None, inputs=None):
        """(answer_logits, Context, weights_BNGR of the glimpses); `inputs`: others than `inputs(batch)`."""
        unit_BRF, words_KQE = self.inputs(batch) if inputs is None else inputs
        cells_BRD, valid_BR = self.cells(batch, unit_BRF)
        question_KD = self.question.read(words_KQE, rows.join(batch, 'length', self.choices), ops.fold(key, 0))
        if self.choices:
            asked_BND = rows.split(question_KD, self.choices)[:, :-1]
        else:
            asked_BND = question_KD[:, None]
        attended_BNI, weights_BNGR = self.attend(cells_BRD, valid_BR, asked_BND, ops.fold(key, 1))
        answering_BNI = self.fuse_again(attended_BNI, asked_BND, ops.fold(key, 2))
        if self.choices:
            logits_BA = self.head_vcr(answering_BNI)[..., 0]
        else:
            logits_BA = self.head(answering_BNI)[:, 0]
        region_B = batch['region_length']
        spans = {'regions': (jnp.zeros_like(region_B), region_B)}
        context = Context(cells_BRD, region_B, rows.alone(question_KD, self.choices), spans)
        return logits_BA, context, weights_BNGR


SIZES = {
    # Fukui et al. section 4.2: sketch, attention and glimpses; facts of PJ-X: embedding, two LSTMs of 1,024.
    'base': Size(embedding=300, width=2048, sketch=16_000, hidden=512, glimpses=2),
    'tiny': Size(embedding=64, width=128, sketch=1024, hidden=64, glimpses=2, places=True),  # ours, for laptops
}
READS = ('model.task.fusion', 'model.remat')


def build_task(config, assets, *, rngs: nnx.Rngs) -> Pjx:
    """M_T of a config; `assets` gives the word vocabulary and the answers."""
    return Pjx(
        lookup.entry(SIZES, config.model.task.size, 'config.model.task.size'),
        words=len(assets.word),
        answers=len(assets.answers),
        choices=config.data.choices,
        fusion=config.model.task.fusion,
        dropout=config.model.dropout,
        remat=config.model.remat,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )
