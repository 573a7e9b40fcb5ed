"""sweep.json: the points of a sweep with their scores, and what follows from them: means, comparisons, the best.

    {"schema": 1, "kind": "sweep", "model": "uniter + gpt2", "split": "dev", "select": "s_o_true",
     "grid": {key: [value, ...]}, "over": [key, ...], "config": {key: value, of what all points share}, "data_dir",
     "points": [{"name", "overrides", "status", "reason"?, "scores"?, "seconds", "steps", "data"?, "data_dir"}],
     "groups": [{"overrides", "names", "done", "scores": {name: {"mean", "sd", "n"}}}],
     "contrasts": [{"key", "values", "rows": [{"overrides", "scores": {name: {"first", "second", "difference"}}}]}],
     "best": {"overrides", "names", "flags", "mean", "sd", "n"} or null, "failed": 0}

A group has the points that differ in repetitions (`over`) only; sd is the sample's, null of a single value. A contrast
sets the two values of a key side by side; its difference, second minus first, is taken between points that agree in
everything else, so that what a seed does to both cancels out. Statuses: waiting, interrupted, done, diverged (a loss
that is not finite), failed (anything else).
"""

import json
import math
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.modes import _grid

NAME = 'sweep.json'
# What may differ between a sweep and its continuation: where it runs, how often it tells, and where files lie.
_FREE = (
    'sweep', 'mesh', 'sharding', 'build', 'predict', 'export', 'train.log_every', 'train.save_every', 'train.keep',
    'evaluate.report', 'evaluate.report_examples', 'evaluate.compare', 'evaluate.bootstrap', 'evaluate.trials',
    'evaluate.java', 'evaluate.pycocoevalcap', 'evaluate.corenlp', 'benchmark', 'decode.split',
    'data.workers', 'data.test', 'data.dir', 'data.manual_dir', 'data.features', 'data.images', 'data.word_vocab',
    'data.expl_vocab', 'data.answers',
)  # fmt: skip
_STATUSES = ('waiting', 'interrupted', 'done', 'diverged', 'failed')

Document = dict[str, Any]


def begin(path, config, grid: _grid.Grid, points: Sequence[_grid.Point]) -> Document:
    """The document to go on with: that of an earlier call, its points taken over, or a new one. Nothing is written.

    Args:
      path: of sweep.json; it may not exist.
      config, grid, points: of this sweep.

    Raises:
      ValueError: the file is of another sweep: every difference is named. More values of a key are none.
    """
    document = {
        'schema': 1,
        'kind': 'sweep',
        'model': ' + '.join(filter(None, (config.model.task.name, config.model.expl.name))),
        'split': _grid.split(config),
        'select': config.sweep.select,
        'grid': _plain(grid),
        'over': list(config.sweep.over),
        'config': _shared(config, grid),
        'data_dir': config.data.dir,
        'points': [
            {'name': p.name, 'overrides': _plain(p.overrides), 'status': 'waiting', 'seconds': 0.0, 'steps': 0}
            | {'data_dir': p.config.data.dir}
            for p in points
        ],
    }
    if pathlib.Path(path).exists():
        before = read(path)
        if found := _differences(before, document):
            raise ValueError(
                f'{path} is of another sweep; take a new --workdir or the same values (more values may be added):\n  '
                + '\n  '.join(found)
            )
        known = {point['name']: point for point in before['points']}
        now = ('overrides', 'data_dir')
        document['points'] = [known.get(p['name'], p) | {k: p[k] for k in now} for p in document['points']]
    return summarise(document)


def read(path) -> Document:
    """The content of a sweep.json.

    Raises:
      ValueError: names the file and what is wrong in it.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f'{path}: {"a folder, wanted a file" if path.is_dir() else "there is no such file"}')
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    if not isinstance(document, Mapping) or (document.get('schema'), document.get('kind')) != (1, 'sweep'):
        raise ValueError(f"{path}: not a sweep.json: wanted an object with 'schema': 1 and 'kind': 'sweep'")
    try:
        _check(document)
        return summarise(dict(document))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f'{path}: not as --mode=sweep writes it: {error!r}') from error


def summarise(document: Document) -> Document:
    """The document with groups, contrasts, best and failed computed from its points. Any missing score stays out."""
    points, over = document['points'], document['over']
    groups: dict[str, dict] = {}
    for point in points:
        overrides = {k: v for k, v in point['overrides'].items() if k not in over}
        group = groups.setdefault(json.dumps(overrides), {'overrides': overrides, 'points': []})
        group['points'].append(point)
    rows = [
        {
            'overrides': group['overrides'],
            'names': [point['name'] for point in group['points']],
            'done': sum(point['status'] == 'done' for point in group['points']),
            'scores': {name: spread(_values(group['points'], name)) for name in _names(group['points'])},
        }
        for group in groups.values()
    ]
    return document | {
        'groups': rows,
        'contrasts': [_contrast(document, key) for key in document['grid'] if _is_contrast(document, key)],
        'best': _best(document, rows),
        'failed': sum(point['status'] in ('diverged', 'failed') for point in points),
    }


def spread(values: Sequence[float]) -> dict[str, Any] | None:
    """{'mean', 'sd', 'n'} of numbers, sd of the sample (None of a single number); None of no number."""
    if not values:
        return None
    return {
        'mean': statistics.fmean(values),
        'sd': statistics.stdev(values) if len(values) > 1 else None,
        'n': len(values),
    }


def _names(points):
    return list(dict.fromkeys(name for point in points for name in point.get('scores', {})))


def _values(points, name):
    return [point['scores'][name] for point in points if name in point.get('scores', {})]


def _is_contrast(document, key):
    return key not in document['over'] and len(document['grid'][key]) == 2


def _contrast(document, key):
    """The two values of a key side by side: a row for each combination of the others that are no repetitions."""
    sides = document['grid'][key]
    rows: dict[str, dict] = {}
    for point in document['points']:
        others = {k: v for k, v in point['overrides'].items() if k != key}
        overrides = {k: v for k, v in others.items() if k not in document['over']}
        row = rows.setdefault(json.dumps(overrides), {'overrides': overrides, 'sides': ({}, {})})
        row['sides'][sides.index(point['overrides'][key])][json.dumps(others)] = point
    return {
        'key': key,
        'values': sides,
        'rows': [{'overrides': row['overrides'], 'scores': _beside(*row['sides'])} for row in rows.values()],
    }


def _beside(first, second):
    names = _names([*first.values(), *second.values()])
    found = {}
    for name in names:
        a, b = (
            {k: p['scores'][name] for k, p in side.items() if name in p.get('scores', {})} for side in (first, second)
        )
        found[name] = {
            'first': spread(list(a.values())),
            'second': spread(list(b.values())),
            'difference': spread([b[k] - a[k] for k in a if k in b]),
        }
    return found


def _best(document, groups):
    """The group with the highest mean. One with a repetition that failed wins only where all have one."""
    scored = [g for g in groups if document['select'] in g['scores']]
    if not scored:
        return None
    best = max(scored, key=lambda g: (g['done'] == len(g['names']), g['scores'][document['select']]['mean']))
    folder = next(point['data_dir'] for point in document['points'] if point['name'] == best['names'][0])
    elsewhere = {} if folder == document['data_dir'] else {'data.dir': folder}
    return {
        'overrides': best['overrides'],
        'names': best['names'],
        'flags': _grid.flags(best['overrides'] | elsewhere),
        **best['scores'][document['select']],
    }


def _shared(config, grid):
    """The config but for what the grid varies and what may differ."""
    return {
        key: value
        for key, value in _grid.leaves(_plain(config.to_dict())).items()
        if key not in grid and not any(key == free or key.startswith(f'{free}.') for free in _FREE)
    }


def _differences(before, now):
    found = [] if before['split'] == now['split'] else [f'split: {before["split"]!r} there, {now["split"]!r} here']
    for key in sorted(before['grid'].keys() | now['grid'].keys()):
        there, here = before['grid'].get(key), now['grid'].get(key)
        if there is None or here is None:
            found.append(f'grid, {key}: {there or "(absent)"} there, {here or "(absent)"} here')
        elif gone := [value for value in there if value not in here]:
            found.append(f'grid, {key}: {", ".join(map(repr, gone))} there, not here')
    varied = before['grid'].keys() | now['grid'].keys()
    before = before | {'config': _shared(config_lib.base(), {}) | before['config']}  # younger keys have their defaults
    for key in sorted((before['config'].keys() | now['config'].keys()) - varied):
        there, here = (document['config'].get(key, '(absent)') for document in (before, now))
        if there != here:
            found.append(f'{key}: {there!r} there, {here!r} here')
    return found


def _check(document):
    """Raises an error of any kind where something is missing."""
    for key, kind in {
        'model': str,
        'split': str,
        'select': str,
        'grid': dict,
        'over': list,
        'config': dict,
        'data_dir': str,
    }.items():
        if not isinstance(document[key], kind):
            raise TypeError(f'{key} is {document[key]!r}, wanted {kind.__name__}')
    for point in document['points']:
        if point['status'] not in _STATUSES or not isinstance(point['name'], str):
            raise ValueError(f'status {point["status"]!r}')
        if point['overrides'].keys() != document['grid'].keys():
            raise ValueError(f'overrides of {point["name"]}')
        if any(value not in document['grid'][key] for key, value in point['overrides'].items()):
            raise ValueError(f'overrides of {point["name"]}')
        numbers = [point['seconds'], point['steps'], *point.get('scores', {}).values()]
        if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
            raise ValueError(f'numbers of {point["name"]}')
        if not isinstance(point['data_dir'], str):
            raise ValueError(f'data_dir of {point["name"]}')


def _plain(value):
    return json.loads(json.dumps(value))


def write(path, document: Document) -> None:
    """Writes sweep.json, atomically."""
    records.write_json(path, document)
