"""Arrays of one picture as UNITER's database and .npz files hold them, read without trust, and what they mean.

No array is made before its type is known to be a plain number and its shape to be just what its bytes hold: pickles are
never loaded, and a few bytes cannot ask for much memory.
"""

import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from evil_jax.data.features.regions import Regions, check

MEMBERS = (
    'features', 'x', 'norm_bb', 'bbox', 'boxes', 'num_bbox', 'num_boxes', 'image_w', 'image_h', 'conf', 'soft_labels',
)  # fmt: skip
LIMIT = 1 << 28  # bytes of one picture, packed and unpacked; a hundred regions take one megabyte
PICKLED = 'holds pickled objects, which are never loaded: they could run any program'

_NUMBER = re.compile(r'[<>=|]?(?:f[248]|[iu][1248]|b1)')
# What numpy.save writes, also under Python 2 (10L); nothing is evaluated.
_HEADER = re.compile(
    rb"\{'descr': '([^']*)', 'fortran_order': (False|True), 'shape': \(((?:[0-9]+L?, ?)*(?:[0-9]+L?)?)\), ?\} *\n?"
)
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError)


def array(dtype: str, shape, content: bytes, where: str, *, fortran: bool = False) -> np.ndarray:
    """The array that these bytes are; read-only, without a copy.

    Raises:
      ValueError: the type is not a plain number (with pickles told apart), or the bytes are not as many as type and
        shape say.
    """
    if 'O' in dtype:
        raise ValueError(f'{where} {PICKLED}')
    if not _NUMBER.fullmatch(dtype):
        raise ValueError(f'{where} has type {dtype[:40]!r}, wanted whole or floating-point numbers')
    if len(shape) > 8 or not all(type(side) is int and 0 <= side < 2**31 for side in shape):
        raise ValueError(f'{where} has shape {str(shape)[:80]}, wanted at most 8 whole numbers from 0')
    wanted = math.prod(shape) * np.dtype(dtype).itemsize
    if wanted != len(content):
        raise ValueError(f'{where} holds {len(content)} bytes, but {dtype} {tuple(shape)} take {wanted}')
    if not content:
        return np.empty(shape, dtype)
    return np.frombuffer(content, dtype).reshape(shape, order='F' if fortran else 'C')


def npy_header(head: bytes, where: str) -> tuple[str, bool, tuple[int, ...], int]:
    """(dtype, Fortran order, shape, offset of the numbers) from the first bytes of a .npy file."""
    if head[:6] != b'\x93NUMPY' or len(head) < 10:
        raise ValueError(f'{where} is not a .npy array: it begins with {head[:8]!r}')
    size = 4 if head[6] > 1 else 2
    start = 8 + size
    end = start + int.from_bytes(head[8:start], 'little')
    match = _HEADER.fullmatch(head[start:end]) if end <= len(head) else None
    if match is None:
        raise ValueError(f'{where} has a damaged header, or is no plain array: {head[start:end][:80]!r}')
    shape = tuple(int(side.strip(b' L')[:18]) for side in match[3].split(b',') if side.strip())
    if b'O' in match[1]:
        raise ValueError(f'{where} {PICKLED}')
    return match[1].decode('latin-1'), match[2] == b'True', shape, end


def unzip(content: bytes, where: str) -> dict[str, np.ndarray]:
    """The members of an .npz archive that regions are made of; whatever else is in it is not looked at.

    Raises:
      ValueError: damaged, pickled, or larger than LIMIT.
    """
    arrays, total = {}, 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix('.npy')
                if name not in MEMBERS:
                    continue
                here = f'{where}: {name}'
                if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(f'{here} is encrypted, or compressed in a way that numpy does not use')
                total += info.file_size
                if total > LIMIT:
                    raise ValueError(
                        f'{here} takes {info.file_size} bytes unpacked ({total} with the arrays before it); '
                        f'more than {LIMIT >> 20} MiB are no regions of one picture'
                    )
                with archive.open(info) as member:
                    data = member.read(info.file_size)  # without a number it would unpack all before it counts
                dtype, fortran, shape, offset = npy_header(data, here)
                arrays[name] = array(dtype, shape, data[offset:], here, fortran=fortran)
    except _BAD_ZIP as error:
        if str(error).startswith(where):
            raise
        raise ValueError(f'{where}: not a readable .npz archive: {str(error)[:200]}') from error
    return arrays


def regions(arrays: Mapping[str, np.ndarray], where: str, width: int) -> Regions:
    """Regions from named arrays, checked.

    features [n, width] (or x) with bbox (or boxes) [n, 4] in pixels and image_w, image_h [py-bottom-up-attention], or
      else with norm_bb [n, 6], boxes relative to the picture [UNITER]; num_bbox, if there, says how many rows count.
    x [width, rows, columns] alone: a grid, one region a cell, row by row [PJ-X].
    conf [n, 1] and soft_labels [n, 1 + classes] (the background first) may be there: the class of a region is the most
      likely one. Without conf it is that class's probability, and without both 1; without soft_labels classes are -1.

    Raises:
      ValueError: an array is missing or does not fit, or numbers are not finite.
    """
    name = next((name for name in ('features', 'x') if name in arrays), None)
    if name is None:
        raise ValueError(f'{where}: no features; there are {", ".join(arrays) or "no arrays that are known"}')
    features = _floats(arrays, name, where)
    if features.ndim == 3:
        found = _grid(features, name, where, width)
    else:
        found = _detected(arrays, features, name, where, width)
    check(found, where, width)
    return found


def _detected(arrays, features, name, where, width) -> Regions:
    if features.ndim != 2 or features.shape[1] != width:
        raise ValueError(
            f'{where}: {name} have shape {features.shape}, '
            f'wanted (regions, {width}), or ({width}, rows, columns) of a grid'
        )
    n = len(features)
    kind = next((kind for kind in ('bbox', 'boxes') if kind in arrays), None)
    missing = {'image_w', 'image_h'} - arrays.keys()
    if kind and not missing:
        boxes = _rows(arrays, kind, n, (4,), where)
        size = (_whole(arrays, 'image_w', where), _whole(arrays, 'image_h', where))
    elif 'norm_bb' in arrays:
        boxes, size = _rows(arrays, 'norm_bb', n, (4, 6, 7), where)[:, :4], (1, 1)
    elif kind:
        raise ValueError(f'{where}: {kind} without the size of the picture: {" and ".join(sorted(missing))} missing')
    else:
        raise ValueError(f'{where}: {name} without boxes: norm_bb is missing, and bbox')
    conf, classes = np.ones(n, np.float32), np.full(n, -1, np.int32)
    if 'soft_labels' in arrays:
        labels = _rows(arrays, 'soft_labels', n, range(2, 1 << 16), where).astype(np.float32)  # float16 is slow
        if not np.isfinite(labels).all():
            raise ValueError(f'{where}: soft_labels hold NaN or infinite values')
        classes = labels[:, 1:].argmax(axis=1).astype(np.int32)
        conf = labels[:, 1:].max(axis=1, initial=0)
    if 'conf' in arrays:
        conf = _rows(arrays, 'conf', n, (1,), where)[:, 0].astype(np.float32)
    found = Regions(features, boxes.astype(np.float32), size, conf, classes)
    for count in ('num_bbox', 'num_boxes'):
        if count in arrays:
            rows = _whole(arrays, count, where)
            if rows > n:
                raise ValueError(f'{where}: {count} is {rows}, but {name} have {n} rows')
            found = found.take(slice(rows))
    return found


def _grid(x, name, where, width) -> Regions:
    if x.shape[0] != width:
        raise ValueError(f'{where}: {name} have shape {x.shape}, wanted ({width}, rows, columns) of a grid')
    _, rows, columns = x.shape
    y, x1 = (axis.ravel() for axis in np.meshgrid(np.arange(rows), np.arange(columns), indexing='ij'))
    boxes = (
        np.stack([x1 / columns, y / rows, (x1 + 1) / columns, (y + 1) / rows], axis=1) if x.size else np.empty((0, 4))
    )
    n = rows * columns
    features = np.ascontiguousarray(x.reshape(width, n).T)
    return Regions(features, boxes.astype(np.float32), (1, 1), np.ones(n, np.float32), np.full(n, -1, np.int32))


def _floats(arrays, name, where) -> np.ndarray:
    """The array as float16 or float32 in the machine's byte order."""
    found = arrays[name]
    if found.dtype.kind != 'f':
        raise ValueError(f'{where}: {name} are {found.dtype}, wanted float16 or float32')
    with np.errstate(over='ignore'):  # what does not fit becomes infinite, and is found by `check`
        return found.astype(np.float16 if found.dtype.itemsize == 2 else np.float32, copy=False)


def _rows(arrays, name, n, widths, where) -> np.ndarray:
    found = _floats(arrays, name, where)
    if found.ndim == 1 and 1 in widths:
        found = found[:, None]
    if found.ndim != 2 or len(found) != n or found.shape[1] not in widths:
        wanted = f'{min(widths)} or more' if isinstance(widths, range) else ' or '.join(map(str, widths))
        raise ValueError(f'{where}: {name} have shape {arrays[name].shape}, wanted {n} rows of {wanted}')
    return found


def _whole(arrays, name, where) -> int:
    found = arrays[name]
    if found.size != 1 or not np.isfinite(found).all() or (value := found.reshape(()).item()) != int(value):
        raise ValueError(f'{where}: {name} is {str(found)[:40]}, wanted one whole number')
    return int(value)
