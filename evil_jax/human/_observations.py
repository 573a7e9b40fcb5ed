"""Responses -> what a statistical model is of: one outcome a row, and the level of each factor."""

import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evil_jax.human import _coding, ratings
from evil_jax.human.responses import Response
from evil_jax.human.study import GOLD, RATINGS

# Names of the rating's (or the median's) values. Medians of an even number of raters may lie between two ratings; an
# ordinal model asks for their order only, so they are categories of their own.
_HALVES = tuple(name for a, b in itertools.pairwise(RATINGS) for name in (a, f'{a}/{b}')) + RATINGS[-1:]
LEVELS = {'rating': RATINGS, 'median': _HALVES, 'positive': ('no or weak no', 'yes or weak yes')}
OUTCOMES = ('score', *LEVELS)
RANDOM = ('dataset', 'item', 'explanation', 'rater', 'item:rater')
_FEW = {
    'dataset': 'one data set: no effect of it',
    'item': 'one item: no random effect of it',
    'explanation': 'one explanation: no random effect of it',
    'rater': 'one rater: no random effect of it',
    'item:rater': 'one item and rater: no random effect of it',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Observations:
    """n outcomes.

    Attributes:
      values: numbers from 0 to 1 of the outcome 'score', else names of `LEVELS`.
      factors: 'system' and those of `RANDOM` that are known: the level of each row.
      notes: what is not known.
    """

    values: list[Any]
    factors: Mapping[str, list]
    notes: tuple[str, ...]


def observations(responses: Iterable[Response], outcome: str, gold: bool) -> Observations:
    """The responses that count.

    Args:
      responses: those with a `reason`, of trusted items, or without a rating are left out.
      outcome: one of `OUTCOMES`; a median is one row for an explanation, without a rater.
      gold: whether those of gold explanations are wanted; they are one system, `GOLD`, whatever they stand beside.

    Raises:
      ValueError: a rating is none of `study.RATINGS`.
    """
    rows = []
    for response in responses:
        if not response.counts or response.trusted or not response.rating:
            continue
        if response.rating not in RATINGS:
            raise ValueError(f'{response.source}: rating is {response.rating!r}, wanted one of {", ".join(RATINGS)}')
        if gold or not ratings.is_gold(response.system):
            rows.append((response, RATINGS.index(response.rating)))
    if outcome == 'median':
        values, first = _medians(rows)
    else:
        values, first = [_outcome(outcome, score) for _, score in rows], [response for response, _ in rows]
    item = [(r.dataset, r.item) for r in first]
    system = [_system(r) for r in first]
    factors = {
        'system': system,
        'dataset': [r.dataset for r in first],
        'item': item,
        # One example may have several gold explanations.
        'explanation': [(*i, s, r.explanation) for i, s, r in zip(item, system, first)],
    }
    notes = []
    if outcome != 'median':
        # Who does a page is one person, even where it is not known who.
        factors['rater'] = [r.rater or r.page for r in first]
        if any(not r.rater for r in first):
            notes.append('some raters are not known: each of their pages counts as a rater')
        if any(not (r.rater or r.assignment) for r in first):
            del factors['rater']
            notes = ['raters are not known: no random effect of them']
        else:
            # A rater sees both explanations of an item at a time, and may be in the mood for neither.
            factors['item:rater'] = list(zip(item, factors['rater']))
    return Observations(values, factors, tuple(notes))


def usable(factors: Mapping[str, Sequence], random: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """Those of the random factors whose effects can be told apart, and what is to be said of the others."""
    kept, notes, split = [], [], {}
    for name in random:
        if name not in factors:
            continue
        group = _coding.grouping(name, factors[name], len(factors[name]))
        other = split.setdefault(group.index.tobytes(), name)
        if len(group.levels) < 2:
            notes.append(_FEW[name])
        elif len(group.levels) == len(group.index):
            notes.append(f'one rating of each {name}: no random effect of it')
        elif other != name:
            notes.append(f'each {other} has one {name}: no random effect of the latter')
        else:
            kept.append(name)
    return tuple(kept), notes


def _system(response):
    return GOLD if ratings.is_gold(response.system) else response.system


def _outcome(outcome, score):
    if outcome == 'score':
        return score / (len(RATINGS) - 1)
    return RATINGS[score] if outcome == 'rating' else LEVELS['positive'][score >= 2]


def _medians(rows):
    """(medians, a response of each): of all ratings of an explanation."""
    scores = {}
    for response, score in rows:
        key = (response.dataset, response.item, _system(response), response.explanation)
        scores.setdefault(key, (response, []))[1].append(score)
    return [_HALVES[int(2 * statistics.median(s))] for _, s in scores.values()], [r for r, _ in scores.values()]
