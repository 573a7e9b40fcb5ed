"""LXMERT obj36 file (.tsv): ten tab-separated columns, img_id img_h img_w ... num_boxes boxes features.

No header, LF or CRLF. Height comes before width. Arrays are base64 of little-endian numbers: objects_id and attrs_id
int64 [n], objects_conf and attrs_conf float32 [n], boxes float32 [n, 4] (x1, y1, x2, y2 in pixels), features float32
[n, 2048]. Source: LXMERT src/utils.py, py-bottom-up-attention demo files.

Random access: `_rows.py`.
"""

import pathlib
from typing import Any

import numpy as np

from evil_jax.data.features._rows import RowReader, column, columns_of, decode, integer
from evil_jax.data.features.regions import Regions, fingerprint

COLUMNS = (
    'img_id', 'img_h', 'img_w', 'objects_id', 'objects_conf', 'attrs_id', 'attrs_conf', 'num_boxes', 'boxes',
    'features',
)  # fmt: skip


def matches(path: pathlib.Path) -> bool:
    """A .tsv file; six columns are the bottom-up-attention container (butd.py), which has width before height."""
    return columns_of(path) not in (0, 6)


def provenance(path: pathlib.Path) -> dict[str, Any]:
    return {'format': 'lxmert_obj36_tsv'} | fingerprint(path)


class Reader(RowReader):
    """An obj36 file; an image id in two rows is an error."""

    columns = COLUMNS

    def provenance(self) -> dict[str, Any]:
        return provenance(self.path)

    def _parse(self, cells: dict[str, bytes], where: str) -> Regions:
        height, width, n = (integer(cells, name, where) for name in ('img_h', 'img_w', 'num_boxes'))
        boxes, conf, classes = (
            column(decode(cells, name, where), n, dtype, columns, name, where)
            for name, dtype, columns in (('boxes', '<f4', 4), ('objects_conf', '<f4', 1), ('objects_id', '<i8', 1))
        )
        if n and not -1 <= classes.min() <= classes.max() < 2**31:
            raise ValueError(
                f'{where}: objects_id lie between {classes.min()} and {classes.max()}, wanted classes, from 0'
            )
        return Regions(
            features=self._features(decode(cells, 'features', where), n, where),
            boxes=boxes,
            size=(width, height),
            conf=conf[:, 0],
            classes=classes[:, 0].astype(np.int32),
        )
