"""Whether an explanation is true of its scene and justifies the gold answer."""

from typing import NamedTuple

from evil_jax.data.shapes import grammar, language_vcr, language_ve, language_vqa
from evil_jax.data.shapes.grammar import Claim, Fact, Phrase
from evil_jax.data.shapes.queries import CONTRADICTION, ENTAILMENT, Noun, Query, judge, matching
from evil_jax.data.shapes.scene import CRATE, DARK, RELATIONS, Scene, crate_of, related


def parse_query(text: str) -> Query | None:
    """What a hypothesis or question of any form means, None if it is of none."""
    return language_ve.parse(text) or language_vqa.parse(text) or language_vcr.parse(text)


def explanation_is_true(scene: Scene, example, text: str) -> bool:
    """Judges a generated explanation of the gold answer to `example.text` in `scene`.

    True only if every claim that `text` makes is true of the scene and if together they justify the gold answer: they
    point out the decisive evidence, with its place. Repeating the hypothesis, or the answer, justifies nothing. Text
    outside the world's language is False. Case and a final full stop do not matter. Where objects are tagged,
    `<|det2|>` and 2 are the same, and every decisive object must be called by its tag.

    Args:
      scene: as `make_scene` gives it (`example.extra['scene']`).
      example: anything whose `text` is a hypothesis or question of this world; the gold answer follows from the scene.
      text: the explanation.

    Raises:
      ValueError: `example.text` is not a hypothesis or question of this world.
    """
    query = parse_query(example.text)
    if query is None:
        raise ValueError(f'text of example {getattr(example, "id", "?")} is not of the world shapes: {example.text!r}')
    tagged = query.noun.tag is not None
    claims = grammar.parse(language_vcr.bare(text) if tagged else text, tagged)
    if claims is None:
        return False
    verdict = judge(scene, query)
    seen = _Evidence(scene, query)
    return all(seen.add(claim) for claim in claims) and _justifies(scene, query, verdict, seen)


class _Hidden(NamedTuple):
    """What a crate is said to hide, and whether the crate's place is said."""

    noun: Noun | None
    placed: bool


class _Evidence:
    """True claims so far.

    facts: names of the facts told about each thing (shape, colour, size, cell, tag).
    sole: pairs (thing, fact): told of the only thing that has the words of the subject, as in 'the circle is blue'.
    counts: (shape, number or None, things).
    """

    def __init__(self, scene: Scene, query: Query):
        self.scene, self.things = scene, scene['things']
        # What 'it' in 'the crate may hide it' means when nothing was named before; of a relation's two nouns neither.
        self.topic = None if query.kind == 'relation' else query.noun
        self.facts: dict[int, set[str]] = {}
        self.sole: set[tuple[int, str]] = set()
        self.counts: list[tuple[str, int | None, frozenset[int]]] = []
        self.hidden: list[_Hidden] = []
        self.last: int | None = None  # the thing that 'it' means
        self.last_phrase: Phrase | None = None
        self.last_alone = False  # whether that phrase fits one thing by its shape alone

    def add(self, claim: Claim) -> bool:
        """Whether a claim is true; if so it is kept."""
        return getattr(self, f'_{claim.kind}')(claim)

    def _is(self, claim):
        subject = self._inherit(claim.subject)
        possible = self._candidates(subject)
        fitting = [i for i in possible if all(self._holds(i, fact) for fact in claim.facts)]
        if subject.determiner in ('a', 'another'):
            if not fitting:  # 'a red circle is here': one such thing is enough
                return False
        elif len(possible) != 1 or not fitting:
            return False
        if subject.determiner == 'only' and crate_of(self.scene) is not None:
            return False  # nobody knows what is in the crate
        index = fitting[0]
        said = {fact.name for fact in claim.facts if fact.holds}
        self._tell(index, _named(subject) | said)
        if subject.determiner != 'it':
            self.last_alone = subject.determiner in ('the', 'only') and subject.colour is None and subject.size is None
            self.last_phrase = subject
        if self.last_alone:
            self.sole |= {(index, name) for name in said}
        self.last = index
        return True

    def _absent(self, claim):
        self.last, self.last_phrase = None, claim.subject
        return not matching(self.scene, _noun(claim.subject)) and claim.subject.cell is None

    def _unseen(self, claim):
        found = self._candidates(claim.subject)
        if len(found) != 1 or self.things[found[0]]['colour'] != DARK:
            return False
        self._tell(found[0], _named(claim.subject) | {'colour'})
        self.last = found[0]
        return True

    def _hides(self, claim):
        found = self._candidates(claim.subject)
        other = claim.other
        if claim.subject.shape != CRATE or len(found) != 1:
            return False
        if other.determiner == 'it':
            noun = self.topic if self.last_phrase is None else _noun(self.last_phrase)
        elif other.shape == CRATE or other.cell is not None or other.determiner not in ('a', 'the'):
            return False
        else:
            noun = _noun(other)
        self.hidden.append(_Hidden(noun, claim.subject.cell is not None))
        return True

    def _count(self, claim):
        found = matching(self.scene, Noun(claim.subject.shape))
        if claim.number is not None and claim.number != len(found):
            return False
        if sorted(self.things[i]['cell'] for i in found) != sorted(claim.cells):
            return False
        self.counts.append((claim.subject.shape, claim.number, frozenset(found)))
        return True

    def _inherit(self, phrase: Phrase) -> Phrase:
        """'another' alone means another of what was named last."""
        first = self.last_phrase
        if phrase.determiner != 'another' or first is None or any(_noun(phrase)):
            return phrase
        return phrase._replace(shape=first.shape, colour=first.colour, size=first.size)

    def _candidates(self, phrase: Phrase) -> list[int]:
        """The things that a noun phrase can mean."""
        if phrase.determiner == 'it':
            return [] if self.last is None else [self.last]
        if phrase.determiner == 'another':
            return [i for i in self._fitting(phrase) if i != self.last] if self.last is not None else []
        return self._fitting(phrase)

    def _fitting(self, phrase):
        return [i for i in matching(self.scene, _noun(phrase)) if phrase.cell in (None, self.things[i]['cell'])]

    def _holds(self, index: int, fact: Fact) -> bool:
        thing = self.things[index]
        if fact.name in RELATIONS:
            others = self._candidates(fact.other)
            if len(others) != 1:
                return False
            self._tell(others[0], _named(fact.other))
            return related(thing, fact.name, self.things[others[0]]) == fact.holds
        if fact.name == 'colour' and not fact.holds and thing['colour'] == DARK:
            return False  # it may be that colour
        return (thing[fact.name] == fact.value) == fact.holds

    def _tell(self, index, names):
        self.facts.setdefault(index, set()).update(names)

    def tells(self, index: int, *names: str) -> bool:
        """Whether all these facts about a thing have been told."""
        return self.facts.get(index, set()).issuperset(names)


def _noun(phrase: Phrase) -> Noun:
    return Noun(phrase.shape, phrase.colour, phrase.size, phrase.tag)


def _named(phrase: Phrase) -> set[str]:
    """Names of the facts that a noun phrase contains."""
    return {name for name in ('shape', 'colour', 'size', 'cell', 'tag') if getattr(phrase, name) is not None}


def _justifies(scene, query, verdict, seen: _Evidence) -> bool:
    if verdict.answer is None and (query.asks or verdict.label is None):
        return False
    if verdict.missing is not None:
        return any(hidden.placed and hidden.noun == verdict.missing for hidden in seen.hidden)
    things = verdict.things
    if query.noun.tag is not None:
        # A place alone would repeat the answer to 'where is 2', a colour alone that to 'what colour is 2'.
        told = {'look': ('colour', 'size'), 'beside': ()}.get(query.kind, ('colour',))
        return all(seen.tells(i, 'tag', 'cell', *told) for i in things)
    if query.kind in ('relation', 'what'):
        placed = all(seen.tells(i, 'cell') for i in things)
        named = ('shape', 'colour') if query.kind == 'what' else ()
        return placed and seen.tells(things[0], *named)
    if query.kind == 'count':
        return _counted(scene, query, things, seen)
    if query.kind == 'exists' and verdict.label == CONTRADICTION:
        # A blue circle alone does not contradict a red one; that the (only) circle is blue does.
        return bool(things) and all(
            seen.tells(i, 'shape', 'colour', 'cell') and (i, 'colour') in seen.sole for i in things
        )
    if query.kind == 'exists' and verdict.label == ENTAILMENT:
        return any(seen.tells(i, 'shape', 'colour', 'cell') for i in things)
    told = 'size' if query.kind == 'size' else 'colour'
    return all(seen.tells(i, 'shape', told, 'cell') for i in things)


def _counted(scene, query, things, seen):
    """All of them placed, and that there are no more of them said: by the number, or by the list itself."""
    shape = query.noun.shape
    for counted, number, found in seen.counts:
        if counted == shape and found == frozenset(things):
            return number is not None or len(found) > 1
    listed = [i for i in things if seen.tells(i, 'shape', 'cell')]
    if len(things) == 1:
        return len(listed) == 1 and (things[0], 'cell') in seen.sole
    return len(listed) == len(things) > 1
