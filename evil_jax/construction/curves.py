"""Threshold curves: what another threshold of a filter would keep, and which errors would be left in it.

The kept share is of all pairs that the filter looks at, those that it has no number for included: they stay. The error
is that of the hand-checked ones among the kept (`assessment.py`).
"""

import array
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evil_jax.construction.assessment import Assessment, share
from evil_jax.construction.pairs import CLASSES
from evil_jax.text import csv_cell

_THRESHOLDS = 60
_BINS = 40
COLUMNS = ('filter', 'threshold', 'in_use', 'kept', 'error', 'low', 'high', 'bad', 'bad_low', 'bad_high')


class Curves:
    """Gathers all values of all filters: 9 bytes each, 20 MB of four filters on 570,000 pairs.

    Args:
      filters: those of `filters.make`; of each, `name` and `threshold` are used. One without a threshold (None) has
        neither curve nor histogram.
    """

    def __init__(self, filters: Sequence):
        self._thresholds = {each.name: each.threshold for each in filters if each.threshold is not None}
        self._values = {name: (array.array('d'), array.array('b')) for name in self._thresholds}

    def add(self, judged) -> None:
        """Takes a `cleaning.Judged`."""
        for name in self._values.keys() & judged.values.keys():
            values, classes = self._values[name]
            values.append(judged.values[name])
            classes.append(CLASSES.index(judged.pair.label))

    def to_json(self, assessment: Assessment | None = None) -> dict[str, dict[str, Any]]:
        """{filter: {'histogram': {'edges', 'counts': {class: []}}, 'curve': [{'threshold', 'in_use', 'kept', 'error',
        'low', 'high', 'bad', 'bad_low', 'bad_high'}]}}, of filters that have measured anything.

        error, low, high: share of wrong labels among the checked ones that are kept, with Wilson's 95 % interval; bad,
        bad_low, bad_high: of bad explanations. None where none of these was checked.
        """
        found = {}
        for name, threshold in self._thresholds.items():
            values, classes = (
                np.frombuffer(each, each.typecode) if each else np.zeros(0) for each in self._values[name]
            )
            known = ~np.isnan(values)
            if known.any():
                found[name] = {
                    'histogram': _histogram(values[known], classes[known], threshold),
                    'curve': _curve(name, values, threshold, assessment),
                }
        return found


def csv(curves: Mapping[str, Mapping[str, Any]]) -> str:
    """What `Curves.to_json` has as the text of a table: a line for each threshold of each filter."""
    rows = [{'filter': name} | row for name, parts in curves.items() for row in parts['curve']]
    lines = [','.join(str(csv_cell(row[column])) for column in COLUMNS) for row in rows]
    return '\n'.join([','.join(COLUMNS), *lines]) + '\n'


def _histogram(values, classes, threshold):
    low, high = min(values.min(), threshold), max(values.max(), threshold)  # the threshold is drawn in it
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    counts = {label: np.histogram(values[classes == i], edges)[0].tolist() for i, label in enumerate(CLASSES)}
    return {'edges': edges.tolist(), 'counts': counts}


def _curve(name, values, threshold, assessment):
    ordered = np.sort(values[~np.isnan(values)])
    unmeasured = len(values) - len(ordered)
    checked = [
        assessment.of(name, error) if assessment else (np.zeros(0),) * 2 for error in ('wrong_label', 'bad_explanation')
    ]
    rows = []
    for at in _thresholds(ordered, threshold):
        wrong, bad = (_left(*each, at) for each in checked)
        kept = (np.searchsorted(ordered, at, side='right') + unmeasured) / len(values)
        rows.append(
            {
                'threshold': at,
                'in_use': at == threshold,
                'kept': float(kept),
                **dict(zip(('error', 'low', 'high'), wrong)),
                **dict(zip(('bad', 'bad_low', 'bad_high'), bad)),
            }
        )
    return rows


def _thresholds(ordered, threshold):
    """The one in use and, if there are few different values, all of them. Else half of the thresholds are evenly spaced
    in the values and half in the kept share, so that neither rare large values nor the crowd at one end is hidden.
    """
    found = np.unique(ordered)
    if len(found) > _THRESHOLDS:
        even = np.linspace(ordered[0], ordered[-1], _THRESHOLDS // 2)
        crowd = np.quantile(ordered, np.linspace(0, 1, _THRESHOLDS // 2), method='lower')
        found = np.unique([*even, *crowd])
    others = [value for value in found.tolist() if not math.isclose(value, threshold, abs_tol=1e-9)]
    return sorted([*others, threshold])


def _left(values, errors, threshold):
    kept = errors[~(values > threshold)]
    return share(int(kept.sum()), len(kept)) or [None] * 3
