"""One system's predictions beside the examples, as statistics a picture: what scores, intervals and tests are made of.

Every score is a function of sums of statistics over examples. Since whole pictures are drawn (bootstrap) or exchanged
between systems (randomisation), the sums are taken a picture once; a resample is then a row of counts a picture, and
many of them are one matrix product.

Legend: N examples, P pictures, B resamples, K statistics of a metric.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evil_jax import stats
from evil_jax.metrics import base, judging
from evil_jax.metrics.protocol import Protocol

NGRAM = ('meteor', 'rouge_l', 'cider', 'spice')
FAST = ('rouge_l', 'cider')
BERTSCORE = 'bertscore'  # the F1 of metrics/bertscore
MAIN = 'main'  # s_* and accuracies over all examples, metrics of explanations over the correct ones: the papers' tables
PARTS = ('task', 'all', 'correct', 'true')


@dataclasses.dataclass(frozen=True)
class Column:
    """A table spread over all N rows: rows that it lacks are masked out.

    part: 'task' (s_t and the like), 'all' or 'correct' (explanation scores of that set), 'true'.
    """

    table: base.Table
    statistics: np.ndarray
    present: np.ndarray
    part: str

    @classmethod
    def of(cls, table: base.Table, rows: judging.Rows, part: str) -> 'Column':
        where = {example.id: i for i, (_, example) in enumerate(rows)}
        at = [where[i] for i in table.ids]
        statistics = np.zeros((len(rows), table.statistics.shape[1]))
        statistics[at] = table.statistics
        present = np.zeros(len(rows), bool)
        present[at] = True
        return cls(table, statistics, present, part)

    @property
    def key(self) -> tuple[str, ...]:
        """The same for columns of two systems that hold the same scores."""
        return (self.part, *self.table.signatures)


@dataclasses.dataclass(frozen=True)
class Sheet:
    """See above.

    Attributes:
      rows: (prediction, example) pairs, N in the order of their ids.
      protocol: of the scores.
      rule: which answers are correct (`protocol.RULES`).
      correct: [N] booleans.
      columns: the statistics.
      subsets: name -> [N] booleans; 'all', 'correct', then groups by name.
      absent: score name -> why it could not be computed.
      reasons: part -> why it has no scores, or ''.
      sign: makes signatures.
    """

    rows: judging.Rows
    protocol: Protocol
    rule: str
    correct: np.ndarray
    columns: tuple[Column, ...]
    subsets: Mapping[str, np.ndarray]
    absent: Mapping[str, str]
    reasons: Mapping[str, str]
    sign: Any = None

    @functools.cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(example.id for _, example in self.rows)

    @functools.cached_property
    def pictures(self) -> tuple[str, ...]:
        """P image ids, in the order of their first example."""
        return tuple(dict.fromkeys(example.image_id for _, example in self.rows))

    @functools.cached_property
    def picture_N(self) -> np.ndarray:
        """The number of each example's picture."""
        number = {picture: i for i, picture in enumerate(self.pictures)}
        return np.array([number[example.image_id] for _, example in self.rows])

    @functools.cached_property
    def _cache(self) -> dict:
        return {}

    def inside(self, column: Column, subset: str) -> np.ndarray:
        """Mask of the rows that the scores of a column are over in a subset."""
        mask = self.subsets['all' if subset == MAIN else subset] & column.present
        return mask & self.correct if column.part in ('correct', 'true') else mask

    def sums_PK(self, column: Column, subset: str) -> np.ndarray:
        """Statistics summed over each picture's examples of a subset; the last column is their number."""
        key = (column.key, subset)
        if key not in self._cache:
            chosen = np.flatnonzero(self.inside(column, subset))
            sums = np.zeros((len(self.pictures), column.statistics.shape[1] + 1))
            np.add.at(sums[:, :-1], self.picture_N[chosen], column.statistics[chosen])
            sums[:, -1] = np.bincount(self.picture_N[chosen], minlength=len(self.pictures))
            self._cache[key] = sums
        return self._cache[key]

    def all_sums_PK(self, keys: tuple, subset: str) -> np.ndarray:
        """`sums_PK` of several columns, side by side."""
        if (keys, subset) not in self._cache:
            own = {column.key: column for column in self.columns}
            self._cache[keys, subset] = np.concatenate([self.sums_PK(own[key], subset) for key in keys], axis=1)
        return self._cache[keys, subset]

    def values(self, counts_BP: np.ndarray, subset: str = 'all') -> dict[str, np.ndarray]:
        """{score name: [B]}: what a subset scores if each picture counts as often as a row says. NaN: undefined.

        Args:
          subset: a key of `subsets`, or 'main'.
        """
        return mixed([(self, counts_BP)], subset)


def mixed(parts: Sequence[tuple[Sheet, np.ndarray]], subset: str = 'all') -> dict[str, np.ndarray]:
    """{score name: [B]} of a system put together from several: each picture counts of each as often as its row says.

    Args:
      parts: (sheet, counts [B, P]); the sheets are of the same examples under the same protocol. Scores that one of
        them lacks are left out.
      subset: a key of `Sheet.subsets`, or 'main'.
    """
    values = by_part(parts, subset)
    if subset == 'correct':
        return values['correct'] | values['true']
    explained = values['correct' if subset == MAIN else 'all']
    return values['task'] | explained | values['true']


def by_part(parts: Sequence[tuple[Sheet, np.ndarray]], subset: str) -> dict[str, dict[str, np.ndarray]]:
    """As `mixed`, {part: {score name: [B]}}: metrics over all explanations of a subset and over its correct ones."""
    values = {part: {} for part in PARTS}
    owned = [{column.key: column for column in sheet.columns} for sheet, _ in parts]
    keys = [column.key for column in parts[0][0].columns if all(column.key in columns for columns in owned)]
    if keys:
        # One product of a sheet's counts with all of its statistics: many narrow ones take several times as long.
        sums = sum(counts @ sheet.all_sums_PK(tuple(keys), subset) for sheet, counts in parts)
        start = 0
        for column in (owned[0][key] for key in keys):
            end = start + column.statistics.shape[1] + 1
            values[column.part] |= column.table.corpus(sums[..., start : end - 1], sums[..., end - 1])
            start = end
    for part in ('all', 'correct'):
        values[part] |= _ngram(values[part])
    derived = values['true']
    derived |= _explanation_scores(values['correct'])
    for name in [name for name in derived if name.startswith('s_e_')]:
        if 's_t' in values['task']:
            derived[f's_o_{name.removeprefix("s_e_")}'] = values['task']['s_t'] * derived[name]
    return values


def lacking(found, with_bertscore: bool) -> list[str]:
    """The parts of NGRAMScore (of s_e_auto, with BERTScore) that are not among these scores."""
    return [name for name in (*NGRAM, *[BERTSCORE] * with_bertscore) if name not in found]


def without(missing: Sequence[str]) -> str:
    """End of the name of a score that lacks parts: '_without_spice'; '' = it is whole."""
    return f'_without_{"_".join(missing)}' if missing else ''


def _ngram(values):
    """NGRAMScore, or where parts are missing another score, whose name says which."""
    missing = lacking(values, with_bertscore=False)
    there = [name for name in NGRAM if name not in missing]
    if tuple(there) == FAST or len(there) < 2:  # s_e_fast is that
        return {}
    return {f'ngram{without(missing)}': _harmonic(values, there)}


def _explanation_scores(right):
    """s_e_auto, or another score whose name says what is missing; and s_e_fast."""
    scores = {}
    missing = lacking(right, with_bertscore=True)
    ngram = f'ngram{without([m for m in missing if m != BERTSCORE])}'
    if ngram in right:
        parts = [ngram, BERTSCORE] if BERTSCORE in right else [ngram]
        scores[f's_e_auto{without(missing)}'] = _harmonic(right, parts)
    if all(name in right for name in FAST):
        scores['s_e_fast'] = _harmonic(right, FAST)
    return scores


def _harmonic(values, names):
    """Harmonic mean over the named parts; NaN where one is undefined or negative."""
    parts = [np.asarray(values[name], np.float64) for name in names]
    negative = np.any([p < 0 for p in parts], axis=0)
    return np.where(negative, np.nan, stats.harmonic_mean(*[np.maximum(p, 0) for p in parts]))
