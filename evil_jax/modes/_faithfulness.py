"""A protocol over several methods: how faithful is each? One table with intervals, one plot of the curves.

Below `<workdir>/attribute/<protocol>/`:

    meta.json          what decides the numbers: model, data, settings; another run there is refused
    <method>.npz       what was measured of each example, saved while it grows: an interrupted run goes on
    faithfulness.json  the table; .html, .csv, .md, .tex and .svg (the curves) of it
    details.json       everything that was computed of each method
    <method>.top<k>.jsonl   of rationales: the words picked, as ERASER's own metrics.py reads them
"""

import io
import json
import pathlib
import sys
import time
import zipfile

import jax
import numpy as np
import tqdm

from evil_jax import records
from evil_jax.modes import _explainer, _terminal
from evil_jax.pages import faithfulness
from evil_jax.training import checkpoint, sharding

_EVERY = 30  # seconds between two saves
_ARROWS = {'higher': '↑', 'lower': '↓'}


def run(config, folder: pathlib.Path, protocol, names, decoder, params, examples, reader, meta: dict) -> dict:
    """Measures every method on every example, and writes the table.

    Args:
      config: `attribute` is read.
      folder: of the results.
      protocol: see _protocols.py.
      names: of the methods.
      decoder, params: the model.
      examples, reader: of the split.
      meta: what decides the numbers.

    Returns:
      The document of faithfulness.json.

    Raises:
      ValueError: `folder` has results of other settings.
    """
    _check(folder, meta)
    found, listed, old = {}, [examples[i] for i in range(len(examples))], set(folder.glob('*.top*.jsonl'))
    for number, name in enumerate(names, 1):
        title = f'{name} ({number} of {len(names)})'
        explainer = _explainer.Explainer(decoder, config, name)
        rows = _measured(folder / f'{name}.npz', title, protocol, explainer, params, examples, reader)
        found[name] = protocol.finish(rows, listed)
        for file, lines in found[name].pop('files', {}).items():
            records.write_jsonl(folder / f'{name}.{file}', lines)
            old.discard(folder / f'{name}.{file}')
    document = {
        'title': protocol.TITLE,
        'protocol': config.attribute.evaluate,
        'model': f'{config.model.task.name} ({config.model.task.size})',
        'data': f'{config.data.builder}, {meta["split"]}',
        'n': len(examples),
        'settings': protocol.settings,
        'axes': dict(zip('xy', protocol.AXES)),
        'names': protocol.NAMES,
        'methods': {n: {key: value for key, value in one.items() if key != 'details'} for n, one in found.items()},
        'signature': _signature(meta),
    }
    for path in old:  # of other numbers of words, or of methods that are compared no more
        path.unlink()
    records.write_json(folder / 'details.json', {name: one['details'] for name, one in found.items()})
    records.write_json(folder / 'faithfulness.json', document)
    faithfulness.write_faithfulness(folder / 'faithfulness.html', document)
    return document


def show(document, names) -> None:
    """Prints some metrics: a row a method, with intervals."""
    there = {name for one in document['methods'].values() for name in one['metrics']}
    names = [name for name in names if name in there]
    rows = [
        (method, *(_cell(one['metrics'].get(name)) for name in names)) for method, one in document['methods'].items()
    ]
    columns = [f'{document["names"][name]} {_ARROWS[_better(document, name)]}' for name in names]
    _terminal.show(f'{document["title"]}: {document["data"]}, {document["n"]} examples', ('method', *columns), rows)


def _better(document, name) -> str:
    return next(one['metrics'][name]['better'] for one in document['methods'].values() if name in one['metrics'])


def _cell(metric) -> str:
    if metric is None or metric['value'] is None:
        return '-'
    interval = ' [{:.3f}, {:.3f}]'.format(*metric['ci95']) if metric.get('ci95') else ''
    return f'{metric["value"]:.3f}{interval}'


def _signature(meta) -> str:
    """One line that tells this run from others."""
    parts = checkpoint.leaves(meta)
    return '|'.join(f'{key}:{value}' for key, value in sorted(parts.items()) if value is not None and value != '')


def _check(folder, meta) -> None:
    path = folder / 'meta.json'
    meta = json.loads(json.dumps(meta))  # tuples become lists
    if not any(folder.glob('*.npz')):  # nothing was measured yet
        records.write_json(path, meta)
        return
    if not path.exists():
        raise ValueError(f'{folder} has results, but no {path.name} says what of. Move {folder} away')
    try:
        before = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise ValueError(f'{path}: not JSON: {error}. Move {folder} away') from error
    if faults := checkpoint.differences(checkpoint.leaves(before), checkpoint.leaves(meta)):
        raise ValueError(
            f'{folder} has results of other settings:\n  ' + '\n  '.join(faults) + f'\nMove {folder} away, or take '
            'another --workdir'
        )


def _measured(path, title, protocol, explainer, params, examples, reader) -> dict[str, np.ndarray]:
    """What was measured of each example by one method: {name: [N, ...]}; only what is missing is computed."""
    rows = _load(path)
    done = len(next(iter(rows.values()))) if rows else 0
    if done >= len(examples):
        print(f'{title}: {done} examples are there already', flush=True)
        return rows
    print(f'{title}: {len(examples)} examples' + (f', {done} of them are there already' if done else ''), flush=True)
    measure, mesh = protocol.measurer(explainer, params), explainer.decoder.mesh
    parts, saved, hidden = [rows] if rows else [], time.monotonic(), not sys.stderr.isatty()
    with tqdm.tqdm(total=len(examples), initial=done, unit='ex', desc=title, disable=hidden, dynamic_ncols=True) as bar:
        for batch in explainer.batches(examples, reader, done):
            with jax.set_mesh(mesh):
                values = jax.device_get(measure(sharding.place(batch, mesh)))
            real_B = batch['mask']
            parts.append({key: np.asarray(value)[real_B] for key, value in values.items()})
            bar.update(int(real_B.sum()))
            if time.monotonic() - saved > _EVERY:
                parts, saved = [_joined(parts)], time.monotonic()
                _save(path, parts[0])
    rows = _joined(parts)
    _save(path, rows)
    return rows


def _joined(parts: list[dict]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _save(path, rows) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, **rows)
    records.atomic_write(path, buffer.getvalue())


def _load(path) -> dict[str, np.ndarray]:
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as file:
            rows = dict(file)
        if len({len(values) for values in rows.values()}) != 1:
            raise ValueError(f'arrays of {[len(values) for values in rows.values()]} examples')
    except (OSError, ValueError, EOFError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f'{path}: not readable: {error}. Remove it to measure again') from error
    return rows
