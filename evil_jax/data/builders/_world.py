"""What the world's three builders share: the truth behind its pictures and examples, put into `Example.extra`."""

import pathlib
from collections.abc import Iterator

from evil_jax.data.builders import _base
from evil_jax.data.sources import _files
from evil_jax.records import Example


def files(splits: dict[str, _base.Files], folder: pathlib.Path) -> dict[str, _base.Files]:
    """Adds scenes.jsonl and truth.jsonl to the files of each split."""
    for name in ('scenes.jsonl', 'truth.jsonl'):
        if not (folder / name).is_file():
            raise ValueError(f'{folder}: has no {name}, so it is not the built-in world')
    return {
        split: value | {'scenes': folder / 'scenes.jsonl', 'truth': folder / 'truth.jsonl'}
        for split, value in splits.items()
    }


def merge(examples: Iterator[Example], files: _base.Files) -> Iterator[Example]:
    """Puts the scene of the picture and the truth about the example into `extra`."""
    scenes, truth = _rows(files['scenes'], 'image_id'), _rows(files['truth'], 'id')
    for example in examples:
        for table, key, path in ((scenes, example.image_id, files['scenes']), (truth, example.id, files['truth'])):
            if key not in table:
                raise ValueError(f'{path}: has no row of {key!r}, which example {example.id!r} needs')
        scene = _files.field(scenes[example.image_id], 'scene', dict, f'{files["scenes"]}: row of {example.image_id!r}')
        extra = {'scene': scene} | truth[example.id]
        example.extra |= {name: value for name, value in extra.items() if name != 'id'}
        yield example


def _rows(path: pathlib.Path, key: str) -> dict[str, dict]:
    rows = {}
    for where, row in _files.iter_json(path):
        name = _files.filled(_files.checked(row, dict, where), key, where)
        if name in rows:
            raise ValueError(f'{where}: a row of {name!r} is there already')
        rows[name] = _files.plain(row, where)
    return rows
