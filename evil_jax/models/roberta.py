"""RoBERTa (Liu et al. 2019, arXiv 1907.11692): BERT with other training, byte pairs for words, and no segments.

Its positions begin at 2 (padding has position 1) and its one token type is added everywhere, as in fairseq and Hugging
Face. It reads ids of its own tokeniser, so it is no M_T of a data set; it serves as a plain classifier of texts.

Legend: B batch, Q tokens, D width, A classes.
"""

import jax.numpy as jnp
from flax import nnx

from evil_jax.models import bert, steps
from evil_jax.models.context import Context
from evil_jax.nn import ops

EPS = 1e-5
PAD = 1  # id of '<pad>'
_FIRST = PAD + 1  # position of the first token


class Roberta(bert.Encoder, steps.Steps):
    """`(batch) -> (logits_BA, Context)` of batch['text'] ids BQ and batch['text_length'] B, in three steps.

    The context's memory are the vectors of the last layer, zero beyond the text.

    Args:
      words: of the vocabulary (50,265 of the published one).
      classes: A; 0: no classifier, logits are None. With one the pooler is the classifier's first layer (Hugging Face's
        `classifier.dense`), and there is no other.
      **encoder: see `bert.Encoder`.
    """

    def __init__(self, size: bert.Size, *, words: int, classes: int = 0, rngs: nnx.Rngs, **encoder):
        super().__init__(size, words=words, first=_FIRST, eps=EPS, rngs=rngs, **encoder)
        head = lambda: bert.Head(size.width, classes, std=size.std, dtype=self.pooler.dtype, rngs=rngs)
        self.head = head() if classes else None

    def embed(self, batch, key=None):
        """(x_BQD, length_B, spans): every row is its text."""
        length_B = batch['text_length']
        return self.words(batch['text'], None, key), length_B, {'text': (jnp.zeros_like(length_B), length_B)}

    def finish(self, x_BQD, length_B, spans, batch, key=None):
        """(logits_BA or None, Context) from what the last layer says."""
        # The classifier drops twice: before its first layer and before its second.
        pooled_BD = self.pool(x_BQD if self.head is None else ops.dropout(x_BQD, self.dropout, ops.fold(key, 1)))
        logits_BA = None
        if self.head is not None:
            logits_BA = self.head(ops.dropout(pooled_BD, self.dropout, ops.fold(key, 2)))
        valid_BQ = jnp.arange(x_BQD.shape[1]) < length_B[:, None]
        return logits_BA, Context(jnp.where(valid_BQ[..., None], x_BQD, 0), length_B, pooled_BD, spans)

    def classify(self, ids_BQ, length_B, *, key=None):
        """Logits_BA of the classes."""
        if self.head is None:
            raise ValueError('this RoBERTa was made without classes: there is nothing to choose from')
        return self({'text': ids_BQ, 'text_length': length_B}, key=key)[0]


SIZES = {
    'base': bert.Size(layers=12, width=768, heads=12, hidden=3072, positions=514, types=1),  # as BERT-base: 125 M
    'tiny': bert.Size(layers=2, width=128, heads=8, hidden=512, positions=130, types=1, std=0.09, word_std=1.0),  # ours
}
