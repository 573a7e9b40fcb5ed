"""e-SNLI-VE as published: one CSV a split with `pairID, Flickr30kID, hypothesis, gold_label, explanation`."""

import csv
import io
import pathlib
import re
from collections.abc import Iterator

from evil_jax.data.sources import _files
from evil_jax.records import Example

CLASSES = ('contradiction', 'neutral', 'entailment')  # index = label id, as in e-UG's code
_COLUMNS = ('pairID', 'Flickr30kID', 'hypothesis', 'gold_label')  # must be there, with a text in every row
_EXPLANATIONS = ('explanation', 'explanation_2', 'explanation_3')
_PICTURE = re.compile(r'\.(jpe?g|png|npz)$', re.IGNORECASE)


def read(path) -> Iterator[Example]:
    """Yields the examples of one CSV file (plain or gzip), in file order.

    `image_id` is the Flickr30kID without its file ending. The label is the re-annotated `gold_label`; the letter at the
    end of a pairID is the older SNLI label and is ignored. The columns `explanation`, `explanation_2` and
    `explanation_3` are read where they exist; an empty cell means that there is no such reference.

    Raises:
      ValueError: a missing column, a row with another number of cells, an empty cell, a label that is not one of the
        three classes, a repeated pairID; file and line are named.
    """
    rows = csv.reader(io.StringIO(_files.read_text(path), newline=''), strict=True)
    header, seen, line = None, {}, 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise ValueError(f'{path}:{rows.line_num}: not CSV: {error}') from error
        where, line = f'{path}:{line}', rows.line_num + 1  # a quoted cell may span lines: name the first
        if row is None:
            break
        if header is None:
            header = _header(row, where)
            continue
        if not row:
            continue
        if len(row) != len(header):
            raise ValueError(f'{where}: has {len(row)} cells, wanted {len(header)} as in the first line')
        example = _example(dict(zip(header, row)), where)
        if example.id in seen:
            raise ValueError(f'{where}: pairID {example.id!r} was already at {seen[example.id]}')
        seen[example.id] = where
        yield example
    if header is None:
        raise ValueError(f'{path}: is empty, wanted a first line with {", ".join(_COLUMNS)}')


def _header(row, where):
    missing = [column for column in _COLUMNS if column not in row]
    if missing:
        raise ValueError(f'{where}: has no column {", ".join(missing)}; it has: {", ".join(c for c in row if c)}')
    return row


def _example(row, where) -> Example:
    for column in _COLUMNS:
        if not row[column].strip():
            raise ValueError(f'{where}: {column} is empty')
    label = row['gold_label'].strip()
    if label not in CLASSES:
        raise ValueError(f'{where}: gold_label is {label!r}, wanted one of {", ".join(CLASSES)}')
    explanations = (row.get(column, '').strip() for column in _EXPLANATIONS)
    return Example(
        id=row['pairID'].strip(),
        image_id=_PICTURE.sub('', pathlib.PurePath(row['Flickr30kID'].strip()).name),
        text=row['hypothesis'].strip(),
        label=label,
        explanations=list(filter(None, explanations)),
    )
