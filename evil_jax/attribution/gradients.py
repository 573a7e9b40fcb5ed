"""Gradients with respect to what the first layer reads: of each position a vector, whose elements are summed.

Inputs are vectors behind the embedding (of words, regions, patches; for an explanation also those of M_E's own rows),
or features of regions and vectors of words (PJ-X, FME). Class tokens and markers have relevance as well, so that it
adds up where a method says so.

Legend: K targets, B rows, S positions, D width, O outputs.
"""

import jax
import jax.numpy as jnp
import numpy as np

from evil_jax.nn import ops


def of(run, subject, targets_BK, inputs):
    """(outputs_BO of `run(inputs)`, gradients of each target with respect to `inputs`, K before their axes). One
    forward pass serves all targets."""
    outputs_BO, back = jax.vjp(run, inputs)
    seeds_KBO = subject.weights(targets_BK, outputs_BO.shape[-1]).astype(outputs_BO.dtype)
    return outputs_BO, jax.vmap(back)(seeds_KBO)[0]


def at(subject, targets_BK, inputs, rules='gradient'):
    """Gradients, or what a rule set has in their place, at some inputs of a subject: a tuple of [K, B, S, D]."""
    return of(lambda x: subject.forward(x, rules=rules)[0], subject, targets_BK, inputs)[1]


def times(inputs, gradients):
    """Sum over width of inputs * gradients: a tuple of [K, B, S]."""
    return tuple((ops.wide(x) * ops.wide(g)).sum(-1) for x, g in zip(inputs, gradients))


def input_x_gradient(subject, targets_BK, settings):
    """Input times gradient (Shrikumar et al. 2017). Of a vector that is seen through a norm only (the first layers of
    GPT-2 and ViT) it is about 0, whatever depends on it: the norm does not see its length. AttnLRP is the remedy."""
    return times(subject.inputs, at(subject, targets_BK, subject.inputs))


def integrated_gradients(subject, targets_BK, settings):
    """Integrated gradients (Sundararajan et al. 2017, eq. 1) on the straight way from what is read of nothing, at
    `Settings.steps` points of Gauss-Legendre's rule, `Settings.chunk` of them at once. They add up to the output's
    change on the way; `completeness_gap` says how nearly.

    Of nothing: a black picture; words without their vectors and regions without features, at their positions and
    places; for PJ-X and FME zero vectors."""
    points, weights = np.polynomial.legendre.leggauss(settings.steps)
    way = tuple(x - x0 for x, x0 in zip(subject.inputs, subject.baselines))

    def part(point_and_weight):
        point, weight = point_and_weight
        inputs = tuple(x0 + (point * w).astype(w.dtype) for x0, w in zip(subject.baselines, way))
        return tuple(weight * r for r in times(way, at(subject, targets_BK, inputs)))

    wide = ops.wide_type(way[0])
    steps = (jnp.asarray((points + 1) / 2, wide), jnp.asarray(weights / 2, wide))
    return tuple(r.sum(0) for r in jax.lax.map(part, steps, batch_size=min(settings.chunk, settings.steps)))


def completeness_gap(subject, targets_BK, values_BKS):
    """|sum of relevance - (output of the input - output of the baseline)| of each target, [B, K]: how far integrated
    gradients are from what they promise. More `Settings.steps` make it smaller."""
    ends = [subject.forward(x)[0] for x in (subject.inputs, subject.baselines)]
    weights_KBO = subject.weights(targets_BK, ends[0].shape[-1])
    change_BK = jnp.einsum('KBO,BO->BK', weights_KBO, ops.wide(ends[0]) - ops.wide(ends[1]))
    return jnp.abs(values_BKS.sum(-1) - change_BK)


def smoothgrad(subject, targets_BK, settings):
    """SmoothGrad (Smilkov et al. 2017): the mean over noisy inputs of the squared gradient, as in the authors' code. It
    does not say for or against. The noise has standard deviation `Settings.noise` * (largest - smallest element) of an
    example's input, and is the same for each example, alone or in a batch."""
    valid = subject.valid
    scales = tuple(settings.noise * _span(x, v)[:, None, None] for x, v in zip(subject.inputs, valid))
    key = jax.random.key(settings.seed)

    def sample(number):
        noisy = []
        for place, (x, scale) in enumerate(zip(subject.inputs, scales)):
            noise_SD = _noise(jax.random.fold_in(jax.random.fold_in(key, number), place), *x.shape[1:])
            noisy.append((ops.wide(x) + scale * noise_SD).astype(x.dtype))
        return tuple((ops.wide(g) ** 2).sum(-1) for g in at(subject, targets_BK, tuple(noisy)))

    samples = jax.lax.map(sample, jnp.arange(settings.samples), batch_size=min(settings.chunk, settings.samples))
    return tuple(r.mean(0) for r in samples)


def _span(x_BSD, valid_BS):
    """Largest minus smallest element of each row, padding aside."""
    x_BSD, valid_BS1 = ops.wide(x_BSD), valid_BS[..., None]
    top_B = jnp.where(valid_BS1, x_BSD, -jnp.inf).max((1, 2))
    low_B = jnp.where(valid_BS1, x_BSD, jnp.inf).min((1, 2))
    return jnp.where(valid_BS.any(1), top_B - low_B, 0)


def _noise(key, positions: int, width: int):
    """Normal noise whose first positions do not depend on how many there are."""
    keys_S = jax.vmap(lambda s: jax.random.fold_in(key, s))(jnp.arange(positions))
    return jax.vmap(lambda k: jax.random.normal(k, width))(keys_S)
