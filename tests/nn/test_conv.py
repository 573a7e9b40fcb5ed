"""Convolutional leaves against PyTorch."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from evil_jax.nn import conv, ops


def image(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def turned(torch, x_BHWD):
    return torch.from_numpy(np.ascontiguousarray(x_BHWD.transpose(0, 3, 1, 2)))


@pytest.mark.parametrize(('size', 'stride', 'side'), [(1, 2, 6), (3, 1, 5), (3, 2, 7), (7, 2, 12)])
def test_convolution_is_pytorchs(size, stride, side):
    ours = conv.Conv(3, 4, size, stride=stride, dtype=jnp.float32, rngs=nnx.Rngs(0))
    x = image(2, side, side + 3, 3)
    weight = torch.from_numpy(np.array(ours.kernel[...]).transpose(3, 2, 0, 1).copy())
    theirs = torch.nn.functional.conv2d(turned(torch, x), weight, stride=stride, padding=size // 2)
    np.testing.assert_allclose(ours(x), theirs.numpy().transpose(0, 2, 3, 1), atol=1e-5)


@pytest.mark.parametrize('side', [6, 7])
def test_pooling_is_pytorchs_and_padding_never_wins(side):
    x = image(2, side, side + 3, 4) - 5
    theirs = torch.nn.functional.max_pool2d(turned(torch, x), 3, 2, 1)
    np.testing.assert_array_equal(ops.FORWARD.max_pool(x, 3, 2, 1), theirs.numpy().transpose(0, 2, 3, 1))


def test_frozen_norm_is_pytorchs_also_where_nothing_varies():
    rng, x = np.random.default_rng(1), image(2, 3, 4, 5)
    vectors = {name: rng.uniform(0.5, 1.5, 5).astype(np.float32) for name in ('scale', 'bias', 'mean', 'var')}
    vectors['var'][:2] = 0, 1e-5  # where eps is what counts
    ours = conv.FrozenNorm(5)
    for name, vector in vectors.items():
        getattr(ours, name)[...] = jnp.asarray(vector)
    scale, bias, mean, var = map(torch.from_numpy, vectors.values())
    theirs = torch.nn.functional.batch_norm(turned(torch, x), mean, var, scale, bias, eps=1e-5)
    np.testing.assert_allclose(ours(x), theirs.numpy().transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)
