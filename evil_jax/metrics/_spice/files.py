"""Tuples on disk, JSON lines of two kinds.

    {"text": "A young man rides.", "tuples": [["man"], ["man", "young"], ["man", "ride"]]}
    {"id": "17", "candidate": [["man"], ["man", "young"]], "references": [[["man"], ["horse"]], [["person"]]]}

A tuple is [object], [object, attribute] or [subject, object, relation], lower-cased lemmas as SPICE's parser gives
them. Those of texts hold for whatever predictions and references read so, of any system and under any protocol. Those
of an id hold for one file of predictions; `references` has a list of tuples for each reference, or one list of all
their tuples: SPICE merges them. With `"texts": [candidate, [reference, ...]]` beside them they are those of these texts
instead, and `references` has a list for each. Other fields are left alone.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence

from evil_jax import records
from evil_jax.metrics import base

Tuples = list[list[str]]


@dataclasses.dataclass
class Kept:
    """What a file has.

    Attributes:
      texts: tuples of texts.
      examples: id -> tuples of the candidate, those of all its references.
    """

    texts: dict[str, Tuples] = dataclasses.field(default_factory=dict)
    examples: dict[str, tuple[Tuples, Tuples]] = dataclasses.field(default_factory=dict)

    def of(self, name: str, candidate: str, references: Sequence[str]) -> tuple[Tuples, Tuples] | None:
        """Tuples of an example's candidate and of all its references; None where some are not known."""
        if self.lacking(candidate, references):
            return self.examples.get(name)
        return self.texts[candidate], [part for text in references for part in self.texts[text]]

    def lacking(self, candidate: str, references: Sequence[str]) -> list[str]:
        """Those of the texts that have no tuples."""
        return [text for text in (candidate, *references) if text not in self.texts]


def read(path: str | os.PathLike) -> Kept:
    """What is in a file.

    Raises:
      OSError: it cannot be read.
      ValueError: names the file and the line of what is neither kind, of an id that was there before, or of a text that
        had other tuples before.
    """
    with open(path, 'rb') as file:
        data = file.read()
    found = Kept()
    for number, line in enumerate(data.split(b'\n'), 1):
        if not line.strip():
            continue
        try:
            _add(found, json.loads(line))
        except ValueError as error:
            raise ValueError(f'{path}:{number}: {error}') from error
    return found


def append(path: str | os.PathLike, texts: Mapping[str, Tuples]) -> None:
    """Adds tuples of texts to a file, which need not be there: the file is the old one or has all of them.

    Of two processes that do so at once the first may be forgotten: its texts are then parsed once more.
    """
    try:
        with open(path, 'rb') as file:
            there = file.read()
    except FileNotFoundError:
        there = b''
    if there and not there.endswith(b'\n'):
        there += b'\n'
    # ASCII: half surrogate pairs survive.
    lines = (json.dumps({'text': text, 'tuples': tuples}) + '\n' for text, tuples in texts.items())
    records.atomic_write(path, there + ''.join(lines).encode())


def check_ids(path, found: Kept, predictions: base.Predictions) -> None:
    """Raises ValueError where a file knows tuples by ids alone, and ids are in one of both only."""
    if found.examples and not found.texts:
        try:
            base.same_ids(found.examples, predictions, 'tuples', 'prediction')
        except ValueError as error:
            raise ValueError(f'{path}: {error}') from error


def _add(found: Kept, row) -> None:
    if isinstance(row, dict) and {'text', 'tuples'} <= row.keys():
        if not isinstance(row['text'], str):
            raise ValueError(f'text: found {_short(row["text"])}, wanted text')
        _add_text(found, row['text'], _tuples(row['tuples'], 'tuples'))
        return
    if not isinstance(row, dict) or not {'id', 'candidate', 'references'} <= row.keys():
        raise ValueError(f'wanted an object with id, candidate and references, or text and tuples, found {_short(row)}')
    if not isinstance(row['id'], str | int) or isinstance(row['id'], bool):
        raise ValueError(f'id is {row["id"]!r}, wanted text or a whole number')
    name, candidate, references = str(row['id']), _tuples(row['candidate'], 'candidate'), row['references']
    if isinstance(references, list) and any(_is_tuple(part) for part in references):
        references = [references]
    if not isinstance(references, list):
        raise ValueError(f'references: found {_short(references)}, wanted a list of lists of tuples')
    references = [_tuples(part, 'references') for part in references]
    if row.get('texts') is not None:
        texts = _texts(row['texts'])
        if len(texts) != 1 + len(references):
            raise ValueError(f'references: found {len(references)} lists of tuples for {len(texts) - 1} texts')
        for text, tuples in zip(texts, (candidate, *references)):
            _add_text(found, text, tuples)
        return
    if name in found.examples:
        raise ValueError(f'id {name!r} was there before')
    found.examples[name] = candidate, [part for tuples in references for part in tuples]


def _add_text(found: Kept, text: str, tuples: Tuples) -> None:
    if sorted(found.texts.setdefault(text, tuples)) != sorted(tuples):
        raise ValueError(f'{text[:80]!r} had other tuples before')


def _texts(value) -> list[str]:
    """Candidate and references."""
    try:
        candidate, references = value
        if isinstance(references, list) and all(isinstance(text, str) for text in (candidate, *references)):
            return [candidate, *references]
    except (TypeError, ValueError):
        pass
    raise ValueError(f'texts: found {_short(value)}, wanted [candidate, [reference, ...]]')


def _tuples(value, what: str) -> Tuples:
    if not isinstance(value, list):
        raise ValueError(f'{what}: found {_short(value)}, wanted a list of tuples')
    for part in value:
        if not _is_tuple(part) or len(part) > 3:
            raise ValueError(f'{what}: found {_short(part)}, wanted a list of one, two or three words')
    return value


def _is_tuple(part) -> bool:
    return isinstance(part, list) and bool(part) and all(isinstance(word, str) for word in part)


def _short(value) -> str:
    said = json.dumps(value)
    return said if len(said) < 80 else said[:77] + '...'
