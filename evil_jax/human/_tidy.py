"""Reads tables of responses: the fields of a `responses.Response` of each row, whether it counts or not."""

import csv
import io
import math
from collections.abc import Iterator, Sequence

from evil_jax.human import _files, _table, ratings
from evil_jax.human.study import GOLD, PREFERENCES, RATINGS, SHORTCOMINGS, STATUSES

# The columns of ratings.csv, in this order; behind them reference_1, ... as many as there are.
CSV = (
    'dataset', 'item', 'system', 'beside', 'rater', 'rating', 'shortcomings', 'task_answer', 'gold_answer', 'correct',
    'seconds', 'assignment', 'status', 'reason', 'preference', 'image_id', 'explanation', 'source',
)  # fmt: skip
_BOOLEANS = {'': None, 'yes': True, 'true': True, '1': True, 'no': False, 'false': False, '0': False}
_PREFERRED = {'expl_1': ('this', 'other'), 'expl_2': ('other', 'this'), 'no_preference': ('none', 'none'), '': ('', '')}


def tidy(path, scale, dataset, system) -> Iterator[dict]:
    """One rating a row, CSV or JSON lines, with the fields of a response; those of `ratings` are known by all names."""
    for source, row in _table.rows(path):
        try:
            yield _response(row, path, source, scale, dataset, system)
        except ValueError as error:
            raise ValueError(f'{source}: {error}') from error


def _response(row, path, source, scale, dataset, system):
    names = _table.columns(row)
    of = lambda column, unset='': _table.text(row.get(column), column) or unset
    known = lambda what, unset='': of(names[what], unset) if names[what] else unset
    system = known('system', system or '')
    if 'beside' not in row and ratings.is_gold(system):  # a table of others; in ours gold ones have the one name
        system = GOLD
    task_answer, gold_answer = of('task_answer') or of('chosen_answer'), of('gold_answer')
    correct = _boolean(row.get('correct'))
    if correct is None and task_answer and gold_answer:
        correct = task_answer == gold_answer
    return {
        'dataset': known('dataset') or dataset or _table.dataset_of(path),
        'system': system,
        'item': _table.needed(row[names['item']], names['item']),
        'beside': of('beside', system),
        'rater': known('annotator'),
        'rating': _word(row[names['rating']], row.get('scale') or scale),
        'shortcomings': _shortcomings(row[names['flags']] if names['flags'] else None),
        'task_answer': task_answer,
        'gold_answer': gold_answer,
        'correct': correct,
        'seconds': _seconds(row.get('seconds')),
        'assignment': of('assignment'),
        'status': _one_of(of('status', 'submitted').casefold(), STATUSES, 'status'),
        'reason': of('reason'),
        'explanation': known('explanation'),
        'references': _table.references(row),
        'image_id': known('image'),
        'preference': _one_of(of('preference'), ('', *PREFERENCES), 'preference'),
        'source': of('source', source),
    }


def ofax(path, scale, dataset, system) -> Iterator[dict]:
    """A row is an assignment and a task: a response for the generated explanation and one for the gold one.

    Raters and assignments are running numbers of the file, so those of two data sets are not the same. `scale` is that
    of the words.
    """
    del scale
    dataset, system = dataset or _table.dataset_of(path), system or 'ofax'
    for source, row in _files.ofax_rows(path):
        try:
            item = _table.needed(row['item_id'], 'item_id')
            preferred = _PREFERRED[_one_of(row.get('preference', ''), tuple(_PREFERRED), 'preference')]
            both = {
                'dataset': dataset,
                'item': item,
                'beside': system,
                'rater': row['worker'] and f'{dataset}-{row["worker"]}',
                'task_answer': row['chosen_answer'],
                'gold_answer': row['gold_answer'],
                'correct': row['chosen_answer'] == row['gold_answer'],
                'seconds': _seconds(row.get('seconds')),
                'assignment': row.get('assignment', ''),
                'status': _one_of(row['status'].casefold(), STATUSES, 'status'),
                'image_id': _files.picture(item),
                'source': source,
            }
            for name, which, preference in ((system, 'generated', preferred[0]), (GOLD, 'gt', preferred[1])):
                yield both | {
                    'system': name,
                    'rating': _word(row[f'rating_{which}']),
                    'shortcomings': tuple(flag for flag in SHORTCOMINGS if row.get(f'{flag}_{which}') == '1'),
                    'explanation': row[f'explanation_{which}'],
                    'references': (row['explanation_gt'],) if which == 'generated' else (),
                    'preference': preference,
                }
        except ValueError as error:
            raise ValueError(f'{source}: {error}') from error


READERS = {'tidy': tidy, 'ofax': ofax}


def to_csv(rows: Sequence) -> str:
    """Rows below a header; a text that could be a formula cannot (`_table.cell`)."""
    references = max((len(row.references) for row in rows), default=0)
    file = io.StringIO(newline='')
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow([*CSV, *(f'reference_{i + 1}' for i in range(references))])
    for row in rows:
        cells = {name: getattr(row, name) for name in CSV} | {
            'shortcomings': ';'.join(row.shortcomings),
            'correct': {None: '', True: 'yes', False: 'no'}[row.correct],
        }
        more = row.references + ('',) * (references - len(row.references))
        writer.writerow([_table.cell(value) for value in (*cells.values(), *more)])
    return file.getvalue()


def _word(value, scale=None):
    """'yes' of 'Yes', 1 or 3 on the scale 0-3; '' where there is none."""
    if value is None or not str(value).strip():
        return ''
    score, out_of = _files.rating(value, scale)
    if out_of != len(RATINGS) - 1:
        raise ValueError(f'rating is {value!r} on a scale of {out_of + 1} steps, wanted {len(RATINGS)}')
    return RATINGS[score]


def _shortcomings(value):
    found = _table.texts(value)
    for name in found:
        _one_of(name, SHORTCOMINGS, 'shortcoming')
    return tuple(name for name in SHORTCOMINGS if name in found)


def _one_of(value, wanted, what):
    if value not in wanted:
        raise ValueError(f'{what} is {value!r}, wanted {", ".join(filter(None, wanted))}')
    return value


def _boolean(value):
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.strip().casefold() not in _BOOLEANS:
        raise ValueError(f'correct is {value!r}, wanted yes or no')
    return _BOOLEANS[value.strip().casefold()]


def _seconds(value):
    if value is None or value == '':
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f'seconds is {value!r}, wanted a number')
    return seconds
