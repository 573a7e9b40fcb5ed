"""What the two .tsv containers share: rows, their byte offsets, base64 cells.

Random access needs the byte offset of each row. It is read from `<name>_offset.txt` (`id <tab> offset` a line) or found
by one pass over the file, and then kept in that file where the folder may be written to.
"""

import base64
import binascii
import contextlib
import pathlib
import warnings

import numpy as np

from evil_jax.data.features._file import File
from evil_jax.data.features.regions import WIDTH, RegionReader, Regions, check, writable
from evil_jax.records import atomic_write

ROW_LIMIT = 1 << 28  # bytes; a hundred regions take a megabyte
INDEX_LIMIT = 1 << 26  # bytes; 50 a picture
_ID_LIMIT = 255  # characters
_BLOCK = 1 << 22


def columns_of(path: pathlib.Path) -> int:
    """Number of columns in the first row of a .tsv file; 0 if the path is something else."""
    if path.suffix != '.tsv' or not path.is_file():
        return 0
    with open(path, 'rb') as file:
        return file.readline(ROW_LIMIT).count(b'\t') + 1


class RowReader(RegionReader):
    """Random access to a .tsv file, safe with threads, forks and pickle. A container sets `columns` and `_parse`.

    Args:
      path: the .tsv file.
      width: wanted width of a feature vector.
      index_limit: a larger offset file, in bytes, is not read but made anew.

    Attributes:
      repeated: image id -> lines of its rows, for ids of several rows; the first row counts.

    Raises:
      ValueError: on opening for a truncated row, a wrong number of columns or a repeated id (where the container does
        not allow it); on reading for content that does not fit. The message names file, line and image.
    """

    columns: tuple[str, ...]
    keeps_first = False  # what to do about a repeated id: refuse it, or keep the first row and warn

    def __init__(self, path, *, width: int = WIDTH, index_limit: int = INDEX_LIMIT):
        self.path = pathlib.Path(path).absolute()
        self.width = width
        self._file = File(self.path)
        index = self.path.with_name(f'{self.path.stem}_offset.txt')
        rows = self._load(index, index_limit) if index.is_file() else None
        if rows is None:
            rows = self._scan()
            # Kept for the next time only if that is possible; without it everything works, after one more pass.
            if writable(self.path.parent):
                atomic_write(index, ''.join(f'{image_id}\t{offset}\n' for image_id, offset in rows))
        self._index, self.repeated = {}, {}
        for position, (image_id, _) in enumerate(rows):
            first = self._index.setdefault(image_id, position)
            if first != position:
                self.repeated.setdefault(image_id, [first + 1]).append(position + 1)
        if self.repeated:
            self._tell_repeated()
        self._ends = np.array([offset for _, offset in rows] + [self._file.size], np.int64)
        if not self._row(len(rows) - 1).endswith(b'\n'):
            self._read(rows[-1][0], len(rows) - 1)  # the file may have been cut here: find out now, not hours later

    def _parse(self, cells: dict[str, bytes], where: str) -> Regions:
        raise NotImplementedError

    def _tell_repeated(self):
        if not self.keeps_first:
            image_id, lines = next(iter(self.repeated.items()))
            raise ValueError(
                f'{self.path}: image {image_id!r} is both in line {lines[0]} and in line {lines[1]}; '
                'delete one of the two lines'
            )
        shown = ', '.join(f'{i} (lines {" and ".join(map(str, n))})' for i, n in list(self.repeated.items())[:20])
        warnings.warn(
            f'{self.path}: {len(self.repeated)} image ids have several rows, the first row of each counts: {shown}'
            f'{", ..." if len(self.repeated) > 20 else ""}',
            stacklevel=4,
        )

    def _scan(self) -> list[tuple[str, int]]:
        """(id, offset) of every row, from the file itself."""
        rows, offset, blank, number = [], 0, None, 0
        with open(self.path, 'rb', buffering=1 << 20) as file:
            while line := file.readline(ROW_LIMIT):
                number += 1
                if not line.strip():
                    blank = blank or number
                else:
                    if blank:
                        raise ValueError(f'{self.path}:{blank}: empty line between rows')
                    image_id = _name(line)
                    if len(image_id) > _ID_LIMIT:
                        raise ValueError(
                            f'{self.path}:{number}: the image id has {len(image_id)} characters, {image_id[:80]!r}...; '
                            f'wanted at most {_ID_LIMIT}'
                        )
                    self._check_columns(line, f'{self.path}:{number}: image {image_id!r}')
                    rows.append((image_id, offset))
                offset += len(line)
        if not rows:
            raise ValueError(f'{self.path}: the file holds no rows')
        return rows

    def _check_columns(self, line, where):
        columns, wanted = line.count(b'\t') + 1, len(self.columns)
        if len(line) == ROW_LIMIT:
            raise ValueError(f'{where}: the row has more than {ROW_LIMIT >> 20} MiB')
        if columns < wanted and not line.endswith(b'\n'):
            raise ValueError(
                f'{where}: truncated row, the file ends in column {columns} ({self.columns[columns - 1]}) of {wanted}'
            )
        if columns != wanted:
            raise ValueError(f'{where}: {columns} columns, wanted {wanted} ({", ".join(self.columns)})')
        if not _name(line):
            raise ValueError(f'{where}: the row has no image id')

    def _load(self, index, limit) -> list[tuple[str, int]] | None:
        """(id, offset) of every row, from the offset file; None, with a warning, if it is not of this file."""
        size, rows = index.stat().st_size, []
        if size <= limit:
            with contextlib.suppress(ValueError):  # also UnicodeDecodeError
                pairs = (line.split('\t') for line in index.read_text(encoding='utf-8').split('\n') if line.strip())
                rows = sorted(((image_id.strip(), int(offset)) for image_id, offset in pairs), key=lambda row: row[1])
        if reason := self._stale(rows) if size <= limit else f'it has {size} bytes, wanted at most {limit}':
            warnings.warn(f'{index} does not belong to {self.path} ({reason}); building it anew', stacklevel=4)
            return None
        return rows

    def _stale(self, rows) -> str:
        """Why an index is not of this file: its rows must begin at 0 and end where the file ends, with their ids."""
        if not rows:
            return 'it has no rows of the form id, tab, offset'
        if rows[0][1] != 0:
            return f'its first row is at byte {rows[0][1]}'
        if (longest := max(len(image_id) for image_id, _ in rows)) > _ID_LIMIT:
            return f'it has an image id of {longest} characters'
        with open(self.path, 'rb') as file:
            for image_id, offset in (rows[0], rows[len(rows) // 2], rows[-1]):
                file.seek(min(offset, self._file.size))
                line = file.readline(ROW_LIMIT)
                if _name(line) != image_id:
                    return f'at byte {offset} the file has {_name(line)[:80]!r}, the index {image_id!r}'
            if rest := file.read(1 << 20).strip():
                return f'{len(rest)} or more bytes follow its last row'
        return ''

    def _row(self, position: int) -> bytes:
        """The row at this position, of at most ROW_LIMIT bytes."""
        start, end = int(self._ends[position]), int(self._ends[position + 1])
        # Empty lines may follow the last row, and somebody else's offset file may leave rows out.
        end, parts = min(end, start + ROW_LIMIT), []
        while start < end:
            part = self._file.read(start, min(end, start + _BLOCK))
            parts.append(part[: part.find(b'\n') + 1] or part)
            if not part or parts[-1].endswith(b'\n'):
                break
            start += len(part)
        return b''.join(parts)

    def _read(self, image_id: str, position: int) -> Regions:
        row = self._row(position)
        where = f'{self.path}:{position + 1}: image {image_id!r}'
        if _name(row) != image_id:
            raise ValueError(f'{where}: the row is of {_name(row)[:80]!r}; the file changed, delete its _offset.txt')
        try:
            cells = row.rstrip(b'\r\n').split(b'\t')
            if len(cells) != len(self.columns):
                raise ValueError(
                    f'{where}: {len(cells)} columns, wanted {len(self.columns)} ({", ".join(self.columns)})'
                )
            regions = self._parse(dict(zip(self.columns, cells)), where)
            check(regions, where, self.width)
        except ValueError as error:
            if row.endswith(b'\n'):
                raise
            raise ValueError(f'{error} (truncated row: the file ends here)') from error
        return regions

    def _features(self, content: bytes, n: int, where: str) -> np.ndarray:
        if len(content) != n * self.width * 4:
            raise ValueError(
                f'{where}: features hold {len(content)} bytes = {n} regions of width {len(content) / max(n, 1) / 4:g}, '
                f'wanted {n * self.width * 4} bytes = {n} regions of width {self.width} in float32'
            )
        return np.frombuffer(content, '<f4').reshape(n, self.width)


def column(content: bytes, n: int, dtype: str, columns: int, name: str, where: str) -> np.ndarray:
    """[n, columns] of a cell's bytes; raises ValueError if there are more or fewer than n rows."""
    row_bytes = np.dtype(dtype).itemsize * columns
    if len(content) != n * row_bytes:
        raise ValueError(
            f'{where}: num_boxes is {n}, but {name} hold {len(content)} bytes = '
            f'{len(content) / row_bytes:g} regions of {row_bytes} bytes'
        )
    return np.frombuffer(content, dtype).reshape(n, columns)


def integer(cells: dict[str, bytes], name: str, where: str) -> int:
    cell = cells[name].strip()
    if not cell.isdigit() or len(cell) > 18:
        found = cell[:40].decode('utf-8', 'replace')
        raise ValueError(f'{where}: {name} is {found!r}, wanted a whole number')
    return int(cell)


def decode(cells: dict[str, bytes], name: str, where: str) -> bytes:
    try:
        return base64.b64decode(cells[name], validate=True)
    except binascii.Error as error:
        raise ValueError(f'{where}: {name} ({len(cells[name])} characters) are not base64: {error}') from error


def _name(row: bytes) -> str:
    """The image id, without blanks around it."""
    end = row.find(b'\t')
    return row[: end if end >= 0 else 80].decode('utf-8', 'replace').strip()
