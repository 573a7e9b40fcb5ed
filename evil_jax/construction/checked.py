"""Pairs that somebody checked by hand: the right class, and how good the explanation is.

A file is CSV or JSON lines with `pairID`, `label` (the right class; empty: not checked) and, where explanations were
checked, `quality` (low, medium, high or empty) and the `explanation` that it is of. Other columns are passed over, so a
filled file of `annotation.py` is read as it is, and so is the sample of Do et al. (2020), do2020_gt_labels.csv, which
has labels alone.
"""

import dataclasses

from evil_jax.construction import _table
from evil_jax.construction.pairs import CLASSES
from evil_jax.data.sources import _files

QUALITIES = ('low', 'medium', 'high')


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What somebody found: the right class and the explanation's quality, '' where that was not judged.

    Attributes:
      explanation: that was judged, one blank between words; '' = the file does not say.
    """

    label: str
    quality: str
    explanation: str = dataclasses.field(default='', compare=False)


@dataclasses.dataclass(slots=True)
class Checked:
    """Verdicts by pairID.

    Attributes:
      verdicts: {pairID: Verdict}, each with a label, a quality or both.
      blank: rows in which neither is filled in.
      repeated: rows that say again what an earlier one says of the same pair.
    """

    verdicts: dict[str, Verdict]
    blank: int = 0
    repeated: int = 0


def read(path) -> Checked:
    """Reads a file of hand-checked pairs.

    Raises:
      ValueError: no pairID or label, a word that is no class or quality, two verdicts on one pair, or no row that is
        filled in; file and line are named.
    """
    checked, places = Checked({}), {}
    for where, row in _table.rows(path, ('pairID', 'label')):
        pair_id = _files.filled(row, 'pairID', where)
        explanation = blanks(_files.optional_text(row, 'explanation', where) or '')
        verdict = Verdict(_word(row, 'label', CLASSES, where), _word(row, 'quality', QUALITIES, where), explanation)
        if verdict == Verdict('', ''):
            checked.blank += 1
        elif pair_id not in places:
            checked.verdicts[pair_id], places[pair_id] = verdict, where
        elif checked.verdicts[pair_id] == verdict:
            checked.repeated += 1
        else:
            raise ValueError(f'{where}: says something else of pairID {pair_id!r} than {places[pair_id]}')
    if not checked.verdicts:
        raise ValueError(f'{path}: no label or quality is filled in ({checked.blank:,} blank rows)')
    return checked


def blanks(text: str) -> str:
    """The text with one blank between words: spreadsheets change line ends."""
    return ' '.join(text.split())


def _word(row, name, wanted, where):
    word = (_files.optional_text(row, name, where) or '').strip().lower()
    if word and word not in wanted:
        raise ValueError(f'{where}: {name} is {row[name]!r}, wanted {", ".join(wanted)} or nothing')
    return word
