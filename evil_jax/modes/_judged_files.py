"""judged.jsonl and judged.csv: every edit with what was answered to it and how that was judged, a row each."""

import csv
import io
import json
import math
import pathlib
from collections.abc import Iterator
from typing import Any

from evil_jax import records
from evil_jax.counterfactual.exchange import Asked
from evil_jax.counterfactual.judged import Judged
from evil_jax.text import csv_cell

NAMES = ('judged.jsonl', 'judged.csv')
_OF_EDIT = (
    'id', 'example_id', 'image_id', 'family', 'original', 'text', 'source', 'target', 'source_synset', 'target_synset',
    'path_similarity', 'distance', 'asks', 'role', 'quality', 'expectation', 'why',
)  # fmt: skip
_TEXTS = ('answer', 'answer_star', 'gold', 'transition')
_NUMBERS = ('right', 'right_star', 'shift', 'log_odds')
_DECIDED = ('met', 'expected_right')
COLUMNS = (*_OF_EDIT, 'expected', *_TEXTS, 'kept', 'uncertain', *_NUMBERS, *_DECIDED)


def write(folder: pathlib.Path, asked: Asked, judged: Judged) -> None:
    """Writes both files, as a stream; both or none.

    Args:
      folder: of the files.
      asked: has the edits.
      judged: rows in their order; edits that were not judged are left out.
    """
    with records.atomic_files(*(folder / name for name in NAMES)) as (lines, table):
        text = io.TextIOWrapper(table, encoding='utf-8', newline='', write_through=True)
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        for row in rows(asked, judged):
            lines.write((json.dumps(row, ensure_ascii=False) + '\n').encode())
            cells = row | {'expected': '|'.join(row['expected'] or ())}
            writer.writerow([csv_cell(cells[name]) for name in COLUMNS])
        text.detach()


def rows(asked: Asked, judged: Judged) -> Iterator[dict[str, Any]]:
    """Yields the rows, in the order of edits.jsonl; a value that is not known is None."""
    place, count = 0, len(judged)
    columns = {name: getattr(judged, name) for name in (*_TEXTS, *_NUMBERS, *_DECIDED, 'kept', 'uncertain', 'offset')}
    for offset, edit in asked.edits():
        if place == count:
            return
        if columns['offset'][place] != offset:
            continue
        value = {name: column[place].item() for name, column in columns.items()}
        yield (
            {name: getattr(edit, name) for name in (*_OF_EDIT, 'expected')}
            | {name: judged.names[name][value[name]] for name in _TEXTS}
            | {name: value[name] for name in ('kept', 'uncertain')}
            | {name: None if math.isnan(value[name]) else round(value[name], 6) for name in _NUMBERS}
            | {name: None if value[name] < 0 else bool(value[name]) for name in _DECIDED}
        )
        place += 1
