"""Which words may stand in for a word, in each family of edits.

A replacement's quality is the product of
    how likely the replaced word has the sense that the relation starts from: its share of the word's occurrences in
    SemCor, where one more occurrence is spread over the senses by 1/rank;
    how likely the replacement has the sense that the relation leads to, likewise, among its uses as any part of
    speech ("lay" is hardly ever understood as dwell, "electric" not as a car);
    n / (n + 10), where n - 1 is how often SemCor and the definitions of WordNet use the replacement.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from evil_jax.counterfactual import _function_words, colours, morphology, senses
from evil_jax.counterfactual.edits import Settings
from evil_jax.counterfactual.lexicon import Lexicon

# Family -> part of speech that it exchanges, and why a word of it may have no replacement (coverage.REASONS).
OF_WORDNET = {
    'synonym_verb': ('v', 'no synonym'),
    'synonym_adjective': ('a', 'no synonym'),
    'hypernym': ('n', 'no hypernym'),
    'hyponym': ('n', 'no hyponym'),
    'sibling': ('n', 'no sibling'),
}
OF_COLOURS = {
    'colour_max_common': (True, True),  # furthest, among the common ones
    'colour_max_uncommon': (True, False),
    'colour_min_common': (False, True),
    'colour_min_uncommon': (False, False),
}

_APART = {'hypernym': 1, 'hyponym': 1, 'sibling': 2}  # steps between two senses
_SURE = 0.9  # that pictures show the sense that they are said to show
_FAMILIAR = 10  # occurrences that make a word half as familiar as can be
_LETTERS = re.compile(r"[^\W\d_]+(?:[ '.-]+[^\W\d_]+)*\.?")
# No question should call anybody or anything so.
_OFFENSIVE_USAGE = frozenset(['ethnic_slur.n.01', 'disparagement.n.01', 'obscenity.n.02', 'slang.n.02'])
_OFFENSIVE = _function_words.words(
    """
    unpleasant_person.n.01 bad_person.n.01 simpleton.n.01 sensualist.n.01 prostitute.n.01 person_of_color.n.01
    white.n.01 black_man.n.01 black_woman.n.01 white_man.n.01 white_woman.n.01 yellow_man.n.01 yellow_woman.n.01
    mixed-blood.n.01 homosexual.n.01 slave.n.01 slave.n.02 slave.n.03 primitive.n.01 cripple.n.01 defecator.n.01
    pisser.n.01 ejaculator.n.01 masturbator.n.01 nude.n.03 sex_object.n.01 sex_symbol.n.01 nymphet.n.01 baggage.n.03
    broad.n.01 pansexual.n.01 mistress.n.01 jezebel.n.02 ball-buster.n.01 eunuch.n.01 womanizer.n.01
    street_arab.n.01 sexual_activity.n.01 genitalia.n.01 body_waste.n.01 sexual_intercourse.n.01 weakling.n.01
    unfortunate.n.01
    """
)
_FEMALE = frozenset(['female.n.02', 'woman.n.01'])
_MALE = frozenset(['male.n.02', 'man.n.01'])


class Target(NamedTuple):
    """A word that may stand in for another one.

    Attributes:
      lemma: as WordNet writes it, with blanks; of a colour as it is written into texts.
      name: dictionary form: the lemma in lower case, the name of a colour ('deepskyblue').
      synset: its sense; '' of colours and of classes of the user's own.
      sense: the sense of the word that it replaces, or None.
      frequency: in SemCor of the two words in these senses, or None.
      quality: see above.
      gender: 'f' or 'm' of a person that has one, else ''.
      apart: steps between the two senses, over hypernyms; None where they are not related so.
      distance: of colours.
    """

    lemma: str
    name: str
    synset: str = ''
    sense: senses.Sense | None = None
    frequency: tuple[int, int] | None = None
    quality: float = 1.0
    gender: str = ''
    apart: int | None = None
    distance: float | None = None


class _Lemma(NamedTuple):
    """What a Target has whatever word it stands in for; `quality` without the sense of that word."""

    lemma: str
    name: str
    count: int
    quality: float
    gender: str


class Words:
    """Replacements of words by WordNet, remembered: the same word comes again and again."""

    def __init__(self, lexicon: Lexicon, settings: Settings):
        self._lexicon = lexicon
        self._settings = settings
        self.targets = functools.lru_cache(1 << 17)(self._targets)
        self._meanings = functools.lru_cache(1 << 16)(self._choices)
        self._lemmas = functools.lru_cache(1 << 17)(self._all_lemmas)
        self.spelling = functools.lru_cache(1 << 16)(self._spelling)
        self._offensive = _below(lexicon, _OFFENSIVE)
        self._female, self._male = _below(lexicon, _FEMALE), _below(lexicon, _MALE)

    def _choices(self, word, pos):
        """The senses that replacements may start from."""
        policy = 'any' if self._settings.sense == 'lexicon' and pos != 'n' else self._settings.sense
        return senses.choices(self._lexicon, word, pos, policy)

    def sense(self, word: str) -> senses.Sense | None:
        """The sense of a noun in lower case."""
        return next(iter(self._meanings(word, 'n')), None)

    def _spelling(self, word: str) -> str:
        """A noun as WordNet writes it, with capitals where it has some whatever the slot: TV, T-shirts."""
        sense = self.sense(word)
        for lemma in self._lexicon.lemmas(sense.synset) if sense else ():
            if lemma.lower() == sense.lemma and word.startswith(sense.lemma):
                return lemma + word.removeprefix(sense.lemma)
        return ''

    def _targets(self, family: str, word: str) -> tuple[Target, ...] | None:
        """Replacements of a word in lower case, the one to take first, or those to draw from; None: it has no sense."""
        pos, _ = OF_WORDNET[family]
        synonyms = family.startswith('synonym')
        meanings = self._meanings(word, pos)
        if not meanings:
            return None
        found = {}  # name -> what its Target is made of
        for sense in meanings:
            source = self._lexicon.standing(sense.lemma, sense.synset)
            sure = _SURE if sense.how == 'override' else _share(source, source.uses, 1)
            near = self._adjacent(sense.synset) if family == 'sibling' else ()
            for synset in self._related(family, sense.synset):
                for lemma in self._lemmas(synset):
                    name = lemma.name
                    if name == word or name == sense.lemma:
                        continue
                    if name not in found and not (synonyms and self._is_form(name, sense.lemma, pos)):
                        apart = 1 if synset in near else _APART.get(family)
                        found[name] = round(sure * lemma.quality, 4), lemma, synset, sense, source.count, apart
                    if not synonyms:
                        break
        chosen = list(found.values())
        if self._settings.familiar and synonyms:
            chosen.sort(key=lambda row: -row[0])
        elif self._settings.familiar and family in ('hyponym', 'sibling'):
            least = self._settings.familiar * max((row[0] for row in chosen), default=0)
            chosen = [row for row in chosen if row[0] >= least]
        return tuple(
            Target(lemma.lemma, lemma.name, synset, sense, (count, lemma.count), quality, lemma.gender, apart)
            for quality, lemma, synset, sense, count, apart in chosen
        )

    def _related(self, family, synset) -> tuple[str, ...]:
        if family == 'hypernym':
            return self._lexicon.hypernyms(synset)
        if family == 'hyponym':
            return self._lexicon.hyponyms(synset)
        return self._lexicon.siblings(synset) if family == 'sibling' else (synset,)

    def _all_lemmas(self, synset: str) -> tuple[_Lemma, ...]:
        """The lemmas of a synset that may be written, the one to take first."""
        lexicon = self._lexicon
        kind = synset.rsplit('.', 2)[1]
        pos = 'a' if kind == 's' else kind
        if synset in self._offensive or not _OFFENSIVE_USAGE.isdisjoint(lexicon.usage(synset)):
            return ()
        gender = 'f' if synset in self._female else 'm' if synset in self._male else ''
        found = []
        for lemma in lexicon.lemmas(synset):
            name = lemma.lower()
            phrase = pos != 'v' and ' ' in name and name.partition(' ')[0] in _function_words.CLASS  # on the road
            if _LETTERS.fullmatch(lemma) and not phrase and not (name != lemma and lexicon.is_proper(lemma, synset)):
                standing = lexicon.standing(name, synset)
                known = standing.uses + standing.glosses + 1
                quality = _share(standing, standing.everywhere, standing.parts) * known / (known + _FAMILIAR)
                found.append(_Lemma(lemma, name, standing.count, quality, gender))
        if self._settings.familiar:
            found.sort(key=lambda lemma: -lemma.count)
        return tuple(found)

    def _is_form(self, word, lemma, pos):
        """Whether a word is a form of a lemma, as older is of old."""
        return word.startswith(lemma) and any(base == lemma for base, _ in morphology.lemmas(self._lexicon, word, pos))

    def _adjacent(self, synset):
        return {*self._lexicon.hypernyms(synset), *self._lexicon.hyponyms(synset)}


@functools.lru_cache(8)
def _below(lexicon, synsets) -> frozenset[str]:
    """These synsets, as far as this version of WordNet has them, and everything below them."""
    left = [synset for synset in synsets if synset in lexicon.senses(synset.rsplit('.', 2)[0], 'n')]
    found = set(left)
    while left:
        below = [synset for synset in lexicon.hyponyms(left.pop()) if synset not in found]
        found.update(below)
        left += below
    return frozenset(found)


def _share(standing, uses, parts):
    """How likely a lemma has a sense, among its uses as so many parts of speech."""
    prior = 1 / standing.rank / _harmonic(standing.senses) / parts
    return (standing.count + prior) / (uses + 1)


@functools.cache
def _harmonic(n):
    return sum(1 / i for i in range(1, n + 1))


class Colours:
    """Replacements of colours, remembered."""

    def __init__(self, settings: Settings, uses: Counter):
        """Takes how often the user's own questions use each colour (colours.uses); none: the basic terms are common."""
        self._settings = settings
        self._classes = colours.split(uses, settings.min_uses)
        self.targets = functools.cache(self._targets)

    def _targets(self, family: str, name: str) -> tuple[Target, ...]:
        """The colours that one of these is drawn from."""
        settings = self._settings
        furthest, common = OF_COLOURS[family]
        ranked = colours.neighbours(name, self._classes[not common], settings.metric, furthest)
        return tuple(
            Target(
                colours.spaced(other) if settings.names == 'spaced' else other,
                other,
                distance=round(colours.distance(name, other, settings.metric), 4),
            )
            for other in ranked[: settings.nearest]
        )


class Classes:
    """Words that are siblings because the user says so: in a closed world the shapes, say, and nothing else."""

    def __init__(self, lexicon: Lexicon, settings: Settings):
        self._lexicon = lexicon
        self._policy = settings.sense
        self._members, self._forms = {}, {}
        for group in settings.siblings:
            for word in group:
                others = [other for other in group if other.lower() != word.lower()]
                self._members.setdefault(word.lower(), []).extend(others)
                self._forms.setdefault(morphology.plural(word).lower(), (word.lower(), True))
        self._forms |= {word: (word, False) for word in self._members}
        longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile(rf'(?<!\w)(?:{"|".join(map(re.escape, longest_first))})(?!\w)', re.IGNORECASE)
        self.targets = functools.cache(self._targets)

    def find(self, text: str) -> Iterator[tuple[int, int, str, bool]]:
        """(start, end, word as the class has it, whether it is in the plural) of every word of a class."""
        if self._forms:
            for match in self._pattern.finditer(text):
                yield *match.span(), *self._forms[match[0].lower()]

    def _targets(self, word: str) -> tuple[Target, ...]:
        """The others of its class, or classes."""
        sense = senses.choose(self._lexicon, word, 'n', self._policy)
        others = dict.fromkeys(self._members[word])
        return tuple(Target(other, other.lower(), sense=sense) for other in others)


@functools.lru_cache(1 << 16)
def number(noun: str) -> str:
    """'mass' of a noun that cannot be counted, 'plural' of one without singular, else ''."""
    return 'mass' if morphology.is_mass(noun) else 'plural' if morphology.is_plural(noun, noun) else ''
