"""Transformer blocks: BERT's (norm after the residual sum), GPT-2's and ViT's (norm before each branch).

Legend: B batch, P positions, M cache length, N heads, H head size, D width.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.nn import attention, ops


class Mlp(ops.Op):
    """Two linear maps with an activation between them."""

    def __init__(self, width: int, hidden: int, activation: str, *, std: float, out_std: float, dtype, rngs: nnx.Rngs):
        self.up = ops.Linear(width, hidden, std=std, dtype=dtype, rngs=rngs)
        self.down = ops.Linear(hidden, width, std=out_std, dtype=dtype, rngs=rngs)
        self.activation = activation

    def __call__(self, x):
        return self.down(getattr(self.op, self.activation)(self.up(x)))


class PostNormBlock(ops.Op):
    """x = norm(x + f(x)) for self-attention, then for the feed-forward net (BERT; Devlin et al. 2019).

    `dropout` is of each f(x), `attention_dropout` of the attention probabilities.
    """

    def __init__(
        self, width, heads, hidden, *, activation='gelu', eps, std, dropout, attention_dropout=0.0, dtype,
        rngs: nnx.Rngs,
    ):  # fmt: skip
        self.attention = attention.Attention(
            width, heads, std=std, out_std=std, dropout=attention_dropout, dtype=dtype, rngs=rngs
        )
        self.attention_norm = ops.Norm(width, eps=eps)
        self.mlp = Mlp(width, hidden, activation, std=std, out_std=std, dtype=dtype, rngs=rngs)
        self.mlp_norm = ops.Norm(width, eps=eps)
        self.dropout = dropout

    def __call__(self, x_BPD, length_B, *, key=None, tap_BNQK=None):
        x_BPD, y = self.op.copy(x_BPD)
        y, probabilities = self.attention(y, length_B=length_B, tap_BNQK=tap_BNQK, key=ops.fold(key, 2))
        x_BPD = self.attention_norm(self.op.add(x_BPD, ops.dropout(y, self.dropout, ops.fold(key, 0))))
        x_BPD, y = self.op.copy(x_BPD)
        y = ops.dropout(self.mlp(y), self.dropout, ops.fold(key, 1))
        return self.mlp_norm(self.op.add(x_BPD, y)), probabilities

    def first(self, x_BPD, length_B):
        """The output of the first position alone, BD, in evaluation: all that a classifier asks of its last block."""
        y_BD = self.attention.first(x_BPD, length_B=length_B)
        x_BD = self.attention_norm(self.op.add(self.op.first(x_BPD), y_BD))
        return self.mlp_norm(self.op.add(x_BD, self.mlp(x_BD)))


class PreNormBlock(ops.Op):
    """x = x + f(norm(x)), self-attention then feed-forward: causal with a key-value cache (GPT-2), or not (ViT).

    `dropout` is of each f(norm(x)), `attention_dropout` of the attention probabilities.
    """

    def __init__(
        self, width, heads, hidden, *, activation='gelu_tanh', causal=True, eps, std, out_std, dropout,
        attention_dropout=0.0, dtype, rngs: nnx.Rngs,
    ):  # fmt: skip
        self.attention_norm = ops.Norm(width, eps=eps)
        self.attention = attention.Attention(
            width, heads, std=std, out_std=out_std, dropout=attention_dropout, dtype=dtype, rngs=rngs
        )
        self.mlp_norm = ops.Norm(width, eps=eps)
        self.mlp = Mlp(width, hidden, activation, std=std, out_std=out_std, dtype=dtype, rngs=rngs)
        self.dropout, self.causal = dropout, causal

    def feed(self, x, key=None):
        """The feed-forward half."""
        x, y = self.op.copy(x)
        return self.op.add(x, ops.dropout(self.mlp(self.mlp_norm(y)), self.dropout, ops.fold(key, 1)))

    def __call__(self, x_BPD, length_B=None, *, key=None, tap_BNQK=None):
        """(output_BPD, probabilities); `length_B`: positions of a row that are keys, None = all."""
        x_BPD, y = self.op.copy(x_BPD)
        y, probabilities = self.attention(
            self.attention_norm(y), length_B=length_B, causal=self.causal, tap_BNQK=tap_BNQK, key=ops.fold(key, 2)
        )
        x_BPD = self.op.add(x_BPD, ops.dropout(y, self.dropout, ops.fold(key, 0)))
        return self.feed(x_BPD, key), probabilities

    def prefill(self, x_BPD, size: int):
        """The same without dropout, and the cache: (output_BPD, keys_BMNH, values_BMNH) with M = size."""
        q, k, v = self.attention.project(self.attention_norm(x_BPD))
        z, _ = attention.attend(self.op, q, k, v, causal=True)
        room = ((0, 0), (0, size - x_BPD.shape[1]), (0, 0), (0, 0))
        return self.feed(self.op.add(x_BPD, self.attention.merge(z))), jnp.pad(k, room), jnp.pad(v, room)

    def extend(self, x_BD, keys_BMNH, values_BMNH, position_B):
        """One token a row at its own position: (output_BD, keys_BMNH, values_BMNH); later keys are unseen."""
        q_BNH, k_BNH, v_BNH = self.attention.project(self.attention_norm(x_BD))
        rows = jnp.arange(len(x_BD))
        keys_BMNH = keys_BMNH.at[rows, position_B].set(k_BNH)
        values_BMNH = values_BMNH.at[rows, position_B].set(v_BNH)
        z, _ = attention.attend(self.op, q_BNH[:, None], keys_BMNH, values_BMNH, length_B=position_B + 1)
        return self.feed(self.op.add(x_BD, self.attention.merge(z)[:, 0])), keys_BMNH, values_BMNH


def run(blocks, x_BPD, *args, remat: bool, key=None, taps=None):
    """Runs blocks in order. `remat` recomputes each block in the backward pass instead of keeping its activations.

    Returns (x_BPD, probabilities of every layer; None on the fused path).
    """
    maps = []
    for l, block in enumerate(blocks):
        tap = None if taps is None else taps[l]
        if remat:
            graph, params = nnx.split(block)
            call = jax.checkpoint(lambda p, x, a, k, t, graph=graph: nnx.merge(graph, p)(x, *a, key=k, tap_BNQK=t))
            x_BPD, probabilities = call(params, x_BPD, args, ops.fold(key, l), tap)
        else:
            x_BPD, probabilities = block(x_BPD, *args, key=ops.fold(key, l), tap_BNQK=tap)
        maps.append(probabilities)
    return x_BPD, maps
