"""Answers by the ids of questions, compactly: 20 bytes a question, with probabilities 40 more, and with explanations 12
and their bytes more.

Ids are kept as 64-bit hashes of the running process: that two of a million questions share one has a probability of
3e-8, and `exchange.write` would have told of it. An answer is a number, and the different answers are kept once.
"""

import array
import bisect
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from evil_jax import lookup
from evil_jax.data import outputs
from evil_jax.data.sources import _files
from evil_jax.records import Prediction

TOP = 5  # answers whose probabilities are kept
_SHOWN = 10  # ids that are named
_CHOICES = 1 << 15  # an index beyond is none of a choice: the answer's text tells
_NONE = -1


class Reply(NamedTuple):
    """One answer.

    Attributes:
      answer: its text.
      index: of the choice, where the system said which of a list it is.
      scores: probabilities of the likeliest answers; {} without.
      explanation: None where none was read.
    """

    answer: str
    index: int | None
    scores: dict[str, float]
    explanation: str | None


class Answers:
    """Answers to the questions of an exchange.

    Attributes:
      counts: what was left out (outputs.Counts).
      scored: whether there are probabilities.
      explained: number of explanations that are not empty.
    """

    def __init__(self, places, texts, codes, indexes, scores, explanations, counts):
        self._places, self._texts, self._codes, self._indexes = places, texts, codes, indexes
        self._scores, self._explanations = scores, explanations
        self.counts = counts

    @property
    def scored(self) -> bool:
        return self._scores is not None

    @property
    def explained(self) -> int:
        return self._explanations.filled if self._explanations else 0

    def get(self, identifier: str) -> Reply | None:
        """The answer to a question, None where it is missing (which was allowed)."""
        place = self._places.find(identifier)
        if place == _NONE or self._codes[place] == _NONE:
            return None
        scores = {}
        if self._scores is not None:
            codes, values = self._scores
            scores = {self._texts[c]: v for c, v in zip(codes[place].tolist(), values[place].tolist()) if c != _NONE}
        index = self._indexes[place] if self._indexes and self._indexes[place] != _NONE else None
        explanation = self._explanations.get(place) if self._explanations else None
        return Reply(self._texts[self._codes[place]], index, scores, explanation)

    def explanation(self, identifier: str) -> str | None:
        """Of an answer; None where the answer or its explanation is missing, or none were read."""
        reply = self.get(identifier)
        return reply.explanation if reply else None


class Reader:
    """Puts predictions in their places, and counts those that have none."""

    def __init__(self, asked, allow: Collection[str], explanations: bool):
        for word in sorted(set(allow) - set(outputs.ALLOW)):
            raise ValueError(f'unknown word {word!r} in allow.{lookup.nearest(word, outputs.ALLOW)}')
        self._asked, self._allow = asked, allow
        self._places = _Places(asked)
        count = len(self._places)
        self._codes, self._indexes, self._scores = array.array('i', [_NONE]) * count, None, None
        self._explanations = _Texts(count) if explanations else None
        self._texts = {}
        self._read = self._doubled = self._differ = self._extra = 0
        self._doubled_ids, self._extra_ids, self._first = [], [], None

    def add(self, prediction: Prediction, text: str | None, path) -> None:
        """One answer, and the question that its row repeats, if it does."""
        self._read += 1
        self._first = self._first or prediction.id
        place = self._places.find(prediction.id)
        if place == _NONE and prediction.id.startswith("'"):  # as asked.csv writes ids that look like formulas
            place = self._places.find(prediction.id[1:])
        if place == _NONE:
            self._extra += 1
            self._extra_ids += [prediction.id] * (len(self._extra_ids) < _SHOWN)
            return
        if text is not None and self._places.texts[place] != _text_hash(text):
            self._refuse_text(place, prediction.id, text, path)
        if prediction.answer is None:
            raise ValueError(f'{path}: {prediction.id!r} has no answer, wanted answers, with or without explanations')
        code = self._texts.setdefault(prediction.answer, len(self._texts))
        if self._codes[place] != _NONE:
            self._doubled += 1
            self._differ += self._codes[place] != code
            self._doubled_ids += [prediction.id] * (len(self._doubled_ids) < _SHOWN)
            return
        self._codes[place] = code
        if prediction.answer_index is not None and 0 <= prediction.answer_index < _CHOICES:
            self._indexes = self._indexes or array.array('h', [_NONE]) * len(self._codes)
            self._indexes[place] = prediction.answer_index
        if prediction.answer_scores:
            self._add_scores(place, prediction, path)
        if self._explanations and prediction.explanation is not None:
            self._explanations.put(place, prediction.explanation)

    def answers(self, path) -> Answers:
        """All of them, when everything was read; `path` begins the error message."""
        missing = self._codes.count(_NONE)
        counts = outputs.Counts(self._doubled, missing, self._extra)
        faults = {
            'duplicates': self._doubled and self._told_doubled(),
            'missing': missing and f'no answer to {_some(missing, self._missing_ids())}',
            'extra': self._extra and f'never asked: {_some(self._extra, self._extra_ids)}',
        }
        refused = [name for name, fault in faults.items() if fault and name not in self._allow]
        nothing = missing == len(self._codes)
        if refused or nothing:
            told = '; '.join(faults[name] for name in refused) or 'nothing in common'
            asked = self._asked.path('asked')
            advice = f'To leave them out, allow {",".join(refused)}'
            if nothing:
                advice = f'No id in common: these are not the answers to {asked}'
            elif self._extra:
                advice = f'Are these the answers to {asked}? {advice}'
            raise ValueError(f'{path}: {told} (of {self._read:,} answers and {len(self._codes):,} questions). {advice}')
        texts = list(self._texts)
        return Answers(self._places, texts, self._codes, self._indexes, self._scores, self._explanations, counts)

    def _add_scores(self, place, prediction, path):
        values = prediction.answer_scores
        if not all(type(v) in (int, float) and 0 <= v <= 1 for v in values.values()):  # nor NaN
            raise ValueError(
                f'{path}: answer_scores of {prediction.id!r} are {_files.shown(values)}, wanted probabilities'
            )
        if self._scores is None:
            shape = len(self._codes), TOP
            self._scores = np.full(shape, _NONE, np.int32), np.zeros(shape, np.float32)
        likeliest = sorted(values.items(), key=lambda item: -item[1])[:TOP]
        codes = [self._texts.setdefault(answer, len(self._texts)) for answer, _ in likeliest]
        self._scores[0][place, : len(codes)] = codes
        self._scores[1][place, : len(codes)] = [value for _, value in likeliest]

    def _told_doubled(self):
        differ = f'{self._differ:,} of them with another answer' if self._differ else 'always with the same answer'
        return f'answered again: {_some(self._doubled, self._doubled_ids)}, {differ}'

    def _missing_ids(self):
        ids = (row['id'] for row in self._asked.rows())
        left = (i for i in ids if self._codes[self._places.find(i)] == _NONE)
        return [i for i, _ in zip(left, range(_SHOWN))]

    def _refuse_text(self, place, identifier, text, path):
        wanted = next(row['text'] for row in self._asked.rows() if self._places.find(row['id']) == place)
        raise ValueError(
            f'{path}: these are answers to other questions than those of {self._asked.path("asked")}: {identifier!r} '
            f'is {_files.shown(text)} here and {_files.shown(wanted)} there'
        )


class _Places:
    """Number of a question among the sorted hashes of all ids, and the hashes of the texts."""

    def __init__(self, asked):
        ids, texts = array.array('q'), array.array('q')
        for row in asked.rows():
            ids.append(hash(row['id']))
            texts.append(_text_hash(row['text']))
        order = np.argsort(np.frombuffer(ids, np.int64))
        self._ids = array.array('q', np.frombuffer(ids, np.int64)[order].tobytes())
        self.texts = array.array('q', np.frombuffer(texts, np.int64)[order].tobytes())

    def __len__(self):
        return len(self._ids)

    def find(self, identifier: str) -> int:
        key = hash(identifier)
        place = bisect.bisect_left(self._ids, key)
        return place if place < len(self._ids) and self._ids[place] == key else _NONE


class _Texts:
    """Texts one behind the other in UTF-8, by place."""

    def __init__(self, count):
        self._bytes, self.filled = bytearray(), 0
        self._starts, self._lengths = array.array('q', [0]) * count, array.array('i', [_NONE]) * count

    def put(self, place: int, text: str) -> None:
        data = text.encode()
        self._starts[place], self._lengths[place] = len(self._bytes), len(data)
        self._bytes += data
        self.filled += bool(text.strip())

    def get(self, place: int) -> str | None:
        if self._lengths[place] == _NONE:
            return None
        start = self._starts[place]
        return self._bytes[start : start + self._lengths[place]].decode()


def _text_hash(text: str) -> int:
    """Programs on the way may change blanks and case, and asked.csv puts a ' before what looks like a formula."""
    return hash(' '.join(text.lstrip().removeprefix("'").split()).casefold())


def _some(count: int, ids: list[str]) -> str:
    listed = ', '.join(repr(i[:80]) for i in ids)
    return f'{count:,} id{"s" if count != 1 else ""}: {listed}{", ..." if count > len(ids) else ""}'
