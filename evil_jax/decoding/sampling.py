"""How one next token is chosen from logits, row by row."""

import jax
import jax.numpy as jnp


def check(temperature: float, top_k: int, top_p: float) -> None:
    """Raises ValueError for settings without a meaning."""
    if not temperature > 0:
        raise ValueError(
            f"temperature is {temperature}, wanted more than 0 (for the most likely token: method 'greedy')"
        )
    if top_k < 0:
        raise ValueError(f'top_k is {top_k}, wanted 0 (off) or the number of tokens to keep')
    if not 0 <= top_p <= 1:
        raise ValueError(f'top_p is {top_p}, wanted a probability between 0 and 1 (1 = off)')


def greedy(logits_BV: jax.Array) -> jax.Array:
    """Most likely token, int32 B; of equal ones the lowest id."""
    return jnp.argmax(logits_BV, axis=-1).astype(jnp.int32)


def only(logits: jax.Array, vocabulary: int | None) -> jax.Array:
    """Logits [..., V] with -inf from id `vocabulary` on; None leaves them as they are."""
    return logits if vocabulary is None else jnp.where(jnp.arange(logits.shape[-1]) < vocabulary, logits, -jnp.inf)


def row_keys(key: jax.Array, row_B: jax.Array) -> jax.Array:
    """One random key a row, made from the example's index in the split.

    What a row draws then depends on (seed, example) only: not on the batch size, the position in the batch or the
    devices.
    """
    return jax.vmap(jax.random.fold_in, (None, 0))(key, row_B.astype(jnp.uint32))


def sample(
    keys_B: jax.Array, logits_BV: jax.Array, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> jax.Array:
    """Draws one token a row, int32 B.

    The order of the filters is that of Hugging Face: temperature, then the `top_k` most likely tokens, then the
    smallest set of most likely tokens whose probability (renormalised after top_k) reaches `top_p`. The most likely
    token always stays, so that `top_p=0` and `top_k=1` are greedy; of equal tokens the lowest id goes first.

    Args:
      keys_B: random keys, one a row.
      logits_BV: float32 logits.
      temperature: divides the logits.
      top_k: 0 = off; more than the vocabulary = all.
      top_p: 1 = off.
    """
    check(temperature, top_k, top_p)
    logits_BV = logits_BV.astype(jnp.float32) / temperature
    vocabulary = logits_BV.shape[-1]
    top_k = min(top_k, vocabulary) or vocabulary
    draw = jax.vmap(jax.random.categorical)
    if top_k == vocabulary and top_p >= 1:  # nothing to filter: no sorting of the vocabulary
        return draw(keys_B, logits_BV).astype(jnp.int32)
    values_BK, ids_BK = jax.lax.top_k(logits_BV, top_k)  # sorted; of equal values the lowest id first
    if top_p < 1:
        probability_BK = jax.nn.softmax(values_BK, axis=-1)
        before_BK = jnp.cumsum(probability_BK, axis=-1) - probability_BK
        keep_BK = (before_BK < top_p) | (jnp.arange(top_k) == 0)
        values_BK = jnp.where(keep_BK, values_BK, -jnp.inf)
    choice_B = draw(keys_B, values_BK)
    return jnp.take_along_axis(ids_BK, choice_B[:, None], axis=-1)[:, 0].astype(jnp.int32)
