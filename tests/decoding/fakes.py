"""A tiny explanation module with the contract of the real ones, and the same function in plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np


class Fake:
    """Logits from all tokens so far, each weighted by its position: any wrong cache row or position changes them.

    `batch['prompt']` int32 [B, S] with `batch['prompt_length']` plays the prefix; rows are ragged.
    """

    def __init__(self, vocabulary, positions, seed=0, scale=3.0):
        rng = np.random.default_rng(seed)
        self.embed_VD = rng.normal(size=(vocabulary, 8)).astype(np.float32)
        self.place_PD = rng.normal(size=(positions, 8)).astype(np.float32)
        self.out_DV = (scale * rng.normal(size=(8, vocabulary)) / 8**0.5).astype(np.float32)
        self.steps = 0  # extends that ran

    def _logits(self, tokens_BP, length_B):
        valid_BP = jnp.arange(tokens_BP.shape[1]) < length_B[:, None]
        terms_BPD = jnp.asarray(self.embed_VD)[tokens_BP] * jnp.asarray(self.place_PD)[: tokens_BP.shape[1]]
        hidden_BD = jnp.tanh(jnp.where(valid_BP[..., None], terms_BPD, 0).sum(1))
        return hidden_BD @ jnp.asarray(self.out_DV)

    def prefill(self, batch, context, condition, max_tokens):
        tokens_BP = jnp.pad(batch['prompt'], ((0, 0), (0, max_tokens)))
        cache = {'tokens': tokens_BP, 'length': batch['prompt_length']}
        return self._logits(tokens_BP, cache['length']), cache

    def extend(self, cache, token_B, position_B):
        def count():
            self.steps += 1

        jax.debug.callback(count)
        tokens_BP = jax.vmap(lambda row, token, position: row.at[position].set(token))(
            cache['tokens'], token_B, position_B
        )
        return self._logits(tokens_BP, position_B + 1), {**cache, 'tokens': tokens_BP}

    def log_p(self, prompt, tokens):
        """Log probabilities of the next token after one row's prompt and explanation so far, float64 V."""
        row = np.concatenate([prompt, tokens]).astype(int)
        hidden_D = np.tanh((self.embed_VD[row] * self.place_PD[: len(row)]).astype(np.float64).sum(0))
        logits_V = hidden_D @ self.out_DV.astype(np.float64)
        peak = logits_V.max()
        return logits_V - peak - np.log(np.exp(logits_V - peak).sum())


def prompts(rows, longest, vocabulary, seed=0):
    """A batch of ragged random prompts."""
    rng = np.random.default_rng(seed)
    length_B = rng.integers(1, longest + 1, rows).astype(np.int32)
    prompt_BS = rng.integers(0, vocabulary, (rows, longest)).astype(np.int32)
    prompt_BS[np.arange(longest) >= length_B[:, None]] = 0
    return {
        'prompt': prompt_BS,
        'prompt_length': length_B,
        'mask': np.ones(rows, bool),
        'row': np.arange(rows, dtype=np.int32),
    }


def prompt_of(batch, row):
    return batch['prompt'][row][: batch['prompt_length'][row]]


def every_sequence(fake, prompt, max_tokens, end_id):
    """All (tokens, sum of log p) that end with `end_id` or have `max_tokens` tokens."""
    finished, running = [], [((), 0.0)]
    for _ in range(max_tokens):
        grown = []
        for tokens, total in running:
            for token, log_p in enumerate(fake.log_p(prompt, tokens)):
                grown.append(((*tokens, token), total + log_p))
        finished += [g for g in grown if g[0][-1] == end_id]
        running = [g for g in grown if g[0][-1] != end_id]
    return finished + running


def beam_by_hand(fake, prompt, max_tokens, end_id, beams, length_penalty):
    """The documented beam search on Python lists: (tokens, score) of the winner, and the steps it took."""
    running, finished = [((), 0.0)], []
    for length in range(1, max_tokens + 1):
        grown = [
            ((*tokens, token), total + log_p)
            for tokens, total in running
            for token, log_p in enumerate(fake.log_p(prompt, tokens))
        ]
        grown = sorted(grown, key=lambda g: -g[1])[: 2 * beams]
        for tokens, total in grown[:beams]:
            if tokens[-1] == end_id or length == max_tokens:
                finished.append((tokens, total / length**length_penalty))
        finished = sorted(finished, key=lambda f: -f[1])[:beams]
        running = [g for g in grown if g[0][-1] != end_id][:beams]
        if len(finished) == beams and finished[-1][1] >= running[0][1] / length**length_penalty:
            break
    return *finished[0], length
