"""Pieces of attributions.html: what stands in it for the first target, and what its script draws the others from."""

import base64
import io
from collections.abc import Mapping, Sequence

import markupsafe
import numpy as np
import PIL.Image

from evil_jax.pages import heat

_STEPS = 10  # colours behind words; the style sheet has as many
_NAMED = 3  # regions whose name stands in the picture

_WORD = markupsafe.Markup('{}<span class="w{}"{}>{}</span>')
_SAID = markupsafe.Markup('{}<button type="button" class="w{}"{} data-target="{}" aria-pressed="{}">{}</button>')
_MARKS = markupsafe.Markup(' data-h="{}"'), markupsafe.Markup(' title="{}"')
_CUT = markupsafe.Markup(' <span class="cut">cut here: the model did not read the last {} words</span>')


def step(value: float) -> int:
    """Colour of a scaled value: 0 to 10, below zero to -10."""
    return int(np.sign(value) * np.floor(abs(value) * _STEPS + 0.5))


def number(value: float) -> str:
    return f'{float(value):.3g}'


def percent(value: float | None) -> str:
    return '' if value is None else f'{100 * float(value):.3g} %'


def rounded(values) -> list[float] | None:
    """Four digits of each, counted from the largest: more are not seen."""
    if values is None:
        return None
    values = np.asarray(values, np.float64).ravel()
    largest = np.abs(values).max(initial=0.0)
    digits = 3 - int(np.floor(np.log10(largest))) if largest > 1e-300 else 0
    return [int(v) if v.is_integer() else v for v in np.round(values, min(digits, 300)).tolist()]


def ramp(signed: bool) -> list[tuple[str, str]]:
    """(offset, colour) of the stops of a legend."""
    rows = heat.table(signed)[1 if signed else 0 :: 127 if signed else 51]
    return [(f'{100 * i / (len(rows) - 1):.0f}%', f'#{row[:3].tobytes().hex()}') for i, row in enumerate(rows)]


def words(
    row: Sequence[str],
    values: np.ndarray | None,
    signed: bool,
    *,
    targets: Mapping[int, int],
    evidence: Sequence[int] = (),
    read: int | None = None,
) -> markupsafe.Markup:
    """The words of a row, escaped, each an element with its colour and its value.

    Args:
      row: texts. Where some begin with a space they are tokens: spaces stand where they say.
      values: relevance of each, or None.
      signed: how it is scaled.
      targets: position of a word that is a target -> number of that target.
      evidence: positions to be underlined.
      read: how many words the model read; a mark stands behind them. None: all.
    """
    scaled = np.zeros(len(row)) if values is None else heat.scaled(values, signed)
    spaced = not any(word.startswith(' ') for word in row)
    marked = set(map(int, evidence))
    pieces = []
    for i, word in enumerate(row):
        unread = read is not None and i >= read
        if unread and i == read:
            pieces.append(_CUT.format(len(row) - i))
        space = ' ' if (spaced and i) or word.startswith(' ') else ''
        classes = ' gold' * (i in marked) + ' unread' * unread
        about = _MARKS[0].format(step(scaled[i])) if step(scaled[i]) else markupsafe.Markup('')
        about += _MARKS[1].format(number(values[i])) if values is not None else ''
        if i in targets:
            pressed = 'false' if targets[i] else 'true'
            pieces.append(_SAID.format(space, classes, about, targets[i], pressed, word.strip()))
        else:
            pieces.append(_WORD.format(space, classes, about, word.strip()))
    return markupsafe.Markup('').join(pieces)


def regions(boxes, names: Sequence[str], values: np.ndarray | None, signed: bool, frame) -> list[dict]:
    """Outlines, large ones first, so that the pointer finds the small ones inside them."""
    scaled = np.zeros(len(boxes)) if values is None else heat.scaled(values, signed)
    top = [i for i in np.argsort(-np.abs(scaled), kind='stable')[:_NAMED] if scaled[i]]
    text = max(frame) / 24
    found = []
    for i in sorted(range(len(boxes)), key=lambda i: -_area(boxes[i])):
        x1, y1, x2, y2 = boxes[i]
        end = x1 > 0.7 * frame[0]  # a name at the right edge grows to the left
        found.append(
            {
                'index': i,
                'box': [x1, y1, round(x2 - x1, 1), round(y2 - y1, 1)],
                'name': names[i],
                'at': [x2 if end else x1, round(y1 - text / 4 if y1 > text else y1 + text, 1)],
                'anchor': 'end' if end else 'start',
                'level': step(scaled[i]),
                'top': i in top,
                'title': names[i] + ('' if values is None else f': {number(values[i])}'),
            }
        )
    return found


def _area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def field(
    patches: np.ndarray | None, values: np.ndarray | None, boxes_R4, size: tuple[int, int], signed: bool
) -> np.ndarray | None:
    """uint8 levels [H, W] of the heat over a picture of `size` (W, H), in whose pixels the boxes are; None without."""
    if patches is not None:
        return heat.levels(heat.scaled(heat.upsample(patches, size[::-1]), signed), signed)
    if values is not None and len(values):
        return heat.levels(heat.of_boxes(heat.scaled(values, signed), boxes_R4, size[::-1]), signed)
    return None


def uri(levels_HW: np.ndarray, signed: bool) -> str:
    """The heat as a PNG whose palette has colours and opacity."""
    image = PIL.Image.fromarray(levels_HW)
    image.putpalette(heat.table(signed)[:, :3].tobytes())
    buffer = io.BytesIO()
    image.save(buffer, 'PNG', transparency=heat.table(signed)[:, 3].tobytes())
    return 'data:image/png;base64,' + base64.b64encode(buffer.getvalue()).decode()
