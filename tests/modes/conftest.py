"""`toy` (tests/modes/toy.py as a module), `toy_run`, a run of it on disk, and `shown`, rows of tables."""

import importlib.util
import pathlib
import sys

import pytest

from evil_jax.modes import _terminal

FILE = pathlib.Path(__file__).parent / 'toy.py'


@pytest.fixture(scope='session')
def toy():
    if 'modes_toy' not in sys.modules:
        spec = importlib.util.spec_from_file_location('modes_toy', FILE)
        sys.modules['modes_toy'] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules['modes_toy'])
    return sys.modules['modes_toy']


@pytest.fixture(scope='session')
def toy_run(toy, tmp_path_factory):
    """Folder of a run; do not change it."""
    folder = tmp_path_factory.mktemp('toy_run')
    toy.make_run(folder)
    return folder


@pytest.fixture
def shown(monkeypatch):
    """Rows of the tables that are printed."""
    rows = []
    monkeypatch.setattr(_terminal, 'show', lambda title, columns, found: rows.extend(found))
    return rows
