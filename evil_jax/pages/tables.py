"""Leaderboards as text: CSV for programs, LaTeX for papers, Markdown for READMEs. Functions of `leaderboard.boards`.

Labels, sources and notes are anybody's text: nothing in them can become a formula of a spreadsheet, a TeX command or
another cell.
"""

import csv as _csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import escaping, leaderboard, metric_names, signatures
from evil_jax.text import csv_cell

COLUMNS = (
    'protocol', 'explanations', 'kind', 'system', 'metric', 'value', 'ci95_low', 'ci95_high', 'runs', 'sd', 'n',
    'total', 'delta', 'delta_ci95_low', 'delta_ci95_high', 'p_bootstrap', 'p_randomisation', 'p_holm', 'tested',
    'reason', 'signature', 'source',
)  # fmt: skip


def csv(boards: Sequence[Mapping[str, Any]]) -> str:
    """One line for each score of each system, full precision; the columns are `COLUMNS`.

    Text that begins with = + - @ (or a tab) would be a formula to a spreadsheet: it gets a ' in front, which such
    programs take for "this is text". Numbers, negative ones too, stay numbers. Line ends are CRLF (RFC 4180).
    """
    out = io.StringIO()
    writer = _csv.writer(out)
    writer.writerow(COLUMNS)
    for board in boards:
        common = {'protocol': board['protocol'], 'explanations': board['title']}
        for row in board['rows']:
            signed = board['signatures'].get(row['system'], {})
            for metric, cell in row['cells'].items():
                low, high = cell.get('ci95') or (None, None)
                delta_low, delta_high = cell.get('delta_ci95') or (None, None)
                own = dict(kind='computed', ci95_low=low, ci95_high=high, signature=signed.get(metric, ''))
                own |= dict(delta_ci95_low=delta_low, delta_ci95_high=delta_high)
                _write(writer, common | cell | own)
        for row in board['published']:
            for metric, value in row['metrics'].items():
                kind = f'published{", unverified" if metric in row["unverified"] else ""}'
                _write(
                    writer,
                    common | dict(kind=kind, metric=metric, value=value, system=row['system'], source=_source(row)),
                )
    return out.getvalue()


def markdown(board: Mapping[str, Any], *, metrics: Sequence[str] | None = None, bold: bool = False) -> str:
    """A table of systems by scores, three digits; what the marks mean and the signatures (pages/signatures.py) follow.

    Args:
      board: of `leaderboard.boards`.
      metrics: score names; None = all of the board.
      bold: the highest computed value of each score stands out.
    """
    names = _chosen(board, metrics)
    best = _best(board, names) if bold else {}
    head = ['system', 'scored', *[metric_names.name(m) for m in names]]
    lines = [_line(map(escaping.markdown, head)), _line(['---', *['---:'] * (len(head) - 1)])]
    for row in board['rows']:
        cells = [_value(row['cells'].get(m)) for m in names]
        cells = [f'**{c}**' if c and best.get(m) == _raw(row, m) else c for c, m in zip(cells, names)]
        marks = [c + ('\\*' if _significant(row['cells'].get(m)) else '') for c, m in zip(cells, names)]
        lines.append(_line([escaping.markdown(row['system']), _scored(row), *marks]))
    for row in board['published']:
        cells = [_published(row, m) for m in names]
        if any(cells):
            lines.append(_line([escaping.markdown(f'{row["system"]} (published)'), '', *cells]))
    notes = [escaping.markdown(note) for note in _notes(board, names)]
    return '\n'.join([*lines, '', *[f'{note}  ' for note in notes]]).rstrip() + '\n'


def latex(board: Mapping[str, Any], *, metrics: Sequence[str] | None = None, bold: bool = False) -> str:
    """A booktabs table environment (`\\usepackage{booktabs}`); the caption says the protocol, comments the signatures.

    Args are those of `markdown`.
    """
    names = _chosen(board, metrics)
    best = _best(board, names) if bold else {}
    out = [
        r'% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}',
        r'\begin{table}',
        r'\centering',
        rf'\begin{{tabular}}{{l{"r" * len(names)}}}',
        r'\toprule',
        ' & '.join(['system', *[escaping.tex(metric_names.name(m)) for m in names]]) + r' \\',
        r'\midrule',
    ]
    for row in board['rows']:
        cells = []
        for metric in names:
            text = _value(row['cells'].get(metric)).replace('±', r'$\pm$')
            text = rf'\textbf{{{text}}}' if text and best.get(metric) == _raw(row, metric) else text
            cells.append(text + ('$^{*}$' if _significant(row['cells'].get(metric)) else ''))
        out.append(' & '.join([escaping.tex(row['system']), *cells]) + r' \\')
    published = [(row, [_published(row, m) for m in names]) for row in board['published']]
    published = [(row, cells) for row, cells in published if any(cells)]
    if published:
        told = f'published under protocol {escaping.tex(board["protocol"])}, not computed here'
        out += [r'\midrule', rf'\multicolumn{{{len(names) + 1}}}{{l}}{{{told}}} \\']
        out += [' & '.join([escaping.tex(row['system']), *cells]) + r' \\' for row, cells in published]
    notes = _notes(board, names)
    out += [
        r'\bottomrule',
        r'\end{tabular}',
        rf'\caption{{{escaping.tex(" ".join(_caption(board, names)))}}}',
        r'\end{table}',
    ]
    # A line end would end the comment.
    out += [f'% {" ".join(note.split())}' for note in notes]
    return '\n'.join(out) + '\n'


def _write(writer, row):
    """One line of CSV. Strings alone can be formulas."""
    writer.writerow([csv_cell(row.get(column)) for column in COLUMNS])


def _source(row):
    return row['source'] + (f' ({row["note"]})' if row['note'] else '')


def _chosen(board, metrics):
    if metrics is None:
        return board['metrics']
    known = {*board['metrics'], *[m for row in board['published'] for m in row['metrics']]}
    unknown = [m for m in metrics if m not in known]
    if unknown:
        raise ValueError(f'the board has no score {unknown[0]!r}; it has {", ".join(sorted(known))}')
    return list(metrics)


def _raw(row, metric):
    return (row['cells'].get(metric) or {}).get('value')


def _best(board, names):
    """Highest value as it is shown, so that equal looking ones stand out together."""
    found = {}
    for metric in names:
        values = [v for row in board['rows'] if (v := _raw(row, metric)) is not None]
        if len(values) > 1:
            found[metric] = max(values)
    return found


def _value(cell):
    if cell is None or cell['value'] is None:
        return ''
    text = f'{cell["value"]:.3f}'
    return text + (f' ± {cell["sd"]:.3f}' if cell.get('sd') is not None else '')


def _significant(cell):
    return bool(cell) and cell.get('p_holm') is not None and cell['p_holm'] < leaderboard.SIGNIFICANT


def _published(row, metric):
    value = row['metrics'].get(metric)
    return '' if value is None else f'{value:.3f}' + ('?' if metric in row['unverified'] else '')


def _scored(row):
    return '' if row['n'] is None else f'{row["n"]:.10g}/{row["total"]}'


def _caption(board, names):
    """Sentences on what a reader of the table alone must know."""
    text = [f'Protocol {board["protocol"]}; {board["title"]}.']
    cells = [row['cells'].get(m) or {} for row in board['rows'] for m in names]
    if any(_significant(cell) for cell in cells):
        tested = ' and '.join(sorted({c['tested'] for c in cells if c.get('tested')}))
        text.append(
            f'* differs from {board["baseline"]}, p < {leaderboard.SIGNIFICANT} by {tested}, corrected over the '
            'systems (Holm).'
        )
    if any(cell.get('sd') is not None for cell in cells):
        text.append('± sample deviation over runs.')
    if any(metric in row['unverified'] for row in board['published'] for metric in names):
        text.append('? was not read in the source.')
    return text


def _notes(board, names):
    shown = [row for row in board['published'] if row['metrics'].keys() & set(names)]
    published = [f'{systems}: {source}' for source, systems in leaderboard.sources(shown)]
    own = {system: {m: lines.get(m, '') for m in names} for system, lines in board['signatures'].items()}
    return [
        *_caption(board, names),
        *[f'Published under protocol {board["protocol"]}, {p}' for p in published],
        *[f'{whose}: {fields}' for whose, fields in signatures.told(own)],
    ]


def _line(cells):
    return '| ' + ' | '.join(cells) + ' |'
