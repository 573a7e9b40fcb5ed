"""Opening what `--mode=build` made: examples, region features, pictures. Neither JAX nor TensorFlow is imported."""

import functools
import json
import operator
import os
import pathlib
from collections.abc import Sequence

import ml_collections
import tensorflow_datasets as tfds

from evil_jax import compat, lookup, records
from evil_jax.data import features, pictures
from evil_jax.data.builders import _base
from evil_jax.data.differences import different
from evil_jax.records import Example

_DEV_IDS, _OBJECTS = 'data.dev_ids', 'data.objects'
_BACKBONE_INIT, _WEIGHTS = 'build.backbone_init', ('.safetensors', '.bin')
WAY_OUT = 'Choose another data.dir, or delete that folder to build it again'


def folder(config: ml_collections.ConfigDict) -> pathlib.Path:
    """Where the TFDS data set lies: `<data.dir>/tfds/<builder>/<version>`."""
    return pathlib.Path(config.data.dir) / 'tfds' / config.data.builder / str(_base.ExampleBuilder.VERSION)


def settings(config: ml_collections.ConfigDict) -> dict[str, object]:
    """The settings that decide what a build makes, as they stand in `<data.dir>/build.json`.

    A list of ids (`data.dev_ids`) stands there by its content: it may be moved.
    """
    names = ['builder', 'limit', 'missing_features', 'lowercase', *_builder(config).heeds]
    if config.data.answers == 'build':
        names.append('answers_min_count')
    if config.data.objects:  # their names are counted, and words of the vocabularies
        names.append('objects')
    if config.data.builder.startswith('shapes'):
        names += ['world_train', 'world_dev', 'world_test', 'world_container', 'seed']
    found = {f'data.{name}': config.data[name] for name in names}
    if (path := found.get(_DEV_IDS)) and os.path.isfile(path):
        found[_DEV_IDS] = f'sha256:{records.file_hash(path)}'
    if inputs(config) == 'regions':
        found |= {f'build.{name}': config.build[name] for name in ('threshold', 'min_regions', 'max_regions')}
    found |= backbone(config)
    quirk = compat.has(config, 5) and config.data.lowercase == 'auto'
    return found | {'lower-cased although the vocabulary is cased': quirk}


def backbone(config: ml_collections.ConfigDict) -> dict[str, object]:
    """The settings that decide what a network makes of the pictures; {} where features are read.

    Its weights stand there by their content, or as they are named where they are not on this machine.
    """
    if not config.build.backbone:
        return {}
    found = {f'build.{name}': config.build[name] for name in ('backbone', 'backbone_size', 'pixels', 'pooled')}
    path = pathlib.Path(config.build.backbone_init.partition(':')[2]).expanduser()
    files = sorted(p for p in path.iterdir() if p.suffix in _WEIGHTS) if path.is_dir() else [path]
    hashes = [_hash(p, p.stat().st_size, p.stat().st_mtime_ns) for p in files if p.is_file()]
    return found | {_BACKBONE_INIT: f'sha256:{"+".join(hashes)}' if hashes else config.build.backbone_init}


@functools.lru_cache
def _hash(path, size, changed) -> str:
    """Of a file that is asked for many times in a run; size and time only tell whether it is the same."""
    del size, changed
    return records.file_hash(path)


def heeded(config: ml_collections.ConfigDict) -> dict[str, object]:
    """The part of `config.data` that decided how the raw files of the built data set were read, by name."""
    found = built(config)['settings']
    return {name: found[f'data.{name}'] for name in _builder(config).heeds}


def marks(config: ml_collections.ConfigDict, split: str) -> dict[str, str]:
    """What beside the name of the data set decides what is right in a split, for the signature of scores.

    Args:
      split: of the built data set, or a slice of it.
    """
    return built(config).get('marks', {}).get(split.partition('[')[0], {})


def built(config: ml_collections.ConfigDict) -> dict[str, object]:
    """The content of build.json, after checking that it was made with these settings.

    A build without a limit also serves a smaller `data.limit`, and one with names of objects serves models that do not
    read them.

    Raises:
      ValueError: there is no finished build, or one with other settings (both values are named).
    """
    path = pathlib.Path(config.data.dir) / 'build.json'
    if not path.is_file():
        raise ValueError(
            f'no data set in {config.data.dir}: {path.name} is missing. Run --mode=build first, with this config'
        )
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
        found = document['settings']
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f'{path}: not what --mode=build writes: {error!r}') from error
    wanted = settings(config)
    limit, smaller = found.get('data.limit', 0), wanted['data.limit']
    if smaller and (not limit or limit >= smaller):
        wanted['data.limit'] = limit
    if not config.data.objects and _OBJECTS in found:
        wanted[_OBJECTS] = found[_OBJECTS]
    if (listed := config.data.dev_ids) and wanted.get(_DEV_IDS) == listed and found.get(_DEV_IDS):
        wanted[_DEV_IDS] = found[_DEV_IDS]  # the list is not here, so it is not compared
    if (named := config.build.backbone_init) and wanted.get(_BACKBONE_INIT) == named and found.get(_BACKBONE_INIT):
        wanted[_BACKBONE_INIT] = found[_BACKBONE_INIT]  # nor are the weights
    if differing := different(found, wanted):
        raise ValueError(f'{path.parent} was built with other settings: {"; ".join(differing)}. {WAY_OUT}')
    return document


class Examples(Sequence):
    """Random access to the examples of one split, in the order of the raw files; decoded one at a time.

    Picklable: a worker process that gets it opens the files again.
    """

    def __init__(self, path: pathlib.Path, split: str, limit: int = 0):
        self._source = tfds.builder_from_directory(path).as_data_source(split=split)
        self._length = min(len(self._source), limit or len(self._source))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index) -> Example:
        index = operator.index(index)
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(f'example {index} of {self._length}')
        return _base.decode(self._source[position])


def load_examples(config: ml_collections.ConfigDict, split: str) -> Examples:
    """Opens a split of the built data set.

    Args:
      config: `data.builder`, `data.dir` and `data.limit` are read.
      split: `train`, `dev`, `test`, or a slice such as `train[:10%]`.

    Raises:
      ValueError: the data set was not built, or was built with other settings; no such split; an empty split.
    """
    built(config)
    path = folder(config)
    if not (path / 'dataset_info.json').is_file():
        raise ValueError(f'no data set in {path}: run --mode=build first')
    try:
        examples = Examples(path, split, config.data.limit)
    except ValueError as error:
        have = ', '.join(tfds.builder_from_directory(path).info.splits)
        raise ValueError(f'no split {split!r} in {path}, which has: {have} ({error})') from error
    if not len(examples):
        raise ValueError(f'split {split!r} in {path} is empty')
    return examples


def open_store(config: ml_collections.ConfigDict):
    """The reader of the feature store that build made (see `evil_jax.data.features.open_features`)."""
    path = pathlib.Path(config.data.dir) / 'store'
    if not path.is_dir():
        raise ValueError(f'no feature store in {path}: run --mode=build first')
    return features.open_features(path)


def inputs(config: ml_collections.ConfigDict) -> str:
    """What a model reads beside or in place of a text: 'regions', 'pictures', or 'text' (nothing)."""
    return _builder(config).inputs


def open_inputs(config: ml_collections.ConfigDict):
    """What is looked up by an example's image id: the feature store, a reader of pictures (data/pictures.py), or None
    where texts are all that a model reads.

    Raises:
      ValueError: there is no store, or no pictures.
    """
    read = inputs(config)
    if read == 'regions':
        return open_store(config)
    if read == 'text':
        return None
    if config.data.images:
        return pictures.Pictures(images(config).path)
    return _builder(config).reader(raw_folder(config))


def images(config: ml_collections.ConfigDict) -> pictures.Images:
    """The pictures: `data.images`, or where that is empty the folder of pictures among the raw files (in
    `data.manual_dir` or `<data.dir>/raw`): `images`, of VCR also `vcr1images`. There may be none.

    Raises:
      ValueError: `data.images` is not a folder.
    """
    if config.data.images:
        path = pathlib.Path(config.data.images)
        if not path.is_dir():
            raise ValueError(f'data.images is {config.data.images!r}, which is not a folder')
        return pictures.Images(path)
    return pictures.Images(_builder(config).pictures(raw_folder(config)))


def raw_folder(config: ml_collections.ConfigDict) -> pathlib.Path:
    """Where the raw files are: `data.manual_dir`, or `<data.dir>/raw`."""
    return pathlib.Path(config.data.manual_dir or pathlib.Path(config.data.dir) / 'raw')


def _builder(config):
    return lookup.module('data/builders', config.data.builder).Builder
