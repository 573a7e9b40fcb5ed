"""Regions that evil_jax refuses are refused by the PyTorch code of an export as well."""

import importlib.util
import pathlib

import numpy as np
import pytest

from evil_jax.data.features import locations
from evil_jax.data.features.regions import Regions
from evil_jax.interop import export

FILE = pathlib.Path(export.__file__).parent / 'pytorch' / 'processing_evil.py'


@pytest.fixture(scope='module')
def processing():
    spec = importlib.util.spec_from_file_location('processing_evil', FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tiled(rows, columns, size=(1, 1)):
    boxes = [[c / columns, r / rows, (c + 1) / columns, (r + 1) / rows] for r in range(rows) for c in range(columns)]
    return np.float32(boxes) * np.float32([*size, *size])


def both(processing, boxes, size, confidence=None):
    """The same regions here and there."""
    n = len(boxes)
    features = np.arange(n, dtype=np.float16)[:, None].repeat(2048, 1)
    conf = np.ones(n, np.float32) if confidence is None else confidence
    here = Regions(features, boxes, size, conf, np.full(n, -1, np.int32))
    return here, processing.Regions(features, boxes, size, confidence)


def test_a_grid_is_not_cut(processing):
    for boxes, size in ((tiled(3, 5), (1, 1)), (tiled(7, 4, (333, 500)), (333, 500)), (tiled(1, 2), (1, 1))):
        n = len(boxes)
        here, there = both(processing, boxes, size)
        assert there.best(n) is there
        with pytest.raises(ValueError, match=rf'a grid of {n} cells'):
            here.best(n - 1, 'here')
        with pytest.raises(ValueError, match=rf'a grid of {n} cells, but this model reads at most {n - 1} regions$'):
            there.best(n - 1)
        wider, twice = boxes.copy(), boxes.copy()
        wider[0, 2] *= 1.5
        twice[0] = twice[-1]
        unsure = np.linspace(0.5, 1, n, dtype=np.float32)
        for others in ((boxes[:-1], size), (wider, size), (twice, size), (boxes, size, unsure), (-boxes, size)):
            here, there = both(processing, *others)
            assert not here.grid and not there.grid
            np.testing.assert_array_equal(there.best(1).features, here.best(1, 'here').features)
    assert len(both(processing, tiled(3, 5), None)[1].best(2)) == 2  # of a picture of unknown size


def test_pixels_of_a_picture_of_unknown_size_are_refused(processing):
    here, there = both(processing, tiled(2, 2), (1, 1))
    with pytest.raises(ValueError, match='location features evil_vqax are pixels'):
        locations.locations(here, 'evil_vqax')
    with pytest.raises(ValueError, match=r'this model reads boxes in pixels: give those, and the size of the picture$'):
        there.locations('evil_vqax')
    for size, conventions in (((1, 1), ('uniter', 'evil_lmdb')), ((120, 100), locations.CONVENTIONS)):
        here, there = both(processing, tiled(2, 2, size), size)
        for convention in conventions:
            np.testing.assert_array_equal(there.locations(convention), locations.locations(here, convention))
