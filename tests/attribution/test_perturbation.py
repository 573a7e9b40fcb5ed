"""Perturbation of models whose right curves are known exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax.attribution import perturbation
from evil_jax.attribution.perturbation import PRESETS, Steps

WEIGHTS = np.array([[8, 4, 2, 1, 0, -16], [1, 8, 0, 2, 4, -16]], np.float32)  # of two examples with five items
VALID = np.array([[True] * 5 + [False], [True] * 5 + [False]])


rank = jax.jit(perturbation.rank)
curves = jax.jit(perturbation.curves, static_argnums=(0, 2))
singles = jax.jit(perturbation.singles, static_argnums=0, static_argnames=('most', 'chunk'))
measure = jax.jit(perturbation.measure, static_argnums=3)


def linear(keep_BN):
    """Class 1 has the sum of the weights of what is kept, class 0 always has 7.5."""
    total = (keep_BN * WEIGHTS).sum(1)
    return jnp.stack([jnp.full_like(total, 7.5), total + 16], axis=1)


def test_ranks_go_from_the_largest_and_ties_by_index():
    values = jnp.array([[0.0, 3, 3, -1, np.nan, 9, -0.0]])
    valid = jnp.array([[True, True, True, True, True, False, True]])
    assert rank(values, valid).tolist() == [[2, 0, 1, 4, 5, 6, 3]]
    assert rank(-values, valid).tolist() == [[1, 3, 4, 0, 5, 6, 2]]
    assert rank(jnp.zeros((2, 4), jnp.bfloat16)).tolist() == [[0, 1, 2, 3]] * 2
    many = np.random.default_rng(0).integers(0, 50, (3, 400)).astype(np.float32)
    wanted = np.argsort(np.argsort(-many, axis=1, kind='stable'), axis=1)
    np.testing.assert_array_equal(rank(jnp.asarray(many)), wanted)


def test_numbers_of_items_are_those_of_the_published_code():
    assert PRESETS['chefer2020'].removed(50176).tolist() == [int(50176 * p / 10) for p in range(1, 10)]
    n = np.arange(101)
    for name in ('chefer2021', 'chefer2021_boxes'):
        steps = PRESETS[name]
        for p, found in zip(steps.fractions, steps.removed(n)):
            assert found.tolist() == [i - int((1 - p) * i) for i in range(101)]
    assert PRESETS['chefer2021'].removed(10)[5] == 10  # of 10 items int((1 - .9) 10) = 0 are kept
    for p, found in zip(PRESETS['auctp'].fractions, PRESETS['auctp'].removed(n)):
        assert found.tolist() == [round(p * i) for i in range(101)]
    assert PRESETS['eraser'].removed(50).tolist() == [1, 2, 5, 10, 25]
    assert PRESETS['eraser'].removed(0).tolist() == [0] * 5


def test_the_curves_of_a_linear_model_are_known():
    steps = Steps((0.2, 0.4, 0.6, 0.8))
    clean, logits = curves(linear, jnp.asarray(WEIGHTS), steps, jnp.asarray(VALID))
    np.testing.assert_allclose(clean[:, 1], [15, 15])
    np.testing.assert_allclose(logits[..., 0], 7.5)
    assert logits[0, :, :, 1].tolist() == [[7, 7], [3, 3], [1, 1], [0, 0]]
    assert logits[1, :, :, 1].tolist() == [[15, 15], [14, 14], [12, 12], [8, 8]]
    score = np.asarray(measure(clean, logits, np.array([1, 0]))['score'])
    assert score[0].tolist() == [[1, 0, 0, 0, 0], [1, 1, 1, 1, 1]]
    assert score[1].tolist() == [[0, 1, 1, 1, 1], [0, 0, 0, 0, 0]]
    upside_down = curves(linear, -jnp.asarray(WEIGHTS), steps, jnp.asarray(VALID))[1]
    np.testing.assert_array_equal(upside_down, logits[::-1])


def test_what_erasure_removes_is_what_it_keeps():
    values = jnp.array([[1.0, 1, 1, 1, 0, 5], [2, 1, 0, 2, 1, 5]])  # ties
    steps = Steps((0.2, 0.4, 1), 'some', second='kept')
    found = curves(lambda keep: keep.astype(jnp.float32), values, steps, jnp.asarray(VALID))[1]
    removed, kept = np.asarray(found, bool)
    np.testing.assert_array_equal(removed[..., :5], ~kept[..., :5])
    assert found[..., 5].all()
    assert kept.sum(-1).tolist() == [[2, 2], [3, 3], [6, 6]]
    assert kept[1, :, :5].tolist() == [[True, True, False, False, False], [True, False, False, True, False]]


def test_each_example_has_its_own_number_of_items_and_a_batch_is_its_examples():
    r = np.random.default_rng(0)
    values, weights = r.normal(size=(2, 5, 12)).astype(np.float32)
    valid = np.arange(12) < np.array([12, 7, 1, 0, 3])[:, None]
    predict = lambda w: lambda keep: jnp.stack([(keep * w).sum(1), jnp.tanh(keep * w).sum(1)], axis=1)
    run = jax.jit(lambda w, v, m: perturbation.curves(predict(w), v, PRESETS['auctp'], m))
    whole = run(weights, values, valid)
    for b in range(5):
        one = run(weights[b : b + 1], values[b : b + 1], valid[b : b + 1])
        np.testing.assert_allclose(one[0], whole[0][b : b + 1], rtol=1e-5)
        np.testing.assert_allclose(one[1], whole[1][:, :, b : b + 1], rtol=1e-5)
    seen = curves(lambda keep: keep.astype(jnp.float32), jnp.asarray(values), PRESETS['auctp'], valid)[1]
    assert seen[..., ~valid].all()  # padding is never removed
    counts = (~np.asarray(seen, bool)).sum(-1)
    np.testing.assert_array_equal(counts, np.stack([PRESETS['auctp'].removed([12, 7, 1, 0, 3])] * 2))


def test_all_forwards_are_one_compiled_call():
    traced = []

    def predict(keep):
        traced.append(keep.shape)
        return linear(keep)

    run = jax.jit(lambda values, valid: perturbation.curves(predict, values, PRESETS['chefer2020'], valid))
    for seed in range(3):
        clean, logits = run(np.random.default_rng(seed).normal(size=(2, 6)), VALID)
    assert logits.shape == (2, 9, 2, 2) and clean.shape == (2, 2)
    assert traced == [(2, 6)] and run._cache_size() == 1
    pixels = curves(lambda keep: keep.sum(1, keepdims=True), jnp.zeros((1, 50176)), PRESETS['chefer2020'])
    assert pixels[1][0, :, 0, 0].tolist() == [50176 - int(50176 * p / 10) for p in range(1, 10)]


def test_measures_are_those_of_the_published_code():
    clean = np.log([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    after = np.log([[0.2, 0.2, 0.6], [0.1, 0.7, 0.2]])
    logits = np.stack([clean, after])[:, None] + 2.0  # of both directions, one share
    found = {k: np.asarray(v) for k, v in measure(clean + 2, logits, np.array([1, 1])).items()}
    assert all(v.shape == (2, 2, 2) for v in found.values())
    of = lambda name: found[name][:, 1, 1].tolist()  # the second half is `after`
    assert of('score') == [0, 1] and found['score'][:, 0, 1].tolist() == [0, 1]
    assert of('log_odds') == pytest.approx([np.log(0.2 / 0.2), np.log(0.7 / 0.2)], abs=1e-6)
    assert of('max_probability') == pytest.approx([0.6, 0.7]) and of('probability') == pytest.approx([0.2, 0.7])
    assert of('max_logit') == pytest.approx([np.log(0.6) + 2, np.log(0.7) + 2])
    soft = measure(clean, logits, np.array([[0.3, 0, 1], [0, 0.6, 0]]), 'sigmoid')
    np.testing.assert_allclose(soft['score'][:, 1], [[0.3, 1], [0.6, 0.6]], atol=1e-6)
    expit = lambda p: 1 / (1 + np.exp(-np.log(p) - 2))
    assert np.asarray(soft['probability'])[:, 1, 1] == pytest.approx([expit(0.2), expit(0.7)], abs=1e-6)
    nothing = measure(clean, logits, np.array([-1, 1]))
    assert np.isnan(nothing['score'][0]).all() and not np.isnan(nothing['log_odds']).any()


@pytest.mark.parametrize('chunk', [1, 4])
def test_single_items_do_what_their_weights_say(chunk):
    values = np.array([[-3.0, 1, 0, 2, 0, 9], [0, 0, 0, 0, 0.5, 9]], np.float32)
    found = singles(linear, jnp.asarray(values), VALID, most=3, chunk=chunk)
    assert found['values'].tolist() == [[-3, 2, 1], [0.5, 0, 0]] and found['valid'].all()
    sigmoid = lambda x: 1 / (1 + np.exp(7.5 - x))
    p = sigmoid(15)
    wanted = [[p - sigmoid(7), p - sigmoid(14), p - sigmoid(11)], [p - sigmoid(11), p - sigmoid(14), p - sigmoid(7)]]
    np.testing.assert_allclose(found['drop'], wanted, atol=1e-6)
    np.testing.assert_allclose(found['change'], wanted, atol=1e-6)  # two answers: both change by as much
    every = singles(linear, jnp.asarray(values), VALID, most=0, chunk=chunk)
    assert (
        every['drop'].shape == (2, 6) and every['valid'].tolist() == VALID.tolist() and (every['drop'][:, 5] == 0).all()
    )


def test_bad_settings_are_told():
    for fractions in ((0.5, 1.5), (-0.1,), (0.0, 0.5), (), (float('nan'),)):
        with pytest.raises(ValueError, match='wanted shares above 0'):
            Steps(fractions)
    with pytest.raises(ValueError, match='do not increase'):
        Steps((0.5, 0.5))
    with pytest.raises(ValueError, match="count 'all': wanted one of removed, kept, rounded, some"):
        Steps((0.5,), 'all')
    with pytest.raises(ValueError, match="second 'positive': wanted one of negative, kept"):
        Steps((0.5,), second='positive')
    with pytest.raises(ValueError, match=r'relevance has shape \(2, 5\), but removable items \(2, 6\)'):
        perturbation.curves(linear, jnp.zeros((2, 5)), PRESETS['auctp'], VALID)
    with pytest.raises(ValueError, match='most -1, chunk 1'):
        perturbation.singles(linear, jnp.zeros((2, 6)), most=-1)
    clean, logits = jnp.zeros((2, 3)), jnp.zeros((2, 1, 2, 3))
    with pytest.raises(ValueError, match=r'right answers have shape \(3,\), wanted \(2,\), or \(2, 3\) of soft scores'):
        perturbation.measure(clean, logits, jnp.zeros(3, int))
    with pytest.raises(ValueError, match='one answer only'):
        perturbation.measure(clean[:, :1], logits[..., :1], jnp.zeros(2, int))
    with pytest.raises(ValueError, match="probability 'tanh': wanted one of softmax, sigmoid"):
        perturbation.measure(clean, logits, jnp.zeros(2, int), 'tanh')
