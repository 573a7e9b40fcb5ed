"""Joining pieces of different lengths into rows without gaps.

Legend: B batch, P positions of a piece, S positions of the row, D width.
"""

import jax.numpy as jnp


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
