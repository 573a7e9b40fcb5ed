import io

import numpy as np
import PIL.Image
import pytest

from evil_jax.attribution import render
from evil_jax.pages import heat

PICTURE = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)


def mixed(colour, entry):
    """One pixel by hand: the picture's share is what the heat's opacity leaves."""
    opacity = int(entry[3]) / 255
    return [int(c * (1 - opacity) + h * opacity + 0.5) for c, h in zip(map(int, colour), map(int, entry[:3]))]


@pytest.mark.parametrize('signed', [False, True])
def test_overlay_by_hand(signed):
    field = np.random.default_rng(1).uniform(-1 if signed else 0, 1, (6, 8))
    found = render.overlay(PICTURE, field, signed=signed)
    assert found.dtype == np.uint8 and found.shape == PICTURE.shape
    for y, x in ((0, 0), (3, 5), (5, 7)):
        assert found[y, x].tolist() == mixed(PICTURE[y, x], heat.table(signed)[heat.levels(field[y, x], signed)])
    assert (render.overlay(PICTURE, np.zeros((6, 8)), signed=True) == PICTURE).all(), 'nothing covers nothing'


def test_patches_are_upsampled_then_scaled_and_tiny_pictures_enlarged():
    map_hw = np.array([[0.0, 2.0], [4.0, 1.0]])
    field = heat.upsample(map_hw, (6, 8))
    wanted = render.overlay(PICTURE, (field - field.min()) / np.ptp(field))
    np.testing.assert_array_equal(render.patches(PICTURE, map_hw, least=8), wanted)
    large = render.patches(PICTURE, map_hw)
    assert large.shape == (6 * 28, 8 * 28, 3), '224 on the larger side'
    np.testing.assert_array_equal(render.enlarged(PICTURE, 16)[::2, 1::2], PICTURE)
    signed = render.patches(PICTURE, map_hw - 2, least=8)
    np.testing.assert_array_equal(signed, render.overlay(PICTURE, (field - 2) / np.abs(field - 2).max(), signed=True))
    flat = render.patches(PICTURE, np.ones((3, 3)), least=8)
    np.testing.assert_array_equal(flat, render.overlay(PICTURE, np.zeros((6, 8))))


def test_regions_have_the_heat_of_the_strongest_and_an_outline():
    picture = np.full((40, 60, 3), 90, np.uint8)
    boxes = np.array([[0, 0, 30, 40], [20, 10, 50, 30]], np.float32)
    found = render.regions(picture, [0.0, 3.0], boxes)
    table = heat.table()
    inside = mixed(picture[0, 0], table[255])
    assert found[20, 25].tolist() == inside == found[20, 40].tolist(), 'also where the two overlap'
    assert found[20, 55].tolist() == found[5, 10].tolist() == mixed(picture[0, 0], table[0]), 'outside, least'
    edge = mixed(inside, [*table[255][:3], 128 + int(table[255][3]) // 2])
    assert found[10, 35].tolist() == found[29, 49].tolist() == edge
    relative = boxes / [60, 40, 60, 40]
    np.testing.assert_array_equal(render.regions(picture, [0, 3], relative, size=(1, 1)), found)
    np.testing.assert_array_equal(render.regions(picture, [3, 0], boxes[::-1]), found)
    signed = render.regions(picture, [-1.0, 3.0], boxes)
    assert signed[20, 55].tolist() == [90, 90, 90] and signed[5, 10, 2] > signed[5, 10, 0], 'against: blue'
    np.testing.assert_array_equal(render.regions(picture, [], []), render.overlay(picture, np.zeros((40, 60))))


def test_files_are_the_same_each_time_and_come_back():
    first = render.png(PICTURE)
    assert first == render.png(PICTURE.copy())
    np.testing.assert_array_equal(np.asarray(PIL.Image.open(io.BytesIO(first))), PICTURE)


def test_a_sheet_has_room_for_every_picture_and_name():
    rows = [[PICTURE, np.zeros((300, 100, 3), np.uint8)]] * 3
    names = ['generic', 'transformer_attribution_of_many_layers']
    sheet = render.sheet(rows, names, cell=80)
    height, width, _ = sheet.shape
    assert width == 2 * 86 + 6 and height > 3 * 86 and (sheet[:, :3] == 255).all()
    np.testing.assert_array_equal(sheet, render.sheet(rows, names, cell=80))
    head = height - 3 * 86
    assert head > render.sheet(rows, ['a', 'b'], cell=80).shape[0] - 3 * 86, 'a long name takes lines'
    for left in (6, 92):
        assert (sheet[:head, left : left + 80] < 128).any() and (sheet[head:, left : left + 80] < 128).any()
    with pytest.raises(ValueError, match=r'rows of \[2\] pictures under 1 names'):
        render.sheet(rows[:1], ['a'])


@pytest.mark.parametrize('bad', [
    PICTURE[..., :1], PICTURE[..., 0], PICTURE.astype(np.float32), np.zeros((4, 4, 4), np.uint8),
    np.zeros((0, 4, 3), np.uint8),
])  # fmt: skip
def test_other_pictures_are_refused(bad):
    for call in (lambda: render.patches(bad, np.ones((2, 2))), lambda: render.png(bad)):
        with pytest.raises(ValueError, match=r'wanted uint8 \[H, W, 3\]'):
            call()


def test_maps_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r'heat of shape \(3, 3\) over a picture of shape \(6, 8, 3\)'):
        render.overlay(PICTURE, np.zeros((3, 3)))
    with pytest.raises(ValueError, match='map of patches: 1 of 4 values are not finite'):
        render.patches(PICTURE, [[0, 1], [np.nan, 2]])
