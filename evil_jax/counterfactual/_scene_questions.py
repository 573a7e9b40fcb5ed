"""Questions that a scene graph can answer, and which of its things a noun means."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from evil_jax.counterfactual import colours, morphology, senses
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.data.sources.visual_genome import SceneGraph, Thing

_NOUN = r'(?P<noun>[a-z][a-z -]*?)'
_BE = r'(?:is|are)'
_THE = r"(?:the|this|that|these|those)(?P<owned> [\w-]+['’]s)?"
_PICTURE = r'(?: (?:here|anywhere|visible|in (?:the|this) (?:picture|image|photo|photograph|scene)))?'
_FORMS = (
    ('exists', rf'{_BE} there (?:an?|any|some) {_NOUN}{_PICTURE}'),
    ('exists', rf'(?:do|can) you see (?:an?|any|some) {_NOUN}{_PICTURE}'),
    ('exists', rf'{_BE} (?:an?|any|some) {_NOUN} (?:visible|shown|seen|present){_PICTURE}'),
    ('colour', rf'what colou?r {_BE} {_THE} {_NOUN}{_PICTURE}'),
    ('colour', rf'what is the colou?r of {_THE} {_NOUN}{_PICTURE}'),
    ('is', rf'{_BE} {_THE} (?P<rest>[a-z][a-z -]*)'),
)
_FORMS = tuple((kind, re.compile(form)) for kind, form in _FORMS)
_SHADE = re.compile('^(?:light|dark|bright|pale|deep) ')
_AND = re.compile(' and |[/,&]')


class Asked(NamedTuple):
    """A question: `kind` 'exists' (is there a noun), 'colour' (what colour is the noun), 'is' (is the noun a colour).

    owned: whether it is somebody's ('the man's shirt').
    """

    kind: str
    noun: str
    colour: str | None = None
    owned: bool = False


class Meant(NamedTuple):
    """What a noun means: entries, a WordNet sense ('' unknown), a colour."""

    lemmas: frozenset[str]
    synset: str
    colour: str | None = None


def parse(text: str) -> Asked | None:
    """What a question asks a scene graph, None if it is of no form that can be answered."""
    text = ' '.join(text.lower().split()).rstrip('?. ')
    for kind, form in _FORMS:
        if match := form.fullmatch(text):
            owned = bool(match.groupdict().get('owned'))
            if kind != 'is':
                return Asked(kind, match['noun'], owned=owned)
            *_, last = colours.spans(match['rest']) or [None]
            if last is not None and last[1] == len(match['rest']) and last[0] > 1:
                return Asked(kind, match['rest'][: last[0]].strip(), last[2], owned)
    return None


def colours_of(thing: Thing) -> list[str]:
    """Names of the colours among the attributes of a thing, each once; a light brown is a brown."""
    found = {}
    for name in (part.strip() for attribute in thing.attributes for part in _AND.split(attribute)):
        colour = _name_of(name) or _name_of(_SHADE.sub('', name))
        if colour:
            found.setdefault(colour.replace('grey', 'gray'))
    return list(found)


def _name_of(words):
    return next((name for start, end, name in colours.spans(words) if (start, end) == (0, len(words))), None)


class Words:
    """Which things of scene graphs a noun means."""

    def __init__(self, lexicon: Lexicon):
        self._lexicon = lexicon
        self._kinds = functools.lru_cache(1 << 16)(self._kinds_of)
        self._names = functools.lru_cache(1 << 16)(self._names_of)

    def meant(self, noun: str, synset: str = '') -> Meant | None:
        """Of a noun with or without a colour before it; None for other descriptions and unknown words."""
        spans = colours.spans(noun)
        colour = None
        if spans and spans[0][0] == 0 and spans[0][1] < len(noun):
            colour = spans[0][2]
            noun = noun[spans[0][1] :].strip()
        lemmas = frozenset(lemma for lemma, _ in morphology.lemmas(self._lexicon, noun, 'n'))
        if not lemmas:
            return None
        sense = None if synset else senses.choose(self._lexicon, noun, 'n', 'lexicon')
        return Meant(lemmas, synset or (sense.synset if sense else ''), colour)

    def described(self, text: str, span: tuple[int, int]) -> list[Meant]:
        """What a colour at `span` may describe, likeliest first: the two words behind it, the first, or the second."""
        here = [name for start, end, name in colours.spans(text) if span[0] <= start and end <= span[1]]
        words = re.match(r' ([a-z]+)(?: ([a-z]+))?', text[span[1] :].lower())
        if len(here) != 1 or words is None:
            return []
        nouns = [f'{words[1]} {words[2]}', words[1], words[2]] if words[2] else [words[1]]
        return [found._replace(colour=here[0]) for noun in nouns if (found := self.meant(noun))]

    def matching(self, graph: SceneGraph, meant: Meant) -> list[Thing]:
        """The things that a noun means, whatever their colour."""
        return [
            thing
            for thing in graph.things
            if any(meant.lemmas & self._names(name) for name in thing.names)
            or (meant.synset and any(meant.synset in self._kinds(synset) for synset in thing.synsets))
        ]

    def general(self, graph: SceneGraph, meant: Meant) -> list[Thing]:
        """The things that may be what a noun means, noted in more general words: its head, or a sense above its own."""
        heads = {re.split('[ -]', lemma)[-1] for lemma in meant.lemmas}
        above = self._kinds(meant.synset)
        return [
            thing
            for thing in graph.things
            if not above.isdisjoint(thing.synsets) or any(heads & self._names(name) for name in thing.names)
        ]

    def noted(self, graphs: Iterable[SceneGraph]) -> frozenset[str]:
        """Entries and senses of all things of graphs, with the senses above them."""
        names, synsets = set(), set()
        for graph in graphs:
            for thing in graph.things:
                names.update(thing.names)
                synsets.update(thing.synsets)
        return frozenset().union(*map(self._names, names), *map(self._kinds, synsets))

    def _names_of(self, name: str) -> frozenset[str]:
        """Entries that the name of a thing is a form of, or its last words are: a 'tall brick wall' is a wall."""
        sense = senses.choose(self._lexicon, name, 'n', 'lexicon')
        whole = [lemma for lemma, _ in morphology.lemmas(self._lexicon, name, 'n')]
        return frozenset([*whole, sense.lemma] if sense else whole)

    def _kinds_of(self, synset: str) -> frozenset[str]:
        """A synset with all above it; nothing of one that WordNet 3.0 does not have."""
        try:
            return frozenset([synset, *(above for above, _ in self._lexicon.ancestors(synset))])
        except ValueError:
            return frozenset()
