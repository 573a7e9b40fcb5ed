"""Object tags in texts (VCR): `<|detN|>` stands for object N of an example, counted from 1.

The encoder reads a name in its place, and its word pieces carry the region that shows the object. The decoder has a
token for each of the tags up to `<|det44|>`.
"""

from collections.abc import Sequence

import numpy as np

from evil_jax.data.features.regions import Regions
from evil_jax.data.tokenizers import DETECTIONS, WordTokenizer
from evil_jax.records import Example
from evil_jax.text import TAG

# Read instead of a person's tag, by the running number of the person (facts 3.5; R2C and UNITER use the same).
NAMES = (
    'Casey', 'Riley', 'Jessie', 'Jackie', 'Avery', 'Jaime', 'Peyton', 'Kerry', 'Jody', 'Kendall', 'Peyton', 'Skyler',
    'Frankie', 'Pat', 'Quinn',
)  # fmt: skip
PERSON = 'person'
STYLES = ('names', 'det')
OVERLAP = 0.5  # least intersection over union of an object's box and the region that shows it


def parts(text: str, objects: Sequence[str] | None, style: str) -> list[tuple[str, int]]:
    """A text in pieces, as the encoder reads them: (words, number of the object that they stand for, or 0).

    Args:
      text: with tags.
      objects: class names of the objects.
      style: 'names' reads a person as one of `NAMES` and another object as its class; 'det' reads the characters of
        the tag, as e-UG did. So does every style where a tag has no object.
    """
    pieces = TAG.split(text)
    found = [(pieces[0], 0)]
    for digits, after in zip(pieces[1::2], pieces[2::2]):
        number = int(digits)
        found += [(_name(number, objects or (), style), number), (after, 0)]
    return [part for part in found if part[0]]


def _name(number, objects, style):
    if style == 'det' or not 1 <= number <= len(objects):
        return f'<|det{number}|>'
    kind = objects[number - 1]
    return NAMES[objects[: number - 1].count(PERSON) % len(NAMES)] if kind == PERSON else kind


def spoken(text: str, objects: Sequence[str] | None, style: str) -> str:
    """The text that the encoder reads."""
    return ''.join(words for words, _ in parts(text, objects, style))


def written(text: str, objects: Sequence[str] | None) -> str:
    """The text that the decoder reads and writes: a tag that has no token becomes the object's class name."""

    def word(match):
        number = int(match[1])
        return objects[number - 1] if DETECTIONS <= number <= len(objects or ()) else match[0]

    return TAG.sub(word, text) if '<|det' in text else text


def encode(text: str, objects, style: str, word: WordTokenizer) -> tuple[list[int], list[int]]:
    """Word pieces of `spoken(text)`, and for each the number of the object that it stands for, or 0."""
    ids, numbers = [], []
    for words, number in parts(text, objects, style):
        new = word.encode(words)
        ids += new
        numbers += [number] * len(new)
    return ids, numbers


def located(example: Example) -> dict[str, object] | None:
    """Boxes, picture size and names of the objects that tags stand for; None where they are not (all) known."""
    names = example.objects
    try:
        boxes = np.asarray(example.extra.get('boxes'), np.float64)
        size = np.asarray(example.extra.get('size'), np.float64)
    except (TypeError, ValueError):  # extra is anything
        return None
    if not names or boxes.shape != (len(names), 4) or size.shape != (2,) or not np.isfinite([*boxes.flat, *size]).all():
        return None
    if (size < 1).any():
        return None
    classes = [f'{name} {number}' for number, name in enumerate(names, 1)]
    return {'boxes': boxes, 'size': tuple(size.tolist()), 'classes': classes}


def regions_of(example: Example, found: Regions | None) -> np.ndarray:
    """For each object of an example the region that shows it, or -1: int32 [objects].

    That is the one whose box overlaps the object's box most, by at least `OVERLAP`. Boxes are compared relative to the
    size of the picture: detector and annotators may have seen other resolutions.

    Args:
      example: `extra['boxes']` ([x1, y1, x2, y2] of each object in pixels) and `extra['size']` ([width, height]) are
        read; where there are none, no tag is linked.
      found: the regions of the picture that a row keeps.

    Raises:
      ValueError: boxes or size of another shape, with the id.
    """
    boxes, size = example.extra.get('boxes'), example.extra.get('size')
    if found is None or not boxes or not size:
        return np.full(len(example.objects or ()), -1, np.int32)
    boxes_O4, size_2 = np.asarray(boxes, np.float64), np.asarray(size, np.float64)
    if boxes_O4.ndim != 2 or boxes_O4.shape[1] != 4 or size_2.shape != (2,) or not (size_2 > 0).all():
        raise ValueError(
            f'example {example.id!r} has boxes of shape {boxes_O4.shape} and size {size}, wanted [objects, 4] and '
            '[width, height]'
        )
    regions_R4 = np.asarray(found.boxes, np.float64) / np.tile(np.float64(found.size), 2)
    if not len(regions_R4):
        return np.full(len(boxes_O4), -1, np.int32)
    overlap_OR = _overlap(boxes_O4 / np.tile(size_2, 2), regions_R4)
    best_O = overlap_OR.argmax(1)
    return np.where(overlap_OR.max(1) >= OVERLAP, best_O, -1).astype(np.int32)


def _overlap(a_O4, b_R4) -> np.ndarray:
    """Intersection over union of every pair of boxes, [O, R]; 0 for two boxes without area."""
    a, b = a_O4[:, None], b_R4[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    both = np.maximum(sides, 0).prod(-1)
    area = lambda x: np.maximum(x[..., 2:] - x[..., :2], 0).prod(-1)
    either = area(a) + area(b) - both
    return np.divide(both, either, out=np.zeros_like(both), where=either > 0)
