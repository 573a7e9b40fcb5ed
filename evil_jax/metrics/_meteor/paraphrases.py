"""METEOR's paraphrase table as an index on disk, made once from the user's paraphrase-en.gz and memory-mapped after.

The table is 5.27 million pairs, source phrase and target phrase, of up to seven words. A phrase is known by a 64-bit
hash of its words; building makes sure that no two phrases share one. The file: magic, CRC-32 of all that follows it,
length of the header, header (JSON), then three arrays, each on a multiple of 64 bytes:

  hashes   uint64 [P], sorted; a phrase's place here is its number
  offsets  int32 [P + 1]; the targets of phrase p are targets[offsets[p] : offsets[p + 1]]
  targets  int32 [pairs], numbers of phrases, in the order of the table

Every opening checks the whole file's checksum; a damaged index is made anew.
"""

import contextlib
import gzip
import hashlib
import itertools
import json
import mmap
import os
import pathlib
import time
import zlib

import numpy as np

from evil_jax import records
from evil_jax.metrics import resources

MAGIC = b'EJMTRP01'
_LAYOUT = 1  # of the file and of the hash: part of its name
_START = len(MAGIC) + 8
_ALIGN = 64
_BLOCK = 1 << 24  # bytes of the table, unpacked, at a time
_SEED = np.uint64(0x9E3779B97F4A7C15)


class Damaged(ValueError):
    """The file is no whole index."""


class Index:
    """An open index. Attributes: hashes, offsets, targets (see above), and `longest`, words of the longest phrase."""

    def __init__(self, path: str | os.PathLike):
        """Opens and checks. Raises Damaged, or OSError where there is no file."""
        with open(path, 'rb') as file:
            start = file.read(_START)
            if len(start) < _START or start[: len(MAGIC)] != MAGIC:
                raise Damaged(f'{path}: found {start[:8]!r} at its start, wanted {MAGIC!r}')
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        checksum, length = (int.from_bytes(start[i : i + 4], 'little') for i in (len(MAGIC), len(MAGIC) + 4))
        if zlib.crc32(memoryview(self._map)[len(MAGIC) + 4 :]) != checksum:
            raise Damaged(f'{path}: its checksum is wrong')
        header = json.loads(self._map[_START : _START + length])
        places, self.longest = header['places'], header['longest']
        self.hashes, self.offsets, self.targets = (
            np.frombuffer(self._map, dtype, count=places[name][1], offset=places[name][0])
            for name, dtype in (('hashes', '<u8'), ('offsets', '<i4'), ('targets', '<i4'))
        )

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """Numbers of the phrases with these hashes; -1 where there is none."""
        wanted, inverse = np.unique(hashes, return_inverse=True)  # sorted look-ups touch the pages in order
        places = np.searchsorted(self.hashes, wanted)
        places[places == len(self.hashes)] = 0
        return np.where(self.hashes[places] == wanted, places, -1)[inverse]


def identity(table: str | os.PathLike) -> str:
    """What tells one table (paraphrase-en.gz) from another: its size and gzip's own checksum of its content.

    Raises:
      Unavailable: it cannot be read.
    """
    try:
        with open(table, 'rb') as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 8, 0))
            return f'{size}-{file.read().hex()}'
    except OSError as error:
        raise resources.Unavailable(f'needs paraphrase-en.gz of pycocoevalcap: {error}') from error


def path(table: str | os.PathLike) -> pathlib.Path:
    """Where the index of a table is or will be. Raises Unavailable: no such table, or no folder for indexes."""
    name = f'paraphrases-{_LAYOUT}-{identity(table)}.index'
    try:
        return resources.cache() / 'meteor' / name
    except OSError as error:
        raise _no_room(name, error) from error


def opened(table: str | os.PathLike) -> Index:
    """The index of a table; it is made first (ten seconds, 52 MB) where it is missing or damaged.

    One process at a time makes it, others wait. It appears under its name only when it is whole.

    Raises:
      Unavailable: the table cannot be read, or there is no room or no right to write the index.
    """
    place = path(table)
    while True:
        with contextlib.suppress(OSError, Damaged):
            return Index(place)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(records.locked(place.with_suffix('.lock'), 'an index of paraphrases is being made'))
            except ValueError:
                time.sleep(0.2)
                continue
            except OSError as error:
                raise _no_room(place, error) from error
            with contextlib.suppress(OSError, Damaged):  # made while we waited
                return Index(place)
            content = build(table)
            try:
                records.atomic_write(place, content)
            except OSError as error:
                raise _no_room(place, error) from error
            return Index(place)


def _no_room(place, error) -> resources.Unavailable:
    return resources.Unavailable(
        f'needs 52 MB for an index of paraphrases, and cannot write {place} ({error.strerror or error}): make room, or '
        'set EVIL_JAX_CACHE to another folder'
    )


class _Numbers(dict):
    """Gives every new key the next number."""

    def __missing__(self, key):
        self[key] = number = len(self)
        return number


def build(table: str | os.PathLike) -> bytearray:
    """Content of the index of a table: gzip, three lines a pair: probability, source phrase, target phrase.

    Raises:
      Unavailable: it is no such table.
    """
    phrases = _Numbers()
    sources, targets = [], []
    rest, tail = [], b''
    try:
        with gzip.open(table) as file:
            while data := file.read(_BLOCK):
                lines = (tail + data).split(b'\n')
                tail = lines.pop()
                rest += lines
                n = len(rest) // 3
                sources.append(np.fromiter(map(phrases.__getitem__, rest[1 : 3 * n : 3]), np.int32, n))
                targets.append(np.fromiter(map(phrases.__getitem__, rest[2 : 3 * n : 3]), np.int32, n))
                del rest[: 3 * n]
    except (OSError, EOFError, zlib.error) as error:
        raise resources.Unavailable(f'needs paraphrase-en.gz: {table} cannot be read ({error})') from error
    if rest or tail or not phrases:
        raise resources.Unavailable(f'{table} is no table of paraphrases: it does not consist of groups of three lines')
    try:
        hashes, longest = _phrase_hashes(phrases)
    except ValueError as error:
        raise resources.Unavailable(f'{table} is no table of paraphrases: {error}') from error
    del phrases
    order = np.argsort(hashes, kind='stable')
    hashes = hashes[order]
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    source = number[np.concatenate(sources)]
    target = number[np.concatenate(targets)]
    offsets = np.zeros(len(hashes) + 1, np.int32)
    np.cumsum(np.bincount(source, minlength=len(hashes)), out=offsets[1:])
    target = target[np.argsort(source, kind='stable')]
    return _pack({'hashes': hashes, 'offsets': offsets, 'targets': target}, longest)


def _pack(arrays: dict[str, np.ndarray], longest: int) -> bytearray:
    places, at = {}, 64 * _ALIGN
    for name, array in arrays.items():
        places[name] = (at, len(array))
        at += -(-array.nbytes // _ALIGN) * _ALIGN
    content = bytearray(at)
    for name, array in arrays.items():
        content[places[name][0] : places[name][0] + array.nbytes] = memoryview(np.ascontiguousarray(array)).cast('B')
    header = json.dumps({'places': places, 'longest': longest}).encode()
    content[:_START] = MAGIC + bytes(4) + len(header).to_bytes(4, 'little')
    content[_START : _START + len(header)] = header
    content[len(MAGIC) : len(MAGIC) + 4] = zlib.crc32(memoryview(content)[len(MAGIC) + 4 :]).to_bytes(4, 'little')
    return content


def word_hash(word: bytes) -> int:
    """64 bits of a word in UTF-8."""
    return int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), 'little')


def start_hashes(n: int) -> np.ndarray:
    """Hashes of n phrases without words."""
    return np.full(n, _SEED, np.uint64)


def append_words(hashes: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Hashes of phrases after one more word (its `word_hash`) each: the last step of splitmix64 on the sum."""
    x = hashes * np.uint64(3) + words
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _phrase_hashes(phrases) -> tuple[np.ndarray, int]:
    """Hashes of phrases (words joined by blanks), and the number of words of the longest. ValueError: not so."""
    words = _Numbers()
    parts, lengths = [], []
    remaining = iter(phrases)
    while chunk := list(itertools.islice(remaining, 1 << 18)):
        split = b' '.join(chunk).split()
        parts.append(np.fromiter(map(words.__getitem__, split), np.int32, len(split)))
        lengths.append(np.fromiter((phrase.count(b' ') + 1 for phrase in chunk), np.int32, len(chunk)))
    word_hashes = np.array([word_hash(word) for word in words], np.uint64)
    flat, length = np.concatenate(parts), np.concatenate(lengths)
    if len(flat) != length.sum():
        raise ValueError('its phrases are not words joined by single blanks')
    start = np.cumsum(length) - length
    hashes = start_hashes(len(length))
    for i in range(int(length.max())):
        rows = np.flatnonzero(length > i)
        hashes[rows] = append_words(hashes[rows], word_hashes[flat[start[rows] + i]])
    if len(np.unique(hashes)) < len(hashes):
        raise ValueError('two of its phrases have one hash')
    return hashes, int(length.max())
