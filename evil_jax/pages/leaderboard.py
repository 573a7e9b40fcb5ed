"""Systems beside each other: leaderboards with intervals and tests, published numbers, scatter, agreement with people.

A comparison is plain data; everything that is not listed as optional must be there. All text is untrusted.

```
{'protocols': [one each, the main one first:
   {'name': 'evil',
    'about': a sentence on what the protocol does,
    'rows': [fields of metrics.significance.Row as a dict: system, metric, subset, value, reason, runs, sd, n, total,
             ci95, delta, delta_ci95, p_bootstrap, p_randomisation, p_holm, tested, untested; the first system is the
             baseline],
    'signatures': {system: {score name: signature}}, of 'main',
    'signatures_all': optional, the same of 'all'}],
 'published': optional [fields of metrics.published.Published as a dict],
 'meanings': optional {protocol of published rows: what it means},
 'settings': optional {'bootstrap': resamples, 'trials': of randomisation, 'seed': ...},
 'points': optional {'ids': [N example ids], 'values': {system: {score name: [N numbers or None]}}}, for the scatter,
 'human': optional [{'metric', 'data_set', 'rho', 'ci95', 'p', 'n', 'source', 'significant'}], how metrics agree with
          ratings; all but the first three may be None or missing}
```

Subsets of rows: 'main' (s_* and accuracies over all examples, metrics of explanations over right answers, as papers
report them) and 'all' (everything over all examples) make a board each; others are left out.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evil_jax.pages import metric_names, signatures

MOST_POINTS = 2_000  # examples in the scatter
SIGNIFICANT = 0.05
_SETS = {'main': 'correct', 'all': 'all'}  # subset of ours -> set of published rows
_TITLES = {'main': 'explanations of right answers', 'all': 'explanations of all answers'}
_TASK = ('s_', 'accuracy', 'vqa_')
# What readers look for stands first, then the score that ranks.
_FIRST = ('s_t', 'bleu4', 'meteor', 'rouge_l', 'cider', 'spice', 'bertscore')


def boards(comparison: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One board for each protocol and set of examples that has rows.

    Returns:
      `{'protocol', 'about', 'subset', 'title', 'metrics': [score names], 'ranked': the score that ranks the systems,
      'baseline': system, 'rows': [{'system', 'baseline': bool, 'runs', 'n': examples whose explanations are scored,
      'total', 'cells': {score name: row of the comparison}}], 'published': [as `merged` gives], 'signatures': {system:
      {score name: signature}}}`; rows are in the order of the ranking score, highest first. Published rows are those of
      the same protocol and set only.
    """
    made = []
    for protocol in comparison['protocols']:
        for subset, of in _SETS.items():
            rows = [r for r in protocol['rows'] if r['subset'] == subset]
            # Without answers nothing is known of the right ones: such a board would be empty.
            if any(r['value'] is not None for r in rows):
                made.append(_board(protocol, subset, rows, _of(comparison, protocol['name'], of)))
    return made


def merged(published: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one system under one protocol and set are put together, as far as they have no score in common.

    Returns:
      `[{'system', 'protocol', 'set', 'metrics', 'unverified': score names, 'source', 'note'}]`.
    """
    found = []
    for row in published:
        doubtful = list(row['metrics']) if not row['verified'] else list(row.get('unverified', ()))
        key = [row[k] for k in ('system', 'protocol', 'set')]
        same = next(
            (f for f in found if f['key'] == key and not f['metrics'].keys() & row['metrics'].keys()),
            None,
        )
        if same is None:
            same = dict(key=key, system=key[0], protocol=key[1], set=key[2])
            same |= dict(metrics={}, unverified=[], source=[], note=[])
            found.append(same)
        same['metrics'] |= row['metrics']
        same['unverified'] += doubtful
        for name in ('source', 'note'):
            if row.get(name) and row[name] not in same[name]:
                same[name].append(row[name])
    for row in found:
        del row['key']
        row |= {name: '; '.join(row[name]) for name in ('source', 'note')}
    return found


def section(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """What templates/_comparison.html.j2 shows."""
    made = boards(comparison)
    beside = {(b['protocol'], _SETS[b['subset']]) for b in made}
    elsewhere = merged([p for p in comparison.get('published', ()) if (p['protocol'], p['set']) not in beside])
    elsewhere += [row for board in made for row in board['published'] if not _leading(board, row)]
    names = _columns({m for row in elsewhere for m in row['metrics']}, 's_o_human')
    meanings = comparison.get('meanings') or {}
    return {
        'boards': [_shown(board) for board in made],
        'elsewhere': {
            'metrics': [metric_names.name(m) for m in names],
            'rows': [published_row(row, names) for row in elsewhere],
            'sources': sources(elsewhere),
            'meanings': {p: meanings[p] for p in dict.fromkeys(r['protocol'] for r in elsewhere) if p in meanings},
        },
        'settings': {'bootstrap': 0, 'trials': 0} | dict(comparison.get('settings') or {}),
        'human': people(comparison.get('human') or ()),
        'tested': sorted({c['tested'] for b in made for row in b['rows'] for c in row['cells'].values()} - {''}),
    }


def data(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """What the scatter draws: `{'clouds': [{'name', 'labels', 'values': {score: [...]}}], 'names', 'note'}`.

    A cloud is the systems under one protocol and set, or the examples of one system, at most `MOST_POINTS` of them.
    """
    clouds = []
    for board in boards(comparison):
        values = {m: [_number(row['cells'].get(m)) for row in board['rows']] for m in board['metrics']}
        name = f'systems, protocol {board["protocol"]}, {board["title"]}'
        clouds.append({'name': name, 'labels': [row['system'] for row in board['rows']], 'values': values})
    points = comparison.get('points') or {'ids': [], 'values': {}}
    total = len(points['ids'])
    step = max(1, math.ceil(total / MOST_POINTS))
    for system, columns in points['values'].items():
        for name, column in columns.items():
            if len(column) != total:
                raise ValueError(f'scatter of {system!r}: {len(column)} values of {name} for {total} ids')
        values = {name: [_rounded(v) for v in column[::step]] for name, column in columns.items()}
        clouds.append({'name': f'examples of {system}', 'labels': list(points['ids'][::step]), 'values': values})
    names = ordered(dict.fromkeys(m for cloud in clouds for m in cloud['values']))
    shown = len(points['ids'][::step])
    return {
        'clouds': [cloud for cloud in clouds if cloud['labels']],
        'names': {m: metric_names.name(m) for m in names},
        'note': f'{shown:,} of {total:,} examples are drawn.' if shown < total else '',
    }


def p_text(p: float | None) -> str:
    """'0.032', '<0.001'; '' of None."""
    if p is None:
        return ''
    return '<0.001' if p < 0.001 else f'{p:.3f}'


def _of(comparison, protocol, of):
    return [p for p in comparison.get('published', ()) if p['protocol'] == protocol and p['set'] == of]


def _board(protocol, subset, rows, published):
    systems = list(dict.fromkeys(r['system'] for r in rows))
    cells = {s: {r['metric']: r for r in rows if r['system'] == s} for s in systems}
    metrics = ordered(dict.fromkeys(r['metric'] for r in rows if r['value'] is not None))
    ranked = _ranked(metrics)
    given = protocol.get('signatures' if subset == 'main' else 'signatures_all') or {}
    entries = [
        {
            'system': system,
            'baseline': system == systems[0],
            'runs': max(r['runs'] for r in cells[system].values()),
            'n': next((r['n'] for m, r in cells[system].items() if not m.startswith(_TASK)), None),
            'total': max(r['total'] for r in cells[system].values()),
            'cells': cells[system],
        }
        for system in systems
    ]
    entries.sort(key=lambda entry: -_height(entry['cells'].get(ranked)))
    return {
        'protocol': protocol['name'],
        'about': protocol.get('about', ''),
        'subset': subset,
        'title': _TITLES[subset],
        'metrics': _columns(metrics, ranked),
        'ranked': ranked,
        'baseline': systems[0],
        'rows': entries,
        'published': merged(published),
        'signatures': {s: {m: given.get(s, {}).get(m, '') for m in metrics} for s in systems},
    }


def ordered(metrics: Iterable[str]) -> list[str]:
    """In reading order, the names that say what is missing right after the whole ones."""
    known = {name: i for i, name in enumerate(metric_names.NAMES)}
    return sorted(metrics, key=lambda m: (known.get(m.partition('_without_')[0], len(known)), m))


def _first(ranked):
    return [*_FIRST, ranked.replace('s_o_', 's_e_'), ranked]


def _columns(metrics, ranked):
    return list(dict.fromkeys([*[m for m in _first(ranked) if m in metrics], *ordered(metrics)]))


def _leading(board, row):
    """Whether a published row has one of the scores that stand first."""
    return any(m in row['metrics'] for m in _first(board['ranked']))


def _ranked(metrics):
    for kind in ('human', 'true', 'auto', 'auto_without_', 'fast'):
        for metric in metrics:
            if metric == f's_o_{kind}' or (kind.endswith('_') and metric.startswith(f's_o_{kind}')):
                return metric
    return next(iter(metrics), '')


def _height(row):
    value = row and row['value']
    return -math.inf if value is None else value


def _number(row):
    return None if row is None else _rounded(row['value'])


def _rounded(value):
    """JSON has no NaN, and four digits are more than a picture shows."""
    return None if value is None or not math.isfinite(value) else round(float(value), 4)


def _shown(board):
    """A board with its cells as texts."""
    metrics = board['metrics']
    published = [row for row in board['published'] if _leading(board, row)]
    extra = [m for row in published for m in row['metrics'] if m not in metrics]
    columns = _columns([*metrics, *extra], board['ranked'])
    rows = [
        {
            'system': row['system'],
            'baseline': row['baseline'],
            'runs': row['runs'],
            'scored': '' if row['n'] is None else f'{row["n"]:,.10g} of {row["total"]:,}',
            'cells': [_cell(row['cells'].get(m)) for m in columns],
        }
        for row in board['rows']
    ]
    return board | {
        'columns': [(metric_names.name(m), m == board['ranked']) for m in columns],
        'rows': rows,
        'published': [published_row(row, columns) for row in published],
        'sources': sources(published),
        'details': signatures.told(board['signatures']),
    }


def _cell(row):
    if row is None:
        return {'text': '', 'reason': None, 'value': '', 'p': '', 'delta': ''}
    value, ci = row['value'], row.get('ci95')
    if value is None:
        return {'text': '', 'reason': row.get('reason') or 'not computed', 'value': '', 'p': '', 'delta': ''}
    p, sd = row.get('p_holm'), row.get('sd')
    ends = row.get('delta_ci95')
    about = [f'n = {row["n"]:,.10g}']
    if ends:
        about.append(f'difference {ends[0]:+.3f} to {ends[1]:+.3f}')
    for name in ('bootstrap', 'randomisation'):
        if row.get(f'p_{name}') is not None:
            about.append(f'p by {name} {p_text(row[f"p_{name}"])}, not corrected')
    if row.get('untested'):
        about.append(row['untested'])
    return {
        'text': f'{value:.3f}',
        'value': repr(float(value)),
        'reason': None,
        'ci': f'{ci[0]:.3f} to {ci[1]:.3f}' if ci else '',
        'sd': f'± {sd:.3f}' if sd is not None else '',
        'delta': '' if row.get('delta') is None else f'{row["delta"]:+.3f}',
        'p': p_text(p),
        'significant': p is not None and p < SIGNIFICANT,
        'about': '; '.join(about),
    }


def published_row(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """A row of `merged` with its cells as texts, in the order of score names."""
    cells = []
    for metric in columns:
        value = row['metrics'].get(metric)
        text = '' if value is None else f'{value:.3f}'
        cells.append(
            {'text': text, 'value': '' if value is None else repr(value), 'sure': metric not in row['unverified']}
        )
    unsure = len(set(row['unverified'])) == len(row['metrics'])
    facts = {k: row[k] for k in ('system', 'protocol')}
    of = {'correct': 'right answers', 'all': 'all answers'}.get(row['set'], 'not stated')
    return facts | {'cells': cells, 'unverified': unsure, 'of': of}


def sources(published: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(source and note, the systems that it is of) of rows as `merged` gives them."""
    found = {}
    for row in published:
        text = row['source'] + (f' ({row["note"]})' if row['note'] else '')
        found.setdefault(text, []).append(row['system'])
    return [(text, ', '.join(dict.fromkeys(systems))) for text, systems in found.items()]


def people(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How metrics agree with ratings, the field 'human' of a comparison, as a table of metrics by data sets."""
    sets = list(dict.fromkeys(row['data_set'] for row in rows))
    found = {}
    for row in rows:
        ci = row.get('ci95')
        facts = [
            f'{ci[0]:.3f} to {ci[1]:.3f}' if ci else '',
            f'p {p_text(row.get("p"))}' if row.get('p') is not None else '',
            f'n = {row["n"]:,}' if row.get('n') is not None else '',
            'n.s.' if row.get('significant') is False else '',
        ]
        cell = {
            'text': '' if row['rho'] is None else f'{row["rho"]:.3f}',
            'facts': ', '.join(f for f in facts if f),
        }
        key = row['metric'], row.get('source') or ''
        found.setdefault(key, {})[row['data_set']] = cell
    empty = {'text': '', 'facts': ''}
    order = ordered(dict.fromkeys(metric for metric, _ in found))
    keys = sorted(found, key=lambda key: (bool(key[1]), order.index(key[0])))
    return {
        'sets': sets,
        'sources': [(s, 'published') for s in dict.fromkeys(source for _, source in keys) if s],
        'rows': [(metric_names.name(m), source, [found[m, source].get(s, empty) for s in sets]) for m, source in keys],
    }
