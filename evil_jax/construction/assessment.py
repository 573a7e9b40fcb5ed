"""How right the filters are, by pairs that somebody checked by hand: precision, recall, and what errors are left.

Two errors are told apart: a wrong label (the pair's class is not the one that the checker gave) and a bad explanation
(its quality is low; of a pair whose explanation is another one than was checked nothing is known). A filter is right
about a pair that it removes if that pair has the error. It is judged by the checked pairs that it looks at; pairs
outside of its splits and classes say nothing about it. To see how a filter of the training set does on checked pairs of
dev, let it look there (`construct.false_neutral.splits`).
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from evil_jax.construction.checked import Checked, blanks
from evil_jax.construction.pairs import CLASSES
from evil_jax.data.sources._files import some_ids
from evil_jax.stats import wilson

ERRORS = ('wrong_label', 'bad_explanation')


@dataclasses.dataclass(slots=True)
class _Row:
    """One checked pair: its class, whether it has each error (None: not judged), and what the filters say."""

    label: str
    errors: dict[str, bool | None]
    values: dict[str, float]
    removing: tuple[str, ...]


class Assessment:
    """Gathers the checked ones among all pairs as they pass.

    Args:
      filters: those of `filters.make`; of each, `name` is used.
      checked: of `checked.read`.
    """

    def __init__(self, filters: Sequence, checked: Checked):
        self._names, self._checked = [each.name for each in filters], checked
        self._rows, self._found, self._relabelled, self._replaced = [], set(), collections.Counter(), 0

    def add(self, judged) -> None:
        """Takes a `cleaning.Judged`."""
        pair = judged.pair
        verdict = self._checked.verdicts.get(pair.id)
        if verdict is None:
            return
        self._found.add(pair.id)
        first = blanks(pair.explanations[0]) if pair.explanations else ''
        replaced = bool(verdict.quality and verdict.explanation) and verdict.explanation != first
        self._replaced += replaced
        errors = {
            'wrong_label': pair.label != verdict.label if verdict.label else None,
            'bad_explanation': verdict.quality == 'low' if verdict.quality and not replaced else None,
        }
        self._rows.append(_Row(pair.label, errors, judged.values, tuple(judged.removing)))
        if pair.original and verdict.label:
            self._relabelled['changed'] += 1
            self._relabelled['new'] += verdict.label == pair.label
            self._relabelled['old'] += verdict.label == pair.original

    def of(self, name: str, error: str) -> tuple[np.ndarray, np.ndarray]:
        """(values, whether each has the error) of the checked pairs that a filter looks at, where that was judged."""
        rows = [row for row in self._rows if name in row.values and row.errors[error] is not None]
        return np.array([row.values[name] for row in rows]), np.array([row.errors[error] for row in rows], bool)

    def to_json(self) -> dict[str, Any]:
        """Shares are [value, low, high] with Wilson's 95 % interval, or None where there is nothing to divide by.

        Returns:
          'n': checked pairs found.
          'blank', 'repeated': rows of the file that were left out.
          'replaced': pairs of which another explanation was checked than they have now, so its quality does not count.
          'missing': pairs of the file that are not there (number and first ids), or None.
          'filters': {name: {error: {'precision', 'recall', 'f1', 'before' and 'after' (error rates among the pairs that
            it looks at), 'n', 'errors', 'removed', 'right' (both), 'by_class': {class: the same}}}}.
          'errors': {'before', 'after', 'by_class': {class: {'before', 'after'}}}, rates of wrong labels before all
            filters and after all of them; 'bad_explanations': the same.
          'relabelled': {'changed': n, 'new': share of the new labels that the checker gives too, 'old': of the labels
            that they replaced}, or None where no checked pair has a new label.
        """
        missing = [pair_id for pair_id in self._checked.verdicts if pair_id not in self._found]
        changed = self._relabelled['changed']
        return {
            'n': len(self._rows),
            'blank': self._checked.blank,
            'repeated': self._checked.repeated,
            'replaced': self._replaced,
            'missing': some_ids(missing) if missing else None,
            'filters': {name: {error: self._filter(name, error) for error in ERRORS} for name in self._names},
            'errors': self._all('wrong_label'),
            'bad_explanations': self._all('bad_explanation'),
            'relabelled': {
                'changed': changed,
                'new': share(self._relabelled['new'], changed),
                'old': share(self._relabelled['old'], changed),
            }
            if changed
            else None,
        }

    def _filter(self, name, error):
        seen = [
            (row.label, row.errors[error], name in row.removing)
            for row in self._rows
            if name in row.values and row.errors[error] is not None
        ]
        of = lambda label: [(e, removed) for given, e, removed in seen if label in (given, None)]
        return _measures(of(None)) | {'by_class': {label: _measures(of(label)) for label in CLASSES}}

    def _all(self, error):
        rows = [
            (row.label, row.errors[error], bool(row.removing)) for row in self._rows if row.errors[error] is not None
        ]
        of = lambda label: _rates([(e, removed) for given, e, removed in rows if label in (given, None)])
        return of(None) | {'by_class': {label: of(label) for label in CLASSES}}


def share(k: int, n: int) -> list[float] | None:
    """[k / n, low, high] with Wilson's 95 % interval; None of nothing."""
    return [k / n, *map(float, wilson(k, n))] if n else None


def _rates(pairs):
    """Error rates of (has the error, is removed): of all, and of those that stay."""
    kept = [error for error, removed in pairs if not removed]
    return {'before': share(sum(error for error, _ in pairs), len(pairs)), 'after': share(sum(kept), len(kept))}


def _measures(pairs):
    errors, removed = sum(error for error, _ in pairs), sum(gone for _, gone in pairs)
    right = sum(error and gone for error, gone in pairs)
    return {
        'precision': share(right, removed),
        'recall': share(right, errors),
        'f1': _f1(right, removed + errors - right),
        **_rates(pairs),
        'n': len(pairs),
        'errors': errors,
        'removed': removed,
        'right': right,
    }


def _f1(right, either):
    """F1 with an interval. J, the share of removed errors among the pairs that are removed or have the error, is a
    proportion, and F1 = 2 J / (1 + J) grows with it: the ends of J's interval give those of F1's.
    """
    found = share(right, either)
    return None if found is None else [2 * j / (1 + j) for j in found]
