"""Attention, once for every model.

Legend: B batch, Q queries, K keys, P positions, N heads, H head size, D width.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.nn import ops


def attend(op, q_BQNH, k_BKNH, v_BKNH, *, length_B=None, causal=False, tap_BNQK=None, dropout: float = 0.0, key=None):
    """Scaled dot-product attention (Vaswani et al. 2017, eq. 1).

    Args:
      op: table of operations, see ops.OPS.
      length_B: keys of a row that count; the rest is padding. Rows are compacted, so a length is all the mask there is.
      causal: query i sees keys up to i.
      tap_BNQK: None takes the fused path, except for rules that cannot see through it, and in float64, which it lacks.
        An array (zeros) is added to the probabilities, which are then materialised: its cotangent is their gradient, or
        their relevance.
      dropout: share of the probabilities that are zeroed, the rest scaled up, as BERT and GPT-2 do in training. Needs
        `key`, without which nothing is dropped, and takes the materialised path.

    Returns:
      (output_BQNH, probabilities_BNQK or None).
    """
    exact = q_BQNH.dtype == jnp.float64  # the fused softmax is one of float32
    if tap_BNQK is None and op.fused and not exact and (key is None or not dropout):
        return jax.nn.dot_product_attention(
            q_BQNH, k_BKNH, v_BKNH, is_causal=causal, key_value_seq_lengths=length_B
        ), None
    scores_BNQK = ops.wide(op.scores(q_BQNH, k_BKNH))
    queries, keys = scores_BNQK.shape[-2:]
    allowed = jnp.ones((1, 1, queries, keys), bool)
    if causal:
        allowed = allowed & (jnp.arange(keys) <= jnp.arange(queries)[:, None])
    if length_B is not None:
        allowed = allowed & (jnp.arange(keys) < length_B[:, None, None, None])
    scores_BNQK = jnp.where(allowed, scores_BNQK, jnp.finfo(jnp.float32).min)
    probabilities_BNQK = ops.dropout(op.softmax(scores_BNQK).astype(v_BKNH.dtype), dropout, key)
    if tap_BNQK is None:
        return op.mix(probabilities_BNQK, v_BKNH), None
    probabilities_BNQK = probabilities_BNQK + tap_BNQK
    return op.mix(probabilities_BNQK, v_BKNH), probabilities_BNQK


class Attention(ops.Op):
    """Multi-head self-attention. Query, key and value are stored apart, as in BERT, and are one product when traced.

    `dropout`: of the probabilities, where a call has a key. `joined`: False makes three products of the one, which
    spares a copy of their weights: on a CPU 4 % of a BERT-base layer at 800 tokens a batch.
    """

    joined = True

    def __init__(
        self, width: int, heads: int, *, std: float, out_std: float, dropout: float = 0.0, dtype, rngs: nnx.Rngs
    ):
        if width % heads:
            raise ValueError(f'width {width} is not a multiple of {heads} heads')
        make = lambda s: ops.Linear(width, width, std=s, dtype=dtype, rngs=rngs)
        self.query, self.key, self.value, self.out = make(std), make(std), make(std), make(out_std)
        self.heads, self.dropout = heads, dropout

    def project(self, x_BPD):
        """Query, key and value of every position, each BPNH."""
        return self._together(x_BPD, self.query, self.key, self.value)

    def _together(self, x_BPD, *maps):
        """What each of some linear maps makes of x, as one product if `joined`: a tuple of BPNH."""
        if not self.joined:
            return tuple(p(x_BPD).reshape(*x_BPD.shape[:-1], self.heads, -1) for p in maps)
        w_IMO = jnp.concatenate([p.kernel[...] for p in maps], axis=1)
        b_MO = jnp.concatenate([p.bias[...] for p in maps])
        dtype = self.query.dtype
        y = self.op.linear(x_BPD.astype(dtype), w_IMO.astype(dtype), b_MO.astype(dtype))
        split = y.reshape(*x_BPD.shape[:-1], len(maps), self.heads, -1)
        return tuple(split[..., n, :, :] for n in range(len(maps)))

    def merge(self, z_BPNH):
        """Output projection of the concatenated heads, BPD."""
        return self.out(z_BPNH.reshape(*z_BPNH.shape[:-2], -1))

    def first(self, x_BPD, *, length_B=None):
        """The output of the first position alone, BD, in evaluation."""
        (q_BQNH,) = self._together(x_BPD[:, :1], self.query)
        k, v = self._together(x_BPD, self.key, self.value)
        return self.merge(attend(self.op, q_BQNH, k, v, length_B=length_B)[0])[:, 0]

    def __call__(self, x_BPD, *, length_B=None, causal=False, tap_BNQK=None, key=None):
        q, k, v = self.project(x_BPD)
        z_BPNH, probabilities = attend(
            self.op, q, k, v, length_B=length_B, causal=causal, tap_BNQK=tap_BNQK, dropout=self.dropout, key=key
        )
        return self.merge(z_BPNH), probabilities
