"""Labels that people gave: which pairs they are asked about, and what becomes of these pairs.

The neutral pairs of dev and test are labelled anew (Kayser et al., 2021, appendix B): three people each say what the
picture shows, and the majority counts. A pair without a majority is left out. Where the majority has another label than
the source, `Pair.original` keeps that one; the explanations of a pair that people decided are those of the people who
chose its label, the most relevant one first where it is known what an explanation has to name (`relevance.py`).
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from evil_jax import stats
from evil_jax.construction import _table, relevance
from evil_jax.construction.pairs import CLASSES, Pair
from evil_jax.data.sources import _files

NO_MAJORITY = 'no_majority'  # the reason of a pair that is left out
_SPLITS = ('dev', 'test')
_MOST = 3  # explanations of a pair


@dataclasses.dataclass(frozen=True, slots=True)
class Vote:
    """What one person who counts said of a pair."""

    rater: str
    label: str
    explanation: str


@dataclasses.dataclass(slots=True)
class Labels:
    """Votes by pairID, in the order of the file.

    Attributes:
      votes: {pairID: those that count}; () = people were asked, and nobody's label counts.
      left_out: rows that do not count, by reason.
    """

    votes: dict[str, tuple[Vote, ...]]
    left_out: collections.Counter


def select(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs that people are asked about."""
    return (pair for pair in pairs if pair.split in _SPLITS and pair.label == 'neutral')


def known(pairs: Iterable[Pair], labels: Mapping[str, str]) -> Iterator[Pair]:
    """Pairs whose right label somebody knows, with that label: trusted items, which check the raters.

    Args:
      pairs: any.
      labels: {pairID: right label}, as of pairs checked by hand; '' = not checked.
    """
    return (dataclasses.replace(pair, label=labels[pair.id]) for pair in pairs if labels.get(pair.id))


def read(path) -> Labels:
    """Reads labels.csv or labels.jsonl of `--mode=human`, or a table of your own.

    A row has `item` (or `pairID`) and `label`; if at hand `rater`, `explanation`, `reason` (why it does not count) and
    `trusted` ('yes': it checked the rater, and is about no pair that people were asked about).

    Raises:
      ValueError: a column is missing, a label that is no class, or the same person twice about one pair; file and line
        are named.
    """
    found: dict[str, dict[str, Vote]] = {}
    labels = Labels({}, collections.Counter())
    for where, row in _table.rows(path, ('label',)):
        row = row | ({'item': row['pairID']} if 'item' not in row and 'pairID' in row else {})
        pair_id = _files.filled(row, 'item', where)
        label = _files.field(row, 'label', str, where).strip().lower()
        reason = (_files.optional_text(row, 'reason', where) or '').strip() or ('' if label else 'no label')
        if label not in ('', *CLASSES):
            raise ValueError(f'{where}: label is {row["label"]!r}, wanted one of {", ".join(CLASSES)}')
        if row.get('trusted') in (True, 'yes'):
            labels.left_out[reason or 'trusted item'] += 1
            continue
        votes = found.setdefault(pair_id, {})
        if reason:
            labels.left_out[reason] += 1
            continue
        rater = _files.optional_text(row, 'rater', where) or where
        if rater in votes:
            raise ValueError(f'{where}: {rater!r} labels {pair_id!r} again')
        votes[rater] = Vote(rater, label, (_files.optional_text(row, 'explanation', where) or '').strip())
    if not found:
        raise ValueError(f'{path}: nobody labelled anything there')
    labels.votes = {pair_id: tuple(votes.values()) for pair_id, votes in found.items()}
    return labels


class Relabelling:
    """Gives pairs the labels that people gave, and counts what that changed.

    Args:
      labels: of `read`.
      attributes: of `relevance.read`, what the explanations of a pair have to name.
    """

    def __init__(self, labels: Labels, attributes: Mapping[str, Sequence[relevance.Attribute]] | None = None):
        self._labels, self._attributes = labels, attributes or {}
        self._left = set(labels.votes)  # not met yet
        self._given: collections.Counter = collections.Counter()
        self._to: dict[str, collections.Counter] = {label: collections.Counter() for label in CLASSES}
        self._none = self._unanimous = 0
        self._raters: dict[str, list[int]] = {}
        self._scores: list[float] = []

    def merge(self, pairs: Iterable[Pair], drop: Callable[[Pair, str, str], None]) -> Iterator[Pair]:
        """The pairs, those that people were asked about with what they said.

        Args:
          pairs: all, in any order.
          drop: is called with a pair that has no majority, `NO_MAJORITY` and a sentence.
        """
        for pair in pairs:
            if pair.id not in self._labels.votes:
                yield pair
                continue
            self._left.discard(pair.id)
            votes = self._labels.votes[pair.id]
            label = stats.majority(vote.label for vote in votes)
            self._count(pair, votes, label)
            if label is None:
                drop(pair, NO_MAJORITY, _detail(votes))
            else:
                yield self._relabelled(pair, votes, label)

    def _relabelled(self, pair: Pair, votes, label: str) -> Pair:
        texts = [vote.explanation for vote in votes if vote.label == label and vote.explanation]
        texts = list(dict.fromkeys(texts))
        if wanted := self._attributes.get(pair.id):
            scores = {text: relevance.score(text, wanted) for text in texts}
            self._scores += scores.values()
            texts.sort(key=lambda text: -scores[text])  # stable: of equals the first one stays first
        changed, first = label != pair.label, pair.original or pair.label
        # Explanations of another label explain the wrong thing; of the same one they are better than none.
        kept = texts[:_MOST] or ([] if changed else pair.explanations)
        return dataclasses.replace(
            pair,
            label=label,
            original='' if first == label else first,  # people may come back to the first one
            explanations=kept,
            marked=pair.marked if kept is pair.explanations else ((), ()),
        )

    def _count(self, pair: Pair, votes, label: str | None) -> None:
        self._given[pair.label] += 1
        self._none += label is None
        self._unanimous += len(votes) > 1 and len({vote.label for vote in votes}) == 1
        if label is not None:
            self._to[pair.label][label] += 1
        for vote in votes:
            row = self._raters.setdefault(vote.rater, [0, 0, 0, 0])
            row[0] += 1
            row[1] += vote.label != pair.label
            row[2] += label is not None
            row[3] += vote.label == label

    def summary(self) -> dict:
        """What was changed, when all pairs have passed; for JSON.

        Returns:
          `pairs` asked about and met; `changed` and `share`, of those with a majority, with its 95 % interval (Wilson);
          `changed_to` {label: n}; `by_class` {label before: {'pairs', 'no_majority', 'changed', 'share' as above}};
          `no_majority`; `unanimous`; `raters`, a row each; `left_out` {reason: rows}; `not_met`, the ids of pairs that
          are not among the data; `relevance` (`relevance.summary`), None where nothing is known of it.
        """
        pairs, decided = self._given.total(), self._given.total() - self._none
        moved = {label: {to: n for to, n in tos.items() if to != label} for label, tos in self._to.items()}
        changed = sum(sum(tos.values()) for tos in moved.values())
        return {
            'pairs': pairs,
            'changed': changed,
            'share': [changed / decided, *map(float, stats.wilson(changed, decided))] if decided else None,
            'changed_to': {to: n for to in CLASSES if (n := sum(tos.get(to, 0) for tos in moved.values()))},
            'by_class': {
                label: {
                    'pairs': n,
                    'no_majority': n - (of := self._to[label].total()),
                    'changed': (some := sum(moved[label].values())),
                    'share': some / of if of else None,
                }
                for label in CLASSES
                if (n := self._given[label])
            },
            'no_majority': self._none,
            'unanimous': self._unanimous,
            'raters': [
                {'rater': rater, 'labels': n, 'changed': other / n, 'with_majority': same / of if of else None}
                for rater, (n, other, of, same) in sorted(self._raters.items(), key=lambda row: (-row[1][0], row[0]))
            ],
            'left_out': dict(self._labels.left_out.most_common()),
            'not_met': sorted(self._left),
            'relevance': relevance.summary(self._scores) if self._attributes else None,
        }


def _detail(votes: Sequence[Vote]) -> str:
    counts = collections.Counter(vote.label for vote in votes)
    said = ', '.join(f'{n} {label}' for label, n in sorted(counts.items()))
    return f'of {len(votes)} people who count no majority of two or more agrees: {said or "none"}'
