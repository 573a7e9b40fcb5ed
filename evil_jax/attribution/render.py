"""Heat maps over pictures, as uint8 RGB arrays and PNG bytes: patches of a ViT, regions of a detector, sheets of many.

The same input gives the same bytes. Shapes: H, W pixels of a picture; h, w patches; R regions.
"""

import io
from collections.abc import Sequence

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from evil_jax.pages import heat

_MARGIN = 6


def overlay(picture_HW3, heat_HW, *, signed: bool = False) -> np.ndarray:
    """A picture under the colours of a map of its size.

    Args:
      picture_HW3: uint8 RGB.
      heat_HW: `heat.scaled` values: [0, 1], or [-1, 1] where signed.
      signed: colours diverge from zero, which covers nothing; else the lowest heat dims the picture.

    Returns:
      uint8 [H, W, 3].

    Raises:
      ValueError: another kind of picture, another size, heat out of range or not finite.
    """
    picture_HW3 = _picture(picture_HW3)
    if np.shape(heat_HW) != picture_HW3.shape[:2]:
        raise ValueError(f'heat of shape {np.shape(heat_HW)} over a picture of shape {picture_HW3.shape}')
    return _blend(picture_HW3, heat.table(signed)[heat.levels(heat_HW, signed)])


def patches(picture_HW3, map_hw, *, signed: bool | None = None, least: int = 224) -> np.ndarray:
    """A picture under the map of its patches, upsampled and then scaled.

    Args:
      picture_HW3: uint8 RGB, as the model saw it: the map covers all of it.
      map_hw: relevance of the patches, in rows.
      signed: None: whether the map has values below zero.
      least: a picture whose larger side is shorter is enlarged to it or beyond, by a whole factor, without smoothing.

    Returns:
      uint8 [H, W, 3].
    """
    picture_HW3 = enlarged(_picture(picture_HW3), least)
    map_hw = heat.finite(map_hw, 'map of patches')
    signed = heat.is_signed(map_hw) if signed is None else signed
    return overlay(picture_HW3, heat.scaled(heat.upsample(map_hw, picture_HW3.shape[:2]), signed), signed=signed)


def regions(
    picture_HW3, values_R, boxes_R4, *, size: tuple[float, float] | None = None, signed: bool | None = None
) -> np.ndarray:
    """A picture under the heat of its regions (`heat.of_boxes`), each outlined in its own colour, the strongest on top.

    Args:
      picture_HW3: uint8 RGB.
      values_R: relevance of each region.
      boxes_R4: (x1, y1, x2, y2).
      size: (width, height) that the boxes count in; (1, 1) for relative ones. None: pixels of the picture.
      signed: None: whether there are values below zero.

    Returns:
      uint8 [H, W, 3].
    """
    picture_HW3 = _picture(picture_HW3)
    height, width = picture_HW3.shape[:2]
    values_R = heat.finite(values_R, 'values of boxes')
    boxes_R4 = np.asarray(boxes_R4, np.float64).reshape(-1, 4)
    if size is not None:
        boxes_R4 = boxes_R4 * np.tile([width / size[0], height / size[1]], 2)
    signed = heat.is_signed(values_R) if signed is None else signed
    scaled_R = heat.scaled(values_R, signed)
    shown = overlay(picture_HW3, heat.of_boxes(scaled_R, boxes_R4, (height, width)), signed=signed)
    layer = PIL.Image.new('RGBA', (width, height))
    draw = PIL.ImageDraw.Draw(layer)
    stroke = max(1, round(max(height, width) / 200))
    for i in np.argsort(np.abs(scaled_R), kind='stable'):
        *colour, opacity = heat.table(signed)[heat.levels(scaled_R[i], signed)].tolist()
        x1, y1, x2, y2 = boxes_R4[i].tolist()
        # Strokes are stronger than the heat inside them, so that overlapping regions can be told apart.
        draw.rectangle((x1, y1, max(x1, x2 - 1), max(y1, y2 - 1)), outline=(*colour, 128 + opacity // 2), width=stroke)
    return _blend(shown, np.asarray(layer))


def enlarged(picture_HW3, least: int) -> np.ndarray:
    """The picture repeated by the smallest whole factor that makes its larger side at least `least` pixels long."""
    factor = -(-least // max(np.shape(picture_HW3)[:2]))
    return np.repeat(np.repeat(picture_HW3, max(1, factor), axis=0), max(1, factor), axis=1)


def png(picture_HW3) -> bytes:
    """The file of a uint8 RGB picture."""
    buffer = io.BytesIO()
    PIL.Image.fromarray(_picture(picture_HW3)).save(buffer, 'PNG', optimize=True)
    return buffer.getvalue()


def sheet(rows: Sequence[Sequence[np.ndarray]], columns: Sequence[str], *, cell: int = 224) -> np.ndarray:
    """Pictures in rows under the names of their columns: an example a row, a method a column.

    Args:
      rows: uint8 RGB pictures, in each row one for each column.
      columns: names; one that does not fit is broken at its underscores and spaces.
      cell: each picture is fitted into a square of that many pixels.

    Returns:
      uint8 [H, W, 3], on white.
    """
    if not rows or not columns or any(len(row) != len(columns) for row in rows):
        raise ValueError(f'rows of {[len(row) for row in rows]} pictures under {len(columns)} names')
    font = PIL.ImageFont.load_default(max(10, cell // 14))
    texts = [_broken(name, font, cell) for name in columns]
    measure = PIL.ImageDraw.Draw(PIL.Image.new('RGB', (1, 1)))
    head = max(measure.multiline_textbbox((0, 0), text, font)[3] for text in texts) + 2 * _MARGIN
    step = cell + _MARGIN
    image = PIL.Image.new('RGB', (len(columns) * step + _MARGIN, head + len(rows) * step), 'white')
    draw = PIL.ImageDraw.Draw(image)
    for column, text in enumerate(texts):
        middle = _MARGIN + column * step + cell / 2
        draw.multiline_text((middle, head - _MARGIN), text, 'black', font, anchor='md', align='center')
    for y, row in enumerate(rows):
        for x, picture in enumerate(row):
            fitted = _fitted(_picture(picture), cell)
            left, top = _MARGIN + x * step, head + y * step
            image.paste(fitted, (left + (cell - fitted.width) // 2, top + (cell - fitted.height) // 2))
    return np.asarray(image)


def _picture(picture_HW3):
    picture_HW3 = np.asarray(picture_HW3)
    if picture_HW3.dtype != np.uint8 or picture_HW3.ndim != 3 or picture_HW3.shape[-1] != 3 or not picture_HW3.size:
        raise ValueError(f'a picture of {picture_HW3.dtype} {picture_HW3.shape}: wanted uint8 [H, W, 3]')
    return picture_HW3


def _blend(picture_HW3, colours_HW4):
    opacity = colours_HW4[..., 3:].astype(np.float64) / 255
    mixed = picture_HW3 * (1 - opacity) + colours_HW4[..., :3] * opacity
    return np.floor(mixed + 0.5).astype(np.uint8)


def _broken(name, font, room):
    """The name in lines no wider than `room`, as far as it can be broken."""
    lines = ['']
    for word in name.replace('_', ' ').split():
        longer = f'{lines[-1]} {word}'.strip()
        lines = [*lines[:-1], longer] if not lines[-1] or font.getlength(longer) <= room else [*lines, word]
    return '\n'.join(lines)


def _fitted(picture_HW3, cell):
    """Smaller by averaging; larger in whole factors first, so that pixels of a tiny picture stay square."""
    image = PIL.Image.fromarray(enlarged(picture_HW3, cell) if max(picture_HW3.shape[:2]) * 2 <= cell else picture_HW3)
    share = cell / max(image.size)
    size = tuple(max(1, round(side * share)) for side in image.size)
    return image if size == image.size else image.resize(size, PIL.Image.Resampling.LANCZOS)
