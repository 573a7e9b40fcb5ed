"""report.html of a human study: what people say of explanations, how sure that is, and where they disagree.

A document is JSON:

    {'title', 'facts': {name: value}, 'settings': {name: value}, 'files': {name: what it holds},
     'scores': of `scores.summary`, the only one that must be there,
     'statistics': [of `presets.run`, ...],
     'automatic': {data set: {system: {score name: value}}},
     'correlation': rows of `human/correlation.py`, how metrics agree with these ratings,
     'left_out': {reason: ratings}; without it that of the scores,
     'disagreements': rows of `scores.disagreements` with what `_disputes.browser` wants besides,
     'cost': {name: number or text}}

The names are those of modules in evil_jax/human. A section whose part is missing, empty or None is left out.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax import pages, records
from evil_jax.metrics import published
from evil_jax.pages import _disputes, _mixed_models, _rated_systems, _raters, _rating_bars, leaderboard

Document = Mapping[str, Any]


def write_human(path: str | os.PathLike, document: Document) -> None:
    """Writes one self-contained page, atomically.

    Args:
      path: of the page.
      document: see the head of this file. All text is untrusted.

    Raises:
      ValueError: a share outside 0 to 1, a number for the script that is not finite.
    """
    records.atomic_write(path, page(document))


def page(document: Document) -> str:
    """The page. Args and errors are those of `write_human`."""
    scores = document['scores']
    counts = scores['counts']
    disputes = _disputes.browser(document.get('disagreements') or ())
    shown = {
        'tables': _rated_systems.tables(scores, document.get('automatic') or {}),
        'distributions': _distributions(scores),
        'wanting': _wanting(scores),
        'models': [_mixed_models.section(model) for model in document.get('statistics') or ()],
        'agreed': _raters.agreement(scores.get('agreement') or ()),
        'people': leaderboard.people(_correlations(document.get('correlation'), scores['datasets'])),
        'raters': _raters.table(scores.get('raters') or ()),
        'left_out': _raters.left_out(document.get('left_out') or counts.get('left_out') or {}),
        'disputes': disputes['records'],
    }
    return pages.render(
        'human',
        parts=('_sort',),
        title=str(document.get('title') or 'Human judgement'),
        facts=_told(document.get('facts')),
        counts=counts,
        measured=bool(document.get('automatic')),
        systems=len(scores['systems']),
        datasets=[_rated_systems.data_set(name) for name in scores['datasets']],
        sections=_sections(shown),
        data=pages.script_json(disputes),
        words=list(_rating_bars.WORDS.items()),
        shortcomings=list(_rating_bars.SHORTCOMINGS.values()),
        notes=_told(scores.get('notes')),
        cost=_told({name: _money(value) for name, value in (document.get('cost') or {}).items()}),
        files=_told(document.get('files')),
        settings=_told(document.get('settings')),
        **shown,
    )


def _told(facts) -> dict[str, str]:
    """Values as texts, lists joined; what is not known is left out."""
    return {
        str(name).replace('_', ' '): ', '.join(map(str, value)) if isinstance(value, list | tuple) else _text(value)
        for name, value in (facts or {}).items()
        if value not in (None, '', [], (), {})
    }


def _text(value):
    if isinstance(value, Mapping):
        return ', '.join(f'{name} {_text(part)}' for name, part in value.items())
    return f'{value:.6g}' if isinstance(value, float) else str(value)


def _money(value):
    return f'{value:,.2f}' if isinstance(value, float) else value


def _sections(shown) -> Sequence[tuple[str, str]]:
    """(place, name) of the sections that are there, for the way to them."""
    wanted = [
        ('scores', 'Scores', True),
        ('ratings', 'Ratings', shown['distributions']),
        ('shortcomings', 'Shortcomings', shown['wanting']),
        ('statistics', 'Statistics', shown['models']),
        ('metrics', 'Metrics', shown['people']['rows']),
        ('agreement', 'Agreement', shown['agreed']),
        ('raters', 'Raters', shown['raters']),
        ('left-out', 'Left out', shown['left_out']),
        ('browser', 'Disagreements', shown['disputes']),
    ]
    return [(place, name) for place, name, there in wanted if there]


def _by_set(scores, field, row, others, key) -> list[tuple[str, list[dict[str, Any]]]]:
    """(data set, rows) of those that have the field; what was published of it stands at the end."""
    groups: dict[str, list] = {}
    for found in _rated_systems.shown(scores):
        if found.get(field):
            groups.setdefault(found['dataset'], []).append(row(_rated_systems.system(found['system']), found))
    for name, rows in groups.items():
        rows += [key(other) for other in others if other.data_set == name]
    order = sorted(groups, key=lambda name: name != _rated_systems.ALL)
    return [(_rated_systems.data_set(name), groups[name]) for name in order]


def _distributions(scores):
    return _by_set(
        scores,
        'shares',
        lambda name, found: _rating_bars.row(name, found['shares'], found.get('ratings')),
        published.ratings(),
        lambda other: _rating_bars.row(_published_name(other.system), other.shares, published=True),
    )


def _wanting(scores):
    return _by_set(
        scores,
        'shortcomings',
        lambda name, found: _rating_bars.shortcomings(name, found['shortcomings']),
        published.shortcomings() if set(scores['datasets']) == set(published.DATA_SETS) else (),
        lambda other: _rating_bars.shortcomings(_published_name(other.system), other.shares, published=True),
    )


def _published_name(system):
    return 'gold explanations' if system == 'ground truth' else system


def _correlations(rows, datasets):
    """Those of ours that have a value, then those of the paper for the same data sets."""
    here = [
        {key: row.get(key) for key in ('metric', 'rho', 'p', 'ci95', 'n')} | {'data_set': row['dataset'], 'source': ''}
        for row in rows or ()
        if row.get('rho') is not None
    ]
    if not here:
        return []
    sets = {row['data_set'] for row in here} | set(datasets)
    there = [dataclasses.asdict(row) for row in published.correlations() if row.data_set in sets]
    return [row | {'data_set': _rated_systems.data_set(row['data_set'])} for row in here + there]
