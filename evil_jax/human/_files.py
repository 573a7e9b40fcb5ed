"""Reads files of ratings. A reader yields the fields of a `ratings.Rating`, or why a rating does not count."""

import math
import pathlib
import re
from collections.abc import Iterator

from evil_jax.data.sources import _files

WORDS = {'no': 0, 'weak_no': 1, 'weak_yes': 2, 'yes': 3}
THIRDS = 3
_NEAR = 0.005  # a third may have been written as 0.33
_ACCEPTED = ('submitted', 'approved')
_DATASETS = ('esnlive', 'vqax', 'vcr')
_COLUMNS = {
    'item': ('item', 'item_id', 'id'),
    'rating': ('rating', 'score'),
    'system': ('system', 'model'),
    'annotator': ('annotator', 'worker'),
    'dataset': ('dataset', 'data_set'),
    'image': ('image_id', 'image'),
    'explanation': ('explanation', 'prediction'),
}
_FLAGS = ('confusing_sentence', 'incorrect_description', 'insufficient_justification')
_OFAX = (
    'item_id', 'worker', 'status', 'gold_answer', 'chosen_answer', 'explanation_generated', 'explanation_gt',
    'rating_generated', 'rating_gt',
)  # fmt: skip
REJECTED, OTHERWISE, NOTHING = 'rejected', 'answered otherwise', 'no rating'


def long(path, scale, dataset, system) -> Iterator[dict | str]:
    """One rating a row, CSV or JSON lines."""
    for source, row in _rows(path):
        names = {what: next((c for c in columns if c in row), None) for what, columns in _COLUMNS.items()}
        for what in ('item', 'rating'):
            if names[what] is None:
                wanted = ' or '.join(map(repr, _COLUMNS[what]))
                raise ValueError(f'{source}: no field {wanted} among {", ".join(map(repr, row))}')
        if row.get('chosen_answer') is None or row.get('gold_answer') is None:
            row = row | {'chosen_answer': None, 'gold_answer': None}
        if reason := _why_not(row, names['rating']):
            yield reason
            continue
        values = {what: row[name] if name else None for what, name in names.items()}
        try:
            score, out_of = rating(values['rating'], row.get('scale') or scale)
            yield {
                'dataset': _text(values['dataset'], 'dataset') or dataset or _dataset_of(path),
                'system': _text(values['system'], 'system') or system or '',
                'item': _needed(values['item'], names['item']),
                'score': score,
                'out_of': out_of,
                'annotator': _text(values['annotator'], 'annotator') or None,
                'image': _text(values['image'], 'image') or None,
                'explanation': _text(values['explanation'], 'explanation'),
                'references': _references(row),
                'flags': _list(row.get('flags')),
                'source': source,
            }
        except ValueError as error:
            raise ValueError(f'{source}: {error}') from error


def ofax(path, scale, dataset, system) -> Iterator[dict | str]:
    """A row is an assignment and a task: the generated explanation, whose reference is the gold one, and the gold one.

    Rows count for both explanations or for neither. `scale` is that of the words.
    """
    del scale
    dataset = dataset or _dataset_of(path)
    for source, row in _rows(path):
        if missing := [name for name in _OFAX if name not in row]:
            raise ValueError(f'{source}: no column {missing[0]!r} among {", ".join(map(repr, row))}')
        if reason := _why_not(row, 'rating_generated', 'rating_gt'):
            yield from (reason, reason)
            continue
        try:
            item = _needed(row['item_id'], 'item_id')
            for name, which in ((system or 'ofax', 'generated'), ('gt', 'gt')):
                score, out_of = rating(row[f'rating_{which}'])
                yield {
                    'dataset': dataset,
                    'system': name,
                    'item': item,
                    'score': score,
                    'out_of': out_of,
                    'annotator': row['worker'] or None,
                    'image': picture(item),
                    'explanation': row[f'explanation_{which}'],
                    'references': (row['explanation_gt'],) if which == 'generated' else (),
                    'flags': tuple(flag for flag in _FLAGS if row.get(f'{flag}_{which}') == '1'),
                    'source': source,
                }
        except ValueError as error:
            raise ValueError(f'{source}: {error}') from error


READERS = {'long': long, 'ofax': ofax}


def picture(item: str) -> str:
    """The picture of an e-SNLI-VE pair ('123.jpg#3r1e') or of a VQA question (image id and three digits)."""
    if item.isdigit() and len(item) > 3:
        return item[:-3]
    return item.partition('#')[0]


def rating(value, scale=None) -> tuple[int, int]:
    """(score, out of): 'weak_yes', '2/3' and 0.6667 are (2, 3); '4' on the scale 1-4 is (3, 3).

    Args:
      value: a word, a fraction, a decimal (with point or comma), or an integer.
      scale: 'worst-best' or (worst, best) of integers; without one a number is a third.

    Raises:
      ValueError: anything else.
    """
    text = '_'.join(str(value).strip().casefold().replace('-', ' ').replace('_', ' ').split())
    if text in WORDS:
        return WORDS[text], THIRDS
    number = _number(str(value))
    if scale is not None:
        low, high = _scale(scale)
        if number is None or not number.is_integer() or not low <= number <= high:
            raise ValueError(f'rating is {value!r}, wanted an integer from {low} to {high}')
        return int(number) - low, high - low
    third = None if number is None else round(number * THIRDS)
    if third is None or abs(number - third / THIRDS) > _NEAR or not 0 <= third <= THIRDS:
        raise ValueError(
            f'rating is {value!r}, wanted yes, weak_yes, weak_no, no, or 1, 2/3, 1/3, 0; '
            'integers need a scale: a column scale, such as 1-4 (means of several ratings are none)'
        )
    return third, THIRDS


def _number(text):
    match = re.fullmatch(r'\s*(\d+)\s*/\s*([1-9]\d*)\s*', text)
    if match:
        return int(match[1]) / int(match[2])
    try:
        number = float(text.replace(',', '.'))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _scale(scale):
    match = re.fullmatch(r'\s*(-?\d+)\s*(?:-|to|,)\s*(-?\d+)\s*', scale) if isinstance(scale, str) else None
    low, high = match.groups() if match else scale if isinstance(scale, (list, tuple)) and len(scale) == 2 else (0, 0)
    try:
        low, high = int(low), int(high)
    except (ValueError, TypeError):
        low = high = 0
    if high <= low:
        raise ValueError(f'scale is {scale!r}, wanted two integers, worst and best, such as 1-4')
    return low, high


def _why_not(row, *ratings):
    status = row.get('status')
    if status and status.strip().casefold() not in _ACCEPTED:
        return REJECTED
    if row['chosen_answer'] != row['gold_answer']:
        return OTHERWISE
    if any(row[name] is None or not str(row[name]).strip() for name in ratings):
        return NOTHING
    return None


def _text(value, what):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f'{what} is {value!r}, wanted text')


def _needed(value, what):
    text = _text(value, what)
    if not text:
        raise ValueError(f'{what} is empty')
    return text


def _list(value):
    parts = value.split(';') if isinstance(value, str) else value or ()
    if not isinstance(parts, (list, tuple)) or not all(isinstance(p, str) for p in parts):
        raise ValueError(f'found {value!r}, wanted a list of texts')
    return tuple(filter(None, (p.strip() for p in parts)))


def _references(row):
    if isinstance(row.get('references'), list):
        found = row['references']
    else:
        found = [row[name] for name in row if re.fullmatch(r'references?(_\d+)?', name) and row[name]]
    if not all(isinstance(text, str) for text in found):
        raise ValueError(f'references are {found!r}, wanted texts')
    return tuple(found)


def _dataset_of(path):
    stem = pathlib.Path(path).stem
    return next((name for name in _DATASETS if name in stem.casefold()), stem)


def _rows(path):
    """Yields ('file:line', row) of CSV with a header, or of JSON lines."""
    found = False
    for source, row in _json_rows(path) if _files.first_character(path) == '{' else _csv_rows(path):
        found = True
        yield source, row
    if not found:
        raise ValueError(f'{path}: no ratings in it, wanted rows below a header of CSV, or JSON lines')


def _json_rows(path):
    for source, row in _files.iter_json(path):
        yield source, _files.checked(row, dict, source)


def _csv_rows(path):
    content = _files.read_text(path)
    header = content.lstrip('\r\n').partition('\n')[0]
    names = None
    for source, cells in _files.csv_rows(path, content, max(',;\t', key=header.count)):
        if names is None:
            names = [name.strip() for name in cells]
            if len(set(names)) < len(names):
                raise ValueError(f'{source}: a column name twice: {", ".join(names)}')
            continue
        yield source, dict(zip(names, cells))
