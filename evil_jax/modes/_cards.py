"""What a page shows of an example: its picture with boxes, and texts in which object tags are names."""

from evil_jax import text
from evil_jax.data import tags
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
    if (found := tags.located(example)) is not None:
        return row | found
    if reader is not None and (regions := find(reader, example.image_id)) is not None:
        row |= {'boxes': regions.boxes, 'size': regions.size}
        row['classes'] = [class_names[c] if 0 <= c < len(class_names) else '' for c in regions.classes]
    return row


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
