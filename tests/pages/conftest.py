"""A browser where there is one; helper modules of this folder are imported by their names."""

import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(scope='session')
def browser():
    for name in ('chromium', 'chromium-browser', 'google-chrome', 'chrome'):
        if path := shutil.which(name):
            return path
    pytest.skip('no Chromium on this machine: the page is checked by parsing only')
