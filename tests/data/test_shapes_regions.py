"""Region features of the built-in world, against their description computed the plain way."""

import numpy as np
from PIL import Image

from evil_jax.data import shapes
from evil_jax.data.shapes import regions


def plain(image, box):
    """The raw values of one box of whole pixels inside the picture, as `box_features` describes them."""
    x1, y1, x2, y2 = box
    crop = image.crop(box)
    pixels = np.asarray(crop, np.float32) / 255
    rim = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    differs = np.clip(np.abs(pixels - np.median(rim, axis=0)).max(axis=-1) / 0.2, 0, 1)
    share = differs / (differs.sum() + 1e-3)
    grid = np.asarray(crop.resize((8, 8), Image.Resampling.BOX)) / 255
    mask = np.asarray(Image.fromarray(differs).resize((10, 10), Image.Resampling.BOX))
    histogram, _ = np.histogramdd(pixels.reshape(-1, 3), 4, [(0, 1)] * 3, weights=share.ravel())
    colour = (pixels * share[..., None]).sum((0, 1))
    w, h = (x2 - x1) / image.width, (y2 - y1) / image.height
    size = np.array([w, h, (w * h) ** 0.5, (differs.sum() / image.width / image.height) ** 0.5])
    parts = (grid - 0.5) * 1.5, (mask - 0.5) * 2.5, histogram * 14, (colour - 0.45) * 14, (size - 0.22) * 70
    return np.concatenate([np.ravel(part) for part in parts])


def test_features_are_what_their_description_says():
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    noise[10:30, 10:40] = (200, 30, 30)
    image = Image.fromarray(noise)
    boxes = [(5, 5, 45, 35), (0, 0, 50, 40), (12, 11, 13, 12), (9, 9, 41, 20)]
    whole = np.concatenate(regions._projection(), axis=1)
    wanted = np.float32([plain(image, box) for box in boxes]) @ whole
    np.testing.assert_allclose(shapes.box_features(image, boxes), wanted, rtol=1e-4, atol=1e-4)
    assert shapes.box_features(image, np.zeros((0, 4))).shape == (0, 2048)


def test_projection_is_the_one_of_every_world_so_far():
    whole = np.random.default_rng(2048).normal(0, regions._RAW**-0.5, (regions._RAW, 2048)).astype(np.float32)
    np.testing.assert_array_equal(np.concatenate(regions._projection(), axis=1), whole)
