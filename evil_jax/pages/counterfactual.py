"""counterfactual.html: what a model answers when a word of the question is exchanged, and what that says of it.

A document is JSON:

    {'title', 'facts': {name: value}, 'settings': {name: value}, 'files': {name: what it holds},
     'summary': of `score.summary`, the only one that must be there,
     'rules': of `rules.Found.to_json`,
     'colours': of `views.colour_map`, 'distance': of `views.by_distance`, 'trees': of `views.trees`, 'transitions': of
     `views.transitions`,
     'explanations': of `consistency.measure`, 'human': of `consistency.human_rates` or `consistency.HUMAN`,
     'coverage': of `coverage.Coverage.table`, 'metric': of colours, 'oracle': what tells expectations, in words,
     'records': edits with their answers, see `_edited_records.browser`}

The names are those of modules in evil_jax/counterfactual. A section whose part is missing or None is left out.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax import pages, records
from evil_jax.pages import (
    _colour_grid,
    _edit_summary,
    _edited_records,
    _explained_edits,
    _rates,
    _rule_cards,
    _transitions,
    _word_tree,
    chart,
)

Document = Mapping[str, Any]


def write_counterfactual(path: str | os.PathLike, document: Document) -> None:
    """Writes one self-contained page, atomically.

    Args:
      path: of the page.
      document: see the head of this file. All text is untrusted. Of the records, the first thousand are shown, and of
        their pictures the first three megabytes: those of the examples of rules should come first.

    Raises:
      ValueError: a number that is not finite, a span that is not in its text.
    """
    records.atomic_write(path, page(document))


def page(document: Document) -> str:
    """The page. Args and errors are those of `write_counterfactual`."""
    summary = document['summary']
    browser = _edited_records.browser(document.get('records') or ())
    # The rules show their examples already: whoever turns the pages begins with the others.
    told = {name for rule in (document.get('rules') or {}).get('rules', ()) for name in rule['examples']}
    browser['records'].sort(key=lambda row: row['id'] in told)
    coverage = document.get('coverage') or ()
    shown = {
        'rules': _rule_cards.cards(document.get('rules'), browser['records']),
        'truth': _edit_summary.expectations(summary),
        'labels': _labels(summary),
        'grid': _colour_grid.grid(document.get('colours')),
        'distance': _distance(document.get('distance'), document.get('metric') or ''),
        'trees': _trees(document.get('trees') or {}),
        'transitions': None if summary['all']['labels'] else _transitions.matrix(document.get('transitions')),
        'explained': _explained_edits.section(document.get('explanations'), document.get('human')),
        'coverage': [_coverage(row) for row in coverage],
    }
    return pages.render(
        'counterfactual',
        parts=('_sort',),
        title=str(document.get('title') or 'Counterfactual questions'),
        facts=_told(document.get('facts')),
        edits=summary['all']['n'],
        questions=summary['all']['questions'],
        images=summary['all']['images'],
        summary=_edit_summary.table(summary, _examples(browser), {row['family']: row['share'] for row in coverage}),
        metric=document.get('metric') or '',
        oracle=document.get('oracle') or '',
        sections=_sections(shown),
        data=pages.script_json(browser),
        shown=len(browser['records']),
        files=_told(document.get('files')),
        settings=_told(document.get('settings')),
        signature=str(summary.get('signature') or ''),
        **shown,
    )


def _told(facts) -> dict[str, str]:
    """Values as texts, lists joined; what is not known is left out."""
    return {
        str(name).replace('_', ' '): ', '.join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in (facts or {}).items()
        if value not in (None, '', [], ())
    }


def _sections(shown) -> Sequence[tuple[str, str]]:
    """(place, name) of the sections that are there, for the way to them."""
    wanted = [
        ('summary', 'Edits', True),
        ('rules', 'Rules', shown['rules']),
        ('expectations', 'Beside the truth', shown['truth'] or shown['labels']),
        ('colours', 'Colours', shown['grid']),
        ('distance', 'Near and far', shown['distance']),
        ('words', 'Kinds of things', shown['trees']),
        ('transitions', 'From answer to answer', shown['transitions']),
        ('explanations', 'Explanations', shown['explained']),
        ('coverage', 'Coverage', shown['coverage']),
        ('browser', 'Questions', True),
    ]
    return [(place, name) for place, name, there in wanted if there]


def _examples(browser) -> dict[str, str]:
    """An edit of each family in few words, the first one among the records."""
    found: dict[str, str] = {}
    for row in browser['records']:
        found.setdefault(row['family'], f'{row["source"]} → {row["target"] or "nothing"}')
    return found


def _labels(summary):
    """(name, matrix of classes) of all edits and of each family, where answers are classes."""
    rows = [summary['all'], *summary['families']]
    found = [
        (_edit_summary.name(row['family']), _transitions.matrix(_classes(row['labels'])))
        for row in rows
        if row['labels']
    ]
    return [(name, matrix) for name, matrix in found if matrix]


def _classes(labels):
    return {'answers': labels['labels'], 'counts': labels['counts']}


def _distance(document, metric):
    """The chart of flips against distance, and what it tells."""
    if not document:
        return None
    bins = document['bins']
    drawn = chart.line_chart(
        'answers changed, by the distance of the new colour from the old one',
        {'answers changed': [(row['x'], row['value']) for row in bins]},
        unit_range=True,
        spread={'answers changed': [(row['x'], *row['ci95']) for row in bins]},
        axis=f'distance ({metric})' if metric else 'distance',
    )
    gap = _rates.cell(document['far_minus_near'], signed=True)
    interval = f', 95 % interval {gap["ci"]}' if gap['ci'] else ''
    steps = {
        'never': 'never falls on the way',
        'within': 'falls on the way only as far as the intervals allow',
        'clearly': 'falls on the way by more than the intervals: far colours do not simply change more answers',
    }[document['falls']]
    told = (
        f'Strokes are 95 % intervals. From the nearest to the farthest colours the share changes by '
        f'{gap["text"].removesuffix(" %")} points{interval}; it {steps}.'
    )
    return {'chart': drawn, 'told': told}


def _trees(trees):
    found = [(_edit_summary.name(family), _word_tree.forest(nodes)) for family, nodes in trees.items()]
    return [(name, tree) for name, tree in found if tree]


def _coverage(row):
    return {
        'name': _edit_summary.name(row['family']),
        'asked': row['asked'],
        'cell': _rates.cell({'value': row['share'], 'k': row['edited'], 'n': row['asked']}),
        'reasons': row['reasons'],
    }
