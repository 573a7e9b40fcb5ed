"""Checkpoints of TensorFlow, written by `checkpoints` from the descriptions of the formats, and damaged ones."""

import checkpoints
import numpy as np
import pytest

from evil_jax.interop import crc32c, sstable, tf_checkpoint


@pytest.mark.parametrize(
    ('data', 'crc'),  # RFC 3720, appendix B.4, and the usual check value
    [
        (bytes(32), 0x8A9136AA),
        (b'\xff' * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b'123456789', 0xE3069283),
        (b'', 0),
    ],
)
def test_crc32c(data, crc):
    assert crc32c.crc32c(data) == crc


def test_crc32c_of_long_texts():
    """Lanes against the definition, bit by bit; also where the length is a multiple of nothing."""
    data = np.random.default_rng(0).integers(0, 256, 3 * (1 << 14) + 5, np.uint8)
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    long = np.tile(data, 22)[: (1 << 20) + 3]  # more lanes
    for text in (data[: 1 << 14], data[: (1 << 14) + 1], data, long):
        state = 0xFFFFFFFF
        for byte in text.tolist():
            state = state >> 8 ^ table[(state ^ byte) & 0xFF]
        assert crc32c.crc32c(text) == state ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    'data',
    [b'', b'a', b'ab' * 500, bytes(range(256)) * 3, np.random.default_rng(0).bytes(70_000), b'x' * 70 + b'y' * 10_000],
)
def test_snappy(data):
    packed = checkpoints.snap(data)
    assert sstable.unsnap(packed) == data
    for n in range(1, min(len(packed), 40)):
        with pytest.raises(sstable.Damaged):
            sstable.unsnap(packed[:-n])


def test_snappy_examples():
    """By hand, from the description: a literal with its length in a byte, an overlapping copy of each kind."""
    assert sstable.unsnap(b'\x0a' + b'\x04ab' + b'\x11\x02') == b'ababababab'  # 2 + (4 + 4) bytes, 2 back
    assert sstable.unsnap(b'\x07' + b'\x00z' + b'\x16\x01\x00') == b'z' * 7
    assert sstable.unsnap(b'\x07' + b'\x00z' + b'\x17\x01\x00\x00\x00') == b'z' * 7
    assert sstable.unsnap(b'\x3d' + b'\xf0\x3c' + b'q' * 61) == b'q' * 61
    for bad in (b'\x05\x00z\x11\x02', b'\x05\x00z\x01\x00', b'\xff\xff\xff\xff\x0f\x00z', b'\x02\x00z', b'\x80'):
        with pytest.raises(sstable.Damaged):
            sstable.unsnap(bad)


def arrays():
    r = np.random.default_rng(1)
    return {
        'bert/a/kernel': r.standard_normal((300, 70)).astype(np.float32),
        'bert/a/bias': r.standard_normal(70).astype(np.float32),
        'half': r.standard_normal((3, 2)).astype(np.float16),
        'double': r.standard_normal(4),
        'empty': np.zeros((0, 3), np.float32),
        'global_step': np.array(12, np.int64),
        'mask': np.array([True, False]),
    } | {f'layer_{n}/x': np.full((2, 2), n, np.float32) for n in range(30)}


@pytest.mark.parametrize(('packed', 'shards'), [(False, 1), (True, 1), (True, 3)])
def test_read(tmp_path, packed, shards):
    prefix, wanted = tmp_path / 'blank folder' / 'bert_model.ckpt', arrays()
    bfloat = np.array([1.0, -2.5, 3e38], np.float32)
    upper = (bfloat.view(np.uint32) >> 16).astype(np.uint16)
    text = checkpoints.entry((), 7, 0, 0, b'')
    checkpoints.bundle(
        prefix, wanted | {'bfloat': upper}, packed=packed, shards=shards, kinds={'bfloat': 14},
        more={b'_CHECKPOINTABLE_OBJECT_GRAPH': text},
    )  # fmt: skip
    found = tf_checkpoint.read(prefix)
    assert found.keys() == wanted.keys() | {'bfloat'}
    for name, array in wanted.items():
        kind = np.float32 if array.dtype.kind == 'f' else array.dtype
        assert found[name].dtype == kind and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array.astype(kind))
    np.testing.assert_array_equal(found['bfloat'], (upper.astype(np.uint32) << 16).view(np.float32))
    mapped = found['bert/a/kernel']
    while not isinstance(mapped, np.memmap) and mapped.base is not None:
        mapped = mapped.base
    assert isinstance(mapped, np.memmap)
    listed, count = tf_checkpoint.entries(prefix)
    assert count == shards and listed['half'].shape == (3, 2) and '_CHECKPOINTABLE_OBJECT_GRAPH' in listed
    assert 'half' not in tf_checkpoint.read(prefix, ('h.*', 'global_step'))


def test_damaged_files(tmp_path):
    prefix = tmp_path / 'variables'
    with pytest.raises(ValueError, match=r'variables.index does not exist; wanted the index'):
        tf_checkpoint.read(prefix)
    checkpoints.bundle(prefix, arrays(), packed=False)
    index, data = tmp_path / 'variables.index', tmp_path / 'variables.data-00000-of-00001'
    good, content = index.read_bytes(), data.read_bytes()
    for n in (1, 47, 48, 49, len(good) // 2, len(good)):
        index.write_bytes(good[:-n])
        with pytest.raises(ValueError, match=r'variables.index: '):
            tf_checkpoint.read(prefix)
    r = np.random.default_rng(0)
    for at in r.integers(0, len(good) - 48, 200):
        changed = bytearray(good)
        changed[at] ^= 1 << r.integers(8)
        index.write_bytes(changed)
        with pytest.raises(ValueError, match=r'variables.index: (the|a) block'):
            tf_checkpoint.read(prefix)
    index.write_bytes(good)
    data.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r'data-00000-of-00001: .* ends at byte \d+, the file at \d+: it was cut off'):
        tf_checkpoint.read(prefix)
    changed = bytearray(content)
    changed[1000] ^= 4
    data.write_bytes(changed)
    with pytest.raises(ValueError, match='data-00000-of-00001: bert/a/kernel has another checksum'):
        tf_checkpoint.read(prefix)
    data.unlink()
    with pytest.raises(ValueError, match='data-00000-of-00001 does not exist; it should hold bert/a/bias'):
        tf_checkpoint.read(prefix)


@pytest.mark.parametrize(
    ('value', 'message'),
    [
        (checkpoints.entry((1 << 40, 1 << 20), 1, 0, 0, b'abcd'), r'x has 4 bytes, wanted \d+ for'),
        (checkpoints.entry((1 << 40,), 1, 0, 0, b'', size=1 << 42), r'x ends at byte 4398046511104, the file at 4'),
        (checkpoints.entry((1 << 63,), 1, 0, 0, b''), "the shape of b'x' is"),
        (checkpoints.entry((1,) * 40, 1, 0, 0, b'abcd'), "the shape of b'x' is"),
        (checkpoints.entry((1,), 20, 0, 0, b'abcd'), 'x is of data type 20, wanted numbers'),
        (checkpoints.entry((1,), 1, 5, 0, b'abcd'), 'data-00005-of-00001 does not exist'),
        (checkpoints.entry((1,), 1, 0, 0, b'abcd') + checkpoints.field(7, b''), 'x is kept in parts'),
        (checkpoints.field(1, b'abc'), 'field 1 of a description is no number'),
        (checkpoints.field(2, 7), 'is no description of an array'),
        (b'\x0b', 'a field of kind 3'),
        (b'\x0a\x7fa', 'a description is cut off'),
        (b'\xff' * 11, 'a number has no end'),
    ],
    ids=lambda part: part if isinstance(part, str) else '',
)
def test_entries_that_lie(tmp_path, value, message):
    """None of them allocates what it says."""
    prefix = tmp_path / 'c'
    checkpoints.bundle(prefix, {'a': np.ones(1, np.float32)}, more={b'x': value})
    with pytest.raises(ValueError, match=message):
        tf_checkpoint.read(prefix)


def test_tables_that_lie():
    good = {f'key{n:03}'.encode(): b'v' * n for n in range(20)}
    assert sstable.read(checkpoints.sstable(good)) == sstable.read(checkpoints.sstable(good, packed=True)) == good
    with pytest.raises(sstable.Damaged, match='the mark at its end is missing'):
        sstable.read(b'x' * 100)
    grown = b''.join(checkpoints.varint(n) + b'\x01\x00a' for n in range(20_000))  # each key one longer
    with pytest.raises(sstable.Damaged, match='keys and values of more than 64 MiB'):
        sstable.read(checkpoints.table_of([(b'a', grown + b'\0\0\0\0\x01\0\0\0')]))
    with pytest.raises(sstable.Damaged, match="keys do not ascend: b'a' follows b'b'"):
        sstable.read(checkpoints.table_of([(b'b', checkpoints.block([(b'b', b''), (b'a', b'')]))]))
    with pytest.raises(sstable.Damaged, match='cannot have 9 restarts'):
        list(sstable._entries(b'\x09\0\0\0'))
    with pytest.raises(sstable.Damaged, match='shares more than there is'):
        list(sstable._entries(b'\x05\x01\x00a' + b'\0\0\0\0\x01\0\0\0'))
