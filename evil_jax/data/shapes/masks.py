"""Masks of things: what of a picture a heat map should find."""

from collections.abc import Iterable

import numpy as np
from PIL import Image, ImageDraw

from evil_jax.data.shapes.render import SCALE, draw_thing
from evil_jax.data.shapes.scene import Scene


def mask(scene: Scene, things: Iterable[int]) -> np.ndarray:
    """Where a picture shows some of its things: uint8 [height, width] of 0 and 1.

    A pixel belongs to them if at least half of it does, as drawn: what another thing covers does not count.

    Args:
      things: indices into `scene['things']`.

    Raises:
      ValueError: an index that the scene has not.
    """
    chosen, found = set(things), scene['things']
    if not chosen <= set(range(len(found))):
        raise ValueError(f'things {sorted(chosen)} of a scene of {len(found)}')
    width, height = scene['size']
    image = Image.new('RGB', (width * SCALE, height * SCALE))
    draw = ImageDraw.Draw(image)
    for index, thing in enumerate(found):
        # The crate's planks are darker than the crate, but not black.
        draw_thing(draw, thing | {'rgb': [255 * (index in chosen)] * 3})
    drawn = (np.asarray(image).max(2) > 0).reshape(height, SCALE, width, SCALE)
    return (drawn.mean((1, 3)) >= 0.5).astype(np.uint8)
