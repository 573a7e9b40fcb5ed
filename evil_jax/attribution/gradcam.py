"""GradCAM on the last attention layer (Selvaraju et al. 2017, as Chefer et al. 2021 use it, section 4).

The weight of a head is its mean gradient; the map is max(mean over heads of weight * attention, 0), of which the row
that is read is taken. The reference scales maps from 0 to 1, ViT's over the row, BERT's over all rows: nothing is
scaled here.

Legend: K targets, B rows, N heads, Q queries, S positions.
"""

import jax
import jax.numpy as jnp

from evil_jax.attribution import attention
from evil_jax.nn import ops


def relevance(subject, targets_BK, settings):
    """GradCAM. Gradients are averaged over all keys of the queries that are read, of a picture over its patches only,
    as in the reference. Other queries of the last layer have none, so a mean over all differs by a factor."""
    maps, gradients = attention.cotangents(subject, targets_BK, 'gradient', [len(subject.taps) - 1])
    # Padding, and what comes later in a text, gets no attention; a gradient it has.
    seen_BNQS = (maps[-1] > 0) & (jnp.arange(maps[-1].shape[-1]) >= subject.first.patches)
    number_KB = jnp.einsum('KBQ,BQ->KB', subject.readout(targets_BK), seen_BNQS[:, 0].sum(-1))
    total_KBN = jnp.where(seen_BNQS, ops.wide(gradients[-1]), 0).sum((-2, -1))
    weights_KBN11 = (total_KBN / jnp.maximum(number_KB, 1)[..., None])[..., None, None]
    map_KBQS = jax.nn.relu((weights_KBN11 * ops.wide(maps[-1])).mean(-3))
    return attention.last(subject, targets_BK, map_KBQS)


def heads(gradient_NQS, attention_NQS):
    """The map [..., Q, S] of arrays [..., N, Q, S]; weights are means over all of a head's gradients."""
    return jax.nn.relu((gradient_NQS.mean((-2, -1), keepdims=True) * attention_NQS).mean(-3))
