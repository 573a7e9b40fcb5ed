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


def test_a_cell_is_described_by_the_box_around_what_is_in_it():
    image = Image.new('RGB', (90, 60), (200, 200, 200))
    image.paste((200, 30, 30), (35, 10, 45, 16))  # in the middle of the first row
    image.paste((30, 30, 200), (60, 33, 68, 60))  # in the last cell, at its left and lower edge
    found = shapes.cell_features(image, 2, 3)
    assert found.shape == (2, 3, 2048)
    boxes = [(0, 0, 30, 30), (33, 8, 47, 18), (60, 0, 90, 30), (0, 30, 30, 60), (30, 30, 60, 60), (60, 31, 70, 60)]
    np.testing.assert_array_equal(found.reshape(6, 2048), shapes.box_features(image, boxes))


def test_cells_tell_shape_colour_and_size_apart():
    """By the nearest cell of other scenes, features as they are: what a network could do at least."""
    cells, kinds = [], []
    rng = np.random.default_rng(0)
    for _ in range(280):
        scene = shapes.make_scene(rng)
        cells.append(shapes.cell_features(shapes.render(scene), 3, 3).reshape(9, 2048))
        things = {t['cell']: (t['shape'], t['colour'], t['size']) for t in scene['things']}
        kinds += [things.get(cell) for cell in range(9)]
    cells = np.concatenate(cells)
    known, asked = slice(0, 2000), slice(2000, None)
    distance = (cells[known] ** 2).sum(1) - 2 * cells[asked] @ cells[known].T
    pairs = [(kinds[2000 + i], kinds[j]) for i, j in enumerate(distance.argmin(1))]
    assert all((wanted is None) == (found is None) for wanted, found in pairs)
    full = [(wanted, found) for wanted, found in pairs if wanted]
    right = np.mean([[a == b for a, b in zip(wanted, found)] for wanted, found in full], axis=0)
    assert len(full) > 150 and (right > (0.9, 0.97, 0.97)).all()
