"""Models that compare systems (JSON of human/presets.py), as human.html shows them."""

from collections.abc import Mapping
from typing import Any

from evil_jax.pages import _forest, _rated_systems, _rates


def section(model: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows of one model: differences between systems as a plot and as rows, coefficients, sizes."""
    contrasts = [_contrast(row) for row in model.get('contrasts') or ()]
    title = f'Differences between systems, {model["name"]}'
    return {
        'name': str(model['name']),
        'title': str(model.get('title') or model['name']),
        'formula': str(model.get('formula') or ''),
        'told': _told(model),
        'reason': model.get('reason'),
        'systems': _systems(model.get('likelihood_ratio')),
        'plot': _forest.forest(contrasts, title, str(model.get('unit') or '')),
        'contrasts': [_row(row) for row in contrasts],
        'unit': str(model.get('unit') or ''),
        'coefficients': [
            *(_row(_coefficient(row, model)) for row in model.get('coefficients') or ()),
            *(_row({**row, 'name': f'threshold {row["name"]}'}) for row in model.get('thresholds') or ()),
        ],
        'sd': {str(name): number(value) for name, value in (model.get('sd') or {}).items()},
        'likelihood': number(model.get('log_likelihood'), 7),
        'notes': [str(note) for note in model.get('notes') or ()],
    }


def number(value: float | None, digits: int = 3) -> str:
    """'0.123', '−12.3', '1.2e-05'; '' of None."""
    if value is None:
        return ''
    text = f'{value:.{digits}g}'
    return f'−{text[1:]}' if text.startswith('-') else text


def _contrast(row):
    return {**row, 'name': _rated_systems.difference(row['a'], row['b']), 'value': row['estimate']}


def _coefficient(row, model):
    """A coefficient of a system is a difference to the reference; there are others, of the intercept and data sets."""
    systems = {row[key] for row in model.get('contrasts') or () for key in ('a', 'b')}
    if row['name'] not in systems:
        return row
    return {**row, 'name': _rated_systems.difference(row['name'], model['reference'])}


def _row(row):
    low, high = row.get('ci95') or (None, None)
    p = row.get('p_holm') if row.get('p_holm') is not None else row.get('p')
    return {
        'name': str(row['name']),
        'estimate': number(row.get('estimate')),
        'se': number(row.get('se')),
        'ci': '' if low is None else f'[{number(low)}, {number(high)}]',
        'p': _rates.p_value(row.get('p')),
        'p_holm': _rates.p_value(row.get('p_holm')),
        'sure': p is not None and p < 0.05,
    }


def _told(model):
    """How much went in: '900 ratings; 5 systems, 60 items, 15 raters'."""
    sizes = ', '.join(f'{n:,} {name}{"" if n == 1 else "s"}' for name, n in (model.get('sizes') or {}).items())
    count = model.get('n')
    told = '' if count is None else f'{count:,} {"medians" if "median" in (model.get("formula") or "") else "ratings"}'
    return '; '.join(filter(None, (told, sizes)))


def _systems(test):
    """Whether the systems differ at all, in a sentence."""
    if not test or test.get('p') is None:
        return ''
    verdict = 'differ' if test['p'] < 0.05 else 'are not shown to differ'
    p = _rates.p_value(test['p'])
    p = p.replace('<', '< ') if p.startswith('<') else f'= {p}'
    return f'Systems {verdict}: χ²({test["df"]}) = {test["chi2"]:.4g}, p {p} (likelihood ratio).'
