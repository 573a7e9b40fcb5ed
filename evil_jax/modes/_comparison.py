"""Other systems to show beside a model: what `evaluate.compare` names.

An entry is 'label=path' of a scores.json (a model), of a sweep.json (runs of a model side by side), or of a work folder
that has one of them or both.
"""

import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evil_jax.metrics import protocol
from evil_jax.modes import _trials

SCORES = 'scores.json'
Rows = dict[str, dict[str, dict]]


class Others(NamedTuple):
    """What stands beside a model, by label.

    Attributes:
      scores: models, {protocol: {subset: {metric: {'value', ...}}}}: those protocols that were asked for and are there.
      sweeps: contents of sweep.json files.
    """

    scores: dict[str, dict[str, Rows]]
    sweeps: dict[str, _trials.Document]


def read(entries: Sequence[str], protocols: Sequence[str], expected: Sequence[pathlib.Path] = ()) -> Others:
    """Reads every file that is named.

    Args:
      entries: of `evaluate.compare`.
      protocols: whose scores are shown.
      expected: files that need not be there yet.

    Raises:
      ValueError: an entry of another form, or a file that is missing or not what it should be: it is named.
    """
    others = Others({}, {})
    for label, path in _named(entries, expected):
        if label in (others.sweeps if _is_sweep(path) else others.scores):
            raise ValueError(f'evaluate.compare has the label {label!r} twice')
        if _is_sweep(path):
            others.sweeps[label] = _trials.read(path)
        elif path.absolute() not in expected:
            others.scores[label] = read_scores(path, protocols)
    return others


def read_scores(path, protocols: Sequence[str]) -> dict[str, Rows]:
    """The scores of a model from a scores.json, of those protocols that it has.

    Raises:
      ValueError: names the file and what is wrong in it; it has none of the protocols.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f'{path}: there is no such file')
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    if not isinstance(document, Mapping) or document.get('schema') != 1:
        raise ValueError(f"{path}: not a scores.json: wanted an object with 'schema': 1")
    found = {name: document[name] for name in protocols if name in document}
    if not found:
        there = ', '.join(sorted(set(document) & set(protocol.PROTOCOLS))) or 'none'
        raise ValueError(f'{path}: wanted scores under {" or ".join(map(repr, protocols))}, found {there}')
    for name, scores in found.items():
        rows = scores.values() if isinstance(scores, Mapping) else [None]
        if not all(isinstance(r, Mapping) and all(_is_score(score) for score in r.values()) for r in rows):
            raise ValueError(f"{path}: wanted {{subset: {{metric: {{'value': number or null, ...}}}}}} under {name!r}")
    return found


def _is_score(row):
    if not isinstance(row, Mapping) or 'value' not in row:
        return False
    value, ci = row['value'], row.get('ci95')
    return (value is None or isinstance(value, int | float)) and (
        ci is None or (isinstance(ci, list) and len(ci) == 2 and all(isinstance(v, int | float) for v in ci))
    )


def _is_sweep(path):
    """A file of that name, or one whose content says so."""
    if path.name == _trials.NAME:
        return path.is_file()
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError):  # `read_scores` tells
        return False
    return isinstance(document, Mapping) and document.get('kind') == 'sweep'


def _named(entries, expected) -> Iterator[tuple[str, pathlib.Path]]:
    """(label, file) of each entry; of a folder the files in it."""
    for entry in entries:
        label, equals, text = entry.partition('=')
        label, path = label.strip(), pathlib.Path(text.strip())
        if not equals or not label or not text.strip():
            raise ValueError(f"evaluate.compare has {entry!r}, wanted 'label=path/to/{SCORES}' (or a {_trials.NAME})")
        if not path.is_dir():
            yield label, path
            continue
        files = [path / name for name in (SCORES, _trials.NAME) if (path / name).is_file()]
        if not files and not any(file.parent == path.absolute() for file in expected):
            raise ValueError(f'{path} (evaluate.compare, {label}) has neither {SCORES} nor {_trials.NAME}')
        yield from ((label, file) for file in files)
