"""The operations: values against PyTorch or by hand, gradients against autodiff of the plain formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from evil_jax.nn import attention, embed, ops


@pytest.mark.parametrize(('inputs', 'outputs'), [(6, 3), (3, 6), (4, 4)])
def test_linear_and_its_gradient(inputs, outputs):
    r = np.random.default_rng(0)
    x, w, b = (jnp.asarray(r.normal(size=s), jnp.float32) for s in ((2, 5, inputs), (inputs, outputs), (outputs,)))
    ours = lambda *a: jnp.sin(ops.linear(*a)).sum()
    plain = lambda x, w, b: jnp.sin(x @ w + b).sum()
    assert np.allclose(ours(x, w, b), plain(x, w, b))
    for got, want in zip(jax.grad(ours, (0, 1, 2))(x, w, b), jax.grad(plain, (0, 1, 2))(x, w, b)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_norm_equals_torch():
    r = np.random.default_rng(0)
    x, scale, bias = (r.normal(size=s).astype(np.float32) for s in ((2, 3, 8), 8, 8))
    want = torch.nn.functional.layer_norm(
        *map(torch.from_numpy, (x,)), (8,), *map(torch.from_numpy, (scale, bias)), 1e-5
    )
    np.testing.assert_allclose(ops.norm(x, scale, bias, 1e-5), want, atol=1e-6)


def test_signed_root_and_unit_are_finite_at_zero():
    x = np.array([[4.0, -9.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
    np.testing.assert_allclose(ops.signed_root(x), [[2, -3, 0], [0, 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(ops.unit(x)[0], x[0] / 97**0.5, rtol=1e-6)
    assert not np.asarray(ops.unit(x)[1]).any()
    for op in (ops.signed_root, ops.unit):
        gradient = np.asarray(jax.grad(lambda x, op=op: op(x)[:, :2].sum())(jnp.asarray(x)))
        assert np.isfinite(gradient).all()
    # d sqrt(|x|) = 1 / (2 sqrt(|x|)) on either side
    gradient = jax.grad(lambda x: ops.signed_root(x).sum())(jnp.asarray([4.0, -9.0]))
    np.testing.assert_allclose(gradient, [1 / 4, 1 / 6], rtol=1e-6)


def test_dropout_keeps_the_mean_and_needs_a_key():
    x = jnp.ones((200, 200))
    dropped = ops.dropout(x, 0.25, jax.random.key(0))
    assert ops.dropout(x, 0.25, None) is x
    assert abs(float((dropped == 0).mean()) - 0.25) < 0.01
    assert abs(float(dropped.mean()) - 1) < 0.02


def test_rule_sets_are_static_and_reach_every_module(monkeypatch):
    """`set_attributes(rules=...)` swaps the table of a whole model, and jit keeps the two apart."""
    monkeypatch.setitem(
        ops.OPS, 'doubled', type(ops.FORWARD)(**{**vars(ops.FORWARD), 'linear': lambda x, w, b: 2 * (x @ w)})
    )

    class Two(ops.Op):
        def __init__(self):
            make = lambda: ops.Linear(3, 3, std=1.0, dtype=jnp.float32, rngs=nnx.Rngs(params=0))
            self.layers, self.rules = nnx.List([make(), make()]), 'gradient'

        def __call__(self, x):
            return self.layers[1](self.layers[0](x))

    model, x = Two(), jnp.ones((1, 3))
    results = []
    for rules in ('gradient', 'doubled'):
        for module in (model, *model.layers):
            module.rules = rules
        graph, params = nnx.split(model)
        results.append(jax.jit(lambda p, graph=graph: nnx.merge(graph, p)(x))(params))
    np.testing.assert_allclose(results[1], 4 * results[0], rtol=1e-6)


@pytest.mark.parametrize('causal', [False, True])
def test_fused_attention_equals_the_materialised_one(causal):
    r = np.random.default_rng(0)
    q, k, v = (jnp.asarray(r.normal(size=(2, 5, 3, 4)), jnp.float32) for _ in range(3))
    length = jnp.array([5, 2])
    fused, none = attention.attend(ops.FORWARD, q, k, v, length_B=length, causal=causal)
    tap = jnp.zeros((2, 3, 5, 5))
    plain, maps = attention.attend(ops.FORWARD, q, k, v, length_B=length, causal=causal, tap_BNQK=tap)
    assert none is None
    np.testing.assert_allclose(fused, plain, atol=1e-6)
    assert not np.asarray(maps[1, :, :, 2:]).any()
    # The tap's cotangent is the gradient of the probabilities: d sum(out) / d A[q, k] = sum over H of v[k].
    total = lambda t: attention.attend(ops.FORWARD, q, k, v, length_B=length, causal=causal, tap_BNQK=t)[0].sum()
    gradient = jax.grad(total)(tap)
    np.testing.assert_allclose(
        gradient, jnp.broadcast_to(v.sum(-1).transpose(0, 2, 1)[:, :, None], tap.shape), rtol=1e-5
    )


def test_layout_compacts_pieces():
    lengths = [1, jnp.array([2, 0]), jnp.array([1, 3])]
    index, valid, starts = embed.layout(lengths, [1, 2, 3], 6)
    pieces = np.array([['a', 'b', 'c', 'x', 'y', 'z']] * 2)
    rows = [''.join(p[i][ok]) for p, i, ok in zip(pieces, np.asarray(index), np.asarray(valid))]
    assert rows == ['abcx', 'axyz']
    assert [s.tolist() for s in starts] == [[0, 0], [1, 1], [3, 1], [4, 4]]
