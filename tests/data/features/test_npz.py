""".npz files: regions in two forms, grids, and archives that ask for more than they hold."""

import io
import pickle
import zipfile

import numpy as np
import pytest

from evil_jax.data import features
from evil_jax.data.features import _arrays, npz
from evil_jax.data.features.convert import convert
from evil_jax.data.features.regions import Regions


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / 'regions'
    path.mkdir()
    return path


def pixels(regions, features='x', boxes='bbox', count='num_bbox'):
    width, height = regions.size
    return {features: regions.features, boxes: regions.boxes, 'image_w': width, 'image_h': height, count: len(regions)}


@pytest.mark.parametrize('save', [np.savez, np.savez_compressed])
def test_folder_of_regions(folder, make_regions, relative, uniter, same, save):
    regions, small = make_regions(0), relative(1)
    one = Regions(regions.features, regions.boxes, regions.size, np.ones(3, np.float32), np.full(3, -1, np.int32))
    save(folder / 'COCO_train2014_000000000009.npz', **pixels(regions))
    save(folder / 'flickr30k_000000000123.npz', **uniter.members(small))
    save(folder / 'vcr_val_abc@0.npz', **pixels(regions, 'features', 'boxes', 'num_boxes'), **{
        'norm_bb': uniter.members(small)['norm_bb'], 'conf': regions.conf, 'info': np.array({'a': 1}, object)
    })  # fmt: skip
    (folder / 'notes.txt').write_text('not looked at')
    (folder / '._x.npz').write_text('nor this')
    reader = features.open_features(folder)
    assert isinstance(reader, npz.Reader)
    assert reader.ids() == ['COCO_train2014_000000000009', 'flickr30k_000000000123', 'vcr_val_abc@0']
    same(reader[9], one)
    same(reader['123.jpg'], small)
    found = reader['abc@0']
    assert found.size == (120, 100), 'pixels, where there are both'
    assert found.conf.tolist() == regions.conf.tolist()
    same(pickle.loads(pickle.dumps(reader))['flickr30k_000000000123.npz'], small)
    convert([folder], folder.parent / 'store', progress=False)
    store = features.open_features(folder.parent / 'store')
    assert store['abc@0'].size == (120, 100) and store['123'].size == (1, 1)
    np.testing.assert_array_equal(store[9].features, one.features.astype(np.float16))


def test_one_file_is_one_picture(folder, make_regions):
    path = folder / 'COCO_val2014_000000000042.jpg.npz'
    np.savez(path, **pixels(make_regions(0)))
    reader = features.open_features(path)
    assert reader.ids() == ['COCO_val2014_000000000042.jpg']
    assert len(reader['COCO_val2014_000000000042']) == len(reader[42]) == 3
    assert reader.provenance()['format'] == 'npz' and reader.provenance()['bytes'] == path.stat().st_size
    path.unlink()
    with pytest.raises(ValueError, match=r'42.jpg.npz: the file of image .* has gone'):
        reader[42]


def test_provenance_of_a_folder(folder, make_regions):
    for name in 'abc':
        np.savez(folder / f'{name}.npz', **pixels(make_regions(0)))
    first = features.provenance(folder)
    assert (first['format'], first['name'], first['count']) == ('npz_folder', 'regions', 3)
    np.savez(folder / 'c.npz', **pixels(make_regions(1)))
    assert features.provenance(folder) != first
    np.savez(folder / 'b.npz', **pixels(make_regions(0, n=4)))
    assert features.provenance(folder)['listing_sha256'] != first['listing_sha256']


@pytest.mark.parametrize('order', ['C', 'F'])
def test_grid(folder, order):
    x = np.asarray(np.random.default_rng(0).normal(size=(2048, 14, 7)).astype(np.float32), order=order)
    np.savez(folder / 'COCO_train2014_000000000009.jpg.npz', x=x)
    regions = features.open_features(folder)[9]
    assert len(regions) == 98 and regions.size == (1, 1)
    assert regions.conf.tolist() == [1] * 98 and regions.classes.tolist() == [-1] * 98
    for row, column in ((0, 0), (3, 5), (13, 6)):
        np.testing.assert_array_equal(regions.features[row * 7 + column], x[:, row, column])
        np.testing.assert_allclose(
            regions.boxes[row * 7 + column], [column / 7, row / 14, (column + 1) / 7, (row + 1) / 14], rtol=1e-6
        )
    assert regions.boxes.min() == 0 and regions.boxes.max() == 1
    with pytest.raises(
        ValueError, match=r"'COCO_train2014_0+9.jpg': a grid of 98 cells, .*build.max_regions=98 and data"
    ):
        convert([folder], folder.parent / 'cut', max_regions=97, progress=False)
    assert convert([folder], folder.parent / 'store', max_regions=196, progress=False)['cut_images'] == 0
    stored = features.open_features(folder.parent / 'store')[9]
    assert len(stored) == 98 and stored.grid


@pytest.mark.parametrize(
    'change, message',
    [
        ({'x': np.zeros((3, 7), np.float32)}, r'x have shape \(3, 7\), wanted \(regions, 2048\), or \(2048, rows'),
        ({'x': np.zeros((7, 14, 14), np.float32)}, r'x have shape \(7, 14, 14\), wanted \(2048, rows, columns\)'),
        ({'x': np.zeros(2048, np.float32)}, r'x have shape \(2048,\)'),
        ({'x': np.array([{}], object)}, 'x holds pickled objects, which are never loaded'),
        ({'bbox': np.zeros((2, 4), np.float32)}, r'bbox have shape \(2, 4\), wanted 3 rows of 4'),
        ({'bbox': np.full((3, 4), np.nan, np.float32)}, 'boxes hold 12 NaN'),
        ({'num_bbox': 4}, 'num_bbox is 4, but x have 3 rows'),
        ({'num_bbox': np.array([1, 2])}, r'num_bbox is \[1 2\], wanted one whole number'),
        ({'image_w': 0}, r'size \(width, height\) is \(0, 100\)'),
        ({'image_w': 10**11}, r'size \(width, height\) is \(100000000000, 100\)'),
        ({'image_w': np.nan}, 'image_w is nan, wanted one whole number'),
        ({'image_w': 'wide'}, "image_w has type '<U4', wanted whole or floating-point numbers"),
        ({'image_w': None}, 'bbox without the size of the picture: image_w missing'),
        ({'bbox': None}, 'x without boxes: norm_bb is missing, and bbox'),
        ({'x': None}, 'no features; there are bbox, image_w'),
    ],
)  # fmt: skip
def test_bad_arrays(folder, make_regions, change, message):
    arrays = {n: a for n, a in (pixels(make_regions(0)) | change).items() if a is not None}
    np.savez(folder / 'a.npz', **arrays)
    with pytest.raises(ValueError, match=rf'a.npz: {message}'):
        features.open_features(folder)['a']


def test_rows_beyond_their_number_do_not_count(folder, make_regions):
    np.savez(folder / 'a.npz', **pixels(make_regions(0, n=5)) | {'num_bbox': 2})
    assert len(features.open_features(folder)['a']) == 2


def header(shape, descr="'<f4'"):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    return b'\x93NUMPY\x01\x00' + len(text).to_bytes(2, 'little') + text.encode()


def archive(path, name, content, **options):
    with zipfile.ZipFile(path, 'w', **options) as file:
        file.writestr(name, content)


@pytest.mark.parametrize(
    'content, message',
    [
        (header((10**12, 2048)), r'holds 0 bytes, but|has shape'),
        (header((10**30,)), 'has shape'),
        (header('(2048, 10L, 10L)'), r'holds 0 bytes, but <f4 \(2048, 10, 10\) take 819200'),
        (header('(' * 500 + ')' * 500), 'has a damaged header'),
        (header('__import__("os").abort()'), 'has a damaged header'),
        (header((1,), "[('a', '<f4')]"), 'has a damaged header, or is no plain array'),
        (header((1,), "'<M8[s]'") + bytes(8), r"has type '<M8\[s\]', wanted whole"),
        (header((1,), "'|O'"), 'holds pickled objects'),
        (b'\x93NUMPY\x01\x00\xff\xff{', 'has a damaged header'),
        (pickle.dumps({}), 'is not a .npy array: it begins with'),
        (b'', 'is not a .npy array'),
    ],
)
def test_headers_are_not_trusted(folder, content, message):
    archive(folder / 'a.npz', 'x.npy', content)
    with pytest.raises(ValueError, match=rf'a.npz: x ({message})'):
        features.open_features(folder)['a']


def test_bombs(folder, monkeypatch):
    monkeypatch.setattr(_arrays, 'LIMIT', 1 << 20)
    archive(folder / 'big.npz', 'x.npy', bytes(2 << 20), compression=zipfile.ZIP_DEFLATED)
    assert (folder / 'big.npz').stat().st_size < 4096
    reader = features.open_features(folder)
    with pytest.raises(ValueError, match=r'big.npz: x takes 2097152 bytes unpacked .*more than 1 MiB are no regions'):
        reader['big']
    # The directory of this archive says that little is in it.
    lie = (folder / 'big.npz').read_bytes().replace((2 << 20).to_bytes(4, 'little'), (200).to_bytes(4, 'little'))
    (folder / 'big.npz').write_bytes(lie)
    with pytest.raises(ValueError, match=r'big.npz: '):
        reader['big']
    (folder / 'big.npz').write_bytes(bytes(2 << 20))
    with pytest.raises(ValueError, match=r'big.npz: 2097152 bytes; more than 1 MiB'):
        reader['big']


def test_damaged_archives(folder, make_regions):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **pixels(make_regions(0)))
    good = buffer.getvalue()
    flipped = bytearray(good)
    flipped[200] ^= 4
    for content in (b'', b'PK', good[:100], good[:-30], good[1000:], bytes(flipped), b'x' * 5000):
        (folder / 'a.npz').write_bytes(content)
        with pytest.raises(ValueError, match=r'a.npz: .*not a readable .npz archive'):
            features.open_features(folder)['a']
    archive(folder / 'a.npz', 'x.npy', header((0, 2048)), compression=zipfile.ZIP_BZIP2)
    with pytest.raises(ValueError, match=r'a.npz: x is encrypted, or compressed in a way'):
        features.open_features(folder)['a']
