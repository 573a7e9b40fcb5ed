"""Tuples on disk: JSON lines, one example a line.

    {"id": "17", "candidate": [["man"], ["man", "young"], ["man", "horse", "ride"]],
     "references": [[["man"], ["horse"]], [["person"]]], "texts": ["A young man rides.", ["A man ...", "..."]]}

A tuple is [object], [object, attribute] or [subject, object, relation], lower-cased lemmas as SPICE's parser gives
them. `references` has a list of tuples for each reference, or one list of all their tuples: SPICE merges them. `texts`
is optional: the candidate and its references, so that tuples of other texts are noticed. Other fields are left alone.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import NamedTuple

from evil_jax import records
from evil_jax.metrics import base
from evil_jax.metrics.resources import Unavailable


class Example(NamedTuple):
    """Tuples of one candidate, of each of its references, and the texts they were made of, where known."""

    candidate: list[list[str]]
    references: list[list[list[str]]]
    texts: tuple[str, list[str]] | None = None

    @property
    def merged(self) -> list[list[str]]:
        """Tuples of all references, one reference after the other."""
        return [part for tuples in self.references for part in tuples]


def read(path: str | os.PathLike) -> tuple[dict[str, Example], str]:
    """Examples by id; and 8 hex digits that tell one file from another.

    Raises:
      Unavailable: there is no such file.
      ValueError: names the file and the line of what is no example, or of an id that was there before.
    """
    try:
        with open(path, 'rb') as file:
            data = file.read()
    except OSError as error:
        raise Unavailable(f'needs the tuples of {path}: {error.strerror}') from error
    found: dict[str, Example] = {}
    for number, line in enumerate(data.split(b'\n'), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, example = _example(row)
            if name in found:
                raise ValueError(f'id {name!r} was there before')
        except ValueError as error:
            raise ValueError(f'{path}:{number}: {error}') from error
        found[name] = example
    return found, hashlib.sha256(data).hexdigest()[:8]


def write(path: str | os.PathLike, examples: Iterable[tuple[str, Example]]) -> None:
    """Writes what `read` reads, atomically."""
    lines = []
    for name, example in examples:
        row = {'id': name, 'candidate': example.candidate, 'references': example.references}
        if example.texts is not None:
            row['texts'] = example.texts
        lines.append(json.dumps(row) + '\n')  # ASCII: half surrogate pairs survive
    records.atomic_write(path, ''.join(lines))


def match(path, found: dict[str, Example], predictions: base.Predictions, references: base.References) -> None:
    """Checks that a file has the tuples of these examples.

    Raises:
      ValueError: ids that only one side has.
      Unavailable: the tuples were made of other texts, for instance those of another protocol.
    """
    try:
        base.same_ids(found, predictions, 'tuples', 'prediction')
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from error
    for name, example in found.items():
        if example.texts is not None and example.texts != (predictions[name], list(references[name])):
            raise Unavailable(
                f'{path}: the tuples of {name!r} were made of other texts ({example.texts[0]!r}, not '
                f'{predictions[name]!r}, or other references); make them anew'
            )


def _example(row) -> tuple[str, Example]:
    if not isinstance(row, dict) or not {'id', 'candidate', 'references'} <= row.keys():
        raise ValueError(f'wanted an object with id, candidate and references, found {_short(row)}')
    if not isinstance(row['id'], str | int) or isinstance(row['id'], bool):
        raise ValueError(f'id is {row["id"]!r}, wanted text or a whole number')
    references = row['references']
    if isinstance(references, list) and any(_is_tuple(part) for part in references):
        references = [references]
    if not isinstance(references, list):
        raise ValueError(f'references: found {_short(references)}, wanted a list of lists of tuples')
    for name, tuples in (('candidate', row['candidate']), *(('references', part) for part in references)):
        if not isinstance(tuples, list):
            raise ValueError(f'{name}: found {_short(tuples)}, wanted a list of tuples')
        for part in tuples:
            if not _is_tuple(part) or len(part) > 3:
                raise ValueError(f'{name}: found {_short(part)}, wanted a list of one, two or three words')
    return str(row['id']), Example(row['candidate'], references, _texts(row.get('texts')))


def _texts(value) -> tuple[str, list[str]] | None:
    if value is None:
        return None
    try:
        candidate, references = value
        if isinstance(candidate, str) and isinstance(references, list):
            return candidate, references
    except (TypeError, ValueError):
        pass
    raise ValueError(f'texts: found {_short(value)}, wanted [candidate, [reference, ...]]')


def _is_tuple(part) -> bool:
    return isinstance(part, list) and bool(part) and all(isinstance(word, str) for word in part)


def _short(value) -> str:
    said = json.dumps(value)
    return said if len(said) < 80 else said[:77] + '...'
