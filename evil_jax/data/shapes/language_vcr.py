"""The form shapes_vcr: questions about tagged objects, four choices of which one is right, and a rationale.

A tag is written `<|det2|>`: thing 1 of the scene. Which thing that is shows in its box only, for objects are called by
their shape, and shape is never asked. Whatever is asked, each of the four choices is right equally often, so that words
alone do not tell: the wrong ones are drawn from what would be right of other scenes, first of all of this one's other
things. A crate is never asked about, but may be left of something.
"""

import itertools
import re

import numpy as np

from evil_jax.data.shapes.queries import Noun, Query, Verdict, judge
from evil_jax.data.shapes.scene import COLOURS, CRATE, PLACES, RELATIONS, SIZES, Scene

CHOICES = 4
# (kind, how many things are the answer): share. Of 'beside', where three single things and one pair are the choices,
# the pair must be right a quarter of the times.
SHARES = {
    ('colour', 1): 0.35, ('look', 1): 0.15, ('place', 1): 0.35, ('beside', 1): 0.1125, ('beside', 2): 0.0375,
}  # fmt: skip
_REPEATED = 0.06  # share of the questions after a colour or a place of which one wrong choice stands there twice
_PATTERNS = {
    'colour': re.compile(r'what colour is (?P<tag>[0-9]{1,2})'),
    'look': re.compile(r'how does (?P<tag>[0-9]{1,2}) look'),
    'place': re.compile(r'where is (?P<tag>[0-9]{1,2})'),
    'beside': re.compile(rf'what is (?P<relation>{"|".join(RELATIONS)}) (?P<tag>[0-9]{{1,2}})'),
}
_DECISIVE = ('colour', 'look', 'where', 'left', 'right', 'above', 'below')
_TAG = re.compile(r'<\|det([0-9]{1,2})\|>', re.IGNORECASE)


def tag(index: int) -> str:
    """The tag of a thing."""
    return f'<|det{index + 1}|>'


def bare(text: str) -> str:
    """A text with plain numbers for tags: '2 is red'."""
    return _TAG.sub(r' \1 ', text)


def parse(text: str) -> Query | None:
    """What a question asks, None if it is not of this language. Case and the final mark do not matter."""
    text = ' '.join(bare(text).lower().split()).rstrip('?. ')
    for kind, form in _PATTERNS.items():
        if match := form.fullmatch(text):
            words = match.groupdict()
            return Query(kind, Noun(tag=int(words['tag'])), words.get('relation'), asks=True)
    return None


def phrase(query: Query) -> str:
    """The question that asks `query`."""
    name = tag(query.noun.tag - 1)
    return {
        'colour': f'What colour is {name} ?',
        'look': f'How does {name} look ?',
        'place': f'Where is {name} ?',
        'beside': f'What is {query.value} {name} ?',
    }[query.kind]


def decisive_words(text: str) -> list[int]:
    """Indices (of `text.split()`) of the words that decide: what is asked, and of which object."""
    return [i for i, word in enumerate(text.lower().split()) if word in _DECISIVE or _TAG.match(word)]


def sample(scene: Scene, kind: str, count: int, rng: np.random.Generator) -> Query | None:
    """A random question of a kind to which `count` things are the answer; None where the scene has none."""
    things = scene['things']
    if kind == 'beside' and len(things) < CHOICES:
        return None
    asked = [i for i, thing in enumerate(things) if kind == 'beside' or thing['shape'] != CRATE]
    if kind in ('colour', 'look'):
        asked = [i for i in asked if things[i]['colour'] in COLOURS]
    values = RELATIONS if kind == 'beside' else (None,)
    found = [Query(kind, Noun(tag=i + 1), value, asks=True) for i in asked for value in values]
    if kind == 'beside':
        found = [query for query in found if len(judge(scene, query).things) == count + 1]
    return found[int(rng.integers(len(found)))] if found else None


def choices(scene: Scene, query: Query, verdict: Verdict, rng: np.random.Generator) -> tuple[list[str], int]:
    """Four answers in random order, and which of them is right."""
    right, wrong = _beside(query, verdict, rng) if query.kind == 'beside' else _attribute(scene, query, verdict, rng)
    label = int(rng.integers(CHOICES))
    wrong = [wrong[i] for i in rng.permutation(CHOICES - 1)]
    return [*wrong[:label], right, *wrong[label:]], label


def _attribute(scene, query, verdict, rng):
    """A value of the asked thing, and three others; those of other things first."""
    name, (index,) = tag(verdict.things[0]), verdict.things
    thing, others = scene['things'][index], [t for i, t in enumerate(scene['things']) if i != index]
    key, values = ('cell', range(len(PLACES))) if query.kind == 'place' else ('colour', COLOURS)
    near = list(dict.fromkeys(t[key] for t in others if t[key] in values and t[key] != thing[key]))
    far = [value for value in values if value != thing[key] and value not in near]
    wrong = [near[i] for i in rng.permutation(len(near))] + [far[i] for i in rng.permutation(len(far))]
    if query.kind == 'look':
        # Two sizes times two colours, so that no choice has more in common with the others.
        pairs = [(size, colour) for colour in (thing['colour'], wrong[0]) for size in SIZES]
        wrong = [pair for pair in pairs if pair != (thing['size'], thing['colour'])]
        say = lambda pair: f'{name} is {pair[0]} and {pair[1]} .'
        return say((thing['size'], thing['colour'])), [say(pair) for pair in wrong]
    wrong = wrong[: CHOICES - 1]
    if rng.random() < _REPEATED:
        wrong[2] = wrong[1]
    say = lambda value: f'{name} is {PLACES[value] if query.kind == "place" else value} .'
    return say(thing[key]), [say(value) for value in wrong]


def _beside(query, verdict, rng):
    """Each other thing alone, and one pair of them."""
    *answer, target = verdict.things
    others = [i for i in range(CHOICES) if i != target]
    pairs = list(itertools.combinations(others, 2))
    sets = [*((i,) for i in others), tuple(answer) if len(answer) == 2 else pairs[int(rng.integers(len(pairs)))]]
    end = f'{query.value} {tag(target)} .'
    said = {
        things: f'Only {tag(things[0])} is {end}' if len(things) == 1 else f'{" and ".join(map(tag, things))} are {end}'
        for things in sets
    }
    right = said.pop(tuple(answer))
    return right, list(said.values())


def rationales(scene: Scene, query: Query, verdict: Verdict, rng: np.random.Generator) -> tuple[str, list[str]]:
    """The reason of the right answer, and three that are false: with another last place."""
    order = [verdict.things[i] for i in rng.permutation(len(verdict.things))]
    style = int(rng.integers(2))
    *cells, last = (scene['things'][i]['cell'] for i in order)
    others = [cell for cell in rng.permutation(len(PLACES)).tolist() if cell != last]
    right, *wrong = (
        _join([_reason(scene, query.kind, i, PLACES[cell], style) for i, cell in zip(order, [*cells, end])])
        for end in (last, *others[: CHOICES - 1])
    )
    return right, wrong


def _join(clauses):
    *front, last = clauses
    return f'{" , ".join(front)} and {last} .' if front else f'{last} .'


def _reason(scene, kind, index, place, style):
    """What is said of one thing, in two styles."""
    thing, name = scene['things'][index], tag(index)
    size, colour, shape = thing['size'], thing['colour'], thing['shape']
    if kind == 'beside':
        return f'{name} is {place}'
    if kind == 'look':
        looks = (f'{name} is a {size} {colour} {shape} {place}', f'{name} is {place} and is {size} and {colour}')
    else:
        looks = (f'{name} is a {colour} {shape} {place}', f'{name} is {place} and is {colour}')
    return looks[style]
