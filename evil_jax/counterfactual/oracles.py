"""Oracles: who knows the right answer to an edited question, because it knows what is in the picture.

An oracle is a function `oracle(example, text) -> right answer or None`, None where it does not know. It may also have

- `shows(edit, example) -> bool | None`: whether the picture has what the edited question asks about, although the
  answer is not known;
- `why`: what its knowledge rests on, in words.

`World` knows the built-in world, whose scenes hold everything. `SceneGraphs` knows Visual Genome's annotations. They
list what annotators wrote down: that something is absent from them is likely, and no proof, that it is not there.
"""

import functools
import re
from collections.abc import Mapping

from evil_jax.counterfactual import _scene_questions, colours
from evil_jax.counterfactual.edits import Edit
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.data.shapes import queries, truth
from evil_jax.data.shapes.queries import Noun, Query
from evil_jax.data.shapes.scene import COLOURS, DARK, Scene, crate_of
from evil_jax.data.sources.visual_genome import SceneGraph, Thing
from evil_jax.records import Example

_AN = re.compile(r'\ban\b')


class World:
    """The built-in world (`data/shapes`): what the scene in `example.extra['scene']` answers.

    It answers every statement and question of the forms shapes_ve and shapes_vqa, also with names of colours that the
    world does not have, as long as these are no shades of a colour that decides the answer: whether a blue circle is a
    navy one nobody can say.
    """

    why = 'the scene that the picture was drawn from'

    def __call__(self, example: Example, text: str) -> str | None:
        """A label of a statement, an answer to a question."""
        scene = example.extra.get('scene')
        query = None if scene is None or example.choices is not None else _query(text)
        if query is None or not _decided(scene, query):
            return None
        verdict = queries.judge(scene, query)
        return verdict.answer if query.asks else verdict.label

    def shows(self, edit: Edit, example: Example) -> bool | None:
        """Whether there is what the new word names or describes; None if a crate or a shadow may hide it."""
        scene = example.extra.get('scene')
        before, after = (None, None) if scene is None else (_query(edit.original), _query(edit.text))
        if before is None or after is None or not _decided(scene, after):
            return None
        new = [noun for noun in (after.noun, after.other) if noun not in (None, before.noun, before.other)]
        if len(new) != 1:
            return None
        if queries.matching(scene, new[0]):
            return True
        shadowed = any(thing['colour'] == DARK for thing in scene['things'])
        return None if shadowed or crate_of(scene) is not None else False


@functools.lru_cache(maxsize=1 << 14)
def _query(text: str) -> Query | None:
    """What a text means; for the parser, colours that are none of the world's stand in for some that are."""
    text = _AN.sub('a', text)  # before 'orange', which is not in the world's language
    query = truth.parse_query(text)
    found = colours.spans(text) if query is None else []
    foreign = {name for _, _, name in found if name not in COLOURS}
    free = [colour for colour in COLOURS if colour not in {name for _, _, name in found}]
    if not foreign or len(foreign) > len(free):
        return query
    instead = dict(zip(sorted(foreign), free))
    for start, end, name in reversed(found):
        text = text[:start] + instead.get(name, name) + text[end:]
    query = truth.parse_query(text)
    return query and _renamed(query, {stand_in: name for name, stand_in in instead.items()})


def _renamed(query: Query, names: dict[str, str]) -> Query:
    def noun(given):
        return given and given._replace(colour=names.get(given.colour, given.colour))

    return query._replace(noun=noun(query.noun), value=names.get(query.value, query.value), other=noun(query.other))


def _decided(scene: Scene, query: Query) -> bool:
    """Whether the colours that a query names can be told from those of the things it may mean."""
    named = [query.noun, *([query.other] if query.other else [])]
    if query.kind == 'colour' and query.value:
        named.append(Noun(query.noun.shape, query.value))
    return not any(
        colours.is_a(thing['colour'], noun.colour) is None
        for noun in named
        if noun.colour
        for thing in scene['things']
        if thing['colour'] in COLOURS and noun.shape in (None, thing['shape'])
    )


class SceneGraphs:
    """Visual Genome's scene graphs, by image id (`data/sources/visual_genome.py`).

    It answers whether there is something ('Is there a red car?', 'Are there any dogs in the picture?'), whether the
    only such thing has a colour ('Is the car red?'), and which ('What color is the car?'). A thing is what its names
    say, or what WordNet has above its synset: a van is a vehicle. Absence counts only of what annotators do note, which
    is what some graph has: the more graphs the better. Of the nouns that Visual Genome's own questions take for granted
    a ninth is absent even so.
    """

    why = 'the scene graph of the picture; that something is absent from it is no proof'

    def __init__(self, graphs: Mapping[str, SceneGraph], lexicon: Lexicon):
        self._graphs = graphs
        self._words = _scene_questions.Words(lexicon)
        self._noted = self._words.noted(graphs.values())

    def __call__(self, example: Example, text: str) -> str | None:
        """'yes', 'no' or the name of a colour."""
        graph = self._graphs.get(example.image_id)
        asked = _scene_questions.parse(text) if graph is not None else None
        meant = asked and self._words.meant(asked.noun)
        if meant is None or (asked.kind != 'exists' and asked.owned):
            return None
        if asked.kind == 'exists':
            return {True: 'yes', False: 'no'}.get(self._has(graph, meant))
        things = self._words.matching(graph, meant)
        if meant.colour is None and len(things) == 1:
            return _colour_of(things[0], asked.colour)
        return None

    def shows(self, edit: Edit, example: Example) -> bool | None:
        """Whether the graph has what the new word names, or describes; None if it has not even the old."""
        graph = self._graphs.get(example.image_id)
        if graph is None or not edit.target:
            return None
        # Of what is not noted in the graph ('background', 'colour') neither is the like.
        if edit.family.startswith('colour_'):
            nouns = self._words.described(edit.text, edit.target_span)
            new = next((noun for noun in nouns if self._words.matching(graph, noun)), None)
        else:
            old = self._words.meant(edit.source, edit.source_synset)
            noted = old is not None and self._words.matching(graph, old)
            new = self._words.meant(edit.target, edit.target_synset) if noted else None
        return None if new is None else self._has(graph, new)

    def _has(self, graph: SceneGraph, meant: _scene_questions.Meant) -> bool | None:
        things = self._words.matching(graph, meant)
        # What annotators call a dog may be a poodle.
        absent = self._noted & {*meant.lemmas, meant.synset} and not self._words.general(graph, meant)
        return _any_is(things, meant.colour) if things or absent else None


def _any_is(things: list[Thing], colour: str | None) -> bool | None:
    """Whether there is a thing, of a colour if one is given; None where colours are not told or depend."""
    if not things or colour is None:
        return bool(things)
    found = [_is(thing, colour) for thing in things]
    return True if True in found else None if None in found else False


def _is(thing: Thing, colour: str) -> bool | None:
    seen = _scene_questions.colours_of(thing)
    found = [colours.is_a(name, colour) for name in seen]
    return True if True in found else None if None in found or not seen else False


def _colour_of(thing: Thing, asked: str | None) -> str | None:
    """The one colour of a thing, or whether it has the colour that is asked for."""
    if asked is not None:
        return {True: 'yes', False: 'no'}.get(_is(thing, asked))
    seen = _scene_questions.colours_of(thing)
    return seen[0] if len(seen) == 1 else None
