"""Pairs drawn to be checked by hand, in a table that somebody fills in and `checked.py` reads.

The table is opened in spreadsheets, so a cell that one would take for a formula has a ' in front. What is to be filled
in stands last: `label`, the class that is right for the picture, and `quality` of the explanation, low, medium or high.
"""

import csv
import io
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from evil_jax.construction import _drawn
from evil_jax.construction.pairs import CLASSES, Pair
from evil_jax.records import atomic_write
from evil_jax.text import csv_cell

COLUMNS = (
    'pairID', 'split', 'image', 'captions', 'premise', 'hypothesis', 'given_label', 'explanation', 'label', 'quality',
)  # fmt: skip


def draw(pairs: Iterable[Pair], n: int, seed: int = 0) -> list[Pair]:
    """n pairs, of the classes as equally as can be, in mixed order.

    Drawn by a hash of seed and id: the order of the pairs does not matter, and a larger sample holds the smaller one.
    Of a class that has fewer pairs all are taken, and the sample is smaller.

    Raises:
      ValueError: no pairs at all.
    """
    kept = {label: _drawn.Smallest(n // len(CLASSES) + (i < n % len(CLASSES))) for i, label in enumerate(CLASSES)}
    for pair in pairs:
        kept[pair.label].add(_drawn.rank(seed, pair.id), pair.id, pair)
    drawn = [pair for label in CLASSES for pair in kept[label].items()]
    if not drawn:
        raise ValueError(f'no pairs to draw {n:,} from')
    # Not by the rank of the draw: the smallest ranks of a large class are smaller than those of a small one.
    return sorted(drawn, key=lambda pair: (_drawn.rank(seed, 'order', pair.id), pair.id))


def write(path, drawn: Sequence[Pair], captions: Mapping[str, Sequence[str]]) -> None:
    """Writes the table, with label and quality blank.

    Args:
      path: of the CSV file.
      drawn: pairs of `draw`.
      captions: {image_id: texts}; they stand in one cell, a line each.

    Raises:
      ValueError: there is a file already, in which somebody may have filled in something.
    """
    if pathlib.Path(path).exists():
        raise ValueError(f'{path} is there already, perhaps filled in: move it away to draw pairs anew')
    table = io.StringIO(newline='')
    lines = csv.writer(table)
    lines.writerow(COLUMNS)
    for pair in drawn:
        explanation = pair.explanations[0] if pair.explanations else ''
        shown = '\n'.join(captions.get(pair.image_id, ()))
        picture = f'{pair.image_id}.jpg' if pair.image_id else ''
        texts = pair.premise, pair.hypothesis, pair.label, explanation
        lines.writerow([*map(csv_cell, (pair.id, pair.split, picture, shown, *texts)), '', ''])
    atomic_write(path, table.getvalue())
