"""Tables that people fill in or other modes write, CSV or JSON lines, row by row."""

import re
from collections.abc import Iterator, Sequence

from evil_jax.data.sources import _files

_QUOTED = re.compile(r"^'(?='* *[=+\-@\t\r])")  # what tables of this package put in front of what could be a formula


def rows(path, wanted: Sequence[str] = (), *, quoted: bool = True) -> Iterator[tuple[str, dict]]:
    """Yields ('file:line', row) of each row; cells of a CSV are texts.

    Args:
      path: of the file.
      wanted: columns that must be there.
      quoted: whether a ' in front of what could be a formula is taken away from the cells of a CSV.

    Raises:
      ValueError: a row that is no object, a column that is missing or stands there twice, an empty CSV; file and line
        are named.
    """
    if _files.first_character(path) == '{':
        for where, row in _files.iter_json(path):
            yield where, _with(wanted, _files.checked(row, dict, where), where)
        return
    names = None
    for where, cells in _files.csv_rows(path, _files.iter_lines(path)):
        if names is None:
            names = [cell.strip() for cell in cells]
            if twice := [name for name in names if name and names.count(name) > 1]:
                raise ValueError(f'{where}: a column appears twice: {twice[0]}')
            _with(wanted, dict.fromkeys(names), where)
        else:
            yield where, dict(zip(names, [_QUOTED.sub('', cell) for cell in cells] if quoted else cells, strict=True))
    if names is None:
        raise ValueError(f'{path}: is empty, wanted a first line with {" and ".join(wanted) or "the names of columns"}')


def _with(wanted, row, where):
    for name in wanted:
        if name not in row:
            raise ValueError(f'{where}: has no {name!r}, only {", ".join(_files.keys(row)) or "nothing"}')
    return row
