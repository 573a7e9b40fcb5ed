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
        ({'size': (0, 5)}, r'here: size \(width, height\) is \(0, 5\)'),
    ):
        with pytest.raises(ValueError, match=message):
            regions.check(dataclasses.replace(good, **change), 'here')


def test_open_features_names_the_known_formats(tmp_path):
    (tmp_path / 'a.csv').write_text('x')
    with pytest.raises(ValueError, match=r'a.csv: not a known container.*Feature store \(.*LXMERT obj36 file \(.tsv\)'):
        features.open_features(tmp_path / 'a.csv')
    with pytest.raises(ValueError, match='not a known container'):
        features.open_features(tmp_path)
    with pytest.raises(ValueError, match='nothing: no region features, the path does not exist'):
        features.open_features(tmp_path / 'nothing')
