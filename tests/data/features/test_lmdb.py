"""UNITER's image database: both forms, what belongs beside it, and files that would end a process that mapped them."""

import concurrent.futures
import json
import multiprocessing
import operator
import pickle
import re
import struct

import lmdb as database
import msgpack
import numpy as np
import pytest

from evil_jax.data import features
from evil_jax.data.features import lmdb
from evil_jax.data.features.convert import convert
from evil_jax.data.features.locations import locations

NAME = 'feat_th0.2_max100_min10'
KEY = 'vcr_val_3015_CHARLIE_00.23.57.935@0.npz'


@pytest.fixture
def pictures(relative):
    return {
        KEY: relative(0),
        'flickr30k_000004465359.npz': relative(1, n=5),
        'coco_val2014_000000262284.npz': relative(2),
    }


@pytest.fixture
def folder(pictures, uniter, tmp_path):
    values = {key: uniter.value(uniter.members(regions)) for key, regions in pictures.items()}
    return uniter.write(tmp_path / NAME, values)


@pytest.mark.parametrize('compressed', [False, True])
def test_reads_what_was_written(pictures, uniter, tmp_path, same, compressed):
    encode = uniter.zipped if compressed else uniter.value
    values = {key: encode(uniter.members(regions)) for key, regions in pictures.items()}
    folder = uniter.write(tmp_path / (NAME + '_compressed' * compressed), values)
    reader = features.open_features(folder)
    assert isinstance(reader, lmdb.Reader)
    assert sorted(reader.ids()) == sorted(pictures) and len(reader) == 3
    for key, regions in pictures.items():
        same(reader[key], regions)
    same(reader['3015_CHARLIE_00.23.57.935@0'], pictures[KEY])
    same(reader[4465359], pictures['flickr30k_000004465359.npz'])
    assert reader[KEY].features.dtype == np.float16
    with pytest.raises(ValueError, match="image '' has boxes relative to the picture"):
        locations(reader[KEY], 'evil_vqax')


def test_many_pictures_and_small_values(uniter, tmp_path, relative, same):
    """Several levels of pages; values inside of leaf pages and on pages of their own; deleted and replaced ones."""
    regions = {f'coco_train2014_{i:012d}.npz': relative(i, n=i % 3, width=16) for i in range(700)}
    small = {'soft_labels': np.zeros((0, 2), np.float16)}
    values = {key: uniter.value(uniter.members(r) | (small if not len(r) else {})) for key, r in regions.items()}
    folder = uniter.write(tmp_path / 'all', dict.fromkeys(values, b'x' * 3000))
    uniter.write(folder, values)
    reader = lmdb.Reader(folder, width=16)
    with database.open(str(folder), readonly=True, lock=False) as env:
        assert env.stat()['depth'] > 1
    assert len(reader) == 700
    for key, wanted in regions.items():
        same(reader[key], wanted)
    starts = [entry.start for entry in reader._entries]
    assert starts == sorted(starts)

    # A branch page that is its own child would be walked for ever.
    path = folder / 'data.mdb'
    content = bytearray(path.read_bytes())
    root = max(struct.unpack_from('<QQQ', content, meta + 128)[::-2] for meta in (0, 4096))[1]
    first = root * 4096 + struct.unpack_from('<H', content, root * 4096 + 16)[0]
    content[first : first + 4] = struct.pack('<I', root)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf'{path}: damaged: page {root} stands twice in the tree'):
        lmdb.Reader(folder, width=16)


def test_defaults_of_arrays_that_may_be_missing(uniter, tmp_path, relative):
    regions = relative(0)
    members = uniter.members(regions)
    without = {
        'conf': {k: v for k, v in members.items() if k != 'conf'},
        'labels': {k: v for k, v in members.items() if k != 'soft_labels'},
        'both': {k: v for k, v in members.items() if k not in ('conf', 'soft_labels')},
        'features': {k: v for k, v in members.items() if k != 'features'},
        'norm_bb': {k: v for k, v in members.items() if k != 'norm_bb'},
    }
    reader = lmdb.Reader(uniter.write(tmp_path / 'all', {k: uniter.value(v) for k, v in without.items()}))
    assert reader['conf'].conf.tolist() == [0.5] * 3 and reader['conf'].classes.tolist() == regions.classes.tolist()
    assert reader['labels'].classes.tolist() == [-1] * 3 and reader['labels'].conf.tolist() == regions.conf.tolist()
    assert reader['both'].conf.tolist() == [1] * 3
    with pytest.raises(ValueError, match=r"data.mdb: image 'features': no features; there are norm_bb, conf, soft"):
        reader['features']
    with pytest.raises(ValueError, match=r"data.mdb: image 'norm_bb': features without boxes: norm_bb is missing"):
        reader['norm_bb']


def test_counts_cut_rows(pictures, uniter, tmp_path, same):
    values = {key: uniter.zipped(uniter.members(regions)) for key, regions in pictures.items()}
    counts = {key: len(regions) for key, regions in pictures.items()}
    folder = uniter.write(tmp_path / f'{NAME}_compressed', values, counts=counts)
    plain = lmdb.provenance(folder)
    for key, regions in pictures.items():
        same(lmdb.Reader(folder)[key], regions)
    path = tmp_path / 'nbb_th0.2_max100_min10.json'
    path.write_text(json.dumps(counts | {KEY: 2}))
    same(lmdb.Reader(folder)[KEY], pictures[KEY].take(slice(2)))
    assert lmdb.provenance(folder) != plain
    path.write_text(json.dumps(counts | {KEY: 4}))
    with pytest.raises(ValueError, match=rf"data.mdb: image '{KEY}': 3 regions, but {path} counts 4"):
        lmdb.Reader(folder)[KEY]
    size = path.stat().st_size
    assert len(lmdb.Reader(folder, counts_limit=size)) == 3
    with pytest.raises(ValueError, match=f'{path}: {size} bytes, wanted at most {size - 1}'):
        lmdb.Reader(folder, counts_limit=size - 1)
    path.write_text(json.dumps({'other.npz': 3}))
    with pytest.raises(ValueError, match='counts none: it belongs to another database'):
        lmdb.Reader(folder)[KEY]
    for content, message in (
        ('{"a": ', 'not JSON'),
        ('[1]', 'a JSON list'),
        ('{"a": -1}', "'a' has '-1' regions"),
        ('[' * 100_000, 'not JSON'),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=f'nbb_th0.2_max100_min10.json: {message}'):
            lmdb.Reader(folder)


def test_list_of_keys(pictures, uniter, tmp_path):
    values = {key: uniter.value(uniter.members(regions)) for key, regions in pictures.items()}
    assert len(lmdb.Reader(uniter.write(tmp_path / 'none', values, keys=False))) == 3
    with pytest.raises(ValueError, match=r"data.mdb: __keys__ lists 2 names, but 1 of them are not .* example 'b.npz'"):
        lmdb.Reader(uniter.write(tmp_path / 'two', values, keys=[KEY, 'b.npz']))
    with pytest.raises(ValueError, match='__keys__: holds 5, wanted a list of names'):
        lmdb.Reader(uniter.write(tmp_path / 'five', values, keys=5))


def test_databases_of_others(uniter, tmp_path):
    for name, value, message in (
        ('text', b'\x04\x22\x4d\x18rest', "lz4: this is UNITER's text database"),
        ('vilbert', pickle.dumps({'features': 1}), 'pickles .*never loaded'),
    ):
        with pytest.raises(ValueError, match=rf'{name}/data.mdb: the values are {message}'):
            features.open_features(uniter.write(tmp_path / name, {'a': value}))
    for name, values in (('empty', {}), ('only keys', {'__keys__': b'[]'})):
        with pytest.raises(ValueError, match=f'{name}/data.mdb: the database holds no pictures'):
            lmdb.Reader(uniter.write(tmp_path / name, values, keys=False))
    with database.open(str(tmp_path / 'named'), max_dbs=2, map_size=1 << 20) as env:
        with env.begin(write=True, db=env.open_db(b'inner')) as transaction:
            transaction.put(b'a', b'b')
    with pytest.raises(ValueError, match=r"b'inner' is a database in the database"):
        lmdb.Reader(tmp_path / 'named')
    with database.open(str(tmp_path / 'binary'), map_size=1 << 20) as env, env.begin(write=True) as transaction:
        transaction.put(b'\xff', b'b')
    with pytest.raises(ValueError, match=r"key b'\\xff' is not UTF-8"):
        lmdb.Reader(tmp_path / 'binary')


def test_truncated_at_many_places(folder, pictures):
    """liblmdb would die of SIGBUS here, and the tests with it."""
    path = folder / 'data.mdb'
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    used = 0
    sizes = [0, 1, 15, 20, 63, 64, 100, 151, 4095, 4096, 5000, 8191, 8192, *rng.integers(8192, len(good) - 1, 40)]
    for size in sizes:
        path.write_bytes(good[:size])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            reader = lmdb.Reader(folder)
            used += 1
            for key in pictures:
                reader[key]
    assert not used, 'found when it is opened, not hours later'
    path.write_bytes(good)
    reader = lmdb.Reader(folder)
    path.write_bytes(good[:8192])  # under an open reader
    with pytest.raises(ValueError, match=rf'{path}.*the file ends inside of the value'):
        reader[KEY]


@pytest.mark.parametrize(
    'place, content, message',
    [
        (16, b'\x00\x00\x00\x00', 'not an LMDB database: bytes 16 to 20 are 00 00 00 00'),
        (16, b'\xbe\xef\xc0\xde', 'wanted de c0 ef be'),
        (20, struct.pack('<I', 2), r'of data version 2 \(wanted 1\)'),
        (40, struct.pack('<I', 100), 'pages of 100 bytes'),
        (4096 + 16, b'\x00', 'the header at byte 4096 is damaged'),
        (4096 + 92, struct.pack('<H', 4), 'a database with flags 0x4'),
        (4096 + 120, struct.pack('<Q', 77), '4 keys in the tree, the header says 77'),
        (4096 + 128, struct.pack('<Q', 2**40), 'but page 1099511627776 would lie at bytes'),
        (4096 + 128, struct.pack('<Q', 0), 'no page of the tree at byte 0'),
    ],
)
def test_damaged_header(folder, place, content, message):
    path = folder / 'data.mdb'
    good = bytearray(path.read_bytes())
    good[place : place + len(content)] = content
    path.write_bytes(good)
    with pytest.raises(ValueError, match=rf'{path}: .*{message}'):
        lmdb.Reader(folder)


def test_damaged_pages(folder):
    path = folder / 'data.mdb'
    good = path.read_bytes()
    (root,) = struct.unpack_from('<Q', good, 4096 + 128)
    leaf = root * 4096
    first = leaf + struct.unpack_from('<H', good, leaf + 16)[0]
    second = leaf + struct.unpack_from('<H', good, leaf + 18)[0]
    for place, content, message in (
        (leaf, b'\xff', f'no page of the tree at byte {leaf}'),
        (leaf + 12, b'\xff\xff', f'no page of the tree at byte {leaf}'),
        (leaf + 16, b'\xff\xff', 'has a node outside of itself'),
        (first + 6, b'\xff\x7f', 'has a node outside of itself'),
        (first + 4, b'\x02', 'is a database in the database'),
        (second, b'\xff\xff\xff\xff', 'truncated or damaged: the value of'),
        (second + 8, b'\x00', 'damaged: key .* follows'),
        (leaf + 18, good[leaf + 16 : leaf + 18], 'damaged: key .* follows'),
    ):
        bad = bytearray(good)
        bad[place : place + len(content)] = content
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=rf'{path}: .*{message}'):
            lmdb.Reader(folder)
    # A value's own first page is looked at when the value is read.
    path.write_bytes(good)
    entry = lmdb.Reader(folder)._entries[-1]
    bad = bytearray(good)
    bad[entry.start - 16 : entry.start] = bytes(16)
    path.write_bytes(bad)
    reader = lmdb.Reader(folder)
    with pytest.raises(ValueError, match=rf'{path}: .*{re.escape(entry.key.decode())}.*damaged: byte'):
        reader[entry.key.decode()]


@pytest.mark.parametrize(
    'change, message',
    [
        ({b'kind': b'O'}, 'holds pickled objects, which are never loaded'),
        ({b'type': b'O', b'kind': b'O'}, 'holds pickled objects'),
        ({b'type': '|O', b'shape': [1], b'data': pickle.dumps(1)}, 'holds pickled objects'),
        ({b'type': [['a', '<f2']], b'kind': b'V'}, 'has the fields'),
        ({b'type': '<M8'}, "has type '<M8', wanted whole or"),
        ({b'shape': [10**12, 2048]}, r'has shape \[1000000000000, 2048\]'),
        ({b'shape': [2**30, 2048]}, r'holds 12288 bytes, but <f2 \(1073741824, 2048\) take 4398046511104'),
        ({b'shape': [3, 2047]}, 'holds 12288 bytes, but'),
        ({b'shape': [-3, 2048]}, r'has shape \[-3, 2048\]'),
        ({b'shape': [True, 2048]}, r'has shape \[True, 2048\]'),
        ({b'shape': None}, 'has the fields'),
        ({b'data': 'text'}, 'has data of type str'),
        ({b'nd': False}, 'has the fields'),
        (None, 'is a msgpack NoneType, wanted the map'),
    ],
)
def test_bad_arrays(uniter, tmp_path, relative, change, message):
    members = {name: uniter.packed(array) for name, array in uniter.members(relative(0)).items()}
    members['features'] = None if change is None else members['features'] | change
    values = {'good': uniter.value(uniter.members(relative(1))), 'bad': msgpack.packb(members, use_bin_type=True)}
    reader = lmdb.Reader(uniter.write(tmp_path / 'all', values))
    with pytest.raises(ValueError, match=rf"all/data.mdb: image 'bad': features {message}"):
        reader['bad']
    assert len(reader['good']) == 3


@pytest.mark.parametrize(
    'value',
    [
        b'', b'\xc1', b'\x91' * 100_000, b'\x81' * 100_000, b'\xdd\xff\xff\xff\xff', b'\xdf\xff\xff\xff\xff',
        b'\xc6\xff\xff\xff\xff', b'\x81\x91\x01\x01', b'\xc9\x7f\xff\xff\xff\x01', b'PK', b'PK\x03\x04',
        b'\x92\x01\x02', b'\x80',
        b'\x81\xa8features\x81\xc4\x02nd', b'\xd7\xff12345678', msgpack.packb({b'nd': True, b'type': '<f2'}),
    ],
)  # fmt: skip
def test_bytes_that_are_no_record(uniter, tmp_path, relative, value):
    folder = uniter.write(tmp_path / 'all', {'good': uniter.value(uniter.members(relative(1))), 'z bad': value})
    with pytest.raises(ValueError, match=r"all/data.mdb: image 'z bad': "):
        lmdb.Reader(folder)['z bad']


def test_not_finite_and_not_fitting(uniter, tmp_path, relative):
    members = uniter.members(relative(0))
    bad = {
        'nan': members | {'features': np.full((3, 2048), np.nan, np.float16)},
        'labels': members | {'soft_labels': np.full((3, 1601), np.nan, np.float16)},
        'rows': members | {'norm_bb': members['norm_bb'][:2]},
        'columns': members | {'norm_bb': members['norm_bb'][:, :5]},
        'type': members | {'features': members['features'].astype(np.int32)},
        'double': members | {'features': np.full((3, 2048), 1e300)},
    }
    reader = lmdb.Reader(uniter.write(tmp_path / 'all', {k: uniter.value(v) for k, v in bad.items()}))
    for key, message in (
        ('nan', 'features hold 6144 NaN'),
        ('labels', 'soft_labels hold NaN'),
        ('rows', r'norm_bb have shape \(2, 6\), wanted 3 rows of 4 or 6 or 7'),
        ('columns', r'norm_bb have shape \(3, 5\)'),
        ('type', 'features are int32, wanted float16 or float32'),
        ('double', 'features hold 6144 NaN or infinite'),
    ):
        with pytest.raises(ValueError, match=rf"data.mdb: image '{key}': {message}"):
            reader[key]
    with pytest.raises(ValueError, match=r"image 'nan': features have shape \(3, 2048\), wanted \(regions, 7\)"):
        lmdb.Reader(tmp_path / 'all', width=7)['nan']


def test_threads_pickle_fork_and_spawn(folder, pictures):
    reader = lmdb.Reader(folder)
    wanted = {key: float(regions.features.astype(np.float64).sum()) for key, regions in pictures.items()}

    def total(regions):
        return float(regions.features.astype(np.float64).sum())

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda k: total(reader[k]), [*pictures] * 10)) == [*wanted.values()] * 10
    copy = pickle.loads(pickle.dumps(reader))
    assert {key: total(copy[key]) for key in pictures} == wanted
    for start in ('fork', 'spawn'):
        with multiprocessing.get_context(start).Pool(2) as pool:
            read = pool.starmap(operator.getitem, [(reader, k) for k in [*pictures] * 2], chunksize=1)
        assert [total(regions) for regions in read] == [*wanted.values()] * 2


def test_store_equals_the_database(folder, pictures, tmp_path, same):
    convert([folder], tmp_path / 'store', progress=False)
    store, reader = features.open_features(tmp_path / 'store'), lmdb.Reader(folder)
    assert store.ids() == reader.ids()
    for key, regions in pictures.items():
        same(store[key], regions)
        assert store[key].size == (1, 1)
    convert(
        [folder], tmp_path / 'some', image_ids=['3015_CHARLIE_00.23.57.935@0', 262284], max_regions=2, progress=False
    )
    some = features.open_features(tmp_path / 'some')
    assert sorted(some.ids()) == sorted([KEY, 'coco_val2014_000000262284.npz'])
    assert len(some[KEY]) == 2
