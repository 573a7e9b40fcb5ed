"""RoBERTa (Liu et al. 2019, arXiv 1907.11692): BERT with other training, byte pairs for words, and no segments.

Its positions begin at 2 (padding has position 1) and its one token type is added everywhere, as in fairseq and Hugging
Face. It reads ids of its own tokeniser, so it is no M_T of a data set; it serves as a plain classifier of texts.

Legend: B batch, Q tokens, D width, A classes.
"""

from flax import nnx

from evil_jax.models import bert
from evil_jax.nn import ops

EPS = 1e-5
PAD = 1  # id of '<pad>'
_FIRST = PAD + 1  # position of the first token


class Roberta(bert.Encoder):
    """`(ids_BQ, length_B) -> (vectors_BQD, pooled_BD)`, and with classes `classify(ids_BQ, length_B) -> logits_BA`.

    Args:
      words: of the vocabulary (50,265 of the published one).
      classes: A; 0: no classifier. With one the pooler is the classifier's first layer (Hugging Face's
        `classifier.dense`), and there is no other.
      **encoder: see `bert.Encoder`.
    """

    def __init__(self, size: bert.Size, *, words: int, classes: int = 0, rngs: nnx.Rngs, **encoder):
        super().__init__(size, words=words, first=_FIRST, eps=EPS, rngs=rngs, **encoder)
        self.head = bert.Head(size.width, classes, std=size.std, rngs=rngs) if classes else None

    def __call__(self, ids_BQ, length_B, *, key=None, taps=None):
        """(vectors of the last layer BQD, pooled_BD), and with taps the attention maps; see `bert.Encoder.encode`."""
        x_BQD, maps = self.encode(ids_BQ, None, length_B, key=ops.fold(key, 0), taps=taps)
        # The classifier drops twice: before its first layer and before its second.
        pooled_BD = self.pool(x_BQD if self.head is None else ops.dropout(x_BQD, self.dropout, ops.fold(key, 1)))
        return (x_BQD, pooled_BD) if taps is None else (x_BQD, pooled_BD, maps)

    def classify(self, ids_BQ, length_B, *, key=None):
        """Logits_BA of the classes, float32."""
        if self.head is None:
            raise ValueError('this RoBERTa was made without classes: there is nothing to choose from')
        _, pooled_BD = self(ids_BQ, length_B, key=key)
        return self.head(ops.dropout(pooled_BD, self.dropout, ops.fold(key, 2)))


SIZES = {
    'base': bert.Size(layers=12, width=768, heads=12, hidden=3072, positions=514, types=1),  # as BERT-base: 125 M
    'tiny': bert.Size(layers=2, width=128, heads=8, hidden=512, positions=130, types=1, std=0.09, word_std=1.0),  # ours
}
