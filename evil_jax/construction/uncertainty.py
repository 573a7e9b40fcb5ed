"""Pairs of which captions of one picture say different things: what is right depends on who described the picture.

The paper removes where "the deviation of the scores" over the five captions is high, and gives neither formula nor
threshold: both are ours, and settings. Deviations are of the population (divided by the number of captions).
"""

import math

import numpy as np

from evil_jax import lookup
from evil_jax.construction import _filter
from evil_jax.construction.pairs import CLASSES, Pair


def label(scores_C3: np.ndarray, label: int) -> float:
    """Standard deviation over captions of the probability of the pair's class: 0 to 0.5."""
    return scores_C3[:, label].std()


def classes(scores_C3: np.ndarray, label: int) -> float:
    """Largest of the three classes' standard deviations over captions: 0 to 0.5. It does not ask for the label."""
    return scores_C3.std(0).max()


def disagreement(scores_C3: np.ndarray, label: int) -> float:
    """Jensen-Shannon divergence of the captions' distributions, in nats, 0 to ln 3: entropy of the mean less mean
    entropy. It does not ask for the label.
    """
    return max(0.0, _entropy(scores_C3.mean(0)) - _entropy(scores_C3).mean())  # rounding can make it negative


FORMULAS = {'label': label, 'classes': classes, 'disagreement': disagreement}


class Uncertainty(_filter.Filter):
    """Removes a pair if what the NLI model says differs too much between captions.

    Args:
      settings: `construct.uncertainty`: formula (one of FORMULAS), threshold, splits, classes.

    Raises:
      ValueError: an unknown formula.
    """

    name = 'uncertainty'
    source = 'section 3 and appendix B; formula and threshold are ours'
    needs_scores = True

    def __init__(self, settings):
        super().__init__(settings)
        self._formula = settings.formula
        self._of = lookup.entry(FORMULAS, settings.formula, 'construct.uncertainty.formula')

    def measure(self, pair: Pair, scores_C3: np.ndarray | None) -> float:
        """The formula's value; NaN of fewer than two captions, which cannot differ."""
        if scores_C3 is None or len(scores_C3) < 2:
            return math.nan
        return float(self._of(np.asarray(scores_C3, np.float64), CLASSES.index(pair.label)))

    def detail(self, pair: Pair, value: float) -> str:
        return f'captions differ by {value:.3f} ({self._formula}), more than {self.threshold:g}'


def _entropy(p):
    return -(p * np.log(np.where(p > 0, p, 1))).sum(-1)
