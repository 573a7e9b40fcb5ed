"""Weight norm, gated layers and attention against PyTorch; padding of regions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from evil_jax.nn import ops, topdown

F, D, H, R = 6, 5, 8, 4
LENGTHS = np.array([4, 2, 0])


def rngs():
    return nnx.Rngs(params=0)


def data(seed=0):
    r = np.random.default_rng(seed)
    return r.normal(size=(3, R, F)).astype(np.float32), r.normal(size=(3, D)).astype(np.float32)


def linear(module):
    """PyTorch's weight-normalised layer (dim=None: one norm of the whole matrix) with our parameters."""
    inputs, outputs = module.kernel[...].shape
    theirs = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(inputs, outputs), dim=None)
    tensor = lambda p: torch.from_numpy(np.array(p[...], np.float32))
    theirs.parametrizations.weight.original0.data = tensor(module.scale)
    theirs.parametrizations.weight.original1.data = tensor(module.kernel).T.contiguous()
    theirs.bias.data = tensor(module.bias)
    return theirs


def shifted(module):
    """Scale and bias away from where they begin, so that a test sees them."""
    module.scale = nnx.Param(module.scale[...] * 1.7)
    module.bias = nnx.Param(module.bias[...] + jnp.linspace(-0.5, 0.5, len(module.bias[...])))
    return module


def test_weight_norm_equals_torch_and_begins_as_a_linear_map():
    ours, (x, _) = topdown.Linear(F, D, dtype=jnp.float32, rngs=rngs()), data()
    np.testing.assert_allclose(ours.weight(), ours.kernel[...], rtol=1e-6)
    theirs = linear(shifted(ours))
    want = theirs(torch.from_numpy(x))
    np.testing.assert_allclose(ours(x), want.detach(), atol=1e-6)
    (want**2).sum().backward()
    graph, params = nnx.split(ours, nnx.Param)
    gradient = jax.grad(lambda p: (nnx.merge(graph, p)(x) ** 2).sum())(params)
    slots = theirs.parametrizations.weight
    for got, want in (('scale', slots.original0.grad), ('kernel', slots.original1.grad.T), ('bias', theirs.bias.grad)):
        np.testing.assert_allclose(gradient[got][...], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('gate', ['tanh', 'relu'])
def test_layer_equals_torch(gate):
    layer, (x, y) = topdown.Layer(F + D, H, gate, dtype=jnp.float32, rngs=rngs()), data()
    both = np.concatenate([x, np.repeat(y[:, None], R, axis=1)], axis=-1)
    up = linear(shifted(layer.up))(torch.from_numpy(both))
    want = torch.relu(up)
    if gate == 'tanh':
        want = torch.tanh(up) * torch.sigmoid(linear(shifted(layer.open))(torch.from_numpy(both)))
    np.testing.assert_allclose(layer(both), want.detach(), atol=1e-6)
    np.testing.assert_allclose(layer.pair(x, y), want.detach(), atol=1e-6)


@pytest.mark.parametrize('gate', ['tanh', 'relu'])
def test_attention_equals_torch(gate):
    net, (x, q) = topdown.Attention(F, D, H, gate, dtype=jnp.float32, rngs=rngs()), data()
    tensor, act = torch.from_numpy, lambda layer, x: torch.relu(linear(layer.up)(x))
    if gate == 'tanh':
        both = torch.cat([tensor(x), tensor(q)[:, None].expand(-1, R, -1)], dim=-1)
        joint = torch.tanh(linear(net.both.up)(both)) * torch.sigmoid(linear(net.both.open)(both))
    else:
        joint = act(net.region, tensor(x)) * act(net.question, tensor(q))[:, None]
    scores = linear(net.score)(joint)[..., 0].detach().numpy()
    got = np.asarray(net(x, jnp.asarray(LENGTHS), q))
    for b, n in enumerate(LENGTHS):
        np.testing.assert_allclose(got[b, :n], torch.softmax(tensor(scores[b, :n]), dim=0), atol=1e-6)
        assert not got[b, n:].any()


@pytest.mark.parametrize('gate', ['tanh', 'relu'])
def test_regions_beyond_the_length_change_nothing(gate):
    net, (x, q) = topdown.Attention(F, D, H, gate, dtype=jnp.float32, rngs=rngs()), data()
    inside = (np.arange(R) < LENGTHS[:, None])[..., None]
    other = np.where(inside, x, 50).astype(np.float32)
    length = jnp.asarray(LENGTHS)
    np.testing.assert_array_equal(net(x, length, q), net(other, length, q))
    np.testing.assert_array_equal(topdown.mean(jnp.asarray(x), length), topdown.mean(jnp.asarray(other), length))
    np.testing.assert_allclose(topdown.mean(jnp.asarray(x), length)[1], x[1, :2].mean(0), rtol=1e-6)
    assert not np.asarray(topdown.mean(jnp.asarray(x), length)[2]).any()


def test_dropout_needs_a_key():
    net, (x, q) = topdown.Attention(F, D, H, 'relu', dropout=0.5, dtype=jnp.float32, rngs=rngs()), data()
    length = jnp.asarray(LENGTHS)
    quiet = topdown.Attention(F, D, H, 'relu', dtype=jnp.float32, rngs=rngs())
    np.testing.assert_array_equal(net(x, length, q), quiet(x, length, q))
    assert np.abs(net(x, length, q, key=jax.random.key(0)) - quiet(x, length, q)).max() > 1e-3


def test_every_operation_goes_through_the_table():
    used = []
    spied = {name: (lambda *a, f=f, name=name: used.append(name) or f(*a)) for name, f in vars(ops.FORWARD).items()}
    table = type(ops.FORWARD)(**spied)
    x, _ = data()
    topdown.weights(table, jnp.asarray(x[..., 0]), jnp.asarray(LENGTHS))
    assert used == ['softmax']
