"""What a page shows of an example: its picture with boxes, and texts in which object tags are names."""

import numpy as np

from evil_jax import text
from evil_jax.records import Example


def picture(example: Example, images, reader, class_names) -> dict[str, object]:
    """'picture' (path or None) and 'problem'; 'boxes', 'size' and 'classes' where they are known.

    The boxes are those of the example's objects, which its texts speak of, else the regions of its picture.

    Args:
      example: one.
      images: pictures by image id (`load.images`), or None.
      reader: regions by image id, or None.
      class_names: of the regions' classes.
    """
    path = problem = None
    try:
        path = images[example.image_id] if images else None
    except ValueError as error:  # which of two pictures is meant is not known: no reason to lose the page
        problem = str(error)
    row = {'picture': path, 'problem': problem}
    if (found := objects(example)) is not None:
        return row | found
    if reader is not None and (regions := find(reader, example.image_id)) is not None:
        row |= {'boxes': regions.boxes, 'size': regions.size}
        row['classes'] = [class_names[c] if 0 <= c < len(class_names) else '' for c in regions.classes]
    return row


def objects(example: Example) -> dict[str, object] | None:
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


def find(reader, image_id: str):
    """The regions of a picture, or None: the reader has none, or it cannot be known which."""
    try:
        known = image_id in reader
    except ValueError:  # several pictures have this number
        return None
    return reader[image_id] if known else None


def shown(words: str, example: Example) -> str:
    """A text for people to read."""
    return text.tags_to_names(words, example.objects)


def choices(example: Example, predicted: int | None = None) -> list[dict[str, object]]:
    """The choices of an example: 'text', and whether each is 'gold' and 'predicted'; [] for an example without."""
    return [
        {'text': shown(words, example), 'gold': number == example.label, 'predicted': number == predicted}
        for number, words in enumerate(example.choices or ())
    ]
