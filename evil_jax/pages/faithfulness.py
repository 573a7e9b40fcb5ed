"""faithfulness.html: how faithful heat maps are, method by method, with intervals and curves; and the same for papers.

A document is JSON:

    {'title', 'model', 'data', 'protocol', 'n', 'signature', 'settings': {name: value},
     'methods': {method: {
        'metrics': {name: {'value': x or None, 'ci95': [low, high], 'n', 'better': 'lower' or 'higher', 'reason'}},
        'curves': {name: [[x, y], ...]}}},
     'axes': {'x': what x is, 'y': what y is}, 'names': {metric: what a reader calls it}, 'note': how to read it}

'methods' alone must be there. A metric may lack 'ci95' and 'n'; one without a value says why ('reason'). Curves of the
same name ('positive', 'negative') share a panel. A method called 'random' is what the others are held against.
"""

import csv as _csv
import io
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from evil_jax import pages, records
from evil_jax.pages import chart, escaping, metric_names
from evil_jax.text import csv_cell

CHANCE = 'random'
COLUMNS = ('method', 'kind', 'name', 'x', 'value', 'ci95_low', 'ci95_high', 'n', 'better', 'reason', 'signature')
_ARROWS = {'lower': '↓', 'higher': '↑', None: ''}
_COLOURS = ('#2f6690', '#c8553d', '#4f8a5b', '#8662a6', '#b58a1b', '#5d646e')  # those of page.css
_DASHES = ('', '7 3', '2 3')
_PANEL, _LEGEND = 460, 20  # width of a panel and height of a line of the legend, in a stand-alone drawing
_CHANCE_NOTE = f'° its 95 % interval overlaps that of {CHANCE}'

Document = Mapping[str, Any]


class Table(NamedTuple):
    """Metrics as they are shown: columns (name, title, better), rows (method, cells)."""

    columns: list[tuple[str, str, str | None]]
    rows: list[tuple[str, list[dict[str, Any]]]]
    notes: list[str]


def write_faithfulness(path: str | os.PathLike, document: Document) -> list[pathlib.Path]:
    """Writes the page and, beside it under the same name, table and curves for other programs, each atomically.

    Args:
      path: of the page, '.../perturbation.html'; .csv, .md, .tex and, where there are curves, .svg stand beside it.
      document: see the head of this file. All text is untrusted.

    Returns:
      The files.

    Raises:
      ValueError: a number that is not finite, a metric that is better both ways, or neither value nor reason.
    """
    path = pathlib.Path(path)
    shown = table(document)
    html = pages.render(
        'faithfulness',
        parts=('_sort',),
        title=str(document.get('title') or 'Faithfulness'),
        facts={key: str(document[key]) for key in ('model', 'data', 'protocol') if document.get(key) not in (None, '')},
        n=document.get('n'),
        note=document.get('note') or '',
        table=shown,
        arrows=_ARROWS,
        panels=panels(document),
        styles=styles(document),
        settings={k: str(v) for k, v in (document.get('settings') or {}).items()},
        signature=str(document.get('signature') or ''),
    )
    files = {path: html, path.with_suffix('.csv'): csv(document), path.with_suffix('.md'): markdown(document)}
    files |= {path.with_suffix('.tex'): latex(document)}
    drawing = curves_svg(document)
    if drawing is not None:
        files[path.with_suffix('.svg')] = drawing
    for file, content in files.items():
        records.atomic_write(file, content)
    return list(files)


def table(document: Document) -> Table:
    """Methods by metrics: texts, the best value of each column, and what is not told apart from chance."""
    methods = document['methods']
    names = list(dict.fromkeys(name for method in methods.values() for name in method.get('metrics', {})))
    told = document.get('names') or {}
    columns = [(name, told.get(name) or metric_names.name(name), _better(methods, name)) for name in names]
    cells = {name: _column(methods, name, better, document.get('n')) for name, _, better in columns}
    rows = [(method, [cells[name][method] for name in names]) for method in methods]
    every = [cell for _, row in rows for cell in row]
    notes = ['[low, high]: 95 % interval'] if any(cell['ci'] for cell in every) else []
    notes += ['bold: the best of its column'] if any(cell['best'] for cell in every) else []
    notes += [_CHANCE_NOTE] if any(cell['chance'] for cell in every) else []
    return Table(columns, rows, notes)


def _better(methods, name):
    """'lower', 'higher' or None of a metric; the methods must agree."""
    found = {m['metrics'][name].get('better') for m in methods.values() if name in m.get('metrics', {})} - {None}
    if len(found) > 1 or found - {'lower', 'higher'}:
        raise ValueError(
            f"metric {name!r} is better {sorted(found)}: wanted 'lower' or 'higher', for all methods alike"
        )
    return next(iter(found), None)


def _column(methods, name, better, n):
    """Cells of a metric by method; n: number of examples that need not be told."""
    scores = {method: _score(method, name, content.get('metrics', {}).get(name)) for method, content in methods.items()}
    known = {method: row for method, row in scores.items() if row and row['value'] is not None}
    ends = [end for row in known.values() for end in (row['value'], *(row.get('ci95') or ()))]
    largest = max(map(abs, ends), default=0.0)
    digits = 3 if largest < 10 else 2 if largest < 1000 else 0
    texts = {method: f'{row["value"]:.{digits}f}' for method, row in known.items()}
    # Values that look alike are equally good.
    best = (min if better == 'lower' else max)(map(float, texts.values()), default=None) if better else None
    chance = (known.get(CHANCE) or {}).get('ci95')
    cells = {}
    for method, row in scores.items():
        ci = row.get('ci95') if method in known else None
        cells[method] = {
            'value': row['value'] if method in known else None,
            'text': texts.get(method, ''),
            'ci': f'[{ci[0]:.{digits}f}, {ci[1]:.{digits}f}]' if ci else None,
            'n': row.get('n') if row and row.get('n') != n else None,
            'reason': row.get('reason') if row and method not in known else None,
            'best': len(known) > 1 and best is not None and method in known and float(texts[method]) == best,
            'chance': bool(ci and chance and method != CHANCE and ci[0] <= chance[1] and chance[0] <= ci[1]),
            'mark': None,
        } | (_bar(row['value'], ci, largest) if method in known and min(ends) >= 0 < largest else {})
    return cells


def _bar(value, ci, largest):
    """Places a value and its interval on a bar from 0 to 100."""
    low, high = (100 * end / largest for end in ci or (value, value))
    return {'mark': round(100 * value / largest, 2), 'low': round(low, 2), 'span': max(0.5, round(high - low, 2))}


def _score(method, name, row):
    """The row, checked; None where the method has none."""
    if row is None:
        return None
    numbers = [row['value'], *(row.get('ci95') or ())]
    if row['value'] is None:
        if not row.get('reason'):
            raise ValueError(f'{method}: {name} has neither a value nor a reason')
    elif not all(math.isfinite(v) for v in numbers):
        raise ValueError(f'{method}: {name} is {numbers}, wanted finite numbers; without a value, None and a reason')
    return row


def panels(document: Document) -> list[dict[str, Any]]:
    """A line chart for each kind of curve; the dots of its lines have titles."""
    series: dict[str, dict[str, list]] = {}
    for method, content in document['methods'].items():
        for name, points in (content.get('curves') or {}).items():
            if not all(math.isfinite(v) for point in points for v in point):
                raise ValueError(f'{method}: a point of the curve {name!r} is not finite')
            series.setdefault(name, {})[method] = [(float(x), float(y)) for x, y in points]
    axes = document.get('axes') or {}
    found = []
    for name, lines in series.items():
        title = name.replace('_', ' ') + (f', {axes["y"]}' if axes.get('y') else '')
        drawn = chart.line_chart(title, lines, axis=axes.get('x') or 'x')
        for line in drawn['lines'] if drawn else ():
            points = sorted(lines[line['name']])
            titles = [f'{line["name"]}: {y:.4g} at {x:.4g}' for x, y in points]
            line['dots'] = list(zip(*zip(*line['dots']), titles[-len(line['dots']) :]))
        found += [drawn] if drawn else []
    return found


def styles(document: Document) -> dict[str, dict[str, Any]]:
    """Of each method with a curve: number of its colour and of its dashes, the same in every panel; chance is grey."""
    drawn = [method for method, content in document['methods'].items() if any((content.get('curves') or {}).values())]
    others = [method for method in drawn if method != CHANCE]
    numbers = {m: (i % 5, i // 5 % 3) for i, m in enumerate(others)} | {CHANCE: (5, 1)}
    return {
        m: {'colour': numbers[m][0], 'dash': numbers[m][1], 'stroke': _COLOURS[numbers[m][0]]}
        | {'dashes': _DASHES[numbers[m][1]]}
        for m in drawn
    }


def curves_svg(document: Document) -> str | None:
    """The panels side by side over one legend, as an SVG file of its own on white; None without curves."""
    drawn = panels(document)
    if not drawn:
        return None
    named = styles(document)
    width = _PANEL * len(drawn)
    columns = max(1, width // 220)
    top = 28
    legend = [
        (m, style, 12 + i % columns * (width / columns), top + chart.HEIGHT + 22 + i // columns * _LEGEND)
        for i, (m, style) in enumerate(named.items())
    ]
    height = top + chart.HEIGHT + 22 + math.ceil(len(named) / columns) * _LEGEND
    return pages.drawing(
        'curves', panels=drawn, styles=named, legend=legend, width=width, height=height, step=_PANEL, top=top
    )


def csv(document: Document) -> str:
    """A line for each metric and each point of a curve, in full precision; the columns are `COLUMNS`."""
    out = io.StringIO()
    writer = _csv.writer(out)
    writer.writerow(COLUMNS)
    write = lambda **row: writer.writerow([csv_cell(row.get(column)) for column in COLUMNS])
    signature = document.get('signature')
    for method, content in document['methods'].items():
        for name, row in content.get('metrics', {}).items():
            low, high = row.get('ci95') or (None, None)
            own = {key: row.get(key) for key in ('value', 'n', 'better', 'reason')}
            write(method=method, kind='metric', name=name, ci95_low=low, ci95_high=high, signature=signature, **own)
        for name, points in (content.get('curves') or {}).items():
            for x, y in points:
                write(method=method, kind='curve', name=name, x=float(x), value=float(y), signature=signature)
    return out.getvalue()


def markdown(document: Document) -> str:
    """The table for a README; what it was computed on and what its marks mean follow."""
    shown = table(document)
    line = lambda cells: '| ' + ' | '.join(cells) + ' |'
    head = ['method', *[f'{title} {_ARROWS[better]}'.strip() for _, title, better in shown.columns]]
    lines = [line(map(escaping.markdown, head)), line(['---', *['---:'] * len(shown.columns)])]
    for method, cells in shown.rows:
        texts = []
        for cell in cells:
            text = f'**{cell["text"]}**' if cell['best'] else cell['text']
            ci = f' {escaping.markdown(cell["ci"])}' if cell['ci'] else ''
            texts.append((text + ci + ('°' if cell['chance'] else '')) if text else ('none' if cell['reason'] else ''))
        lines.append(line([escaping.markdown(method), *texts]))
    notes = [escaping.markdown(note) for note in _notes(document, shown)]
    return '\n'.join([*lines, '', *[f'{note}  ' for note in notes]]).rstrip() + '\n'


def latex(document: Document) -> str:
    """A booktabs table environment."""
    shown = table(document)
    arrows = {'lower': r'~$\downarrow$', 'higher': r'~$\uparrow$', None: ''}
    head = ['method', *[escaping.tex(title) + arrows[better] for _, title, better in shown.columns]]
    out = [
        r'% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}',
        r'\begin{table}',
        r'\centering',
        rf'\begin{{tabular}}{{l{"r" * len(shown.columns)}}}',
        r'\toprule',
        ' & '.join(head) + r' \\',
        r'\midrule',
    ]
    for method, cells in shown.rows:
        texts = []
        for cell in cells:
            text = rf'\textbf{{{cell["text"]}}}' if cell['best'] else cell['text']
            ci = rf' {{\scriptsize {cell["ci"]}}}' if cell['ci'] else ''
            texts.append(text + ci + (r'$^{\circ}$' if cell['chance'] else '') if text else '--')
        out.append(' & '.join([escaping.tex(method), *texts]) + r' \\')
    caption = (
        escaping.tex('. '.join(_notes(document, shown))).replace('°', r'$^{\circ}$').replace('↓', '').replace('↑', '')
    )
    out += [r'\bottomrule', r'\end{tabular}', rf'\caption{{{caption}.}}', r'\end{table}']
    return '\n'.join(out) + '\n'


def _notes(document, shown):
    """What a reader of the table alone must know."""
    facts = [f'{key} {document[key]}' for key in ('model', 'data', 'protocol', 'n') if document.get(key) is not None]
    missing = {f'{m}: {c["reason"]}' for m, cells in shown.rows for c in cells if c['reason']}
    return [
        *([', '.join(facts)] if facts else []),
        *shown.notes,
        *sorted(missing),
        *([str(document['signature'])] if document.get('signature') else []),
    ]
