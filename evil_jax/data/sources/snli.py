"""SNLI (Bowman et al. 2015) and SNLI-VE (Xie et al. 2019), as their authors publish them.

- JSON lines: `gold_label, pairID, captionID, sentence1, sentence2` and more. SNLI-VE has the picture's name as well:
  `Flickr30K_ID` from its generator, `Flickr30kID` in other copies, with or without `.jpg`;
- SNLI's tables (`snli_1.0_train.txt`): the same fields between tabs, without quotes.
"""

import dataclasses
from collections.abc import Iterator

from evil_jax.data.sources import _files

CLASSES = ('contradiction', 'neutral', 'entailment')
UNLABELLED = '-'  # gold_label of pairs whose annotators did not agree
_GENOME = 'vg_'  # in the pairID of captions from Visual Genome
_PICTURES = ('Flickr30K_ID', 'Flickr30kID', 'Flickr30k_ID')
_FIELDS = ('gold_label', 'pairID', 'captionID', 'sentence1', 'sentence2')


@dataclasses.dataclass(slots=True)
class Row:
    """One pair of sentences.

    Attributes:
      id: pairID.
      label: one of CLASSES, or UNLABELLED.
      premise, hypothesis: sentence1 and sentence2.
      image_id: the Flickr picture's number; '' = it is of Visual Genome.
      caption_id: of the premise, 'NUMBER.jpg#2'.
      where: 'file:line'.
    """

    id: str
    label: str
    premise: str
    hypothesis: str
    image_id: str
    caption_id: str
    where: str

    @property
    def genome(self) -> bool:
        """Whether the premise is a caption of Visual Genome."""
        return _GENOME in self.id


def read(path) -> Iterator[Row]:
    """Yields the rows of one file (plain or gzip), in file order, also those without a label.

    Raises:
      ValueError: a missing or empty field, an unknown label, a pairID without a picture; file and line are named.
    """
    rows = _files.iter_json(path) if _files.first_character(path) == '{' else _table(path)
    for where, row in rows:
        yield _row(_files.checked(row, dict, where), where)


def has_pictures(record: dict) -> bool:
    """Whether a record is SNLI-VE's: it names its picture."""
    return any(name in record for name in _PICTURES)


def checked_label(label: str, where: str) -> str:
    """`label`, if it is a class or UNLABELLED."""
    if label not in (*CLASSES, UNLABELLED):
        raise ValueError(f'{where} is {label[:80]!r}, wanted one of {", ".join(CLASSES)}, or {UNLABELLED}')
    return label


def picture(pair_id: str, where: str) -> str:
    """The number in a pairID such as '4465359505.jpg#2r1c'."""
    name, found, _ = pair_id.partition('.jpg')
    if not found or not name:
        raise ValueError(f"{where}: pairID {pair_id[:80]!r} names no picture, wanted one such as '4465359505.jpg#2r1c'")
    return name


def _row(row, where) -> Row:
    pair_id, hypothesis = _files.filled(row, 'pairID', where), _files.filled(row, 'sentence2', where)
    label = checked_label(_files.filled(row, 'gold_label', where), f'{where}: gold_label')
    premise = _files.field(row, 'sentence1', str, where).strip()
    caption_id = _files.optional_text(row, 'captionID', where) or ''
    found = Row(pair_id, label, premise, hypothesis, '', caption_id, where)
    if not found.genome:
        name = next((name for name in _PICTURES if name in row), None)
        if name is None:
            found.image_id = picture(pair_id, where)
        else:
            value = str(_files.checked(row[name], (str, int), f'{where}: {name}'))
            found.image_id = _files.picture_name(value, f'{where}: {name}')
    return found


def _table(path):
    header = None
    for number, line in enumerate(_files.iter_lines(path), 1):
        cells = line.rstrip('\r\n').split('\t')
        if header is None:
            header = cells
            if missing := [name for name in _FIELDS if name not in header]:
                raise ValueError(
                    f'{path}:{number}: is neither JSON lines nor a table with {", ".join(_FIELDS)} between tabs: '
                    f'the first line has no {missing[0]}'
                )
        elif line.strip():
            if len(cells) != len(header):
                raise ValueError(f'{path}:{number}: has {len(cells)} cells, wanted {len(header)} as in the first line')
            yield f'{path}:{number}', dict(zip(header, cells))
    if header is None:
        raise ValueError(f'{path}: is empty, wanted pairs of SNLI')
