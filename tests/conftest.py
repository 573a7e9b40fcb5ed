"""Fixtures that every test may use, and the table that `launch/test.sh --acceptance` prints."""

import operator
import os
import pathlib

import pytest

# Before JAX is imported anywhere: the suite runs on the CPU and never looks for a TPU.
os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('TPU_SKIP_MDS_QUERY', '1')
os.environ.setdefault('HF_HUB_OFFLINE', '1')

ROOT = pathlib.Path(__file__).resolve().parent.parent
_COMPARE = {'>=': operator.ge, '<=': operator.le, '==': operator.eq}
_ROWS = []
# Files of minutes, which begin while there is other work for the second worker (launch/test.sh).
_LONG = ('test_real_layouts.py', 'test_train.py', 'test_processes.py', 'test_checkpoint.py', 'test_real_input.py')


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in _LONG)


@pytest.fixture(scope='session')
def shared() -> pathlib.Path:
    """Folder with real inputs and golden values (EVIL_SHARED, or ../shared beside the checkout)."""
    path = pathlib.Path(os.environ.get('EVIL_SHARED', ROOT.parent / 'shared'))
    if not (path / 'data').is_dir():
        pytest.skip(f'no real inputs: {path}/data does not exist (set EVIL_SHARED)')
    return path


@pytest.fixture
def measured():
    """`measured(what, '>=', wanted, got)` puts a row into the acceptance table; the test fails if any row is missed."""
    missed = []

    def record(what, sign, wanted, got):
        met = _COMPARE[sign](got, wanted)
        _ROWS.append((what, f'{sign} {wanted:.4g}', f'{got:.4g}', 'yes' if met else 'NO'))
        if not met:
            missed.append(f'{what}: wanted {sign} {wanted}, got {got}')

    yield record
    assert not missed, '; '.join(missed)


def pytest_terminal_summary(terminalreporter):
    if not _ROWS:
        return
    header = ('what', 'wanted', 'got', 'met')
    widths = [max(len(row[i]) for row in (header, *_ROWS)) for i in range(4)]
    terminalreporter.section('acceptance: wanted and got')
    for row in (header, *_ROWS):
        terminalreporter.write_line('| ' + ' | '.join(cell.ljust(w) for cell, w in zip(row, widths)) + ' |')
        if row is header:
            terminalreporter.write_line('|' + '|'.join('-' * (w + 2) for w in widths) + '|')
