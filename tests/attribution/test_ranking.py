import numpy as np
import pytest
from sklearn import metrics

from evil_jax.attribution import ranking


def area(truth, score):
    precision, recall, _ = metrics.precision_recall_curve(truth, score)
    return metrics.auc(recall, precision)


@pytest.mark.parametrize('different', [1, 2, 5, 10_000])
@pytest.mark.parametrize('share', [0.03, 0.5, 0.98])
def test_areas_equal_scikit_learns_with_ties_and_without(different, share):
    rng = np.random.default_rng(different)
    for n in (2, 3, 40, 500):
        truth = rng.random(n) < share
        truth[:2] = True, False
        score = rng.integers(-different, different + 1, n) / 7
        for mine, theirs in (
            (ranking.average_precision, metrics.average_precision_score),
            (ranking.auprc, area),
            (ranking.roc_auc, metrics.roc_auc_score),
        ):
            assert mine(truth, score) == pytest.approx(theirs(truth, score), abs=1e-13)


def test_areas_by_hand():
    truth, score = [1, 0, 1, 0], [0.9, 0.5, 0.5, 0.1]  # recall 1/2 at precision 1, recall 1 at precision 2/3
    assert ranking.average_precision(truth, score) == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)
    assert ranking.auprc(truth, score) == pytest.approx(1 / 2 * 1 + 1 / 2 * (1 + 2 / 3) / 2)
    assert ranking.roc_auc(truth, score) == pytest.approx((2 + 1.5) / 4)
    assert [a.tolist() for a in ranking.steps(truth, score)] == [[1, 2, 2], [0, 1, 2]]


def test_what_is_not_defined():
    assert np.isnan([f([0, 0], [1, 2]) for f in (ranking.average_precision, ranking.auprc, ranking.roc_auc)]).all()
    assert np.isnan(ranking.roc_auc([1, 1], [1, 2])) and ranking.auprc([1, 1], [1, 2]) == 1
    with pytest.raises(ValueError, match='2 scores and 1 truths'):
        ranking.steps([1], [1, 2])
    with pytest.raises(ValueError, match='0 scores'):
        ranking.steps([], [])
    with pytest.raises(ValueError, match='the score of item 1 is NaN'):
        ranking.steps([1, 0], [1, np.nan])
