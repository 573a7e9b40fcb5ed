"""Captions of a scene: five a picture, as Flickr30k has, each telling some of what is there; and what follows from one.

They are of the language that explanations have (grammar.py), without places and relations:

    there is a small red circle and there is a crate
    the only square is blue and large

Most captions are about the same thing, the picture's subject, and people agree on what is worth telling of a thing:
each of its properties is told by most or by few. So what can be said of a picture stands in several captions or in
hardly any. A caption tells of one thing beside the crate: to find out which word belongs to which of two things takes a
small model longer to learn than all the rest.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from evil_jax.data.shapes import grammar, language_ve
from evil_jax.data.shapes.queries import CONTRADICTION, ENTAILMENT, NEUTRAL, Noun, Query, unique_shapes
from evil_jax.data.shapes.scene import CRATE, DARK, Scene, crate_of

CAPTIONS = 5  # a picture
_SUBJECT = 0.75  # share of the captions that are about it
_FEW, _MOST = 0.12, 0.88  # share of the captions of a thing that tell what few, or most, tell
_SALIENT = {'colour': 0.75, 'size': 0.6, 'only': 0.5}  # share of the things of which most captions tell it
_DETERMINERS = ('a', 'only')


@dataclasses.dataclass(frozen=True)
class Told:
    """What a caption tells.

    Attributes:
      things: one a noun; colour is DARK of one in shadow; what is not told is None.
      only: shapes of which the picture has one thing.
    """

    things: tuple[Noun, ...]
    only: frozenset[str]


def write(scene: Scene, rng: np.random.Generator) -> list[str]:
    """Five captions, all true of the scene: lower case, no full stop."""
    crate, things = crate_of(scene), scene['things']
    chances = [{kind: _MOST if rng.random() < share else _FEW for kind, share in _SALIENT.items()} for _ in things]
    others = [i for i in rng.permutation(len(things)) if i != crate]
    unique = set(unique_shapes(scene)) if crate is None else set()
    texts = []
    for _ in range(CAPTIONS):
        at = others[0] if rng.random() < _SUBJECT else others[int(rng.integers(len(others)))]
        clauses = [_clause(things[at], chances[at], at in unique, rng)]
        if crate is not None and rng.random() < 0.5:
            clauses.insert(int(rng.integers(2)), f'there is a {CRATE}')
        texts.append(' and '.join(clauses))
    return texts


def _clause(thing, chances, unique, rng) -> str:
    """One thing."""
    colour, size, only = (rng.random() < chances[kind] for kind in ('colour', 'size', 'only'))
    dark = thing['colour'] == DARK
    noun = ' '.join(('a', *[thing['size']] * size, *[thing['colour']] * (colour and not dark), thing['shape']))
    if colour and dark:
        return f'{noun} is in shadow'
    if colour and unique and only:
        return f'the only {thing["shape"]} is {thing["colour"]}' + (f' and {thing["size"]}' if size else '')
    return f'there is {noun}'


def read(caption: str) -> Told:
    """What a caption tells. Case and a final full stop do not matter.

    Raises:
      ValueError: the text is no caption of this world.
    """
    claims = grammar.parse(caption)
    if claims is None:
        raise ValueError(f'no caption of the world shapes: {caption!r}')
    things, only = [], set()
    for claim in claims:
        facts = {fact.name: fact.value for fact in claim.facts}
        told = claim.kind == 'is' and claim.subject.determiner in _DETERMINERS and facts.keys() <= {'colour', 'size'}
        if not told or not claim.subject.shape or claim.subject.cell is not None:
            raise ValueError(f'no caption of the world shapes: {caption!r}')
        said = claim.subject._asdict() | facts
        things.append(Noun(said['shape'], said['colour'], said['size']))
        only |= {claim.subject.shape} if claim.subject.determiner == 'only' else set()
    return Told(tuple(things), frozenset(only))


def follows(told: Told, query: Query) -> str:
    """Whether a hypothesis is entailed, contradicted or neither by what one caption tells.

    What is not told may be there. 'the circle' means the one that the caption tells of; there is no other, or nobody
    would say so. Nothing follows about where things are.
    """
    if query.kind == 'relation':
        return NEUTRAL
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
