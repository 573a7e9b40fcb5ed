"""Geometry of a line chart; the template draws it as SVG."""

import math
from collections.abc import Sequence

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 34
_MOST_POINTS = 300


def line_chart(
    title: str,
    series: dict[str, list[tuple[float, float]]],
    *,
    unit_range: bool = False,
    zoom: bool = False,
    labels: Sequence[str] = (),
    spread: dict[str, list[tuple[float, float, float]]] | None = None,
    axis: str = 'steps',
) -> dict | None:
    """Places lines in a WIDTH x HEIGHT picture.

    Args:
      title: what the chart shows.
      series: (x, y) points by name; points that are not finite are left out, long lines are averaged in buckets.
      unit_range: the vertical axis goes from 0 to 1, as scores do.
      zoom: the vertical axis goes from the lowest to the highest value, not from 0.
      labels: what stands at x = 0, 1, 2, ...; without them x is a number.
      spread: (x, low, high) of vertical strokes, by name of the series.
      axis: what x is.

    Returns:
      `{'title', 'axis', 'labelled', 'lines': [{'name', 'points', 'dots', 'strokes': [(x, y low, y high)], 'last'}],
      'x_ticks': [(x, text)], 'y_ticks': [(y, text)]}` and the frame; None where there is nothing to draw.
    """
    clean = {name: [(x, y) for x, y in points if math.isfinite(y)] for name, points in series.items()}
    clean = {name: sorted(points) for name, points in clean.items() if points}
    if not clean:
        return None
    strokes = {name: (spread or {}).get(name, []) for name in clean}
    every_x = [x for points in clean.values() for x, _ in points]
    every_y = [y for points in clean.values() for _, y in points]
    every_y += [y for rows in strokes.values() for _, *ends in rows for y in ends]
    if labels:
        x_ticks, x_texts = _some(labels), list(labels)
        x_low, x_high = -0.5, len(labels) - 0.5
    else:
        x_ticks = ticks(min(0, min(every_x)), max(every_x))
        x_texts = None
        x_low, x_high = x_ticks[0], max(x_ticks[-1], max(every_x))
    lowest = min(every_y) if zoom else min(0.0, min(every_y))
    y_ticks = [0, 0.25, 0.5, 0.75, 1] if unit_range else ticks(lowest, max(every_y))
    y_low, y_high = y_ticks[0], max(y_ticks[-1], max(every_y))

    def place(x, y):
        across = (x - x_low) / ((x_high - x_low) or 1)
        up = (y - y_low) / ((y_high - y_low) or 1)
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM), 1),
        )

    lines = []
    for name, points in clean.items():
        placed = [place(x, y) for x, y in _thin(points)]
        lines.append(
            {
                'name': name,
                'points': ' '.join(f'{x},{y}' for x, y in placed),
                'dots': placed if len(placed) <= 30 else placed[-1:],
                'strokes': [(*place(x, low), place(x, high)[1]) for x, low, high in strokes[name]],
                'last': points[-1][1],
            }
        )
    return {
        'title': title,
        'axis': axis,
        'labelled': bool(labels),
        'lines': lines,
        'x_ticks': [(place(x, y_low)[0], x_texts[x] if x_texts else tick_text(x)) for x in x_ticks if x <= x_high],
        'y_ticks': [(place(x_low, y)[1], tick_text(y)) for y in y_ticks],
        'width': WIDTH,
        'height': HEIGHT,
        'left': LEFT,
        'right': WIDTH - RIGHT,
        'bottom': HEIGHT - BOTTOM,
    }


def _some(labels) -> list[int]:
    """Positions of as many labels as have room beside each other."""
    room = (WIDTH - LEFT - RIGHT) / (9 * max(map(len, labels)) + 12)
    return list(range(0, len(labels), math.ceil(len(labels) / max(1.0, room))))


def _thin(points):
    """At most _MOST_POINTS points: means of equal buckets."""
    size = math.ceil(len(points) / _MOST_POINTS)
    buckets = [points[i : i + size] for i in range(0, len(points), size)]
    return [(sum(x for x, _ in b) / len(b), sum(y for _, y in b) / len(b)) for b in buckets]


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers that cover [low, high]."""
    span = (high - low) or abs(high) or 1.0
    rough = span / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def tick_text(value: float) -> str:
    """A number of `ticks` as it stands at an axis."""
    if abs(value) >= 10_000:
        return f'{value / 1000:,g}k'
    return f'{value:g}'
