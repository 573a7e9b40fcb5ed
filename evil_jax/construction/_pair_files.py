"""Files of pairs: which form each has, by its content, and its rows as `Pair`s."""

import dataclasses
import pathlib
import re
from collections.abc import Iterator

from evil_jax.construction import _own_pairs
from evil_jax.construction.pairs import Pair
from evil_jax.data.sources import _files, esnli_lines, snli

SNLI, SNLI_VE, LINES, OWN = 'SNLI', 'SNLI-VE', 'lines of e-SNLI', 'own pairs'
_SPLITS = {'train': 'train', 'dev': 'dev', 'val': 'dev', 'valid': 'dev', 'validation': 'dev', 'test': 'test'}


@dataclasses.dataclass(slots=True)
class Found:
    """A row of a file.

    Attributes:
      pair: its label may be `snli.UNLABELLED`; its split is '' where the row does not say it.
      captions: of its picture, where the row brings them.
      genome: whether it is about a picture of Visual Genome.
    """

    pair: Pair
    captions: list[str] = dataclasses.field(default_factory=list)
    genome: bool = False


def kind(path) -> str:
    """SNLI, SNLI_VE, LINES or OWN.

    Raises:
      ValueError: none of them.
    """
    if pathlib.Path(path).name.startswith(esnli_lines.FIRST):
        return LINES
    if _files.first_character(path) == '{':
        record = _files.first_record(path)
        names = record if isinstance(record, dict) else {}
        if 'sentence2' in names:
            return SNLI_VE if snli.has_pictures(names) else SNLI
        if 'hypothesis' in names:
            return OWN
        found = f'a first line with {", ".join(_files.keys(names))}' if names else 'JSON that is not one object a line'
    else:
        line = next(_files.iter_lines(path), '').rstrip('\r\n')
        cells = {cell.strip('" ') for cell in re.split('[,\t]', line)}
        if 'sentence2' in cells and '\t' in line:
            return SNLI
        if 'hypothesis' in cells and ',' in line:
            return OWN
        found = repr(line[:100]) if line else 'nothing'
        if 'Explanation_1' in cells:
            found += ', which is e-SNLI and belongs to construct.explanations'
    raise ValueError(
        f'{path}: no pairs: wanted JSON lines of SNLI or SNLI-VE (sentence1, sentence2, ...), lines of e-SNLI '
        f'({esnli_lines.FIRST}SPLIT), or JSON lines or CSV of your own with {", ".join(_own_pairs.NAMES)}; '
        f'found {found}'
    )


def files(path, of: str) -> list[pathlib.Path]:
    """All files that are read for `path`, a file of kind `of`."""
    return esnli_lines.files(path) if of == LINES else [pathlib.Path(path)]


def split_of_name(path) -> str:
    """The split that the name of a file tells ('snli_ve_train.jsonl'); '' where it tells none, or two."""
    parts = re.split('[^a-z]+', pathlib.Path(path).name.lower())
    found = {_SPLITS[part] for part in parts if part in _SPLITS}
    return found.pop() if len(found) == 1 else ''


def read(path, of: str) -> Iterator[Found]:
    """Yields the rows of a file of kind `of`, in file order.

    Raises:
      ValueError: a malformed file or row; file and line are named.
    """
    if of == OWN:
        for pair, captions in _own_pairs.read(path):
            yield Found(pair, captions)
    elif of == LINES:
        for row in esnli_lines.read(path):
            texts = row.explanations
            yield Found(Pair(row.id, '', row.premise, row.hypothesis, row.label, '', texts, row.marked, '', row.where))
    else:
        for row in snli.read(path):
            pair = Pair(row.id, row.image_id, row.premise, row.hypothesis, row.label, '', [], ([], []), '', row.where)
            yield Found(pair, genome=row.genome)
