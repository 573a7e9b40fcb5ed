"""Which sense of a word is meant: WordNet's first, any, or the one that pictures show."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from evil_jax.counterfactual import _visual, morphology
from evil_jax.counterfactual.lexicon import Lexicon

POLICIES = ('first', 'any', 'lexicon')

_PUNCTUATION = '.,;:!?"` '
# What begins a description of the noun before it.
_AFTER_HEAD = re.compile(
    r'(?<=\w) (?:above|across|against|along|among|around|at|behind|below|beside|between|by|for|from|in|inside|into|near'
    r'|of|off|on|onto|over|through|to|under|with|without|that|which|who|is|are|was|were|has|have|had) '
)


class Sense(NamedTuple):
    """One sense of a word.

    Attributes:
      synset: its name, 'dog.n.01'.
      lemma: the entry that the word is a form of, in lower case.
      rank: of the synset among the entry's senses, from 1.
      senses: how many the entry has.
      how: why this one: 'first' (of the word as it stands or of its only base), 'plural' (the first of the commoner
        singular, although the plural is an entry too), 'base' (that of other words: see for saw), 'any' (a later one),
        'override' (what pictures show).
    """

    synset: str
    lemma: str
    rank: int
    senses: int
    how: str


def choose(
    lexicon: Lexicon, word: str, pos: str, policy: str = 'first', overrides: Mapping[str, str] = _visual.SENSES
) -> Sense | None:
    """The most likely sense of a word, None for a word that is not in WordNet. Arguments are those of `choices`."""
    found = choices(lexicon, word, pos, policy, overrides)
    return found[0] if found else None


def choices(
    lexicon: Lexicon, word: str, pos: str, policy: str = 'first', overrides: Mapping[str, str] = _visual.SENSES
) -> tuple[Sense, ...]:
    """Senses of a word that a policy admits, the one to take first.

    Args:
      word: a token or an entry, as written: dogs, Fire hydrants. Of a phrase that is no entry, what stands before a
        preposition or verb counts, and of that the longest end that is an entry: men of 'two old men in a car'.
      pos: 'n', 'v', 'a' or 'r'.
      policy: 'first': the first sense alone, as WordNet ranks them, by frequency. 'any': every sense in that order, so
        that a caller may walk on to the first that has a hyponym, say (in Stoikou et al. 2023, water stands in for air:
        that is a sibling of air's sixth sense). 'lexicon': for nouns, the sense that pictures show, else the first.
      overrides: what pictures show, lemma -> synset.

    Raises:
      ValueError: no such policy.
    """
    if policy not in POLICIES:
        raise ValueError(f'no policy {policy!r} of senses: there are {", ".join(POLICIES)}')
    found = _lemma(lexicon, word, pos)
    if found is None:
        return ()
    lemma, rule = found
    if policy == 'lexicon' and pos == 'n' and (override := _override(lexicon, lemma, overrides)):
        return (override,)
    ranked = lexicon.senses(lemma, pos)
    both = rule != 'entry' and pos in lexicon.parts(word)
    how = {'n': 'plural'}.get(pos, 'base') if both else 'first'
    first = Sense(ranked[0], lemma, 1, len(ranked), how)
    if policy != 'any':
        return (first,)
    return first, *(Sense(synset, lemma, i, len(ranked), 'any') for i, synset in enumerate(ranked[1:], 2))


def _override(lexicon, noun, overrides):
    """The override of an entry: a sense of its own, or of one that it is a form of (pants: trousers, an entry pant)."""
    synset = overrides.get(noun)
    for lemma, _ in morphology.lemmas(lexicon, noun, 'n') if synset else ():
        ranked = lexicon.senses(lemma, 'n')
        if synset in ranked:
            return Sense(synset, lemma, ranked.index(synset) + 1, len(ranked), 'override')
    return None


def _lemma(lexicon, word, pos):
    """(lemma, rule) of a word, or of the head of a phrase: men of 'two old men', arm of 'arm of a person'."""
    word = word.strip(_PUNCTUATION)
    if (found := morphology.lemma(lexicon, word, pos)) or ' ' not in word:
        return found
    words = _AFTER_HEAD.split(word, maxsplit=1)[0].split()
    ends = (morphology.lemma(lexicon, ' '.join(words[start:]), pos) for start in range(len(words)))
    return next(filter(None, ends), None)
