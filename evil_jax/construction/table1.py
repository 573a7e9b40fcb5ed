"""Table 1 of the e-ViL paper: how large a split is, how its classes are shared out, how long its texts are."""

import collections
from typing import Any

from evil_jax.construction.pairs import CLASSES, SPLITS, Pair

# e-ViL (Kayser et al., 2021), Table 1. Under our count, words between blanks, the released files have explanations of
# 13.2 words in dev and in test; everything else is as printed.
PAPER = {
    split: {
        'instances': instances,
        'images': images,
        'shares': dict(zip(CLASSES, shares)),
        'hypothesis': hypothesis,
        'explanation': explanation,
    }
    for split, instances, images, shares, hypothesis, explanation in (
        ('train', 401_717, 29_783, (36.0, 31.3, 32.6), [7.4, 7], [12.4, 11]),
        ('dev', 14_339, 1_000, (39.4, 24.0, 36.6), [7.3, 7], [13.3, 12]),
        ('test', 14_740, 1_000, (38.8, 25.8, 35.4), [7.4, 7], [13.3, 12]),
    )
}


class Table1:
    """Counts of pairs as they pass. What grows with their number is the set of pictures alone: medians are of counts.

    Args:
      explanation: 'first' counts the words of each pair's first explanation, which is what the released files hold;
        'all' those of every one.
    """

    def __init__(self, explanation: str = 'first'):
        self._most = {'first': 1, 'all': None}[explanation]
        self._splits = {}

    def add(self, pair: Pair) -> None:
        if pair.split not in self._splits:
            self._splits[pair.split] = _Split()
        split = self._splits[pair.split]
        split.classes[pair.label] += 1
        if pair.image_id:
            split.images.add(pair.image_id)
        split.hypothesis[len(pair.hypothesis.split())] += 1
        for explanation in pair.explanations[: self._most]:
            split.explanation[len(explanation.split())] += 1

    def to_json(self) -> dict[str, Any]:
        """{split: {'instances', 'images', 'shares': {class: %}, 'hypothesis': [mean, median], 'explanation': ...}}.

        images: those that are known; pairs of e-SNLI's lines have none. Lengths are words between blanks, None where
        there is no text. Nothing is rounded.
        """
        return {name: self._splits[name].row() for name in SPLITS if name in self._splits}


class _Split:
    def __init__(self):
        self.classes, self.images = collections.Counter(), set()
        self.hypothesis, self.explanation = collections.Counter(), collections.Counter()

    def row(self):
        instances = self.classes.total()
        return {
            'instances': instances,
            'images': len(self.images),
            'shares': {name: 100 * self.classes[name] / instances for name in CLASSES},
            'hypothesis': _mean_and_median(self.hypothesis),
            'explanation': _mean_and_median(self.explanation),
        }


def _mean_and_median(counts):
    n = counts.total()
    if not n:
        return [None, None]
    seen, middle = 0, []
    for length in sorted(counts):
        # The values in the middle of the sorted list: one of an odd number, two of an even one.
        middle += [length for place in ((n - 1) // 2, n // 2) if seen <= place < seen + counts[length]]
        seen += counts[length]
    median = sum(middle) / 2
    return [sum(length * count for length, count in counts.items()) / n, int(median) if median % 1 == 0 else median]
