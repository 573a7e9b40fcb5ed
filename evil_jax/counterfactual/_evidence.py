"""Edits that speak for or against rules of one kind, and what is counted over groups of them."""

import dataclasses
import hashlib

import numpy as np

from evil_jax import stats
from evil_jax.counterfactual import intervals, judged

# Expectation -> kinds of rules that are findings. With INV an answer that is kept is as it should be.
KINDS = {'INV': ('SENSITIVE',), 'CHANGE': ('STABLE',), 'FREE': ('STABLE', 'SENSITIVE')}
# The same word goes to a common and to an uncommon colour: two targets of one rule.
_MERGED = {f'colour_{end}_{uses}': f'colour_{end}' for end in ('max', 'min') for uses in ('common', 'uncommon')}
BLANK = 'blank'  # the baseline without the picture, which a model that sees answers differently
_SAME = ('noop', 'repeat')  # the baselines that ask the same question again


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """R edits of one family with one expectation: what should change is not compared with what need not.

    Left out are edits whose answer is right now and was wrong before: that it was kept (changed) is well for them.

    Attributes:
      family: 'sibling', ..., 'colour_max' and 'colour_min' for both of theirs, 'blank'.
      expectation: 'INV', 'CHANGE', or 'FREE' where there is none.
      kind: 'STABLE' or 'SENSITIVE'.
      edits: the rows.
      held: [R] bool. The answer is kept (STABLE) or changed (SENSITIVE).
      second: [R] bool. Of a picture of the half that tests.
    """

    family: str
    expectation: str
    kind: str
    edits: judged.Judged
    held: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, family: str, expectation: str, kind: str, edits: judged.Judged, second: np.ndarray) -> 'Evidence':
        """Of these edits."""
        held = edits.kept if kind == 'STABLE' else ~edits.kept
        every = cls(family, expectation, kind, edits, held, second)
        well = held & (edits.met == 1) & (expectation != 'FREE')
        return every.take(~well) if well.any() else every

    def take(self, rows_R: np.ndarray) -> 'Evidence':
        """The rows of a mask."""
        edits, held, second = self.edits.take(rows_R), self.held[rows_R], self.second[rows_R]
        return dataclasses.replace(self, edits=edits, held=held, second=second)

    def count(self, group_R: np.ndarray | None = None, groups: int = 1, rows: np.ndarray | None = None) -> 'Counts':
        """Counts over groups of rows.

        Args:
          group_R: index of each row's group, -1 for none; None puts all rows into one.
          groups: number of groups.
          rows: indexes of the rows to count, where not all are, or one is in several groups; `group_R` is about them.
        """
        rows = np.arange(len(self.held)) if rows is None else rows
        group_R = np.zeros(len(rows), np.int64) if group_R is None else group_R.astype(np.int64)
        rows, group_R = rows[group_R >= 0], group_R[group_R >= 0]
        images, examples = (len(self.edits.names[column]) for column in ('image', 'example'))
        key_C, cell_R = np.unique(group_R * images + self.edits.image[rows], return_inverse=True)
        group_C = key_C // images
        n_C = np.bincount(cell_R, minlength=len(key_C))
        k_C = np.bincount(cell_R, self.held[rows], len(key_C))
        question = np.unique(group_R * examples + self.edits.example[rows])
        return Counts(
            k=np.bincount(group_C, k_C, groups),
            n=np.bincount(group_C, n_C, groups),
            questions=np.bincount(question // examples, minlength=groups),
            images=np.bincount(group_C, minlength=groups),
            effect=intervals.design_effect(k_C, n_C, group_C, groups),
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Of G groups: rows and those that held, [G] float64, distinct questions and pictures, and the design effect."""

    k: np.ndarray
    n: np.ndarray
    questions: np.ndarray
    images: np.ndarray
    effect: np.ndarray

    @property
    def rate(self) -> np.ndarray:
        return self.k / np.maximum(self.n, 1)

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """95 % interval of the rate, with as many trials as the rows are worth."""
        return stats.wilson(self.k / self.effect, self.n / self.effect)

    def against(self, tau: float) -> np.ndarray:
        """p of 'the rate is at most tau'."""
        return intervals.at_least(self.k / self.effect, self.n / self.effect, tau)

    def take(self, groups: np.ndarray) -> 'Counts':
        """Of these groups."""
        return Counts(*(getattr(self, field.name)[groups] for field in dataclasses.fields(self)))

    def others(self, whole: 'Counts') -> tuple[np.ndarray, np.ndarray]:
        """What k and n of the other rows of `whole` are worth; it has one group, or as many."""
        return (whole.k - self.k) / whole.effect, (whole.n - self.n) / whole.effect

    def above(self, whole: 'Counts') -> np.ndarray:
        """p of 'the rate is no higher than that of the other rows of `whole`'."""
        return intervals.exceeds(self.k / self.effect, self.n / self.effect, *self.others(whole))


def gather(table: judged.Judged, halves: bool, seed: int) -> list[Evidence]:
    """All the evidence that there is; that of the blank picture, with which an answer should change, comes first."""
    found = []
    if table.baselines is not None:
        blank = table.baselines.take(table.baselines.where(family=BLANK))
        if len(blank):
            found.append(Evidence.of(BLANK, 'CHANGE', 'STABLE', blank, _second(blank, halves, seed)))
    second = _second(table, halves, seed)
    groups = {}
    for family in table.families():
        groups.setdefault(_MERGED.get(family, family), []).append(table.code('family', family))
    known = [table.code('expectation', name) for name in ('INV', 'CHANGE')]
    for family, codes in groups.items():
        inside = np.isin(table.family, codes)
        for expectation, kinds in KINDS.items():
            wanted = table.expectation == table.code('expectation', expectation)
            if expectation == 'FREE':
                wanted = ~np.isin(table.expectation, known)
            rows = np.flatnonzero(inside & wanted)
            edits = table.take(rows)
            found += [Evidence.of(family, expectation, kind, edits, second[rows]) for kind in kinds]
    return [evidence for evidence in found if len(evidence.held)]


def noise(table: judged.Judged) -> Counts | None:
    """How often the answer to the same question changes, in one group; None where it was not asked again."""
    if table.baselines is None:
        return None
    same = np.any([table.baselines.where(family=name) for name in _SAME], axis=0)
    again = table.baselines.take(same)
    return Evidence.of(_SAME[0], 'INV', 'SENSITIVE', again, np.zeros(len(again), bool)).count() if len(again) else None


def _second(table, halves, seed):
    """Every other picture, in an order that only the seed and the pictures' ids decide."""
    if not halves:
        return np.zeros(len(table), bool)
    present = np.unique(table.image)
    salt = str(seed).encode()
    names = table.names['image']
    digests = [hashlib.blake2b(names[code].encode(), digest_size=8, salt=salt[:16]).digest() for code in present]
    second = np.zeros(len(names), bool)
    second[present[np.argsort(np.array(digests, 'S8'), kind='stable')[1::2]]] = True
    return second[table.image]
