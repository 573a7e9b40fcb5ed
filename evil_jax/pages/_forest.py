"""Geometry of a forest plot: estimates with their intervals, one below the other, against no difference."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import chart

WIDTH, _SIDE, _TOP, _ROW, _AXIS = 440, 12, 8, 38, 40
_NAME = 50  # characters that fit above an interval
_MOST = 40  # rows


def forest(rows: Sequence[Mapping[str, Any]], title: str, axis: str) -> dict[str, Any] | None:
    """Places the rows that have an estimate; their names stand above them, so that long ones fit a phone.

    Args:
      rows: 'name', 'value' and 'ci95' (low, high), any of the last two None.
      title: what the plot shows.
      axis: what the numbers are.

    Returns:
      `{'title', 'axis', 'rows': [{'name', 'short', 'y', 'x', 'low', 'high', 'text', 'sure'}], 'ticks': [(x, text)],
      'zero': x}` and the frame; `sure` where the interval does not have 0. None where there is nothing to draw.
    """
    found = [row for row in rows if _finite(row['value'], *(row['ci95'] or (math.nan,)))]
    if not found:
        return None
    if len(found) > _MOST:
        title += f' (the first {_MOST} of {len(found)})'
        found = found[:_MOST]
    ends = [end for row in found for end in (row['value'], *row['ci95'])]
    marks = chart.ticks(min(0.0, *ends), max(0.0, *ends))
    place = lambda x: round(_SIDE + (x - marks[0]) / (marks[-1] - marks[0]) * (WIDTH - 2 * _SIDE), 1)
    drawn = []
    for i, row in enumerate(found):
        low, high = row['ci95']
        name = str(row['name'])
        drawn.append(
            {
                'name': name,
                'short': name if len(name) <= _NAME else name[: _NAME - 1] + '…',
                'y': _TOP + i * _ROW + 14,
                'x': place(row['value']),
                'low': place(low),
                'high': place(high),
                'text': f'{row["value"]:.3g} [{low:.3g}, {high:.3g}]',
                'sure': low > 0 or high < 0,
            }
        )
    bottom = _TOP + len(found) * _ROW
    return {
        'title': title,
        'axis': axis,
        'rows': drawn,
        'ticks': [(place(x), chart.tick_text(x).replace('-', '−')) for x in marks],
        'zero': place(0.0),
        'left': _SIDE,
        'width': WIDTH,
        'top': _TOP,
        'bottom': bottom,
        'height': bottom + _AXIS,
    }


def _finite(*values):
    return all(value is not None and math.isfinite(value) for value in values)
