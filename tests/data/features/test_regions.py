"""Look-up of image ids, and the checks of regions."""

import dataclasses

import numpy as np
import pytest

from evil_jax.data import features
from evil_jax.data.features import regions


class Listed(regions.RegionReader):
    def __init__(self, *ids):
        self.path = 'listed'
        self._index = {image_id: i for i, image_id in enumerate(ids)}

    def _read(self, image_id, position):
        return image_id, position


def test_resolve_finds_the_picture_number():
    reader = Listed('COCO_train2014_000000132417', 'coco_val2014_000000262284.npz', '7', 'scene_3')
    for asked, found in {
        'COCO_train2014_000000132417': 'COCO_train2014_000000132417',
        '132417': 'COCO_train2014_000000132417',
        132417: 'COCO_train2014_000000132417',
        '000000132417.jpg': 'COCO_train2014_000000132417',
        'COCO_val2014_000000262284': 'coco_val2014_000000262284.npz',
        np.int64(262284): 'coco_val2014_000000262284.npz',
        'COCO_test2015_000000000007.jpg': '7',
    }.items():
        assert reader.resolve(asked) == found
        assert asked in reader
        assert reader[asked][0] == found


@pytest.mark.parametrize('asked', ['9', 'COCO_val2014_000000132417', 'other_3', 'scene', 'scene_3x', '', 'vcr@3'])
def test_resolve_never_guesses(asked):
    reader = Listed('COCO_train2014_000000132417', 'scene_3')
    assert asked not in reader
    with pytest.raises(ValueError, match=f'no regions of image {asked!r}; it has 2 images'):
        reader.resolve(asked)


def test_numbers_that_are_not_picture_numbers():
    reader = Listed('vcr_val_LwvhCgfPw@3', 'lsmdc_3023')
    assert 3 not in reader
    assert 'vcr_val_other@3' not in reader


def test_ambiguous_number_is_an_error():
    reader = Listed('COCO_train2014_000000000012', 'shapes_12')
    with pytest.raises(ValueError, match=r"'12' may be 'COCO_train2014_000000000012' or 'shapes_12'"):
        reader.resolve(12)
    assert reader.resolve('shapes_000012') == 'shapes_12'


VCR = '3015_CHARLIE_00.23.57.935-00.24.00.783@0'


def test_resolve_knows_uniters_names():
    flickr = 'flickr30k_000004465359.npz'
    reader = Listed(f'vcr_val_{VCR}.npz', 'vcr_gt_train__x-Y@11.npz', flickr, 'a b.jpg', 'C.jpg.npz')
    for asked, found in {
        VCR: f'vcr_val_{VCR}.npz',
        f'{VCR}.jpg': f'vcr_val_{VCR}.npz',
        f'vcr_val_{VCR}': f'vcr_val_{VCR}.npz',
        f'vcr_val_{VCR}.jpg': f'vcr_val_{VCR}.npz',
        '_x-Y@11': 'vcr_gt_train__x-Y@11.npz',
        '4465359': flickr,
        '4465359.jpg': flickr,
        'flickr30k_4465359.npz': flickr,
        'a b': 'a b.jpg',
        'a b.npz': 'a b.jpg',
        'C': 'C.jpg.npz',
    }.items():
        assert reader.resolve(asked) == found
    for asked in (
        f'vcr_train_{VCR}', f'vcr_gt_val_{VCR}.npz', VCR.lower(), VCR[:-1] + '1', VCR[1:], f'x_{VCR}', 'x-Y@11', '11',
        '0', 'vcr_val_', 'coco_4465359', 'c', '.npz', '.jpg', 'A b', '٤٤٦٥٣٥٩', '9' * 5000,
    ):  # fmt: skip
        assert asked not in reader, asked
    assert VCR in Listed(f'{VCR}.jpg') and f'vcr_gt_val_{VCR}.npz' in Listed(VCR)


def test_ambiguous_names_are_errors():
    reader = Listed(f'vcr_val_{VCR}.npz', f'vcr_gt_val_{VCR}.npz', 'a.jpg', 'a.npz', 'COCO_x_7', '7', '007.jpg')
    with pytest.raises(ValueError, match=rf"image '{VCR}' may be 'vcr_val_{VCR}.npz' or 'vcr_gt_val_{VCR}.npz'"):
        reader.resolve(VCR)
    assert reader.resolve(f'vcr_val_{VCR}') == f'vcr_val_{VCR}.npz'
    for asked in ('a', 'a.png'):
        with pytest.raises(ValueError, match=f"'{asked}' may be 'a.jpg' or 'a.npz'"):
            reader.resolve(asked)
    assert reader.resolve('7') == '7' and reader.resolve('coco_x_0007.npz') == 'COCO_x_7'
    with pytest.raises(ValueError, match=r"'7.npz' may be '7' or '007.jpg'"):
        reader.resolve('7.npz')


def test_check_names_what_is_wrong(make_regions):
    good = make_regions(0)
    regions.check(good, 'here')
    nan = good.features.copy()
    nan[1, 5] = np.nan
    for change, message in (
        ({'features': nan}, 'here: features hold 1 NaN or infinite values, first in region 1'),
        ({'features': good.features[:, :7]}, r'here: features have shape \(3, 7\), wanted \(3, 2048\)'),
        ({'conf': good.conf[:2]}, r'here: conf have shape \(2,\), wanted \(3,\)'),
        ({'boxes': good.boxes * np.inf}, 'here: boxes hold .* infinite values'),
        (
            {'boxes': good.boxes[:, [2, 1, 0, 3]]},
            r'here: the box of region 0 is .*, wanted x1, y1, x2, y2 with x1 <= x2',
        ),
        (
            {'boxes': np.float32([[0, 0, 5, 5], [1, 1, 1, 1], [0, 5.5, 5, 5]])},
            'here: the box of region 2 is 0, 5.5, 5, 5,',
        ),
        ({'conf': np.float32([0, 1, 1.01])}, 'here: the confidence of region 2 is 1.01, wanted 0 to 1'),
        ({'conf': np.float32([0, -0.5, 1.01])}, 'here: the confidence of region 1 is -0.5, wanted 0 to 1'),
        ({'size': (0, 5)}, r'here: size \(width, height\) is \(0, 5\)'),
    ):
        with pytest.raises(ValueError, match=message):
            regions.check(dataclasses.replace(good, **change), 'here')
    regions.check(dataclasses.replace(good, conf=np.float32([0, 1, np.float16(1.0009)])), 'here')  # rounded in float16


def test_open_features_names_the_known_formats(tmp_path):
    (tmp_path / 'a.csv').write_text('x')
    with pytest.raises(ValueError, match=r'a.csv: not a known container.* table with commas.*Known: .*') as caught:
        features.open_features(tmp_path / 'a.csv')
    for name in (
        'Feature store (',
        'LXMERT obj36 file (.tsv)',
        "UNITER's image database",
        'Bottom-up-attention',
        '.npz',
    ):
        assert name in str(caught.value)
    with pytest.raises(ValueError, match='nothing: no region features, the path does not exist'):
        features.open_features(tmp_path / 'nothing')


def test_open_features_tells_what_else_it_is(tmp_path, uniter):
    (tmp_path / 'img_db').mkdir()
    uniter.write(tmp_path / 'img_db' / 'all', {'a': b'x'})
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'other').mkdir()
    (tmp_path / 'other' / 'readme').write_text('x')
    (tmp_path / 'raw').mkdir()
    (tmp_path / 'raw' / 'regions.tsv').write_text('x')
    (tmp_path / 'raw' / 'regions_npz').mkdir()
    (tmp_path / 'raw' / 'regions_npz' / 'a.npz').write_text('x')
    (tmp_path / 'a.lmdb').write_bytes((tmp_path / 'img_db/all/data.mdb').read_bytes())
    for name in ('a.npy', 'a.h5', 'a.pkl', 'a.pth', 'a.tar', 'a.unheard'):
        (tmp_path / name).write_bytes(b'something')
    (tmp_path / 'zero').touch()
    for name, message in {
        'empty': 'The folder is empty.',
        'other': 'The folder holds readme.',
        'img_db': 'The folder holds all: give that.',
        'raw': 'The folder holds regions.tsv, regions_npz: give one.',
        'img_db/all/data.mdb': 'It is an LMDB database: give its folder',
        'a.lmdb': 'It is an LMDB database: give its folder',
        'a.npy': 'one array without boxes',
        'a.h5': 'HDF5, which is not read',
        'a.pkl': 'pickle, which is never loaded',
        'a.pth': 'PyTorch, which is not read',
        'a.tar': 'an archive; unpack it',
        'a.unheard': ' Known: ',
        'zero': 'The file is empty.',
    }.items():
        with pytest.raises(ValueError, match=rf'{name}: not a known container of region features.*?{message}'):
            features.open_features(tmp_path / name)


def test_the_most_confident_regions_are_the_best(make_regions):
    found = make_regions(0, n=5)
    found.conf[:] = [0.5, 0.9, 0.1, 0.9, 0.8]
    for n, kept in ((0, []), (1, [1]), (3, [1, 3, 4]), (4, [0, 1, 3, 4])):
        best = found.best(n, 'here')
        assert best.boxes.tolist() == found.boxes[kept].tolist() and best.conf.tolist() == found.conf[kept].tolist()
    assert found.best(5, 'here') is found.best(9, 'here') is found


def tiled(rows, columns, size=(1, 1)):
    """A grid, made cell by cell."""
    boxes = [[c / columns, r / rows, (c + 1) / columns, (r + 1) / rows] for r in range(rows) for c in range(columns)]
    n = rows * columns
    boxes = np.float32(boxes) * np.float32([*size, *size])
    return regions.Regions(np.zeros((n, 8)), boxes, size, np.ones(n, np.float32), np.full(n, -1, np.int32))


@pytest.mark.parametrize('grid', [tiled(14, 14), tiled(7, 20), tiled(14, 14, (333, 500)), tiled(1, 2)])
def test_a_grid_is_not_cut(grid, make_regions):
    n = len(grid)
    assert grid.grid and grid.best(n, 'here') is grid
    message = (
        f'here: a grid of {n} cells, of which only the first {n - 1} .* build.max_regions={n} and data.max_regions={n}'
    )
    with pytest.raises(ValueError, match=message):
        grid.best(n - 1, 'here')
    # None of these is a grid: cells missing, one of them twice, another size, less sure, and detected regions.
    twice, wider, unsure = (dataclasses.replace(grid, boxes=grid.boxes.copy(), conf=grid.conf.copy()) for _ in range(3))
    twice.boxes[0], unsure.conf[0] = twice.boxes[-1], 0.9
    wider.boxes[0, 2] *= 1.5
    for other in (grid.take(slice(n - 1)), twice, wider, unsure, make_regions(0), make_regions(0, n=0)):
        assert not other.grid
        assert len(other.best(1, 'here')) == min(len(other), 1)


def test_boxes_may_leave_the_picture_by_rounding(make_regions):
    found, relative = make_regions(0), tiled(2, 2)
    assert not found.outside and not relative.outside
    for boxes, size, outside in (
        ([-1, -1, 121, 101], (120, 100), False),
        ([0, 0, 121.5, 100], (120, 100), True),
        ([0, 0, 120, 102], (120, 100), True),
        ([-2, 0, 120, 100], (120, 100), True),
        ([0, 0, 1010, 50], (1000, 50), False),
        ([0, 0, 1.009, 1], (1, 1), False),
        ([0, 0, 1, 1.02], (1, 1), True),
    ):
        assert dataclasses.replace(found, boxes=np.float32([boxes]), size=size).outside is outside, (boxes, size)
