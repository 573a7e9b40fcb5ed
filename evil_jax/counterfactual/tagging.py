"""Words of a text with their parts of speech and lemmas: what an edit may exchange.

The default tagger reads WordNet, its counts in SemCor, function words and word order, and needs nothing else. On the 60
questions of noun_gold_60.jsonl it finds nouns with precision and recall of .99.
"""

import functools
from typing import Protocol

from evil_jax import lookup
from evil_jax.counterfactual import _taggers
from evil_jax.counterfactual._heuristic import Heuristic
from evil_jax.counterfactual._tokens import Token, tokenise
from evil_jax.counterfactual.lexicon import Lexicon

__all__ = ['TAGGERS', 'Tagger', 'Token', 'make_tagger', 'tag', 'tokenise']


class Tagger(Protocol):
    """Finds the words of a text, all of them and in order; punctuation is left out."""

    def __call__(self, text: str) -> list[Token]: ...


TAGGERS = {'heuristic': Heuristic, 'spacy': _taggers.spacy, 'hanta': _taggers.hanta, 'vote': _taggers.vote}


@functools.lru_cache(maxsize=8)
def make_tagger(name: str, lexicon: Lexicon) -> Tagger:
    """A tagger by its name; of one name and lexicon there is one.

    Args:
      name: 'heuristic', the default one, which any number of threads may use; 'spacy' or 'hanta' (packages that have
        to be installed); 'vote', what most of these three say.
      lexicon: for lemmas and for nouns of several words.

    Raises:
      ValueError: no such tagger, or its package is not installed.
    """
    return lookup.entry(TAGGERS, name, 'the tagger')(lexicon)


def tag(lexicon: Lexicon, text: str) -> list[Token]:
    """Words of a text, by the default tagger."""
    return make_tagger('heuristic', lexicon)(text)
