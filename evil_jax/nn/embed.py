"""What an encoder reads: words with their positions and types, and pieces of different lengths in rows without gaps.

Legend: B batch, K rows, P positions of a piece, Q tokens of a text, S positions of the row, D width.
"""

import jax.numpy as jnp
from flax import nnx

from evil_jax.nn import ops


class TextEmbedding(ops.Op):
    """norm(word + position + type), as BERT embeds a text (Devlin et al. 2019, figure 2).

    Args:
      width: D.
      words, positions, types: rows of the tables; without types (DistilBERT) there is no such table.
      first: position of the first token (RoBERTa begins at 2).
      eps: of the norm.
      std, word_std: of the initial tables, and of the initial word table.
    """

    def __init__(
        self, width: int, *, words: int, positions: int, types: int, first: int = 0, eps: float, std: float,
        word_std: float, dtype, rngs: nnx.Rngs,
    ):  # fmt: skip
        table = lambda rows, std: ops.Embedding(rows, width, std=std, dtype=dtype, rngs=rngs)
        self.word, self.position = table(words, word_std), table(positions, std)
        self.type = table(types, std) if types else None
        self.norm = ops.Norm(width, eps=eps)
        self.first = first

    def __call__(self, ids_KQ, type_KQ=None, more_KQD=None):
        """Vectors KQD.

        Args:
          ids_KQ: words.
          type_KQ: their types; None = 0.
          more_KQD: is added, for example the embedding of the region where a word stands for one (as in VL-BERT, Su et
            al. 2020). It comes behind the norm: pre-trained word rows are a twentieth of its size and would drown.
        """
        x_KQD = self.op.add(self.word(ids_KQ), self.position(self.first + jnp.arange(ids_KQ.shape[1])))
        if self.type is not None:
            x_KQD = self.op.add(x_KQD, self.type(jnp.zeros_like(ids_KQ) if type_KQ is None else type_KQ))
        x_KQD = self.norm(x_KQD)
        return x_KQD if more_KQD is None else self.op.add(x_KQD, more_KQD)


def layout(lengths, capacities, size: int):
    """Where each position of a compacted row comes from.

    Args:
      lengths: valid positions of each piece, int32 B each (or a Python int).
      capacities: positions that each piece has in the concatenation of all pieces.
      size: S.

    Returns:
      (index_BS into the concatenation, valid_BS, starts): starts holds the first position of each piece in the row and,
      last, the length of the row, int32 B each.
    """
    position_S = jnp.arange(size)
    starts, offset = [jnp.zeros_like(jnp.asarray(next(x for x in lengths if not isinstance(x, int))))], 0
    index_BS = jnp.zeros((len(starts[0]), size), jnp.int32)
    for length, capacity in zip(lengths, capacities):
        start, end = starts[-1], starts[-1] + length
        inside = (position_S >= start[:, None]) & (position_S < end[:, None])
        index_BS = jnp.where(inside, offset + position_S - start[:, None], index_BS)
        offset += capacity
        starts.append(end)
    return index_BS, position_S < starts[-1][:, None], starts
