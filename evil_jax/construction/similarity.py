"""Hypotheses that say the premise again: explanations of such entailments are empty ("a man is a man")."""

import math

from evil_jax.construction import _filter
from evil_jax.construction.pairs import Pair
from evil_jax.metrics.rouge_n import rouge_1


class Similarity(_filter.Filter):
    """Removes a pair if premise and hypothesis share too many words.

    Args:
      settings: `construct.similarity`: threshold (of ROUGE-1, 0 to 1; paper: 0.57), splits, classes.
    """

    name = 'similarity'
    source = 'section 3 and appendix B'

    def measure(self, pair: Pair, scores_C3=None) -> float:
        """ROUGE-1 F of premise and hypothesis; NaN where no premise is known."""
        return rouge_1(pair.premise, pair.hypothesis) if pair.premise.strip() else math.nan

    def detail(self, pair: Pair, value: float) -> str:
        return f'ROUGE-1 of premise and hypothesis is {value:.3f}, more than {self.threshold:g}'
