"""Geometry of the map of colours: what happens when a colour (row) is replaced by another one (column)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import _rates

_CELL = 22
_LETTER = 7.2  # width of a letter of the labels
_MOST = (40, 70)  # rows and columns; what is seen least is left out
_LISTED = 400  # pairs in the table
_WIDE = 0.4  # intervals from here on are hatched
_RGB = re.compile('#[0-9a-f]{6}')


def grid(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Places swatches, labels and cells.

    Args:
      document: 'colours' ({name: '#rrggbb'}, in the order of the axes), 'cells' (rows with 'source', 'target', 'n',
        'images', 'value', 'ci95' and 'k', the changed answers), 'rows' (the same of each source, over all targets) and
        'support' (n from which a cell is coloured). Or None.

    Returns:
      The frame, 'rows' and 'columns' ({'name', 'rgb', 'at'}), 'cells' and 'margin' ({'x', 'y', 'size', 'kind': 'few',
      'wide' or 'sure', 'heat' from 0 to 1, 'title', 'source', 'target'}), 'table' (the cells in words), 'left_out' and
      'not_listed' (pairs without room in map and table). None where there is nothing to draw.

    Raises:
      ValueError: a colour that is not '#rrggbb'.
    """
    if not document or not document['cells']:
        return None
    order = document['colours']
    for name, rgb in order.items():
        if not _RGB.fullmatch(rgb):
            raise ValueError(f'the colour of {name!r} is {rgb!r}, wanted #rrggbb')
    cells, support = document['cells'], document['support']
    sources, targets = (_most(cells, key, order, most) for key, most in zip(('source', 'target'), _MOST))
    left = 16 + _CELL + _LETTER * max(map(len, sources))
    top = 16 + _CELL + _LETTER * max(map(len, targets))
    first = left + _CELL + 8  # behind the margin
    x = {name: round(first + i * _CELL, 1) for i, name in enumerate(targets)}
    y = {name: round(top + i * _CELL, 1) for i, name in enumerate(sources)}
    placed = [c for c in cells if c['source'] in y and c['target'] in x]
    place = {name: i for i, name in enumerate(order)}
    listed = sorted(cells, key=lambda c: -c['n'])[:_LISTED]
    listed.sort(key=lambda c: place[c['source']])
    return {
        'width': round(first + len(x) * _CELL + 4),
        'height': round(top + len(y) * _CELL + 4),
        'size': _CELL,
        'label_x': round(left - _CELL - 4, 1),
        'label_y': round(top - _CELL - 4, 1),
        'margin_x': round(left, 1),
        'rows': [{'name': n, 'rgb': order[n], 'at': at} for n, at in y.items()],
        'columns': [{'name': n, 'rgb': order[n], 'at': at} for n, at in x.items()],
        'cells': [_cell(c, x[c['target']], y[c['source']], support) for c in placed],
        'margin': [
            _cell(c | {'target': 'any'}, round(left, 1), y[c['source']], support)
            for c in document.get('rows', ())
            if c['source'] in y
        ],
        'table': [c | {'cell': _rates.cell(c), 'few': c['n'] < support} for c in listed],
        'left_out': len(cells) - len(placed),
        'not_listed': len(cells) - len(listed),
        'support': support,
    }


def _most(cells: Sequence[Mapping], key: str, order, most: int) -> list[str]:
    """The names seen most, in the order of the axes."""
    seen: dict[str, int] = {}
    for cell in cells:
        seen[cell[key]] = seen.get(cell[key], 0) + cell['n']
    kept = set(sorted(seen, key=lambda name: (-seen[name], name))[:most])
    return [name for name in order if name in kept]


def _cell(row, x, y, support):
    shown = _rates.cell(row)
    kind = 'few' if row['n'] < support else 'sure'
    if kind == 'sure' and row.get('ci95') and row['ci95'][1] - row['ci95'][0] > _WIDE:
        kind = 'wide'
    told = f'{row["source"]} → {row["target"]}: {shown["text"]} changed, {shown["counts"]}'
    return {
        'x': x,
        'y': y,
        'kind': kind,
        'heat': round(row['value'], 3),
        'title': told + (f', 95 % interval {shown["ci"]}' if shown['ci'] else ''),
        'source': row['source'],
        'target': row['target'],
    }
