"""Which items stand on which page."""

import collections
from collections.abc import Iterator, Sequence

from evil_jax.human import _chance
from evil_jax.human.study import Item


def arrange(items: Sequence[Item], size: int) -> list[list[Item]]:
    """Pages of `size` items, the last one may be short; none has a picture twice, and each has all systems' items.

    The items of a picture (one for each system) stand on pages next to each other. So a page shares pictures with few
    others, and a rater, who never sees a picture's question twice, can do many pages.

    Args:
      items: in the order in which pages are filled; of a picture at most one of each system.
      size: of a page.
    """
    groups = collections.defaultdict(list)
    for item in items:
        groups[item.image_id].append(item)
    most = max(map(len, groups.values()))
    number = -(-len(items) // size)
    if most < number:
        lengths = [size] * (number - 1) + [len(items) - size * (number - 1)]
    else:  # a small study: as many pages as one picture has items, all about as long
        number = max(number, most)
        lengths = [len(items) // number + (place < len(items) % number) for place in range(number)]
    pages, systems = [[] for _ in lengths], [collections.Counter() for _ in lengths]
    free = _places(lengths)
    for group in groups.values():
        for place in [next(free) for _ in group]:
            item = min(group, key=lambda item, seen=systems[place]: seen[item.system])
            group.remove(item)
            systems[place][item.system] += 1
            pages[place].append(item)
    return pages


def _places(lengths) -> Iterator[int]:
    """Numbers of pages, one for each item: round and round, so that items in a row come onto different pages."""
    for turn in range(max(lengths)):
        yield from (page for page, length in enumerate(lengths) if turn < length)


def insert(pages: list[list[Item]], pool: Sequence[Item], per_page: int) -> list[str]:
    """Puts trusted items on pages, none beside an item about the same picture.

    Args:
      pages: of `arrange`; they get longer.
      pool: trusted items. None is used twice before all are used once.
      per_page: how many.

    Returns:
      What falls short of what was wanted, in words.
    """
    waiting, uses = list(pool), collections.Counter()
    asked = {item.example for page in pages for item in page}
    for page in pages:
        for _ in range(per_page):
            pictures = {item.image_id for item in page}
            place = next((i for i, item in enumerate(waiting) if item.image_id not in pictures), None)
            if place is None:
                break
            item = waiting.pop(place)
            waiting.append(item)
            uses[item.id] += 1
            page.append(item)
    short = []
    if (missing := len(pages) * per_page - uses.total()) > 0:
        why = 'no other picture, or no other answer, to make them of'
        short.append(f'{missing} of {len(pages) * per_page} trusted items are missing: {why}')
    if uses and max(uses.values()) > 1:
        short.append(f'{len(uses)} trusted items are used up to {max(uses.values())} times')
    if again := len({item.example for item in pool if uses[item.id]} & asked):
        short.append(f'{again} trusted items ask what another item asks, too: there are no more examples')
    return short


def shuffle(pages: list[list[Item]], seed: int) -> None:
    """Shuffles each page: a trusted item may be anywhere."""
    for page in pages:
        _chance.rng(seed, 'page', *sorted(item.id for item in page)).shuffle(page)
