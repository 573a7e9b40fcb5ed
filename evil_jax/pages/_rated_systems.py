"""Tables of systems: S_T, S_E by people and S_O beside automatic metrics and published numbers, for human.html."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.metrics import published
from evil_jax.pages import _forest, _rates, leaderboard, metric_names

ALL, GOLD = 'all', 'gt'
_FIRST = {'s_t': 's_t', 's_e_human': 's_e', 's_o_human': 's_o'}  # score names -> fields of a row
_SHORT = {'s_t': 'S_T', 's_e_human': 'S_E', 's_o_human': 'S_O'}  # the page says what they are
_STUDIES = {'evil': 'Kayser et al., 2021', 'ofax': 'a study of another design'}  # protocols of published ratings


def data_set(name: str) -> str:
    """What a reader calls a data set, or all of them."""
    return 'all data sets' if name == ALL else metric_names.data_set(name)


def system(name: str) -> str:
    """What a reader calls a system."""
    return 'gold explanations' if name == GOLD else name


def difference(a: str, b: str) -> str:
    """What a reader calls a difference of two systems."""
    return f'{system(a)} − {system(b)}'


def shown(scores: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Rows of scores; of a single data set there is no mean over data sets to show."""
    return [row for row in scores['scores'] if len(scores['datasets']) > 1 or row['dataset'] != ALL]


def tables(scores: Mapping[str, Any], automatic: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table for each data set, after one of all where there are several.

    Args:
      scores: of `scores.summary`.
      automatic: {data set: {system: {score name: value}}}, may be empty.

    Returns:
      `{'name', 'title', 'columns': [(name, whether it ranks)], 'rows': [{'system', 'gold', 'scored', 'cells'}],
      'published': [(study, rows as `leaderboard.published_row` gives them)], 'sources', 'plot', 'ways'}`.
    """
    names = sorted(dict.fromkeys(row['dataset'] for row in shown(scores)), key=lambda name: name != ALL)
    return [_table(scores, name, automatic.get(name) or {}) for name in names]


def _table(scores, name, automatic):
    rows = [row for row in scores['scores'] if row['dataset'] == name]
    metrics = {m for found in automatic.values() for m, value in found.items() if value is not None}
    columns = [*_FIRST, *(m for m in leaderboard.ordered(metrics) if m not in _FIRST)]
    rows.sort(key=lambda row: (row['system'] == GOLD, -(row.get('s_o') or 0), -(row.get('s_e') or 0)))
    found = [row for row in _published(name, scores['datasets']) if row['metrics'].keys() & set(columns)]
    ranked = 's_o_human' if any(row.get('s_o') is not None for row in rows) else 's_e_human'
    gaps = [row for row in scores.get('differences') or () if row['dataset'] == name]
    return {
        'name': name,
        'title': data_set(name),
        'columns': [(_SHORT.get(m) or metric_names.name(m), m == ranked) for m in columns],
        'rows': [_row(row, columns, automatic.get(row['system']) or {}) for row in rows],
        'published': [
            (told, shown)
            for protocol, told in _STUDIES.items()
            if (shown := [leaderboard.published_row(row, columns) for row in found if row['protocol'] == protocol])
        ],
        'sources': leaderboard.sources(found),
        'plot': _forest.forest(
            [{'name': difference(row['a'], row['b']), 'value': row['difference'], 'ci95': row['ci95']} for row in gaps],
            f'Differences in S_E, {data_set(name)}',
            'difference in S_E',
        ),
        'ways': [_ways(row) for row in rows if row.get('s_e') is not None],
    }


def _row(row, columns, automatic):
    cells = []
    for metric in columns:
        field = _FIRST.get(metric)
        value = row.get(field) if field else automatic.get(metric)
        cells.append(_cell(value, row.get(f'{field}_ci95') if field else None))
    return {
        'system': system(row['system']),
        'gold': row['system'] == GOLD,
        'scored': _scored(row),
        'cells': cells,
    }


def _cell(value, ci=None):
    """As `cell` of templates/_boards.html.j2 wants it."""
    shown = {'text': '', 'value': '', 'reason': None, 'ci': '', 'sd': '', 'delta': '', 'about': ''}
    if value is None:
        return shown
    shown |= {'text': f'{value:.3f}', 'value': repr(float(value))}
    return shown | ({'ci': f'{ci[0]:.3f} to {ci[1]:.3f}'} if ci else {})


def _scored(row):
    """How much a row rests on."""
    if row['dataset'] == ALL:
        return f'{row["datasets"]} data sets' if row.get('datasets') else ''
    told = [f'{row["items"]:,} explanations', f'{row["ratings"]:,} ratings']
    if row.get('lost'):
        told.append(f'{row["lost"]:,} lost all ratings')
    return ', '.join(told)


def _ways(row):
    """Other ways to count the same ratings."""
    compared, preferred = row.get('comparative') or {}, row.get('preference') or {}
    return {
        'system': system(row['system']),
        'cells': [_cell(row.get(key)) for key in ('s_e', 's_e_ratings', 's_e_median', 's_e_majority')],
        'compared': [_rates.cell({'value': compared.get('value'), 'ci95': compared.get('ci95')})]
        + [_rates.cell({'value': compared.get(key)}) for key in ('better', 'same', 'worse')],
        'preferred': [_rates.cell({'value': preferred.get(key)}) for key in ('this', 'other', 'none')],
    }


def _published(name, datasets) -> Sequence[Mapping[str, Any]]:
    """Rows with ratings of people, as `leaderboard.merged` gives them."""
    if name != ALL:
        rows = leaderboard.merged([dataclasses.asdict(row) for row in published.read(name)])
        return [row for row in rows if 's_e_human' in row['metrics'] and row['protocol'] in _STUDIES]
    sets = [
        {row['system']: row for row in _published(part, datasets) if row['protocol'] == 'evil'} for part in datasets
    ]
    return [_mean([found[label] for found in sets]) for label in sets[0] if all(label in found for found in sets)]


def _mean(rows):
    shared = [m for m in _FIRST if all(m in row['metrics'] for row in rows)]
    return rows[0] | {
        'metrics': {m: sum(row['metrics'][m] for row in rows) / len(rows) for m in shared},
        'unverified': [],
        'note': 'means of these data sets',
    }
