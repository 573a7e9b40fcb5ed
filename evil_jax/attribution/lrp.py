"""Layer-wise relevance propagation (Bach et al. 2015) under the rules of Chefer et al. (CVPR 2021, arXiv 2012.09838).

The rule set says how relevance passes back through each operation (nn/ops.py). The seed is 1 at the target's output,
not the output itself. Both methods are baselines there and have the plain rules, 'lrp', unless told otherwise.

Legend: K targets, B rows, S positions, D width, H, W rows and columns of pixels, P patches.
"""

import jax.numpy as jnp

from evil_jax.attribution import attention, gradients
from evil_jax.nn import ops

RULES = 'lrp'


def partial_lrp(subject, targets_BK, settings):
    """Relevance of the last layer's attention: max(., 0), mean over heads, the row that is read (Voita et al. 2019)."""
    layer = len(subject.taps) - 1
    _, relevances = attention.cotangents(subject, targets_BK, settings.rules or RULES, [layer])
    return attention.last(subject, targets_BK, attention.mean(relevances[-1], clamp=True))


def full_lrp(subject, targets_BK, settings):
    """Relevance of the inputs, summed over their width: what a text model's first layer reads (behind the embedding and
    its norm), or the pixels of a picture, summed over each patch. The entry of a class token that an answer is read
    from is 0; of a picture what its position embeddings and class token get is lost, as in the reference."""
    if subject.picture is not None:
        values_KBHW = pixels(subject, targets_BK, settings)
        cells = round((subject.inputs[0].shape[1] - 1) ** 0.5)
        side = values_KBHW.shape[-1] // cells
        grid = values_KBHW.reshape(*values_KBHW.shape[:2], cells, side, cells, side).sum((3, 5))
        return (jnp.pad(grid.reshape(*grid.shape[:2], -1), ((0, 0), (0, 0), (1, 0))),)
    parts = relevances(subject, targets_BK, settings.rules or RULES)
    if subject.last is not None:
        return parts
    return tuple(jnp.where(subject.readout(targets_BK) > 0, 0, part) for part in parts)


def pixels(subject, targets_BK, settings):
    """Full LRP of a picture's pixels, summed over its channels: [K, B, H, W].

    Raises:
      ValueError: a model that reads no pictures.
    """
    if subject.picture is None:
        raise ValueError('full LRP of pixels needs a model that reads pictures (vit)')
    rules = settings.rules or RULES
    images_BHW3, embed = subject.picture
    run = lambda images: subject.forward((embed(images, rules),), rules=rules)[0]
    return gradients.of(run, subject, targets_BK, images_BHW3)[1].sum(-1)


def relevances(subject, targets_BK, rules):
    """Cotangents at the inputs under a rule set of LRP, summed over width: a tuple of [K, B, S]."""
    return tuple(ops.wide(part).sum(-1) for part in gradients.at(subject, targets_BK, subject.inputs, rules))
