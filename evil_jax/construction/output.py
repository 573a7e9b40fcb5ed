"""What a construction leaves: esnlive_SPLIT.csv in the released layout, and removed.jsonl with the reasons.

The released files have LF line ends, cells quoted where CSV asks for it alone, a running index without a name, and
pictures as `NUMBER.jpg`; `data/builders/esnlive.py` reads them. Text is written as it is, also where it begins with
= + - or @. Everywhere else in this package such a cell gets a ' in front of it, since a spreadsheet would take it for a
formula. These files are data that models are trained on: a ' would be a word of the hypothesis, and the file another
one than the released. Who wants to look at them in a spreadsheet imports their columns as text.
"""

import contextlib
import csv
import io
import json
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from evil_jax.construction.pairs import SPLITS, Pair
from evil_jax.records import atomic_files, remove_leftovers

_COLUMNS = ('', 'pairID', 'Flickr30kID', 'hypothesis', 'gold_label', 'explanation')
_MORE = ('explanation_2', 'explanation_3')
_DIGITS = 6  # of scores and values in removed.jsonl: float32 has no more


def csv_path(folder, split: str) -> pathlib.Path:
    return pathlib.Path(folder) / f'esnlive_{split}.csv'


def removed_path(folder) -> pathlib.Path:
    return pathlib.Path(folder) / 'removed.jsonl'


class Writer:
    """Pairs into the files of their splits, one at a time; made by `writer`.

    Attributes:
      rows: {split: pairs written}.
    """

    def __init__(self, files: dict[str, BinaryIO], removed: BinaryIO, explanation: str):
        self._files, self._removed = files, removed
        self._columns = {'first': _COLUMNS, 'all': _COLUMNS + _MORE}[explanation]
        self.rows = dict.fromkeys(files, 0)
        for file in files.values():
            file.write(_csv_line(self._columns))

    def keep(self, pair: Pair) -> None:
        """Writes a pair into its split's file; what it lacks, picture or explanations, are empty cells.

        Raises:
          ValueError: its split has no file here.
        """
        if pair.split not in self._files:
            raise ValueError(f'{pair.where or pair.id}: split {pair.split!r}, wanted {" or ".join(self._files)}')
        most = len(self._columns) - len(_COLUMNS) + 1
        explanations = (pair.explanations + [''] * most)[:most]
        picture = f'{pair.image_id}.jpg' if pair.image_id else ''
        cells = (self.rows[pair.split], pair.id, picture, pair.hypothesis, pair.label, *explanations)
        self._files[pair.split].write(_csv_line(cells))
        self.rows[pair.split] += 1

    def remove(self, judged, detail: str) -> None:
        """Writes a `cleaning.Judged` that a filter removed: the pair, `reason` (the filter), `detail` (a sentence), all
        filters that remove it, each filter's value, and the model's scores of the captions.
        """
        row = judged.pair.to_json() | {
            'reason': judged.removed_by,
            'detail': detail,
            'removing': list(judged.removing),
            'values': {name: None if math.isnan(v) else round(float(v), _DIGITS) for name, v in judged.values.items()},
        }
        if judged.scores_C3 is not None:
            row['scores'] = [[round(score, _DIGITS) for score in caption] for caption in judged.scores_C3.tolist()]
        self._write(row)

    def drop(self, pair: Pair, reason: str, detail: str) -> None:
        """Writes a pair that no filter was asked about into the file of the removed ones."""
        self._write(pair.to_json() | {'reason': reason, 'detail': detail})

    def _write(self, row):
        self._removed.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b'\n')


@contextlib.contextmanager
def writer(folder, splits: Sequence[str], explanation: str = 'first') -> Iterator[Writer]:
    """A Writer. All files appear when the context ends; after an error none does, and older ones stay as they were.

    Args:
      folder: of the files; it is made. The caller sees to it that no other process works there.
      splits: those that have pairs.
      explanation: 'first' writes the released columns; 'all' explanation_2 and explanation_3 as well, empty where a
        pair has fewer.
    """
    remove_leftovers(*[csv_path(folder, split) for split in SPLITS], removed_path(folder))
    with atomic_files(*[csv_path(folder, split) for split in splits], removed_path(folder)) as (*files, removed):
        yield Writer(dict(zip(splits, files)), removed, explanation)
    for split in set(SPLITS) - set(splits):  # an earlier run may have had pairs there
        csv_path(folder, split).unlink(missing_ok=True)


def _csv_line(cells) -> bytes:
    line = io.StringIO(newline='')
    csv.writer(line).writerow(cells)  # Python 3.11 quotes \r in a cell only if it ends lines too
    return line.getvalue().removesuffix('\r\n').encode() + b'\n'
