"""A few of the pairs that each filter removed, of each class, to be looked at on the report's page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.construction import _drawn
from evil_jax.construction.pairs import CLASSES


class Samples:
    """Draws by a hash of seed, filter and id, so that neither order nor chunks of the pairs matter.

    A pair that two filters remove may be in the samples of both.

    Args:
      filters: those of `filters.make`, of which `name` and `detail` are used.
      n: pairs of each filter and class.
      seed: another one, other pairs.
    """

    def __init__(self, filters: Sequence, n: int, seed: int = 0):
        self._filters, self._seed = {each.name: each for each in filters}, seed
        self._kept = {(name, label): _drawn.Smallest(n) for name in self._filters for label in CLASSES}

    def add(self, judged, captions: Mapping[str, Sequence[str]]) -> None:
        """Takes a `cleaning.Judged`; captions are those of all pictures: {image_id: texts}."""
        pair = judged.pair
        for name in judged.removing:
            kept, rank = self._kept[name, pair.label], _drawn.rank(self._seed, name, pair.id)
            if kept.wants(rank, pair.id):
                kept.add(rank, pair.id, self._row(judged, name, captions.get(pair.image_id, ())))

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """{filter: rows}, in the order of classes: id, split, label, premise, hypothesis, explanation, value, detail
        and captions, each of which has text and scores (in CLASSES' order; None where no model was asked).
        """
        return {name: [row for label in CLASSES for row in self._kept[name, label].items()] for name in self._filters}

    def _row(self, judged, name, texts):
        pair, value = judged.pair, judged.values[name]
        scores = [None] * len(texts) if judged.scores_C3 is None else judged.scores_C3.tolist()
        return {
            'id': pair.id,
            'split': pair.split,
            'label': pair.label,
            'premise': pair.premise,
            'hypothesis': pair.hypothesis,
            'explanation': pair.explanations[0] if pair.explanations else '',
            'value': None if math.isnan(value) else value,
            'detail': self._filters[name].detail(pair, value),
            'captions': [{'text': text, 'scores': score} for text, score in zip(texts, scores, strict=True)],
        }
