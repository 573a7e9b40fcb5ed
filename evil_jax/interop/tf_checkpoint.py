"""Checkpoints of TensorFlow as arrays by name, without TensorFlow.

    variables/variables.index + variables/variables.data-00000-of-00001     of a SavedModel
    bert_model.ckpt.index + bert_model.ckpt.data-00000-of-00001             of a training run (format V2)

The index is a LevelDB table (interop/sstable.py) of protocol buffers (tensorflow/core/protobuf/tensor_bundle.proto):
under the empty key how many files of data there are, under each name the kind, shape and place of an array. The files
of data hold nothing but the bytes of arrays. They are mapped, not read.
"""

import dataclasses
import math
import pathlib
import re
from collections.abc import Sequence

import numpy as np

from evil_jax.interop import crc32c, sstable

# tensorflow/core/framework/types.proto
_KINDS = {1: '<f4', 2: '<f8', 3: '<i4', 4: 'u1', 5: '<i2', 6: 'i1', 9: '<i8', 10: '?', 17: '<u2', 19: '<f2', 22: '<u4',
          23: '<u8'}  # fmt: skip
_BFLOAT, _STRING = 14, 7
_MOST_INDEX = 1 << 28  # bytes of an index: that of a model of a thousand layers has one
_MOST_AXES = 32


@dataclasses.dataclass(frozen=True)
class Entry:
    """Where an array is.

    Attributes:
      kind: TensorFlow's number of its data type.
      shape: of the array.
      shard, offset, size: number of the file, and the bytes in it.
      crc: masked checksum of these bytes.
      parts: it is kept in parts under other names, as arrays of several machines are.
    """

    kind: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    parts: bool


def entries(prefix) -> tuple[dict[str, Entry], int]:
    """({name: entry}, number of files of data) of a checkpoint.

    Args:
      prefix: what stands before '.index'.

    Raises:
      ValueError: there is no index, or it is damaged; names the file.
    """
    path = pathlib.Path(f'{prefix}.index')
    if not path.is_file():
        raise ValueError(f'{path} does not exist; wanted the index of a TensorFlow checkpoint')
    if path.stat().st_size > _MOST_INDEX:
        raise ValueError(f'{path} has {path.stat().st_size} bytes, wanted an index of at most {_MOST_INDEX}')
    try:
        table = sstable.read(path.read_bytes())
        if b'' not in table:
            raise sstable.Damaged('a LevelDB table, but not of a checkpoint: it says nothing of files of data')
        header = _fields(table.pop(b''))
        if _one(header, 2, 0):
            raise sstable.Damaged('written by a machine that puts high bytes first')
        return {key.decode('utf-8'): _entry(key, value) for key, value in table.items()}, _one(header, 1, 0)
    except (sstable.Damaged, UnicodeDecodeError) as error:
        raise ValueError(f'{path}: {error}') from error


def read(prefix, ignored: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint by name; floating-point ones are float32. They are mapped where no byte has to change.

    Texts, such as the description of the objects that were saved, are left out. What is read has its checksum tested.

    Args:
      prefix: what stands before '.index'.
      ignored: regular expressions of names that are left out.

    Raises:
      ValueError: a file is missing, cut off or damaged, or holds what is no array; names the file and the array.
    """
    found, shards = {}, {}
    table, count = entries(prefix)
    for name, entry in table.items():
        if entry.kind == _STRING or any(re.fullmatch(pattern, name) for pattern in ignored):
            continue
        path = pathlib.Path(f'{prefix}.data-{entry.shard:05d}-of-{count:05d}')
        if path not in shards:
            if not path.is_file():
                raise ValueError(f'{path} does not exist; it should hold {name}')
            shards[path] = np.memmap(path, np.uint8, 'r') if path.stat().st_size else np.zeros(0, np.uint8)
        try:
            found[name] = _array(shards[path], entry)
        except sstable.Damaged as error:
            raise ValueError(f'{path}: {name} {error}') from error
    return found


def _array(data, entry):
    if entry.parts:
        raise sstable.Damaged('is kept in parts, wanted whole arrays')
    if entry.kind not in (*_KINDS, _BFLOAT):
        raise sstable.Damaged(f'is of data type {entry.kind}, wanted numbers')
    dtype = np.dtype('<u2' if entry.kind == _BFLOAT else _KINDS[entry.kind])
    wanted = math.prod(entry.shape) * dtype.itemsize
    if entry.size != wanted:
        raise sstable.Damaged(f'has {entry.size} bytes, wanted {wanted} for {entry.shape} of {dtype}')
    if entry.offset + entry.size > len(data):
        raise sstable.Damaged(
            f'ends at byte {entry.offset + entry.size}, the file at {len(data)}: it was cut off, or is another'
        )
    piece = data[entry.offset : entry.offset + entry.size]
    if crc32c.masked(crc32c.crc32c(piece)) != entry.crc:
        raise sstable.Damaged('has another checksum than the index says: bytes have changed')
    array = piece.view(dtype).reshape(entry.shape)
    if entry.kind == _BFLOAT:  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32, copy=False) if np.issubdtype(dtype, np.floating) else array


def _entry(name, value):
    fields = _fields(value)
    if not all(isinstance(part, bytes) for number in (2, 7) for part in fields.get(number, ())):
        raise sstable.Damaged(f'the entry of {name[:40]!r} is no description of an array')
    shape = []
    for part in fields.get(2, ()):
        for axis in _fields(part).get(2, ()):
            size = _one(_fields(axis), 1, 0) if isinstance(axis, bytes) else -1
            shape.append(size)
    if len(shape) > _MOST_AXES or any(not 0 <= size < 1 << 62 for size in shape):
        raise sstable.Damaged(f'the shape of {name[:40]!r} is {shape[:8]}, wanted a few sizes from 0')
    kind, shard, offset, size, crc = (_one(fields, number, 0) for number in (1, 3, 4, 5, 6))
    return Entry(kind, tuple(shape), shard, offset, size, crc, bool(fields.get(7)))


def _fields(message: bytes) -> dict[int, list]:
    """{number: values} of a protocol buffer: numbers as they are, the rest as bytes."""
    found, at = {}, 0
    while at < len(message):
        tag, at = sstable.varint(message, at)
        if tag & 7 == 0:
            value, at = sstable.varint(message, at)
        elif tag & 7 in (1, 2, 5):
            length = {1: 8, 5: 4}.get(tag & 7)
            if length is None:
                length, at = sstable.varint(message, at)
            value, at = message[at : at + length], at + length
            if at > len(message):
                raise sstable.Damaged('a description is cut off')
            if tag & 7 != 2:
                value = int.from_bytes(value, 'little')
        else:
            raise sstable.Damaged(f'a description has a field of kind {tag & 7}, which there is not')
        found.setdefault(tag >> 3, []).append(value)
    return found


def _one(fields, number, default):
    """A field's number; the last one counts."""
    value = fields.get(number, [default])[-1]
    if not isinstance(value, int):
        raise sstable.Damaged(f'field {number} of a description is no number')
    return value
