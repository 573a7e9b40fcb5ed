"""How a new word is written into a text, or an old one taken out: by spans of characters, which leave the rest alone.

In these functions `at` is the index of the first token at the position of the word that gives way.
"""

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from evil_jax.counterfactual import morphology
from evil_jax.counterfactual._function_words import words
from evil_jax.counterfactual.tagging import Token


class Change(NamedTuple):
    """text[start:end] becomes `new`; `note` says what else than the word itself changed, 'a>an'."""

    start: int
    end: int
    new: str
    note: str = ''


class Written(NamedTuple):
    """A text with its changes: `span` of the original became `target_span`, and nothing else changed."""

    text: str
    span: tuple[int, int]
    target_span: tuple[int, int]
    adjusted: tuple[str, ...]


_ARTICLES = ('a', 'an')
# They are nothing without a noun; the others can stand alone ("is this red", "are some red").
_BOUND = words('a an the my your his her its our their whose every no')
_DETERMINERS = _BOUND | words('this that these those some any each another either neither')
# Words before a noun that want one that can be counted.
_COUNTS = words(
    """
    many few fewer several both each every another one two three four five six seven eight nine ten eleven twelve dozen
    couple pair pairs number various multiple single either neither
    """
)
# Of a plural whose replacement cannot be counted: what stands beside it goes into the singular.
_SINGULAR = {'are': 'is', 'were': 'was', 'do': 'does', 'have': 'has', "aren't": "isn't", "weren't": "wasn't",
             "don't": "doesn't", "haven't": "hasn't"}  # fmt: skip
_IRREGULAR = {
    'good': ('better', 'best'),
    'bad': ('worse', 'worst'),
    'ill': ('worse', 'worst'),
    'far': ('farther', 'farthest'),
}
_DEMONSTRATIVES = {'these': 'this', 'those': 'that'}


def apply(text: str, changes: Sequence[Change]) -> Written:
    """Makes changes, which must not overlap."""
    if len(changes) == 1:
        [(start, end, new, note)] = changes
        return Written(text[:start] + new + text[end:], (start, end), (start, start + len(new)), (note,) * bool(note))
    ordered = sorted(changes)
    start, end = ordered[0].start, ordered[-1].end
    parts, behind = [], start
    for change in ordered:
        parts += (text[behind : change.start], change.new)
        behind = change.end
    new = ''.join(parts)
    notes = tuple([change.note for change in ordered if change.note])
    return Written(text[:start] + new + text[end:], (start, end), (start, start + len(new)), notes)


def together(changes: Sequence[Change]) -> list[Change] | None:
    """Changes of several words, each once; None where they are in each other's way."""
    ordered = sorted(set(changes))
    clash = any(one.end > other.start for one, other in itertools.pairwise(ordered))
    return None if clash else ordered


def replace(text: str, tokens: Sequence[Token], at: int, start: int, end: int, new: str) -> list[Change]:
    """text[start:end] gives way to `new`; an article right before it follows the sound."""
    changes = [Change(start, end, new)]
    if (article := _article(text, tokens, at)) is not None:
        changes += _sounding(article, new)
    return changes


def uncountable(text: str, tokens: Sequence[Token], at: int, end: int, new: str, plural: bool) -> list[Change] | None:
    """A noun that can be counted gives way to one that cannot, and the words beside it follow.

    An article goes ('a chair', 'furniture'); beside a plural, demonstrative and verb go into the singular ('are these
    shoes', 'is this footwear').

    Returns:
      None where the text counts the noun, so that the new one does not fit.
    """
    first = at
    while first and tokens[first - 1].pos in 'na':
        first -= 1
    head = tokens[first - 1].text.lower() if first else ''
    nearest = tokens[at - 1].text.lower() if at else ''
    if head in _COUNTS or nearest in _COUNTS or head.isdigit():
        return None
    word = Change(tokens[at].start, end, new)
    if not plural:
        return _without_article(text, tokens[first - 1], word) if head in _ARTICLES else [word]
    changes = [word]
    if head in _DEMONSTRATIVES:
        changes.append(_swap(tokens[first - 1], _DEMONSTRATIVES))
    behind = at
    while behind < len(tokens) and tokens[behind].start < end:
        behind += 1
    for verb in (first - 1 - (head in _DETERMINERS), behind):
        if 0 <= verb < len(tokens) and tokens[verb].text.lower() in _SINGULAR:
            return [*changes, _swap(tokens[verb], _SINGULAR)]
    return changes


def delete(text: str, tokens: Sequence[Token], at: int, repair: bool) -> list[Change] | None:
    """The token `at` goes.

    Args:
      repair: a possessive 's or an 'of' behind it goes as well, and a determiner before it that nothing is left for;
        blanks beside it close up, and an article in front of what follows takes its sound.

    Returns:
      None where no word would be left.
    """
    if len(tokens) == 1:
        return None
    start, end = tokens[at].start, tokens[at].end
    if not repair:
        return [Change(start, end, '')]
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    owner = behind is not None and behind.text.lower() in ("'s", '’s') and behind.start == end
    if owner or (behind is not None and behind.text.lower() == 'of' and _joined(text, end, behind.start)):
        end = behind.end
        behind = tokens[at + 2] if at + 2 < len(tokens) else None
    changes, note = [], ''
    bound = behind is not None and behind.pos in 'na' and _joined(text, end, behind.start)
    bound = owner or (bound and end == tokens[at].end)
    if at and tokens[at - 1].text.lower() in _BOUND and _joined(text, tokens[at - 1].end, start):
        if not bound:
            note, start = f'{tokens[at - 1].text}>', tokens[at - 1].start
            if len(tokens) == 2:
                return None
        elif behind is not None and tokens[at - 1].text.lower() in _ARTICLES:
            changes = _sounding(tokens[at - 1], text[behind.start : behind.end])
    left, right = start, end
    while left and text[left - 1].isspace():
        left -= 1
    if left:  # blanks before the word go, and those behind it stay; at the beginning of a text the other way round
        return [*changes, Change(left, end, '', note)]
    while right < len(text) and text[right].isspace():
        right += 1
    capital = right < len(text) and text[start].isupper() and text[right].islower()
    return [*changes, Change(start, right + capital, text[right].upper() if capital else '', note)]


def compared(new: str, token: Token) -> str:
    """An adjective in the degree of the token that it stands in for: 'larger' for bigger, 'more modern' for newer."""
    low = token.text.lower()
    if low == token.lemma:
        return new
    most = low.endswith('st')
    if new in _IRREGULAR:
        return _IRREGULAR[new][most]
    syllables = len(re.findall('[aeiouy]+', new.lower().removesuffix('e')))
    if not new.isalpha() or syllables > 1 + new.endswith('y') or new.endswith(('ed', 'wn')):
        return f'{"most" if most else "more"} {new}'
    stem = new.removesuffix('e')
    if new.endswith('y') and new[-2:-1] not in ('a', 'e', 'o', 'u'):
        stem = new[:-1] + 'i'
    elif re.search('(?:^|[^aeiou])[aeiou][bdgmnt]$', new):
        stem = new + new[-1]
    return stem + ('est' if most else 'er')


def _article(text, tokens, at):
    """The article right before a token."""
    if at and tokens[at - 1].text.lower() in _ARTICLES and _joined(text, tokens[at - 1].end, tokens[at].start):
        return tokens[at - 1]
    return None


def _joined(text, end, start):
    """Whether nothing but blanks stands between."""
    return text[end:start].isspace()


def _sounding(article, new):
    wanted = morphology.article(new)
    # A lone capital A begins a sentence, or a text in capitals.
    wanted = wanted.upper() if article.text.isupper() and new.isupper() else _cased(wanted, article.text)
    return [] if wanted == article.text else [Change(article.start, article.end, wanted, f'{article.text}>{wanted}')]


def _without_article(text, article, word):
    """Takes an article out; what stands behind it takes its capital over."""
    behind, note = article.end, f'{article.text}>'
    while text[behind].isspace():
        behind += 1
    if not article.text[0].isupper():
        return [word, Change(article.start, behind, '', note)]
    if behind == word.start:
        return [Change(article.start, word.end, word.new[:1].upper() + word.new[1:], note)]
    return [word, Change(article.start, behind + 1, text[behind].upper(), note)]


def _swap(token, table):
    new = _cased(table[token.text.lower()], token.text)
    return Change(token.start, token.end, new, f'{token.text}>{new}')


def _cased(word, like):
    """In the case of the word it stands for."""
    return word.upper() if len(like) > 1 and like.isupper() else word.capitalize() if like[0].isupper() else word
