"""Captions of a scene: five a picture, as Flickr30k has, each telling some of what is there; and what follows from one.

They are of the language that explanations have (grammar.py), without places:

    a red circle is above a small star and there is a crate
    the only square is blue and large and a small star is in shadow

People who describe a picture agree on what is worth telling: each thing, and each of its properties, is told either by
most captions or by few. So most of what can be said of a picture stands in several captions or in hardly any.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from evil_jax.data.shapes import grammar, language_ve
from evil_jax.data.shapes.queries import CONTRADICTION, ENTAILMENT, NEUTRAL, Noun, Query, opposite, unique_shapes
from evil_jax.data.shapes.scene import COLOURS, CRATE, DARK, RELATIONS, Scene, crate_of, related

CAPTIONS = 5  # a picture
_LONGEST = 2  # clauses of a caption
_FEW, _MOST = 0.12, 0.88  # of the captions tell what few, or most, tell
_SALIENT = {'thing': 0.7, 'colour': 0.6, 'size': 0.4, 'only': 0.5, 'relation': 0.6}  # share of what most captions tell
_OF_THINGS = ('thing', 'colour', 'size', 'only')
_DETERMINERS = ('a', 'only')


@dataclasses.dataclass(frozen=True)
class Told:
    """What a caption tells.

    Attributes:
      things: one a noun; colour is DARK of one in shadow; what is not told is None.
      only: shapes of which the picture has one thing.
      relations: (noun, relation, noun).
    """

    things: tuple[Noun, ...]
    only: frozenset[str]
    relations: frozenset[tuple[Noun, str, Noun]]


def write(scene: Scene, rng: np.random.Generator) -> list[str]:
    """Five captions, all true of the scene: lower case, words and commas between blanks, no full stop."""
    things = scene['things']
    chance = lambda kind: _MOST if rng.random() < _SALIENT[kind] else _FEW
    chances = [{kind: chance(kind) for kind in _OF_THINGS} for _ in things]
    pair = _pair(scene, rng)
    related_chance = chance('relation')
    unique = set(unique_shapes(scene)) if crate_of(scene) is None else set()
    return [_caption(things, chances, pair, related_chance, unique, rng) for _ in range(CAPTIONS)]


def _pair(scene, rng) -> tuple[int, str, int] | None:
    """Two things of a colour and a relation between them, which is told or not; None where there are none."""
    things = scene['things']
    found = [
        (i, r, j)
        for i, a in enumerate(things)
        for j, b in enumerate(things)
        for r in RELATIONS
        if {a['colour'], b['colour']} <= set(COLOURS) and a['shape'] != b['shape'] and a['colour'] != b['colour']
        and related(a, r, b)
    ]  # fmt: skip
    return found[int(rng.integers(len(found)))] if found else None


def _caption(things, chances, pair, related_chance, unique, rng) -> str:
    told = [i for i in range(len(things)) if rng.random() < chances[i]['thing']]
    clauses = []
    if pair is not None and rng.random() < related_chance:
        first, relation, second = pair
        if rng.random() < 0.5:
            first, relation, second = second, opposite(relation), first
        nouns = [_noun(things[i], True, rng.random() < chances[i]['size']) for i in (first, second)]
        clauses.append(f'{nouns[0]} is {relation} {nouns[1]}')
        told = [i for i in told if i not in (first, second)]
    if not told and not clauses:
        told = [int(rng.integers(len(things)))]
    told = rng.permutation(told)[: _LONGEST - len(clauses)]
    clauses += [_clause(things[i], chances[i], i in unique, rng) for i in told]
    clauses = [clauses[i] for i in rng.permutation(len(clauses))]
    return ' and '.join(clauses)


def _clause(thing, chances, unique, rng) -> str:
    """One thing: in shadow its size alone can be told with it."""
    colour, size, only = (rng.random() < chances[kind] for kind in ('colour', 'size', 'only'))
    if thing['shape'] == CRATE:
        return 'there is a crate'
    if thing['colour'] == DARK:
        noun = _noun(thing, False, size)
        return f'{noun} is in shadow' if colour else f'there is {noun}'
    if colour and unique and only:
        return f'the only {thing["shape"]} is {thing["colour"]}' + (f' and {thing["size"]}' if size else '')
    return f'there is {_noun(thing, colour, size)}'


def _noun(thing, colour, size) -> str:
    return ' '.join(('a', *[thing['size']] * size, *[thing['colour']] * colour, thing['shape']))


def read(caption: str) -> Told:
    """What a caption tells. Case and a final full stop do not matter.

    Raises:
      ValueError: the text is no caption of this world.
    """
    claims = grammar.parse(caption)
    if claims is None:
        raise ValueError(f'no caption of the world shapes: {caption!r}')
    things, only, relations = [], set(), set()
    for claim in claims:
        if claim.kind != 'is' or claim.subject.determiner not in _DETERMINERS:
            raise ValueError(f'no caption of the world shapes: {caption!r}')
        said = claim.subject._asdict() | {fact.name: fact.value for fact in claim.facts if fact.name not in RELATIONS}
        noun = Noun(said['shape'], said['colour'], said['size'])
        things.append(noun)
        only |= {noun.shape} if claim.subject.determiner == 'only' else set()
        for fact in claim.facts:
            if fact.name in RELATIONS:
                other = Noun(fact.other.shape, fact.other.colour, fact.other.size)
                things.append(other)
                relations.add((noun._replace(size=None), fact.name, other._replace(size=None)))
    return Told(tuple(things), frozenset(only), frozenset(relations))


def follows(told: Told, query: Query) -> str:
    """Whether a hypothesis is entailed, contradicted or neither by what one caption tells.

    What is not told may be there. 'the circle' means the one that the caption tells of; there is no other, or nobody
    would say so.
    """
    if query.kind == 'relation':
        return _relation(told, query)
    same = [noun for noun in told.things if noun.shape == query.noun.shape]
    if query.kind == 'exists':
        if any(noun.colour == query.noun.colour for noun in same):
            return ENTAILMENT
        other = query.noun.shape in told.only and any(noun.colour not in (None, DARK) for noun in same)
        return CONTRADICTION if other else NEUTRAL
    values = {getattr(noun, query.kind) for noun in same} - {None, DARK}
    if not values:
        return NEUTRAL
    return ENTAILMENT if query.value in values else CONTRADICTION


def _relation(told, query) -> str:
    first, second = (noun._replace(size=None) for noun in (query.noun, query.other))
    for relation, label in ((query.value, ENTAILMENT), (opposite(query.value), CONTRADICTION)):
        if {(first, relation, second), (second, opposite(relation), first)} & told.relations:
            return label
    return NEUTRAL


def label_by_caption(caption: str, hypothesis: str) -> str:
    """`follows` of texts. Raises ValueError where one of them is not of this world."""
    query = language_ve.parse(hypothesis)
    if query is None:
        raise ValueError(f'no hypothesis of the world shapes: {hypothesis!r}')
    return follows(read(caption), query)


def oracle(pairs: Sequence[tuple[str, str]], classes: Sequence[str], sure: float = 0.98) -> np.ndarray:
    """What a perfect NLI model would say of pairs (caption, hypothesis) of this world.

    Args:
      classes: their order.
      sure: probability of the right class; the others share the rest.

    Returns:
      float32 [n, classes].

    Raises:
      ValueError: a text is not of this world.
    """
    scores = np.full((len(pairs), len(classes)), (1 - sure) / (len(classes) - 1), np.float32)
    for row, (caption, hypothesis) in enumerate(pairs):
        scores[row, list(classes).index(label_by_caption(caption, hypothesis))] = sure
    return scores
