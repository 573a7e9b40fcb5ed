"""What surrounds a word: what its question asks for, its part in a noun phrase, negation, fixed phrases."""

import functools
import re
from collections.abc import Sequence

from evil_jax.counterfactual import _function_words
from evil_jax.counterfactual._function_words import words
from evil_jax.counterfactual._tokens import POSSESSIVE, Token
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.text import TAG

ASKS = ('colour', 'count', 'where', 'who', 'what', 'when', 'why', 'how', 'which', 'yes/no', 'statement')
ROLES = ('head', 'modifier', 'determiner', 'of')


def _of_class(*kinds):
    return [word for word, kind in _function_words.CLASS.items() if kind in kinds]


# The first of these that is found says what is asked for.
_ASKED = (
    (
        'count',
        re.compile(r"\bhow (?:many|much)\b|\b(?:what|which)(?:'?s| is)?(?: the)?(?: total)? (?:number|amount) of\b"),
    ),
    (
        'colour',
        re.compile(
            r"\b(?:what|which)(?:'?s| is| are| was| were)?(?: the| his| her| their)?"
            r"(?: (?!in\b)[\w']+){0,2} colou?rs?\b"
        ),
    ),
    ('when', re.compile(r'\bwhen\b|\bwhat (?:time|year|decade|century|month|day|date|season|hour)\b')),
    ('where', re.compile(r'\bwheres?\b')),
    ('why', re.compile(r'\bwhy\b|\bhow come\b|\bwhat for\b')),
    ('who', re.compile(r'\bwho(?:s|m|se)?\b')),
    ('which', re.compile(r'\bwhich\b')),
    ('how', re.compile(r'\bhows?\b')),
    ('what', re.compile(r'\bwhats?\b|^\W*(?:name|describe|list)\b')),
)
_AUXILIARY = re.compile(rf'\W*(?:{"|".join(_of_class("be", "do", "have", "modal"))})\b')
_QUESTION_WORD = re.compile(r'\W*(?:who|what|which|where|when|why|how)')
_ALTERNATIVE = re.compile(r'\bor\b(?! not\b)')

_SENTENCE_END = re.compile('[.?!;:]')
_NEGATOR = re.compile(
    r"\b(?:no|not|never|nobody|nothing|none|nowhere|neither|nor|without|hardly|barely|cannot|lacks?|lacking|\w+n['’]t"
    r'|(?:is|are|was|were|do|does|did|ca|wo|would|could|should|has|have|had)nt)\b'
)
_DOWNWARD = re.compile(
    r'\b(?:(?<!\ba )few|fewer|less than|at most|no more than|only|every|each|all|any|both|most|everyone|everybody'
    r'|everything|if|unless|exactly|rarely|seldom)\b'
)

# Nouns that count, portion, group or depict what follows "of", or name its kind.
_DETERMINERS = words(
    """
    kind type sort style variety breed brand make model form species flavor flavour piece slice part portion bit chunk
    strip sheet roll loaf bar stick head cube drop spoonful scoop pinch serving pair couple group bunch row stack pile
    set herd flock crowd team line pack school collection series number amount lot dozen half quarter majority rest
    glass cup bottle bowl plate can jar box bag basket mug pitcher carton tray bucket vase pot pan tub case picture
    photo photograph image drawing painting portrait sketch print view shot"""
)
_BEFORE_NOUN = frozenset(_of_class('det', 'dem', 'dems', 'poss', 'num'))
# "What colour shirt": these are what is asked for, and describe no noun.
_ATTRIBUTES = words('color colour size shape kind type sort style brand breed make model number time flavor material')

_TAKE = ('take', 'takes', 'taking', 'took', 'taken')
# By part of speech of what is exchanged. They are looked for in lower case.
_FIXED = {
    'n': (
        'in front of', 'on top of', 'a lot of', 'lots of', 'a couple of', 'a bit', 'in order to', 'of course',
        'at once', 'in case', 'for example', 'in common', 'in general', 'in use', 'by hand', "o'clock", 'in line',
        'out of place', 'at bat', 'on purpose',
        *(f'{take} {noun}' for take in _TAKE for noun in ('place', 'part', 'care')),
    ),
    'v': (
        'used to', 'supposed to', 'make sure', 'making sure', 'get rid', 'getting ready',
        *(f'going to {verb}' for verb in words('be do eat fall get give go happen have hit make play say take use')),
        *(f'{be} going to' for be in ('is', 'are', 'was', 'were', "'s", "'re")),
        *(f'{take} {other}' for take in _TAKE for other in ('off', 'place', 'part', 'care')),
    ),
    'a': ('black and white', 'white and black', 'next to', 'close to', 'due to', 'able to', 'all right'),
}  # fmt: skip
_PART = {'synonym_verb': 'v', 'synonym_adjective': 'a'}

_ENGLISH = 0.5  # share of known words


def asks(text: str) -> str:
    """What a question asks for, one of `ASKS`; 'statement' where nothing is asked.

    "Is it red or blue?" asks which, not yes or no.
    """
    low = text.lower()
    if _AUXILIARY.match(low):
        return 'which' if _ALTERNATIVE.search(low) else 'yes/no'
    if '?' not in low and not _QUESTION_WORD.match(low):
        return 'statement'
    for name, pattern in _ASKED:
        if pattern.search(low):
            return name
    return 'which' if _ALTERNATIVE.search(low) else 'yes/no'


def role(tokens: Sequence[Token], at: int) -> str:
    """The part that a noun has in its phrase.

    Args:
      tokens: of the text.
      at: place of the noun among them.

    Returns:
      'modifier' of a noun behind it (fire of "fire truck", dog of "dog's collar"); 'determiner', which counts,
      portions, depicts or names the kind of what follows (glass of "glass of wine"); 'of', which follows there (wine);
      otherwise 'head'.
    """
    noun, following = tokens[at], tokens[at + 1 : at + 5]
    if following:
        beside = following[0].start - noun.end <= 1
        if following[0].lemma == POSSESSIVE and any(token.pos == 'n' for token in following):
            return 'modifier'
        if following[0].pos == 'n' and beside and not _is_asked_for(tokens, at):
            return 'modifier'
        if following[0].text.lower() == 'of' and noun.lemma in _DETERMINERS and len(following) > 1:
            return 'determiner'
    first = at - 1  # of what stands between "of" and the noun
    while first > 0 and (tokens[first].pos in 'na' or tokens[first].text.lower() in _BEFORE_NOUN):
        first -= 1
    if first > 0 and tokens[first].text.lower() == 'of' and tokens[first - 1].lemma in _DETERMINERS:
        return 'of'
    return 'head'


def _is_asked_for(tokens, at):
    return tokens[at].lemma in _ATTRIBUTES and at > 0 and tokens[at - 1].text.lower() in ('what', 'which')


def negated(text: str, at: int) -> bool:
    """Whether a negator (no, not, isn't, without, ...) stands before a place in its sentence."""
    return _NEGATOR.search(_sentence_before(text, at)) is not None


def downward(text: str, at: int) -> bool:
    """Whether a word that turns conclusions round (few, every, only, at most, if, ...) stands before a place.

    What is so of a dog is so of an animal, but what is so of every dog need not be so of every animal.
    """
    return _DOWNWARD.search(_sentence_before(text, at)) is not None


def is_calm(tokens: Sequence[Token]) -> bool:
    """Whether no word of a text negates or turns anything round: nothing in it is negated or downward."""
    return not any(_may_turn(token.text.lower()) for token in tokens)


@functools.lru_cache(1 << 14)
def _may_turn(word):
    return word == 'than' or bool(_NEGATOR.search(word) or _DOWNWARD.search(word))


def _sentence_before(text, at):
    return _SENTENCE_END.split(text[:at].lower())[-1]


def twin(lexicon: Lexicon, token: Token) -> bool:
    """Whether a verb or an adjective can be a noun as well, as picture can."""
    return token.pos in ('v', 'a') and 'n' in lexicon.parts(token.lemma)


def protected(text: str, family: str) -> list[tuple[int, int]]:
    """(start, end) of what edits of a family leave alone, in order: tags of objects and fixed phrases.

    Fixed phrases with colours are for colours.py.
    """
    spans = [match.span() for match in TAG.finditer(text)] if '<|' in text else []
    if not family.startswith('colour_'):
        low = _lower(text)
        for phrase in _FIXED[_PART.get(family, 'n')]:
            if phrase in low:
                spans += [match.span() for match in re.finditer(rf'(?<!\w){re.escape(phrase)}(?!\w)', low)]
    return sorted(spans)


def _lower(text):
    """In lower case and of the same length: some letters have two in lower case."""
    low = text.lower().replace('’', "'")
    return low if len(low) == len(text) else ''.join(mark if len(mark.lower()) > 1 else mark.lower() for mark in text)


def is_english(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    """Whether at least half of the words are English, as far as WordNet and function words tell.

    Of words of up to three letters only function words and those of SemCor count: WordNet has many abbreviations.
    """
    known, said = 0, 0
    for token in tokens:
        if token.pos != 'x':
            said += 1
            known += token.pos == 'f' or (token.rule != 'unknown' and _is_common(token, lexicon))
    return known >= _ENGLISH * said


def _is_common(token, lexicon):
    return len(token.text) > 3 or lexicon.frequency(token.lemma, token.pos) > 0
