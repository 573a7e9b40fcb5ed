"""e-SNLI-VE as published (one CSV a split) and as e-UG's authors read it (one JSON list a split).

- CSV: `pairID, Flickr30kID, hypothesis, gold_label, explanation`, with `gold_label` re-annotated by hand;
- JSON: `[{question_id, img_id: "flickr30k_004465359505.npz", sent, label: "neutral", explanation: [...]}]`, where
  question_id is the pairID and label the class before re-annotation. The published scores used these labels.

The same row gives the same Example from both, but for the label: of dev and test 1,665 and 1,631 labels differ (e-ViL
issue 5). The pairID's last letter is SNLI's own label. It is close to the JSON files' but not the same: it differs from
the CSV files' in 1,708 and 1,689 rows. Which form a file has shows in its content.
"""

import re
from collections.abc import Iterator

from evil_jax.data.sources import _files, snli
from evil_jax.records import Example

CLASSES = snli.CLASSES  # index = label id, as in e-UG's code
_OF_LETTER = {name[0]: name for name in CLASSES}
_COLUMNS = ('pairID', 'Flickr30kID', 'hypothesis', 'gold_label')  # must be there, with a text in every row
_EXPLANATIONS = ('explanation', 'explanation_2', 'explanation_3')
_FLICKR = re.compile(r'flickr30k_0*(?=\d+$)', re.ASCII)


def read(path, labels: str = 'gold') -> Iterator[Example]:
    """Yields the examples of one file (plain or gzip), in file order.

    `image_id` is the number of the Flickr picture, without `flickr30k_`, leading zeros and file ending.

    Args:
      path: CSV or JSON. The CSV columns `explanation`, `explanation_2` and `explanation_3` are read where they exist;
        an empty cell means that there is no such reference.
      labels: 'gold' takes the label that the file gives (`gold_label`, `label`); 'original' the class of the pairID's
        last letter (c, n, e).

    Raises:
      ValueError: a missing column or field, a row with another number of cells, an empty cell, a label that is not one
        of the three classes, a repeated pairID, with 'original' a pairID without its letter; file and line (JSON: the
        record) are named.
    """
    content = _files.read_text(path)
    rows = _json_rows(path, content) if content.lstrip()[:1] == '[' else _csv_rows(path, content)
    seen = {}
    for where, example in rows:
        if example.id in seen:
            raise ValueError(f'{where}: pairID {example.id!r} was already at {seen[example.id]}')
        seen[example.id] = where
        if labels == 'original':
            example.label = _original(example.id, where)
        yield example


def label_source(path, labels: str) -> str:
    """Where the labels of `read(path, labels)` come from: 'gold' (a CSV file's own), 'json' (a JSON file's own), or
    'original'.
    """
    return 'original' if labels == 'original' else 'json' if _files.first_character(path) == '[' else 'gold'


def _original(pair_id, where) -> str:
    if pair_id[-1] not in _OF_LETTER:
        raise ValueError(
            f"{where}: data.labels='original' wants the label's first letter (c, n, e) at the end of the pairID, "
            f'which is {pair_id!r}'
        )
    return _OF_LETTER[pair_id[-1]]


def _csv_rows(path, content) -> Iterator[tuple[str, Example]]:
    header = None
    for where, row in _files.csv_rows(path, content):
        if header is None:
            header = _header(row, where)
        else:
            yield where, _csv_example(dict(zip(header, row)), where)
    if header is None:
        raise ValueError(f'{path}: is empty, wanted a first line with {", ".join(_COLUMNS)}')


def _header(row, where):
    missing = [column for column in _COLUMNS if column not in row]
    if missing:
        have = ', '.join(_files.keys(dict.fromkeys(filter(None, row))))
        raise ValueError(f'{where}: has no column {", ".join(missing)}; it has: {have}')
    return row


def _csv_example(row, where) -> Example:
    explanations = (_files.text(row.get(column, ''), f'{where}: {column}').strip() for column in _EXPLANATIONS)
    return _example(row, _COLUMNS, list(filter(None, explanations)), where)


def _json_rows(path, content) -> Iterator[tuple[str, Example]]:
    names = ('question_id', 'img_id', 'sent', 'label')
    for number, row in enumerate(_files.parse_json(content, path), 1):
        where = f'{path}: record {number}'
        row = _files.checked(row, dict, where)
        explanations = _files.explanation_list(row.get('explanation', []), f'{where}: explanation')
        yield where, _example(row, names, explanations, where)


def _example(row, names, explanations, where) -> Example:
    pair_id, picture, hypothesis, label = (_files.filled(row, name, where) for name in names)
    if label not in CLASSES:
        raise ValueError(f'{where}: {names[3]} is {label[:80]!r}, wanted one of {", ".join(CLASSES)}')
    return Example(
        id=pair_id,
        image_id=_FLICKR.sub('', _files.picture_name(picture, f'{where}: {names[1]}')),
        text=hypothesis,
        label=label,
        explanations=explanations,
    )
