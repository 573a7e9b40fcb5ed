"""Other systems to show beside a model: what `evaluate.compare` names."""

import json
import pathlib
from collections.abc import Mapping

from evil_jax.modes import _scoring


def read_scores(path, protocol: str = _scoring.PROTOCOL) -> dict[str, dict[str, dict]]:
    """The scores of a model from a scores.json; {} where it lacks a protocol other than the main one.

    Raises:
      ValueError: names the file and what is wrong in it.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f'{path}: there is no such file')
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    if not isinstance(document, Mapping) or document.get('schema') != 1 or _scoring.PROTOCOL not in document:
        raise ValueError(f"{path}: not a scores.json: wanted an object with 'schema': 1 and {_scoring.PROTOCOL!r}")
    scores = document.get(protocol, {})
    rows = scores.values() if isinstance(scores, Mapping) else [None]
    if not all(isinstance(r, Mapping) and all(_is_score(score) for score in r.values()) for r in rows):
        raise ValueError(f"{path}: wanted {{subset: {{metric: {{'value': number or null, ...}}}}}} under {protocol!r}")
    return scores


def _is_score(row):
    if not isinstance(row, Mapping) or 'value' not in row:
        return False
    value, ci = row['value'], row.get('ci95')
    return (value is None or isinstance(value, int | float)) and (
        ci is None or (isinstance(ci, list) and len(ci) == 2 and all(isinstance(v, int | float) for v in ci))
    )


def compared(entries):
    """(label, path) of each 'label=path'."""
    for entry in entries:
        label, equals, path = entry.partition('=')
        if not equals or not label.strip() or not path.strip():
            raise ValueError(f"evaluate.compare has {entry!r}, wanted 'label=path/to/scores.json'")
        yield label.strip(), path.strip()
