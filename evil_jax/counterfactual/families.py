"""Edits of questions in the ten families: verb and adjective synonyms, hypernym, hyponym, sibling, colours, deletion.

One word of the text gives way in each edit. Which word that is, and which of several hyponyms, siblings or colours
comes, is drawn by a hash of seed, example and family: the same for the same example, whatever stands before or behind.

What is left alone: tags of objects, fixed phrases and names; in statements what stands behind a negator or a downward
quantifier, where an entailment would turn round; words that only a replacement of another number or gender fits.

Of 60,000 questions of VQA v2 the default settings edit 96.5 % by a hypernym, 91.6 % by a hyponym, 96.1 % by a sibling,
31.1 % by the synonym of a verb, 16.4 % by that of an adjective, 3.5 % by each of the colours, and 97.5 % by a deletion.
"""

import functools
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from evil_jax.counterfactual import _replacements, _sites, _writing, coverage, morphology, phrases, tagging
from evil_jax.counterfactual._replacements import Target
from evil_jax.counterfactual.edits import FAMILIES, Edit, Settings
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.records import Example

_LABELS = ('entailment', 'neutral', 'contradiction')
_NOTHING = Target('', '')  # stands in for a deleted word
_DRAWN = ('hyponym', 'sibling', *_replacements.OF_COLOURS)
_ABBREVIATION = re.compile('[B-DF-HJ-NP-TV-Z]{2,4}|[A-Z]{2,4}s')  # TV, DVDs: their capitals say nothing of the slot
_plural = functools.lru_cache(1 << 15)(morphology.plural)
_PERSON = 'person'  # VCR's class whose tags are read as names
_BYTES = 6  # of hash for each family
_PLACES = {family: slice(_BYTES * i, _BYTES * (i + 1)) for i, family in enumerate(FAMILIES)}


class Editor:
    """Makes the edits of examples, and counts what it could not edit.

    Attributes:
      settings: how edits are made.
      coverage: of the examples so far.
    """

    def __init__(self, lexicon: Lexicon, settings: Settings | None = None, uses: Counter | None = None):
        """Makes an editor.

        Args:
          settings: how edits are made; None = the defaults.
          uses: how often the user's own questions use each colour (`colours.uses`), which tells the common ones; None =
            the basic colour terms are common.

        Raises:
          ValueError: the tagger of the settings is not installed.
        """
        self.settings = settings = settings or Settings()
        self.coverage = coverage.Coverage(settings.families)
        self._lexicon = lexicon
        self._words = _replacements.Words(lexicon, settings)
        self._colours = _replacements.Colours(settings, uses or Counter())
        self._classes = _replacements.Classes(lexicon, settings)
        tagger = tagging.make_tagger(settings.tagger, lexicon)
        self._read = _sites.Reader(lexicon, tagger, self._classes, settings.max_length)

    def edits(self, example: Example) -> list[Edit]:
        """The edits of an example in the order of the families; those of one family have different texts."""
        text = self._read(example.text, example.label in _LABELS)
        key = f'{self.settings.seed}\n{example.id}'.encode('utf-8', 'surrogatepass')
        draws = hashlib.blake2b(key, digest_size=_BYTES * len(FAMILIES)).digest()
        made = []
        for family in self.settings.families:
            sites, reason = text.sites(family)
            if not sites:
                self.coverage.add(family, 0, reason)
                continue
            draw = int.from_bytes(draws[_PLACES[family]])
            found, reasons = self._family(example, text, family, sites, draw)
            self.coverage.add(family, len(found), '' if found else coverage.nearest(reasons))
            made += found
        return made

    def _family(self, example, text, family, sites, draw) -> tuple[list[Edit], list[str]]:
        """The edits of one family, and why words have none."""
        reasons, most, everywhere = [], self.settings.max_edits, self.settings.all_positions
        at = (self._at(example, text, family, site, draw >> 16, reasons) for site in _rotated(sites, draw))
        if most == 1 and not everywhere:
            for edits in at:
                for edit in edits:
                    return [edit], reasons
            return [], reasons
        if everywhere:
            found = list(_distinct(edit for edits in at for edit in itertools.islice(edits, most)))
        else:
            found = list(itertools.islice(_distinct(_in_turn(at)), most))
        for number, edit in enumerate(found[1:], 1):
            edit.id += f'.{number}'
        return found, reasons

    def _at(self, example, text, family, site, draw, reasons) -> Iterator[Edit]:
        """The edits of a family at one word, one for each replacement that fits."""
        targets = self._targets(family, site)
        if not targets:
            _, without = _replacements.OF_WORDNET.get(family, ('', 'no other colour'))
            reasons.append('not in WordNet' if targets is None else without)
            return
        for target in _rotated(targets, draw if family in _DRAWN else 0):
            if target.quality < self.settings.min_quality:
                reasons.append('low quality')
            elif (edit := self._edit(example, text, family, site, target)) is None:
                reasons.append('does not fit')
            else:
                yield edit

    def _targets(self, family, site) -> Sequence[Target] | None:
        if family == 'delete':
            return (_NOTHING,)
        if site.kind == 'colour':
            return self._colours.targets(family, site.name)
        return self._classes.targets(site.name) if site.kind == 'class' else self._words.targets(family, site.name)

    def _edit(self, example, text, family, site, target) -> Edit | None:
        """The edit that puts a target in; None where it does not fit."""
        joint = self.settings.scope == 'joint' and example.choices is not None and family != 'delete'
        if family == 'delete':
            changes = _writing.delete(text.text, text.tokens, site.at, self.settings.repair)
        else:
            changes = self._changes(text, text.same(site) if joint else [site], target)
        written = _writing.apply(text.text, changes) if changes else None
        if written is None or written.text == text.text:
            return None
        settings, token = self.settings, text.tokens[site.at]
        put = next(change.new for change in changes if change.end == site.end) if target.lemma else ''
        sense = self._words.sense(site.name) if family == 'delete' else target.sense
        edit = Edit(
            id=f'{example.id}#{family}', example_id=example.id, image_id=example.image_id, family=family,
            original=text.text, text=written.text, span=written.span, target_span=written.target_span,
            source=text.text[site.start : site.end], target=put,
            source_lemma=site.lemma, target_lemma=target.name, target_synset=target.synset,
            path_similarity=None if target.apart is None else 1 / (1 + target.apart), frequency=target.frequency,
            distance=target.distance, metric=settings.metric if site.kind == 'colour' else '',
            lemma_rule=site.rule, tagger=settings.tagger, asks=text.asks, negated=text.downward(site.start),
            twin=site.kind in 'va' and phrases.twin(self._lexicon, token),
            role=phrases.role(text.tokens, site.at) if site.kind in ('n', 'class') else '',
            quality=target.quality, adjusted=written.adjusted, preset=settings.preset, seed=settings.seed,
            repair=family == 'delete' and settings.repair,
        )  # fmt: skip
        if sense is not None:
            edit.source_synset, edit.sense, edit.how = sense.synset, settings.sense, sense.how
            edit.sense_rank, edit.sense_count = sense.rank, sense.senses
        if site.kind == 'class':
            edit.how = 'siblings'
        return self._renamed(edit, example, site, target) if joint else edit

    def _changes(self, text, sites, target) -> list[_writing.Change] | None:
        """What puts a target in at these words; None where it does not fit one of them."""
        if not text.agrees(target.gender):
            return None
        changes = []
        for site in sites:
            new = self._form(text, site, target)
            if ' ' in new and any(new.lower().endswith(f' {t.text.lower()}') for t in text.tokens[site.at + 1 :][:1]):
                return None  # 'belong to' before another 'to'
            number = _replacements.number(target.name) if site.kind in ('n', 'class') else ''
            if number == 'plural' and not site.plural:
                return None
            if number == 'mass' and self._counts(text, site):
                found = _writing.uncountable(text.text, text.tokens, site.at, site.end, new, site.plural)
            else:
                found = _writing.replace(text.text, text.tokens, site.at, site.start, site.end, new)
            if found is None:
                return None
            changes += found
        return changes if len(sites) == 1 else _writing.together(changes)

    def _counts(self, text, site) -> bool:
        """Whether a noun can be counted, and is what the words around it agree with."""
        return not morphology.is_mass(site.lemma) and phrases.role(text.tokens, site.at) != 'modifier'

    def _form(self, text, site, target) -> str:
        """A target in number, form, degree and case of the word that it stands in for."""
        token, source = text.tokens[site.at], text.text[site.start : site.end]
        new = _inflected(target.lemma, token, site.kind, site.plural) if site.kind != 'colour' else target.lemma
        if source.islower() or (_ABBREVIATION.fullmatch(source) and not text.text.isupper()):
            return new
        return morphology.match_case(new, source, self._words.spelling(site.name))

    def _renamed(self, edit, example, site, target) -> Edit | None:
        """The edit with the same word renamed in choices, explanations and classes of objects.

        None where the word in one of them does not agree, or two choices would become one.
        """
        renamed = []
        for other in (*example.choices, *example.explanations):
            read = self._read(other)
            sites = read.same(site)
            changes = self._changes(read, sites, target)
            if sites and not changes:
                return None
            renamed.append(_writing.apply(other, changes).text if changes else other)
        edit.choices, edit.explanations = renamed[: len(example.choices)], renamed[len(example.choices) :]
        if len(set(edit.choices)) < len(set(example.choices)):
            return None
        if example.objects is not None:
            named = site.kind in ('n', 'class') and site.lemma != _PERSON
            edit.objects = [target.lemma if named and kind == site.lemma else kind for kind in example.objects]
        return edit


def _inflected(lemma, token, kind, plural) -> str:
    if plural:
        return _plural(lemma)
    if kind == 'v':
        return morphology.verb_form(lemma, token.form or 'base')
    return _writing.compared(lemma, token) if kind == 'a' else lemma


def edit_all(examples: Iterable[Example], editor: Editor) -> Iterator[Edit]:
    """Yields the edits of examples, one example after the other."""
    for example in examples:
        yield from editor.edits(example)


def _rotated(values: Sequence, draw: int) -> Sequence:
    """The same, from a drawn one on."""
    start = draw % len(values) if values else 0
    return [*values[start:], *values[:start]] if start else values


def _in_turn(iterators: Iterable[Iterator]) -> Iterator:
    """The first of each, then the second of each, and so on."""
    while iterators:
        left = []
        for iterator in iterators:
            for value in itertools.islice(iterator, 1):
                yield value
                left.append(iterator)
        iterators = left


def _distinct(edits: Iterable[Edit]) -> Iterator[Edit]:
    """The edits without those whose text came before."""
    texts = set()
    for edit in edits:
        if edit.text not in texts:
            texts.add(edit.text)
            yield edit
