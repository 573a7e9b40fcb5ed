"""Rows of files of ratings, and values in them: CSV and JSON lines look alike to whoever reads them."""

import pathlib
import re
from collections.abc import Iterator

from evil_jax.data.sources import _files
from evil_jax.text import csv_cell

_DATASETS = ('esnlive', 'vqax', 'vcr')
COLUMNS = {
    'item': ('item', 'item_id', 'id'),
    'rating': ('rating', 'score'),
    'system': ('system', 'model'),
    'annotator': ('annotator', 'worker', 'rater'),
    'dataset': ('dataset', 'data_set'),
    'image': ('image_id', 'image'),
    'explanation': ('explanation', 'prediction'),
    'flags': ('flags', 'shortcomings'),
}
_QUOTED = re.compile(r"'+ *[=+\-@\t\r]")  # what csv_cell makes of what could be a formula


def columns(row) -> dict[str, str | None]:
    """{what: its column}, None where there is none.

    Raises:
      ValueError: none for items or ratings.
    """
    names = {what: next((c for c in some if c in row), None) for what, some in COLUMNS.items()}
    for what in ('item', 'rating'):
        if names[what] is None:
            wanted = ' or '.join(map(repr, COLUMNS[what]))
            raise ValueError(f'no field {wanted} among {", ".join(map(repr, row))}')
    return names


def text(value, what: str) -> str | None:
    """A text or a whole number as text; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f'{what} is {value!r}, wanted text')


def needed(value, what: str) -> str:
    """As `text`, and there must be something in it."""
    found = text(value, what)
    if not found:
        raise ValueError(f'{what} is empty')
    return found


def texts(value) -> tuple[str, ...]:
    """A list, or its parts joined by ';'."""
    parts = value.split(';') if isinstance(value, str) else value or ()
    if not isinstance(parts, (list, tuple)) or not all(isinstance(p, str) for p in parts):
        raise ValueError(f'found {value!r}, wanted a list of texts')
    return tuple(filter(None, (p.strip() for p in parts)))


def references(row) -> tuple[str, ...]:
    """A list `references`, or the columns reference, reference_1, ... that are not empty."""
    if isinstance(row.get('references'), list):
        found = row['references']
    else:
        found = [row[name] for name in row if re.fullmatch(r'references?(_\d+)?', name) and row[name]]
    if not all(isinstance(reference, str) for reference in found):
        raise ValueError(f'references are {found!r}, wanted texts')
    return tuple(found)


def dataset_of(path) -> str:
    """esnlive, vqax or vcr if the name of the file says so, else that name."""
    stem = pathlib.Path(path).stem
    return next((name for name in _DATASETS if name in stem.casefold()), stem)


def rows(path) -> Iterator[tuple[str, dict]]:
    """Yields ('file:line', row) of CSV with a header (',', ';' or tab), or of JSON lines.

    Of the tidy table the marks in front of formulas are taken away again (`cell`).

    Raises:
      ValueError: cannot be read, a column name twice, or no row.
    """
    found = False
    for source, row in _json_rows(path) if _files.first_character(path) == '{' else _csv_rows(path):
        found = True
        yield source, row
    if not found:
        raise ValueError(f'{path}: no ratings in it, wanted rows below a header of CSV, or JSON lines')


def _json_rows(path):
    for source, row in _files.iter_json(path):
        yield source, _files.checked(row, dict, source)


def _csv_rows(path):
    content = _files.read_text(path)
    header = content.lstrip('\r\n').partition('\n')[0]
    names = None
    for source, cells in _files.csv_rows(path, content, max(',;\t', key=header.count)):
        if names is None:
            names = [name.strip() for name in cells]
            if len(set(names)) < len(names):
                raise ValueError(f'{source}: a column name twice: {", ".join(names)}')
            continue
        row = dict(zip(names, cells))
        yield source, {name: _plain(value) for name, value in row.items()} if 'reason' in row else row


def cell(value) -> str:
    """A value as a cell of the tidy table, from which `rows` gets the same text back.

    It is `text.csv_cell`; a text that already looks like one of its texts gets another '.
    """
    if isinstance(value, str) and _QUOTED.match(value):
        return f"'{value}"
    return csv_cell(value)


def _plain(value):
    return value[1:] if _QUOTED.match(value) else value
