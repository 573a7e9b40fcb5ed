"""The words of a text that may give way, and why the others may not."""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evil_jax.counterfactual import _replacements, colours, phrases
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.counterfactual.tagging import Tagger, Token

KINDS = {
    **{family: pos for family, (pos, _) in _replacements.OF_WORDNET.items()},
    **dict.fromkeys(_replacements.OF_COLOURS, 'colour'),
    'delete': 'n',
}
_NONE = {'n': 'no noun', 'v': 'no verb', 'a': 'no adjective', 'colour': 'no colour', 'class': 'no noun'}
# A participle is an adjective (parked, pictured; not taken) if it is one this often for each time its verb is a verb.
_ADJECTIVAL = 0.03
_LETTERS = re.compile('[a-z]+')
_COLOUR_WORDS = frozenset(word for name in colours.NAMES for word in (name, colours.spaced(name).split(' ')[0]))
_COLOURS = ('adjective', 'noun')  # uses that may be exchanged
_MALE = re.compile(r'\b(?:he|him|his|himself)\b', re.IGNORECASE)
_FEMALE = re.compile(r'\b(?:she|her|hers|herself)\b', re.IGNORECASE)


class Site(NamedTuple):
    """A word that may give way.

    Attributes:
      at: index of its first token.
      start, end: its place.
      name: what its replacements are looked up by: the word in lower case, a colour's name, a word of the user's class.
      lemma: its dictionary form.
      kind: 'n', 'v' or 'a' of a token; 'colour'; 'class' of one of the user's own classes.
      plural: whether it is in the plural.
      rule: how the lemma was found (morphology.lemmas).
    """

    at: int
    start: int
    end: int
    name: str
    lemma: str
    kind: str
    plural: bool = False
    rule: str = ''


class Reader:
    """Reads texts for the edits of all families."""

    def __init__(self, lexicon: Lexicon, tagger: Tagger, classes: _replacements.Classes, max_length: int):
        self._lexicon = lexicon
        self._tagger = tagger
        self._classes = classes
        self._max_length = max_length
        self._adjectival = functools.lru_cache(1 << 14)(self._is_adjectival)

    def __call__(self, text: str, statement: bool = False) -> 'Text':
        """Reads a text; a `statement` is one even if it looks like a question."""
        if not text.strip():
            return Text(text, stopped='empty')
        if len(text) > self._max_length:
            return Text(text, stopped='too long')
        tokens = [self._as_adjective(token) if token.form == 'participle' else token for token in self._tagger(text)]
        found = Text(text, tokens, 'statement' if statement else phrases.asks(text))
        if not _COLOUR_WORDS.isdisjoint(_LETTERS.findall(text.lower())):
            found.mentions = colours.mentions(tokens, text)
        found.classes = list(self._classes.find(text))
        if not phrases.is_english(tokens, self._lexicon):
            found.stopped = 'not English'
        elif not (found.mentions or found.classes or any(token.pos in 'nva' for token in tokens)):
            found.stopped = 'only function words'
        return found

    def _as_adjective(self, token):
        word = token.text.lower()
        if not self._adjectival(word, token.lemma):
            return token
        return token._replace(lemma=word, pos='a', rule='entry', form='')

    def _is_adjectival(self, word, verb):
        if 'a' not in self._lexicon.parts(word):
            return False
        return self._lexicon.frequency(word, 'a') + 0.5 >= _ADJECTIVAL * self._lexicon.frequency(verb, 'v')


class Text:
    """One text. What is found in it serves all families.

    Attributes:
      text: the question or hypothesis.
      tokens: its words.
      asks: what it asks for (phrases.asks).
      stopped: why nothing in it can be edited (coverage.REASONS); ''.
      mentions: (start, end, name, use) of its colours (colours.mentions).
      classes: (start, end, word, plural) of its words that are in a class of the user's own.
    """

    def __init__(self, text: str, tokens: Sequence[Token] = (), asks: str = '', stopped: str = ''):
        self.text, self.tokens, self.asks, self.stopped = text, tokens, asks, stopped
        self.mentions, self.classes = [], []
        self._found, self._open, self._calm = {}, {}, None

    def sites(self, family: str) -> tuple[list[Site], str]:
        """The words that a family may edit; where there are none, why."""
        kind = 'class' if family == 'sibling' and self.classes else KINDS[family]
        if kind not in self._open:
            self._open[kind] = self._editable(kind, family)
        return self._open[kind]

    def same(self, site: Site) -> list[Site]:
        """Every form of the word of a site, of this text or another one, whether it may be edited or not."""
        return [other for other in self._of(site.kind) if other.lemma == site.lemma]

    def downward(self, at: int) -> bool:
        """Whether a position stands behind a negator or a downward quantifier."""
        if self._calm is None:
            self._calm = phrases.is_calm(self.tokens)
        return not self._calm and (phrases.negated(self.text, at) or phrases.downward(self.text, at))

    def agrees(self, gender: str) -> bool:
        """Whether a word of this gender, or of none, fits the pronouns."""
        if not gender:
            return True
        pronouns = 'm' * bool(_MALE.search(self.text)) + 'f' * bool(_FEMALE.search(self.text))
        return not pronouns or gender in pronouns

    def _editable(self, kind, family):
        if self.stopped:
            return [], self.stopped
        found = self._of(kind)
        if not found:
            fixed = kind == 'colour' and any(use == 'protected' for *_, use in self.mentions)
            return [], 'protected' if fixed else _NONE[kind]
        if kind in 'nva' and (fixed := phrases.protected(self.text, family)):
            found = [site for site in found if not any(start < site.end and site.start < end for start, end in fixed)]
            if not found:
                return [], 'protected'
        if self.asks == 'statement':
            found = [site for site in found if not self.downward(site.start)]
            if not found:
                return [], 'negated'
        return found, ''

    def _of(self, kind):
        if not self._found:
            self._found = self._words()
        if kind not in self._found:
            self._found[kind] = list(self._spans(kind))
        return self._found[kind]

    def _words(self) -> dict[str, list[Site]]:
        """Nouns, verbs and adjectives; adjectives without the colours."""
        found = {'n': [], 'v': [], 'a': []}
        for at, token in enumerate(self.tokens):
            pos = token.pos
            if pos in found and not (pos == 'a' and self.mentions and self._coloured(token.start)):
                site = Site(at, token.start, token.end, token.text.lower(), token.lemma, pos, token.plural, token.rule)
                found[pos].append(site)
        return found

    def _coloured(self, at):
        return any(start <= at < end for start, end, *_ in self.mentions)

    def _spans(self, kind) -> Iterator[Site]:
        """Colours, or words of the user's own classes."""
        found = self.classes
        if kind == 'colour':
            found = [(start, end, name, False) for start, end, name, use in self.mentions if use in _COLOURS]
        for start, end, name, plural in found:
            at = next((at for at, token in enumerate(self.tokens) if token.start < end and token.end > start), None)
            if at is not None:
                yield Site(at, start, end, name, name, kind, plural)
