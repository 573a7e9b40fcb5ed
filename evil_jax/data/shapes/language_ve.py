"""Hypotheses of the form shapes_ve: their wording, and how they are sampled for a wanted label."""

import re

import numpy as np

from evil_jax.data.shapes.queries import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    Noun,
    Query,
    matching,
    opposite,
    unique_shapes,
)
from evil_jax.data.shapes.scene import COLOURS, DARK, RELATIONS, SHAPES, SIZES, Scene, crate_of, related

LABELS = (CONTRADICTION, NEUTRAL, ENTAILMENT)
SHARES = {'exists': 0.38, 'colour': 0.34, 'size': 0.14, 'relation': 0.14}

# Pieces of patterns, for questions too.
_COLOUR, _SHAPE, _RELATION = '|'.join(COLOURS), '|'.join(SHAPES), '|'.join(RELATIONS)
C, S, R = f'(?P<colour>{_COLOUR})', f'(?P<shape>{_SHAPE})', f'(?P<relation>{_RELATION})'
PAIR = f'{C} {S} (?:is )?{R} the (?P<colour2>{_COLOUR}) (?P<shape2>{_SHAPE})'
_PATTERNS = {
    'exists': (re.compile(f'there is a {C} {S}'), re.compile(f'there is a {S} that is {C}')),
    'colour': (re.compile(f'the {S} is {C}'), re.compile(f'the colour of the {S} is {C}')),
    'size': (re.compile(f'the {S} is (?P<size>{"|".join(SIZES)})'),),
    'relation': (re.compile(f'the {PAIR}'),),
}


def parse(text: str) -> Query | None:
    """What a hypothesis claims, None if it is not of this language. Case and a final full stop do not matter."""
    return _parse(_PATTERNS, ' '.join(text.lower().split()).removesuffix('.').rstrip(), asks=False)


def _parse(patterns, text, asks):
    for kind, forms in patterns.items():
        for form in forms:
            if match := form.fullmatch(text):
                return query_of(kind, match.groupdict(), asks)
    return None


def query_of(kind: str, words: dict[str, str], asks: bool) -> Query:
    """The query of a kind from the named groups of its pattern."""
    get = words.get
    noun = Noun(get('shape'), get('colour'))
    if kind == 'exists':
        return Query(kind, noun, asks=asks)
    if kind in ('colour', 'size'):
        return Query(kind, Noun(noun.shape), None if asks else get(kind), asks=asks)
    if kind == 'relation':
        return Query(kind, noun, get('relation'), Noun(get('shape2'), get('colour2')), asks)
    return Query(kind, noun, get('relation'), asks=asks)


def phrase(query: Query, rng: np.random.Generator) -> str:
    """A sentence that claims `query`."""
    shape, colour, value = query.noun.shape, query.noun.colour, query.value
    other = query.other or Noun()
    forms = {
        'exists': (f'There is a {colour} {shape}.', f'There is a {shape} that is {colour}.'),
        'colour': (f'The {shape} is {value}.', f'The colour of the {shape} is {value}.'),
        'size': (f'The {shape} is {value}.',),
        'relation': (f'The {colour} {shape} is {value} the {other.colour} {other.shape}.',),
    }[query.kind]
    return forms[int(rng.integers(len(forms)))]


def sample(scene: Scene, kind: str, label: str, rng: np.random.Generator) -> Query | None:
    """A random statement of a kind with a label in this scene; None where there is none.

    Only statements with one clear piece of evidence are sampled: an absent red circle contradicts where there is one
    circle, of another colour, and no crate.
    """
    found = _SAMPLERS[kind](scene, label, rng)
    return found[int(rng.integers(len(found)))] if found else None


def _exists(scene, label, rng):
    things, crate = scene['things'], crate_of(scene)
    dark = {t['shape'] for t in things if t['colour'] == DARK}
    if label == ENTAILMENT:
        found = [Noun(t['shape'], t['colour']) for t in things if t['colour'] in COLOURS]
    elif label == CONTRADICTION:
        unique = [things[i] for i in unique_shapes(scene) if things[i]['colour'] != DARK]
        found = [Noun(t['shape'], c) for t in unique for c in COLOURS if c != t['colour'] and crate is None]
    else:
        found = absent(scene) if crate is not None else []
        found = [noun for noun in found if noun.shape not in dark]
    return [Query('exists', noun) for noun in found]


def absent(scene: Scene) -> list[Noun]:
    """Coloured shapes that are nowhere to be seen."""
    return [Noun(s, c) for s in SHAPES for c in COLOURS if not matching(scene, Noun(s, c))]


def _colour(scene, label, rng):
    found = []
    for i in unique_shapes(scene):
        shape, actual = scene['things'][i]['shape'], scene['things'][i]['colour']
        if (actual == DARK) == (label == NEUTRAL):
            fitting = [c for c in COLOURS if label == NEUTRAL or (c == actual) == (label == ENTAILMENT)]
            found += [Query('colour', Noun(shape), colour) for colour in fitting]
    return found


def _size(scene, label, rng):
    if label == NEUTRAL:
        missing = [shape for shape in SHAPES if not matching(scene, Noun(shape))]
        return (
            [Query('size', Noun(shape), s) for shape in missing for s in SIZES] if crate_of(scene) is not None else []
        )
    unique = [scene['things'][i] for i in unique_shapes(scene)]
    wanted = label == ENTAILMENT
    return [Query('size', Noun(t['shape']), s) for t in unique for s in SIZES if (s == t['size']) == wanted]


def _relation(scene, label, rng):
    """The two nouns differ in shape and in colour, whatever the label."""
    seen = [(t, Noun(t['shape'], t['colour'])) for t in scene['things'] if t['colour'] in COLOURS]
    if label == NEUTRAL:
        if crate_of(scene) is None or not seen:
            return []
        dark = {t['shape'] for t in scene['things'] if t['colour'] == DARK}
        _, visible = seen[int(rng.integers(len(seen)))]
        missing = [noun for noun in absent(scene) if noun.shape not in dark and differ(noun, visible)]
        pair = [visible, missing[int(rng.integers(len(missing)))]]
        first, second = pair if rng.random() < 0.5 else pair[::-1]
        return [Query('relation', first, relation, second) for relation in RELATIONS]
    return [
        Query('relation', first, r if label == ENTAILMENT else opposite(r), second)
        for a, first in seen
        for b, second in seen
        for r in RELATIONS
        if differ(first, second) and related(a, r, b)
    ]


def differ(first: Noun, second: Noun) -> bool:
    """Different in shape and in colour."""
    return first.shape != second.shape and first.colour != second.colour


_SAMPLERS = {'exists': _exists, 'colour': _colour, 'size': _size, 'relation': _relation}

# Words that decide nothing; 'colour' only where it is asked for.
_FUNCTION_WORDS = frozenset(('there', 'is', 'a', 'the', 'that', 'of', 'what', 'how', 'can', 'be', 'seen'))


def decisive_words(text: str, query: Query, missing: Noun | None) -> list[int]:
    """Indices (of `text.split()`) of the decisive words of a hypothesis or question.

    These are its content words, without 'colour' in a statement; of a relation with a thing that only the crate could
    provide, the words that name this thing.
    """
    words = text.lower().rstrip('.?').split()
    skipped = _FUNCTION_WORDS if query.asks else _FUNCTION_WORDS | {'colour'}
    content = [i for i, word in enumerate(words) if word not in skipped]
    if query.kind == 'relation' and missing is not None:
        return content[-2:] if missing == query.other else content[:2]
    return content
