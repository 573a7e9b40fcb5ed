"""Tuples of a candidate and of its references to the score of SPICE (Anderson et al., 2016, sections 3.2 and 3.3).

A tuple is [object], [object, attribute] or [subject, object, relation], as the original orders them. Tuples build a
graph, and the graph's nodes, attributes and edges are what is counted. Behaviour of the original (SPICE 1.0), which is
kept since scores depend on it:

* A *concept* is a set of words and the set of their WordNet synsets. Concepts are similar if they share either.
* An object goes to the node that is the same concept, else merges into the most similar node (1 if they share a word,
  else the share of common synsets), so the references of one example become one graph; attributes of one node and
  edges between the same two nodes merge into the first that is similar. Merged concepts grow, so order matters.
* A candidate's tuple counts as true if *some* reference tuple is similar in every place; several may be similar to the
  same one. So tp may exceed the number of reference tuples, fn = number - tp is then negative, and F may exceed 1.
* F is 0 where the references or the candidate have no tuples.

The original walks nodes in the order of Java's identity hashes, which is chance; here it is the order they came in. It
decides only between two nodes that are equally similar.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Tuple = Sequence[str]  # 1, 2 or 3 words or phrases
Synsets = Callable[[str], frozenset[int]]


class Counts(NamedTuple):
    """What one example contributes: true, false and missing tuples."""

    tp: int
    fp: int
    fn: int

    @property
    def precision(self) -> float:
        """tp / candidate tuples; 0 without any, or without reference tuples."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp > 0 and self.tp + self.fn > 0 else 0.0

    @property
    def recall(self) -> float:
        """tp / reference tuples; 0 without any."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn > 0 else 0.0

    @property
    def f(self) -> float:
        """Harmonic mean of precision and recall."""
        precision, recall = self.precision, self.recall
        return 2 * (precision * recall) / (precision + recall) if precision > 0 and recall > 0 else 0.0


def count(candidate: Iterable[Tuple], references: Iterable[Tuple], synsets: Synsets) -> Counts:
    """Counts of a candidate against all tuples of its references, one reference after the other.

    Args:
      candidate, references: tuples; [subject, object, relation] where there are three.
      synsets: WordNet synsets of a word and of its base form ('play_with' for a phrase).
    """
    wanted: dict[int, list[tuple[_Concept, ...]]] = {1: [], 2: [], 3: []}
    for parts in _Graph(references, synsets).tuples():
        wanted[len(parts)].append(parts)
    found = _Graph(candidate, synsets).tuples()
    tp = sum(any(all(a.similar(b) for a, b in zip(parts, others)) for others in wanted[len(parts)]) for parts in found)
    return Counts(tp, len(found) - tp, sum(map(len, wanted.values())) - tp)


@dataclasses.dataclass(slots=True, eq=False)
class _Concept:
    words: set[str]
    synsets: set[int]

    def same(self, other: '_Concept') -> bool:
        return self.words == other.words and self.synsets == other.synsets

    def similar(self, other: '_Concept') -> bool:
        return not self.words.isdisjoint(other.words) or not self.synsets.isdisjoint(other.synsets)

    def similarity(self, other: '_Concept') -> float:
        if not self.words.isdisjoint(other.words):
            return 1.0
        together = len(self.synsets | other.synsets)
        return len(self.synsets & other.synsets) / together if together else 0.0

    def merge(self, other: '_Concept') -> None:
        self.words |= other.words
        self.synsets |= other.synsets


@dataclasses.dataclass(slots=True, eq=False)
class _Node:
    concept: _Concept
    attributes: list[_Concept] = dataclasses.field(default_factory=list)


class _Graph:
    """A scene graph, built tuple by tuple."""

    def __init__(self, tuples: Iterable[Tuple], synsets: Synsets):
        self._synsets = synsets
        self._nodes: list[_Node] = []
        self._edges: list[tuple[_Node, _Node, _Concept]] = []
        for parts in tuples:
            node = self._node(parts[0])
            if len(parts) == 2:
                attribute = self._concept(parts[1])
                if not _merged(attribute, node.attributes):
                    node.attributes.append(attribute)
            elif len(parts) == 3:
                self._relate(node, self._node(parts[1]), parts[2])

    def tuples(self) -> list[tuple[_Concept, ...]]:
        """Objects, objects with an attribute, and (subject, relation, object)."""
        found: list[tuple[_Concept, ...]] = []
        for node in self._nodes:
            found += [(node.concept,), *((node.concept, attribute) for attribute in node.attributes)]
        return found + [(source.concept, relation, target.concept) for source, target, relation in self._edges]

    def _concept(self, word: str) -> _Concept:
        return _Concept({word}, set(self._synsets(_java_trim(word).lower().replace(' ', '_'))))

    def _node(self, word: str) -> _Node:
        concept = self._concept(word)
        best, most = None, 0.0
        for node in self._nodes:
            if node.concept.same(concept):
                return node
            similarity = concept.similarity(node.concept)
            if similarity > most:
                best, most = node, similarity
        if best is None:
            best = _Node(concept)
            self._nodes.append(best)
        else:
            best.concept.merge(concept)
        return best

    def _relate(self, source: _Node, target: _Node, relation: str) -> None:
        concept = self._concept(relation.removeprefix('be '))
        if not _merged(concept, [other for a, b, other in self._edges if a is source and b is target]):
            self._edges.append((source, target, concept))


def _merged(concept: _Concept, others: list[_Concept]) -> bool:
    """Whether the concept is among others already, or is now part of the first that is similar."""
    if any(concept.same(other) for other in others):
        return True
    for other in others:
        if concept.similar(other):
            other.merge(concept)
            return True
    return False


def _java_trim(text: str) -> str:
    """String.trim of Java: everything up to a blank, at both ends."""
    return text.strip(''.join(map(chr, range(33))))
