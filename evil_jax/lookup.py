"""A name is a file: `module('metrics', 'cider')` is `evil_jax/metrics/cider.py`; a typo lists the names that exist."""

import difflib
import importlib
import pathlib
import types

_ROOT = pathlib.Path(__file__).parent


def names(folder: str) -> list[str]:
    """Public names in a folder of the package (`'modes'`, `'data/builders'`): files and sub-packages, sorted."""
    path = _ROOT / folder
    files = [p.stem for p in path.glob('*.py')] + [p.parent.name for p in path.glob('*/__init__.py')]
    return sorted(n for n in files if not n.startswith('_'))


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
