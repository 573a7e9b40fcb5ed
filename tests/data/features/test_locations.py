"""The three conventions of location features, against numbers worked out by hand."""

import numpy as np
import pytest

from evil_jax.data.features.locations import CONVENTIONS, locations
from evil_jax.data.features.regions import Regions


def regions(boxes, size):
    n = len(boxes)
    return Regions(np.zeros((n, 2048)), np.array(boxes, np.float32), size, np.ones(n), np.zeros(n, np.int32))


@pytest.mark.parametrize(
    'convention, wanted',
    [
        # box (40, 20)-(120, 60) in a picture 200 wide, 100 high: 80 wide, 40 high
        ('uniter', [0.2, 0.2, 0.6, 0.6, 0.4, 0.4, 0.16]),
        ('evil_lmdb', [0.2, 0.2, 0.6, 0.6, 0.4, 0.4, 0.16]),
        ('evil_vqax', [20, 40, 60, 120, 80, 40, 3200]),
    ],
)
def test_by_hand(convention, wanted):
    found = locations(regions([[40, 20, 120, 60]], (200, 100)), convention)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [wanted], rtol=1e-6)


def test_width_and_height_are_swapped_for_lmdb_only():
    # box (10, 30)-(60, 40) in 100 x 50: x .1 .6, y .6 .8, w .5, h .2
    boxes = regions([[10, 30, 60, 40]], (100, 50))
    np.testing.assert_allclose(locations(boxes, 'uniter'), [[0.1, 0.6, 0.6, 0.8, 0.5, 0.2, 0.1]], rtol=1e-6)
    np.testing.assert_allclose(locations(boxes, 'evil_lmdb'), [[0.1, 0.6, 0.6, 0.8, 0.2, 0.5, 0.1]], rtol=1e-6)
    np.testing.assert_array_equal(locations(boxes, 'evil_vqax'), [[30, 10, 40, 60, 50, 10, 500]])


def test_boxes_relative_to_the_picture_have_no_pixels():
    """UNITER's files: boxes in [0, 1], size (1, 1)."""
    relative, pixels = regions([[0.1, 0.6, 0.6, 0.8]], (1, 1)), regions([[10, 30, 60, 40]], (100, 50))
    for convention in ('uniter', 'evil_lmdb'):
        np.testing.assert_allclose(locations(relative, convention), locations(pixels, convention), rtol=1e-5)
    message = r"image 'a/b\.npz' has boxes relative to the picture.*data\.locations='uniter'"
    with pytest.raises(ValueError, match=message):
        locations(relative, 'evil_vqax', 'a/b.npz')
    assert locations(regions([[0, 0, 1, 1]], (1, 2)), 'evil_vqax').tolist() == [[0, 0, 1, 1, 1, 1, 1]]


def test_what_float16_changes():
    """UNITER and e-UG store six numbers in float16 and multiply in float32; we subtract and multiply in float32."""
    random = np.random.default_rng(0)
    corner = random.uniform(0, 0.6, (2000, 2))
    boxes = np.concatenate([corner, corner + random.uniform(0.01, 0.4, (2000, 2))], axis=1)
    stored = np.concatenate([boxes, boxes[:, 2:] - boxes[:, :2]], axis=1).astype(np.float16).astype(np.float32)
    theirs = np.concatenate([stored, stored[:, 4:5] * stored[:, 5:]], axis=1)
    from_pixels = locations(regions(boxes * [640, 480, 640, 480], (640, 480)), 'uniter')
    from_halves = locations(regions(boxes.astype(np.float16), (1, 1)), 'uniter')
    np.testing.assert_array_equal(from_halves[:, :4], theirs[:, :4])
    for ours in (from_pixels, from_halves):
        assert 1e-5 < np.abs(ours - theirs)[:, :6].max() < 8e-4 and np.abs(ours - theirs)[:, 6].max() < 1.5e-3


def test_no_regions_and_unknown_convention():
    for convention in CONVENTIONS:
        assert locations(regions(np.zeros((0, 4)), (5, 5)), convention).shape == (0, 7)
    with pytest.raises(ValueError, match="'lmdb', wanted one of uniter, evil_lmdb, evil_vqax"):
        locations(regions([[0, 0, 1, 1]], (5, 5)), 'lmdb')
