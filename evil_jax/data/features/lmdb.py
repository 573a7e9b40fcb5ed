"""UNITER's image database (a folder with data.mdb), uncompressed or compressed.

Folders are called feat_th<conf>_max<M>_min<m>, feat_numbb<n> or all, with _compressed where they are. A key is the name
of an .npz file (flickr30k_000004465359.npz, vcr_val_<name>.npz, coco_val2014_000000262284.npz). A value holds, in
float16, features [n, 2048], norm_bb [n, 6] (x1, y1, x2, y2, w, h, relative to the picture), conf [n, 1] and soft_labels
[n, 1601] (the background first):

    uncompressed   msgpack of {name: {'nd': True, 'type': '<f2', 'kind': '', 'shape': [n, 2048], 'data': bytes}}, the
                   inner keys being bytes (what msgpack-numpy writes)
    compressed     an .npz archive (what numpy.savez_compressed writes)

The key __keys__ holds a JSON list of all names. Beside the folder, nbb_th<conf>_max<M>_min<m>.json may hold the number
of regions of each picture; rows beyond it do not count (in the published files there are none). Rows are in the
detector's order, mostly not that of confidence. Boxes stay relative: `size` is (1, 1).

Source: UNITER scripts/convert_imgdir.py, data/data.py; the file's format: `_mdb.py`.
"""

import json
import pathlib
import re
from typing import Any

import msgpack
import numpy as np

from evil_jax.data.features import _arrays, _mdb
from evil_jax.data.features._file import File
from evil_jax.data.features.regions import WIDTH, RegionReader, Regions, fingerprint

COUNTS_LIMIT = 1 << 25  # bytes; 70 a picture
_KEYS = b'__keys__'
_COUNTED = re.compile(r'feat_(th.+_max\d+_min\d+)(?:_compressed)?')
_OTHERS = {
    (b'\x04\x22\x4d\x18',): "lz4: this is UNITER's text database, wanted the one of images",
    (b'\x80\x02', b'\x80\x03', b'\x80\x04', b'\x80\x05'): (
        "pickles (ViLBERT's way), which are never loaded: they could run any program"
    ),
}


def matches(path: pathlib.Path) -> bool:
    return (path / 'data.mdb').is_file()


def provenance(path: pathlib.Path) -> dict[str, Any]:
    found = {'format': 'uniter_lmdb'} | fingerprint(path / 'data.mdb') | {'name': path.name}
    counts = _counts_path(path)
    return found | ({'counts_sha256': fingerprint(counts)['head_sha256']} if counts else {})


class Reader(RegionReader):
    """Random access to an image database, safe with threads, forks and pickle. The ids are the keys.

    Args:
      path: the folder.
      width: wanted width of a feature vector.
      counts_limit: largest size in bytes of the file with the numbers of regions.

    Raises:
      ValueError: on opening for a file that is truncated or no such database, or a key that __keys__ lists and the
        database lacks; on reading for a value that is damaged or does not fit. Names the file and the image.
    """

    def __init__(self, path, *, width: int = WIDTH, counts_limit: int = COUNTS_LIMIT):
        self.path = pathlib.Path(path).absolute()
        self.width = width
        self._file = File(self.path / 'data.mdb')
        found = {}
        for entry in _mdb.entries(self._file):
            try:
                found[entry.key.decode()] = entry
            except UnicodeDecodeError:
                raise ValueError(f'{self._file.path}: key {entry.key[:80]!r} is not UTF-8') from None
        listed = found.pop(_KEYS.decode(), None)
        if not found:
            raise ValueError(f'{self._file.path}: the database holds no pictures')
        # In the order of the file, so that whoever reads all goes through it once.
        self._entries = sorted(found.values(), key=lambda entry: entry.start)
        self._index = {entry.key.decode(): position for position, entry in enumerate(self._entries)}
        for magic, what in _OTHERS.items():
            if self._value(self._entries[0], 4).startswith(magic):
                raise ValueError(f'{self._file.path}: the values are {what}')
        if listed is not None:
            self._check_listed(listed)
        counts = _counts_path(self.path)
        self._counts = _read_counts(counts, counts_limit) if counts else None

    def provenance(self) -> dict[str, Any]:
        return provenance(self.path)

    def _value(self, entry, limit=_arrays.LIMIT) -> bytes:
        if limit == _arrays.LIMIT and entry.size > limit:
            raise ValueError(
                f'{self._file.path}: image {entry.key.decode()!r}: {entry.size} bytes; '
                f'more than {limit >> 20} MiB are no regions of one picture'
            )
        return _mdb.value(self._file, entry._replace(size=min(entry.size, limit)))

    def _check_listed(self, entry):
        where = f'{self._file.path}: {_KEYS.decode()}'
        try:
            names = json.loads(self._value(entry))
        except (ValueError, RecursionError) as error:
            raise ValueError(f'{where}: not JSON: {error}') from error
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f'{where}: holds {str(names)[:80]}, wanted a list of names')
        if missing := [name for name in names if name not in self._index]:
            raise ValueError(
                f'{where} lists {len(names)} names, but {len(missing)} of them are not in the database, '
                f'for example {missing[0][:200]!r}'
            )

    def _read(self, image_id: str, position: int) -> Regions:
        where = f'{self._file.path}: image {image_id!r}'
        value = self._value(self._entries[position])
        arrays = _arrays.unzip(value, where) if value[:2] == b'PK' else _unpack(value, where)
        regions = _arrays.regions(arrays, where, self.width)
        if self._counts is None:
            return regions
        path, counts = self._counts
        count = counts.get(image_id)
        if count is None or count > len(regions):
            raise ValueError(
                f'{where}: {len(regions)} regions, but {path} counts {"none" if count is None else count}: '
                'it belongs to another database'
            )
        return regions.take(slice(count))


def _unpack(value: bytes, where: str) -> dict[str, np.ndarray]:
    """The arrays of a msgpack value, decoded as msgpack-numpy would, but for its pickles and records."""
    try:
        # Sizes beyond these are no record of this format; they would be reserved before the bytes are seen.
        document = msgpack.unpackb(
            value, raw=False, strict_map_key=False, max_array_len=64, max_map_len=256, max_ext_len=0
        )
    except (ValueError, TypeError, OverflowError) as error:
        detail = str(error)[:200] or type(error).__name__
        raise ValueError(f'{where}: neither a msgpack record nor an .npz archive: {detail}') from error
    if not isinstance(document, dict):
        raise ValueError(f'{where}: a msgpack {type(document).__name__}, wanted a map of arrays')
    arrays = {}
    for name, record in document.items():
        if name in _arrays.MEMBERS:
            arrays[name] = _decode(record, f'{where}: {name}')
    return arrays


def _decode(record, where) -> np.ndarray:
    if not isinstance(record, dict):
        raise ValueError(f'{where} is a msgpack {type(record).__name__}, wanted the map that is an array')
    fields = {_text(key): field for key, field in record.items()}
    if _text(fields.get('kind', '')) == 'O':
        raise ValueError(f'{where} {_arrays.PICKLED}')
    dtype, shape, data = _text(fields.get('type')), fields.get('shape', ()), fields.get('data')
    wanted = {'nd': True, 'type': str, 'shape': list, 'data': bytes}
    if fields.get('nd') is not True or not isinstance(dtype, str) or not isinstance(shape, list):
        raise ValueError(f'{where} has the fields {str(list(fields))[:200]}, wanted an array: {", ".join(wanted)}')
    if not isinstance(data, bytes):
        raise ValueError(f'{where} has data of type {type(data).__name__}, wanted bytes')
    return _arrays.array(dtype, shape, data, where)


def _text(value):
    return value.decode('latin-1') if isinstance(value, bytes) else value


def _counts_path(path: pathlib.Path) -> pathlib.Path | None:
    """The file with the numbers of regions that belongs to a folder of this name, if there is one."""
    match = _COUNTED.fullmatch(path.name)
    counts = path.with_name(f'nbb_{match[1]}.json') if match else None
    return counts if counts and counts.is_file() else None


def _read_counts(path, limit) -> tuple[pathlib.Path, dict[str, int]]:
    if (size := path.stat().st_size) > limit:
        raise ValueError(f'{path}: {size} bytes, wanted at most {limit} of numbers of regions')
    try:
        counts = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    if not isinstance(counts, dict):
        raise ValueError(f'{path}: a JSON {type(counts).__name__}, wanted an object of name: number of regions')
    for name, count in counts.items():
        if type(count) is not int or count < 0:
            raise ValueError(f'{path}: {name!r} has {str(count)[:40]!r} regions, wanted a whole number')
    return path, counts
