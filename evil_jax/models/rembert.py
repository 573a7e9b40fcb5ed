"""RemBERT (Chung et al., ICLR 2021, arXiv 2010.12821): BERT whose words are narrower than its layers.

One linear map, behind the norm of the embedding, leads from the one width to the other. BLEURT-20 (Pu et al., EMNLP
2021) is such an encoder of 32 layers and of 256 numbers a word; it serves texts of a hundred languages.

Legend: K rows, Q tokens, E width of the words, D width of the layers.
"""

from flax import nnx

from evil_jax.models import bert
from evil_jax.nn import embed, ops


class NarrowEmbedding(embed.TextEmbedding):
    """norm(word + position + type) of width E, then a linear map to D.

    Args:
      inputs, width: E, D.
      **embedding: see `embed.TextEmbedding`.
    """

    def __init__(self, inputs: int, width: int, *, std: float, dtype, rngs: nnx.Rngs, **embedding):
        super().__init__(inputs, std=std, dtype=dtype, rngs=rngs, **embedding)
        self.up = ops.Linear(inputs, width, std=std, dtype=dtype, rngs=rngs)

    def __call__(self, ids_KQ, type_KQ=None):
        """Vectors KQD of words and their types (None = 0)."""
        return self.up(super().__call__(ids_KQ, type_KQ))


class RemBert(bert.Encoder):
    """`encode` and `pool` of `bert.Encoder`, and `(ids_KQ, type_KQ, length_K) -> (vectors_KQD, pooled_KD)`.

    Args:
      words: of the vocabulary (250,300 of the published one).
      inputs: E.
      **encoder: see `bert.Encoder`.
    """

    def __init__(self, size: bert.Size, *, words: int, inputs: int, rngs: nnx.Rngs, **encoder):
        super().__init__(size, words=1, rngs=rngs, **encoder)  # of its embedding nothing stays
        self.text = NarrowEmbedding(
            inputs, size.width, words=words, positions=size.positions, types=size.types, eps=self.text.norm.eps,
            std=size.std, word_std=size.word_std, dtype=self.pooler.dtype, rngs=rngs,
        )  # fmt: skip

    def __call__(self, ids_KQ, type_KQ, length_K, *, key=None, taps=None):
        """(vectors of the last layer KQD, pooled_KD), and with taps the attention maps; see `bert.Encoder.encode`."""
        x_KQD, maps = self.encode(ids_KQ, type_KQ, length_K, key=key, taps=taps)
        return (x_KQD, self.pool(x_KQD)) if taps is None else (x_KQD, self.pool(x_KQD), maps)


WORDS, INPUTS = 250_300, 256  # of the published model
SIZES = {
    'base': bert.Size(layers=32, width=1152, heads=18, hidden=4608, positions=512),  # section 5: 559 M when fine-tuned
    'tiny': bert.Size(layers=2, width=128, heads=8, hidden=512, positions=128, std=0.09, word_std=1.0),  # ours
}
