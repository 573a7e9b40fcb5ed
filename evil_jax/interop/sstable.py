"""Tables of LevelDB, sorted keys with values in one file, as TensorFlow writes the index of a checkpoint.

The format (LevelDB's doc/table_format.md): blocks, each followed by a byte that says how it is packed and by its
checksum; a block of their places; 48 bytes at the end that say where that block is. Inside a block a key is told by how
many bytes it shares with the one before it. Blocks are raw or packed by Snappy (its format_description.txt): literals
and copies from what is unpacked already.

Sizes in a file are believed only as far as the file bears them out: memory is bounded by its length.
"""

from collections.abc import Iterator

from evil_jax.interop import crc32c

_FOOTER, _TRAILER = 48, 5
_MAGIC = 0xDB4775248B80FB57
_EXPANSION = 32  # most bytes that a packed byte stands for: a copy of 64 takes two at least
_MOST = 1 << 26  # bytes of all keys together: they grow by what they share


class Damaged(ValueError):
    """Bytes that are no such file. The message says what is wrong, not where."""


def read(data: bytes) -> dict[bytes, bytes]:
    """Key -> value of a whole file, keys ascending.

    Raises:
      Damaged: no such table, cut off, or other bytes than were written.
    """
    if len(data) < _FOOTER or int.from_bytes(data[-8:], 'little') != _MAGIC:
        raise Damaged('not a LevelDB table: the mark at its end is missing, as of a file that was cut off')
    footer = data[-_FOOTER:]
    _, at = _handle(footer, 0)  # of a block of filters, which TensorFlow leaves empty
    index, _ = _handle(footer, at)
    found, last, size = {}, None, 0
    for _, handle in _entries(_block(data, index)):
        for key, value in _entries(_block(data, _handle(handle, 0)[0])):
            if last is not None and key <= last:
                raise Damaged(f'keys do not ascend: {key[:40]!r} follows {last[:40]!r}')
            size += len(key) + len(value)
            if size > _MOST:
                raise Damaged(f'keys and values of more than {_MOST >> 20} MiB')
            found[key] = value
            last = key
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(number of up to 64 bits, where it ends). Raises Damaged."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at
    raise Damaged('a number has no end')


def _handle(data, at):
    """((first byte, length) of a block, where that ends)."""
    first, at = varint(data, at)
    length, at = varint(data, at)
    return (first, length), at


def _block(data, handle):
    first, length = handle
    end = first + length
    if end + _TRAILER > len(data) - _FOOTER:
        raise Damaged(f'a block at {first} of {length} bytes does not lie inside the {len(data)} bytes of the file')
    stored = int.from_bytes(data[end + 1 : end + _TRAILER], 'little')
    if crc32c.masked(crc32c.crc32c(data[first : end + 1])) != stored:
        raise Damaged(f'the block at {first} has another checksum than stands behind it: bytes have changed')
    if data[end] not in (0, 1):
        raise Damaged(f'the block at {first} is packed in way {data[end]}, wanted 0 (not at all) or 1 (Snappy)')
    return unsnap(data[first:end]) if data[end] else data[first:end]


def _entries(block) -> Iterator[tuple[bytes, bytes]]:
    restarts = int.from_bytes(block[-4:], 'little')
    end = len(block) - 4 - 4 * restarts
    if len(block) < 4 or end < 0:
        raise Damaged(f'a block of {len(block)} bytes cannot have {restarts} restarts')
    at, key = 0, b''
    while at < end:
        shared, at = varint(block, at)
        own, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or at + own + length > end:
            raise Damaged('an entry is longer than its block, or shares more than there is')
        key = key[:shared] + block[at : at + own]
        at += own
        yield key, block[at : at + length]
        at += length


def unsnap(data: bytes) -> bytes:
    """Unpacks a block of Snappy. Raises Damaged."""
    size, at = varint(data, 0)
    if size > _EXPANSION * len(data):
        raise Damaged(f'{len(data)} bytes of Snappy cannot unpack to {size}')
    found = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if not tag & 3:
            length, more = (tag >> 2) + 1, max((tag >> 2) - 59, 0)
            if more:
                length = int.from_bytes(data[at : at + more], 'little') + 1
            at += more
            if at + length > len(data):
                raise Damaged('a literal of Snappy is cut off')
            found += data[at : at + length]
            at += length
        else:
            more = (1, 2, 4)[(tag & 3) - 1]
            if at + more > len(data):
                raise Damaged('a copy of Snappy is cut off')
            back = int.from_bytes(data[at : at + more], 'little')
            at += more
            length = (tag >> 2) + 1
            if more == 1:
                length, back = (tag >> 2 & 7) + 4, back | (tag >> 5) << 8
            start = len(found) - back
            if not back or start < 0:
                raise Damaged(f'a copy of Snappy begins {back} bytes back where there are {len(found)}')
            piece = found[start : start + length]
            found += (piece * -(-length // len(piece)))[:length]  # one that reaches into itself repeats
        if len(found) > size:
            break
    if len(found) != size:
        raise Damaged(f'Snappy unpacks to {len(found)} bytes or more, wanted {size}')
    return bytes(found)
