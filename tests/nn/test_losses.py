"""Losses: numbers by hand, gradients against differences, a mask equals leaving the positions out."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from evil_jax.nn import losses


def test_soft_target_bce_by_hand():
    logits, targets = jnp.array([[0.0, math.log(3.0)], [100.0, -100.0]]), jnp.array([[0.3, 0.9], [1.0, 0.0]])
    by_hand = math.log(2) - 0.9 * math.log(0.75) - 0.1 * math.log(0.25)
    np.testing.assert_allclose(losses.soft_target_bce(logits, targets), [by_hand, 0.0], rtol=1e-6, atol=1e-6)
    # The mean over B x A times A, as e-UG writes it.
    mean = -(targets * jax.nn.log_sigmoid(logits) + (1 - targets) * jax.nn.log_sigmoid(-logits)).mean() * 2
    np.testing.assert_allclose(losses.soft_target_bce(logits, targets).mean(), mean, rtol=1e-6)


def test_softmax_cross_entropy_by_hand():
    logits = jnp.log(jnp.array([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0], [1.0, 1.0, 1.0]]))
    got = losses.softmax_cross_entropy(logits, jnp.array([2, 0, -1]))
    np.testing.assert_allclose(got, [math.log(8 / 5), math.log(4), 0.0], rtol=1e-6)


def test_token_cross_entropy_by_hand():
    # Two rows of three tokens over a vocabulary of two; the last position's logits never count.
    logits = jnp.log(jnp.array([[[1.0, 3.0], [1.0, 1.0], [9.0, 1.0]], [[1.0, 4.0], [7.0, 1.0], [9.0, 1.0]]]))
    tokens = jnp.array([[0, 1, 0], [1, 0, 0]])
    total, count = losses.token_cross_entropy(logits, tokens, jnp.array([3, 2]))
    np.testing.assert_allclose(total, math.log(4 / 3) + math.log(2) + math.log(5), rtol=1e-6)
    assert count == 3
    total, count = losses.token_cross_entropy(logits, tokens, jnp.array([0, 0]))
    assert (total, count) == (0, 0)


@pytest.fixture
def case():
    key = jax.random.key(0)
    logits = jax.random.normal(key, (3, 6, 5))
    tokens = jax.random.randint(jax.random.key(1), (3, 6), 0, 5)
    return logits, tokens


def test_masked_equals_sliced(case):
    logits, tokens = case
    lengths = [6, 3, 0]
    total, count = losses.token_cross_entropy(logits, tokens, jnp.array(lengths))
    parts = [
        losses.token_cross_entropy(logits[b : b + 1, :n], tokens[b : b + 1, :n], jnp.array([n]))
        for b, n in enumerate(lengths)
        if n
    ]
    np.testing.assert_allclose(total, sum(p[0] for p in parts), rtol=1e-6)
    assert count == sum(p[1] for p in parts) == 5 + 2
    grads = jax.grad(lambda x: losses.token_cross_entropy(x, tokens, jnp.array(lengths))[0])(logits)
    assert not grads[0, 5].any() and not grads[1, 2:].any() and not grads[2].any() and grads[1, 1].any()


def test_gradients(case):
    logits, tokens = case
    targets = jax.nn.sigmoid(jax.random.normal(jax.random.key(2), (3, 5)))
    check_grads(lambda x: losses.soft_target_bce(x, targets), (logits[:, 0],), order=1, modes=['rev'], eps=1e-2)
    labels = jnp.array([1, 4, -1])
    check_grads(lambda x: losses.softmax_cross_entropy(x, labels), (logits[:, 0],), order=1, modes=['rev'], eps=1e-2)
    lengths = jnp.array([6, 3, 0])
    check_grads(
        lambda x: losses.token_cross_entropy(x, tokens, lengths)[0], (logits,), order=1, modes=['rev'], eps=1e-2
    )


def test_half_precision_logits_are_summed_in_float32(case):
    logits, tokens = case
    lengths, half = jnp.array([6, 3, 0]), logits.astype(jnp.bfloat16)
    total, _ = losses.token_cross_entropy(half, tokens, lengths)
    assert total.dtype == jnp.float32
    wanted, _ = losses.token_cross_entropy(half.astype(jnp.float32), tokens, lengths)
    assert total == wanted
    assert losses.softmax_cross_entropy(half[:, 0], tokens[:, 0]).dtype == jnp.float32
    assert losses.soft_target_bce(half[:, 0], logits[:, 0]).dtype == jnp.float32
