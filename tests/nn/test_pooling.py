"""Compact bilinear pooling against the sketch of the outer product itself, and against PyTorch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from evil_jax.nn import ops, pooling


def make(first, second, outputs, seed=0):
    return pooling.CompactBilinear(first, second, outputs, rngs=nnx.Rngs(params=seed))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def constants(model):
    return [np.asarray(x[...], np.int64) for part in (model.first, model.second) for x in (part.hash, part.sign)]


@pytest.mark.parametrize('outputs', [16, 17, 100])
def test_it_is_the_count_sketch_of_the_outer_product(outputs):
    """With hash h(i) + h'(j) mod D and sign s(i) s'(j), element by element; hashes meet, and outputs stay empty."""
    model, x, y = make(9, 7, outputs), numbers(3, 9), numbers(3, 7, seed=1)
    h, s, h2, s2 = constants(model)
    wanted = np.zeros((3, outputs))
    for i in range(9):
        for j in range(7):
            wanted[:, (h[i] + h2[j]) % outputs] += s[i] * s2[j] * x[:, i].astype(float) * y[:, j]
    np.testing.assert_allclose(jax.jit(model)(x, y), wanted, atol=1e-5)


def test_a_sketch_is_a_signed_sum_over_equal_hashes():
    sketch = pooling.Sketch(300, 40, rngs=nnx.Rngs(params=0))
    h, s = np.asarray(sketch.hash[...]), np.asarray(sketch.sign[...])
    assert h.dtype == np.int32 and s.dtype == np.int8
    assert set(h.tolist()) == set(range(40)) and set(s.tolist()) == {-1, 1} and abs(s.astype(int).sum()) < 60
    x = numbers(2, 3, 300)
    wanted = np.zeros((2, 3, 40))
    np.add.at(wanted, (..., h), x * s)
    assert sketch(jnp.asarray(x, jnp.bfloat16)).dtype == jnp.float32
    np.testing.assert_allclose(sketch(x), wanted, atol=1e-5)


def test_sketches_differ_and_depend_on_the_seed():
    first, same, other = (constants(make(50, 50, 1000, seed)) for seed in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(first, same))
    assert all((a != b).any() for a, b in zip(first, other))
    assert (first[0] != first[2]).any() and (first[1] != first[3]).any()


def test_it_estimates_the_inner_product_of_outer_products():
    """Mean over many sketches of <f(x, y), f(x', y')> is <x, x'> <y, y'> (Pham and Pagh 2013, lemma 4)."""
    x, y, drawn = numbers(2, 6), numbers(2, 6, seed=1), np.random.default_rng(0)
    hashes = drawn.integers(0, 64, (2, 400, 6)).astype(np.int32)
    signs = drawn.choice(np.int8([-1, 1]), (2, 400, 6))

    def estimate(h, s, h2, s2):
        fused = ops.convolve(ops.sketch(x, h, s, 64), ops.sketch(y, h2, s2, 64))
        return fused[0] @ fused[1]

    found = np.asarray(jax.jit(jax.vmap(estimate))(hashes[0], signs[0], hashes[1], signs[1]))
    wanted = (x[0] @ x[1]) * (y[0] @ y[1])
    assert found.std() > 0.1 and abs(found.mean() - wanted) < 4 * found.std() / 400**0.5


def test_equals_torch_and_so_does_the_gradient():
    model, x, y = make(30, 20, 64), numbers(2, 5, 30), numbers(2, 1, 20, seed=1)
    weight = numbers(64, seed=2)
    ours = lambda x, y: (jnp.sin(model(x, y)) * weight).sum()
    got = model(x, y)
    gradients = jax.jit(jax.grad(ours, (0, 1)))(x, y)
    a, b = (torch.from_numpy(v).requires_grad_() for v in (x, y))

    def sketch(v, h, s):
        out = torch.zeros(*v.shape[:-1], 64)
        return out.index_add(-1, torch.from_numpy(h), v * torch.from_numpy(s))

    h, s, h2, s2 = constants(model)
    product = torch.fft.rfft(sketch(a, h, s)) * torch.fft.rfft(sketch(b, h2, s2))
    wanted = torch.fft.irfft(product, n=64)
    np.testing.assert_allclose(got, wanted.detach(), atol=1e-5)
    (torch.sin(wanted) * torch.from_numpy(weight)).sum().backward()
    for ours, theirs in zip(gradients, (a.grad, b.grad)):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_a_question_is_sketched_once_for_all_cells(monkeypatch):
    """Cells 2,1,5 and questions 2,3,1: each side is sketched and transformed before the two meet."""
    seen = []
    table = type(ops.FORWARD)(**vars(ops.FORWARD))
    table.sketch = lambda x, *rest: seen.append(x.shape) or ops.sketch(x, *rest)
    monkeypatch.setitem(ops.OPS, 'gradient', table)
    model, x, y = make(30, 20, 64), numbers(2, 1, 5, 30), numbers(2, 3, 1, 20, seed=1)
    both = model(x, y)
    assert seen == [x.shape, y.shape] and both.shape == (2, 3, 5, 64)
    text = str(jax.make_jaxpr(model)(x, y))
    assert 'c64[2,1,5,33]' in text and 'c64[2,3,1,33]' in text
    np.testing.assert_allclose(both[1, 2, 4], model(x[1, 0, 4], y[1, 2, 0]), atol=1e-5)
