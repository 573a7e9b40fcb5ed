"""Rules: which words, classes of words and kinds of questions keep or change the answer when they are edited.

"Where grey is replaced by any distant colour, the answer is kept: 118 of 120." A rule is a condition on edits of one
family under which the answer is kept (STABLE) or changed (SENSITIVE) with probability tau at least. What a sound model
does anyway is no finding: edits that should change the answer (expectation CHANGE) are searched for STABLE rules, those
that should not (INV) for SENSITIVE ones, those without expectation for both, each apart from the others. A model that
answers as it should has no rules; without expectations, it may have habits.

1. Support: enough questions and pictures, and a 95 % Wilson interval whose lower end reaches tau, at the sample size
   that edits are worth when those of a picture depend on each other (intervals.py).
2. Two tests: against tau (exact binomial), and against the other edits of the family (Fisher), so that a rule tells
   what is special about its words. Both have to hold: the larger p counts.
3. Order: family, then words, classes of words and conditions, then pairs of a word and its target. If the whole family
   is stable (or sensitive), that is told, and nothing about its parts: a model that reads the question only is one
   finding a family, not hundreds. Otherwise families with a signal are selected and the level is shared between them
   (Benjamini and Bogomolov, 2014), with Benjamini and Hochberg's correction within each. Pairs are tested where the
   targets of a word differ.
   Where edits have no expectation and some parts are stable, some sensitive, the larger side is searched without the
   smaller one: if rooms alone keep their answers, that all other words change them is not told. What is found there has
   to hold, and is told, of all edits that it fits, those that were left out included. What most of a family does is no
   finding either, nor what words do where the picture does not matter (the blank baseline).
4. Generality: a class is told instead of its words if they are homogeneous (classes.py), a condition if it holds for
   almost all words; and a rule has to hold on edits that no larger rule tells of.
5. Two halves of the pictures: one chooses candidates, which reach tau and are special; the other tests them, with both
   tests, corrected for the number of candidates (Benjamini and Hochberg): a test on data that had no part in the choice
   is not blinded by it, and few hypotheses are left. Without halves, all is done on the same edits, with both tests
   and the correction for all hypotheses.
"""

import dataclasses
from typing import Any

import numpy as np

from evil_jax.counterfactual import _evidence, _wording, intervals, judged
from evil_jax.counterfactual._rule import Rule, tell
from evil_jax.counterfactual._search import Search
from evil_jax.counterfactual.lexicon import Lexicon


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
class Found:
    """The rules of a table.

    Attributes:
      rules: those that hold in both halves: blindness first, then what is unwarranted, then habits, each by number of
        edits. The first ten are a short list.
      unconfirmed: those that the second half does not confirm.
      families: what holds of each family and expectation, a finding or not, in the order of families.
      tested: 'family EXPECTATION KIND' -> number of hypotheses about it and its parts.
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
      table: the edits and, in its `baselines`, those with a blank picture and those that change nothing: what changes
        no more answers than these is no rule.
      lexicon: for rules about classes of words; None leaves them out.
      settings: see `Settings`.
    """
    searches = [Search(e, lexicon, settings) for e in _evidence.gather(table, settings.halves, settings.seed)]
    parted = [one for one in _untangled(searches, lexicon, settings) if one.tests]
    selected = intervals.benjamini_hochberg([one.p for one in parted]) <= settings.alpha
    share = selected.sum() / max(len(parted), 1)
    for one, q in zip(searches, intervals.benjamini_hochberg([one.whole.q for one in searches])):
        one.whole.q = float(q)
    chosen = [(one, one.whole) for one in searches if one.blanket and one.whole.q <= settings.alpha]
    for one, is_selected in zip(parted, selected):
        if is_selected:
            chosen += [(one, candidate) for candidate in one.rules(settings.alpha * share)]
    rules = _decided([tell(one, candidate, settings) for one, candidate in chosen], settings, share)
    noise = _evidence.noise(table)
    rules = [rule for rule in rules if noise is None or _louder(rule, noise, settings.alpha)]
    families = _statements(searches, rules, settings)
    for rule in [*rules, *families]:
        rule.sentence = _wording.sentence(rule)
    rules = [rule for rule in rules if rule.level != 'family' or rule.outcome == 'unwarranted']
    rules.sort(key=_place)
    told = [rule for rule in rules if rule.confirmed is not False]
    unwarranted = [rule for rule in told if rule.outcome == 'unwarranted']
    known = [_key(rule) for rule in unwarranted]
    blind = any(rule.family == _evidence.BLANK for rule in unwarranted)
    habits = [rule for rule in told if rule.outcome != 'unwarranted' and not blind and _key(rule) not in known]
    return Found(
        rules=unwarranted + habits,
        unconfirmed=[rule for rule in rules if rule.confirmed is False],
        families=families,
        tested={f'{e.family} {e.expectation} {e.kind}': one.tests + 1 for one in searches for e in [one.evidence]},
        settings=settings,
    )


def _untangled(searches, lexicon, settings):
    """The searches; of two kinds in the same edits the one with more edits is searched without those of the other.

    If rooms alone keep their answers, all other words are sensitive beside them: that is no finding of its own. Nor are
    habits that most of the family has: they are what the family does.
    """
    found, pairs = [], {}
    for one in searches:
        pairs.setdefault((one.evidence.family, one.evidence.expectation), []).append(one)
    for pair in pairs.values():
        if len(pair) == 2:
            large, small = sorted(pair, key=lambda one: _covered(one, settings).sum(), reverse=True)
            rest = ~_covered(small, settings)
            if small.parts and large.parts and rest.any():
                large = Search(large.evidence.take(rest), lexicon, settings, entire=large.evidence)
            pair = [one for one in (large, small) if _covered(one, settings).mean() <= 0.5]
        found += pair
    return found


def _covered(one, settings):
    """The edits that the rules of a search would tell of."""
    covered = np.zeros(len(one.evidence.held), bool)
    for rule in one.rules(settings.alpha):
        covered |= rule.inside
    return covered


def _louder(rule, noise, alpha):
    """Whether it changes more answers than asking the same question again does."""
    k, n = rule.rate * rule.n_effective, rule.n_effective
    return rule.kind != 'SENSITIVE' or intervals.exceeds(k, n, noise.k / noise.effect, noise.n / noise.effect) <= alpha


def _place(rule):
    """Of a rule in the list: blindness first, then what goes against an expectation, then habits."""
    return rule.family != _evidence.BLANK, rule.outcome != 'unwarranted', -rule.k, *_key(rule), rule.expectation


def _key(rule):
    return rule.family, rule.kind, rule.level, rule.source, rule.synset, rule.target, rule.condition or ()


def _statements(searches, rules, settings):
    """What holds of each family and expectation: a rule, or else that its answers are neither kept nor changed."""
    holding = [rule for rule in rules if rule.level == 'family' and rule.confirmed is not False]
    found = {(rule.family, rule.expectation): rule for rule in holding}
    order = dict.fromkeys((one.evidence.family, one.evidence.expectation) for one in searches)
    for one in reversed(searches):  # of both kinds the first, which says how many are kept
        key = one.evidence.family, one.evidence.expectation
        if key not in [(rule.family, rule.expectation) for rule in holding]:
            found[key] = dataclasses.replace(tell(one, one.whole, settings), kind='')
    return [found[key] for key in order]


def _decided(rules, settings, share):
    """Corrects the tests of the second half; without it, q is brought from the families selected to all of them."""
    holds = lambda rule: (
        rule.questions >= settings.min_questions and rule.images >= settings.min_images and rule.low >= settings.tau
    )
    if not settings.halves:
        for rule in rules:
            rule.q = min(rule.q / share, 1.0) if rule.level != 'family' else rule.q
        return [rule for rule in rules if holds(rule)]
    for rule, q in zip(rules, intervals.benjamini_hochberg([max(rule.p, rule.p_other or 0) for rule in rules])):
        rule.q = float(q)
        rule.confirmed = bool(q <= settings.alpha and holds(rule))
    return rules
