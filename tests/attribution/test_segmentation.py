import json

import numpy as np
import pytest
from sklearn import metrics

from evil_jax.attribution import segmentation
from evil_jax.data import shapes
from evil_jax.data.shapes.render import outline

# Means 2 and 5/2: what is found is the 4 and the 3 of one picture, the 9 of the other.
MAPS = ([[0, 1], [3, 4]], [[0, 1], [0, 9]])
MASKS = ([[0, 0], [0, 1]], [[1, 0], [0, 1]])
#          right pixels  background: both, either   object: both, either
WANTED = [[3, 4, 2, 3, 1, 2], [3, 4, 2, 3, 1, 2]]


def rows():
    return np.array([segmentation.measure(m, t) for m, t in zip(MAPS, MASKS)])


def test_sums_by_hand():
    found = rows()
    assert found[:, :6].tolist() == WANTED
    # Object: scores 0, 1/4, 3/4, 1 of which the last is true: 1. Scores 0, 1/9, 0, 1 of the other picture, of which the
    # first and the last are true: precision 1, and 2/4 behind the ties.
    assert found[:, 7] == pytest.approx([1, 1 / 2 * 1 + 1 / 2 * 2 / 4])


def test_both_protocols_by_hand():
    masks = (MASKS[0], [[0, 0], [0, 1]])  # the second picture is now all right: IoU 1 and 1
    found = segmentation.summarise([segmentation.measure(m, t) for m, t in zip(MAPS, masks)])
    value = lambda protocol, name: pytest.approx(found[protocol][name]['value'])
    assert value('reference', 'pixel_accuracy') == 7 / 8
    assert value('reference', 'miou') == ((2 + 3) / (3 + 3) + (1 + 1) / (2 + 1)) / 2
    assert value('per_image', 'pixel_accuracy') == (3 / 4 + 1) / 2
    assert value('per_image', 'iou') == ((2 / 3 + 1 / 2) / 2 + 1) / 2  # not the mean of the sums
    assert value('per_image', 'ap') == 1
    json.dumps(found, allow_nan=False)


def test_precision_of_two_channels_equals_scikit_learns():
    rng = np.random.default_rng(0)
    for levels in (2, 5, 10_000):
        heat, mask = rng.integers(0, levels, (12, 9)) / 3.0, rng.integers(0, 2, (12, 9))
        scaled = (heat - heat.min()) / (heat.max() - heat.min())
        scores, truth = np.concatenate([1 - scaled, scaled]), np.concatenate([mask == 0, mask == 1])
        row = dict(zip(segmentation.COLUMNS, segmentation.measure(heat, mask)))
        wanted = metrics.average_precision_score(truth.ravel(), scores.ravel())
        assert row['ap_both'] == pytest.approx(wanted, abs=1e-13)
        assert row['ap_fg'] == pytest.approx(metrics.average_precision_score(mask.ravel(), heat.ravel()), abs=1e-13)
        assert row['correct'] == ((scaled > scaled.mean()) == mask).sum()


@pytest.mark.parametrize('value', [0.0, 0.1, -3.7, np.nan, np.inf])
def test_a_constant_map_finds_nothing(value):
    mask = np.arange(99).reshape(9, 11) % 3 == 0
    row = dict(zip(segmentation.COLUMNS, segmentation.measure(np.full((9, 11), value), mask)))
    assert row['correct'] == 66 and row['inter_fg'] == 0 and row['union_fg'] == 33 and row['union_bg'] == 99
    assert row['ap_both'] == pytest.approx(1 / 2) and row['ap_fg'] == pytest.approx(1 / 3)


def test_what_is_no_number_counts_as_0_and_scale_does_not_matter():
    heat = np.array([[np.nan, 1.0], [np.inf, 5.0]])
    np.testing.assert_array_equal(
        segmentation.measure(heat, MASKS[0]), segmentation.measure([[0, 1], [0, 5]], MASKS[0])
    )
    for scale, shift in ((1e-300, 0), (-1, 0), (1e307, 0), (1, -2)):
        moved = np.float64(MAPS[0]) * abs(scale) + shift
        np.testing.assert_allclose(segmentation.measure(moved, MASKS[0]), rows()[0])


def test_other_thresholds_and_bad_input():
    assert segmentation.measure(MAPS[0], MASKS[0], 0.9)[0] == 4 and segmentation.measure(MAPS[0], MASKS[0], 0)[0] == 2
    for threshold in (1, -0.1, 'otsu', True):
        with pytest.raises(ValueError, match=r"threshold is .*, wanted 'mean' or"):
            segmentation.measure(MAPS[0], MASKS[0], threshold)
    with pytest.raises(ValueError, match=r'a map of shape \(2, 2\) and a mask of \(2, 3\)'):
        segmentation.measure(MAPS[0], np.zeros((2, 3)))
    with pytest.raises(ValueError, match='a mask holds 255, wanted 0 and 1'):
        segmentation.measure(MAPS[0], np.array([[0, 255], [0, 0]]))
    for bad in ([], np.zeros((2, 7))):
        with pytest.raises(ValueError, match='rows of shape'):
            segmentation.summarise(bad)


def test_pictures_without_an_object():
    empty = segmentation.measure(MAPS[0], np.zeros((2, 2)))
    nothing = segmentation.measure(np.zeros((2, 2)), np.zeros((2, 2)))
    found = segmentation.summarise([empty, nothing, rows()[0]])
    assert found['per_image']['ap']['value'] == 1  # of the one picture that has an object
    assert found['per_image']['iou']['value'] == pytest.approx(((1 / 2 + 0) / 2 + 1 + (2 / 3 + 1 / 2) / 2) / 3)
    only = segmentation.summarise([nothing])
    assert only['per_image']['ap'] == {'value': None, 'ci95': None, 'n': 1}
    assert only['reference']['miou']['value'] == 1


def test_intervals_come_from_pictures_drawn_whole():
    rng = np.random.default_rng(0)
    once = [segmentation.measure(rng.random((6, 6)), rng.random((6, 6)) < 0.4) for _ in range(12)]
    settings = {'resamples': 200, 'seed': 3}
    plain = segmentation.summarise(once, **settings)
    for protocol in plain.values():
        for score in protocol.values():
            low, high = score['ci95']
            assert low < score['value'] < high
    # Each picture twice, under its name: the same as once. As pictures of their own they would narrow the interval.
    twice = segmentation.summarise(once + once, images=[*range(12)] * 2, **settings)
    apart = segmentation.summarise(once + once, **settings)
    width = lambda found: np.diff(found['reference']['miou']['ci95'])[0]
    assert twice['reference']['miou']['ci95'] == pytest.approx(plain['reference']['miou']['ci95'])
    assert width(apart) < 0.85 * width(twice)
    assert segmentation.summarise(once, resamples=0)['reference']['miou']['ci95'] is None


def test_painted_regions():
    values, boxes = [2.0, 5.0, -1.0], [[0, 0, 3, 2], [2, 1, 4, 9], [0.6, 2, 1.6, 3]]
    assert segmentation.paint(values, boxes, 3, 5).tolist() == [[2, 2, 2, 0, 0], [2, 2, 5, 5, 0], [0, -1, 5, 5, 0]]
    np.testing.assert_array_equal(
        segmentation.paint(values[::-1], boxes[::-1], 3, 5), segmentation.paint(values, boxes, 3, 5)
    )
    assert not segmentation.paint([], [], 2, 2).any()
    assert segmentation.paint([1.0], [[-5, -5, 50, 50]], 2, 2).tolist() == [[1, 1], [1, 1]]
    for values, boxes, message in (
        ([1.0], [[0, 0, 1, 1]] * 2, '2 boxes for values'),
        ([1.0], [[2, 0, 1, 1]], r'region 0 has relevance 1\.0 and the box \[2\.0'),
        ([np.nan], [[0, 0, 1, 1]], 'region 0 has relevance nan'),
    ):
        with pytest.raises(ValueError, match=message):
            segmentation.paint(values, boxes, 3, 3)


def test_masks_of_things_are_what_the_picture_shows():
    rng = np.random.default_rng(1)
    for _ in range(12):
        scene = shapes.make_scene(rng)
        everything, shown = range(len(scene['things'])), shapes.render(scene)
        bare = np.asarray(shapes.render(scene | {'things': []}), int)
        away = np.abs(np.asarray(shown, int) - bare).max(2)
        mask = shapes.mask(scene, everything)
        assert mask.dtype == np.uint8 and mask.shape == away.shape
        assert (away[mask == 1] > 20).all()  # each of its pixels differs from the empty picture
        wide = sum(np.pad(mask, 1)[y : y + 144, x : x + 144] for y in range(3) for x in range(3))
        assert not away[wide == 0].any()  # and nothing does that is not at its edge
        parts = [shapes.mask(scene, [i]) for i in everything]
        assert sum(parts).max() <= 1 or sum(parts).sum() - mask.sum() < 8  # things share no more than an edge
        for thing, part in zip(scene['things'], parts):
            ys, xs = np.nonzero(part)
            x1, y1, x2, y2 = outline(thing)
            assert np.abs([xs.min() - x1, ys.min() - y1, xs.max() + 1 - x2, ys.max() + 1 - y2]).max() < 5
    with pytest.raises(ValueError, match=r'things \[7\] of a scene of'):
        shapes.mask(scene, [7])


CRATE = 27**2 - 1  # both edges are drawn: 53 half pixels a side, and one corner is less than half a pixel


def test_a_thing_that_another_one_covers_is_not_shown():
    thing = {'shape': 'square', 'colour': 'red', 'size': 'large', 'cell': 4, 'x': 20, 'y': 20, 'radius': 10, 'angle': 0,
             'rgb': [205, 40, 35]}  # fmt: skip
    scene = {'size': [40, 40], 'background': [200] * 12, 'things': [thing, thing | {'shape': 'crate', 'radius': 13}]}
    assert not shapes.mask(scene, [0]).any() and shapes.mask(scene, [1]).sum() == CRATE
    scene['things'] = scene['things'][::-1]
    crate, square = shapes.mask(scene, [0]), shapes.mask(scene, [1])
    assert 16**2 < square.sum() < 18**2 and (crate | square).sum() == CRATE
    assert (crate & square).sum() < 4 * 18  # pixels of both are on the square's edge, half and half
