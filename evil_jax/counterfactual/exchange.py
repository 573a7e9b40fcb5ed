"""Edited questions as files for any system to answer, and its answers back.

`write` puts into a folder:

- edits.jsonl: the edits (edits.Edit);
- baselines.jsonl: what is asked beside them (baselines.py), records of the same kind;
- asked.jsonl: what a system answers, a row a question, `{"id", "image_id", "text", "choices"?, "objects"?, "image"?,
  "repeat"?}`. The question as it was has its example's id. `"image": "blank"` asks for a picture without content,
  `"repeat": 1` for a second answer to a question that was asked already;
- asked.csv: the same for spreadsheets; lists are JSON texts in their cells;
- exchange.json: numbers of rows and hashes of the files, which belong together.

A system adds "answer" to the rows, and "answer_scores" (probabilities of its likeliest answers) and "explanation" where
it has them; it may leave the other fields away, but "id". Where a row still has its text, it must be the text that was
asked: answers to the questions of another folder are found out.

Everything is read and written as a stream: memory does not grow with the number of edits, but for 16 bytes a question.
"""

import array
import csv
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evil_jax import records
from evil_jax.counterfactual import _answers, baselines
from evil_jax.counterfactual.edits import Edit
from evil_jax.data import outputs
from evil_jax.data.sources import _files
from evil_jax.records import Example
from evil_jax.text import csv_cell

FILES = {'edits': 'edits.jsonl', 'baselines': 'baselines.jsonl', 'asked': 'asked.jsonl', 'table': 'asked.csv'}
MANIFEST = 'exchange.json'
COLUMNS = ('id', 'image_id', 'text', 'choices', 'objects', 'image', 'repeat')

_encode, _decode = json.JSONEncoder(ensure_ascii=False).encode, json.JSONDecoder().decode


@dataclasses.dataclass(frozen=True)
class Asked:
    """A folder that `write` wrote.

    Attributes:
      folder: its path.
      counts: rows of each of `FILES`.
      hashes: sha256 of each, first 16 hex digits.
      about: what `write` was given to remember.
    """

    folder: pathlib.Path
    counts: Mapping[str, int]
    hashes: Mapping[str, str]
    about: Mapping[str, Any]

    @classmethod
    def open(cls, folder) -> 'Asked':
        """Opens a folder.

        Raises:
          ValueError: no such folder, or a file in it that is not what was written.
        """
        folder = pathlib.Path(folder)
        if not (folder / MANIFEST).is_file():
            raise ValueError(f'{folder}: has no {MANIFEST}: no edited questions were written there')
        path = folder / MANIFEST
        manifest = _files.checked(_files.read_json(path), dict, f'{path}: the document')
        counts, hashes, about = (
            _files.field(manifest, name, dict, str(path)) for name in ('counts', 'hashes', 'about')
        )
        for name in ('edits', 'baselines', 'asked'):
            path, wanted = folder / FILES[name], hashes.get(name)
            found = records.file_hash(path) if path.is_file() else 'no file'
            if found != wanted:
                raise ValueError(
                    f'{path}: has changed since it was written together with {MANIFEST} (sha256 {found}, wanted '
                    f'{wanted}). Remove {folder / MANIFEST}, and all of it is written again'
                )
        return cls(folder, counts, hashes, about)

    def path(self, name: str) -> pathlib.Path:
        """Of one of `FILES`."""
        return self.folder / FILES[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """What is asked, in the order of asked.jsonl: an example's own question, its edits, its baselines."""
        for _, line in self._lines('asked'):
            yield _decode(line.decode())

    def edits(self, name: str = 'edits') -> Iterator[tuple[int, Edit]]:
        """(where its line begins, in bytes, edit), in order; `name` may be 'baselines'."""
        for offset, line in self._lines(name):
            yield offset, Edit.from_json(_decode(line.decode()))

    def edit(self, offset: int, name: str = 'edits') -> Edit:
        """The edit whose line begins there."""
        with open(self.path(name), 'rb') as file:
            file.seek(offset)
            return Edit.from_json(_decode(file.readline().decode()))

    def _lines(self, name):
        offset = 0
        with open(self.path(name), 'rb') as file:
            for line in file:
                yield offset, line
                offset += len(line)


def write(
    folder,
    examples: Iterable[Example],
    edit: Callable[[Example], Sequence[Edit]],
    baseline: Callable[[Example, Sequence[Edit]], Iterable[Edit]] = lambda example, edits: (),
    about: Mapping[str, Any] | None = None,
) -> Asked:
    """Edits examples and writes what is to be asked. The files appear together or, after any error, not at all.

    Args:
      folder: of the files; made if needed.
      examples: read once; those without an edit are not asked.
      edit: makes an example's edits (families.Editor.edits).
      baseline: makes what is asked beside an example's edits (baselines.Maker).
      about: JSON to remember, such as the settings.

    Raises:
      ValueError: no example has an edit; two questions with one id.
    """
    folder = pathlib.Path(folder)
    paths = [folder / name for name in FILES.values()]
    with records.atomic_files(*paths, folder / MANIFEST) as (*files, manifest):
        out = {name: _Sink(file) for name, file in zip(FILES, files)}
        table = csv.writer(out['table'])
        table.writerow(COLUMNS)
        ids, seen = array.array('q'), 0
        for example in examples:
            seen += 1
            edits = edit(example)
            if not edits:
                continue
            beside = list(baseline(example, edits))
            for name, rows in (('edits', edits), ('baselines', beside)):
                for row in rows:
                    out[name].line(row.to_json())
            for row in _asked(example, [*edits, *beside]):
                out['asked'].line(row)
                cells = {**row, **{name: _encode(row[name]) for name in ('choices', 'objects') if name in row}}
                table.writerow([csv_cell(cells.get(name)) for name in COLUMNS])
                ids.append(hash(row['id']))
        if not ids:
            raise ValueError(f'{folder}: none of {seen:,} examples has an edit: there is nothing to ask')
        _unique(ids, files[list(FILES).index('asked')], folder)
        out['table'].rows = out['asked'].rows
        counts = {name: sink.rows for name, sink in out.items()}
        hashes = {name: sink.digest.hexdigest()[:16] for name, sink in out.items()}
        about = dict(about or {})
        manifest.write((_encode({'counts': counts, 'hashes': hashes, 'about': about}) + '\n').encode())
    return Asked(folder, counts, hashes, about)


def read_answers(
    paths,
    asked: Asked,
    format: str = 'jsonl',
    allow: Collection[str] = (),
    examples: Mapping[str, Example] | None = None,
    explanations: bool = False,
) -> _answers.Answers:
    """Any system's answers to what was asked, in any order.

    Args:
      paths: a file or several.
      asked: what was asked.
      format: a name of data/outputs; its records are read one at a time.
      allow: those of outputs.ALLOW that are no error: of `duplicates` the first answer counts, `missing` questions are
        left out, `extra` answers are dropped.
      examples: by id, for formats with names of their own for classes (ofax).
      explanations: whether explanations are kept.

    Raises:
      ValueError: a malformed record (file and line), answers to other questions, probabilities that are none, a file
        without answers, and what is not allowed, with numbers and the first ids.
    """
    paths = [paths] if isinstance(paths, (str, pathlib.Path)) else list(paths)
    table = _answers.Reader(asked, allow, explanations)
    given = _Questions(asked, examples or {})
    for path in paths:
        for prediction, text in outputs.iterate(path, format, given, COLUMNS):
            table.add(prediction, text, path)
    return table.answers(', '.join(map(str, paths)))


class _Questions(Sequence):
    """What is asked, as examples, for the formats that want them; read again whenever it is iterated."""

    def __init__(self, asked, examples):
        self._asked, self._examples = asked, examples

    def __len__(self):
        return self._asked.counts['asked']

    def __getitem__(self, index):
        raise TypeError('what is asked is read in order')

    def __iter__(self):
        for row in self._asked.rows():
            example = self._examples.get(row['id']) or self._examples.get(row['id'].rpartition('#')[0])
            label = example.label if example else None
            yield Example(
                row['id'], row['image_id'], row['text'], row.get('choices'), label, objects=row.get('objects')
            )


class _Sink:
    """Counts and hashes what goes into a file."""

    def __init__(self, file):
        self.file, self.digest, self.rows = file, hashlib.sha256(), 0

    def line(self, row: dict[str, Any]) -> None:
        self.write(_encode(row) + '\n')
        self.rows += 1

    def write(self, text: str) -> None:
        data = text.encode()
        self.digest.update(data)
        self.file.write(data)


def _asked(example: Example, edits: Iterable[Edit]) -> Iterator[dict[str, Any]]:
    lists = {name: getattr(example, name) for name in ('choices', 'objects') if getattr(example, name) is not None}
    yield {'id': example.id, 'image_id': example.image_id, 'text': example.text, **lists}
    for edit in edits:
        renamed = {name: getattr(edit, name) for name in lists if getattr(edit, name) is not None}
        row = {'id': edit.id, 'image_id': example.image_id, 'text': edit.text, **lists, **renamed}
        yield row | baselines.ASKED.get(edit.family, {})


def _unique(ids: array.array, file, folder) -> None:
    """Refuses repeated ids, found by their hashes and then read again."""
    hashes = np.sort(np.frombuffer(ids, np.int64))
    suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if not suspects:
        return
    found, repeated = set(), {}
    file.seek(0)
    for line in file:
        identifier = _decode(line.decode())['id']
        if hash(identifier) in suspects:
            if identifier in found:
                repeated[identifier] = None
            found.add(identifier)
    if repeated:
        raise ValueError(
            f'{folder}: asked twice: {_files.some_ids(list(repeated))}; ids of examples must be '
            "unique, and none may be another's with # and a family behind it"
        )
