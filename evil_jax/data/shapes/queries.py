"""The meaning of a hypothesis or question, and what a scene answers to it."""

from typing import NamedTuple

from evil_jax.data.shapes.scene import CRATE, DARK, PLACES, RELATIONS, SHAPES, Scene, crate_of, related

ENTAILMENT, NEUTRAL, CONTRADICTION = 'entailment', 'neutral', 'contradiction'


class Noun(NamedTuple):
    """'red circle' = Noun('circle', 'red'); None where nothing is said. tag: number of a tagged object, from 1."""

    shape: str | None = None
    colour: str | None = None
    size: str | None = None
    tag: int | None = None


class Query(NamedTuple):
    """What a text says or asks.

    kind: 'exists' (a noun), 'colour', 'size', 'relation' as statements or yes/no questions, or open questions 'colour',
      'shape', 'size', 'count', 'what' (what is left of the blue square). Of a tagged object: 'colour', 'look' (its size
      and colour), 'place', 'beside' (what is left of it).
    value: what a statement claims of the first noun: colour, size or relation; of 'what' and 'beside' the relation that
      is asked for. None in the other open questions.
    other: second noun of a relation.
    asks: True for a question.
    """

    kind: str
    noun: Noun
    value: str | None = None
    other: Noun | None = None
    asks: bool = False


class Verdict(NamedTuple):
    """What a scene answers.

    label: entailment, neutral or contradiction of a statement; a yes/no question is judged as its statement. None where
      the text cannot be judged (it speaks of 'the circle' and there are two) and for open questions.
    answer: answer text of a question, None where it has no clear one.
    things: indices of the decisive things.
    missing: the noun that only the crate could provide.
    """

    label: str | None = None
    answer: str | None = None
    things: tuple[int, ...] = ()
    missing: Noun | None = None


UNCLEAR = Verdict()


def matching(scene: Scene, noun: Noun) -> list[int]:
    """Indices of the things that a noun fits; 'object' and 'red object' never mean the crate."""
    return [
        i
        for i, t in enumerate(scene['things'])
        if (t['shape'] == noun.shape if noun.shape else t['shape'] != CRATE or noun.tag)
        and noun.tag in (None, i + 1)
        and noun.colour in (None, t['colour'])
        and noun.size in (None, t['size'])
    ]


def judge(scene: Scene, query: Query) -> Verdict:
    """What `scene` answers to `query`; UNCLEAR where a reasonable person would not know what is meant."""
    verdict = _JUDGES[query.kind](scene, query)
    if query.asks and verdict.label is not None:
        answer = {ENTAILMENT: 'yes', CONTRADICTION: 'no', NEUTRAL: None}[verdict.label]
        return verdict._replace(answer=answer)
    return verdict


def _exists(scene, query):
    seen = matching(scene, query.noun)
    if seen:
        return Verdict(ENTAILMENT, things=tuple(seen))
    crate, alike = crate_of(scene), matching(scene, Noun(query.noun.shape))
    shadowed = [i for i in alike if scene['things'][i]['colour'] == DARK]
    if shadowed:
        return UNCLEAR if crate is not None else Verdict(NEUTRAL, things=tuple(shadowed))
    if crate is not None:
        return Verdict(NEUTRAL, things=(crate,), missing=query.noun)
    return Verdict(CONTRADICTION, things=tuple(alike))


def _attribute(scene, query):
    seen, crate = matching(scene, query.noun), crate_of(scene)
    if len(seen) > 1:
        return UNCLEAR
    if not seen:
        hidden = not query.asks and crate is not None
        return Verdict(NEUTRAL, things=(crate,), missing=query.noun) if hidden else UNCLEAR
    actual = scene['things'][seen[0]][query.kind]
    if query.value is None:
        return UNCLEAR if actual == DARK else Verdict(answer=actual, things=tuple(seen))
    if actual == DARK:
        return Verdict(NEUTRAL, things=tuple(seen))
    return Verdict(ENTAILMENT if actual == query.value else CONTRADICTION, things=tuple(seen))


def _shape(scene, query):
    seen = matching(scene, query.noun)
    return Verdict(answer=scene['things'][seen[0]]['shape'], things=tuple(seen)) if len(seen) == 1 else UNCLEAR


def _count(scene, query):
    seen = matching(scene, query.noun)
    return Verdict(answer=str(len(seen)), things=tuple(sorted(seen, key=lambda i: scene['things'][i]['cell'])))


def _relation(scene, query):
    first, second = matching(scene, query.noun), matching(scene, query.other)
    if len(first) > 1 or len(second) > 1 or not (first or second):
        return UNCLEAR
    crate = crate_of(scene)
    if not (first and second):
        missing = query.other if first else query.noun
        shadowed = any(scene['things'][i]['colour'] == DARK for i in matching(scene, Noun(missing.shape)))
        return UNCLEAR if crate is None or shadowed else Verdict(NEUTRAL, things=(crate,), missing=missing)
    a, b = (scene['things'][i] for i in (first[0], second[0]))
    if related(a, query.value, b):
        return Verdict(ENTAILMENT, things=(first[0], second[0]))
    # In the same column neither is left of the other: contradicted, but nobody would say it, so it is never sampled.
    return Verdict(CONTRADICTION, things=(first[0], second[0]))


def _what(scene, query):
    target = matching(scene, query.noun)
    if len(target) != 1:
        return UNCLEAR
    things = scene['things']
    found = [i for i, t in enumerate(things) if i != target[0] and related(t, query.value, things[target[0]])]
    if len(found) != 1 or things[found[0]]['shape'] == CRATE or things[found[0]]['colour'] == DARK:
        return UNCLEAR
    return Verdict(answer=f'{things[found[0]]["colour"]} {things[found[0]]["shape"]}', things=(found[0], target[0]))


def _look(scene, query):
    (thing,), seen = _tagged(scene, query)
    if thing is None or thing['colour'] == DARK or thing['shape'] == CRATE:
        return UNCLEAR
    return Verdict(answer=f'{thing["size"]} and {thing["colour"]}', things=seen)


def _where(scene, query):
    (thing,), seen = _tagged(scene, query)
    return UNCLEAR if thing is None else Verdict(answer=PLACES[thing['cell']], things=seen)


def _beside(scene, query):
    (target,), seen = _tagged(scene, query)
    if target is None:
        return UNCLEAR
    others = (i for i in range(len(scene['things'])) if i not in seen)
    found = tuple(i for i in others if related(scene['things'][i], query.value, target))
    return Verdict(answer=' and '.join(str(i + 1) for i in found), things=(*found, *seen)) if found else UNCLEAR


def _tagged(scene, query):
    seen = tuple(matching(scene, query.noun))
    return [scene['things'][i] for i in seen] or [None], seen


_JUDGES = {
    'exists': _exists,
    'colour': _attribute,
    'size': _attribute,
    'relation': _relation,
    'shape': _shape,
    'count': _count,
    'what': _what,
    'look': _look,
    'place': _where,
    'beside': _beside,
}


def opposite(relation: str) -> str:
    """'left of' <-> 'right of', 'above' <-> 'below'."""
    return RELATIONS[RELATIONS.index(relation) ^ 1]


def unique_shapes(scene: Scene) -> list[int]:
    """Things whose shape no other thing has, crate left out."""
    return [found[0] for shape in SHAPES if len(found := matching(scene, Noun(shape))) == 1]
