"""Fixtures that every test may use."""

import os
import pathlib

import pytest

# Before JAX is imported anywhere: the suite runs on the CPU and never looks for a TPU.
os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('TPU_SKIP_MDS_QUERY', '1')
os.environ.setdefault('HF_HUB_OFFLINE', '1')

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope='session')
def shared() -> pathlib.Path:
    """Folder with real inputs and golden values (EVIL_SHARED, or ../shared beside the checkout)."""
    path = pathlib.Path(os.environ.get('EVIL_SHARED', ROOT.parent / 'shared'))
    if not (path / 'data').is_dir():
        pytest.skip(f'no real inputs: {path}/data does not exist (set EVIL_SHARED)')
    return path
