"""A study: which explanations people are asked about, in which order, on which pages. `sampling` makes it.

It is one JSON file, study.json, in a folder that also has the pictures (images/); whatever runs a study (the server,
MTurk, Label Studio, Potato) is made from it and comes back to it by its ids, which tell a rater nothing. It says which
explanation is the gold one and which answer is right, so it never goes to a rater's browser.
"""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from evil_jax import records
from evil_jax.data.sources import _files

FILE, IMAGES = 'study.json', 'images'
KINDS = ('question', 'statement')
ASKS = ('ratings', 'labels')  # what people give: judgements of explanations, or a label and an explanation of their own
RATINGS = ('no', 'weak_no', 'weak_yes', 'yes')  # worth 0, 1/3, 2/3, 1
SHORTCOMINGS = ('incorrect_description', 'insufficient_justification', 'confusing_sentence')
GOLD = 'gt'  # the system that wrote the gold explanations
TRUSTED = 'trusted'  # the one whose explanations are known to be bad or good
RELATIONS = ('Entailment', 'Neutral', 'Contradiction')  # e-ViL's questionnaire has this order, its model another
PREFERENCES = ('this', 'other', 'none')  # which of two explanations is better, where that was asked
STATUSES = ('submitted', 'approved', 'rejected')  # of a rater's work
NO_EXPLANATION = '(no explanation)'  # shown where a system wrote nothing


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """One explanation.

    Attributes:
      system: who wrote it: `GOLD`, a label of predictions, or `TRUSTED`.
      text: as it is shown.
      expected: of a trusted one, the ratings that a careful rater may give; () = any.
    """

    system: str
    text: str
    expected: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """A task question about a picture and the explanations of its right answer.

    Attributes:
      id: opaque and unique in the study.
      example: id of the example.
      image: file in images/, or '' (there is no picture: the boxes are shown, or that there is none).
      text: question or hypothesis, tags spelt out.
      choices: answers to choose from, in the order shown, tags spelt out.
      gold: number of the right one; where labels are asked for, of the one that the data give so far.
      explanations: two, in the order shown (of other studies one or more). Where labels are asked for there are none,
        but a trusted item has an empty one of `TRUSTED`.
      image_id: of the picture; two items about one picture are not independent.
      boxes: (name, x1, y1, x2, y2) of objects that the texts speak of, as shares of width and height.
    """

    id: str
    example: str
    image: str
    text: str
    choices: tuple[str, ...]
    gold: int
    explanations: tuple[Shown, ...]
    image_id: str = ''
    boxes: tuple[tuple[str, float, float, float, float], ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether its right ratings are known: it checks the rater and is no part of any score."""
        return any(e.system == TRUSTED or e.expected for e in self.explanations)

    @property
    def system(self) -> str:
        """The system whose explanation stands beside the gold one; `TRUSTED` of a trusted item."""
        if self.trusted:
            return TRUSTED
        return next((e.system for e in self.explanations if e.system != GOLD), GOLD)


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """What one rater does at a time: ids of items, in order."""

    id: str
    items: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Study:
    """Everything that was decided before anybody was asked.

    Attributes:
      dataset: esnlive, vqax, vcr or another name.
      kind: what `Item.text` is: 'statement' (choices are relations to the picture) or 'question'.
      items: all, by id.
      pages: each of them is done by `raters` raters.
      raters: wanted for each page.
      wrong_limit: a page with more wrong task answers than this is not taken.
      yes_limit: nor one with more ratings "yes" than this.
      s_t: {system: how right its answers are, on all examples}.
      settings: of the sampling.
      made_from: what tells its sources from others (files and their hashes).
      asks: one of `ASKS`; a file that does not say so asks for ratings.
    """

    dataset: str
    kind: str
    items: Mapping[str, Item]
    pages: tuple[Page, ...]
    raters: int
    wrong_limit: int
    yes_limit: int
    s_t: Mapping[str, float]
    settings: Mapping[str, Any]
    made_from: Mapping[str, Any]
    asks: str = ASKS[0]

    def of(self, page: Page) -> Iterator[Item]:
        """The items of a page."""
        return (self.items[name] for name in page.items)

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of the systems that are judged, sorted, without gold and trusted ones."""
        found = {e.system for item in self.items.values() for e in item.explanations}
        return tuple(sorted(found - {GOLD, TRUSTED}))

    def write(self, folder) -> None:
        """Writes `<folder>/study.json`, atomically."""
        rows = dataclasses.asdict(self) | {'items': [dataclasses.asdict(item) for item in self.items.values()]}
        if self.asks == ASKS[0]:
            del rows['asks']  # earlier versions read this file as well
        records.write_json(pathlib.Path(folder) / FILE, {'schema': 1, **rows})

    @classmethod
    def open(cls, folder) -> 'Study':
        """Reads what `write` wrote.

        Raises:
          ValueError: no study there, or one that was changed: the message names the field.
        """
        path = pathlib.Path(folder) / FILE
        if not path.is_file():
            raise ValueError(f'{path}: there is no study (--config.human.step=sample makes one)')
        row = _files.checked(_files.read_json(path), dict, f'{path}: the document')
        if row.pop('schema', None) != 1:
            raise ValueError(f'{path}: schema is not 1: another version of evil_jax made it')
        try:
            items = [_item(item) for item in row.pop('items')]
            pages = tuple(Page(page['id'], tuple(page['items'])) for page in row.pop('pages'))
            study = cls(items={item.id: item for item in items}, pages=pages, **row)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f'{path}: not a study: {type(error).__name__}: {error}') from error
        _check(study, len(items), path)
        return study


def _item(row) -> Item:
    explanations = tuple(Shown(**e | {'expected': tuple(e['expected'])}) for e in row['explanations'])
    boxes = tuple(tuple(box) for box in row['boxes'])
    return Item(**row | {'choices': tuple(row['choices']), 'explanations': explanations, 'boxes': boxes})


def _check(study: Study, number: int, path) -> None:
    """Raises ValueError for what would fail only when a rater is there."""
    for name, least in (('raters', 1), ('wrong_limit', 0), ('yes_limit', 0)):
        if type(value := getattr(study, name)) is not int or value < least:
            raise ValueError(f'{path}: {name} is {value!r}, wanted a whole number of at least {least}')
    if study.kind not in KINDS:
        raise ValueError(f'{path}: kind is {study.kind!r}, wanted one of {", ".join(KINDS)}')
    if study.asks not in ASKS:
        raise ValueError(f'{path}: asks is {study.asks!r}, wanted one of {", ".join(ASKS)}')
    for name in ('s_t', 'settings', 'made_from'):
        _files.checked(getattr(study, name), dict, f'{path}: {name}')
    for system, value in study.s_t.items():
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise ValueError(f'{path}: s_t of {system!r} is {value!r}, wanted a number from 0 to 1')
    if len(study.items) != number:
        raise ValueError(f'{path}: an item id is there twice')
    if len({page.id for page in study.pages}) != len(study.pages):
        raise ValueError(f'{path}: a page id is there twice')
    for page in study.pages:
        for name in page.items:
            if name not in study.items:
                raise ValueError(f'{path}: page {page.id} has item {name!r}, which is not among the items')
    for item in study.items.values():
        if not 0 <= item.gold < len(item.choices):
            raise ValueError(f'{path}: item {item.id} has answer {item.gold} of {len(item.choices)} choices')
        if item.image and pathlib.PurePosixPath(item.image).name != item.image:
            raise ValueError(
                f'{path}: item {item.id} has picture {item.image!r}, wanted the name of a file in {IMAGES}'
            )
        for shown in item.explanations:
            if strange := set(shown.expected) - set(RATINGS):
                raise ValueError(
                    f'{path}: item {item.id} expects {sorted(strange)}, wanted some of {", ".join(RATINGS)}'
                )
