"""Imports go down only (design 2): read from the sources, so that a lazy import counts as well."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / 'evil_jax'
FLOORS = [
    {'compat', 'config', 'lookup', 'ranges', 'records', 'text', 'stats'},
    {'nn', 'data', 'metrics'},
    {'pages'},
    {'models', 'human', 'counterfactual', 'construction'},
    {'tasks', 'decoding', 'attribution', 'interop'},
    {'training'},
    {'modes'},
    {'main'},
]
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}
WITHOUT_JAX = {'compat', 'config', 'lookup', 'ranges', 'records', 'text', 'stats', 'data', 'metrics', 'pages', 'main',
               'human', 'counterfactual', 'construction'}  # fmt: skip
JAX = {'jax', 'jaxlib', 'flax', 'optax', 'orbax'}
# What travels with an export is no part of the package: PyTorch reads it, somewhere else.
FILES = sorted(
    p
    for p in PACKAGE.rglob('*.py')
    if (p.name != '__init__.py' or p.parent != PACKAGE) and p.parent != PACKAGE / 'interop' / 'pytorch'
)


def imports(source: str):
    """Dotted names that a source imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield '.'
            elif node.module == 'evil_jax':
                yield from (f'evil_jax.{alias.name}' for alias in node.names)
            else:
                yield node.module


def faults(place: str, source: str) -> list[str]:
    """What is wrong with the imports of a file in folder or top-level module `place`."""
    found = []
    for name in imports(source):
        top, _, rest = name.partition('.')
        if name == '.':
            found.append('relative import')
        elif top in JAX and place in WITHOUT_JAX:
            found.append(f'{place} imports {name}: it must work without JAX')
        elif top == 'evil_jax' and rest:
            target = rest.split('.')[0]
            if target == '__version__' or target == place:
                continue
            if target not in FLOOR:
                found.append(f'{target} stands on no floor: add it to FLOORS')
            elif FLOOR[target] > FLOOR[place] or (FLOOR[target] == FLOOR[place] and FLOOR[place] > 0):
                found.append(f'{place} (floor {FLOOR[place]}) imports {target} (floor {FLOOR[target]})')
    return found


@pytest.mark.parametrize('path', FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path):
    place = path.relative_to(PACKAGE).parts[0].removesuffix('.py')
    assert place in FLOOR, f'{place} stands on no floor'
    assert faults(place, path.read_text()) == []


def test_the_check_finds_what_it_looks_for():
    assert faults('nn', 'from evil_jax.models import uniter')
    assert faults('metrics', 'def f():\n    from evil_jax import nn')
    assert faults('metrics', 'import jax.numpy as jnp')
    assert faults('tasks', 'from . import base')
    assert not faults('modes', 'from evil_jax import records\nfrom evil_jax.training import step\nimport jax')
