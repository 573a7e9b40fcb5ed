"""CRC-32C, the checksum of LevelDB and TensorFlow files (Castagnoli et al. 1993; RFC 3720, appendix B.4), by numpy.

The checksum is linear over GF(2): pieces of a text are taken side by side, as lanes, and put together by the matrix
that moves a state over as many zero bytes as the later piece has. Some hundred megabytes a second.

Legend: L lanes, W words of 32 bits a lane.
"""

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # bits in reverse
_CHUNK = 1 << 24  # bytes taken at a time: the memory that is needed
_LONG = 1 << 14  # shorter texts are not worth lanes


def crc32c(data) -> int:
    """Checksum of bytes, or of anything else with a buffer of them that lies in one piece."""
    data = np.frombuffer(data, np.uint8)
    state = 0xFFFFFFFF
    for start in range(0, len(data), _CHUNK):
        state = _advance(state, data[start : start + _CHUNK])
    return state ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """The checksum as files keep it: a checksum of something that holds its own checksum says little."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _advance(state, data):
    done = 0
    if len(data) >= _LONG:
        lanes = 4096 if len(data) >= 1 << 20 else 256
        each = len(data) // (4 * lanes)
        done = 4 * lanes * each
        words_WL = np.ascontiguousarray(data[:done].view('<u4').reshape(lanes, each).T)
        state_L = np.zeros(lanes, np.uint32)
        state_L[0] = state
        low, high = _word_tables()
        for word_L in words_WL:
            state_L ^= word_L
            state_L = low[state_L & 0xFFFF] ^ high[state_L >> 16]
        over = _zeros(4 * each)
        while len(state_L) > 1:
            state_L = _apply(over, state_L[0::2]) ^ state_L[1::2]
            over = _apply(over, over)
        state = int(state_L[0])
    table = _byte_list()
    for byte in data[done:].tobytes():
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state


@functools.cache
def _byte_table():
    """What a byte adds to the state."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


@functools.cache
def _byte_list():
    return _byte_table().tolist()


@functools.cache
def _word_tables():
    """The same for the lower and the upper half of a word of four bytes."""
    of_byte = [_byte_table()]
    for _ in range(3):
        of_byte.append((of_byte[-1] >> 8) ^ _byte_table()[of_byte[-1] & 0xFF])
    half = np.arange(1 << 16)
    pair = lambda first, second: of_byte[first][half & 0xFF] ^ of_byte[second][half >> 8]
    return pair(3, 2), pair(1, 0)


def _apply(matrix, states):
    """Matrix (what becomes of each of 32 bits) times states."""
    found = np.zeros_like(states)
    for bit in range(32):
        found ^= np.where((states >> bit) & 1, matrix[bit], np.uint32(0))
    return found


@functools.cache
def _zeros(count):
    """The matrix of `count` zero bytes."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    power, found = _byte_table()[bits & 0xFF] ^ (bits >> 8), bits
    while count:
        if count & 1:
            found = _apply(power, found)
        power, count = _apply(power, power), count >> 1
    return found
