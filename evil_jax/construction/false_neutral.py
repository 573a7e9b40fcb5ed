"""Pairs that were neutral beside one caption, but that the picture decides: its other captions say so."""

import math

import numpy as np

from evil_jax.construction import _filter
from evil_jax.construction.pairs import CLASSES, Pair

_CAPTIONS = 5  # Flickr30k's of a picture, which the threshold is meant for
_DECIDED = [CLASSES.index('entailment'), CLASSES.index('contradiction')]


class FalseNeutral(_filter.Filter):
    """Removes a pair if the captions, each as a premise, together speak for entailment or together for contradiction.

    Args:
      settings: `construct.false_neutral`: threshold (of a sum of five probabilities; paper: 2.0), splits, classes.
    """

    name = 'false_neutral'
    source = 'section 3 and appendix B; with other than five captions the sum is scaled to five (ours)'
    needs_scores = True

    def measure(self, pair: Pair, scores_C3: np.ndarray | None) -> float:
        """The larger of sum over captions of P(entailment) and sum of P(contradiction); NaN without captions.

        With other than five captions it is five times the mean.
        """
        if scores_C3 is None or not len(scores_C3):
            return math.nan
        return float(_CAPTIONS * scores_C3[:, _DECIDED].mean(0, dtype=np.float64).max())

    def detail(self, pair: Pair, value: float) -> str:
        return (
            f'for {_CAPTIONS} captions the probability of entailment or of contradiction sums to {value:.3f}, '
            f'more than {self.threshold:g}'
        )
