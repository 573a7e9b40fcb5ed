"""Makes a study in which people label statements about pictures: which ones, on which pages, with which checks.

Pages are filled in an order that chance decides, no page has two items about one picture where that can be avoided, and
trusted items, whose labels are known, are spread over the pages: each has as many, at places that chance decides.
"""

import collections
import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evil_jax.human import _chance, pictures
from evil_jax.human.labels import CLASSES
from evil_jax.human.study import FILE, RELATIONS, TRUSTED, Item, Page, Shown, Study

_ID, _NEAR = 12, 50  # hexadecimal digits; items in which one about another picture is looked for


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A statement about a picture.

    Attributes:
      id: of the example (a pairID), unique.
      image_id: of the picture.
      text: the statement.
      label: one of `labels.CLASSES`: the one that the data give; of a trusted item the right one.
    """

    id: str
    image_id: str
    text: str
    label: str


def make(
    asked: Iterable[Asked],
    folder,
    *,
    images=None,
    trusted: Sequence[Asked] = (),
    raters: int = 3,
    page_items: int = 10,
    trusted_per_page: int = 1,
    seed: int = 0,
    dataset: str = 'esnlive',
    made_from: Mapping[str, Any] | None = None,
) -> Study:
    """Writes `<folder>/study.json` and `<folder>/images/` of a labelling study; one that is there and the same stays.

    Args:
      asked: what people label.
      folder: of the study: `<workdir>/human`. The caller has locked it.
      images: `images[image_id]` is the path of a picture or None; None: there are none.
      trusted: statements whose labels are known; those that are asked about anyhow are not taken. Where there are too
        few they return on other pages, where there are none the study has no checks, which `shortfalls` tells.
      raters: of each page.
      page_items: on a page, trusted ones included.
      trusted_per_page: of them.
      seed: of what chance decides.
      dataset: name of the data.
      made_from: what tells the sources from others.

    Returns:
      The study; `settings['shortfalls']` are warnings.

    Raises:
      ValueError: nothing to ask, an id twice, a label that is none, a page without room, a picture that cannot be read,
        or another study in the folder.
    """
    asked = list(asked)
    names = _checked(asked, 'what people label')
    if not asked:
        raise ValueError('there is nothing to label: no pair was selected')
    if raters < 1 or trusted_per_page < 0:
        raise ValueError(f'human.raters {raters} and human.trusted_per_page {trusted_per_page}: wanted 1, 0 or more')
    _checked(trusted, 'trusted items')
    known = [one for one in trusted if one.id not in names]
    checks = min(trusted_per_page, len(known))
    if page_items <= checks:
        raise ValueError(f'human.page_items is {page_items}, with {checks} trusted ones: no room for others')
    pages, items = _pages(asked, known, page_items - checks, checks, seed)
    shortfalls = []
    if checks < trusted_per_page:
        shortfalls.append(f'{len(known)} items have known labels: pages have {checks} of them, not {trusted_per_page}')
    if checks and len(known) < len(pages) * checks:
        shortfalls.append(f'{len(known)} trusted items for {len(pages)} pages: some stand on several')
    study = Study(
        dataset=dataset,
        kind='statement',
        items=items,
        pages=tuple(pages),
        raters=raters,
        wrong_limit=0,
        yes_limit=0,
        s_t={},
        settings={
            'seed': seed, 'page_items': page_items, 'trusted_per_page': trusted_per_page, 'shortfalls': shortfalls,
        },
        made_from=dict(made_from or {}),
        asks='labels',
    )  # fmt: skip
    if (pathlib.Path(folder) / FILE).is_file():
        _keep(folder, study)
        return Study.open(folder)
    study = pictures.add(study, images, folder)
    study.write(folder)
    return study


def _checked(asked: Sequence[Asked], what: str) -> set[str]:
    names = set()
    for one in asked:
        if one.id in names:
            raise ValueError(f'{what}: {one.id!r} is there twice')
        if one.label not in CLASSES or not one.text.split():
            raise ValueError(
                f'{what}: {one.id!r} has label {one.label!r} and statement {one.text[:40]!r}, wanted '
                f'one of {", ".join(CLASSES)} and a text'
            )
        names.add(one.id)
    return names


def _pages(asked, known, room: int, checks: int, seed: int) -> tuple[list[Page], dict[str, Item]]:
    by_id = {one.id: one for one in asked}
    waiting = collections.deque(by_id[name] for name in _chance.order(seed, by_id))
    trusted = {one.id: one for one in known}
    ordered = [trusted[name] for name in _chance.order(seed, trusted)]
    pages, items, taken = [], {}, 0
    while waiting:
        page = f'p{len(pages):04d}'
        found = [_item(one, seed) for one in _next(waiting, room)]
        for _ in range(checks):
            item = _item(ordered[taken % len(ordered)], seed, page)
            place = _chance.rng(seed, 'place', item.id).randrange(len(found) + 1)
            found.insert(place, item)
            taken += 1
        items |= {item.id: item for item in found}
        pages.append(Page(page, tuple(item.id for item in found)))
    return pages, items


def _next(waiting: collections.deque, room: int) -> list[Asked]:
    """Takes what comes first and is not about a picture of this page."""
    found, pictures_, passed = [], set(), []
    while waiting and len(found) < room and len(passed) < _NEAR:
        one = waiting.popleft()
        (passed if one.image_id in pictures_ else found).append(one)
        pictures_.add(one.image_id)
    waiting.extendleft(reversed(passed))
    while waiting and len(found) < room:
        found.append(waiting.popleft())
    return found


def _item(one: Asked, seed: int, page: str = '') -> Item:
    """`page` of a trusted one, which may return on others."""
    return Item(
        id=_chance.opaque(seed, _ID, 'item', one.id, page),
        example=one.id,
        image='',
        text=' '.join(one.text.split()),
        choices=RELATIONS,
        gold=CLASSES.index(one.label),
        explanations=(Shown(TRUSTED, ''),) if page else (),
        image_id=one.image_id,
    )


def _keep(folder, study: Study) -> None:
    """Raises ValueError unless the study that is there asks for the same on the same pages."""
    before = Study.open(folder)
    bare = lambda found: [dataclasses.replace(item, image='') for item in found.items.values()]
    same = {
        'what it asks for': before.asks == study.asks,
        'items': bare(before) == bare(study),
        'pages': before.pages == study.pages,
        'raters': before.raters == study.raters,
    }
    if changed := [what for what, is_same in same.items() if not is_same]:
        raise ValueError(
            f'{pathlib.Path(folder) / FILE} is another study ({", ".join(changed)}), and people may have been asked '
            'about it. Take another --workdir, or delete that folder'
        )
