"""What the tests of counterfactual questions share."""

import pathlib
import sys

import pytest

from evil_jax.counterfactual import lexicon as lexicons

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(scope='session')
def lexicon() -> lexicons.Lexicon:
    """WordNet 3.0 (the extra `test` installs its files)."""
    return lexicons.open_lexicon()
