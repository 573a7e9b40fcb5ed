"""Edited questions with what was answered to them: one row an edit, in columns.

A row takes 97 bytes, so a million edits are a table of 97 MB; texts are in vocabularies beside the columns. What
else an edit has is in its record, which `offset` finds.
"""

import array
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evil_jax.counterfactual import edits

TRANSITIONS = (
    'kept right', 'kept wrong', 'right->wrong', 'wrong->right', 'wrong->other', 'right->right', 'kept', 'changed',
)  # fmt: skip

# Column -> (its vocabulary, type code). Columns with the same vocabulary have comparable codes.
_TEXTS = {
    'family': ('family', 'B'), 'example': ('example', 'i'), 'image': ('image', 'i'), 'source': ('word', 'i'),
    'target': ('word', 'i'), 'source_synset': ('synset', 'i'), 'target_synset': ('synset', 'i'), 'asks': ('asks', 'H'),
    'role': ('role', 'H'), 'question_type': ('question_type', 'i'), 'answer_type': ('answer_type', 'H'),
    'answer': ('answer', 'i'), 'answer_star': ('answer', 'i'), 'gold': ('answer', 'i'),
    'transition': ('transition', 'B'), 'expectation': ('expectation', 'B'),
}  # fmt: skip
# Column -> (type code, value where it is not given).
_NUMBERS = {
    'serial': ('H', 0), 'offset': ('q', -1), 'senses': ('H', 0), 'twin': ('?', False), 'negated': ('?', False),
    'quality': ('f', 1.0), 'distance': ('f', np.nan), 'similarity': ('f', np.nan), 'right': ('f', np.nan),
    'right_star': ('f', np.nan), 'kept': ('?', True), 'uncertain': ('?', False), 'was_uncertain': ('?', False),
    'shift': ('f', np.nan), 'log_odds': ('f', np.nan), 'rank': ('B', 0), 'met': ('b', -1), 'expected_right': ('b', -1),
}  # fmt: skip
_FIXED = {'transition': TRANSITIONS, 'expectation': edits.EXPECTATIONS}
_UNKNOWN = {'transition': 'kept'}


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Judged:
    """Columns of N rows. A column of texts holds codes, [N] integers: row i's text is `names[column][column[i]]`.

    a is the answer to the question as it was, a* the answer to the edited one, both after normalisation (judging.py).

    Attributes:
      names: column of texts -> its vocabulary. `source` and `target` share one, so do the two synsets, and `answer`,
        `answer_star` and `gold`; '' is a text that is not known.
      family: uint8 codes. The edit's family.
      example, image: int32 codes. Ids.
      serial: uint16. Number of the edit within example and family, from 0.
      offset: int64. Where the edit's line begins in edits.jsonl, in bytes; -1 where it is from no file.
      source, target: int32 codes. Dictionary forms in lower case; `target` of a deletion is ''.
      source_synset, target_synset: int32 codes. WordNet senses.
      asks: uint16 codes. What the question asks for: 'colour', 'count', 'yes/no', ...
      role: uint16 codes. Of a noun: 'head', 'modifier' or 'of'.
      question_type: int32 codes; answer_type: uint16 codes. The example's.
      senses: uint16. How many senses the source has.
      twin: bool. A verb or adjective that is a noun as well.
      negated: bool. After a negator or a downward quantifier.
      quality: float32, 0 to 1. How sure sense and replacement are.
      distance: float32. Of the two colours; NaN without.
      similarity: float32. Path similarity of the two senses; NaN without.
      answer, answer_star: int32 codes. a and a*; of a choice from a list its number, '0', '1', ...
      gold: int32 codes. The right answer to the original question: a class, the number of a choice, or what most
        annotators say.
      right, right_star: float32, 0 to 1. Accuracy of a and of a*, both against the right answers to the ORIGINAL
        question; NaN where there are none.
      kept: bool. a* is a.
      transition: uint8 codes into `TRANSITIONS`; an answer is right from an accuracy of one half on. Without right
        answers 'kept' or 'changed'.
      uncertain, was_uncertain: bool. a* (a) says that there is no answer: 'unknown', 'nothing', ...
      shift: float32, 0 to 1. Total variation between the probabilities of the answers before and after; NaN without
        probabilities.
      log_odds: float32. By how much the log-odds of a fell, natural logarithm; NaN without probabilities.
      rank: uint8. Place of a among the answers to the edited question, from 1; one more than were listed if it is not
        among them; 0 without probabilities.
      expectation: uint8 codes into `edits.EXPECTATIONS`. What a sound model does; '' is not known.
      met: int8. 1 where the expectation INV or CHANGE is met, 0 where not, -1 without one.
      expected_right: int8. 1 where a* is one of the right new answers, 0 where not, -1 where they are not known.
      labels: classes that answers are (e-SNLI-VE); () for others.
      left_out: reason -> edits that were not judged ('no answer': allowed to be missing).
      signature: how answers were compared, for reports.
      baselines: rows of the same columns and vocabularies, whose families are those of baselines.py; None without.
    """

    names: Mapping[str, Sequence[str]]
    family: np.ndarray
    example: np.ndarray
    image: np.ndarray
    serial: np.ndarray
    offset: np.ndarray
    source: np.ndarray
    target: np.ndarray
    source_synset: np.ndarray
    target_synset: np.ndarray
    asks: np.ndarray
    role: np.ndarray
    question_type: np.ndarray
    answer_type: np.ndarray
    senses: np.ndarray
    twin: np.ndarray
    negated: np.ndarray
    quality: np.ndarray
    distance: np.ndarray
    similarity: np.ndarray
    answer: np.ndarray
    answer_star: np.ndarray
    gold: np.ndarray
    right: np.ndarray
    right_star: np.ndarray
    kept: np.ndarray
    transition: np.ndarray
    uncertain: np.ndarray
    was_uncertain: np.ndarray
    shift: np.ndarray
    log_odds: np.ndarray
    rank: np.ndarray
    expectation: np.ndarray
    met: np.ndarray
    expected_right: np.ndarray
    labels: tuple[str, ...] = ()
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)
    signature: str = ''
    baselines: 'Judged | None' = None

    def __len__(self):
        return len(self.family)

    def code(self, column: str, text: str) -> int:
        """The code of a text in a column, -1 where it does not occur."""
        names = self.names[column]
        return names.index(text) if text in names else -1

    def where(self, **texts: str) -> np.ndarray:
        """Rows with these texts, [N] bool: `where(family='sibling', asks='colour')`."""
        rows = np.ones(len(self), bool)
        for column, text in texts.items():
            rows &= getattr(self, column) == self.code(column, text)
        return rows

    def texts(self, column: str) -> np.ndarray:
        """A column's texts, [N] str objects."""
        return np.array(self.names[column], object)[getattr(self, column)]

    def families(self) -> list[str]:
        """Families with a row, in the order of `edits.FAMILIES`, others behind them."""
        order = {family: place for place, family in enumerate(edits.FAMILIES)}
        found = [self.names['family'][code] for code in np.unique(self.family)]
        return sorted(found, key=lambda family: (order.get(family, len(order)), family))

    def id(self, row: int) -> str:
        """The edit's id."""
        number = f'.{self.serial[row]}' if self.serial[row] else ''
        return f'{self.names["example"][self.example[row]]}#{self.names["family"][self.family[row]]}{number}'

    def take(self, rows: np.ndarray) -> 'Judged':
        """The rows of a mask, or of indexes, with the same vocabularies and baselines."""
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in (*_TEXTS, *_NUMBERS)})


class Builder:
    """Appends rows; texts become codes on the way."""

    def __init__(self, vocabularies: dict[str, dict[str, int]] | None = None):
        """Takes the vocabularies of another builder, where codes have to be comparable."""
        if vocabularies is None:
            vocabularies = {vocabulary: {} for vocabulary, _ in _TEXTS.values()}
            vocabularies |= {name: {text: code for code, text in enumerate(known)} for name, known in _FIXED.items()}
        self.vocabularies = vocabularies
        self._columns = {name: array.array(code) for name, (_, code) in _TEXTS.items()}
        self._columns |= {name: array.array('b' if code == '?' else code) for name, (code, _) in _NUMBERS.items()}
        append = {name: column.append for name, column in self._columns.items()}
        self._texts = [
            (name, vocabularies[vocabulary], append[name], _UNKNOWN.get(name, ''))
            for name, (vocabulary, _) in _TEXTS.items()
        ]
        self._numbers = [(name, append[name], unknown) for name, (_, unknown) in _NUMBERS.items()]

    def __len__(self):
        return len(self._columns['family'])

    def add(self, **values: Any) -> None:
        """One row; columns that are not given are unknown."""
        if not self._columns.keys() >= values.keys():
            raise ValueError(f'no column {min(values.keys() - self._columns.keys())!r} of Judged')
        for name, codes, append, unknown in self._texts:
            text = values.get(name, unknown)
            if text not in codes and name in _FIXED:
                raise ValueError(f'{name} is {text!r}, wanted one of {", ".join(map(repr, codes))}')
            append(codes.setdefault(text, len(codes)))
        for name, append, unknown in self._numbers:
            append(values.get(name, unknown))

    def build(self, **more: Any) -> Judged:
        """The table; `more` are the fields that are no columns. Nothing can be added afterwards."""
        names = {vocabulary: list(codes) for vocabulary, codes in self.vocabularies.items()}
        codes = {name: code for name, (_, code) in _TEXTS.items()} | {
            name: code for name, (code, _) in _NUMBERS.items()
        }
        # Views: nothing is copied.
        columns = {name: np.asarray(memoryview(self._columns.pop(name))).view(code) for name, code in codes.items()}
        return Judged(names={name: names[vocabulary] for name, (vocabulary, _) in _TEXTS.items()}, **columns, **more)


def of_rows(rows: Iterable[Mapping[str, Any]], **more: Any) -> Judged:
    """A table of rows given as dictionaries of texts and numbers, for small tables."""
    builder = Builder()
    for row in rows:
        builder.add(**row)
    return builder.build(**more)
