"""Scores and shares of a human study as booktabs tables, in percent."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.human import study
from evil_jax.metrics import published
from evil_jax.pages import escaping, metric_names

_ALL = 'all'
_KEYS = ('s_o', 's_t', 's_e')
_PUBLISHED = {'s_o': 's_o_human', 's_t': 's_t', 's_e': 's_e_human'}
_HEADS = {'s_o': '$S_O$', 's_t': '$S_T$', 's_e': '$S_E$'}
_SHARES = {
    'shares': (study.RATINGS, 'Ratings of explanations, in percent.'),
    'shortcomings': (
        study.SHORTCOMINGS,
        'What raters found wanting, in percent of their ratings; several may be said of one explanation.',
    ),
}
_CAPTION = (
    'How good explanations are to people, in percent. $S_E$: mean rating (yes 1, weak yes 2/3, weak no 1/3, no 0) of '
    r'the explanations of right answers; $S_T$: how often answers are right; $S_O = S_T \cdot S_E$.'
)


def systems(scores: Mapping[str, Any], others: Mapping[str, Sequence[published.Published]]) -> str:
    """A row for each system, S_O, S_T and S_E of each data set; before them, where there are several, the mean of S_E.

    Args:
      scores: of `scores.summary`.
      others: {data set: published rows}.
    """
    datasets = list(scores['datasets'])
    ours: dict[str, dict[str, Mapping[str, float]]] = {}
    for row in scores['scores']:
        ours.setdefault(row['system'], {})[row['dataset']] = row
    theirs: dict[str, dict[str, Mapping[str, float]]] = {}
    for name in datasets:
        for row in others[name]:
            theirs.setdefault(row.system, {})[name] = {key: row.metrics.get(of) for key, of in _PUBLISHED.items()}
    for found in theirs.values():
        values = [found.get(name, {}).get('s_e') for name in datasets]
        found[_ALL] = {'s_e': None if None in values else sum(values) / len(values)}

    overall = [_ALL] if len(datasets) > 1 else []
    places = [*((name, 's_e') for name in overall), *((name, key) for name in datasets for key in _KEYS)]
    cells = lambda system, found: [system, *(_percent(found.get(name, {}).get(key)) for name, key in places)]
    over = [rf'\multicolumn{{3}}{{c}}{{{escaping.tex(metric_names.data_set(name))}}}' for name in datasets]
    starts = range(2 + len(overall), 2 + len(places), 3)
    head = [
        ' & '.join(['', *overall, *over]) + r' \\',
        ''.join(rf'\cmidrule(lr){{{start}-{start + 2}}}' for start in starts),
        ' & '.join(['system', *(_HEADS[key] for _, key in places)]) + r' \\',
    ]
    rows = [cells(_system(name), ours.get(name, {})) for name in (*scores['systems'], study.GOLD)]
    told = f'{_CAPTION} The first column is the mean over the data sets.' if overall else _CAPTION
    return _table(head, 1, rows, [cells(name, found) for name, found in theirs.items()], told)


def shares(scores: Mapping[str, Any], part: str, others: Sequence[published.Shares]) -> str:
    """A row for each data set and system; `part` is 'shares' (of the four ratings) or 'shortcomings'."""
    names, caption = _SHARES[part]
    cells = lambda dataset, system, found: [
        metric_names.data_set(dataset), system, *(_percent(found.get(name)) for name in names)
    ]  # fmt: skip
    rows = [
        cells(row['dataset'], _system(row['system']), row[part])
        for row in scores['scores']
        if row.get(part) and (row['dataset'] != _ALL or len(scores['datasets']) > 1)
    ]
    head = ' & '.join(['data set', 'system', *(name.replace('_', ' ') for name in names)]) + r' \\'
    return _table([head], 2, rows, [cells(row.data_set, row.system, row.shares) for row in others], caption)


def _table(head, texts, rows, theirs, caption) -> str:
    """A table; the head and the caption are TeX, cells anybody's text, the first `texts` of each row to the left."""
    width = head[-1].count('&') + 1
    line = lambda cells: ' & '.join(map(escaping.tex, cells)) + r' \\'
    out = [r'\begin{table}', r'\centering', rf'\begin{{tabular}}{{{"l" * texts}{"r" * (width - texts)}}}', r'\toprule']
    out += [*head, r'\midrule', *map(line, rows)]
    if theirs:
        told = 'published (Kayser et al., 2021), not rated here'
        out += [r'\midrule', rf'\multicolumn{{{width}}}{{l}}{{{told}}} \\', *map(line, theirs)]
    return '\n'.join([*out, r'\bottomrule', r'\end{tabular}', rf'\caption{{{caption}}}', r'\end{table}'])


def _system(name):
    return 'gold explanations' if name == study.GOLD else name


def _percent(value):
    return '--' if value is None else f'{100 * value:.1f}'
