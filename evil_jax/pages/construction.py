"""report.html and DATASHEET.md of a construction of e-SNLI-VE: what was merged, what the filters removed, what is left.

A report is JSON; any part may be missing, empty or None, and its section is then left out:

    {'title', 'command', 'versions': {name: version}, 'files': [{'role', 'path', 'hash', 'rows'}],
     'merged': {'counts': {split: {class: n}}, 'dropped': {reason: {split or '': n}},
                'published': {split: {'ours', 'paper'}}, 'without_captions': n},
     'before', 'kept', 'table1', 'table1_paper', 'filters', 'errors', 'bad_explanations', 'checked':
        of `construction/summary.py`; of a filter also 'settings': {name: value}, whose 'words' are marked in samples,
     'relabelled': `construction/relabel.py`'s summary, 'relevance': that of `construction/relevance.py`,
     'nli': {name: value}}

All text in it is untrusted.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax import pages
from evil_jax.pages import _datasheet, _new_labels, _pair_counts, _pair_filters, _rates

Report = Mapping[str, Any]


def datasheet(report: Report) -> str:
    """DATASHEET.md: the questions of Gebru et al., "Datasheets for Datasets" (2021), answered as far as a run can.

    What only people can know is a blank, which begins with `_datasheet.BLANK`.
    """
    return _datasheet.text(report)


def render(report: Report) -> str:
    """The page, self-contained and without a script.

    Args:
      report: see the head of this file.
    """
    merged, filters, kept = report.get('merged') or {}, report.get('filters') or (), report.get('kept')
    before = report.get('before') or merged.get('counts')
    # People change labels, and pairs that they do not agree on are left out before the filters.
    first = 'merged' if before == merged.get('counts', before) else 'labelled anew'
    shown = {
        'merged': _pair_counts.merged(merged.get('counts'), merged.get('published')),
        'dropped': _pair_counts.dropped(merged.get('dropped')),
        'funnel': _pair_counts.funnel(before, filters, kept, first) if filters or kept else [],
        'removed': _pair_counts.removed(filters),
        'table1': _pair_counts.table1(report.get('table1'), report.get('table1_paper')),
        'filters': [_pair_filters.section(place, each) for place, each in enumerate(filters, 1)],
        'errors': _errors(report),
        'relabelled': _new_labels.told(report.get('relabelled')),
        'relevance': _new_labels.told(report.get('relevance')),
        'files': [_file(each) for each in report.get('files') or ()],
        'facts': _facts(report),
    }
    return pages.render(
        'construction',
        title=str(report.get('title') or 'e-SNLI-VE from its sources'),
        total=_pair_counts.total(before),
        kept=_pair_counts.total(kept) if kept else None,
        without_captions=merged.get('without_captions') or 0,
        is_checked=bool(report.get('checked') or shown['errors'] or any(each['checked'] for each in shown['filters'])),
        checked_notes=_checked_notes(report.get('checked') or {}),
        classes=_pair_counts.CLASSES,
        raters=_new_labels.raters(report.get('relabelled')),
        sections=_sections(shown),
        **shown,
    )


def _errors(report):
    """Rows of error rates before and after all filters: {'name', 'whole', 'cells'}."""
    rows = []
    for key, name in (('errors', 'wrong labels'), ('bad_explanations', 'bad explanations')):
        found = report.get(key) or {}
        if not found.get('before'):
            continue
        cells = lambda rates: [_pair_filters.interval(rates.get(when)) for when in ('before', 'after')]
        rows.append({'name': name, 'whole': True, 'cells': cells(found)})
        for label, rates in (found.get('by_class') or {}).items():
            if rates.get('before'):
                rows.append({'name': label, 'whole': False, 'cells': cells(rates)})
    return rows


def _checked_notes(checked) -> list[str]:
    """Sentences on the file of hand-checked pairs."""
    notes = [f'{checked["n"]:,} of the pairs were checked by hand.'] if checked.get('n') else []
    if checked.get('blank'):
        notes.append(f'{checked["blank"]:,} rows of the file are not filled in.')
    if checked.get('repeated'):
        notes.append(f'{checked["repeated"]:,} rows say the same as an earlier one.')
    if checked.get('replaced'):
        notes.append(f'{checked["replaced"]:,} have another explanation than was checked: its quality is left out.')
    if checked.get('missing'):
        notes.append(f'Checked, but not among these pairs: {checked["missing"]}.')
    new = checked.get('relabelled') or {}
    if new.get('new') and new.get('old'):
        told = [f'{_rates.percent(new[key][0])} {_rates.interval(new[key][1:])}' for key in ('new', 'old')]
        notes.append(
            f'Of {new["changed"]:,} checked pairs with a new label, the checker gives the new one for {told[0]} and '
            f'the old one for {told[1]}.'
        )
    return notes


def _file(each):
    rows = each.get('rows')
    return {
        'role': str(each.get('role') or ''),
        'name': os.path.basename(str(each.get('path') or '')),
        'hash': str(each.get('hash') or ''),
        'rows': f'{rows:,}' if isinstance(rows, int) else '',
    }


def _facts(report) -> dict[str, str]:
    """How the numbers came about: command, versions, model."""
    found = {'command': str(report['command'])} if report.get('command') else {}
    found |= {str(name): str(value) for name, value in (report.get('versions') or {}).items()}
    return found | {
        f'NLI model, {name}': _pair_filters.words(value) for name, value in (report.get('nli') or {}).items()
    }


def _sections(shown) -> Sequence[tuple[str, str]]:
    """(place, name) of the sections that are there, for the way to them."""
    wanted = [
        ('merged', 'Merged', shown['merged'] or shown['dropped']),
        ('relabelled', 'Labelled anew', shown['relabelled']),
        ('relevance', 'Relevance', shown['relevance']),
        ('funnel', 'Funnel', shown['funnel']),
        ('table1', 'Table 1', shown['table1']),
        ('errors', 'Errors', shown['filters'] or shown['errors']),
        *[(each['id'], each['name'], True) for each in shown['filters']],
        ('files', 'Files', shown['files']),
    ]
    return [(place, name) for place, name, there in wanted if there]
