"""What an edited question is, and the settings that decide how questions are edited.

The ten families are those of Stoikou, Lymperaiou and Stamou, "Knowledge-Based Counterfactual Queries for Visual
Question Answering" (2023): one word of the question is replaced by one that WordNet or a table of colours relates to
it, or goes.
"""

import dataclasses
import functools
import types
import typing
from typing import Any

from evil_jax import lookup

FAMILIES = (
    'synonym_verb', 'synonym_adjective', 'hypernym', 'hyponym', 'sibling', 'colour_max_common', 'colour_max_uncommon',
    'colour_min_common', 'colour_min_uncommon', 'delete',
)  # fmt: skip
EXPECTATIONS = ('', 'INV', 'CHANGE', 'FREE')
_LISTS = (list, tuple)
_CHOICES = {
    'preset': ('default', 'stoikou2023'),
    'sense': ('first', 'any', 'lexicon'),
    'names': ('spaced', 'raw'),
    'scope': ('question', 'joint'),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How questions are edited.

    Attributes:
      families: which of `FAMILIES` are made, in this order.
      preset: name of the preset that the others were taken from (`Settings.of`); written into every edit.
      sense: which sense of an ambiguous word its relations are taken from (senses.py). 'first': the first. 'any': every
        one, in order. 'lexicon': of nouns the one that pictures show, or the first; of other words every one.
      metric: of colours (colours.py): 'ciede2000', 'stoikou2023' or 'rgb'.
      names: how a colour is written: 'spaced' is 'deep sky blue', 'raw' 'deepskyblue'.
      nearest: a new colour is drawn from this many nearest (furthest) ones; 1 = the nearest (furthest) itself.
      min_uses: a colour is common if the user's own questions use it as an adjective at least this often.
      max_edits: of one question in one family, at one position where `all_positions` is set.
      all_positions: every word that can be edited is edited, each in an edit of its own.
      repair: a deletion takes the determiner that it orphans along and leaves single blanks.
      scope: of VCR: 'question' edits the question alone, 'joint' renames in question, choices and explanations.
      siblings: classes of the user's own, whose words are each other's siblings instead of WordNet's.
      familiar: hyponyms and siblings are drawn from those with at least this share of the best one's quality, synonyms
        are the best ones, and a synset's commonest lemma stands for it. 0 = hyponyms and siblings are drawn from all,
        synonyms and lemmas are the first in WordNet's order.
      min_quality: edits of lower `Edit.quality` are not made.
      tagger: 'heuristic', or one that has to be installed (tagging.py).
      max_length: longer texts, in characters, are left alone.
      seed: of the choice of words and replacements.
    """

    families: tuple[str, ...] = FAMILIES
    preset: str = 'default'
    sense: str = 'lexicon'
    metric: str = 'ciede2000'
    names: str = 'spaced'
    nearest: int = 1
    min_uses: int = 5
    max_edits: int = 1
    all_positions: bool = False
    repair: bool = True
    scope: str = 'question'
    siblings: tuple[tuple[str, ...], ...] = ()
    familiar: float = 0.5
    min_quality: float = 0.0
    tagger: str = 'heuristic'
    max_length: int = 2000
    seed: int = 0

    def __post_init__(self):
        for name, known in _CHOICES.items():
            lookup.entry(dict.fromkeys(known), getattr(self, name), name)
        for family in self.families:
            lookup.entry(dict.fromkeys(FAMILIES), family, 'a family')
        for name in ('nearest', 'min_uses', 'max_edits', 'max_length'):
            if getattr(self, name) < 1:
                raise ValueError(f'{name} is {getattr(self, name)}, wanted at least 1')
        for name in ('familiar', 'min_quality'):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f'{name} is {getattr(self, name)}, wanted a number from 0 to 1')
        if not all(map(_is_class, self.siblings)):
            raise ValueError(f'siblings is {self.siblings!r}, wanted classes of two words or more, each in a list')
        # Lists come from configurations; the record is hashable.
        object.__setattr__(self, 'families', tuple(dict.fromkeys(self.families)))
        object.__setattr__(self, 'siblings', tuple(map(tuple, self.siblings)))

    @classmethod
    def of(cls, preset: str, **changes) -> 'Settings':
        """A preset with some fields changed: 'default', or 'stoikou2023' for what the paper did.

        The paper takes words from any sense, measures colours on values that were never divided by 255, writes
        'deepskyblue' and deletes a noun without touching its determiner.
        """
        presets = {
            'default': {},
            'stoikou2023': dict(sense='any', metric='stoikou2023', names='raw', repair=False, familiar=0.0),
        }
        return cls(**(lookup.entry(presets, preset, 'preset') | {'preset': preset} | changes))

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _is_class(group) -> bool:
    """Whether it is a list of at least two words, all different."""
    words = {word.lower() for word in group if isinstance(word, str) and word.strip()} if type(group) in _LISTS else ()
    return len(words) > 1 and len(words) == len(group)


@dataclasses.dataclass(slots=True)
class Edit:
    """One edited question, with all that is needed to audit it.

    Positions are Python string indexes, the end excluded. Outside `span` the text is the original's, character for
    character: `text == original[:span[0]] + text[target_span[0]:target_span[1]] + original[span[1]:]`.

    Attributes:
      id: '<example id>#<family>', the second of a family '<example id>#<family>.1' and so on.
      example_id, image_id: of the example.
      family: one of `FAMILIES`, or the name of a baseline.
      original, text: the question before and after.
      span: what changed in `original`: the word, and determiner, verb or blanks where those changed too.
      target_span: what stands there in `text`.
      source, target: the word as it was written and as it was put in; '' for a deletion.
      source_lemma, target_lemma: their dictionary forms.
      source_synset, target_synset: their WordNet senses ('dog.n.01'); '' where there is none.
      sense: the policy that chose the sense.
      sense_rank: rank of the source's sense, from 1; 0 where there is none.
      sense_count: number of senses that the source has as this part of speech.
      how: why this sense: 'first', 'plural', 'override', ... (senses.py); 'siblings' for a class of the user's own.
      path_similarity: 1 / (1 + edges between the two senses), for nouns.
      distance: between the two colours, in units of `metric`.
      metric: of colours.
      frequency: how often SemCor has source and target in these senses.
      lemma_rule: how the source's lemma was found (morphology.py).
      tagger: what found the word.
      twin: for verbs and adjectives, whether the word is a noun as well ('picture').
      role: of a noun: 'head', 'modifier' of the next noun, or 'of' what a picture, a kind, a glass is of.
      asks: what the question asks for: 'colour', 'count', 'yes/no', ... (phrases.py).
      negated: whether a negator or a downward quantifier stands before the word.
      quality: 0 to 1, how sure sense and replacement are (families.py).
      adjusted: what else changed to agree, 'a>an', in order.
      repair: of a deletion, whether the orphan determiner went too.
      preset, seed: of the settings.
      choices, explanations, objects: the example's, renamed (VCR, scope 'joint').
      expectation: what a sound model does: 'INV' keeps its answer, 'CHANGE' changes it, 'FREE' either; '' unknown.
      expected: the right new answers, where known.
      why: what the expectation rests on.
    """

    id: str
    example_id: str
    image_id: str
    family: str
    original: str
    text: str
    span: tuple[int, int]
    target_span: tuple[int, int]
    source: str
    target: str
    source_lemma: str = ''
    target_lemma: str = ''
    source_synset: str = ''
    target_synset: str = ''
    sense: str = ''
    sense_rank: int = 0
    sense_count: int = 0
    how: str = ''
    path_similarity: float | None = None
    distance: float | None = None
    metric: str = ''
    frequency: tuple[int, int] | None = None
    lemma_rule: str = ''
    tagger: str = ''
    twin: bool = False
    role: str = ''
    asks: str = ''
    negated: bool = False
    quality: float = 1.0
    adjusted: tuple[str, ...] = ()
    repair: bool = False
    preset: str = ''
    seed: int = 0
    choices: list[str] | None = None
    explanations: list[str] | None = None
    objects: list[str] | None = None
    expectation: str = ''
    expected: tuple[str, ...] | None = None
    why: str = ''

    def to_json(self) -> dict[str, Any]:
        """Fields that have their default are left out."""
        row = {}
        for name, default in _defaults():
            value = getattr(self, name)
            if value != default:
                row[name] = value
        return row

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> 'Edit':
        edit = cls(**_checked(row))
        if edit.expectation not in EXPECTATIONS:
            raise ValueError(f'expectation of {edit.id!r} is {edit.expectation!r}, wanted INV, CHANGE or FREE')
        return edit


@functools.cache
def _defaults() -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in dataclasses.fields(Edit))


@functools.cache
def _kinds() -> dict[str, tuple[type, ...]]:
    """The types that each field may have; tuples are lists in JSON, and an int is a float."""
    kinds = {}
    for field in dataclasses.fields(Edit):
        options = typing.get_args(field.type) if isinstance(field.type, types.UnionType) else (field.type,)
        found = tuple(typing.get_origin(option) or option for option in options)
        kinds[field.name] = found + (list,) * (tuple in found) + (int,) * (float in found)
    return kinds


def _checked(row) -> dict[str, Any]:
    """The arguments of an Edit from its JSON object; lists become tuples where the record has tuples."""
    if not isinstance(row, dict):
        raise ValueError(f'wanted a JSON object, found {type(row).__name__}')
    kinds = _kinds()
    for name, value in row.items():
        if name not in kinds:
            raise ValueError(f'unknown field {name!r} of Edit.{lookup.nearest(name, kinds)}')
        if not isinstance(value, kinds[name]) or isinstance(value, bool) != (bool in kinds[name]):
            raise ValueError(f'field {name!r} is {value!r}, wanted {kinds[name][0].__name__}')
    missing = [name for name, default in _defaults() if default is dataclasses.MISSING and name not in row]
    if missing:
        raise ValueError(f'missing field {missing[0]!r} of Edit')
    return {name: tuple(value) if tuple in kinds[name] and value is not None else value for name, value in row.items()}
