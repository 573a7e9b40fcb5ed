"""How raters agree, who they were, and which of their ratings do not count, for human.html."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import _rated_systems

_MOST = 500  # raters
_COEFFICIENTS = {
    'krippendorff_ordinal': 'Krippendorff’s α, ordinal (his own metric)',
    'krippendorff_ordinal_weights': 'Krippendorff’s α, ordinal (fixed weights)',
    'krippendorff_interval': 'Krippendorff’s α, interval',
    'krippendorff_nominal': 'Krippendorff’s α, nominal',
    'fleiss': 'Fleiss’ κ',
    'fleiss_ordinal': 'Fleiss’ κ, ordinal weights',
    'fleiss_quadratic': 'Fleiss’ κ, quadratic weights',
    'gwet_ac1': 'Gwet’s AC1',
    'gwet_ac2_ordinal': 'Gwet’s AC2, ordinal weights',
    'gwet_ac2_quadratic': 'Gwet’s AC2, quadratic weights',
    'brennan_prediger': 'Brennan and Prediger',
    'brennan_prediger_ordinal': 'Brennan and Prediger, ordinal weights',
    'brennan_prediger_quadratic': 'Brennan and Prediger, quadratic weights',
}
# Why a rating does not count -> what that means.
_REASONS = {
    'answered otherwise': 'the rater gave another answer to the task question: who does not see what it is about '
    'cannot judge its explanation',
    'failed check': 'the rater misjudged an explanation that is known to be bad or good; the whole page is left out',
    'trusted item': 'an item with a known answer: it checks the rater and is no part of any score',
    'rejected': 'whoever ran the study rejected the page',
    'no rating': 'nothing was ticked',
}


def agreement(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Coefficients by data sets: `{'sets', 'rows': [(name, cells)]}`; None without any.

    Args:
      rows: 'dataset' and the fields of `agreement.Agreement`.
    """
    sets = list(dict.fromkeys(row['dataset'] for row in rows))
    found = {(row['name'], row['dataset']): row for row in rows}
    names = dict.fromkeys(row['name'] for row in rows)
    order = {name: i for i, name in enumerate(_COEFFICIENTS)}
    shown = [
        (_COEFFICIENTS.get(name, name.replace('_', ' ')), [_coefficient(found.get((name, of))) for of in sets])
        for name in sorted(names, key=lambda name: order.get(name, len(order)))
    ]
    return {'sets': [_rated_systems.data_set(of) for of in sets], 'rows': shown} if shown else None


def left_out(counts: Mapping[str, int]) -> list[tuple[str, int, str]]:
    """(reason, ratings, what it means), most frequent first."""
    return [
        (reason, number, _REASONS.get(reason, ''))
        for reason, number in sorted(counts.items(), key=lambda pair: -pair[1])
        if number
    ]


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Raters as they stand in `scores.summary`: `{'rows', 'more', 'several', 'checked', 'timed'}`, the last three
    whether those columns have anything; None without any."""
    if not rows:
        return None
    return {
        'rows': [_rater(row) for row in rows[:_MOST]],
        'more': max(0, len(rows) - _MOST),
        'total': len({row['rater'] for row in rows}),
        'several': len({row['dataset'] for row in rows}) > 1,
        'checked': any(row.get('checks') for row in rows),
        'timed': any(row.get('seconds') is not None for row in rows),
    }


def _coefficient(row):
    if row is None:
        return {'text': '', 'ci': None, 'reason': None, 'units': ''}
    value, ci = row.get('value'), row.get('ci95')
    return {
        'text': '' if value is None else _signed(value),
        'ci': f'[{_signed(ci[0])}, {_signed(ci[1])}]' if ci else None,
        'reason': row.get('reason') if value is None else None,
        'units': f'{row["units"]:,} explanations' if row.get('units') else '',
    }


def _rater(row):
    return {
        'name': str(row['rater']) or 'not known',
        'dataset': _rated_systems.data_set(row['dataset']),
        'pages': row['pages'],
        'ratings': row['ratings'],
        'left_out': row['left_out'],
        'mean': _number(row.get('mean'), '{:.2f}'),
        'bias': _number(row.get('bias'), '{:+.2f}'),
        'agreement': _number(row.get('agreement'), '{:.2f}'),
        'wrong': _number(row.get('wrong'), '{:.0%}'),
        'checks': {
            'value': '' if not row.get('checks') else str(row['checks_failed'] / row['checks']),
            'text': '' if not row.get('checks') else f'{row["checks_failed"]} of {row["checks"]}',
            'bad': bool(row.get('checks_failed')),
        },
        'minutes': _number(None if row.get('seconds') is None else row['seconds'] / 60, '{:.1f}'),
    }


def _number(value, form):
    """The number to sort by, and as it is shown."""
    if value is None:
        return {'value': '', 'text': ''}
    return {'value': repr(float(value)), 'text': form.format(value).replace('-', '−').replace('%', ' %')}


def _signed(value):
    return f'{value:.3f}'.replace('-', '−')
