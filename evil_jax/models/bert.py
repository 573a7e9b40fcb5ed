"""BERT (Devlin et al., NAACL 2019, arXiv 1810.04805) and DistilBERT (Sanh et al. 2019, arXiv 1910.01108) as M_T.

The task module of RVT (Marasovic et al. 2020; Kayser et al. 2021, section 4.1), and of the QA-only baseline: it reads a
text, with data.objects also the names of what is in the picture, and nothing else. A classifier over [CLS] gives the
answer; where every example has choices of its own (VCR), each pair of question and choice gets one number.

DistilBERT is BERT without token types and with half the layers; its pooler has ReLU where BERT's has tanh.

Legend: B batch, C choices, K rows of the encoder (B, or B (C + 1): a row's choices, then its question), Q question
tokens, S memory, D width, A answers.
"""

import dataclasses

import jax.numpy as jnp
from absl import logging
from flax import nnx

from evil_jax import compat, lookup
from evil_jax.models import rows, steps
from evil_jax.models.context import Context
from evil_jax.nn import embed, ops, transformer

EPS = 1e-12


@dataclasses.dataclass(frozen=True)
class Size:
    """Numbers of an encoder: layers, width, heads, feed-forward width, positions, token types (0: none).

    pool: activation of the pooler. std, word_std: of the initial weights, and of the initial word table.
    """

    layers: int
    width: int
    heads: int
    hidden: int
    positions: int
    types: int = 2
    pool: str = 'tanh'
    std: float = 0.02
    word_std: float = 0.02


class Encoder(ops.Op):
    """Words to vectors: embedding, blocks and pooler. The common part of BERT, DistilBERT and RoBERTa.

    Args:
      first: position of a text's first token.
      eps: of all norms.
    """

    def __init__(
        self, size: Size, *, words, first=0, eps=EPS, dropout=0.0, attention_dropout=0.0, remat=False,
        dtype=jnp.float32, rngs: nnx.Rngs,
    ):  # fmt: skip
        self.text = embed.TextEmbedding(
            size.width, words=words, positions=size.positions, types=size.types, first=first, eps=eps, std=size.std,
            word_std=size.word_std, dtype=dtype, rngs=rngs,
        )  # fmt: skip
        block = lambda: transformer.PostNormBlock(
            size.width, size.heads, size.hidden, eps=eps, std=size.std, dropout=dropout,
            attention_dropout=attention_dropout, dtype=dtype, rngs=rngs,
        )  # fmt: skip
        self.layers = nnx.List([block() for _ in range(size.layers)])
        self.pooler = ops.Linear(size.width, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.size, self.first, self.dropout, self.remat = size, first, dropout, remat

    @property
    def width(self) -> int:
        return self.size.width

    def words(self, ids_KQ, type_KQ, key=None):
        """What the first layer reads: vectors KQD.

        Args:
          type_KQ: None = 0 everywhere. More types than the model has count as its last one.
          key: of dropout; None is evaluation.

        Raises:
          ValueError: texts longer than the table of positions.
        """
        if (longest := self.size.positions - self.first) < ids_KQ.shape[1]:  # a look-up beyond the table would not fail
            raise ValueError(f'texts have up to {ids_KQ.shape[1]} tokens, the model has {longest} positions')
        if type_KQ is not None:
            type_KQ = jnp.minimum(type_KQ, self.size.types - 1)
        return ops.dropout(self.text(ids_KQ, type_KQ), self.dropout, key)

    def encode(self, ids_KQ, type_KQ, length_K, *, key=None, taps=None):
        """(vectors of the last layer KQD, attention maps): what stands beyond `length_K` is seen by nothing.

        Args:
          ids_KQ, type_KQ: see `words`.
          key: of dropout; None is evaluation.
          taps: see `attention.attend`; one array KNQQ a layer.
        """
        x_KQD = self.words(ids_KQ, type_KQ, ops.fold(key, 0))
        return transformer.run(self.layers, x_KQD, length_K, remat=self.remat, key=ops.fold(key, 1), taps=taps)

    def keys(self, key):
        """Those of `steps.Steps.keys`: of the encoder they are as in `encode`, and a head makes its own."""
        encoder = ops.fold(key, 0)
        return ops.fold(encoder, 0), ops.fold(encoder, 1), key

    def pool(self, x_KQD):
        """One vector a row, from its first token: KD."""
        return self.pool_first(self.op.first(x_KQD))

    def pool_first(self, x_KD):
        """The same of first tokens."""
        return getattr(self.op, self.size.pool)(self.pooler(x_KD))


class Head(ops.Op):
    """D -> A, in at least float32."""

    def __init__(self, width: int, answers: int, *, std: float, dtype=jnp.float32, rngs: nnx.Rngs):
        self.answer = ops.Linear(width, answers, std=std, dtype=ops.wide_type(dtype), rngs=rngs)

    def __call__(self, pooled):
        return self.answer(pooled)


class Bert(Encoder, steps.Steps):
    """M_T: `(batch) -> (answer_logits_BA, Context)`, in three steps. Of a context it has the pooled vector only: S = 0.

    Args:
      answers: outputs of the answer head, where examples share one set of answers.
      choices: C, where each example has its own instead: answer_logits_BC, one output a pair. The batch then has
        choices, choices_type BCQ and choices_length BC as well.
      **encoder: see `Encoder`.
    """

    def __init__(self, size: Size, *, answers=0, choices=0, rngs: nnx.Rngs, **encoder):
        super().__init__(size, rngs=rngs, **encoder)
        if choices:  # its own name: the parameters of one kind of head are of no use to the other
            self.head_vcr = Head(size.width, 1, std=size.std, dtype=self.pooler.dtype, rngs=rngs)
        else:
            self.head = Head(size.width, answers, std=size.std, dtype=self.pooler.dtype, rngs=rngs)
        self.choices = choices

    def embed(self, batch, key=None):
        """(x_KQD, length_K, spans): every row is its text."""
        ids_KQ, type_KQ, length_K = (rows.join(batch, name, self.choices) for name in ('', 'type', 'length'))
        return self.words(ids_KQ, type_KQ, key), length_K, {'text': (jnp.zeros_like(length_K), length_K)}

    def finish(self, x_KQD, length_K, spans, batch, key=None):
        """(answer_logits_BA, Context) from what the last layer says."""
        pooled_KD = self.pool(x_KQD)
        dropped_KD = ops.dropout(pooled_KD, self.dropout, ops.fold(key, 1))
        if self.choices:
            logits_BA = self.head_vcr(rows.split(dropped_KD, self.choices)[:, :-1])[..., 0]
        else:
            logits_BA = self.head(dropped_KD)
        pooled_BD = rows.alone(pooled_KD, self.choices)
        nothing_B = jnp.zeros(len(pooled_BD), jnp.int32)
        memory_BSD = jnp.zeros((len(pooled_BD), 0, self.width), pooled_BD.dtype)
        return logits_BA, Context(memory_BSD, nothing_B, pooled_BD, {})


SIZES = {
    'base': Size(layers=12, width=768, heads=12, hidden=3072, positions=512),  # section 3, BERT-base: 110 M
    'distilbert': Size(layers=6, width=768, heads=12, hidden=3072, positions=512, types=0, pool='relu'),  # 66 M
    # Ours, for laptops; weights as in UNITER's tiny size, for the reasons told there.
    'tiny': Size(layers=2, width=128, heads=8, hidden=512, positions=128, std=0.09, word_std=1.0),
}
READS, MEMORY = ('model.remat',), False


def build_task(config, assets, *, rngs: nnx.Rngs) -> Bert:
    """M_T of a config; `assets` gives the word vocabulary and the answers."""
    size = lookup.entry(SIZES, config.model.task.size, 'config.model.task.size')
    if config.data.max_text > size.positions:
        raise ValueError(f'data.max_text {config.data.max_text} exceeds the {size.positions} positions of BERT')
    if config.model.expl.name and config.model.expl.image == 'memory':
        logging.log_first_n(
            logging.WARNING,
            "config.model.expl.image is 'memory', but BERT hands no vectors over: the explanation sees nothing of the "
            "picture; set it to 'tags' or 'none'",
            1,
        )
    return Bert(
        size,
        words=len(assets.word),
        answers=len(assets.answers),
        choices=config.data.choices,
        dropout=config.model.dropout,
        attention_dropout=compat.attention_dropout(config),
        remat=config.model.remat,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )
