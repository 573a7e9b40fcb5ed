"""Numbers of curves: by hand, and by numpy and scipy."""

import json

import numpy as np
import pytest
import scipy.stats

from evil_jax.attribution import curves

TENTHS = [i / 10 for i in range(1, 10)]


def measured(score, **others):
    """[N, 2, T] of every measure; those that are not given are 0."""
    score = np.asarray(score, float)
    names = ('log_odds', 'max_logit', 'max_probability', 'probability')
    return {'score': score} | {name: np.asarray(others.get(name, np.zeros_like(score)), float) for name in names}


def test_a_flat_curve_has_the_published_bounds():
    found = curves.areas(np.full(10, 0.803), TENTHS)
    assert found['auc_author'] == pytest.approx(72.3, abs=0.05) and found['auc_card'] == pytest.approx(64.24)
    assert curves.areas(np.ones(10), TENTHS) == pytest.approx({'auc': 0.9, 'auc_author': 90, 'auc_card': 80})
    assert list(curves.areas(np.ones(3), (0.1, 0.5))) == ['auc']


def test_areas_are_numpys_and_the_two_readings_differ_by_what_the_module_says():
    y, x = np.random.default_rng(0).random((4, 10)), [0, *TENTHS]
    found = curves.areas(y, TENTHS)
    np.testing.assert_allclose(found['auc'], np.trapezoid(y, x), rtol=1e-12)
    np.testing.assert_allclose(found['auc_author'], 100 * np.trapezoid(y, x), rtol=1e-12)
    np.testing.assert_allclose(found['auc_card'], np.trapezoid(y[:, 1:], range(10, 100, 10)), rtol=1e-12)
    np.testing.assert_allclose(found['auc_author'], found['auc_card'] + 5 * (y[:, 0] + y[:, 1]), rtol=1e-12)
    uneven = (0.05, 0.1, 0.5, 0.97)
    np.testing.assert_allclose(curves.areas(y[:, :5], uneven)['auc'], np.trapezoid(y[:, :5], [0, *uneven]), rtol=1e-12)


def test_published_aucs_follow_from_the_published_curve():
    """Liu et al. 2022, VisualBERT, generic attention relevance, slices: the notebook's curve and its AUCTP."""
    y = [0.6075, 0.5693, 0.5297, 0.4882, 0.4647, 0.4462, 0.4295, 0.4138, 0.3988, 0.3836, 0.3666]
    x = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert curves.areas(y, x)['auc'] == pytest.approx(0.40419, abs=5e-5)


def test_a_summary_by_hand():
    # Two steps; three examples, the last of them wrong from the start.
    score = [[[1, 0, 0], [1, 1, 0]], [[1, 1, 0], [1, 1, 1]], [[0, 0, 1], [0, 0, 0]]]
    logit = [[[5, 4, 1], [5, 5, 3]], [[3, 3, 3], [3, 2, 1]], [[0, 1, 2], [0, 0, 0]]]
    found = curves.summarise(measured(score, max_logit=logit, log_odds=logit), (0.2, 1), resamples=0)
    value = lambda estimates: [e['value'] for e in estimates]
    assert found['n'] == 3 and found['fractions'] == [0, 0.2, 1]
    assert value(found['positive']['score']) == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert value(found['negative']['score']) == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    # Areas of the examples: .1, .2 + .4, .4 and .2 + .4, 1, 0.
    assert found['positive']['auc']['value'] == pytest.approx(1.1 / 3)
    assert found['negative']['auc']['value'] == pytest.approx(1.6 / 3)
    assert found['difference']['auc']['value'] == pytest.approx(0.5 / 3)
    assert value(found['positive']['max_logit_change']) == pytest.approx([0, 0, -2 / 3])
    assert value(found['negative']['log_odds']) == pytest.approx([8 / 3, 7 / 3, 4 / 3])
    correct = found['correct']
    assert correct['n'] == 2 and correct['positive']['auc'] == {'value': pytest.approx(0.35), 'ci95': None, 'n': 2}
    assert correct['difference']['auc']['value'] == pytest.approx(0.45)
    json.dumps(found, allow_nan=False)


def test_intervals_are_those_of_a_mean_and_draw_whole_pictures():
    r = np.random.default_rng(0)
    score = np.repeat(r.random((100, 1, 1)) < 0.5, 4, axis=0) * np.ones((1, 2, 2))  # pictures of four equal examples
    summary = lambda **k: curves.summarise(measured(score), (0.5,), **k)
    width = lambda found: np.diff(found['positive']['score'][0]['ci95']).item()
    examples, pictures = summary(), summary(images=np.repeat(np.arange(100), 4).tolist())
    assert width(examples) == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.15)
    assert width(pictures) == pytest.approx(2 * 1.96 * 0.5 / 10, rel=0.15)
    assert pictures['difference']['auc']['ci95'] == [0, 0]  # resampled together
    assert summary() == examples
    none = curves.summarise(measured(0 * score), (0.5,))
    assert none['correct']['positive']['auc'] == {'value': None, 'ci95': None, 'n': 0}


def test_examples_without_a_right_answer_do_not_count():
    score = [[[1, 0], [1, 1]], [[np.nan, np.nan], [np.nan, np.nan]]]
    found = curves.summarise(measured(score), (0.5,), resamples=10)
    assert found['positive']['score'][0] == {'value': 1, 'ci95': [1, 1], 'n': 1} and found['n'] == 2


def test_erasure_by_hand():
    # p at first; without the most relevant items; and with those alone.
    probability = [[[0.9, 0.5, 0.1], [0.9, 0.6, 0.8]], [[0.7, 0.7, 0.5], [0.7, 0.1, 0.9]]]
    found = curves.erasure(measured(np.zeros((2, 2, 3)), probability=probability), (0.1, 0.5), resamples=0)
    value = lambda name: [e['value'] for e in found[name]]
    assert value('comprehensiveness') == pytest.approx([0.2, 0.5])
    assert value('sufficiency') == pytest.approx([0.45, -0.05])
    assert found['comprehensiveness_aopc']['value'] == pytest.approx(0.35)
    assert found['sufficiency_aopc']['value'] == pytest.approx(0.2)


def test_violation_and_rank_correlation_by_hand():
    single = {
        'values': [[-3, 2, 1], [2, -1, 0.5], [1, 0, 0], [0, 0, 0], [1, 9, 9]],
        'drop': [[0.3, 0.2, 0.1], [0.1, 0.2, -0.3], [-0.1, 0, 0], [0.2, 0.1, 0], [0.1, 0, 0]],
        'change': [[0.3, 0.2, 0.1], [0.1, 0.2, 0.3], [0.1, 0, 0], [0.2, 0.1, 0], [0.1, 0, 0]],
        'valid': [[True] * 3] * 4 + [[True, False, False]],
    }
    found = curves.effects(single)
    assert found['violation'].tolist() == [1, 0, 1, 0, 0]
    np.testing.assert_allclose(found['rank_correlation'], [1, -1, 1, np.nan, np.nan])
    nothing = curves.effects({name: np.zeros((1, 2)) for name in single})
    assert np.isnan(nothing['violation']).all()


def test_chance_violates_half_of_the_time():
    r = np.random.default_rng(0)
    values, drop = r.normal(size=(2, 4000, 1))
    found = curves.effects({'values': values, 'drop': drop, 'change': abs(drop), 'valid': values < 99})
    assert curves.estimate(found['violation'][:, None], resamples=0)[0]['value'] == pytest.approx(0.5, abs=0.03)


def test_rank_correlation_is_scipys_over_valid_items():
    r = np.random.default_rng(0)
    a, b = r.integers(0, 5, (2, 6, 20))
    valid = r.random((6, 20)) < 0.7
    wanted = [scipy.stats.spearmanr(x[v], y[v]).statistic for x, y, v in zip(a, b, valid)]
    np.testing.assert_allclose(curves.spearman(a, b, valid), wanted, rtol=1e-12)


def test_what_does_not_fit_is_told():
    with pytest.raises(ValueError, match=r'shape \(1, 2, 3\), wanted examples, 2 and 3 fractions with the untouched'):
        curves.summarise(measured(np.zeros((1, 2, 3))), (0.1, 0.2, 0.3))
    with pytest.raises(ValueError, match='at least two increasing points'):
        curves.areas([1, 1, 1], (0.5, 0.5))
    with pytest.raises(ValueError, match='2 cluster keys for 1 examples'):
        curves.summarise(measured(np.zeros((1, 2, 3))), (0.1, 0.2), images=['a', 'b'])
