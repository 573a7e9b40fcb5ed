"""Geometry of a histogram of whole numbers; the template draws it as SVG."""

import itertools
from collections.abc import Mapping

WIDTH, HEIGHT = 440, 200
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 22, 36
_MOST_BARS = 40
_TAIL = 0.001  # share of the numbers that may stand together in the last bar


def histogram(sizes: Mapping[int, int], limit: int | None = None) -> dict | None:
    """Places bars in a WIDTH x HEIGHT picture.

    Args:
      sizes: number -> how many have it.
      limit: a line is drawn behind it.

    Returns:
      The frame, 'bars': [{'x', 'y', 'width', 'height', 'over' (beyond the limit), 'text'}], 'ticks': [(x, text)],
      'limit_x' (None without a limit, or where it is far beyond the bars), and the numbers 'total', 'mean', 'largest',
      'over' (how many are beyond the limit) and 'percent' of them. None where there is nothing to draw.
    """
    sizes = {n: k for n, k in sizes.items() if k > 0}
    if not sizes:
        return None
    total, largest, low = sum(sizes.values()), max(sizes), min(sizes)
    # A few very large numbers would squeeze all others into one bar: they share the last one.
    rest, last = total, low
    for n in sorted(sizes):
        rest -= sizes[n]
        last = n
        if rest <= _TAIL * total:
            break
    if limit is not None and last < limit <= 2 * last:
        last = limit
    step = -(-(last - low + 1) // _MOST_BARS)
    starts = list(range(low, last + 1, step))
    if limit is not None and low <= limit < last and step > 1:  # a bar is on one side of the limit
        shift = (limit + 1 - low) % step
        starts = ([low] if shift else []) + list(range(low + shift, last + 1, step))
    edges = [*starts, max(largest, last) + 1]
    counts = [sum(k for n, k in sizes.items() if a <= n < b) for a, b in itertools.pairwise(edges)]
    room, highest = WIDTH - LEFT - RIGHT, max(counts)
    width = room / len(starts)
    bars = []
    for i, (start, end, number) in enumerate(zip(edges, edges[1:], counts)):
        height = number / highest * (HEIGHT - TOP - BOTTOM)
        bars.append(
            {
                'x': round(LEFT + i * width + width * 0.06, 1),
                'y': round(HEIGHT - BOTTOM - height, 1),
                'width': round(width * 0.88, 1),
                'height': round(max(height, 0.8 if number else 0), 1),
                'over': limit is not None and start > limit,
                'text': f'{start if end == start + 1 else f"{start} to {end - 1}"}: {number:,}',
            }
        )
    limit_x = None
    if limit is not None and low <= limit + 1 and limit <= last:
        limit_x = round(LEFT + width * sum(start <= limit for start in starts), 1)
    every = max(1, -(-len(starts) // 8))
    over = sum(k for n, k in sizes.items() if limit is not None and n > limit)
    return {
        'bars': bars,
        'ticks': [(round(LEFT + (i + 0.5) * width, 1), str(starts[i])) for i in range(0, len(starts), every)],
        'limit': limit,
        'limit_x': limit_x,
        'limit_end': limit_x is not None and limit_x > WIDTH / 2,
        'width': WIDTH,
        'height': HEIGHT,
        'top': TOP,
        'bottom': HEIGHT - BOTTOM,
        'total': total,
        'mean': sum(n * k for n, k in sizes.items()) / total,
        'largest': largest,
        'over': over,
        'percent': 100 * over / total,
    }
