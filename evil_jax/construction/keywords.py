"""Explanations that talk about the sentences instead of the picture ("sentence", "synonym").

The paper prints "rephrasing". The released dev and test files have no "rephrase" or "rephrased" either, which stand in
.4 % of e-SNLI's own explanations, so 'rephras' is what was looked for. All of the list that is left there is written
with a capital ("Sentence" in 42 rows, "Mentions" in one): the published filter minded the case. These explanations are
of the kind that is not wanted, so this one does not.
"""

import math

from evil_jax.construction import _filter
from evil_jax.construction.pairs import Pair


class Keywords(_filter.Filter):
    """Removes a pair if one of the words is in one of its explanations: in any case, also as part of a longer word.

    Args:
      settings: `construct.keywords`: words, splits, classes.
      explanation: 'first': only that one is looked at; 'all': every one.

    Raises:
      ValueError: no words, or an empty one, which is in every text.
    """

    name = 'keywords'
    source = 'section 3 and appendix B'

    def __init__(self, settings, explanation: str):
        super().__init__(settings)
        if not settings.words or not all(word.strip() for word in settings.words):
            raise ValueError(
                f'construct.keywords.words is {tuple(settings.words)}, wanted words, none of them empty; '
                'to do without, leave keywords out of construct.filters'
            )
        self._words, self._most = [word.lower() for word in settings.words], 1 if explanation == 'first' else None

    def measure(self, pair: Pair, scores_C3=None) -> float:
        """How many of the words are there; NaN without an explanation."""
        return float(len(self._found(pair))) if pair.explanations else math.nan

    def detail(self, pair: Pair, value: float) -> str:
        """What was found."""
        return f'an explanation has {", ".join(repr(word) for word in self._found(pair))}'

    def _found(self, pair):
        texts = [text.lower() for text in pair.explanations[: self._most]]
        return [word for word in self._words if any(word in text for text in texts)]
