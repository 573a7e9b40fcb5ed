"""sweep.html: every point of a sweep, means over repetitions, values of a key side by side, and which was best."""

import json
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evil_jax import pages, records
from evil_jax.pages import chart, metric_names

# What readers call a value, where its own name says too little.
_VALUES = {
    ('train.regime', 'task'): 'task only',
    ('train.regime', 'joint'): 'joint',
    ('train.regime', 'expl'): 'explanations only',
}
_MOST_LINES = 6  # as many as there are colours

Document = Mapping[str, Any]


class Table(NamedTuple):
    """Text only: of each row the first cell is its name."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def write_page(path: str | os.PathLike, *, title: str, document: Document) -> None:
    """Writes one self-contained page, atomically.

    Args:
      path: of the page.
      title: name of the sweep.
      document: content of a sweep.json (modes/_trials.py says what is in it). All text is untrusted.
    """
    best = document['best']
    groups = document['groups']
    html = pages.render(
        'sweep',
        title=title,
        split=document['split'],
        select=metric_names.name(document['select']),
        best=best,
        best_text=told(best),
        best_words=_words(best['overrides']) if best else '',
        best_row=next((i for i, g in enumerate(groups) if best and g['overrides'] == best['overrides']), None),
        over=', '.join(document['over']),
        means=means(document),
        every=means(document, every=True),
        contrasts=list(contrasts({document['model']: document})),
        chart=plot(document),
        points=points(document),
        waiting=sum(p['status'] in ('waiting', 'interrupted') for p in document['points']),
        failed=document['failed'],
        total=len(document['points']),
        settings={key: json.dumps(value) for key, value in document['config'].items()},
    )
    records.atomic_write(path, html)


def told(cell: Mapping[str, Any] | None, sign: str = '') -> str:
    """'0.912 ± 0.004 (n 3)' of {'mean', 'sd', 'n'}; '' of None. `sign`: '+' shows that of the number."""
    if cell is None:
        return ''
    deviation = '' if cell['sd'] is None else f' ± {cell["sd"]:.3f}'
    return f'{cell["mean"]:{sign}.3f}{deviation} (n {cell["n"]})'


def tables(document: Document) -> Iterator[Table]:
    """What is shown at the terminal: scores by their names in files, reasons in short."""
    table = points(document, str)
    yield table._replace(rows=[[*row[:-1], textwrap.shorten(row[-1], 100, placeholder=' ...')] for row in table.rows])
    if len(document['points']) > len(document['groups']):
        yield means(document, name=str)
    yield from contrasts({document['model']: document}, str)


def summary(documents: Mapping[str, Document]) -> Iterator[Table]:
    """Sweeps beside other results, by label: what they set side by side, of others the means."""
    yield from contrasts(documents)
    for label, document in documents.items():
        if not document['contrasts']:
            table = means(document)
            yield table._replace(title=f'{label}: {table.title}')


def points(document: Document, name: Callable[[str], str] = metric_names.name) -> Table:
    """Every point as it was run. `name`: what a score is called."""
    select = document['select']
    rows = []
    for point in document['points']:
        score = point.get('scores', {}).get(select)
        rows.append(
            [
                point['name'],
                point['status'],
                '' if score is None else f'{score:.3f}',
                str(point['steps'] or ''),
                f'{point["seconds"]:.0f}' if point['seconds'] else '',
                point.get('reason', ''),
            ]
        )
    columns = ['point', 'status', name(select), 'steps', 'seconds', '']
    return Table(f'Points, scored on {document["split"]}', columns, rows)


def means(document: Document, every: bool = False, name: Callable[[str], str] = metric_names.name) -> Table:
    """A row for each combination that is no repetition.

    Args:
      document: of a sweep.
      every: all scores, not only those of answers and explanations.
      name: what a score is called.
    """
    groups, select = document['groups'], document['select']
    names = list(dict.fromkeys(n for group in groups for n in group['scores']))
    names = [n for n in names if every or n.startswith('s_')]
    names = sorted(names, key=lambda n: (n != select, not n.startswith('s_')))
    rows = [
        [_words(g['overrides']), f'{g["done"]} of {len(g["names"])}'] + [told(g['scores'].get(n)) for n in names]
        for g in groups
    ]
    over = f' over {", ".join(document["over"])}' if document['over'] else ''
    title = f'Means{over} on {document["split"]}, ± sample standard deviation (n: finished runs)'
    return Table(title, ['overrides', 'finished', *map(name, names)], rows)


def contrasts(documents: Mapping[str, Document], name: Callable[[str], str] = metric_names.name) -> Iterator[Table]:
    """Two values of a key side by side, for each score of answers and explanations that both have.

    Args:
      documents: sweeps by the name of the model; those about the same two values share a table.
      name: what a score is called.
    """
    found: dict[tuple, list] = {}
    for label, document in documents.items():
        for contrast in document['contrasts']:
            about = contrast['key'], json.dumps(contrast['values']), document['split']
            for row in contrast['rows']:
                model = ', '.join(filter(None, (label, _words(row['overrides']))))
                for score, cells in row['scores'].items():
                    if score.startswith('s_') and cells['difference']:
                        sides = [told(cells['first']), told(cells['second']), told(cells['difference'], '+')]
                        found.setdefault((*about, score), []).append([model, *sides])
    for (key, values, split, score), rows in found.items():
        first, second = (_value(key, value) for value in json.loads(values))
        title = f'{name(score)} on {split}: {first} against {second}'
        yield Table(title, ['model', first, second, f'difference, {second} − {first}'], rows)


def plot(document: Document) -> dict | None:
    """The score that chooses over the values of the key that has most of them, a line for each other combination."""
    free = [key for key in document['grid'] if key not in document['over']]
    axis = max(free, key=lambda key: len(document['grid'][key]), default=None)
    if axis is None or len(document['grid'][axis]) < 2:
        return None
    values, select = document['grid'][axis], document['select']
    series: dict[str, list] = {}
    spread: dict[str, list] = {}
    for group in document['groups']:
        if (cell := group['scores'].get(select)) is None:
            continue
        others = {k: v for k, v in group['overrides'].items() if k != axis}
        name = _words(others) or metric_names.name(select)
        x = values.index(group['overrides'][axis])
        series.setdefault(name, []).append((x, cell['mean']))
        if cell['sd'] is not None:
            low, high = cell['mean'] - cell['sd'], cell['mean'] + cell['sd']
            spread.setdefault(name, []).append((x, low, high))
    best = sorted(series, key=lambda name: -max(y for _, y in series[name]))[:_MOST_LINES]
    title = metric_names.name(select)
    if len(best) < len(series):
        title += f', the best {len(best)} of {len(series)} combinations'
    return chart.line_chart(
        title,
        {name: points for name, points in series.items() if name in best},
        zoom=True,
        labels=[_value(axis, value, short=True) for value in values],
        spread=spread,
        axis=axis,
    )


def _words(overrides: Mapping[str, Any]) -> str:
    """'optim.lr 1e-05, joint'; '' of no override."""
    return ', '.join(_value(key, value) for key, value in overrides.items())


def _value(key: str, value, short: bool = False) -> str:
    if isinstance(value, str) and (key, value) in _VALUES:
        return _VALUES[key, value]
    text = _listed(value)
    return text if short else f'{key} {text}'


def _listed(value) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f'({", ".join(map(_listed, value))})'
    return str(value) if value != '' else "''"
