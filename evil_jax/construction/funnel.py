"""How many pairs each filter looked at and removed, by split and class."""

import collections
import math
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.construction.pairs import CLASSES, SPLITS

_COUNTS = ('seen', 'removed', 'alone', 'first')


def by_split(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Counts of (split, class) as {split: {class: n}}: all classes of each split that has a pair."""
    splits = [split for split in SPLITS if any(counts.get((split, label)) for label in CLASSES)]
    return {split: {label: counts.get((split, label), 0) for label in CLASSES} for split in splits}


class Funnel:
    """Counts what `cleaning.clean` yields.

    Of each filter:
      seen: pairs it looks at (its splits, its classes), also those that an earlier one removed.
      removed: those of them above its threshold, whatever other filters say: what it would remove by itself.
      alone: those that no other filter removes: what would come back without it.
      first: those that no earlier filter removes: what it takes away in this order.
      unmeasured: pairs it looks at and has no number for (no captions, no premise); it leaves them where they are.

    Args:
      filters: those of `filters.make`, in order; of each, `name` is used.
    """

    def __init__(self, filters: Sequence):
        self._names = [each.name for each in filters]
        self._before, self._after = collections.Counter(), collections.Counter()
        self._of = {name: {kind: collections.Counter() for kind in _COUNTS} for name in self._names}
        self._unmeasured = collections.Counter()

    def add(self, judged) -> None:
        """Takes a `cleaning.Judged`."""
        key = judged.pair.split, judged.pair.label
        self._before[key] += 1
        if not judged.removing:
            self._after[key] += 1
        for name, value in judged.values.items():
            self._of[name]['seen'][key] += 1
            self._unmeasured[name] += math.isnan(value)
        for name in judged.removing:
            self._of[name]['removed'][key] += 1
        if len(judged.removing) == 1:
            self._of[judged.removing[0]]['alone'][key] += 1
        if judged.removed_by:
            self._of[judged.removed_by]['first'][key] += 1

    def to_json(self) -> dict[str, Any]:
        """{'before', 'kept': {split: {class: n}}, 'filters': {name: {'seen', 'removed', 'alone', 'first': the same,
        'unmeasured': n, 'share': removed of seen, None of nothing}}}.
        """
        return {
            'before': by_split(self._before),
            'kept': by_split(self._after),
            'filters': {name: self._filter(name) for name in self._names},
        }

    def _filter(self, name):
        counts = self._of[name]
        seen, removed = counts['seen'].total(), counts['removed'].total()
        return {
            **{kind: by_split(counts[kind]) for kind in _COUNTS},
            'unmeasured': self._unmeasured[name],
            'share': removed / seen if seen else None,
        }
