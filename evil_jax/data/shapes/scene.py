"""Symbolic scenes: three or four things on a 3 x 3 grid, as plain JSON.

A scene is `{'size': [width, height], 'background': [4 RGB corners], 'things': [thing, ...]}`; a thing is

    {'shape', 'colour', 'size', 'cell', 'x', 'y', 'radius', 'angle', 'rgb'}

with `cell` = 3 * row + column, centre and radius in pixels, angle in degrees. Two kinds of things make a statement
undecided: at most one thing is in shadow (`colour` 'dark': a silhouette whose colour nobody can see), and at most one
is an opaque wooden crate (`shape` 'crate', `colour` 'wooden') that may hide anything. Nothing else hides anything.
"""

import zlib

import numpy as np

SHAPES = ('circle', 'square', 'triangle', 'star')
COLOURS = ('red', 'green', 'blue', 'yellow', 'purple', 'pink')
SIZES = ('small', 'large')
DARK, CRATE, WOODEN = 'dark', 'crate', 'wooden'
PLACES = (
    'at the top left', 'at the top middle', 'at the top right',
    'at the middle left', 'in the middle', 'at the middle right',
    'at the bottom left', 'at the bottom middle', 'at the bottom right',
)  # fmt: skip
RELATIONS = ('left of', 'right of', 'above', 'below')

PICTURE, CELL = 144, 48  # pixels a side
_JITTER = 4
_RADIUS = {'small': 10, 'large': 18}
_RGB = {
    'red': (205, 40, 35), 'green': (45, 155, 55), 'blue': (40, 80, 205), 'yellow': (235, 210, 45),
    'purple': (115, 45, 150), 'pink': (245, 115, 185), DARK: (22, 22, 26), WOODEN: (150, 105, 60),
}  # fmt: skip

Scene = dict
Thing = dict


def make_scene(rng: np.random.Generator) -> Scene:
    """A random scene. Colours, shapes, sizes and cells are exchangeable: renaming them leaves its chance unchanged.

    Therefore a statement sampled by its label (`language_ve`, `language_vqa`) says nothing about the label by its
    words. No two things agree in both shape and colour, and no other thing has the shape of the one in shadow, so that
    'the red circle' means one thing at most and the thing in shadow can be named by its shape. The number of things,
    crate included, does not depend on whether there is a crate.
    """
    count = int(rng.integers(3, 5))
    crate, dark = rng.random(2) < 0.5
    kinds = [(CRATE, WOODEN)] if crate else []
    shapes = list(SHAPES)
    if dark:
        kinds.append((shapes.pop(int(rng.integers(len(shapes)))), DARK))
    pairs = [(shape, colour) for shape in shapes for colour in COLOURS]
    kinds += [pairs[i] for i in rng.choice(len(pairs), count - len(kinds), replace=False)]
    cells = rng.permutation(len(PLACES))
    things = [_thing(*kinds[i], int(cells[i]), rng) for i in rng.permutation(count)]
    base = rng.integers(180, 231, 3)
    background = (base + rng.integers(-14, 15, (4, 1)) + rng.integers(-3, 4, (4, 3))).tolist()
    return {'size': [PICTURE, PICTURE], 'background': background, 'things': things}


def _thing(shape, colour, cell, rng) -> Thing:
    size = 'large' if shape == CRATE else SIZES[int(rng.integers(len(SIZES)))]
    row, column = divmod(cell, 3)
    dx, dy = rng.integers(-_JITTER, _JITTER + 1, 2)
    light = rng.uniform(0.88, 1.08)
    rgb = np.clip(np.array(_RGB[colour]) * light + rng.integers(-8, 9, 3), 0, 255).astype(int)
    return {
        'shape': shape,
        'colour': colour,
        'size': size,
        'cell': cell,
        'x': int(column * CELL + CELL // 2 + dx),
        'y': int(row * CELL + CELL // 2 + dy),
        'radius': int(_RADIUS[size] + rng.integers(-1, 2)),
        'angle': int(rng.integers(-9, 10)),
        'rgb': rgb.tolist(),
    }


def key(scene: Scene) -> int:
    """What can be said about a scene, as a 32-bit number: equal for scenes that differ in pixels only."""
    facts = sorted((t['cell'], t['shape'], t['colour'], t['size']) for t in scene['things'])
    return zlib.crc32(repr(facts).encode())


def crate_of(scene: Scene) -> int | None:
    """Index of the crate, None without one."""
    return next((i for i, thing in enumerate(scene['things']) if thing['shape'] == CRATE), None)


def related(first: Thing, relation: str, second: Thing) -> bool:
    """Whether `first` is strictly left of, right of, above or below `second`, by columns and rows of the grid."""
    (row1, column1), (row2, column2) = divmod(first['cell'], 3), divmod(second['cell'], 3)
    return {'left of': column1 < column2, 'right of': column1 > column2, 'above': row1 < row2, 'below': row1 > row2}[
        relation
    ]
