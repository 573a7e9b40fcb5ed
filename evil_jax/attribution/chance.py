"""Random relevance: what every method has to beat.

An example gets its numbers from `Settings.seed`, the target and its own words and picture: the same in any batch, at
any place in it, and others than other examples.

Legend: K targets, B examples, S positions.
"""

import jax
import jax.numpy as jnp


def random(subject, targets_BK, settings):
    """Uniform in (0, 1] for every position, the same place of no two inputs alike: a tuple of [K, B, S]."""
    fold, key = jax.random.fold_in, jax.random.key(settings.seed)

    def one(digest, target, numbers):
        mine = fold(fold(key, digest), target)
        return jax.vmap(lambda number: 1 - jax.random.uniform(fold(mine, number)))(numbers)

    parts = []
    for place, x in enumerate(subject.inputs):
        each = len(x) // len(targets_BK)  # rows of an example
        numbers_N = (jnp.arange(x.shape[1]) * each + jnp.arange(each)[:, None]).reshape(-1)
        numbers_N = numbers_N * len(subject.inputs) + place
        over_examples = jax.vmap(one, (0, 0, None))
        values_KBN = jax.vmap(over_examples, (None, 0, None))(subject.digest_B, targets_BK.T, numbers_N)
        parts.append(values_KBN.reshape(len(values_KBN), -1, x.shape[1]))
    return tuple(parts)


def digest(batch):
    """A number of each example's words and picture, uint32 B: a sum over their bits, to which padding adds nothing, and
    in which no order of additions shows."""
    total_B = jnp.uint32(0)
    for name, length in (('text', 'text_length'), ('features', 'region_length'), ('images', None)):
        if name in batch:
            bits_BPD = _mixed(jnp.asarray(batch[name]))
            if length is not None:
                inside_BP = jnp.arange(bits_BPD.shape[1]) < jnp.asarray(batch[length])[:, None]
                bits_BPD = jnp.where(inside_BP[..., None], bits_BPD, 0)
            total_B = total_B * 31 + bits_BPD.sum((1, 2), dtype=jnp.uint32)
    return total_B


def _mixed(x):
    """Bits of each number, mixed with its place in the row: uint32 [B, P, rest]."""
    whole = jnp.issubdtype(x.dtype, jnp.integer)
    bits = x.astype(jnp.uint32) if whole else jax.lax.bitcast_convert_type(x.astype(jnp.float32), jnp.uint32)
    bits = bits.reshape(*x.shape[:2], -1)
    place = jnp.arange(bits[0].size, dtype=jnp.uint32).reshape(bits.shape[1:])
    mixed = (bits + 1) * (place * jnp.uint32(2654435761) | 1)  # Knuth's multiplier, made odd: it keeps all bits
    return mixed ^ (mixed >> 15)
