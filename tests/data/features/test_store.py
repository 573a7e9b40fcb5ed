"""Reading a store: copies, damage, processes, remote stores."""

import json
import multiprocessing
import operator
import pathlib
import pickle
import shutil

import fsspec
import numpy as np
import pytest

from evil_jax.data import features
from evil_jax.data.features import staging, store
from evil_jax.data.features.convert import convert


@pytest.fixture
def made(make_regions, make_tsv, tmp_path):
    """A store of eight pictures in three shards."""
    path = make_tsv({f'COCO_x_{k:012d}': make_regions(k, n=20 + k) for k in range(8)})
    convert([path], tmp_path / 'store', shard_mib=0.35, progress=False)
    assert len(list((tmp_path / 'store').glob('shard-*'))) == 3
    return tmp_path / 'store'


def test_reads_are_copies_of_the_rows_of_one_image(made, make_regions):
    reader = features.open_features(made)
    regions = reader[5]
    assert regions.features.shape == (25, 2048) and regions.size == (120, 105)
    regions.features[:] = 0
    regions.boxes[:] = 0
    np.testing.assert_array_equal(reader[5].features, make_regions(5, n=25).features.astype(np.float16))
    np.testing.assert_array_equal(reader[5].boxes, make_regions(5, n=25).boxes)
    assert regions.features.base is None and type(regions.features) is np.ndarray
    with pytest.raises(ValueError, match="store: no regions of image '9'; it has 8 images"):
        reader[9]


@pytest.mark.parametrize(
    'name, place, value, message',
    [
        ('offsets', 1, 1000, 'damaged: not the numbers from 0 to'),
        ('offsets', 0, 1, 'damaged: not the numbers from 0 to'),
        ('sizes', (0, 1), 0, 'damaged: a picture has no size'),
    ],
)
def test_numbers_that_cannot_be(made, name, place, value, message):
    path = made / 'shard-00000' / f'{name}.npy'
    array = np.load(path)
    array[place] = value
    np.save(path, array)
    with pytest.raises(ValueError, match=f'{path}: {message}'):
        features.open_features(made)[0]


@pytest.mark.parametrize('name', [*(f'{n}.npy' for n in store.ARRAYS), 'ids.json'])
def test_every_damaged_file_is_named(made, name):
    path = made / 'shard-00001' / name
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    if name != 'ids.json':  # ids are parsed on opening
        reader = features.open_features(made)
        with pytest.raises(ValueError, match=f'{path}: sha256 .*, the manifest says'):
            reader.verify()
    path.write_bytes(data[:-1])
    with pytest.raises(ValueError, match=f'{path}: {len(data) - 1} bytes, the manifest says {len(data)}'):
        features.open_features(made)
    path.unlink()
    with pytest.raises(ValueError, match=f'{path}: missing'):
        features.open_features(made)


def test_manifest_shard_version_and_json(made):
    manifest = made / 'shard-00000/manifest.json'
    text = manifest.read_text()
    manifest.write_text(text.replace('"version": 1', '"version": 1 '))
    with pytest.raises(ValueError, match=f'{manifest}: sha256 .*, store.json says'):
        features.open_features(made)
    manifest.write_text(text)
    meta = json.loads((made / 'store.json').read_text())
    for change, message in (
        ({'version': 2}, 'store.json: version 2, this code reads 1'),
        ({'count': 9}, '8 ids in the shards, 8 of them different, but store.json says 9'),
        ({'shards': meta['shards'] + meta['shards'][:1]}, 'ids in the shards, 8 of them different'),
    ):
        (made / 'store.json').write_text(json.dumps(meta | change))
        with pytest.raises(ValueError, match=message):
            features.open_features(made)
    (made / 'store.json').write_text('{"version"')
    with pytest.raises(ValueError, match=r'store\.json: missing or damaged'):
        features.open_features(made)
    (made / 'store.json').write_text(json.dumps(meta))
    shutil.rmtree(made / 'shard-00002')
    with pytest.raises(ValueError, match=r'shard-00002/manifest\.json: missing or damaged'):
        features.open_features(made)


def test_pickled_arrays_are_never_loaded(made):
    path = made / 'shard-00000/sizes.npy'
    size = path.stat().st_size
    np.save(path, np.array([{'a': 1}], object), allow_pickle=True)
    path.write_bytes(path.read_bytes().ljust(size, b'\0'))
    manifest = made / 'shard-00000/manifest.json'
    content = json.loads(manifest.read_text())
    content['files']['sizes.npy'] = {'bytes': path.stat().st_size, 'sha256': store.sha256(path)}
    manifest.write_text(json.dumps(content))
    meta = json.loads((made / 'store.json').read_text())
    meta['shards'][0]['manifest_sha256'] = store.sha256(manifest)
    (made / 'store.json').write_text(json.dumps(meta))
    reader = features.open_features(made)
    with pytest.raises(ValueError, match=r'sizes.npy holds pickled objects, which are never loaded'):
        reader[0]


def test_pickle_is_small_and_processes_map_for_themselves(made):
    reader = features.open_features(made)
    wanted = [reader[i].features for i in reader.ids()]
    assert len(pickle.dumps(reader)) < 1000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(reader))[3].features, wanted[3])
    for start in ('fork', 'spawn'):
        with multiprocessing.get_context(start).Pool(2) as pool:
            found = pool.starmap(operator.getitem, [(reader, i) for i in range(8)])
        assert all(np.array_equal(a.features, b) for a, b in zip(found, wanted))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv('EVIL_JAX_CACHE', str(tmp_path / 'cache'))
    return tmp_path / 'cache/features'


@pytest.fixture
def memory():
    remote = fsspec.filesystem('memory')
    yield remote
    if remote.exists('/evil_jax_test'):
        remote.rm('/evil_jax_test', recursive=True)


def test_remote_store(made, cache, memory):
    memory.put(f'{made}/', '/evil_jax_test/store/', recursive=True)
    reader = features.open_features('memory://evil_jax_test/store')
    assert reader.path.parent == cache
    reader.verify()
    np.testing.assert_array_equal(reader[3].features, features.open_features(made)[3].features)
    written = {p: p.stat().st_mtime_ns for p in cache.rglob('*')}
    memory.rm('/evil_jax_test/store/shard-00001', recursive=True)  # not needed: the copy is used again
    assert features.open_features('memory://evil_jax_test/store/').path == reader.path
    assert {p: p.stat().st_mtime_ns for p in cache.rglob('*')} == written


def test_damaged_remote_store_leaves_nothing(made, cache, memory):
    memory.put(f'{made}/', '/evil_jax_test/store/', recursive=True)
    data = memory.cat_file('/evil_jax_test/store/shard-00001/conf.npy')
    memory.pipe_file('/evil_jax_test/store/shard-00001/conf.npy', data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(
        ValueError, match=r'memory://evil_jax_test/store: the copy is damaged: .*shard-00001/conf.npy: sha256'
    ):
        features.open_features('memory://evil_jax_test/store')
    assert list(cache.iterdir()) == []


def test_remote_tsv(make_regions, make_tsv, cache):
    path = make_tsv({'a': make_regions(0)})
    reader = features.open_features(f'file://{path}')
    assert reader.path.name == 'a.tsv' and cache in reader.path.parents
    assert reader['a'].size == (120, 100)
    assert not path.with_name('a_offset.txt').exists()
    make_tsv({'a': make_regions(7)})  # another file at the same place is copied again
    assert features.open_features(f'file://{path}')['a'].size == (120, 107)


def test_remote_errors(cache, memory, tmp_path):
    with pytest.raises(ValueError, match='memory://evil_jax_test/no: no region features, the path does not exist'):
        features.open_features('memory://evil_jax_test/no')
    with pytest.raises(ValueError, match='nowhere://x: cannot be opened'):
        features.open_features('nowhere://x')
    memory.pipe_file('/evil_jax_test/folder/file', b'x')
    with pytest.raises(ValueError, match=r'must be a feature store, but it has no store.json'):
        features.open_features('memory://evil_jax_test/folder')


def test_default_cache_folder(monkeypatch):
    monkeypatch.delenv('EVIL_JAX_CACHE', raising=False)
    assert staging.cache_folder() == pathlib.Path('~/.cache/evil_jax').expanduser()
