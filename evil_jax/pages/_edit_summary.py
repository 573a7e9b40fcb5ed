"""Families of edits and their scores, as counterfactual.html shows them."""

from collections.abc import Mapping
from typing import Any

from evil_jax.pages import _rates

# Family -> what a reader calls it.
NAMES = {
    'synonym_verb': 'verb → synonym',
    'synonym_adjective': 'adjective → synonym',
    'hypernym': 'noun → more general',
    'hyponym': 'noun → more specific',
    'sibling': 'noun → another of its kind',
    'colour_max': 'colour → distant',
    'colour_min': 'colour → near',
    'colour_max_common': 'colour → distant, common',
    'colour_max_uncommon': 'colour → distant, uncommon',
    'colour_min_common': 'colour → near, common',
    'colour_min_uncommon': 'colour → near, uncommon',
    'delete': 'noun deleted',
    'all': 'all edits',
    'noop': 'the same question',
    'random_noun': 'noun → any noun',
    'random_verb': 'verb → any verb',
    'random_adjective': 'adjective → any adjective',
    'blank': 'blank picture',
    'repeat': 'asked again',
}
_TURNS = ('right->wrong', 'wrong->right', 'wrong->other')


def name(family: str) -> str:
    """What a reader calls a family."""
    return NAMES.get(family, family.replace('_', ' '))


def table(document: Mapping[str, Any], examples: Mapping[str, str], coverage: Mapping[str, float]) -> dict[str, Any]:
    """Rows of families, and what stands beside them.

    Args:
      document: of `score.summary`.
      examples: family -> an edit in few words ('dog → canine'), as far as known.
      coverage: family -> share of the questions that could be edited, as far as known.

    Returns:
      'rows', 'turns' (names of the columns of changes), 'graded' (whether answers have right ones), 'covered', 'random'
      and 'shifts' (whether those columns have anything), and 'baselines' ({'name', 'cell'}).
    """
    rows = [*document['families']] + ([document['all']] if len(document['families']) != 1 else [])
    shown = [_row(row, examples.get(row['family'], ''), coverage.get(row['family'])) for row in rows]
    graded = any(row['acc']['value'] is not None for row in shown)
    return {
        'rows': shown,
        'turns': [turn for turn in _TURNS if graded and any(turn in row['transitions'] for row in rows)],
        'graded': graded,
        'covered': bool(coverage),
        'random': any(row['beyond']['value'] is not None for row in shown),
        'shifts': any(row['shift']['value'] is not None for row in shown),
        'baselines': [
            {'name': name(family), 'cell': _rates.cell(cell)}
            for family, cell in (document['all'].get('baselines') or {}).items()
        ],
    }


def _row(row, example, covered):
    mean = lambda value: _rates.cell({'value': value})
    return {
        'family': row['family'],
        'name': name(row['family']),
        'all': row['family'] == 'all',
        'example': example,
        'n': row['n'],
        'images': row['images'],
        'covered': _rates.cell({'value': covered}) if covered is not None else dict(_rates.NOTHING),
        'acc': mean(row['acc']),
        'acc_star': mean(row['acc_star']),
        'difference': _rates.cell(row['difference'], signed=True),
        'flips': _rates.cell(row['flips']),
        'beyond': _rates.cell(row['beyond_random'], signed=True),
        'turns': {turn: _rates.cell(cell) for turn, cell in row['transitions'].items()},
        'mcnemar': _rates.p_value(row['mcnemar']['p']) if row['mcnemar'] else '',
        'uncertain': _rates.cell(row['uncertain']),
        'was_uncertain': _rates.cell(row['was_uncertain']),
        'shift': _rates.cell(row['shift']),
    }


def expectations(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Families with expectations: how often they are not met, and how often a* is the right new answer."""
    rows = [*document['families'], document['all']]
    keys = ('unwarranted_flips', 'unwarranted_stability', 'expected_right')
    found = [
        {'name': name(row['family']), **{key: _rates.cell(row[key]) for key in keys}}
        for row in rows
        if any(row.get(key) for key in keys)
    ]
    return found if len(found) > 1 else []
