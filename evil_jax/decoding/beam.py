"""Beam search with a length penalty, one compiled loop over a batch.

The semantics are Hugging Face's (`num_beams`, `length_penalty`, `early_stopping=False`):

- Each step looks at the 2K best continuations of the K running beams. Those that end and are among the first K become
  finished; the K best that do not end run on.
- A finished explanation of `len` new tokens, the end token included, scores sum(log p) / len ** length_penalty; the K
  best are kept. Note the plain power, not ((5 + len) / 6) ** a of Wu et al. (2016, equation 14): 0 compares sums,
  1 means, more favours long explanations.
- A row stops once K are finished and the best running beam, scored at its present length, does not beat the worst of
  them. Beams that reach `max_tokens` count as finished.
- With K = 1 this is greedy search.

The 2K best always hold K that run on, since each beam has only one continuation that ends.
"""

import jax
import jax.numpy as jnp

from evil_jax.decoding import sampling

_NEVER = -jnp.inf  # score of a beam that does not exist


def search(
    expl, batch, context, condition, *, max_tokens, end_id, pad_id, vocabulary=None, beams, length_penalty
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Best explanation of each row. Arguments and results as in `generate.generate`; scores are penalised ones."""
    B, K, T = batch['mask'].shape[0], beams, max_tokens
    logits_BV, cache = expl.prefill(batch, context, condition, T)
    V = logits_BV.shape[-1]
    cache = jax.tree.map(lambda leaf: jnp.repeat(leaf, K, axis=0), cache)  # rows b*K .. b*K+K-1 are the beams of row b
    first_position = cache['length']

    def choose(step, logits, state):
        """One step of the search: `logits` [B, K, V] predict token number `step`."""
        log_p_BKV = sampling.only(jax.nn.log_softmax(logits.astype(jnp.float32)), vocabulary)
        total_BKV = state['sum'][:, :, None] + log_p_BKV
        value, index = jax.lax.top_k(total_BKV.reshape(B, K * V), 2 * K)
        beam, token = index // V, (index % V).astype(jnp.int32)
        tokens = _pick(state['tokens'], beam).at[:, :, step].set(token)
        ended = token == end_id
        score = value / (step + 1.0) ** length_penalty

        finishes = (ended | (step == T - 1)) & (jnp.arange(2 * K) < K)
        scores = jnp.concatenate([state['best'], jnp.where(finishes, score, _NEVER)], axis=1)
        best, keep = jax.lax.top_k(scores, K)
        best_tokens = _pick(jnp.concatenate([state['best_tokens'], tokens], axis=1), keep)
        lengths = jnp.concatenate([state['best_length'], jnp.full((B, 2 * K), step + 1, jnp.int32)], axis=1)
        best_length = _pick(lengths, keep)

        run = jnp.argsort(ended, axis=1, stable=True)[:, :K]  # the K best that did not end, in their order
        total = _pick(value, run)
        done = (best[:, -1] > _NEVER) & (best[:, -1] >= total[:, 0] / (step + 1.0) ** length_penalty)
        frozen = state['done']  # a row's result must not depend on how long other rows take
        new = dict(
            tokens=_pick(tokens, run),
            last=_pick(token, run),
            sum=total,
            best=jnp.where(frozen[:, None], state['best'], best),
            best_tokens=jnp.where(frozen[:, None, None], state['best_tokens'], best_tokens),
            best_length=jnp.where(frozen[:, None], state['best_length'], best_length),
            done=frozen | done,
        )
        return new, _pick(beam, run)

    state = dict(
        tokens=jnp.full((B, K, T), pad_id, jnp.int32),
        last=jnp.zeros((B, K), jnp.int32),
        sum=jnp.where(jnp.arange(K) == 0, jnp.zeros((B, K)), _NEVER),  # all beams are equal: only the first may grow
        best=jnp.full((B, K), _NEVER),
        best_tokens=jnp.full((B, K, T), pad_id, jnp.int32),
        best_length=jnp.zeros((B, K), jnp.int32),
        done=~batch['mask'],
    )
    state, parent_BK = choose(0, jnp.repeat(logits_BV[:, None], K, axis=1), state)

    def running(carry):
        step, state, _, _ = carry
        return (step < T) & ~jnp.all(state['done'])

    def advance(carry):
        step, state, parent_BK, cache = carry
        cache = jax.tree.map(
            lambda leaf: _pick(leaf.reshape(B, K, *leaf.shape[1:]), parent_BK).reshape(leaf.shape), cache
        )
        logits, cache = expl.extend(cache, state['last'].reshape(B * K), first_position + step - 1)
        state, parent_BK = choose(step, logits.reshape(B, K, V), state)
        return step + 1, state, parent_BK, cache

    _, state, _, _ = jax.lax.while_loop(running, advance, (jnp.int32(1), state, parent_BK, cache))
    mask_B = batch['mask']
    tokens_BT = jnp.where(mask_B[:, None], state['best_tokens'][:, 0], pad_id)
    return tokens_BT, jnp.where(mask_B, state['best_length'][:, 0], 0), jnp.where(mask_B, state['best'][:, 0], 0.0)


def _pick(x, index):
    """x[b, index[b, j]] for each row: a batched gather, which stays on the row's device."""
    return jax.vmap(lambda values, chosen: values[chosen])(x, index)
