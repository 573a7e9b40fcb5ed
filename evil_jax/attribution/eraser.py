"""Files of rationales as ERASER's metrics.py reads them (DeYoung et al. 2020): JSON lines, one annotation each.

write(path, [Result('negR_900.txt', [Rationale('negR_900.txt', runs(picked))]), ...])
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evil_jax import records
from evil_jax.attribution.picks import Spans

_SCORES = 'classification_scores'
_WITHOUT, _ONLY = f'comprehensiveness_{_SCORES}', f'sufficiency_{_SCORES}'


@dataclasses.dataclass
class Rationale:
    """What was picked in one document: spans [start, end) of tokens, and where known the score of every token.

    Published runs repeat spans; here each is there once, in order.
    """

    docid: str
    spans: Spans
    scores: Sequence[float] | None = None

    def __post_init__(self):
        self.spans = sorted({(int(start), int(end)) for start, end in self.spans})


@dataclasses.dataclass
class Result:
    """One annotation's rationales, and where known what the model says with and without them.

    Attributes:
      id: of the annotation.
      rationales: one a document.
      classification: predicted class; with `probabilities` or not at all.
      probabilities: of all classes, for the whole text.
      without, only: the same for the text without its rationale, and for the rationale alone.
      shares: share of the words that is removed -> (without, only), for AOPC; with all of the above.
    """

    id: str
    rationales: Sequence[Rationale]
    classification: str | None = None
    probabilities: Mapping[str, float] | None = None
    without: Mapping[str, float] | None = None
    only: Mapping[str, float] | None = None
    shares: Mapping[float, tuple[Mapping[str, float], Mapping[str, float]]] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record in ERASER's own fields. Raises ValueError where its verification would refuse it."""
        _check(self)
        row: dict[str, Any] = {'annotation_id': self.id, 'rationales': [_rationale(r) for r in self.rationales]}
        if self.classification is not None:
            row['classification'] = self.classification
        for name, table in ((_SCORES, self.probabilities), (_WITHOUT, self.without), (_ONLY, self.only)):
            if table is not None:
                row[name] = _floats(table)
        if self.shares:
            row['thresholded_scores'] = [
                {'threshold': float(share), _WITHOUT: _floats(without), _ONLY: _floats(only)}
                for share, (without, only) in sorted(self.shares.items())
            ]
        return row

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> 'Result':
        """Reads a record. Raises ValueError naming the field that is missing or of another kind."""
        row = _of(row, dict, 'the record')
        rationales = []
        for rationale in _get(row, 'rationales', list):
            spans = _of(rationale, dict, 'a rationale').get('hard_rationale_predictions') or []
            spans = [(_get(s, 'start_token', int), _get(s, 'end_token', int)) for s in _of(spans, list, 'the spans')]
            scores = rationale.get('soft_rationale_predictions')
            scores = None if scores is None else _of(scores, list, 'soft_rationale_predictions')
            rationales.append(Rationale(_get(rationale, 'docid', str), spans, scores))
        shares = {}
        for scores in _of(row.get('thresholded_scores') or [], list, 'thresholded_scores'):
            shares[_get(scores, 'threshold', (int, float))] = _get(scores, _WITHOUT, dict), _get(scores, _ONLY, dict)
        result = cls(
            _get(row, 'annotation_id', str), rationales, row.get('classification'), row.get(_SCORES),
            row.get(_WITHOUT), row.get(_ONLY), shares,
        )  # fmt: skip
        _check(result)
        return result


def write(path, results: Iterable[Result]) -> None:
    """Writes JSON lines, atomically.

    Raises:
      ValueError: what ERASER's verification refuses: overlapping spans, probabilities without a class, ...
    """
    records.write_jsonl(path, results)


def read(path) -> list[Result]:
    """Reads JSON lines.

    Raises:
      ValueError: what `write` refuses, or a repeated annotation id; the file and the line are named.
    """
    return records.read_jsonl(path, Result)


def _rationale(rationale: Rationale) -> dict[str, Any]:
    spans = [{'start_token': start, 'end_token': end} for start, end in rationale.spans]
    row: dict[str, Any] = {'docid': rationale.docid, 'hard_rationale_predictions': spans}
    if rationale.scores is not None:
        row['soft_rationale_predictions'] = [float(score) for score in rationale.scores]
    return row


def _floats(table) -> dict[str, float]:
    return {name: float(value) for name, value in table.items()}


def _check(result: Result) -> None:
    where = f'annotation {result.id!r}'
    docids = [rationale.docid for rationale in result.rationales]
    if len(set(docids)) < len(docids):
        raise ValueError(f'{where}: two rationales of one document among {docids}')
    for rationale in result.rationales:
        _check_rationale(rationale, f'{where}: document {rationale.docid!r}')
    if (result.classification is None) != (result.probabilities is None):
        raise ValueError(f'{where}: classification and {_SCORES} go together, but one of them is missing')
    if result.probabilities is None and (result.without is not None or result.only is not None):
        raise ValueError(f'{where}: {_WITHOUT} or {_ONLY} without {_SCORES}')
    if result.shares and None in (result.without, result.only):
        raise ValueError(f'{where}: thresholded_scores without {_WITHOUT} and {_ONLY}')
    if result.classification is not None:
        _of(result.classification, str, f'{where}: classification')
    tables = [result.probabilities, result.without, result.only, *(t for pair in result.shares.values() for t in pair)]
    for table in (table for table in tables if table is not None):
        wrong = [v for v in _of(table, Mapping, f'{where}: scores').values() if not _finite(v)]
        if wrong or result.classification not in table:
            raise ValueError(
                f'{where}: scores of classes are {table!r}, wanted numbers, one of {result.classification!r}'
            )


def _check_rationale(rationale: Rationale, where: str) -> None:
    end = 0
    for span in rationale.spans:
        if not end <= span[0] < span[1]:
            raise ValueError(f'{where}: the span {list(span)} is empty, before the first token or overlaps another one')
        end = span[1]
    if rationale.scores is not None:
        if bad := [score for score in rationale.scores if not _finite(score)]:
            raise ValueError(f'{where}: the score {bad[0]!r} of a token is no number')
        if len(rationale.scores) < end:
            raise ValueError(f'{where}: {len(rationale.scores)} scores of tokens, but a span ends at {end}')


def _finite(value) -> bool:
    try:
        return not isinstance(value, bool | str) and math.isfinite(value)
    except TypeError:
        return False


def _get(row, name, wanted):
    if name not in _of(row, dict, 'an entry'):
        raise ValueError(f'missing field {name!r}')
    return _of(row[name], wanted, name)


def _of(value, wanted, what):
    if not isinstance(value, wanted) or isinstance(value, bool):
        names = ' or '.join(kind.__name__ for kind in (wanted if isinstance(wanted, tuple) else (wanted,)))
        raise ValueError(f'{what} is {value!r}, wanted {names}')
    return value
