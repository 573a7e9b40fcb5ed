"""LSTM and GRU against PyTorch on rows of different lengths; single steps; what padding may not do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from evil_jax.nn import lstm

INPUTS, WIDTH, ROWS, POSITIONS = 5, 7, 4, 6
LENGTHS = np.array([6, 3, 1, 4])
CLASSES = {'Lstm': lstm.Lstm, 'Gru': lstm.Gru}


def make(name, inputs=INPUTS, width=WIDTH, dtype=jnp.float32):
    net = CLASSES[name](inputs, width, dtype=dtype, rngs=nnx.Rngs(params=0))
    r = np.random.default_rng(1)
    for part in (net.input, net.recurrent):  # each of the two biases is seen
        part.bias = nnx.Param(part.bias[...] + jnp.asarray(r.normal(0, 0.3, part.bias[...].shape), jnp.float32))
    return net


def inputs():
    return np.random.default_rng(0).normal(size=(ROWS, POSITIONS, INPUTS)).astype(np.float32)


def put(net, theirs, suffix):
    import torch

    for ours, name in ((net.input, 'ih'), (net.recurrent, 'hh')):
        getattr(theirs, f'weight_{name}{suffix}').data = torch.from_numpy(np.array(ours.kernel[...]).T.copy())
        getattr(theirs, f'bias_{name}{suffix}').data = torch.from_numpy(np.array(ours.bias[...]))
    return theirs


@pytest.mark.parametrize('name', CLASSES)
def test_equals_torch(name):
    """States and their gradient <= 1e-5; ragged rows as a packed sequence."""
    net, x = make(name), inputs()
    theirs = put(net, getattr(torch.nn, name.upper())(INPUTS, WIDTH, batch_first=True), '_l0')
    x_torch = torch.from_numpy(x).requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x_torch, LENGTHS, batch_first=True, enforce_sorted=False)
    out, last = theirs(packed)
    last = (last[0] if name == 'Lstm' else last)[0]
    want, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    (last**2).sum().backward()

    @jax.jit
    def run(x):
        states, last = net(x, jnp.asarray(LENGTHS))
        return (last**2).sum(), (states, last)

    gradient, (states, got) = jax.grad(run, has_aux=True)(x)
    inside = np.arange(POSITIONS) < LENGTHS[:, None]
    np.testing.assert_allclose(np.asarray(states)[inside], want.detach().numpy()[inside], atol=1e-5)
    np.testing.assert_allclose(got, last.detach(), atol=1e-5)
    np.testing.assert_allclose(gradient, x_torch.grad, atol=1e-5)


@pytest.mark.parametrize('name', CLASSES)
def test_step_equals_torch_and_the_run(name):
    net, x = make(name), inputs()
    theirs = put(net, getattr(torch.nn, f'{name.upper()}Cell')(INPUTS, WIDTH), '')
    states, _ = net(x, jnp.full(ROWS, POSITIONS))
    ours, their = net.start(ROWS), None
    for q in range(POSITIONS):
        ours, their = net.step(x[:, q], ours), theirs(torch.from_numpy(x[:, q]), their)
        for a, b in zip(ours, their) if name == 'Lstm' else ((ours, their),):
            np.testing.assert_allclose(a, b.detach(), atol=1e-5)
        np.testing.assert_allclose(states[:, q], ours[0] if name == 'Lstm' else ours, atol=1e-6)


@pytest.mark.parametrize('name', CLASSES)
def test_padding_changes_nothing(name):
    net, x = make(name), inputs()
    states, last = net(x, jnp.asarray(LENGTHS))
    other = np.where((np.arange(POSITIONS) < LENGTHS[:, None])[..., None], x, 1e3).astype(np.float32)
    for got, want in zip(net(other, jnp.asarray(LENGTHS)), (states, last)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(states[1, 3:], np.repeat(states[1, 2:3], 3, axis=0))
    np.testing.assert_array_equal(last[1], states[1, 2])
    _, empty = net(x, jnp.zeros(ROWS, int))
    assert not np.asarray(empty).any()


@pytest.mark.parametrize('name', CLASSES)
def test_parts_of_the_input_add_up(name):
    net, x = make(name), inputs()
    np.testing.assert_allclose(net.part(x[..., :2]) + net.part(x[..., 2:], 2), net.input(x), atol=1e-6)


def test_initial_weights_keep_the_size_of_signals():
    net = lstm.Lstm(64, 32, dtype=jnp.float32, rngs=nnx.Rngs(params=0))
    for gate in np.split(np.asarray(net.recurrent.kernel[...]), 4, axis=1):
        np.testing.assert_allclose(gate.T @ gate, np.eye(32), atol=1e-5)
    assert abs(float(net.input.kernel[...].std()) * 8 - 1) < 0.05
    assert np.asarray(net.input.bias[...]).reshape(4, 32).mean(1).tolist() == [0, 1, 0, 0]


def test_bfloat16_keeps_its_state_in_float32():
    net, x = make('Lstm', dtype=jnp.bfloat16), inputs()
    states, last = net(x, jnp.asarray(LENGTHS))
    exact, _ = make('Lstm')(x, jnp.asarray(LENGTHS))
    assert states.dtype == last.dtype == jnp.bfloat16
    assert all(part.dtype == jnp.float32 for part in net.step(x[:, 0], net.start(ROWS)))
    np.testing.assert_allclose(np.asarray(states, np.float32), exact, atol=0.03)
