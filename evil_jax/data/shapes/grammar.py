"""Explanations, read word by word: a text becomes a list of claims, or nothing when it is not of this language.

    text    = clause {(',' | 'and' | 'but' | 'so') clause}
    clause  = 'there is' noun | ['only' | 'just'] number shape 'is|are' ['seen'] place {(',' | 'and') place}
            | 'no' noun 'is seen' | noun 'may be in' crate | crate 'may hide' noun
            | 'its colour cannot be seen' | 'the colour of' noun 'cannot be seen'
            | noun 'is' fact {('and' | ',') ['is'] fact}
            | noun place                                          (after a clause that says where something is)
    noun    = 'it' | ('a' | 'the' ['only'] | 'another') [size] [colour] [shape | 'object' | 'crate' | 'one'] [place]
            | tag [place]                                         (a number, where objects are tagged)
    fact    = ['not'] (size | colour | 'in shadow' | place | 'a' noun | 'the' noun | relation noun)

The grammar is wider than the templates, so that sensible recombinations are understood too.
"""

import re
from typing import NamedTuple

from evil_jax.data.shapes.explanations import NUMBERS
from evil_jax.data.shapes.scene import COLOURS, CRATE, DARK, PLACES, RELATIONS, SHAPES, SIZES

_TOKEN = re.compile(r'[a-z]+|[0-9]+|[^\sa-z]')
_TAG = re.compile(r'[1-9][0-9]?')
_JOINTS = (',', 'and', 'but', 'so')
_PHRASES = tuple((tuple(place.split()), cell) for cell, place in enumerate(PLACES))
_RELATIONS = tuple((tuple(relation.split()), relation) for relation in RELATIONS)


class Phrase(NamedTuple):
    """A noun phrase. determiner: 'a', 'the', 'only', 'no', 'another', 'it', 'tag'; cell: the place named in it."""

    determiner: str
    shape: str | None = None
    colour: str | None = None
    size: str | None = None
    cell: int | None = None
    tag: int | None = None


class Fact(NamedTuple):
    """One thing said of a subject. name: 'shape', 'colour', 'size', 'cell', or a relation to `other`."""

    name: str
    value: str | int
    other: Phrase | None = None
    holds: bool = True


class Claim(NamedTuple):
    """One clause. kind: 'is' (subject, facts), 'absent', 'unseen' (colour of the subject), 'hides' (subject: the crate,
    other: what it may hide), 'count' (number or None, subject, cells)."""

    kind: str
    subject: Phrase
    facts: tuple[Fact, ...] = ()
    other: Phrase | None = None
    number: int | None = None
    cells: tuple[int, ...] = ()


def parse(text: str, tags: bool = False) -> list[Claim] | None:
    """The claims of an explanation; None when it is not of this language. Case and a final full stop do not matter.

    tags: whether objects are tagged, so that a number names one.
    """
    parser = _Parser(_TOKEN.findall(text.lower().strip().removesuffix('.')), tags)
    try:
        return parser.text()
    except _NotInLanguage:
        return None


class _NotInLanguage(Exception):
    """The words at hand fit no rule."""


class _Parser:
    def __init__(self, tokens, tags):
        self.tokens, self.tags, self.at = tokens, tags, 0

    def text(self):
        claims = [self.clause(())]
        while self.at < len(self.tokens):
            if not self.any(_JOINTS):
                raise _NotInLanguage
            claims.append(self.clause(claims))
        return claims

    def clause(self, before):
        for rule in (self.there_is, self.count, self.no, self.unseen, self.about):
            start = self.at
            try:
                return rule(before)
            except _NotInLanguage:
                self.at = start
        raise _NotInLanguage

    # Words

    def peek(self, *words):
        return tuple(self.tokens[self.at : self.at + len(words)]) == words

    def take(self, *words):
        found = self.peek(*words)
        self.at += len(words) * found
        return found

    def need(self, *words):
        if not self.take(*words):
            raise _NotInLanguage

    def any(self, words):
        return next((word for word in words if self.take(word)), None)

    # Clauses

    def there_is(self, before):
        self.need('there', 'is')
        phrase = self.noun()
        if phrase.determiner not in ('a', 'another'):
            raise _NotInLanguage
        return Claim('is', phrase)

    def count(self, before):
        self.any(('only', 'just'))
        word = self.any(NUMBERS[1:])
        number = NUMBERS.index(word) if word else None
        shape = self.any(SHAPES if number == 1 else [f'{shape}s' for shape in SHAPES])
        if not shape or not (self.take('is') if number == 1 else self.take('are')):
            raise _NotInLanguage
        self.take('seen')
        self.take(',')
        cells = [self.need_place()]
        while self.peek(',') or self.peek('and'):
            start = self.at
            self.at += 1
            cell = self.place()
            if cell is None:
                self.at = start
                break
            cells.append(cell)
        return Claim('count', Phrase('a', shape.removesuffix('s')), number=number, cells=tuple(cells))

    def no(self, before):
        self.need('no')
        phrase = self.described('no')
        self.need('is', 'seen')
        return Claim('absent', phrase)

    def unseen(self, before):
        if self.take('its', 'colour'):
            phrase = Phrase('it')
        else:
            self.need('the', 'colour', 'of')
            phrase = self.noun()
        self.need('cannot', 'be', 'seen')
        return Claim('unseen', phrase)

    def about(self, before):
        phrase = self.noun()
        if self.take('may', 'hide'):
            return Claim('hides', phrase, other=self.noun())
        if self.take('may', 'be', 'in'):
            return Claim('hides', self.noun(), other=phrase)
        if self.take('is'):
            return Claim('is', phrase, tuple(self.facts()))
        says_where = before and any(fact.name == 'cell' for fact in before[-1].facts)
        if says_where and phrase.cell is not None:
            return Claim('is', phrase._replace(cell=None), (Fact('cell', phrase.cell),))
        raise _NotInLanguage

    def facts(self):
        found = self.fact(nouns=True)
        while self.peek('and') or self.peek(','):
            start = self.at
            self.at += 1
            # A noun without 'is' begins a clause of its own: '... and the blue square in the middle'.
            try:
                found += self.fact(nouns=self.take('is'))
            except _NotInLanguage:
                self.at = start
                break
        return found

    def fact(self, nouns):
        holds = not self.take('not')
        if word := self.any(SIZES):
            return [Fact('size', word, holds=holds)]
        if word := self.any((*COLOURS, DARK)):
            return [Fact('colour', word, holds=holds)]
        cell = self.place()
        # 'in shadow' may follow a place: 'is in the middle in shadow'
        if self.take('in', 'shadow'):
            shadow = [Fact('colour', DARK, holds=holds)]
            return shadow if cell is None else [Fact('cell', cell, holds=holds), *shadow]
        if cell is not None:
            return [Fact('cell', cell, holds=holds)]
        for words, relation in _RELATIONS:
            if self.take(*words):
                return [Fact(relation, relation, self.noun(), holds)]
        if not (nouns and holds):
            raise _NotInLanguage
        return self.same()

    def same(self):
        """'a red circle at the top left', 'the blue one in the middle': everything in it is said of the subject."""
        phrase = self.noun()
        if phrase.determiner not in ('a', 'the') or phrase.shape == CRATE:
            raise _NotInLanguage
        return [Fact(name, value) for name, value in zip(phrase._fields[1:], phrase[1:]) if value is not None]

    # Nouns and places

    def noun(self):
        if self.take('it'):
            return Phrase('it')
        if self.tags and _TAG.fullmatch(''.join(self.tokens[self.at : self.at + 1])):
            self.at += 1
            return Phrase('tag', tag=int(self.tokens[self.at - 1]), cell=self.place())
        if self.take('another'):
            start = self.at
            try:
                return self.described('another')
            except _NotInLanguage:
                self.at = start
                return Phrase('another', cell=self.place())
        word = self.any(('a', 'the'))
        if word is None:
            raise _NotInLanguage
        return self.described('only' if word == 'the' and self.take('only') else word)

    def described(self, determiner):
        size, colour = self.any(SIZES), self.any((*COLOURS, DARK))
        word = self.any((*SHAPES, CRATE, 'object', 'one'))
        if word is None or (word == CRATE and (size or colour)):
            raise _NotInLanguage
        if word == 'one' and colour is None and size is None:
            raise _NotInLanguage
        shape = None if word in ('object', 'one') else word
        return Phrase(determiner, shape, colour, size, self.place())

    def place(self):
        for words, cell in _PHRASES:
            if self.take(*words):
                return cell
        return None

    def need_place(self):
        cell = self.place()
        if cell is None:
            raise _NotInLanguage
        return cell
