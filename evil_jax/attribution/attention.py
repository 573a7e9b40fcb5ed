"""Attention as relevance: raw attention of the last layer, and rollout; what all methods of attention have in common.

Every such method is one matrix a layer, [rows, Q, S]: how much each key S of a row gives to each query Q. Relevance
starts as one-hot at the positions that a target is read from, and is carried to the input as one row vector: products
of whole matrices are never needed.

Where M_E has M_T's vectors in its rows (a prefix), relevance that has arrived at them goes on in M_T's layers. Methods
that look at the last layer only (raw attention, GradCAM, partial LRP, LeGrad: at M_E's layers only) take such a vector
for the word or region at whose place it stands.

The entry of a class token, from which an answer is read, is 0. Of a decoder's positions what only the identity has
carried does not count: that a token's own position is "relevant" to what is read there says nothing.

Legend: K targets, B rows, N heads, Q queries, S positions.
"""

import jax
import jax.numpy as jnp

from evil_jax.nn import ops


def raw_attention(subject, targets_BK, settings):
    """Mean over heads of the last layer's attention, the row that is read. PJ-X, FME: their own, mean over glimpses."""
    if not subject.has_layers:
        return subject.own_attention(targets_BK)
    maps = attentions(subject, [len(subject.taps) - 1])
    return last(subject, targets_BK, mean(maps[-1]))


def rollout(subject, targets_BK, settings):
    """Attention rollout (Abnar and Zuidema 2020, arXiv 2005.00928): products of (I + A), rows scaled to sum to 1, A the
    mean over heads. `Settings.rules` takes max(relevance of A, 0) in its place (as in Chefer et al.'s code)."""
    start, row_norm = settings.start_layer or 0, settings.row_norm is not False
    if not settings.rules:
        matrices = [mean(a) for a in attentions(subject, range(len(subject.taps)))]
    else:
        _, relevances = cotangents(subject, targets_BK, settings.rules)
        matrices = [mean(r, clamp=True) for r in relevances]
    return carry(subject, targets_BK, matrices, start, row_norm)


def mean(maps_NQS, clamp=False):
    """Mean over heads, of max(maps, 0) with `clamp`; at least float32."""
    maps_NQS = ops.wide(maps_NQS)
    return (jax.nn.relu(maps_NQS) if clamp else maps_NQS).mean(-3)


def rollout_matrix(matrices, row_norm: bool):
    """(I + A_L) ... (I + A_1) in full [..., Q, S], rows of the factors scaled to sum to 1 with `row_norm`."""
    product = jnp.eye(matrices[0].shape[-1], dtype=matrices[0].dtype)
    for a in matrices:
        factor = a + jnp.eye(a.shape[-1], dtype=a.dtype)
        product = (factor / factor.sum(-1, keepdims=True) if row_norm else factor) @ product
    return product


def zero_taps(subject, layers):
    """Taps at these layers, None at the others: they take the fused path."""
    return [jnp.zeros(t.shape, t.dtype) if l in layers else None for l, t in enumerate(subject.taps)]


def attentions(subject, layers):
    """Attention maps [B, N, Q, S] of these layers, None of the others."""
    return subject.forward(subject.inputs, zero_taps(subject, layers))[1]


def cotangents(subject, targets_BK, rules: str, layers=None):
    """Attention maps [B, N, Q, S] and their cotangents [K, B, N, Q, S] at `layers` (None: all), None at the others.

    Under the rules 'gradient' cotangents are gradients of a target's output; else they are relevances, the seed being 1
    at that output. One forward pass serves all targets.
    """
    taps = zero_taps(subject, range(len(subject.taps)) if layers is None else layers)
    outputs_BO, back, maps = jax.vjp(lambda t: subject.forward(subject.inputs, t, rules), taps, has_aux=True)
    seeds_KBO = subject.weights(targets_BK, outputs_BO.shape[-1]).astype(outputs_BO.dtype)
    return maps, jax.vmap(back)(seeds_KBO)[0]


def carry(subject, targets_BK, matrices, start: int, row_norm: bool):
    """Relevance of the inputs, r (I + A_L) ... (I + A_start), r one-hot at what is read: a tuple of [K, B, S].

    Args:
      matrices: one a layer, [B, Q, S] or [K, B, Q, S]; those before `start` are not looked at.
      start: negative numbers count from the end.
      row_norm: rows of (I + A) are scaled to sum to 1.
    """
    layers, border = len(matrices), subject.first_layer
    start = start + layers if start < 0 else start
    r_KBS = still_KBS = subject.readout(targets_BK)
    for l in reversed(range(max(start, border), layers)):
        r_KBS, still_KBS = _step(r_KBS, still_KBS, matrices[l], row_norm)
    if subject.last is None:
        return (jnp.where(subject.readout(targets_BK) > 0, 0, r_KBS),)
    own_KBS = r_KBS - still_KBS
    parts = list(subject.hand_over(r_KBS))
    for l in reversed(range(start, border)):
        parts[0], _ = _step(parts[0], parts[0], matrices[l], row_norm)
    return *parts, own_KBS


def last(subject, targets_BK, matrix_QS):
    """Relevance of the inputs where only the last layer, [B, Q, S] or [K, B, Q, S], is read: a tuple of [K, B, S]."""
    readout_KBQ = subject.readout(targets_BK)
    r_KBS = _times(readout_KBQ, matrix_QS)
    if subject.last is None:
        return (jnp.where(readout_KBQ > 0, 0, r_KBS),)
    return *subject.hand_over(r_KBS), r_KBS


def _step(r_KBQ, still_KBQ, matrix_QS, row_norm):
    """One layer back; `still`: what only the identities have carried."""
    if row_norm:
        total = 1 + matrix_QS.sum(-1)
        r_KBQ, still_KBQ = r_KBQ / total, still_KBQ / total
    return r_KBQ + _times(r_KBQ, matrix_QS), still_KBQ


def _times(r_KBQ, matrix_QS):
    return jnp.einsum('KBQ,KBQS->KBS' if matrix_QS.ndim == 4 else 'KBQ,BQS->KBS', r_KBQ, matrix_QS)
