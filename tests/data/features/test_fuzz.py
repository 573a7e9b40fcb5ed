"""Every container of regions, cut, flipped and lied about: regions, or one ValueError that says where.

A run is always the same. EVIL_FUZZ=10 tries ten times as much.
"""

import binascii
import copy
import io
import json
import os
import pathlib
import re
import shutil
import tracemalloc
import warnings
import zipfile

import hypothesis
import msgpack
import numpy as np
import pytest
from hypothesis import strategies as st

from evil_jax.data.features import _arrays, butd, lmdb, npz, store, tsv
from evil_jax.data.features.convert import convert
from evil_jax.data.features.regions import RegionReader

WIDE = 8
MORE = int(os.environ.get('EVIL_FUZZ', '1'))


def fuzz(examples, **strategies):
    """`hypothesis.given` that tries the same inputs on every run, each for at most some seconds."""

    def decorate(test):
        settings = hypothesis.settings(
            max_examples=examples * MORE, derandomize=True, database=None, deadline=10_000,
            suppress_health_check=list(hypothesis.HealthCheck),
        )  # fmt: skip
        return settings(hypothesis.given(**strategies)(test))

    return decorate


def judge(path, reader_class, named, **options) -> RegionReader | None:
    """Reads all. Fails unless each picture gives regions, or one ValueError that names the file (and the picture)."""
    path = pathlib.Path(path)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # offset files that do not belong, repeated rows
        try:
            reader = reader_class(path, **options)
        except ValueError as error:
            assert str(path) in str(error), error
            assert '\n' not in str(error) and len(str(error)) < 2000
            return None
    whole = True
    for image_id in reader.ids():
        try:
            regions = reader[image_id]
        except ValueError as error:
            assert str(path) in str(error), error
            assert not named or repr(image_id)[:100] in str(error) or 'pages begin' in str(error), error
            assert len(str(error)) < 2000
            whole = False
        else:
            shapes(regions, options.get('width', 2048))
    return reader if whole else None


def shapes(regions, width):
    n = len(regions)
    assert regions.features.shape == (n, width) and regions.features.dtype in (np.float16, np.float32)
    assert regions.boxes.shape == (n, 4) and regions.boxes.dtype == np.float32
    assert regions.conf.shape == regions.classes.shape == (n,)
    assert regions.conf.dtype == np.float32 and regions.classes.dtype == np.int32
    assert all(isinstance(side, int) and side >= 1 for side in regions.size)


# --- damage to the bytes of a file ---

PLACE = st.integers(0, 2**31)
BLOWN = st.sampled_from(
    [b'\xff' * 8, b'\x00' * 8, b'\xff\xff\xff\x7f', b'\x00\x00\x00\x80', b'9' * 20, b'-1', b'\t', b'\n']
)
CHANGE = st.one_of(
    st.tuples(st.just('cut'), PLACE),
    st.tuples(st.just('flip'), PLACE, st.integers(0, 7)),
    st.tuples(st.just('put'), PLACE, BLOWN | st.binary(min_size=1, max_size=40)),
    st.tuples(st.just('insert'), PLACE, BLOWN | st.binary(min_size=1, max_size=40)),
    st.tuples(st.just('remove'), PLACE, st.integers(1, 100)),
)
CHANGES = st.lists(CHANGE, min_size=1, max_size=4)


def damaged(content: bytes, changes) -> bytes:
    for kind, place, *more in changes:
        place %= len(content) + 1
        before, after = content[:place], content[place:]
        if kind == 'cut':
            content = before
        elif kind == 'flip' and after:
            content = before + bytes([after[0] ^ 1 << more[0]]) + after[1:]
        elif kind == 'put':
            content = before + more[0] + after[len(more[0]) :]
        elif kind == 'insert':
            content = before + more[0] + after
        elif kind == 'remove':
            content = before + after[more[0] :]
    return content


@pytest.fixture(scope='module')
def good(tmp_path_factory, uniter):
    """Folder with one small valid container of each kind."""
    folder = tmp_path_factory.mktemp('good')
    rng = np.random.default_rng(0)

    def arrays(n, width=WIDE, dtype='<f2'):
        found = {'features': rng.normal(size=(n, width)), 'norm_bb': np.sort(rng.uniform(size=(n, 6)))}
        found |= {'conf': rng.uniform(size=(n, 1)), 'soft_labels': rng.uniform(size=(n, 4))}
        return {name: array.astype(dtype) for name, array in found.items()}

    records = {f'coco_{i}.npz': arrays(n) for i, n in enumerate((3, 1, 0))}
    records['big.npz'] = arrays(300)  # has pages of its own
    uniter.write(folder / 'plain', {key: uniter.value(record) for key, record in records.items()})
    uniter.write(folder / 'zipped', {key: uniter.zipped(record) for key, record in records.items()})
    (folder / 'npz').mkdir()
    np.savez(folder / 'npz' / 'a.npz', **arrays(3))
    np.savez_compressed(
        folder / 'npz' / 'b.npz', x=arrays(2)['features'], bbox=np.ones((2, 4), 'f4'), image_w=4, image_h=3
    )
    np.savez(folder / 'npz' / 'c.npz', x=rng.normal(size=(WIDE, 2, 3)).astype('f4'))
    np.savez(folder / 'wide.npz', **arrays(2, 2048))
    cells = {n: [base64(a) for a in (np.ones((n, 4), '<f4'), np.ones((n, WIDE), '<f4'))] for n in (0, 1, 3)}
    rows = [b'\t'.join([b'img_%d' % n, b'40', b'30', b'%d' % n, *cells[n]]) for n in (1, 3, 0)]
    (folder / 'butd.tsv').write_bytes(b'\n'.join(rows) + b'\n')
    rows = []
    for n in (1, 3, 0):
        ids, conf = base64(np.arange(n, dtype='<i8')), base64(np.ones(n, '<f4'))
        rows.append(b'\t'.join([b'img_%d' % n, b'30', b'40', ids, conf, ids, conf, b'%d' % n, *cells[n]]))
    (folder / 'obj36.tsv').write_bytes(b'\r\n'.join(rows) + b'\r\n')
    convert([folder / 'wide.npz'], folder / 'store', progress=False)
    return folder


def base64(array) -> bytes:
    return binascii.b2a_base64(array.tobytes(), newline=False)


@pytest.fixture(scope='module')
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp('scratch')


def test_the_undamaged_files_are_read(good):
    for name, reader_class in CONTAINERS.items():
        reader = judge(good / name, reader_class, True, width=WIDE)
        assert reader is not None and len(reader) >= 3
    assert judge(good / 'store', store.Reader, True) is not None


CONTAINERS = {
    'plain': lmdb.Reader, 'zipped': lmdb.Reader, 'npz': npz.Reader, 'butd.tsv': butd.Reader, 'obj36.tsv': tsv.Reader
}  # fmt: skip


@pytest.mark.parametrize('name', ['butd.tsv', 'obj36.tsv'])
@fuzz(60, changes=CHANGES, index=st.booleans(), index_changes=st.lists(CHANGE, max_size=2))
def test_tsv_bytes(good, scratch, name, changes, index, index_changes):
    path, offsets = scratch / name, scratch / name.replace('.tsv', '_offset.txt')
    content = (good / name).read_bytes()
    path.write_bytes(content)
    offsets.unlink(missing_ok=True)
    if index:
        CONTAINERS[name](path, width=WIDE)
        offsets.write_bytes(damaged(offsets.read_bytes(), index_changes))
    path.write_bytes(damaged(content, changes))
    judge(path, CONTAINERS[name], True, width=WIDE)


CELL = st.one_of(
    st.binary(max_size=30),
    st.integers(-(10**30), 10**30).map(lambda n: b'%d' % n),
    st.sampled_from(
        [b'', b'=', b'A', b'AA==', b"b'AAAA'", b"b'", b'1e9', b'\xff', b'9' * 5000, b'nan', b'AAAA' * 1000]
    ),
)


@pytest.mark.parametrize('name', ['butd.tsv', 'obj36.tsv'])
@fuzz(50, cells=st.dictionaries(st.integers(0, 9), CELL, min_size=1, max_size=3))
def test_tsv_cells(good, scratch, name, cells):
    lines = (good / name).read_bytes().splitlines()
    row = lines[1].split(b'\t')
    for column, cell in cells.items():
        row[column % len(row)] = cell
    lines[1] = b'\t'.join(row)
    (scratch / name).write_bytes(b'\n'.join(lines) + b'\n')
    (scratch / name.replace('.tsv', '_offset.txt')).unlink(missing_ok=True)
    judge(scratch / name, CONTAINERS[name], True, width=WIDE)


@pytest.mark.parametrize('name', ['plain', 'zipped'])
@fuzz(120, changes=CHANGES, pages=st.booleans())
def test_database_bytes(good, scratch, name, changes, pages):
    """Half of the changes go to the first bytes of pages, where they hurt most."""
    content = (good / name / 'data.mdb').read_bytes()
    if pages:
        changes = [(kind, place // 4096 * 4096 + place % 160, *more) for kind, place, *more in changes]
    folder = scratch / name
    folder.mkdir(exist_ok=True)
    (folder / 'data.mdb').write_bytes(damaged(content, changes))
    judge(folder, lmdb.Reader, True, width=WIDE)


ATOM = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=8),
    st.binary(max_size=40),
    st.sampled_from(['<f2', '<f4', '|O', 'O', '<M8[s]', 'f', '<U9', 10**12, 2**62, -1]),
)  # fmt: skip
ANYTHING = st.recursive(
    ATOM,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.binary(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELD = st.sampled_from([b'nd', b'type', b'kind', b'shape', b'data'])
MEMBER = st.sampled_from(['features', 'norm_bb', 'conf', 'soft_labels', 'x', 'bbox', 'image_w', 'image_h', 'num_bbox'])
SHAPE = st.lists(st.integers(0, 5) | st.integers(-(2**62), 2**62), max_size=5)


@fuzz(
    80,
    fields=st.dictionaries(st.tuples(MEMBER, FIELD), ANYTHING | SHAPE, max_size=3),
    members=st.dictionaries(MEMBER, ANYTHING, max_size=2),
    whole=st.none() | ANYTHING,
)
def test_records(scratch, uniter, fields, members, whole):
    shapes_of = {'features': (2, WIDE), 'norm_bb': (2, 6), 'conf': (2, 1)}
    record = {name: uniter.packed(np.zeros(shape, '<f2')) for name, shape in shapes_of.items()}
    record |= copy.deepcopy(members)
    for (name, field), value in fields.items():
        if isinstance(record.get(name, {}), dict):
            record.setdefault(name, {})[field] = value
    values = {'a.npz': msgpack.packb(record if whole is None else whole, use_bin_type=True)}
    shutil.rmtree(scratch / 'records', ignore_errors=True)
    judge(uniter.write(scratch / 'records', values), lmdb.Reader, True, width=WIDE)


@fuzz(
    100,
    value=st.binary(max_size=60),
    start=st.sampled_from([b'', b'PK', b'PK\x03\x04', b'\x81\xa8features', b'\x93NUMPY']),
)
def test_values_that_are_any_bytes(scratch, uniter, value, start):
    shutil.rmtree(scratch / 'values', ignore_errors=True)
    judge(uniter.write(scratch / 'values', {'a.npz': start + value}), lmdb.Reader, True, width=WIDE)


@pytest.mark.parametrize('name', ['a', 'b', 'c'])
@fuzz(100, changes=CHANGES)
def test_archive_bytes(good, scratch, name, changes):
    content = damaged((good / 'npz' / f'{name}.npz').read_bytes(), changes)
    (scratch / f'{name}.npz').write_bytes(content)
    judge(scratch / f'{name}.npz', npz.Reader, False, width=WIDE)


@fuzz(
    100,
    name=MEMBER,
    descr=st.sampled_from(["'<f4'", "'<f2'", "'|O'", "'<i8'", "'<f16'", "[('a', '<f4')]", "'>f4'"])
    | st.text(max_size=6),
    order=st.sampled_from(['False', 'True', '0']),
    shape=st.one_of(SHAPE.map(lambda s: str(tuple(s))), st.text(max_size=9)),
    version=st.integers(0, 4),
    data=st.binary(max_size=70),
    options=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]),
)
def test_members(good, scratch, name, descr, order, shape, version, data, options):
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    content = io.BytesIO((good / 'npz' / 'a.npz').read_bytes())
    with zipfile.ZipFile(content) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    size = len(header).to_bytes(2 if version < 2 else 4, 'little')
    members[f'{name}.npy'] = b'\x93NUMPY' + bytes([version, 0]) + size + header + data
    with zipfile.ZipFile(scratch / 'm.npz', 'w', options) as archive:
        for filename, member in members.items():
            archive.writestr(filename, member)
    judge(scratch / 'm.npz', npz.Reader, False, width=WIDE)


STORE_FILES = [
    'store.json', 'shard-00000/manifest.json', 'shard-00000/ids.json',
    *(f'shard-00000/{name}.npy' for name in ('features', 'boxes', 'conf', 'classes', 'sizes', 'offsets')),
]  # fmt: skip


def judge_store(folder, wanted):
    """What is read without an error is the content, unless `verify` says that it is not."""
    reader = judge(folder, store.Reader, False)
    if reader is None:
        return
    try:
        reader.verify()
    except ValueError as error:
        assert str(folder) in str(error)
        return
    for image_id in reader.ids():
        np.testing.assert_array_equal(reader[image_id].features, wanted)


@fuzz(100, name=st.sampled_from(STORE_FILES), changes=CHANGES, keep_size=st.booleans())
def test_store_bytes(good, scratch, name, changes, keep_size):
    folder = scratch / 'store'
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good / 'store', folder)
    content = (folder / name).read_bytes()
    bad = damaged(content, changes)
    if keep_size:  # the manifest finds other sizes
        bad = bad[: len(content)].ljust(len(content), b'\0')
    (folder / name).write_bytes(bad)
    judge_store(folder, np.load(good / 'store/shard-00000/features.npy'))


def places(document, path=()):
    yield path
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in children:
        yield from places(value, (*path, key))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(['../shard-00000', 'shard-00000/..', 10**12, -1, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@fuzz(80, name=st.sampled_from(STORE_FILES[:3]), place=PLACE, value=JSON)
def test_store_documents(good, scratch, name, place, value):
    """A value of a JSON file is another one; hashes and sizes are made to agree, so that they do not find it."""
    folder = scratch / 'documents'
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good / 'store', folder)
    document = json.loads((folder / name).read_text())
    every = list(places(document))
    *way, last = every[place % len(every)] or (None,)
    target = document
    for key in way:
        target = target[key]
    if last is None:
        document = value
    else:
        target[last] = value
    (folder / name).write_text(json.dumps(document))
    if name.endswith('ids.json'):
        agree(folder / 'shard-00000/manifest.json', lambda d: d['files']['ids.json'].update(
            bytes=(folder / name).stat().st_size, sha256=store.sha256(folder / name)
        ))  # fmt: skip
    if name != 'store.json':
        agree(folder / 'store.json', lambda d: d['shards'][0].update(
            manifest_sha256=store.sha256(folder / 'shard-00000/manifest.json')
        ))  # fmt: skip
    judge_store(folder, np.load(good / 'store/shard-00000/features.npy'))


def agree(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_little_asks_for_little_memory(scratch, uniter, monkeypatch):
    """Records that claim terabytes, or unpack to much more than their bytes, are refused before memory is taken."""
    monkeypatch.setattr(_arrays, 'LIMIT', 32 << 20)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 8), }"
    npy = b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('features.npy', bytes(40 << 20))
    lying = io.BytesIO()
    with zipfile.ZipFile(lying, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('features.npy', bytes(30 << 20))
    lying = lying.getvalue().replace((30 << 20).to_bytes(4, 'little'), (99).to_bytes(4, 'little'))
    simple = io.BytesIO()
    with zipfile.ZipFile(simple, 'w') as archive:
        archive.writestr('features.npy', npy)
    record = {'features': uniter.packed(np.zeros((1, 8), '<f2')) | {b'shape': [10**6, 2048]}}
    values = {
        'shape': msgpack.packb(record, use_bin_type=True),
        'list': b'\xdd\x7f\xff\xff\xff' + bytes(1 << 20),
        'map': b'\xdf\x7f\xff\xff\xff' + bytes(1 << 20),
        'deep': b'\x91' * (1 << 20),
        'bomb': bomb.getvalue(), 'lying': lying, 'header': simple.getvalue(),
    }  # fmt: skip
    folder = uniter.write(scratch / 'huge', values)
    for key, value in values.items():
        (scratch / f'huge {key}.npz').write_bytes(value)
    (scratch / 'huge.tsv').write_bytes(b'1\t4\t3\t%d\tAAAA\tAAAA\n2\t4\t3\t1\tAAAA\tAAAA\n' % 10**12)
    del bomb, lying, simple
    tracemalloc.start()
    try:
        for key in values:
            for reader, name in (
                (lmdb.Reader(folder, width=8), key),
                (npz.Reader(scratch / f'huge {key}.npz', width=8), None),
            ):
                with pytest.raises(ValueError, match=re.escape(str(reader.path))):
                    reader[name or f'huge {key}']
        with pytest.raises(ValueError, match=r'huge.tsv:1: .*hold 3 bytes = 1000000000000 regions'):
            butd.Reader(scratch / 'huge.tsv', width=8)['1']
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
