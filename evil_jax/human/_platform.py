"""What platforms that show studies have in common: addresses of pictures, and tasks of one item each."""

import dataclasses
import hashlib
import math
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence

from evil_jax.human import form, responses
from evil_jax.human.study import Item, Page, Study

ASKED = {
    'statement': 'What does the picture say about the statement?',
    'question': 'What is the answer to the question?',
}
RATE = 'Does the explanation justify the answer, given the picture?'
TICK = 'What is wrong with the explanation? Tick all that applies.'
_CHOICE = 'choice_'  # what a platform stores of a task answer, with its number: a text could be a number itself


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """One item as done by one person.

    Attributes:
      item: its id.
      person: as the platform calls the rater.
      fields: answer, e1, f1, e2, f2, ... -> values: of `choice`, `form.WORDS` and `form.TICKS` (the words, not their
        numbers: Potato takes a value '0' for "not ticked").
      seconds: spent on it, or None.
      source: file and place.
    """

    item: str
    person: str
    fields: Mapping[str, Sequence[str]]
    seconds: float | None
    source: str


def hashed(person: str) -> str:
    """Id of a rater in the tidy table, where there is no study whose secret salt makes a better one."""
    return 'r' + hashlib.sha256(person.encode()).hexdigest()[:12]


def pictures(
    study: Study, image_url: str, names: Mapping[str, str] | None = None, *, paths: bool = False
) -> dict[str, str]:
    """{id of an item that has a picture: its address}.

    Args:
      study: whose pictures.
      image_url: of the folder that they are in: https (or http).
      names: of the files, by item. None: as the study calls them.
      paths: whether a path, which begins with /, is an address too: the platform itself gives the pictures out.

    Raises:
      ValueError: there are pictures, and `image_url` is no address.
    """
    if names is None:
        names = {item.id: item.image for item in study.items.values() if item.image}
    parts = urllib.parse.urlsplit(image_url)
    local = paths and image_url.startswith('/')
    if names and not local and not (parts.scheme in ('http', 'https') and parts.netloc):
        raise ValueError(
            f'human.image_url is {image_url!r}, wanted the address where the pictures of images/ can be seen, '
            'https://HOST/FOLDER/'
        )
    return {item: f'{image_url.rstrip("/")}/{urllib.parse.quote(name)}' for item, name in names.items()}


def explanations(study: Study) -> int:
    """How many explanations each item has.

    Raises:
      ValueError: not all have as many: a platform's form is one for all items.
    """
    numbers = {len(item.explanations) for item in study.items.values()}
    if len(numbers) != 1:
        raise ValueError(f'items have {sorted(numbers)} explanations, wanted as many of each')
    return numbers.pop()


def choice(number: int) -> str:
    """What a platform stores of a task answer."""
    return f'{_CHOICE}{number}'


def rows(study: Study, done: Iterable[Done], rater: Callable[[str], str]) -> list[responses.Response]:
    """Rows of the tidy table, in the order of pages and items. The seconds are those of all items of a page.

    Where somebody did an item again the last time counts.

    Raises:
      ValueError: an item that the study does not have, or values that its form does not have; the place is named.
    """
    last: dict[str, dict[str, Done]] = {item: {} for item in study.items}
    for one in done:
        if one.item not in last:
            raise ValueError(f'{one.source}: item {one.item!r} is not one of the study')
        last[one.item][one.person] = one
    found = []
    for page in study.pages:
        for person in dict.fromkeys(person for item in page.items for person in last[item]):
            some = [last[item][person] for item in page.items if person in last[item]]
            seconds = math.fsum(s.seconds for s in some) if all(s.seconds is not None for s in some) else None
            name = rater(person)
            for one in some:
                own = Page(page.id, (one.item,))
                found += form.rows(
                    study, own, _answers(study, own, one), rater=name, assignment=f'{page.id}-{name}',
                    seconds=seconds, source=one.source,
                )  # fmt: skip
    return found


def _answers(study: Study, own: Page, one: Done) -> form.Answers:
    item = study.items[one.item]
    fields = {}
    for name, values in one.fields.items():
        if name == 'answer':
            fields['c1'] = [_number(value, item, one.source) for value in values]
        else:
            fields[f'1-{name}'] = [str(form.TICKS.index(v)) if v in form.TICKS else v for v in values]
    try:
        return form.parse(fields, **form.shape(study, own))
    except ValueError as error:
        raise ValueError(f'{one.source}: item {one.item}: {error}') from error


def _number(value: str, item: Item, source: str) -> str:
    """Number of a choice, by the name that was exported or, if a platform kept that, by its text."""
    names = [choice(number) for number in range(len(item.choices))]
    if value in names:
        return str(names.index(value))
    if item.choices.count(value) == 1:
        return str(item.choices.index(value))
    raise ValueError(f'{source}: item {item.id}: answer {value[:80]!r}, wanted one of {", ".join(item.choices)}')
