"""A name is a file: `module('metrics', 'cider')` is `evil_jax/metrics/cider.py`; a typo lists the names that exist."""

import ast
import difflib
import functools
import importlib
import pathlib
import types

_ROOT = pathlib.Path(__file__).parent


def names(folder: str) -> list[str]:
    """Public names in a folder of the package (`'modes'`, `'data/builders'`): files and sub-packages, sorted."""
    path = _ROOT / folder
    files = [p.stem for p in path.glob('*.py')] + [p.parent.name for p in path.glob('*/__init__.py')]
    return sorted(n for n in files if not n.startswith('_'))


def defining(folder: str, function: str) -> list[str]:
    """Those of `names(folder)` whose file defines this function. Found in the source text: nothing is imported."""
    return [name for name in names(folder) if any(_named(node, function) for node in _body(folder, name))]


def keys(folder: str, name: str, table: str) -> list[str]:
    """Keys of the dictionary `table` that a file's top level assigns, found in its source text; [] without one."""
    for node in _body(folder, name):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and node.targets[0].id == table:
            return [key.value for key in node.value.keys]
    return []


def _body(folder, name):
    path = _ROOT / folder / f'{name}.py'
    return _parsed(path, path.stat().st_mtime_ns) if path.is_file() else []


@functools.cache
def _parsed(path, changed):
    del changed  # a file that is edited is another one
    return ast.parse(path.read_text(encoding='utf-8')).body


def _named(node, function):
    return isinstance(node, ast.FunctionDef) and node.name == function


def entry(table: dict, key: str, what: str):
    """`table[key]`. An unknown key raises ValueError that says `what` it is, the nearest key and all of them."""
    if key not in table:
        raise ValueError(f'{what} is {key!r}.{nearest(key, table)} There are: {", ".join(table)}')
    return table[key]


def nearest(name: str, existing) -> str:
    """' Did you mean X?' for the closest existing name, or an empty string."""
    close = difflib.get_close_matches(str(name), list(existing), n=1, cutoff=0.5)
    return f' Did you mean {close[0]!r}?' if close else ''


def module(folder: str, name: str) -> types.ModuleType:
    """Imports `evil_jax/<folder>/<name>.py`. Raises ValueError for a name that has no file."""
    existing = names(folder)
    if name not in existing:
        raise ValueError(f'no {name!r} in evil_jax/{folder}.{nearest(name, existing)} It has: {", ".join(existing)}')
    return importlib.import_module('.'.join(['evil_jax', *folder.split('/'), name]))
