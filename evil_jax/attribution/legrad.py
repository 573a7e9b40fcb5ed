"""LeGrad (Bousselham et al. 2024, arXiv 2404.03214): each layer is asked what its own output would have answered.

s_l is the target's output computed from layer l's vectors, as if it were the last layer. A layer's relevance are the
gradients of s_l with respect to its attention: max(., 0), mean over heads, sum over queries; the layers' relevances are
added. (The paper takes the mean over queries. Here one position is read, all others have no gradient, and a mean would
depend on padding.) Each backward pass goes through one block. Of an explanation M_E's layers are asked.

Legend: K targets, B rows, N heads, Q queries, S positions.
"""

import jax.numpy as jnp

from evil_jax.attribution import attention, gradients


def relevance(subject, targets_BK, settings):
    """LeGrad of the layers from `Settings.start_layer` on: a tuple of [K, B, S]."""
    start, layers = settings.start_layer or 0, len(subject.taps)
    start = start + layers if start < 0 else start
    x, blocks, finish = subject.last_layers()
    total_KBS = 0.0
    for l, block in enumerate(blocks, subject.first_layer):
        if l >= start:
            tap = jnp.zeros(subject.taps[l].shape, subject.taps[l].dtype)
            _, map_BNQS = block(x, tap)
            score = lambda tap, x=x, block=block: finish(block(x, tap)[0])
            _, gradients_KBNQS = gradients.of(score, subject, targets_BK, tap)
            # Padding, and what comes later in a text, gets no attention; a gradient it has.
            seen_KBNQS = jnp.where(map_BNQS > 0, gradients_KBNQS, 0)
            total_KBS += attention.mean(seen_KBNQS, clamp=True).sum(-2)
        x = block(x, None)[0]
    if subject.last is None:
        return (jnp.where(subject.readout(targets_BK) > 0, 0, total_KBS),)
    return *subject.hand_over(total_KBS), total_KBS
