"""Results of a human study as text: one CSV with every number, LaTeX for papers. Functions of the document that
pages/human.py shows.

Labels are anybody's text: nothing in them can become a formula of a spreadsheet or a TeX command.
"""

import csv as _csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from evil_jax.human import _tex_tables, study
from evil_jax.metrics import published
from evil_jax.text import csv_cell

COLUMNS = (
    'part', 'kind', 'dataset', 'system', 'against', 'measure', 'value', 'ci95_low', 'ci95_high', 'p', 'p_holm', 'n',
    'reason', 'source',
)  # fmt: skip
_PROTOCOL = 'evil'  # published ratings that were collected as ours are
_MEASURES = ('s_t', 's_e', 's_o', 's_e_ratings', 's_e_median', 's_e_majority')
_COMPARED = {'value': 'no worse', 'better': 'better', 'same': 'same', 'worse': 'worse'}
_COUNTS = ('items', 'lost', 'ratings', 'raters', 'pictures')

Document = Mapping[str, Any]


def csv(document: Document) -> str:
    """One line for each number, full precision; the columns are `COLUMNS`.

    `part` says what a number is of: scores, counts, shares, shortcomings, comparative, preference, automatic,
    differences (of S_E), agreement, correlation, or statistics (differences by the model that `measure` names; `source`
    is its formula). `kind` is computed or published. Line ends are CRLF (RFC 4180).
    """
    out = io.StringIO()
    writer = _csv.writer(out)
    writer.writerow(COLUMNS)
    for row in (*_computed(document), *_published(document['scores'])):
        low, high = row.pop('ci95', None) or (None, None)
        row = row | {'ci95_low': low, 'ci95_high': high}
        writer.writerow([csv_cell(row.get(column)) for column in COLUMNS])
    return out.getvalue()


def latex(document: Document) -> str:
    """Three booktabs tables (`\\usepackage{booktabs}`), in percent: scores as Table 3 of Kayser et al. (2021), ratings
    as Table 2, shortcomings as Table 5. Published rows say so."""
    scores = document['scores']
    head = r'% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}'
    made = [
        _tex_tables.systems(scores, {name: _rated(name) for name in scores['datasets']}),
        *(_tex_tables.shares(scores, part, rows) for part, rows in _shares(scores).items()),
    ]
    return '\n\n'.join([head, *made]) + '\n'


def _rated(dataset: str) -> list[published.Published]:
    """Published rows of a data set that people rated as ours are rated (Kayser et al., 2021, Table 3)."""
    return [row for row in published.read(dataset) if row.protocol == _PROTOCOL and 's_e_human' in row.metrics]


def _computed(document) -> Iterator[dict[str, Any]]:
    for row in _of_scores(document['scores']):
        yield {'kind': 'computed'} | row
    for dataset, systems in (document.get('automatic') or {}).items():
        for system, metrics in systems.items():
            for name, value in metrics.items():
                yield dict(part='automatic', kind='computed', dataset=dataset, system=system, measure=name, value=value)
    for row in document.get('correlation') or ():
        kept = {key: row.get(key) for key in ('dataset', 'p', 'ci95', 'n', 'reason')}
        yield kept | dict(
            part='correlation', kind='computed', measure=f'spearman {row["metric"]}', value=row.get('rho')
        )
    for model in document.get('statistics') or ():
        yield from _of_model(model)


def _of_scores(scores) -> Iterator[dict[str, Any]]:
    for row in scores['scores']:
        own = {'dataset': row['dataset'], 'system': row['system']}
        for name in _MEASURES:
            if row.get(name) is not None:
                n = row.get('items') if name != 's_t' else None
                yield own | dict(part='scores', measure=name, value=row[name], ci95=row.get(f'{name}_ci95'), n=n)
        for name in _COUNTS:
            if row.get(name) is not None:
                yield own | dict(part='counts', measure=name, value=row[name])
        for part in ('shares', 'shortcomings'):
            for name, value in (row.get(part) or {}).items():
                yield own | dict(part=part, measure=name, value=value, n=row.get('ratings'))
        compared = row.get('comparative') or {}
        for name, told in _COMPARED.items():
            if compared.get(name) is not None:
                ci = compared.get('ci95') if name == 'value' else None
                found = dict(part='comparative', against=study.GOLD, measure=told, value=compared[name])
                yield own | found | dict(ci95=ci, n=compared.get('pairs'))
        preferred = row.get('preference') or {}
        for name in study.PREFERENCES:
            if preferred.get(name) is not None:
                yield own | dict(part='preference', measure=name, value=preferred[name], n=preferred.get('ratings'))
    for row in scores.get('differences') or ():
        yield dict(
            part='differences', dataset=row['dataset'], system=row['a'], against=row['b'], measure='s_e',
            value=row['difference'], ci95=row.get('ci95'), n=row.get('pictures_shared'),
        )  # fmt: skip
    for row in scores.get('agreement') or ():
        yield dict(
            part='agreement', dataset=row['dataset'], measure=row['name'], value=row.get('value'), p=row.get('p'),
            ci95=row.get('ci95'), n=row.get('units'), reason=row.get('reason'),
        )  # fmt: skip


def _of_model(model) -> Iterator[dict[str, Any]]:
    own = dict(part='statistics', kind='computed', n=model.get('n'), source=model.get('formula'))
    if model.get('reason'):
        yield own | dict(measure=model['name'], reason=model['reason'])
    for row in model.get('contrasts') or ():
        kept = {key: row.get(key) for key in ('ci95', 'p', 'p_holm')}
        yield own | kept | dict(system=row['a'], against=row['b'], measure=model['name'], value=row['estimate'])


def _published(scores) -> Iterator[dict[str, Any]]:
    names = {'s_t': 's_t', 's_e_human': 's_e', 's_o_human': 's_o'}
    for row in (found for dataset in scores['datasets'] for found in _rated(dataset)):
        own = dict(part='scores', kind='published', dataset=row.data_set, system=row.system, source=row.source)
        for name, value in row.metrics.items():
            if name in names:
                yield own | dict(measure=names[name], value=value)
    for part, rows in _shares(scores).items():
        for row in rows:
            own = dict(part=part, kind='published', dataset=row.data_set, system=row.system, source=row.source)
            for name, value in row.shares.items():
                yield own | dict(measure=name, value=value)


def _shares(scores) -> dict[str, list[published.Shares]]:
    """What was published of these data sets; the paper has shortcomings of its three together only."""
    whole = set(scores['datasets']) == set(published.DATA_SETS)
    return {
        'shares': [row for row in published.ratings() if row.data_set in scores['datasets']],
        'shortcomings': published.shortcomings() if whole else [],
    }
