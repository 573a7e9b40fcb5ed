"""ImageNet-Segmentation (Guillaumin et al., IJCV 2014): gtsegs_ijcv.mat, 4,276 pictures with a mask of the object.

The file is MATLAB 7.3, which is HDF5. It holds a struct `value` of parallel columns of object references:

    /value/img[i] -> uint8 [3, width, height]           the picture
    /value/gt[i]  -> references; the first -> [width, height] of 0 and 1    the object
    /value/id[i]  -> UTF-16 units of 'n02084071_123'    synset and number

MATLAB stores columns first, so the axes come turned round. Of several masks of a picture the first counts.
"""

import hashlib
import importlib.util
import json
import os
import pathlib
from typing import Any

import numpy as np

from evil_jax.data.features.regions import fingerprint

_OLD = b'MATLAB 5.0 MAT-file'
_COLUMNS = ('img', 'gt', 'id')
# What h5py raises, whatever is wrong with a file.
_DAMAGED = (
    OSError, RuntimeError, KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError, MemoryError,
)  # fmt: skip


class GtSegs:
    """A reader of pictures (data/pictures.py): `reader[id]` is one, `reader.mask(id)` its object.

    The file is opened when it is first needed, once a process; readers can be pickled. Each method raises ValueError,
    naming the file, where it is damaged, cut, empty or of another kind, where h5py is not installed, and of an id that
    there is not.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._process: int | None = None
        self._file = None
        self._index: dict[str, int] | None = None

    def __getstate__(self):
        return self.__dict__ | {'_process': None, '_file': None}

    def __len__(self) -> int:
        return len(self._ids())

    def __contains__(self, image_id) -> bool:
        return image_id in self._ids()

    def resolve(self, image_id: str) -> str:
        """The id itself, which must be one of `ids()`."""
        self._row(image_id)
        return image_id

    def ids(self) -> list[str]:
        """The pictures' names, in the order of the file; a name that is there again ends in -2, -3, ..."""
        return list(self._ids())

    def __getitem__(self, image_id: str) -> np.ndarray:
        """The picture, RGB uint8 [height, width, 3]."""
        row = self._row(image_id)
        array = self._read(lambda value: _referred(value, 'img', row)[()], f'picture {image_id!r}')
        if array.dtype != np.uint8 or array.ndim != 3 or array.shape[0] != 3 or not array.size:
            raise ValueError(
                f'{self.path}: picture {image_id!r} is {array.dtype} {list(array.shape)}, wanted uint8 '
                '[3, width, height]'
            )
        return np.ascontiguousarray(array.transpose(2, 1, 0))

    def mask(self, image_id: str) -> np.ndarray:
        """1 where the object is, uint8 [height, width]."""
        row = self._row(image_id)
        array = self._read(lambda value: _first_mask(value, row), f'mask of {image_id!r}')
        if array.ndim != 2 or not array.size or not np.isin(array, (0, 1)).all():
            raise ValueError(
                f'{self.path}: the mask of {image_id!r} is {array.dtype} {list(array.shape)}, wanted [width, height] '
                'of 0 and 1'
            )
        return np.ascontiguousarray(array.T).astype(np.uint8)

    def synset(self, image_id: str) -> str:
        """The class of the picture: 'n02084071' of 'n02084071_123'."""
        return self.resolve(image_id).partition('_')[0]

    def synsets(self) -> list[str]:
        """The classes of all pictures, each once, sorted."""
        return sorted({image_id.partition('_')[0] for image_id in self._ids()})

    def provenance(self) -> dict[str, Any]:
        """Tells this file from others: the same content gives the same value."""
        found = fingerprint(self.path)
        digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
        return {'format': 'gtsegs', 'images': len(self), 'sha256': digest}

    def _row(self, image_id) -> int:
        rows = self._ids()
        if image_id not in rows:
            raise ValueError(
                f'{self.path}: no picture {str(image_id)!r} among {len(rows):,}, {next(iter(rows))!r}, ...'
            )
        return rows[image_id]

    def _ids(self) -> dict[str, int]:
        if self._index is None:
            self._index = self._read(self._all_ids, 'the names')
        return self._index

    def _all_ids(self, value) -> dict[str, int]:
        lengths = {name: value[name].size for name in _COLUMNS}
        if len(set(lengths.values())) > 1 or not lengths['id']:
            raise ValueError('its columns have ' + ', '.join(f'{n} {name}' for name, n in lengths.items()))
        found: dict[str, int] = {}
        for row, reference in enumerate(value['id'][()].ravel()):
            name = value.file[reference][()].astype('<u2').tobytes().decode('utf-16-le')
            if not name or '\0' in name:
                raise ValueError(f'the name of picture {row} is {name!r}')
            key, times = name, 1
            while key in found:
                times += 1
                key = f'{name}-{times}'
            found[key] = row
        return found

    def _read(self, get, what: str):
        """`get(value)` of the open file's struct. Whatever h5py says of a damaged file becomes one kind of error."""
        _require_h5py(self.path)
        try:
            if self._file is None or self._process != os.getpid():
                self._file, self._process = _open(self.path), os.getpid()
            return get(self._file['value'])
        except _DAMAGED as error:
            raise ValueError(f'{self.path}: cannot read {what} as those of gtsegs_ijcv.mat: {error}') from error


def _referred(value, column: str, row: int):
    """The dataset that the reference in a row of a column leads to."""
    rows = value[column]
    return value.file[rows[np.unravel_index(row, rows.shape)]]


def _first_mask(value, row: int) -> np.ndarray:
    masks = _referred(value, 'gt', row)
    return value.file[masks[(0,) * masks.ndim]][()]


def _require_h5py(path):
    if importlib.util.find_spec('h5py') is None:
        raise ValueError(f"{path} is an HDF5 file, which needs h5py: pip install 'evil_jax[attribution]'")


def _open(path: pathlib.Path):
    import h5py  # not everyone has it

    with open(path, 'rb') as file:
        if file.read(len(_OLD)) == _OLD:
            raise ValueError('it is a file of MATLAB 5; wanted MATLAB 7.3, which is HDF5')
    return h5py.File(path, 'r')
