"""Whether a text names a word, whatever its inflection: what an explanation says of the word that an edit exchanged."""

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evil_jax.counterfactual import colours, morphology
from evil_jax.counterfactual.edits import Edit
from evil_jax.counterfactual.lexicon import Lexicon

_TOKEN = re.compile(r"\w+(?:['-]\w+)*")
_OTHER_PARTS = {'synonym_verb': 'v', 'synonym_adjective': 'a'}  # all other families exchange nouns and colours


class Terms(NamedTuple):
    """Words and phrases, in lower case, that stand for what an edit took out and put in.

    Attributes:
      pos: part of speech of both.
      removed: the word that went, as written and its lemma.
      added: the word that came; empty for a deletion.
      related: synonyms and hypernyms of the word that came, as far as they don't stand for the word that went.
    """

    pos: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    related: tuple[str, ...]


def part_of_speech(family: str) -> str:
    """'n', 'v' or 'a' of the words that a family exchanges."""
    return 'a' if family.startswith('colour_') else _OTHER_PARTS.get(family, 'n')


def terms(edit: Edit, lexicon: Lexicon) -> Terms:
    """What counts as naming the words of an edit.

    A hypernym of the new word may be the old one (dog to hunting dog): such words say nothing and are left out.
    """
    removed = _distinct(edit.source, edit.source_lemma)
    added = _distinct(edit.target, edit.target_lemma)
    related = ()
    if edit.target_synset:
        above = [lemma for synset in lexicon.hypernyms(edit.target_synset) for lemma in lexicon.lemmas(synset)]
        related = (*lexicon.lemmas(edit.target_synset), *above)
    elif edit.family.startswith('colour_') and added:
        spaced = colours.spaced(edit.target_lemma or edit.target)
        added = _distinct(*added, spaced)
        related = (spaced.split()[-1],)  # a deep sky blue is a blue
    same = set(removed)
    if edit.source_synset and edit.source_synset != edit.target_synset:
        same |= set(_distinct(*lexicon.lemmas(edit.source_synset)))
    return Terms(
        part_of_speech(edit.family), removed, added, tuple(w for w in _distinct(*related) if w not in same | set(added))
    )


def tokens(text: str) -> list[str]:
    """Words in lower case, without punctuation and the 's of possession."""
    return [word.removesuffix("'s") for word in _TOKEN.findall(text.lower().replace('’', "'"))]


class Finder:
    """Finds words in texts by their lemmas; the forms of frequent words are remembered."""

    def __init__(self, lexicon: Lexicon):
        @functools.lru_cache(1 << 16)
        def forms(token: str, pos: str) -> frozenset[str]:
            return frozenset([token, *(lemma.lower() for lemma, _ in morphology.lemmas(lexicon, token, pos))])

        self._forms = forms

    def spans(self, text: Sequence[str], phrases: Iterable[str], pos: str) -> list[tuple[int, int]]:
        """(first, end) positions, in the tokens of a text, of every phrase that stands in it."""
        forms = [self._forms(token, pos) for token in text]
        present = frozenset().union(*forms)
        found = []
        for phrase in phrases:
            words = _phrase(phrase)
            if not words or not present.issuperset(words):
                continue
            for start in range(len(forms) - len(words) + 1):
                if all(word in forms[start + i] for i, word in enumerate(words)):
                    found.append((start, start + len(words)))
        return found

    def named(self, text: Sequence[str], words: Terms) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Where the text names the new word, or what is related to it, and where the old one.

        Neither is named inside the other: 'sky blue' doesn't name 'blue', a 'hot dog' is no dog.
        """
        new = self.spans(text, (*words.added, *words.related), words.pos)
        old = self.spans(text, words.removed, words.pos)
        return _outside(new, old), _outside(old, new)


def masked(text: Sequence[str], spans: Iterable[tuple[int, int]]) -> list[str]:
    """The tokens with one and the same mark in place of each span."""
    out = list(text)
    for first, end in sorted(spans, reverse=True):
        if end <= len(out):  # spans may overlap: the later one took its tokens already
            out[first:end] = ['\0']
    return out


@functools.lru_cache(1 << 16)
def _phrase(text):
    return tuple(tokens(text))


def _outside(spans, others):
    """Spans that lie in no longer one of the others."""
    return [(a, b) for a, b in spans if not any(c <= a and b <= d and d - c > b - a for c, d in others)]


def _distinct(*words: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.lower().strip() for word in words if word.strip()))
