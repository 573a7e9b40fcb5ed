"""attributions.html: where a model looked. Heat over pictures, regions and words, for an answer and for each word said.

A card has one or more targets. What the first one's relevance is stands in the page; a few lines of script show that of
the others, on hover, focus or tap. Every part of a target (picture, each row of words) has its own colour scale; how
the relevance is shared between the parts is told beside them.
"""

import dataclasses
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import PIL.Image

from evil_jax import pages, records
from evil_jax.pages import _heat_parts, heat, pictures

_FIELD = 320  # largest side of a heat map in pixels; browsers smooth it
_TINY = 96  # pictures up to this side are kept exactly and shown with square pixels
_LONG = 150  # words of a text that scrolls
_TOLD = 5  # words and regions named as the most relevant ones


@dataclasses.dataclass(frozen=True)
class Target:
    """What is explained, and the relevance of everything for it.

    Attributes:
      name: 'yes', 'the whole explanation', or the word said.
      regions: [R], one for each box of the item.
      patches: [h, w] over the whole picture, in rows; of an item without boxes.
      words: row of words -> relevance of each of them. Rows that are not here have none for this target.
      at: (row, position) of the word that is this target: pointing at it shows the target. None: it has a button.
      probability: of the target, for the tooltip.
    """

    name: str
    regions: Sequence[float] | np.ndarray | None = None
    patches: np.ndarray | None = None
    words: Mapping[str, Sequence[float] | np.ndarray] = dataclasses.field(default_factory=dict)
    at: tuple[str, int] | None = None
    probability: float | None = None


@dataclasses.dataclass(frozen=True)
class Item:
    """One example. All text is untrusted.

    Attributes:
      id: of the example.
      targets: the first one is shown until another is asked for.
      words: name of a row ('question', 'explanation', 'text', ...) -> its words, in reading order. In a row where some
        begin with a space they are tokens: spaces stand where they say.
      picture: file (bytes or path) or uint8 [H, W, 3]; for patches as the model saw it.
      boxes: [R, 4] (x1, y1, x2, y2).
      size: (width, height) that the boxes count in; (1, 1) for relative ones; None: pixels of the picture.
      names: of the regions.
      answer: what the model answered, with its `probability`; `correct` from 0 to 1 where it is known.
      gold: right answers.
      evidence: row -> positions of words that people marked as evidence.
      read: row -> how many of its words the model read, where the text was cut.
      problem: why there is no picture.
    """

    id: str
    targets: Sequence[Target]
    words: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    picture: bytes | str | os.PathLike | np.ndarray | None = None
    boxes: Sequence[Sequence[float]] | np.ndarray | None = None
    size: tuple[float, float] | None = None
    names: Sequence[str] = ()
    answer: str | None = None
    probability: float | None = None
    correct: float | None = None
    gold: Sequence[str] = ()
    evidence: Mapping[str, Sequence[int]] = dataclasses.field(default_factory=dict)
    read: Mapping[str, int] = dataclasses.field(default_factory=dict)
    problem: str = ''


def write_attributions(
    path: str | os.PathLike,
    items: Sequence[Item],
    *,
    title: str,
    settings: Mapping[str, Any] | None = None,
    method: str = '',
    total: int | None = None,
) -> None:
    """Writes one self-contained page, atomically.

    Args:
      path: of the page.
      items: in the order to show.
      title: name of the model or run.
      settings: how the relevance was computed, by name, for the end of the page.
      method: what a reader calls the method.
      total: number of examples that the items were chosen from.

    Raises:
      ValueError: relevance that is not finite, or other numbers of it than of words, regions or patches; the message
        names item and target.
    """
    shown, data = zip(*(_card(item) for item in items)) if items else ((), ())
    html = pages.render(
        'attribution',
        title=title,
        method=method,
        items=shown,
        signed=any(card['signed'] for card in data),
        unsigned=any(not card['signed'] for card in data),
        evidence=any(item.evidence for item in items),
        said=any(target.at for item in items for target in item.targets),
        pictured=any(card['figure'] for card in shown),
        ramps={signed: _heat_parts.ramp(signed) for signed in (False, True)},
        total=len(items) if total is None else total,
        settings={name: str(value) for name, value in (settings or {}).items() if value not in (None, '')},
        data=pages.script_json(
            {'tables': [heat.table(signed).tobytes().hex() for signed in (False, True)], 'items': data}
        ),
    )
    records.atomic_write(path, html)


def _card(item):
    """(what the template shows, what the script needs) of an item."""
    targets = [_checked(item, target, 0 if item.boxes is None else len(item.boxes)) for target in item.targets]
    uri, picture_size, problem = _picture(item)
    boxes, frame = _boxes(item, targets, picture_size)
    names = [str(name) for name in item.names] or [f'region {i + 1}' for i in range(len(boxes))]
    if len(names) != len(boxes):
        raise ValueError(f'item {item.id!r}: {len(names)} names of regions for {len(boxes)} boxes')
    first = targets[0] if targets else Target('')
    signed = heat.is_signed(*(values for target in targets for values in _maps(target).values()))
    told = [_told(item, target, names, signed) for target in targets]
    size = tuple(max(1, round(side * _FIELD / max(frame))) for side in frame)
    inside = [[round(v * size[i % 2] / frame[i % 2], 2) for i, v in enumerate(box)] for box in boxes]
    figure = None
    if uri or boxes or first.patches is not None:
        levels_HW = _heat_parts.field(first.patches, first.regions, inside, size, signed)
        figure = {
            'uri': uri,
            'tiny': picture_size is not None and max(picture_size) <= _TINY,
            'frame': frame,
            'heat': None if levels_HW is None else _heat_parts.uri(levels_HW, signed),
            'text': round(max(frame) / 24, 1),
            'regions': _heat_parts.regions(boxes, names, first.regions, signed, frame),
        }
    card = {
        'id': item.id,
        'figure': figure,
        'problem': problem,
        'rows': [(row, _words(item, row, first, signed), len(words) > _LONG) for row, words in item.words.items()],
        'buttons': [(i, t.name, _heat_parts.percent(t.probability)) for i, t in enumerate(targets) if t.at is None],
        'told': told[0] if told else '',
        'answer': item.answer,
        'probability': _heat_parts.percent(item.probability),
        'correct': item.correct,
        'gold': ', '.join(item.gold),
    }
    data = {
        'signed': int(signed),
        'size': size,
        'boxes': inside,
        'names': names,
        'targets': [
            {
                'told': line,
                'regions': _heat_parts.rounded(target.regions),
                'patches': _heat_parts.rounded(target.patches),
                'shape': None if target.patches is None else target.patches.shape,
                'words': [_heat_parts.rounded(target.words.get(row)) for row in item.words],
            }
            for target, line in zip(targets, told)
        ],
    }
    return card, data


def _picture(item):
    """(URI, (width, height), why there is none). Tiny pictures stay exact: their pixels will be seen."""
    source = item.picture
    if source is None:
        return None, None, item.problem
    if isinstance(source, np.ndarray):
        buffer = io.BytesIO()
        PIL.Image.fromarray(source).save(buffer, 'PNG')
        source = buffer.getvalue()
    name = 'the file' if isinstance(source, bytes) else os.path.basename(source)
    try:
        stream = io.BytesIO(source) if isinstance(source, bytes) else source
        return *pictures.picture_uri(stream, exact=_TINY), item.problem
    except ValueError:
        # One bad file must not cost the page: its card says so, without this machine's folders.
        return None, None, item.problem or f'{name} is not a readable picture'


def _boxes(item, targets, picture_size):
    """(boxes, frame (width, height) that they count in)."""
    found = heat.finite([] if item.boxes is None else item.boxes, f'item {item.id!r}, boxes')
    if found.size and (found.ndim != 2 or found.shape[1] != 4):
        raise ValueError(f'item {item.id!r}: boxes of shape {found.shape}, wanted [R, 4]')
    shapes = [target.patches.shape[::-1] for target in targets if target.patches is not None]
    return pictures.placed(item.boxes, item.size, picture_size or (shapes[0] if shapes else None))


def _words(item, row, target, signed):
    return _heat_parts.words(
        item.words[row],
        target.words.get(row),
        signed,
        targets={t.at[1]: i for i, t in enumerate(item.targets) if t.at and t.at[0] == row},
        evidence=item.evidence.get(row, ()),
        read=item.read.get(row),
    )


def _checked(item, target, boxes):
    """The target with arrays. ValueError where its numbers are not those of the item."""
    where = f'item {item.id!r}, target {target.name!r}'
    regions = None if target.regions is None else heat.finite(target.regions, f'{where}, regions')
    patches = None if target.patches is None else heat.finite(target.patches, f'{where}, patches')
    words = {row: heat.finite(values, f'{where}, {row}') for row, values in target.words.items()}
    if regions is not None and regions.shape != (boxes,):
        raise ValueError(f'{where}: relevance of regions has shape {regions.shape}, wanted ({boxes},): one a box')
    if patches is not None and (patches.ndim != 2 or not patches.size or boxes):
        raise ValueError(f'{where}: relevance of patches has shape {patches.shape}: wanted [h, w], and no boxes')
    for row, values in words.items():
        if row not in item.words:
            raise ValueError(
                f'{where}: relevance of {row!r}; the item has words for {", ".join(item.words) or "nothing"}'
            )
        if values.shape != (len(item.words[row]),):
            raise ValueError(f'{where}: relevance of {row!r} has shape {values.shape} for {len(item.words[row])} words')
    if target.at and not (target.at[0] in item.words and 0 <= target.at[1] < len(item.words[target.at[0]])):
        raise ValueError(f'{where}: stands at {target.at}, where the item has no word')
    return dataclasses.replace(target, regions=regions, patches=patches, words=words)


def _maps(target):
    """Maps of a target by name: each has its own scale."""
    picture = {'regions': target.regions, 'picture': target.patches}
    return {name: values for name, values in (picture | dict(target.words)).items() if values is not None}


def _told(item, target, names, signed):
    """A line on how the relevance is shared between the parts, and what has most of it."""
    maps = _maps(target)
    sums = {part: float(np.abs(values).sum()) for part, values in maps.items()}
    whole = sum(sums.values())
    probability = f' ({_heat_parts.percent(target.probability)})' if target.probability is not None else ''
    lines = []
    if not whole:
        lines.append('nothing has any relevance' if maps else 'no relevance is known')
    elif len(maps) > 1:
        lines.append(', '.join(f'{part} {100 * share / whole:.0f} %' for part, share in sums.items()))
    values = [] if target.regions is None else list(zip(names, target.regions))
    values += [(word.strip(), v) for row, own in target.words.items() for word, v in zip(item.words[row], own)]
    best = sorted((pair for pair in values if pair[1]), key=lambda pair: -abs(pair[1]))[:_TOLD]
    if best:
        lines.append('most: ' + ', '.join(f'{word} {_heat_parts.number(v)}' for word, v in best))
    if target.patches is not None:
        lines.append(' to '.join(_heat_parts.number(v) for v in (target.patches.min(), target.patches.max())))
    note = ' (shares of magnitudes)' if signed and len(maps) > 1 else ''
    return f'“{target.name.strip()}”{probability}: ' + '; '.join(lines) + note
