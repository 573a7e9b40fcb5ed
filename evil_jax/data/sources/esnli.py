"""e-SNLI (Camburu et al. 2018): SNLI with explanations, a CSV file a split (training in two files).

Training pairs have one explanation, dev and test pairs three. `Sentence1_marked_1` and `Sentence2_marked_1` are the
sentences with the words *highlighted* that the first explanation's author chose. The `*_Highlighted_*` columns are
ignored, as e-SNLI's authors ask.
"""

import dataclasses
import re
from collections.abc import Iterator

from evil_jax.data.sources import _files, snli

_COLUMNS = ('pairID', 'gold_label', 'Sentence1', 'Sentence2', 'Explanation_1')
_EXPLANATIONS = ('Explanation_1', 'Explanation_2', 'Explanation_3')
_MARKED = ('Sentence1_marked_1', 'Sentence2_marked_1')
_WORD = re.compile(r'\*([^*]+)\*')


@dataclasses.dataclass(slots=True)
class Row:
    """One pair with its explanations.

    Attributes:
      id: SNLI's pairID.
      label: one of the classes.
      premise, hypothesis: the sentences.
      explanations: none to three; empty cells are none.
      marked: highlighted words of the premise, and of the hypothesis.
      where: 'file:line'.
    """

    id: str
    label: str
    premise: str
    hypothesis: str
    explanations: list[str]
    marked: tuple[list[str], list[str]]
    where: str


def read(path) -> Iterator[Row]:
    """Yields the rows of one file (plain or gzip), in file order.

    Raises:
      ValueError: not such a CSV, a missing column, an empty pairID, an unknown label; file and line are named.
    """
    header = None
    for where, cells in _files.csv_rows(path, _files.iter_lines(path)):
        if header is None:
            header = cells
            if missing := [name for name in _COLUMNS if name not in header]:
                have = ', '.join(_files.keys(dict.fromkeys(filter(None, header))))
                raise ValueError(f'{where}: has no column {", ".join(missing)}; it has: {have}')
            continue
        row = dict(zip(header, cells))
        pair_id = _files.filled(row, 'pairID', where)
        label = snli.checked_label(_files.filled(row, 'gold_label', where), f'{where}: gold_label')
        texts = (row.get(name, '').strip() for name in _EXPLANATIONS)
        marked = tuple(words(row.get(name, '')) for name in _MARKED)
        premise, hypothesis = row['Sentence1'].strip(), row['Sentence2'].strip()
        yield Row(pair_id, label, premise, hypothesis, list(filter(None, texts)), marked, where)
    if header is None:
        raise ValueError(f'{path}: is empty, wanted a first line with {", ".join(_COLUMNS)}')


def words(marked: str) -> list[str]:
    """The words of a sentence that stand between asterisks."""
    return [word for part in _WORD.findall(marked) for word in part.split()]
