"""What is told of a rule: all its numbers, from the edits that it is about."""

import dataclasses
from typing import Any

import numpy as np

from evil_jax.counterfactual import classes, intervals
from evil_jax.counterfactual._search import CONDITIONS, Candidate, Search

LEVELS = ('family', 'class', 'source', 'target', *CONDITIONS)


@dataclasses.dataclass(slots=True, kw_only=True)
class Rule:
    """One rule, or (`Found.families`) what holds of a whole family.

    Attributes:
      family: the edits' family; 'colour_max' and 'colour_min' have common and uncommon colours, 'blank' is the picture
        left blank.
      kind: 'STABLE', the answer is kept, or 'SENSITIVE', it changes; '' of a family that is neither.
      level: of `LEVELS`, what the condition is about.
      source: the word, where the rule is about one; '' otherwise.
      synset: the class, where it is about one.
      target: the new word, where it is about one or there is only one.
      condition: (name, value) of another condition, ('asks', 'colour').
      members: of a class or family, its words by number of edits, the most frequent first; ten at most.
      exceptions: of a family, words that contradict.
      expectation: of its edits: 'INV', 'CHANGE', or 'FREE' where there is none.
      outcome: 'unwarranted' where the rule goes against the expectation; else 'kept' or 'changed', a habit.
      k, n: edits in which it holds, and all.
      n_effective: independent edits that they are worth.
      questions, images: distinct ones.
      rate, low, high: k / n and its 95 % interval.
      p: that the rate is tau at most, on the half that confirms.
      p_other: that it is no higher than that of the rest of the family (of a pair: of the word's other targets).
      q: the larger of them, adjusted for all candidates; without halves for all hypotheses.
      rate_other: of that rest.
      discovery, confirmation: (k, n) in either half of the pictures.
      confirmed: whether q <= alpha, with all the support; None without halves, where no other rules are told.
      targets: distinct new words, and `heterogeneity` the p of 'all have the same rate'.
      any_target: whether it holds for each of several new words that occur often enough (intersection-union test);
        else it is told of their average.
      examples: ids of edits in which it holds.
      sentence: all of it in words.
    """

    family: str
    kind: str
    level: str
    source: str = ''
    synset: str = ''
    target: str = ''
    condition: tuple[str, str] | None = None
    members: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    expectation: str
    outcome: str
    k: int
    n: int
    n_effective: float
    questions: int
    images: int
    rate: float
    low: float
    high: float
    p: float
    p_other: float | None
    q: float
    rate_other: float | None
    discovery: tuple[int, int]
    confirmation: tuple[int, int] | None
    confirmed: bool | None
    targets: int
    heterogeneity: float
    any_target: bool
    examples: tuple[str, ...]
    sentence: str = ''

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def tell(search: Search, candidate: Candidate, settings) -> Rule:
    """Everything about a candidate but its sentence; its tests are those of the half that confirms.

    It is told of all edits that fit its words, special among those in which it was searched.
    """
    evidence, kind, inside = search.evidence, search.evidence.kind, candidate.inside
    part = search.entire.take(search.inside(candidate.level, candidate.key, search.entire.edits))
    counts = part.count()
    k, n = int(counts.k[0]), int(counts.n[0])
    low, high = (float(end[0]) for end in counts.interval)
    halves = [(int(part.held[rows].sum()), int(rows.sum())) for rows in (~part.second, part.second)]
    confirming = part.take(part.second).count() if settings.halves else counts
    count = lambda rows_R: evidence.count(rows=np.flatnonzero(rows_R))
    tested = count(search.testing & inside)
    beside = search.tested if candidate.beside is None else count(search.testing & candidate.beside)
    rest = ~inside if candidate.beside is None else candidate.beside & ~inside
    edits = part.edits
    target_G, group_R = np.unique(edits.target, return_inverse=True)
    by_target = part.count(group_R, len(target_G))
    often = by_target.take(np.flatnonzero(by_target.n >= classes.LEAST))
    effect = float(np.average(often.effect, weights=often.n)) if len(often.n) else 1.0
    rule = Rule(
        family=evidence.family,
        kind=kind,
        level=candidate.level,
        **_about(candidate),
        members=_members(edits) if candidate.level in ('class', 'family') else (),
        exceptions=tuple(search.exceptions) if candidate.level == 'family' else (),
        expectation=evidence.expectation,
        outcome={'STABLE': 'kept', 'SENSITIVE': 'changed'}[kind] if evidence.expectation == 'FREE' else 'unwarranted',
        k=k,
        n=n,
        n_effective=round(float(counts.n[0] / counts.effect[0]), 3),
        questions=int(counts.questions[0]),
        images=int(counts.images[0]),
        rate=k / n,
        low=low,
        high=high,
        p=float(confirming.against(settings.tau)[0]),
        p_other=None if candidate.level == 'family' else float(tested.above(beside)[0]),
        q=candidate.q,
        rate_other=float(evidence.held[rest].mean()) if rest.any() else None,
        discovery=halves[0],
        confirmation=halves[1] if settings.halves else None,
        confirmed=None,
        targets=len(target_G),
        heterogeneity=float(intervals.heterogeneity(often.k, often.n, effect)[2][0]),
        any_target=len(often.n) > 1 and intervals.intersection_union(often.against(settings.tau)) <= settings.alpha,
        examples=_examples(part, settings.examples),
    )
    if candidate.level == 'source' and len(target_G) == 1:
        rule.target = edits.names['target'][target_G[0]]
    return rule


def _about(candidate):
    match candidate.level:
        case 'family':
            return {}
        case 'source':
            return {'source': candidate.key}
        case 'class':
            return {'synset': candidate.key}
        case 'target':
            return dict(zip(('source', 'target'), candidate.key))
    return {'condition': (candidate.level, candidate.key)}


def _members(edits, most=10):
    code_G, n_G = np.unique(edits.source, return_counts=True)
    words = (edits.names['source'][code] for code in code_G[np.argsort(-n_G, kind='stable')][:most])
    return tuple(word for word in words if word)


def _examples(part, most):
    """Edits in which the rule holds, of different pictures."""
    rows = np.flatnonzero(part.held)
    _, first = np.unique(part.edits.image[rows], return_index=True)
    return tuple(part.edits.id(row) for row in rows[np.sort(first)[:most]])
