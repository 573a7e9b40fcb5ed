"""Pictures with the boxes of objects drawn into them, for platforms that show pictures as they are."""

import io
import pathlib

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from evil_jax import records
from evil_jax.human.study import Item, Study

_COLOURS = ('#e6194b', '#0060c8', '#1d7f33', '#9a4d00', '#7b1fa2', '#00707a')  # white letters can be read on them
_QUALITY = 90


def write(study: Study, source, target) -> dict[str, str]:
    """Copies the pictures of a study; an item that has boxes gets one of its own, in which they are drawn.

    Args:
      study: whose pictures.
      source: its images/.
      target: gets the files.

    Returns:
      {id of an item that has a picture: name of the file}.

    Raises:
      ValueError: a picture that is not there or cannot be read; it is named.
    """
    source, target = pathlib.Path(source), pathlib.Path(target)
    names, copied = {}, set()
    for item in study.items.values():
        if not item.image:
            continue
        if not (source / item.image).is_file():
            raise ValueError(f'{source / item.image}: the picture of item {item.id} is not there')
        if item.boxes:
            names[item.id] = f'{item.id}.jpg'
            records.atomic_write(target / names[item.id], _drawn(item, source / item.image))
            continue
        names[item.id] = item.image
        if item.image not in copied:
            records.atomic_write(target / item.image, (source / item.image).read_bytes())
            copied.add(item.image)
    return names


def _drawn(item: Item, path: pathlib.Path) -> bytes:
    try:
        with PIL.Image.open(path) as file:
            picture = file.convert('RGB')
    except OSError as error:
        raise ValueError(f'{path}: not a picture: {error}') from error
    draw = PIL.ImageDraw.Draw(picture)
    wide = max(2, round(max(picture.size) / 250))
    font = PIL.ImageFont.load_default(max(12, round(max(picture.size) / 45)))
    frames = [(name, (x1 * picture.width, y1 * picture.height, x2 * picture.width, y2 * picture.height))
              for name, x1, y1, x2, y2 in item.boxes]  # fmt: skip
    for i, (_, frame) in enumerate(frames):
        draw.rectangle(frame, outline=_COLOURS[i % len(_COLOURS)], width=wide)
    for i, (name, frame) in enumerate(frames):  # above all frames
        left, top, right, bottom = draw.textbbox((0, 0), name, font=font, anchor='lt')
        # Inside the picture, also where the box is at its edge.
        x = min(max(frame[0], 0), max(picture.width - right - 2 * wide, 0))
        y = min(max(frame[1], 0), max(picture.height - bottom - 2 * wide, 0))
        draw.rectangle((x, y, x + right + 2 * wide, y + bottom + 2 * wide), fill=_COLOURS[i % len(_COLOURS)])
        draw.text((x + wide - left, y + wide - top), name, font=font, fill='white', anchor='lt')
    out = io.BytesIO()
    picture.save(out, 'JPEG', quality=_QUALITY)
    return out.getvalue()
