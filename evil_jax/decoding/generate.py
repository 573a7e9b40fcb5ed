"""Explanations for a batch: the prefix is read once, then one compiled loop adds a token a step to every row."""

import jax
import jax.numpy as jnp

from evil_jax.decoding import beam, sampling

METHODS = ('greedy', 'sample', 'beam')


def generate(
    expl,
    batch,
    context,
    condition,
    *,
    method: str = 'greedy',
    max_tokens: int,
    end_id: int,
    pad_id: int,
    vocabulary: int | None = None,
    key: jax.Array | None = None,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    beams: int = 4,
    length_penalty: float = 1.0,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Generates one explanation a row. A pure function: call it inside `jax.jit`, with the batch sharded or not.

    The loop stops as soon as every row has ended; padding rows (`batch['mask']` False) count as ended from the start.

    Args:
      expl: the explanation module: `prefill(batch, context, condition, max_tokens) -> (logits_BV, cache)` and
        `extend(cache, token_B, position_B) -> (logits_BV, cache)`, every cache leaf batch first, `cache['length']` the
        position of the first new token.
      batch: dict of arrays with `mask` bool B, and `row` int32 B (index of the example in its split) when sampling.
      context: what M_T hands over.
      condition: the answer to be explained.
      method: 'greedy' (of equal tokens the lowest id), 'sample' or 'beam'; all settings below are static.
      max_tokens: T, the most tokens of an explanation, its end token included.
      end_id: token that ends an explanation.
      pad_id: fills a row after its end.
      vocabulary: tokens from this id on are never generated: rows of the embedding table that are no words.
      key: random key of the run, for 'sample'; rows draw from `fold_in(key, row)`.
      temperature, top_k, top_p: see `sampling.sample`.
      beams, length_penalty: see `beam`. One beam is greedy search.

    Returns:
      tokens_BT: int32, the end token included (if the row ended within T), then `pad_id`.
      lengths_B: int32, tokens before the padding.
      scores_B: float32, the sum of the tokens' log probabilities under the model (not the filtered distribution that
        was sampled from); for 'beam' divided by length ** length_penalty.

    Raises:
      ValueError: unknown method, or a setting out of range.
    """
    if method not in METHODS:
        raise ValueError(f'decoding method is {method!r}, wanted one of {", ".join(METHODS)}')
    if max_tokens < 1:
        raise ValueError(f'max_tokens is {max_tokens}, wanted at least 1')
    if beams < 1:
        raise ValueError(f'beams is {beams}, wanted at least 1')
    limits = dict(max_tokens=max_tokens, end_id=end_id, pad_id=pad_id, vocabulary=vocabulary)
    if method == 'beam':
        return beam.search(expl, batch, context, condition, beams=beams, length_penalty=length_penalty, **limits)
    if method == 'greedy':
        choose = lambda step, logits_BV: sampling.greedy(logits_BV)
    else:
        sampling.check(temperature, top_k, top_p)
        if key is None:
            raise ValueError("method 'sample' needs a random key")
        keys_B = sampling.row_keys(key, batch['row'])

        def choose(step, logits_BV):
            step_keys_B = jax.vmap(jax.random.fold_in, (0, None))(keys_B, step)
            return sampling.sample(step_keys_B, logits_BV, temperature=temperature, top_k=top_k, top_p=top_p)

    return _one_by_one(expl, batch, context, condition, choose, **limits)


def _one_by_one(expl, batch, context, condition, choose, *, max_tokens, end_id, pad_id, vocabulary):
    """The loop of greedy search and sampling; `choose(step, logits_BV) -> token_B`."""
    logits_BV, cache = expl.prefill(batch, context, condition, max_tokens)
    first_position_B = cache['length']
    B = logits_BV.shape[0]

    def take(step, logits_BV, state):
        tokens_BT, lengths_B, scores_B, done_B, _ = state
        logits_BV = logits_BV.astype(jnp.float32)
        token_B = jnp.where(done_B, pad_id, choose(step, sampling.only(logits_BV, vocabulary)))
        chosen_B = jnp.take_along_axis(logits_BV, token_B[:, None], axis=-1)[:, 0]
        log_p_B = chosen_B - jax.nn.logsumexp(logits_BV, axis=-1)
        return (
            jax.lax.dynamic_update_slice(tokens_BT, token_B[:, None], (0, step)),
            lengths_B + ~done_B,
            scores_B + jnp.where(done_B, 0.0, log_p_B),
            done_B | (token_B == end_id),
            token_B,
        )

    state = (
        jnp.full((B, max_tokens), pad_id, jnp.int32),
        jnp.zeros(B, jnp.int32),
        jnp.zeros(B, jnp.float32),
        ~batch['mask'],
        jnp.zeros(B, jnp.int32),
    )
    state = take(0, logits_BV, state)

    def running(carry):
        step, (_, _, _, done_B, _), _ = carry
        return (step < max_tokens) & ~jnp.all(done_B)

    def advance(carry):
        step, state, cache = carry
        logits_BV, cache = expl.extend(cache, state[-1], first_position_B + step - 1)
        return step + 1, take(step, logits_BV, state), cache

    _, (tokens_BT, lengths_B, scores_B, _, _), _ = jax.lax.while_loop(running, advance, (jnp.int32(1), state, cache))
    return tokens_BT, lengths_B, scores_B
