"""LXMERT obj36 file (.tsv): ten tab-separated columns, img_id img_h img_w ... num_boxes boxes features.

No header, LF or CRLF. Height comes before width. Arrays are base64 of little-endian numbers: objects_id and attrs_id
int64 [n], objects_conf and attrs_conf float32 [n], boxes float32 [n, 4] (x1, y1, x2, y2 in pixels), features float32
[n, 2048]. Source: LXMERT src/utils.py, py-bottom-up-attention demo files.

Random access needs the byte offset of each row. It is read from `<name>_offset.txt` (`img_id <tab> offset` a line) or
found by one pass over the file, and then kept in that file where the folder may be written to.
"""

import base64
import binascii
import os
import pathlib
import warnings
import weakref
from typing import Any

import numpy as np

from evil_jax.data.features.regions import WIDTH, RegionReader, Regions, check, fingerprint, writable
from evil_jax.records import atomic_write

COLUMNS = (
    'img_id', 'img_h', 'img_w', 'objects_id', 'objects_conf', 'attrs_id', 'attrs_conf', 'num_boxes', 'boxes',
    'features',
)  # fmt: skip


def matches(path: pathlib.Path) -> bool:
    """A .tsv file; six columns would be the bottom-up-attention container, which has width before height."""
    if path.suffix != '.tsv' or not path.is_file():
        return False
    with open(path, 'rb') as file:
        return file.readline().count(b'\t') != 5


def provenance(path: pathlib.Path) -> dict[str, Any]:
    return {'format': 'lxmert_obj36_tsv'} | fingerprint(path)


class Reader(RegionReader):
    """Random access to an obj36 file, safe with threads, forks and pickle.

    Args:
      path: the .tsv file.
      width: wanted width of a feature vector.

    Raises:
      ValueError: on opening for a truncated row, a wrong number of columns or a repeated id; on reading for content
        that does not fit. The message names file, line and image.
    """

    def __init__(self, path, *, width: int = WIDTH):
        self.path = pathlib.Path(path).absolute()
        self.width = width
        self._descriptor = None
        index = self.path.with_name(f'{self.path.stem}_offset.txt')
        rows = self._load(index) if index.is_file() else None
        if rows is None:
            rows = self._scan()
            # Kept for the next time only if that is possible; without it everything works, after one more pass.
            if writable(self.path.parent):
                atomic_write(index, ''.join(f'{image_id}\t{offset}\n' for image_id, offset in rows))
        self._index = {}
        for position, (image_id, _) in enumerate(rows):
            first = self._index.setdefault(image_id, position)
            if first != position:
                raise ValueError(
                    f'{self.path}: image {image_id!r} is both in line {first + 1} and in line {position + 1}; '
                    'delete one of the two lines'
                )
        self._ends = np.array([offset for _, offset in rows] + [self.path.stat().st_size], np.int64)
        if not self._bytes(len(rows) - 1).endswith(b'\n'):
            self._read(rows[-1][0], len(rows) - 1)  # the file may have been cut here: find out now, not hours later

    def provenance(self) -> dict[str, Any]:
        return provenance(self.path)

    def __getstate__(self):
        return self.__dict__ | {'_descriptor': None, '_numbers': None}

    def _scan(self) -> list[tuple[str, int]]:
        """(id, offset) of every row, from the file itself."""
        rows, offset, blank = [], 0, None
        with open(self.path, 'rb', buffering=1 << 20) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    blank = blank or number
                else:
                    if blank:
                        raise ValueError(f'{self.path}:{blank}: empty line between rows')
                    image_id = _name(line)
                    columns = line.count(b'\t') + 1
                    if columns < len(COLUMNS) and not line.endswith(b'\n'):
                        raise ValueError(
                            f'{self.path}:{number}: image {image_id!r}: truncated row, the file ends in column '
                            f'{columns} ({COLUMNS[columns - 1]}) of {len(COLUMNS)}'
                        )
                    if columns != len(COLUMNS):
                        raise ValueError(
                            f'{self.path}:{number}: image {image_id!r}: {columns} columns, wanted {len(COLUMNS)} '
                            f'({", ".join(COLUMNS)})'
                        )
                    rows.append((image_id, offset))
                offset += len(line)
        if not rows:
            raise ValueError(f'{self.path}: the file holds no rows')
        return rows

    def _load(self, index) -> list[tuple[str, int]] | None:
        """(id, offset) of every row, from the offset file; None, with a warning, if it is not of this file."""
        try:
            pairs = (line.split('\t') for line in index.read_text(encoding='utf-8').splitlines() if line.strip())
            rows = sorted(((image_id.strip(), int(offset)) for image_id, offset in pairs), key=lambda row: row[1])
        except ValueError:  # also UnicodeDecodeError
            rows = []
        if reason := self._stale(rows):
            warnings.warn(f'{index} does not belong to {self.path} ({reason}); building it anew', stacklevel=3)
            return None
        return rows

    def _stale(self, rows) -> str:
        """Why an index is not of this file: its rows must begin at 0 and end where the file ends, with their ids."""
        if not rows:
            return 'it has no rows of the form id, tab, offset'
        if rows[0][1] != 0:
            return f'its first row is at byte {rows[0][1]}'
        with open(self.path, 'rb') as file:
            for image_id, offset in (rows[0], rows[len(rows) // 2], rows[-1]):
                file.seek(offset)
                line = file.readline()
                if _name(line) != image_id:
                    return f'at byte {offset} the file has {_name(line)[:80]!r}, the index {image_id!r}'
            if rest := file.read(1 << 20).strip():
                return f'{len(rest)} or more bytes follow its last row'
        return ''

    def _bytes(self, position: int) -> bytes:
        """The row at this position. pread has no file position, so threads and forked processes may share the file."""
        if self._descriptor is None:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, descriptor)
            self._descriptor = descriptor
        start, end = int(self._ends[position]), int(self._ends[position + 1])
        parts = []
        while start < end and (part := os.pread(self._descriptor, end - start, start)):
            parts.append(part)
            start += len(part)
        row = b''.join(parts)
        # Empty lines may follow the last row, and somebody else's offset file may leave rows out.
        return row[: row.find(b'\n') + 1] or row

    def _read(self, image_id: str, position: int) -> Regions:
        row = self._bytes(position)
        where = f'{self.path}:{position + 1}: image {image_id!r}'
        if _name(row) != image_id:
            raise ValueError(f'{where}: the row is of {_name(row)[:80]!r}; the file changed, delete its _offset.txt')
        try:
            return self._parse(row.rstrip(b'\r\n'), where)
        except ValueError as error:
            if row.endswith(b'\n'):
                raise
            raise ValueError(f'{error} (truncated row: the file ends here)') from error

    def _parse(self, row: bytes, where: str) -> Regions:
        cells = row.split(b'\t')
        if len(cells) != len(COLUMNS):
            raise ValueError(f'{where}: {len(cells)} columns, wanted {len(COLUMNS)} ({", ".join(COLUMNS)})')
        cells = dict(zip(COLUMNS, cells))
        height, width, n = (_integer(cells, name, where) for name in ('img_h', 'img_w', 'num_boxes'))
        arrays = {}
        for name, dtype, columns in (('boxes', '<f4', 4), ('objects_conf', '<f4', 1), ('objects_id', '<i8', 1)):
            content, row_bytes = _decode(cells, name, where), np.dtype(dtype).itemsize * columns
            if len(content) != n * row_bytes:
                raise ValueError(
                    f'{where}: num_boxes is {n}, but {name} hold {len(content)} bytes = '
                    f'{len(content) / row_bytes:g} regions of {row_bytes} bytes'
                )
            arrays[name] = np.frombuffer(content, dtype)
        content = _decode(cells, 'features', where)
        if len(content) != n * self.width * 4:
            raise ValueError(
                f'{where}: features hold {len(content)} bytes = {n} regions of width {len(content) / max(n, 1) / 4:g}, '
                f'wanted {n * self.width * 4} bytes = {n} regions of width {self.width} in float32'
            )
        regions = Regions(
            features=np.frombuffer(content, '<f4').reshape(n, self.width),
            boxes=arrays['boxes'].reshape(n, 4),
            size=(width, height),
            conf=arrays['objects_conf'],
            classes=arrays['objects_id'].astype(np.int32),
        )
        check(regions, where, self.width)
        return regions


def _name(row: bytes) -> str:
    return row[: row.find(b'\t')].decode('utf-8', 'replace') if b'\t' in row else row[:80].decode('utf-8', 'replace')


def _integer(cells, name, where) -> int:
    try:
        value = int(cells[name])
    except ValueError:
        value = -1
    if value < 0:
        raise ValueError(f'{where}: {name} is {cells[name][:40].decode("utf-8", "replace")!r}, wanted a whole number')
    return value


def _decode(cells, name, where) -> bytes:
    try:
        return base64.b64decode(cells[name], validate=True)
    except binascii.Error as error:
        raise ValueError(f'{where}: {name} ({len(cells[name])} characters) are not base64: {error}') from error
