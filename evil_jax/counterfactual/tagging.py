"""Words of a text with their parts of speech and lemmas: what an edit may exchange.

The default tagger reads WordNet, its counts in SemCor, function words and word order, and needs nothing else.
"""

import functools
from typing import Protocol

from evil_jax import lookup
from evil_jax.counterfactual._heuristic import Heuristic
from evil_jax.counterfactual._tokens import Token, tokenise
from evil_jax.counterfactual.lexicon import Lexicon

__all__ = ['Tagger', 'Token', 'make_tagger', 'tag', 'tokenise']


class Tagger(Protocol):
    """Finds the words of a text: every word, in order, punctuation left out."""

    def __call__(self, text: str) -> list[Token]: ...


def tag(lexicon: Lexicon, text: str) -> list[Token]:
    """Words of a text, by the default tagger."""
    return _heuristic(lexicon)(text)


def make_tagger(name: str, lexicon: Lexicon) -> Tagger:
    """A tagger by its name.

    Args:
      name: 'heuristic', the default one.
      lexicon: for lemmas and multi-word nouns.
    """
    return lookup.entry({'heuristic': _heuristic}, name, 'the tagger')(lexicon)


@functools.lru_cache(maxsize=4)
def _heuristic(lexicon):
    return Heuristic(lexicon)
