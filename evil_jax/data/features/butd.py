"""Bottom-up-attention file (.tsv): six tab-separated columns, image_id image_w image_h num_boxes boxes features.

No header, LF or CRLF. Width comes before height (LXMERT's file has height first). boxes float32 [n, 4] (x1, y1, x2, y2
in pixels) and features float32 [n, 2048] are base64 of little-endian numbers. Source: bottom-up-attention
tools/generate_tsv.py, read_tsv.py.

The file says nothing about classes and confidences: `classes` are -1 and `conf` is 1, so a threshold keeps every region
and a limit keeps the first ones.

The published files need some patience: image ids come twice (trainval, 36 regions: 300104, 147295, 321486), base64
lacks its padding [bottom-up-attention issues 7, 40], and files written under Python 3 hold cells such as b'AAAA'
[self-critical.pytorch issue 54]. The first row of an id counts, with one warning that names all.
"""

import pathlib
from typing import Any

import numpy as np

from evil_jax.data.features._rows import RowReader, column, columns_of, decode, integer
from evil_jax.data.features.regions import Regions, fingerprint

COLUMNS = ('image_id', 'image_w', 'image_h', 'num_boxes', 'boxes', 'features')


def matches(path: pathlib.Path) -> bool:
    return columns_of(path) == len(COLUMNS)


def provenance(path: pathlib.Path) -> dict[str, Any]:
    return {'format': 'butd_tsv'} | fingerprint(path)


class Reader(RowReader):
    """A bottom-up-attention file; of an image id in several rows the first counts."""

    columns = COLUMNS
    keeps_first = True

    def provenance(self) -> dict[str, Any]:
        return provenance(self.path)

    def _parse(self, cells: dict[str, bytes], where: str) -> Regions:
        width, height, n = (integer(cells, name, where) for name in ('image_w', 'image_h', 'num_boxes'))
        cells = cells | {name: _padded(cells[name]) for name in ('boxes', 'features')}
        return Regions(
            features=self._features(decode(cells, 'features', where), n, where),
            boxes=column(decode(cells, 'boxes', where), n, '<f4', 4, 'boxes', where),
            size=(width, height),
            conf=np.ones(n, np.float32),
            classes=np.full(n, -1, np.int32),
        )


def _padded(cell: bytes) -> bytes:
    """The cell with the padding that its length asks for; whether bytes are missing is found when they are counted."""
    cell = cell.strip()
    if cell[:2] in (b"b'", b'b"') and cell[-1:] == cell[1:2]:
        cell = cell[2:-1]
    cell = cell.rstrip(b'=')
    return cell + b'=' * (-len(cell) % 4)
