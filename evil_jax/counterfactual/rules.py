"""Rules: which words, classes of words and kinds of questions keep or change the answer when they are edited.

"Where grey is replaced by any distant colour, the answer is kept: 118 of 120." A rule is a condition on edits of one
family under which the answer is kept (STABLE) or changed (SENSITIVE) with probability tau at least. What a sound model
does anyway is no finding: edits whose expectation is INV do not count for STABLE rules, those with CHANGE not for
SENSITIVE ones. A model that answers as it should has no rules.

1. Support: enough questions and pictures, and a 95 % Wilson interval whose lower end reaches tau, at the sample size
   that edits are worth when those of a picture depend on each other (intervals.py).
2. Two tests: against tau (exact binomial), and against the other edits of the family (Fisher), so that a rule tells
   what is special about its words. Both have to hold: the larger p counts.
3. Order: family, then words, classes of words and conditions, then pairs of a word and its target. If the whole family
   is stable (or sensitive), that is told, and nothing about its parts: a model that reads the question only is one
   finding a family, not hundreds. Otherwise families with a signal are selected and the level is shared between them
   (Benjamini and Bogomolov, 2014), with Benjamini and Hochberg's correction within each. Pairs are tested where the
   targets of a word differ.
4. Generality: a class is told instead of its words if they are homogeneous (classes.py), and a rule has to hold on
   edits that no larger rule tells of.
5. Two halves of the pictures: one chooses candidates, which reach tau and are special; the other tests them, with both
   tests, corrected for the number of candidates (Benjamini and Hochberg): a test on data that had no part in the choice
   is not blinded by it, and few hypotheses are left. Without halves, all is done on the same edits, with both tests
   and the correction for all hypotheses.
"""

import dataclasses
from typing import Any

import numpy as np

from evil_jax.counterfactual import _evidence, _wording, classes, intervals, judged
from evil_jax.counterfactual._search import Candidate, Search
from evil_jax.counterfactual.lexicon import Lexicon

LEVELS = ('family', 'class', 'source', 'target', 'asks', 'role', 'twin', 'senses')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What makes a rule.

    Attributes:
      tau: probability with which it holds.
      min_questions, min_images: that it is seen in.
      alpha: share of the rules found that may be false (false discovery rate).
      halves: candidates are chosen on one half of the pictures and tested on the other; False = both on all of them.
      seed: of the halves.
      examples: ids of edits given with a rule.
    """

    tau: float = 0.8
    min_questions: int = 20
    min_images: int = 10
    alpha: float = 0.05
    halves: bool = True
    seed: int = 0
    examples: int = 3

    def __post_init__(self):
        for name in ('tau', 'alpha'):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f'{name} is {getattr(self, name)}, wanted a number between 0 and 1')
        for name in ('min_questions', 'min_images'):
            if getattr(self, name) < 1:
                raise ValueError(f'{name} is {getattr(self, name)}, wanted at least 1')

    def least(self, part: bool) -> tuple[int, int]:
        """(questions, pictures) that are enough: in a half, half of them."""
        divisor = 2 if part and self.halves else 1
        return -(-self.min_questions // divisor), -(-self.min_images // divisor)

    def supported(self, counts: _evidence.Counts, part: bool) -> np.ndarray:
        """Which groups have enough questions and pictures, [G] bool."""
        questions, images = self.least(part)
        return (counts.questions >= questions) & (counts.images >= images)


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
      outcome: 'unwarranted' where the rule goes against the expectation of most edits; else 'kept' or 'changed'.
      k, n: edits in which it holds, and all.
      n_effective: independent edits that they are worth.
      questions, images: distinct ones.
      rate, low, high: k / n and its 95 % interval.
      against, against_k: edits whose expectation it goes against, and those of them in which it holds.
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
    outcome: str
    k: int
    n: int
    n_effective: float
    questions: int
    images: int
    rate: float
    low: float
    high: float
    against: int
    against_k: int
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


@dataclasses.dataclass(slots=True, kw_only=True)
class Found:
    """Attributes:
    rules: those that hold in both halves: blindness first, then by number of edits. The first ten are a short list.
    unconfirmed: those that the second half does not confirm.
    families: what holds of each family, findings or not, in the order of families.
    tested: 'family KIND' -> number of hypotheses about it and its parts.
    settings: that found them.
    """

    rules: list[Rule]
    unconfirmed: list[Rule]
    families: list[Rule]
    tested: dict[str, int]
    settings: Settings

    def to_json(self) -> dict[str, Any]:
        """The form of rules.json."""
        lists = {'rules': self.rules, 'unconfirmed': self.unconfirmed, 'families': self.families}
        rows = {name: [rule.to_json() for rule in rules] for name, rules in lists.items()}
        return {'settings': dataclasses.asdict(self.settings), **rows, 'tested': self.tested}


def find(table: judged.Judged, lexicon: Lexicon | None = None, settings: Settings = Settings()) -> Found:
    """The rules of a table of judged edits.

    Args:
      table: the edits and, in its `baselines`, those with a blank picture.
      lexicon: for rules about classes of words; None leaves them out.
      settings: see `Settings`.
    """
    searches = [Search(e, lexicon, settings) for e in _evidence.gather(table, settings.halves, settings.seed)]
    parted = [one for one in searches if one.tests]
    selected = intervals.benjamini_hochberg([one.p for one in parted]) <= settings.alpha
    share = selected.sum() / max(len(parted), 1)
    chosen = [(one, one.whole) for one in searches if one.blanket]
    for one, is_selected in zip(parted, selected):
        if is_selected:
            chosen += [(one, candidate) for candidate in one.rules(settings.alpha * share)]
    rules = [_rule(one, candidate, settings) for one, candidate in chosen]
    _decide(rules, settings, share)
    holding = {rule.family: rule for rule in rules if rule.level == 'family' and rule.confirmed is not False}
    families = dict.fromkeys(one.evidence.family for one in searches)
    for one in reversed(searches):  # of both kinds the first, STABLE, stands for a family that is neither
        families[one.evidence.family] = _rule(one, one.whole, settings)
    neither = {name: dataclasses.replace(rule, kind='', confirmed=None) for name, rule in families.items()}
    statements = list((neither | holding).values())
    for rule in [*rules, *statements]:
        rule.sentence = _wording.sentence(rule)
    rules = [rule for rule in rules if rule.level != 'family' or rule.outcome == 'unwarranted']
    rules.sort(key=lambda rule: (rule.family != _evidence.BLANK, -rule.k, rule.family, rule.kind, rule.sentence))
    return Found(
        rules=[rule for rule in rules if rule.confirmed is not False],
        unconfirmed=[rule for rule in rules if rule.confirmed is False],
        families=statements,
        tested={f'{one.evidence.family} {one.evidence.kind}': one.tests + 1 for one in searches},
        settings=settings,
    )


def _decide(rules, settings, share):
    """Corrects the tests of the second half; without it, q is brought from the families selected to all of them."""
    if not settings.halves:
        for rule in rules:
            rule.q = min(rule.q / share, 1.0) if rule.level != 'family' else rule.q
        return
    for rule, q in zip(rules, intervals.benjamini_hochberg([max(rule.p, rule.p_other or 0) for rule in rules])):
        enough = rule.questions >= settings.min_questions and rule.images >= settings.min_images
        rule.q = float(q)
        rule.confirmed = bool(q <= settings.alpha and enough and rule.low >= settings.tau)


def _rule(search: Search, candidate: Candidate, settings: Settings) -> Rule:
    """Everything about a candidate but its sentence; its tests are those of the half that confirms."""
    evidence = search.evidence
    inside, second = candidate.inside, evidence.second
    part = evidence.take(inside)
    counts = part.count()
    k, n = int(counts.k[0]), int(counts.n[0])
    low, high = (float(end[0]) for end in counts.interval)
    halves = [(int(evidence.held[rows].sum()), int(rows.sum())) for rows in (inside & ~second, inside & second)]
    count = lambda rows_R: evidence.count(rows=np.flatnonzero(rows_R))
    tested = count(search.testing & inside)
    beside = search.tested if candidate.beside is None else count(search.testing & candidate.beside)
    rest = ~inside if candidate.beside is None else candidate.beside & ~inside
    edits = part.edits
    target_G, group_R = np.unique(edits.target, return_inverse=True)
    by_target = part.count(group_R, len(target_G))
    often = by_target.take(np.flatnonzero(by_target.n >= classes.LEAST))
    effect = float(np.average(often.effect, weights=often.n)) if len(often.n) else 1.0
    against = part.against
    rule = Rule(
        family=evidence.family,
        kind=evidence.kind,
        level=candidate.level,
        **_about(candidate),
        members=_members(edits) if candidate.level in ('class', 'family') else (),
        exceptions=tuple(search.exceptions) if candidate.level == 'family' else (),
        outcome='unwarranted' if 2 * against.sum() >= n else 'kept' if evidence.kind == 'STABLE' else 'changed',
        k=k,
        n=n,
        n_effective=round(float(counts.n[0] / counts.effect[0]), 3),
        questions=int(counts.questions[0]),
        images=int(counts.images[0]),
        rate=k / n,
        low=low,
        high=high,
        against=int(against.sum()),
        against_k=int((against & part.held).sum()),
        p=float(tested.against(settings.tau)[0]),
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
    """Edits in which the rule holds, first of those that should not, of different pictures."""
    rows = np.flatnonzero(part.held)
    rows = rows[np.argsort(~part.against[rows], kind='stable')]
    _, first = np.unique(part.edits.image[rows], return_index=True)
    return tuple(part.edits.id(row) for row in rows[np.sort(first)[:most]])
