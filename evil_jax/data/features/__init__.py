"""Region features: `open_features(path)[image_id] -> Regions`, whatever the container.

A container is one file in this folder that has `matches(path) -> bool` (looks at the path, reads at most a line),
`provenance(path)` (tells contents apart, without reading them all) and `Reader(path)` (a `regions.RegionReader`); the
first line of its docstring describes the format to users.
"""

import pathlib
from typing import Any

from evil_jax import lookup
from evil_jax.data.features import _unknown
from evil_jax.data.features.regions import RegionReader, Regions

__all__ = ['RegionReader', 'Regions', 'open_features', 'provenance']

_FOLDER = 'data/features'


def open_features(path) -> RegionReader:
    """Opens region features.

    Args:
      path: file or folder, or a URL that fsspec understands (`gs://...`), which is copied to a local cache first.

    Returns:
      A reader: `reader[image_id] -> Regions`, `image_id in reader`, `len(reader)`, `reader.ids()`,
      `reader.resolve(image_id)`. It may be pickled and used from several threads and processes.

    Raises:
      ValueError: nothing at this path, a format that no reader knows, or damaged content.
    """
    if '://' in str(path):
        path = lookup.module(_FOLDER, 'staging').stage(str(path))
    path = pathlib.Path(path)
    return _container(path).Reader(path)


def provenance(path) -> dict[str, Any]:
    """What `open_features(path).provenance()` says, found without opening: cheap also for the largest file.

    Raises:
      ValueError: nothing at this (local) path, or a format that no reader knows.
    """
    path = pathlib.Path(path).absolute()
    return _container(path).provenance(path)


def _container(path: pathlib.Path):
    """The module of a path's format."""
    if not path.exists():
        raise ValueError(f'{path}: no region features, the path does not exist')
    modules = [lookup.module(_FOLDER, name) for name in lookup.names(_FOLDER)]
    containers = [module for module in modules if hasattr(module, 'matches')]
    for container in containers:
        if container.matches(path):
            return container
    known = '; '.join(container.__doc__.splitlines()[0].rstrip('.') for container in containers)
    raise ValueError(f'{path}: not a known container of region features.{_unknown.what(path)} Known: {known}')
