"""Reads files of ratings. A reader yields the fields of a `ratings.Rating`, or why a rating does not count."""

import math
import re
from collections.abc import Iterator

from evil_jax.human import _table
from evil_jax.human.study import GOLD, SHORTCOMINGS, TRUSTED

WORDS = {'no': 0, 'weak_no': 1, 'weak_yes': 2, 'yes': 3}
THIRDS = 3
_NEAR = 0.005  # a third may have been written as 0.33
_ACCEPTED = ('submitted', 'approved')
_OFAX = (
    'item_id', 'worker', 'status', 'gold_answer', 'chosen_answer', 'explanation_generated', 'explanation_gt',
    'rating_generated', 'rating_gt',
)  # fmt: skip
REJECTED, OTHERWISE, NOTHING, KNOWN = 'rejected', 'answered otherwise', 'no rating', 'trusted item'


def long(path, scale, dataset, system) -> Iterator[dict | str]:
    """One rating a row, CSV or JSON lines; the tidy table (`responses.write`) is one."""
    for source, row in _table.rows(path):
        try:
            yield _one(row, path, source, scale, dataset, system)
        except ValueError as error:
            raise ValueError(f'{source}: {error}') from error


def _one(row, path, source, scale, dataset, system):
    names = _table.columns(row)
    values = {what: row[name] if name else None for what, name in names.items()}
    if reason := _table.text(row.get('reason'), 'reason'):
        return reason
    if TRUSTED in (values['system'], row.get('beside')):
        return KNOWN
    # In the tidy table an empty answer was not asked for; elsewhere it is none.
    chosen = row.get('chosen_answer') if 'chosen_answer' in row else row.get('task_answer') or None
    if chosen is None or row.get('gold_answer') is None:
        row = row | {'gold_answer': chosen}
    if reason := _why_not(row | {'chosen_answer': chosen}, names['rating']):
        return reason
    score, out_of = rating(values['rating'], row.get('scale') or scale)
    system = _table.text(values['system'], 'system') or system or ''
    explanation = _table.text(values['explanation'], 'explanation')
    return {
        'dataset': _table.text(values['dataset'], 'dataset') or dataset or _table.dataset_of(path),
        'system': system,
        'item': _table.needed(values['item'], names['item']),
        'score': score,
        'out_of': out_of,
        'annotator': _table.text(values['annotator'], 'annotator') or None,
        'image': _table.text(values['image'], 'image') or None,
        'explanation': explanation or None if 'reason' in row else explanation,  # tidy: '' is not known
        'references': _table.references(row),
        'flags': _table.texts(values['flags']),
        'source': source,
        'beside': beside(system, _table.text(row.get('beside'), 'beside')),
    }


def beside(system: str, other: str | None) -> str:
    """The system that a gold explanation was shown with; '' of all others, and where it is not known."""
    return other if system == GOLD and other and other != GOLD else ''


def ofax_rows(path) -> Iterator[tuple[str, dict[str, str]]]:
    """('file:line', row) of the survey of OFA-X.

    Raises:
      ValueError: a column is missing.
    """
    for source, row in _table.rows(path):
        if missing := [name for name in _OFAX if name not in row]:
            raise ValueError(f'{source}: no column {missing[0]!r} among {", ".join(map(repr, row))}')
        yield source, row


def ofax(path, scale, dataset, system) -> Iterator[dict | str]:
    """A row is an assignment and a task: the generated explanation, whose reference is the gold one, and the gold one.

    Rows count for both explanations or for neither. `scale` is that of the words.
    """
    del scale
    dataset = dataset or _table.dataset_of(path)
    for source, row in ofax_rows(path):
        if reason := _why_not(row, 'rating_generated', 'rating_gt'):
            yield from (reason, reason)
            continue
        try:
            item = _table.needed(row['item_id'], 'item_id')
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
                    'flags': tuple(flag for flag in sorted(SHORTCOMINGS) if row.get(f'{flag}_{which}') == '1'),
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
