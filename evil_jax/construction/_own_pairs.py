"""Pairs of your own, as JSON lines or CSV, also those of a merged.jsonl and the released e-SNLI-VE.

    id (or pairID), image_id (Flickr30kID), hypothesis, label (gold_label; '-' = none)    must be there
    premise, split, original                                                              texts
    explanations: [texts]      or explanation, explanation_2, explanation_3               at most three count
    captions: [texts]          of the picture, where no file has them
    marked: [words of the premise, words of the hypothesis]                               JSON lines only

In a CSV a list is written as JSON. Other fields are ignored. Whatever is not there or empty is unknown.
"""

from collections.abc import Iterator

from evil_jax.construction import _table
from evil_jax.construction.pairs import CLASSES, SPLITS, Pair
from evil_jax.data.sources import _files, snli

# The second names are those of the released e-SNLI-VE.
NAMES = {'id': 'pairID', 'image_id': 'Flickr30kID', 'hypothesis': 'hypothesis', 'label': 'gold_label'}
_EXPLANATIONS = ('explanation', 'explanation_2', 'explanation_3')
_MOST = 3  # explanations of a pair
_LISTS = ('explanations', 'captions')


def read(path) -> Iterator[tuple[Pair, list[str]]]:
    """Yields each pair with the captions that its row has.

    Raises:
      ValueError: a missing or empty field, an unknown label or split; file and line are named.
    """
    lines = _files.first_character(path) == '{'
    # Texts of the released files are as people wrote them: a ' in front of them is theirs.
    for where, row in _table.rows(path, quoted=False):
        row = row if lines else _lists(row, where)
        yield _pair(row, where), _texts(row, 'captions', where)


def _lists(row, where):
    """A row of a CSV as one of JSON lines."""
    texts = {name: row[name].strip() for name in _LISTS if name in row}
    return row | {name: _list(text, f'{where}: {name}') for name, text in texts.items()} | {'marked': None}


def _list(text, where):
    try:
        return _files.parse_json(text, where, lines=False) if text else []
    except ValueError as error:
        raise ValueError(f'{error}: in a CSV a list is written as JSON, ["...", "..."]') from error


def _pair(row, where) -> Pair:
    fields = {}
    for name, other in NAMES.items():
        used = other if name not in row and other in row else name
        value = row.get(used)
        if name in ('id', 'image_id') and isinstance(value, int) and not isinstance(value, bool):
            row = row | {used: str(value)}
        # A pair of texts without a picture is whole: its captions are unknown.
        fields[name] = '' if name == 'image_id' and value == '' else _files.filled(row, used, where)
    if fields['image_id']:
        fields['image_id'] = _files.picture_name(fields['image_id'], f'{where}: image_id')
    snli.checked_label(fields['label'], f'{where}: label')
    split = (_files.optional_text(row, 'split', where) or '').strip()
    if split and split not in SPLITS:
        raise ValueError(f'{where}: split is {split[:80]!r}, wanted one of {", ".join(SPLITS)}')
    original = (_files.optional_text(row, 'original', where) or '').strip()
    if original and original not in CLASSES:
        raise ValueError(f'{where}: original is {original[:80]!r}, wanted one of {", ".join(CLASSES)}, or none')
    explanations = _texts(row, 'explanations', where)
    if not explanations:
        explanations = [(_files.optional_text(row, name, where) or '').strip() for name in _EXPLANATIONS]
        explanations = [text for text in explanations if text]
    premise = (_files.optional_text(row, 'premise', where) or '').strip()
    explanations, marked = explanations[:_MOST], _marked(row.get('marked'), where)
    return Pair(
        **fields, premise=premise, split=split, explanations=explanations, marked=marked, original=original, where=where
    )


def _texts(row, name, where) -> list[str]:
    value = row.get(name)
    return [] if value is None else _files.explanation_list(value, f'{where}: {name}')


def _marked(value, where) -> tuple[list[str], list[str]]:
    if value is None:
        return [], []
    where = f'{where}: marked'
    if len(_files.checked(value, list, where)) != 2:
        raise ValueError(f'{where} has {len(value)} lists, wanted two: words of the premise, and of the hypothesis')
    premise, hypothesis = (
        [_files.checked(word, str, where) for word in _files.checked(words, list, where)] for words in value
    )
    return premise, hypothesis
