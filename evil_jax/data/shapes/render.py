"""A scene as a picture."""

import math

import numpy as np
from PIL import Image, ImageDraw

from evil_jax.data.shapes.scene import Scene, Thing

SCALE = 2  # pictures are drawn larger, then averaged: smooth edges


def render(scene: Scene) -> Image.Image:
    """The RGB picture of a scene; the same scene always gives the same pixels."""
    width, height = scene['size']
    corners = np.clip(np.array(scene['background'], np.uint8).reshape(2, 2, 3), 0, 255)
    image = Image.fromarray(corners).resize((width * SCALE, height * SCALE), Image.Resampling.BILINEAR)
    draw = ImageDraw.Draw(image)
    for thing in scene['things']:
        draw_thing(draw, thing)
    return image.reduce(SCALE)


def draw_thing(draw: ImageDraw.ImageDraw, thing: Thing) -> None:
    """Draws a thing in its colour, SCALE times as large as it is in the picture."""
    _DRAW[thing['shape']](draw, thing)


def outline(thing: Thing) -> tuple[float, float, float, float]:
    """The tight box (x1, y1, x2, y2) of a thing in pixels."""
    if thing['shape'] == 'circle':
        x, y, r = thing['x'], thing['y'], thing['radius']
        return x - r, y - r, x + r, y + r
    xs, ys = zip(*_CORNERS[thing['shape']](thing))
    return min(xs), min(ys), max(xs), max(ys)


def polygon(thing: Thing) -> list[tuple[float, float]]:
    """The outline of a thing as (x, y) in pixels; a circle has 24 corners."""
    if thing['shape'] == 'circle':
        return _around(thing, range(0, 360, 15), (1.0,) * 24)
    return _CORNERS[thing['shape']](thing)


def _around(thing, angles, radii) -> list[tuple[float, float]]:
    turn = thing['angle']
    return [
        (
            thing['x'] + thing['radius'] * r * math.sin(math.radians(a + turn)),
            thing['y'] - thing['radius'] * r * math.cos(math.radians(a + turn)),
        )
        for a, r in zip(angles, radii)
    ]


def _square(thing):
    return _around(thing, (45, 135, 225, 315), (1.2,) * 4)


def _triangle(thing):
    return _around(thing, (0, 120, 240), (1.15,) * 3)


def _star(thing):
    return _around(thing, range(0, 360, 36), (1.15, 0.46) * 5)


def _crate(thing):
    x, y, r = thing['x'], thing['y'], thing['radius']
    return [(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)]


_CORNERS = {'square': _square, 'triangle': _triangle, 'star': _star, 'crate': _crate}


def _draw_circle(draw, thing):
    draw.ellipse([v * SCALE for v in outline(thing)], fill=tuple(thing['rgb']))


def _draw_polygon(draw, thing):
    draw.polygon([(x * SCALE, y * SCALE) for x, y in _CORNERS[thing['shape']](thing)], fill=tuple(thing['rgb']))


def _draw_crate(draw, thing):
    """Three planks in a frame, with a brace."""
    wood = np.array(thing['rgb'])
    edge, shade = tuple((wood * 0.45).astype(int)), tuple((wood * 0.75).astype(int))
    x1, y1, x2, y2 = (round(v * SCALE) for v in outline(thing))
    draw.rectangle((x1, y1, x2, y2), fill=tuple(thing['rgb']), outline=edge, width=3 * SCALE)
    for i in (1, 2):
        y = y1 + (y2 - y1) * i // 3
        draw.line((x1, y, x2, y), fill=shade, width=SCALE)
    draw.line((x1, y2, x2, y1), fill=edge, width=2 * SCALE)


_DRAW = {
    'circle': _draw_circle,
    'square': _draw_polygon,
    'triangle': _draw_polygon,
    'star': _draw_polygon,
    'crate': _draw_crate,
}
