"""How well scores rank what is true above what is not: precision-recall and ROC areas, as scikit-learn computes them.

Items of the same score are one step of the ranking, so an order among them is never taken for knowledge.

Legend: N items, T different scores.
"""

import numpy as np


def steps(truth_N, score_N) -> tuple[np.ndarray, np.ndarray]:
    """How many true and false items have at least each of the T scores, from the highest on.

    Raises:
      ValueError: arrays of different lengths, none or NaN.
    """
    truth_N, score_N = np.asarray(truth_N, bool).ravel(), np.asarray(score_N, np.float64).ravel()
    if truth_N.shape != score_N.shape or not truth_N.size:
        raise ValueError(f'a ranking of {score_N.size} scores and {truth_N.size} truths, wanted as many, and some')
    if np.isnan(score_N).any():
        raise ValueError(f'the score of item {np.flatnonzero(np.isnan(score_N))[0]} is NaN')
    order = np.argsort(-score_N)
    ends_T = np.append(np.flatnonzero(np.diff(score_N[order])), score_N.size - 1)
    true_T = np.cumsum(truth_N[order])[ends_T]
    return true_T, ends_T + 1 - true_T


def average_precision(truth_N, score_N) -> float:
    """Sum over the steps of (gain in recall) * precision; NaN without a true item."""
    true_T, false_T = steps(truth_N, score_N)
    if not true_T[-1]:
        return float('nan')
    return float(np.diff(true_T, prepend=0) @ (true_T / (true_T + false_T)) / true_T[-1])


def auprc(truth_N, score_N) -> float:
    """Area under straight lines between the points of precision and recall, from precision 1 at recall 0 on; NaN
    without a true item. Rosier than `average_precision`: ERASER's choice.
    """
    true_T, false_T = steps(truth_N, score_N)
    if not true_T[-1]:
        return float('nan')
    return float(np.trapezoid(np.append(1.0, true_T / (true_T + false_T)), np.append(0.0, true_T / true_T[-1])))


def roc_auc(truth_N, score_N) -> float:
    """Chance that a true item scores above a false one, a tie counting half; NaN where there are not both."""
    true_T, false_T = steps(truth_N, score_N)
    if not true_T[-1] or not false_T[-1]:
        return float('nan')
    return float(np.trapezoid(np.append(0.0, true_T / true_T[-1]), np.append(0.0, false_T / false_T[-1])))
