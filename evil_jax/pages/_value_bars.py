"""Geometry of a histogram of a filter's values, classes stacked; the template draws it as SVG."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import chart
from evil_jax.pages._pair_counts import CLASSES

WIDTH, HEIGHT = 440, 200
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 22, 36


def histogram(edges: Sequence[float], counts: Mapping[str, Sequence[int]], threshold: float) -> dict[str, Any] | None:
    """Places bars in a WIDTH x HEIGHT picture.

    Args:
      edges: of the bins, rising; one more than there are bins.
      counts: {class: number in each bin}.
      threshold: a line is drawn at it.

    Returns:
      The frame, 'bars': [{'text', 'parts': [{'place' (of the class), 'x', 'y', 'width', 'height'}]}], 'ticks':
      [(x, text)], 'limit_x' and 'limit_end' (the line's text stands left of it), 'limit' and 'total'. None where there
      is nothing to draw.
    """
    bins = len(edges) - 1
    stacks = [[(counts.get(label) or [0] * bins)[i] for label in CLASSES] for i in range(bins)]
    highest = max(map(sum, stacks), default=0)
    low, high = (edges[0], edges[-1]) if bins > 0 else (0.0, 0.0)
    if not highest or not math.isfinite(high - low) or high <= low:
        return None
    place = lambda value: LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    bars = []
    for start, end, stack in zip(edges, edges[1:], stacks):
        parts, y = [], HEIGHT - BOTTOM
        scale = (HEIGHT - TOP - BOTTOM) / highest
        if 0 < sum(stack) * scale < 1:
            scale = 1 / sum(stack)  # one pair is seen too
        for i, n in enumerate(stack):
            y -= n * scale
            if n:
                box = {'x': place(start) + 0.4, 'y': y, 'width': place(end) - place(start) - 0.8, 'height': n * scale}
                parts.append({'place': i} | {name: round(size, 2) for name, size in box.items()})
        if parts:
            told = ', '.join(f'{label} {n:,}' for label, n in zip(CLASSES, stack))
            bars.append({'text': f'{start:.3g} to {end:.3g}: {told}', 'parts': parts})
    limit_x = round(place(threshold), 1) if low <= threshold <= high else None
    return {
        'bars': bars,
        'ticks': [(round(place(x), 1), chart.tick_text(x)) for x in chart.ticks(low, high) if low <= x <= high],
        'limit': f'{threshold:g}',
        'limit_x': limit_x,
        'limit_end': limit_x is not None and limit_x > WIDTH / 2,
        'total': sum(map(sum, stacks)),
        'width': WIDTH,
        'height': HEIGHT,
        'left': LEFT,
        'right': WIDTH - RIGHT,
        'top': TOP,
        'bottom': HEIGHT - BOTTOM,
    }
