"""A filter of pairs as the report shows it: settings, values, threshold curves, how right it is, what it removed."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import _pair_counts, _rates, _value_bars, chart

ERRORS = {'wrong_label': 'wrong labels', 'bad_explanation': 'bad explanations'}
_CURVES = (('wrong labels', ('error', 'low', 'high')), ('bad explanations', ('bad', 'bad_low', 'bad_high')))
_WORD = re.compile(r'\w+')


def section(place: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows of one filter.

    Args:
      place: of the filter in the order, for the section's name.
      document: one of the report's 'filters'.
    """
    threshold = document.get('threshold')
    bins = document.get('histogram')
    curve = document.get('curve') or ()
    n, seen = (_pair_counts.total(document.get(name)) for name in ('removed', 'seen'))
    return {
        'id': f'filter-{place}',
        'name': document['name'],
        'source': document.get('source') or 'not told',
        'settings': settings(document),
        'told': _told(n, seen, document.get('unmeasured') or 0),
        'histogram': _value_bars.histogram(bins['edges'], bins['counts'], threshold)
        if bins and threshold is not None
        else None,
        'charts': [drawn for drawn in (_kept(curve), _errors(curve)) if drawn],
        'checked': checked(document.get('checked')),
        'samples': [_sample(row, document) for row in document.get('samples') or ()],
    }


def settings(document: Mapping[str, Any]) -> dict[str, str]:
    """{name: text} of threshold, further settings, splits and classes."""
    found = {} if document.get('threshold') is None else {'removes above': f'{document["threshold"]:g}'}
    for name, value in (document.get('settings') or {}).items():
        if name not in ('threshold', 'splits', 'classes'):
            found[str(name).replace('_', ' ')] = words(value)
    return found | {name: words(document.get(name)) or f'all {name}' for name in ('splits', 'classes')}


def words(value: Any) -> str:
    """A setting as text; lists are joined."""
    if isinstance(value, Mapping):
        return ', '.join(f'{name} {words(part)}' for name, part in value.items())
    if isinstance(value, list | tuple):
        return ', '.join(map(words, value))
    if isinstance(value, float):
        return f'{value:.6g}'
    return '' if value is None else str(value)


def interval(share: Sequence[float] | None) -> dict[str, Any]:
    """[value, low, high] as a cell of `_rates`."""
    return _rates.cell({'value': share[0], 'ci95': share[1:]} if share else None)


def checked(document: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Rows of both errors, and of each class where there are checked pairs of it."""
    rows = []
    for error, name in ERRORS.items():
        found = (document or {}).get(error)
        if not found or not found.get('n'):
            continue
        rows.append(_measures(name, found, True))
        by_class = found.get('by_class') or {}
        rows += [_measures(label, by_class[label], False) for label in by_class if by_class[label].get('n')]
    return rows


def _measures(name, found, whole):
    cells = [interval(found.get(each)) for each in ('precision', 'recall', 'f1', 'before', 'after')]
    counts = {each: found.get(each) for each in ('n', 'errors', 'removed', 'right')}
    return {'name': name, 'whole': whole, 'cells': cells} | counts


def _told(n, seen, unmeasured):
    if not seen:
        return f'Removed {n:,} pairs.' if n else 'Removed nothing.'
    told = f'Removed {n:,} of the {seen:,} pairs that it looks at, {_rates.percent(n / seen)}.'
    return told + (f' {unmeasured:,} could not be measured and stay.' if unmeasured else '')


def _kept(curve):
    used = [(row['threshold'], row['kept']) for row in curve if row.get('in_use')]
    series = {'kept': [(row['threshold'], row['kept']) for row in curve], 'in use': used}
    return chart.line_chart('share of pairs kept, by threshold', series, unit_range=True, axis='threshold')


def _errors(curve):
    """Errors among the kept against the kept share, with the interval of the threshold in use."""
    series, strokes = {}, {}
    for name, (value, low, high) in _CURVES:
        rows = [row for row in curve if row.get(value) is not None]
        series[name] = [(row['kept'], row[value]) for row in rows]
        strokes[name] = [
            (row['kept'], row[low], row[high]) for row in rows if row.get('in_use') and row.get(low) is not None
        ]
    title = 'errors among the kept pairs (stroke: threshold in use, 95 %)'
    return chart.line_chart(title, series, spread=strokes, axis='share of pairs kept')


def _sample(row, document):
    explanation, hypothesis = str(row.get('explanation') or ''), str(row.get('hypothesis') or '')
    premise, given = str(row.get('premise') or ''), document.get('settings') or {}
    found = {'explanation': [], 'hypothesis': [], 'premise': []}
    if document['name'] == 'keywords':
        found['explanation'] = _places(explanation, given.get('words') or ())
    elif document['name'] == 'similarity':
        found['hypothesis'], found['premise'] = _shared(hypothesis, premise), _shared(premise, hypothesis)
    value = row.get('value')
    return {
        'id': row.get('id', ''),
        'split': row.get('split', ''),
        'label': row.get('label', ''),
        'value': f'{value:.3g}' if isinstance(value, int | float) and math.isfinite(value) else '',
        'detail': row.get('detail') or '',
        'premise': pieces(premise, found['premise']),
        'hypothesis': pieces(hypothesis, found['hypothesis']),
        'explanation': pieces(explanation, found['explanation']),
        'captions': [
            {'text': each['text'], 'scores': [f'{p:.2f}' for p in each.get('scores') or ()]}
            for each in row.get('captions') or ()
        ],
        'scored': any(each.get('scores') for each in row.get('captions') or ()),
    }


def _places(text, words):
    """(start, end) of the words, wherever they stand in the text, any case."""
    return [hit.span() for word in words if word for hit in re.finditer(re.escape(word), text, re.IGNORECASE)]


def _shared(text, other):
    there = {word.lower() for word in _WORD.findall(other)}
    return [hit.span() for hit in _WORD.finditer(text) if hit[0].lower() in there]


def pieces(text: str, places: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is inside one of the places."""
    found, done = [], 0
    for start, end in sorted(places):
        start = max(start, done)
        if end <= start:
            continue
        found += [(text[done:start], False), (text[start:end], True)]
        done = end
    return [piece for piece in [*found, (text[done:], False)] if piece[0]]
