"""The scores of an evaluation at the terminal."""

from collections.abc import Mapping, Sequence

import rich.markup
import rich.table

from evil_jax.modes import _terminal
from evil_jax.pages import report

Rows = Mapping[str, Mapping[str, Mapping]]


def show(columns: Mapping[str, Rows], own: Sequence[str], groups: Mapping[str, list[dict]]) -> None:
    """Prints the scores of systems under protocols beside each other, what is absent and why, and the scores by group.

    Args:
      columns: heading -> {subset: {metric: row}}; the first is the evaluation's own under its main protocol.
      own: headings of the evaluation's own system, one a protocol.
      groups: kind of group -> rows of `evil.accuracy_table`.
    """
    console = _terminal.console()
    first = columns[own[0]]
    names = dict.fromkeys(n for rows in columns.values() for n in (*rows.get('all', {}), *rows.get('correct', {})))
    right = first.get('correct', {})
    explained = [n for n in names if n.startswith('ngram') or (n in right and not n.startswith('s_'))]
    place = lambda name: 'correct' if name in explained else 'all'
    at = lambda name, rows: rows.get(place(name), {}).get(name)
    told = {
        label: rows for label, rows in columns.items() if label in own or any(_interval(at(n, rows)) for n in names)
    }
    console.print(
        _table('Scores with 95 % intervals; of explanation texts: where the answer is right', told, names, at)
    )
    if len(own) > 1 or not any(_interval(at(name, first)) for name in explained):
        of_all = {label: columns[label] for label in own}
        whole = lambda name, rows: rows.get('all', {}).get(name)
        if any(_interval(whole(name, rows)) for rows in of_all.values() for name in explained):
            title = 'Explanations of all examples, right answers and wrong ones'
            console.print(_table(title, of_all, explained, whole))
    absent: dict[str, list[str]] = {}
    for name in names:
        row = at(name, first)
        if row is not None and row['value'] is None and not name.startswith('s_o_'):
            absent.setdefault(row['reason'], []).append(name)
    for reason, which in absent.items():
        console.print(f'{", ".join(which)}: {reason}', markup=False, highlight=False)
    for kind, rows in groups.items():
        metrics = report.group_metrics(first)
        table = rich.table.Table(title=f'By {kind.replace("_", " ")}')
        for column in ('group', 'n', 'correct', 'accuracy', *metrics):
            table.add_column(column, justify='left' if column == 'group' else 'right')
        for row in rows:
            cells = [_interval(report.group_scores(first, row).get(metric)) for metric in metrics]
            counts = [str(row['n']), str(row['correct'])] if row['group'] != 'macro' else ['', '']
            table.add_row(rich.markup.escape(row['group']), *counts, f'{row["accuracy"]:.3f}', *cells)
        console.print(table)


def show_leaderboard(comparison: Mapping) -> None:
    """Prints, for each protocol, every system's scores and whether they differ from the first one's."""
    for protocol in comparison['protocols']:
        rows = [row for row in protocol['rows'] if row['subset'] == 'main']
        by = {(row['system'], row['metric']): row for row in rows}
        systems = list(dict.fromkeys(row['system'] for row in rows))
        cells = [
            [metric, *[_compared(by.get((system, metric))) for system in systems]]
            for metric in dict.fromkeys(row['metric'] for row in rows)
        ]
        title = f'Protocol {protocol["name"]}: difference to {systems[0]}, p after Holm'
        _terminal.show(title, ('', *systems), cells)


def _compared(row):
    if row is None or row['value'] is None:
        return ''
    text = f'{row["value"]:.3f}' + (f' ± {row["sd"]:.3f}' if row['sd'] is not None else '')
    if row['delta'] is None:
        return text
    return f'{text} ({row["delta"]:+.3f}' + (f', p={row["p_holm"]:.4f})' if row['p_holm'] is not None else ')')


def _table(title, columns, names, at):
    table = rich.table.Table(title=title)
    table.add_column('')
    for label in columns:
        table.add_column(rich.markup.escape(label), justify='right')
    scored = None
    for name in names:
        rows = [at(name, rows) for rows in columns.values()]
        cells = [_interval(row) for row in rows]
        if any(cells):
            n = [str(row['n']) if row and row.get('n') is not None else '' for row in rows]
            if n != scored and any(n):  # how many examples: told where it changes
                table.add_section()
                table.add_row('n', *n, style='dim')
                scored = n
            table.add_row(name, *cells)
    return table


def _interval(row):
    if row is None or row['value'] is None:
        return ''
    ci = row.get('ci95')
    return f'{row["value"]:.3f}' + (f' ({ci[0]:.3f}-{ci[1]:.3f})' if ci else '')
