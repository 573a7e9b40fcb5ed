"""Reads the file of an LMDB database (data.mdb) without liblmdb.

liblmdb maps the file and trusts what it finds there: of a copy that was cut short, reading ends the process with
SIGBUS, and damaged pages can end it, too. Here every position is checked before it is read, and reading works in
threads, after a fork and in several processes without a lock.

Format (LMDB 0.9, data version 1, written on a 64-bit little-endian machine; lmdb.h and mdb.c of OpenLDAP): pages of
equal size. A page begins with its number u64, padding u16, flags u16 and lower u16, upper u16 (or the number of
pages u32). Pages 0 and 1 are meta pages, of which the one with the greater transaction number holds; it names the root
of a B+ tree. Branch and leaf pages go on with u16 offsets of their nodes up to `lower`. A node is lo u16, hi u16,
flags u16, length of its key u16, key: in a branch lo, hi, flags are the number of a page, in a leaf lo, hi are the
length of the value, which follows or, where the flags say so, lies on pages of its own, with their number here.
"""

import struct
from typing import NamedTuple

from evil_jax.data.features._file import File

MAGIC = 0xBEEFC0DE
_HEAD = 16  # bytes of a page's header
_META = struct.Struct('<IIQQ48xIHHQQQQQQQ')
_PAGE = struct.Struct('<QHHHH')
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4  # flags of a page
_KIND = 0x67  # those flags, and two of databases with duplicates
_BIG = 1  # flag of a node: its value has its own pages
_NONE = 2**64 - 1


class Entry(NamedTuple):
    """A key and where its value lies in the file."""

    key: bytes
    start: int
    size: int
    page: int  # where the value has pages of its own, the first; else 0


def entries(file: File) -> list[Entry]:
    """All entries of the main database, in the order of their keys.

    Raises:
      ValueError: not a database of this format, truncated or damaged; names the file.
    """
    page_size = _page_size(file)
    metas = [_meta(file, number * page_size) for number in (0, 1)]
    _, flags, count, root = max(metas)
    if flags:
        raise ValueError(f'{file.path}: a database with flags {flags:#x} (duplicate or numeric keys), wanted none')
    found: list[Entry] = []
    seen, waiting = set(), [] if root == _NONE else [root]
    while waiting:
        number = waiting.pop()
        if number in seen:
            raise ValueError(f'{file.path}: damaged: page {number} stands twice in the tree')
        seen.add(number)
        data, kind, nodes = _nodes(file, number, page_size)
        if kind == _BRANCH:
            children = [low | high << 16 | flags << 32 for _, low, high, flags, _ in nodes]
            waiting += reversed(children)
            continue
        for position, low, high, flags, length in nodes:
            key = data[position + 8 : position + 8 + length]
            entry = _entry(file, number, page_size, data, position, key, low | high << 16, flags)
            if found and found[-1].key >= key:
                raise ValueError(f'{file.path}: damaged: key {key[:80]!r} follows {found[-1].key[:80]!r}')
            found.append(entry)
    if len(found) != count:
        raise ValueError(f'{file.path}: damaged: {len(found)} keys in the tree, the header says {count}')
    return found


def value(file: File, entry: Entry) -> bytes:
    """The value of an entry. Raises ValueError naming file and key if it is not there."""
    start = entry.start - (_HEAD if entry.page else 0)
    data = file.read(start, entry.start + entry.size)
    if len(data) < entry.start + entry.size - start:
        raise ValueError(f'{file.path}: {entry.key[:200]!r}: the file ends inside of the value')
    if not entry.page:
        return data
    number, _, flags, pages_low, pages_high = _PAGE.unpack_from(data)
    room = (pages_low | pages_high << 16) * (start // entry.page)
    if number != entry.page or flags & _KIND != _OVERFLOW or room < len(data):
        raise ValueError(f'{file.path}: {entry.key[:200]!r}: damaged: byte {start} is not where its pages begin')
    return data[_HEAD:]


def _page_size(file) -> int:
    head = file.read(0, 64)
    if len(head) < 64 or int.from_bytes(head[16:20], 'little') != MAGIC:
        raise ValueError(
            f'{file.path}: not an LMDB database: bytes 16 to 20 are {head[16:20].hex(" ") or "missing"}, '
            f'wanted {MAGIC.to_bytes(4, "little").hex(" ")} (from a 64-bit little-endian machine)'
        )
    size = int.from_bytes(head[40:44], 'little')
    if size & (size - 1) or not 512 <= size <= 1 << 16:
        raise ValueError(f'{file.path}: damaged: pages of {size} bytes')
    if file.size < 2 * size:
        raise ValueError(f'{file.path}: truncated: {file.size} bytes, the header alone takes {2 * size}')
    return size


def _meta(file, start) -> tuple[int, int, int, int]:
    """(transaction number, flags, number of entries, root page) of a meta page."""
    data = file.read(start + _HEAD, start + _HEAD + _META.size)
    if len(data) < _META.size:
        raise ValueError(f'{file.path}: truncated: the file ends inside of its header')
    magic, version, _, _, _, flags, _, _, _, _, count, root, _, transaction = _META.unpack(data)
    if magic != MAGIC or version != 1:
        raise ValueError(f'{file.path}: the header at byte {start} is damaged, or of data version {version} (wanted 1)')
    return transaction, flags, count, root


def _nodes(file, number, page_size) -> tuple[bytes, int, list[tuple[int, int, int, int, int]]]:
    """(page, _BRANCH or _LEAF, [(position, lo, hi, flags, length of the key)]) of a page of the tree."""
    start = number * page_size
    data = file.read(start, start + page_size) if start < file.size else b''
    if len(data) < page_size:
        raise ValueError(
            f'{file.path}: truncated or damaged: {file.size} bytes, '
            f'but page {number} would lie at bytes {start} to {start + page_size}'
        )
    found, _, flags, lower, upper = _PAGE.unpack_from(data)
    kind = flags & _KIND
    if found != number or kind not in (_BRANCH, _LEAF) or not _HEAD <= lower <= upper <= page_size or lower % 2:
        raise ValueError(f'{file.path}: damaged: no page of the tree at byte {start}, where page {number} should be')
    nodes = []
    for (position,) in struct.iter_unpack('<H', data[_HEAD:lower]):
        node = struct.unpack_from('<HHHH', data, position) if upper <= position <= page_size - 8 else None
        if node is None or position + 8 + node[3] > page_size:
            raise ValueError(f'{file.path}: damaged: page {number} at byte {start} has a node outside of itself')
        nodes.append((position, *node))
    return data, kind, nodes


def _entry(file, number, page_size, data, position, key, size, flags) -> Entry:
    place = position + 8 + len(key)
    if flags & ~_BIG:
        raise ValueError(f'{file.path}: {key[:200]!r} is a database in the database, or has several values')
    if not flags:
        if place + size > page_size:
            raise ValueError(f'{file.path}: damaged: the value of {key[:200]!r} runs over the end of its page')
        return Entry(key, number * page_size + place, size, 0)
    if place + 8 > page_size:
        raise ValueError(f'{file.path}: damaged: the value of {key[:200]!r} runs over the end of its page')
    own = int.from_bytes(data[place : place + 8], 'little')
    start = own * page_size + _HEAD
    if own < 2 or start + size > file.size:
        raise ValueError(
            f'{file.path}: truncated or damaged: the value of {key[:200]!r} would lie at bytes {start} to '
            f'{start + size}, the file has {file.size}'
        )
    return Entry(key, start, size, own)
