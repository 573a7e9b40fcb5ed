"""What a detector would say about a rendered scene: one region a thing, described by the pixels in its box only; and
what a network would that looks at the cells of a grid."""

import functools
from typing import NamedTuple

import numpy as np
from PIL import Image

from evil_jax.data.shapes.render import outline
from evil_jax.data.shapes.scene import COLOURS, CRATE, DARK, SHAPES, WOODEN, Scene

WIDTH = 2048
CLASSES = tuple(f'{colour} {shape}' for shape in SHAPES for colour in (*COLOURS, DARK)) + (CRATE,)
ATTRIBUTES = (*COLOURS, DARK, WOODEN)

_GRID, _MASK, _BINS = 8, 10, 4
_PARTS = 8
_DIFFERENT, _MARGIN = 0.1, 2  # from the background, more than its own changes of colour; pixels around a thing
_RAW = 3 * _GRID**2 + _MASK**2 + _BINS**3 + 3 + 4


class Detections(NamedTuple):
    """Regions of one picture: boxes [n, 4] float32 x1, y1, x2, y2 in pixels; features [n, 2048] float32; confidences
    [n] float32, falling; ids [n] int64 into CLASSES and ATTRIBUTES."""

    boxes: np.ndarray
    features: np.ndarray
    class_ids: np.ndarray
    class_conf: np.ndarray
    attribute_ids: np.ndarray
    attribute_conf: np.ndarray


def detect(scene: Scene, image: Image.Image, rng: np.random.Generator) -> Detections:
    """Region i is thing i of the scene; its box is a little larger than the thing, and jittered."""
    things = scene['things']
    tight = np.array([outline(thing) for thing in things], np.float64)
    slack = rng.uniform(1.0, 3.5, tight.shape) * (-1, -1, 1, 1)
    boxes = np.clip(tight + slack, 0, (image.width, image.height) * 2).astype(np.float32)
    classes = [CRATE if t['shape'] == CRATE else f'{t["colour"]} {t["shape"]}' for t in things]
    confidences = np.sort(rng.uniform(0.5, 0.99, (2, len(things))).astype(np.float32))[:, ::-1]
    return Detections(
        boxes=boxes,
        features=box_features(image, boxes),
        class_ids=np.array([CLASSES.index(name) for name in classes], np.int64),
        class_conf=confidences[0],
        attribute_ids=np.array([ATTRIBUTES.index(t['colour']) for t in things], np.int64),
        attribute_conf=confidences[1],
    )


def box_features(image: Image.Image, boxes) -> np.ndarray:
    """Features [n, 2048] float32 of n boxes, from the pixels inside them (and the box's size) and from nothing else.

    Raw values: the crop on an 8 x 8 grid of RGB; on a 10 x 10 grid how much it differs from its own rim (the rim is
    background, so this is the silhouette); a 4 x 4 x 4 colour histogram and the mean colour of what differs; width,
    height and two areas relative to the picture. A fixed random matrix spreads them over 2048 numbers of unit order.
    """
    bytes_HW3 = np.asarray(image)
    raw = np.array([_raw(image, bytes_HW3, box) for box in np.asarray(boxes, np.float64)], np.float32)
    return np.concatenate([raw.reshape(-1, _RAW) @ part for part in _projection()], axis=1)


def cell_features(image: Image.Image, rows: int, columns: int) -> np.ndarray:
    """Features [rows, columns, 2048] float32 of the cells of a grid, each from the pixels of its cell and no others.

    A cell is described by the box around what differs from its rim (of an empty one, by all of it), so that a small
    thing keeps its silhouette and nothing depends on where in the cell it is. Nothing says which cell it is.
    """
    x, y = (np.arange(n + 1) * side // n for n, side in ((columns, image.width), (rows, image.height)))
    cells = [(x[j], y[i], x[j + 1], y[i + 1]) for i in range(rows) for j in range(columns)]
    bytes_HW3 = np.asarray(image)
    return box_features(image, [_around(bytes_HW3, cell) for cell in cells]).reshape(rows, columns, WIDTH)


def _around(bytes_HW3, cell) -> tuple[int, int, int, int]:
    """The box in a cell around what differs from the cell's rim, with a little of what is around it."""
    x1, y1, x2, y2 = cell
    inside = bytes_HW3[y1:y2, x1:x2]
    away_HW = np.abs(inside.astype(np.float32) / 255 - _median(_rim(inside))).max(axis=-1)
    ys, xs = np.nonzero(away_HW > _DIFFERENT)
    if not len(xs):
        return cell
    return (
        max(x1 + xs.min() - _MARGIN, x1),
        max(y1 + ys.min() - _MARGIN, y1),
        min(x1 + xs.max() + 1 + _MARGIN, x2),
        min(y1 + ys.max() + 1 + _MARGIN, y2),
    )


def _rim(inside_HW3) -> np.ndarray:
    return np.concatenate([inside_HW3[0], inside_HW3[-1], inside_HW3[:, 0], inside_HW3[:, -1]])


@functools.cache
def _projection() -> list[np.ndarray]:
    """The matrix in blocks of columns: as products of this size NumPy's BLAS does without threads, far faster."""
    whole = np.random.default_rng(2048).normal(0, _RAW**-0.5, (_RAW, WIDTH)).astype(np.float32)
    return [np.ascontiguousarray(part) for part in np.split(whole, _PARTS, axis=1)]


def _raw(image, bytes_HW3, box) -> np.ndarray:
    x1, y1 = np.floor(box[:2]).astype(int)
    x2, y2 = np.ceil(box[2:]).astype(int)
    x1, y1 = min(max(x1, 0), image.width - 1), min(max(y1, 0), image.height - 1)
    x2, y2 = min(max(x2, x1 + 1), image.width), min(max(y2, y1 + 1), image.height)
    crop = image.crop((x1, y1, x2, y2))
    inside = bytes_HW3[y1:y2, x1:x2]
    pixels = inside.astype(np.float32) / 255
    away = np.abs(pixels - _median(_rim(inside)))
    differs = np.clip(np.maximum(np.maximum(away[..., 0], away[..., 1]), away[..., 2]) / 0.2, 0, 1)
    area = differs.sum()
    total = area + 1e-3
    grid = np.asarray(crop.resize((_GRID, _GRID), Image.Resampling.BOX), np.float32) / 255
    mask = np.asarray(Image.fromarray(differs).resize((_MASK, _MASK), Image.Resampling.BOX))
    r, g, b = np.moveaxis(np.minimum((pixels * _BINS).astype(np.intp), _BINS - 1), -1, 0)
    index = (r * _BINS + g) * _BINS + b
    histogram = np.bincount(index.ravel(), differs.ravel(), _BINS**3) / total
    colour = (pixels * differs[..., None]).sum((0, 1)) / total
    w, h = (x2 - x1) / image.width, (y2 - y1) / image.height
    size = np.array([w, h, (w * h) ** 0.5, (area / image.width / image.height) ** 0.5])
    # Centred and weighted so that silhouette, colour and size each carry a like share of the variance.
    return np.concatenate(
        [
            (grid.ravel() - 0.5) * 1.5,
            (mask.ravel() - 0.5) * 2.5,
            histogram * 14,
            (colour - 0.45) * 14,
            (size - 0.22) * 70,
        ]
    )


def _median(rim_N3) -> np.ndarray:
    """Median colour in [0, 1] of an even number of pixels; bytes sort faster than what they stand for."""
    middle = np.sort(rim_N3, axis=0)[len(rim_N3) // 2 - 1 :][:2].astype(np.float32) / 255
    return (middle[0] + middle[1]) / 2
