"""The points of a sweep: every combination of overrides, each with a name and a config of its own."""

import copy
import hashlib
import itertools
import pathlib
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from evil_jax import config as config_lib
from evil_jax import lookup
from evil_jax.data import load

_EXAMPLE = "for example (('optim.lr', (1e-05, 2e-05)), ('seed', (0, 1, 2)))"
# What a sweep decides itself, or what no point reads.
_NOT_SWEPT = (
    'sweep', 'export', 'predict', 'evaluate', 'decode.split', 'decode.checkpoint', 'decode.task_checkpoint', 'data.dir',
)  # fmt: skip
# These decide what is built, beside what `load.settings` names.
_SOURCES = ('data.manual_dir', 'data.features', 'data.word_vocab', 'data.expl_vocab', 'data.answers')
_LONGEST = 150  # characters of a folder's name

Grid = dict[str, tuple]


class Point(NamedTuple):
    """One run of a sweep.

    Attributes:
      name: of its folder in the work folder; depends on the overrides only.
      overrides: {key: value}, in the order of the grid.
      config: of its run.
    """

    name: str
    overrides: dict[str, Any]
    config: Any


def read(config) -> Grid:
    """`sweep.grid` as {key: values of the key's type}, checked together with `sweep.over`.

    Raises:
      ValueError: no grid, or one of another form; a key that does not exist (the nearest is named), that is repeated or
        cannot be swept; values of another type or repeated ones; repetitions that are not in the grid.
    """
    pairs, known = config.sweep.grid, leaves(config)
    if not pairs:
        raise ValueError(f'config.sweep.grid is empty; {_EXAMPLE}')
    grid: Grid = {}
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ValueError(f'config.sweep.grid has {pair!r}, wanted (key, (value, ...)) pairs in a tuple, {_EXAMPLE}')
        key, values = pair
        if key not in known:
            section = [name for name in known if name.startswith(f'{key}.')]
            hint = f' It is a section: {", ".join(section[:5])} ...' if section else lookup.nearest(key, known)
            raise ValueError(f'config.sweep.grid has {key!r}, which is no key of the config.{hint}')
        if any(key == name or key.startswith(f'{name}.') for name in _NOT_SWEPT):
            raise ValueError(f'config.sweep.grid has {key!r}, which a sweep sets itself or which changes no score')
        if key in grid:
            raise ValueError(f'config.sweep.grid has {key!r} twice')
        if not isinstance(values, tuple | list) or not values:
            raise ValueError(f'config.sweep.grid has {values!r} for {key!r}, wanted a tuple of values, {_EXAMPLE}')
        grid[key] = tuple(_typed(key, value, known[key]) for value in values)
        if repeated := [v for i, v in enumerate(grid[key]) if v in grid[key][:i]]:
            raise ValueError(f'config.sweep.grid has {key}={repeated[0]!r} twice')
    for key in config.sweep.over:
        if key not in grid:
            raise ValueError(
                f'config.sweep.over has {key!r}, which is not in the grid.{lookup.nearest(key, grid)} '
                f'It has: {", ".join(grid)}'
            )
    return grid


def points(config, grid: Grid) -> list[Point]:
    """Every combination, the last key varying fastest, with a valid config.

    Where combinations need data sets of their own, `data.dir` gets their values as a suffix.

    Args:
      config: of the sweep.
      grid: of `read`.

    Raises:
      ValueError: a combination that is no valid config (it is named), or settings that no point can have.
    """
    for key in (
        'evaluate.predictions',
        'evaluate.references',
        'evaluate.systems',
        'evaluate.ratings',
        'evaluate.check',
    ):
        if value := leaves(config)[key]:
            raise ValueError(f'config.{key} is {value!r}, but every point of a sweep scores its own predictions')
    if config.decode.checkpoint not in ('best', 'latest'):
        raise ValueError(
            f'config.decode.checkpoint is {config.decode.checkpoint!r}, but every point of a sweep decodes its own: '
            "wanted 'best' or 'latest'"
        )
    if config.decode.task_checkpoint:
        raise ValueError(
            f'config.decode.task_checkpoint is {config.decode.task_checkpoint!r}, but every point of a sweep answers '
            "with its own M_T: wanted ''"
        )
    base, found = load.settings(config), []
    for values in itertools.product(*grid.values()):
        overrides = dict(zip(grid, values))
        try:
            one = _config_of(config, overrides, base)
        except ValueError as error:
            raise ValueError(f'the point {name(overrides)} of the sweep: {error}') from error
        found.append(Point(name(overrides), overrides, one))
    assert len({point.name for point in found}) == len(found)
    return found


def split(config) -> str:
    """The split that points are scored on."""
    return config.sweep.split or config.data.dev


def name(overrides: Mapping[str, Any]) -> str:
    """A readable name for a folder: 'lr-1e-05,seed-0'. It does not depend on the order of the keys."""
    parts = [f'{short(key, overrides)}-{_text(value)}' for key, value in sorted(overrides.items())]
    whole = ','.join(parts)
    return whole if len(whole) <= _LONGEST else f'{whole[:_LONGEST]}-{_hash(whole)}'


def short(key: str, among) -> str:
    """The end of a key that no other of these keys has: 'lr' of 'optim.lr'."""
    parts = key.split('.')
    ends = ['.'.join(parts[-n:]) for n in range(1, len(parts) + 1)]
    return next((end for end in ends if not any(k != key and f'.{k}'.endswith(f'.{end}') for k in among)), key)


def flags(overrides: Mapping[str, Any]) -> str:
    """The overrides as they are typed in a shell."""
    return ' '.join(shlex.quote(f'--config.{key}={value}') for key, value in overrides.items())


def leaves(tree) -> dict[str, Any]:
    """{'optim': {'lr': 1e-05}} -> {'optim.lr': 1e-05}, of a config or a dictionary."""
    found = {}
    for key, value in tree.items():
        below = leaves(value) if hasattr(value, 'items') else None
        found |= {key: value} if below is None else {f'{key}.{rest}': leaf for rest, leaf in below.items()}
    return found


def _config_of(config, overrides, base):
    made = _override(config, overrides)
    made.sweep = config_lib.base().sweep  # what other points there are is not part of a run
    made.decode.split = split(config)
    made.evaluate.update(split='', compare=())
    config_lib.validate(made)
    if own := {k: v for k, v in overrides.items() if _needs_another_build(config, k, v, base)}:
        made.data.dir = f'{config.data.dir}-{name(own)}'
        if not config.data.manual_dir and lookup.module('data/builders', made.data.builder).Builder.form is None:
            made.data.manual_dir = str(pathlib.Path(config.data.dir) / 'raw')  # the user's files are not copied
    return made


def _needs_another_build(config, key, value, base):
    if key in _SOURCES:
        return value != leaves(config)[key]
    return load.settings(_override(config, {key: value})) != base


def _override(config, overrides):
    made = copy.deepcopy(config)
    made.update_from_flattened_dict(overrides)
    return made


def _typed(key, value, like):
    if isinstance(like, float) and type(value) is int:
        return float(value)
    if isinstance(like, tuple) and isinstance(value, tuple | list):
        return _tuple(value)
    if type(value) is not type(like):
        raise ValueError(f'config.sweep.grid has {key}={value!r}, wanted {type(like).__name__}, for example {like!r}')
    return value


def _tuple(value):
    return tuple(_tuple(v) for v in value) if isinstance(value, tuple | list) else value


def _text(value) -> str:
    """A value as part of a file name; what the name does not hold stands in it as a hash."""
    text = str(value)
    safe = re.sub(r'[^A-Za-z0-9_.+-]+', '-', text)[:40] or 'empty'
    return safe if safe == text else f'{safe}-{_hash(text)}'


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:6]
