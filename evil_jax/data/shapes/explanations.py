"""Gold explanations: each names evidence that the hypothesis or question does not contain, chiefly a place."""

import numpy as np

from evil_jax.data.shapes.queries import CONTRADICTION, ENTAILMENT, Query, Verdict
from evil_jax.data.shapes.scene import DARK, PLACES, Scene, crate_of

REFERENCES = 3
NUMBERS = ('no', 'one', 'two', 'three', 'four', 'five')


def explain(scene: Scene, query: Query, verdict: Verdict, rng: np.random.Generator) -> list[str]:
    """Three different explanations of a verdict, in random order."""
    things = [scene['things'][i] for i in verdict.things]
    sure = crate_of(scene) is None
    if verdict.missing is not None:
        texts = _hidden(verdict.missing, _place(things[0]), bare=query.kind == 'exists')
    elif query.kind == 'exists' and verdict.label == CONTRADICTION:
        texts = _only(things[0], 'colour')
    elif query.kind in ('exists', 'colour') and things[0]['colour'] == DARK:
        texts = _shadow(things[0])
    elif query.kind == 'exists':
        texts = _exists(things[0])
    elif query.kind in ('colour', 'size'):
        texts = _attribute(things[0], query.kind, query.value if verdict.label == CONTRADICTION else None)
        texts += _only(things[0], query.kind)[:1] if sure else []
    elif query.kind == 'shape':
        texts = _shape(things[0])
    elif query.kind == 'count':
        texts = _count(query.noun.shape, [_place(thing) for thing in things])
    else:
        relation = query.value if verdict.label in (None, ENTAILMENT) else None
        texts = _two(*things, relation)
    return [texts[i] for i in rng.permutation(len(texts))[:REFERENCES]]


def _place(thing):
    return PLACES[thing['cell']]


def _exists(thing):
    c, s, p = thing['colour'], thing['shape'], _place(thing)
    return [f'a {c} {s} is {p}', f'there is a {c} {s} {p}', f'the {s} {p} is {c}']


def _only(thing, kind):
    s, p, value = thing['shape'], _place(thing), thing[kind]
    return [f'the only {s} is {value} and is {p}', f'the {s} {p} is {value}', f'the only {s} is the {value} one {p}']


def _attribute(thing, kind, denied):
    s, p, value = thing['shape'], _place(thing), thing[kind]
    first = f'the {s} {p} is {value}'
    contrast = [f'{first} , not {denied}'] if denied else [f'a {value} {s} is {p}']
    return [first, f'the {s} is {p} and is {value}', *contrast]


def _shadow(thing):
    s, p = thing['shape'], _place(thing)
    return [
        f'the {s} {p} is in shadow so its colour cannot be seen',
        f'the {s} {p} is dark and its colour cannot be seen',
        f'the {s} is {p} in shadow',
    ]


def _hidden(noun, place, bare):
    name = ' '.join(filter(None, (noun.colour, noun.shape)))
    return [
        f'the crate {place} may hide a {name}',
        f'a {name} may be in the crate {place}',
        f'no {name} is seen but the crate {place} may hide it',
        *([f'the crate {place} may hide it'] if bare else []),
    ]


def _shape(thing):
    c, s, p = thing['colour'], thing['shape'], _place(thing)
    return [f'a {c} {s} is {p}', f'the {c} object {p} is a {s}', f'the {c} object is a {s} {p}']


def _count(shape, places):
    *front, last = places
    if not front:
        return [f'one {shape} is seen {last}', f'only one {shape} is seen , {last}', f'just one {shape} is {last}']
    listed, number = f'{" , ".join(front)} and {last}', NUMBERS[len(places)]
    if len(places) == 2:
        third = f'a {shape} is {front[0]} and another is {last}'
    else:
        third = f'{shape}s are {listed}'
    return [f'{number} {shape}s are seen {listed}', f'{number} {shape}s are {listed}', third]


def _two(first, second, relation):
    names = [f'the {t["colour"]} {t["shape"]}' for t in (first, second)]
    (a, b), (p, q) = names, (_place(first), _place(second))
    texts = [f'{a} is {p} and {b} is {q}', f'{a} is {p} and {b} {q}', f'{b} is {q} and {a} is {p}']
    return texts if relation is None else [*texts, f'{a} {p} is {relation} {b} {q}']
