"""Whether explanations follow the edit: from (question, answer, explanation) to the same of the edited question.

After Atanasova et al., "Faithfulness Tests for Natural Language Explanations" (ACL 2023): where an edit changes the
answer, the reason is the edit, and an explanation that doesn't mention it is suspect. Five figures:

    reflected  of changed answers, how many explanations name the new word (or a synonym or hypernym of it); those that
               don't are candidates for unfaithful ones. Beside it stands how often the explanation of the question
               before the edit named the same words: that much is chance.
    stale      of explanations that named the old word before, how many still do and don't name the new one. Those that
               name both ('it is red, not blue') are counted apart, as contrasts.
    stable     of answers kept under edits that keep the meaning, how many explanations stay as they were, but for the
               word exchanged and what the model's own noise changes.
    drift      how far those move on average: 1 - F1 of their tokens.
    coupling   whether explanations move more where answers move more: a correlation, against a permutation null.

People repeat a word of the text in about two of three explanations (`HUMAN`, `human_rates`), so 100 % is not the goal.
"""

import array
import collections
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evil_jax.counterfactual import mentions, rates
from evil_jax.counterfactual.edits import FAMILIES, Edit
from evil_jax.counterfactual.judged import Judged
from evil_jax.counterfactual.lexicon import Lexicon
from evil_jax.records import Example

MEANING_KEPT = 'INV'
BASELINES = ('noop', 'repeat')  # pairs whose questions say the same: what changes is noise
RATES = ('reflected', 'by_chance', 'named', 'named_before', 'stale', 'contrast', 'stable')
# (low, high) of `human_rates` over the dev and the test split of e-SNLI-VE.
HUMAN = {'noun': (0.65, 0.66), 'colour': (0.60, 0.65)}
_PERMUTATIONS = 1000
_MOST_COUPLED = 10_000  # pairs that the correlation is of
_EXAMPLES = 20  # ids that are kept of each kind of finding


class Pair(NamedTuple):
    """A question and its edit, answered and explained.

    Attributes:
      id, family, image_id: of the edit.
      words: what the edit took out and put in; of the baselines `NO_WORDS`.
      kept: whether the answer stayed.
      explanation, edited: before and after.
      shift: how far the answer moved, 0 to 1 (total variation); NaN where only the answers are known.
      expectation: of the edit: 'INV', 'CHANGE', 'FREE' or ''.
      label: the right answer of the question where answers are classes, else ''.
    """

    id: str
    family: str
    image_id: str
    words: mentions.Terms
    kept: bool
    explanation: str
    edited: str
    shift: float = math.nan
    expectation: str = ''
    label: str = ''


NO_WORDS = mentions.Terms('n', (), (), ())


def pairs(
    judged: Judged, edits: Iterable[tuple[int, Edit]], explanation: Callable[[str], str | None], lexicon: Lexicon
) -> Iterator[Pair]:
    """The judged edits with their explanations, read as a stream.

    Args:
      judged: rows in the order of the edits; edits may be missing in it. Its baselines are another table.
      edits: (where its line begins, edit), as `exchange.Asked.edits` yields them.
      explanation: of a question by its id; None where there is none, and the pair is passed over.
      lexicon: says what counts as naming a word.
    """
    row = 0
    for offset, edit in edits:
        if row == len(judged):
            return
        if judged.offset[row] != offset:
            continue
        said = explanation(edit.example_id), explanation(edit.id)
        if None not in said:
            yield Pair(
                edit.id,
                edit.family,
                edit.image_id,
                NO_WORDS if edit.text == edit.original else mentions.terms(edit, lexicon),
                bool(judged.kept[row]),
                *said,
                shift=float(judged.shift[row]),
                expectation=edit.expectation,
                label=judged.names['gold'][judged.gold[row]] if judged.labels else '',
            )
        row += 1


def measure(
    pairs: Iterable[Pair], finder: mentions.Finder, *, seed: int = 0, resamples: int = 1000
) -> dict[str, Any] | None:
    """All five figures, for each family and over all.

    The pairs are read once and none is kept, so that they may be many.

    Args:
      pairs: in any order, those of the baselines among them.
      finder: of words in explanations.
      seed: of bootstrap, permutations and draws.
      resamples: of the bootstrap over images.

    Returns:
      `{'families': {family: row}, 'all': row, 'labels': {label: row}, 'coupling': {...}, 'noise': distance,
      'examples': {'unfaithful', 'stale', 'drift': [edit ids]}}`. A row has 'n', 'images', 'drift' and 'moved' (of all
      pairs, 1 - F1), each `{'value', 'n', 'ci95'}`, and each of `RATES` as `{'k', 'n', 'value', 'ci95'}`; the value of
      a rate of nothing is None. None without any pair that has an explanation.
    """
    columns = _Columns()
    for pair in pairs:
        columns.add(pair, finder)
    if not columns.images:
        return None
    table = columns.table()
    noise = _noise(table, columns.families)
    shown = np.isin(table.family, [code for name, code in columns.families.items() if name in FAMILIES])
    row = lambda rows: _row(table, rows, noise, seed, resamples)
    return {
        'families': {name: row(table.family == i) for name, i in columns.families.items() if name not in BASELINES},
        'all': row(shown),
        'labels': {name: row(shown & (table.label == i)) for name, i in columns.labels.items() if name},
        'coupling': _coupling(table, shown, seed, resamples),
        'noise': noise,
        'examples': columns.examples,
    }


def distance(one: Sequence[str], other: Sequence[str]) -> float:
    """1 - F1 of the tokens of two texts, counted with repetition; of two empty texts 0."""
    if one == other:
        return 0.0
    common = sum((collections.Counter(one) & collections.Counter(other)).values())
    return 1 - 2 * common / (len(one) + len(other))


def human_rates(
    examples: Iterable[Example],
    finder: mentions.Finder,
    nouns: Callable[[str], Iterable[str]],
    colours: Callable[[str], Iterable[str]],
) -> dict[str, dict[str, dict[str, float]]]:
    """How often gold explanations repeat a noun or a colour of their text: what a model's rates are read against.

    Args:
      examples: those without explanations count for nothing.
      finder: of words in explanations.
      nouns, colours: lemmas of the nouns of a text, and its colours.

    Returns:
      `{'noun' or 'colour': {label or 'all': {'k', 'n', 'value'}}}`, n words and k of them repeated; empty without
      explanations.
    """
    counts: dict[str, dict[str, list[int]]] = {}
    for example in examples:
        explanations = [mentions.tokens(text) for text in example.explanations]
        if not explanations:
            continue
        labels = ('all',) if example.label is None or example.choices else ('all', str(example.label))
        for kind, pos, words in (('noun', 'n', nouns(example.text)), ('colour', 'a', colours(example.text))):
            for word in words:
                for text in explanations:
                    named = bool(finder.spans(text, [word], pos))
                    for label in labels:
                        count = counts.setdefault(kind, {}).setdefault(label, [0, 0])
                        count[0] += named
                        count[1] += 1
    return {
        kind: {label: {'k': k, 'n': n, 'value': k / n} for label, (k, n) in rows.items()}
        for kind, rows in counts.items()
    }


class _Table(NamedTuple):
    """One row a pair."""

    family: np.ndarray
    image: np.ndarray
    label: np.ndarray
    flags: np.ndarray  # bool, [pairs, len(_FLAGS)]
    distance: np.ndarray
    shift: np.ndarray

    def flag(self, name: str) -> np.ndarray:
        return self.flags[:, _FLAGS.index(name)]


_FLAGS = ('kept', 'invariant', 'exchanged', 'named', 'named_before', 'old', 'old_before')


class _Columns:
    """The table while it grows: a few numbers a pair, and names as codes."""

    def __init__(self):
        self.families, self.images, self.labels = {}, {}, {}
        self.examples = {'unfaithful': [], 'stale': [], 'drift': []}
        self._codes, self._flags, self._numbers = array.array('i'), array.array('b'), array.array('f')

    def add(self, pair: Pair, finder: mentions.Finder) -> None:
        before, after = mentions.tokens(pair.explanation), mentions.tokens(pair.edited)
        new_before, old_before = finder.named(before, pair.words)
        new_after, old_after = finder.named(after, pair.words)
        # An explanation may follow the exchange of words, or not: neither moves it.
        moved = min(
            distance(before, after), distance(mentions.masked(before, old_before), mentions.masked(after, new_after))
        )
        exchanged = bool(pair.words.added)
        invariant = pair.expectation == MEANING_KEPT
        for table, name in ((self.families, pair.family), (self.images, pair.image_id), (self.labels, pair.label)):
            self._codes.append(table.setdefault(name, len(table)))
        self._flags.extend(map(bool, (pair.kept, invariant, exchanged, new_after, new_before, old_after, old_before)))
        self._numbers.extend((moved, (not pair.kept) if math.isnan(pair.shift) else pair.shift))
        found = {
            'unfaithful': exchanged and not pair.kept and not new_after,
            'stale': exchanged and old_before and old_after and not new_after,
            'drift': invariant and pair.kept and moved > 0.5,
        }
        for kind, so in found.items():
            if so and len(self.examples[kind]) < _EXAMPLES and pair.family not in BASELINES:
                self.examples[kind].append(pair.id)

    def table(self) -> _Table:
        family, image, label = np.array(self._codes, np.int32).reshape(-1, 3).T
        moved, shift = np.array(self._numbers, np.float32).reshape(-1, 2).T
        flags = np.array(self._flags, bool).reshape(-1, len(_FLAGS))
        return _Table(family, image, label, flags, moved, shift)


def _noise(table, baselines):
    """Distance that 95 % of the explanations of unchanged questions stay within; 0 where there are none."""
    own = np.isin(table.family, [code for name, code in baselines.items() if name in BASELINES])
    return float(np.quantile(table.distance[own], 0.95)) if own.any() else 0.0


def _row(table, rows, noise, seed, resamples):
    exchanged = rows & table.flag('exchanged')
    changed = exchanged & ~table.flag('kept')
    removed = rows & table.flag('old_before')
    still = rows & table.flag('invariant') & table.flag('kept')
    hits = {
        'reflected': (changed, table.flag('named')),
        'by_chance': (changed, table.flag('named_before')),
        'named': (exchanged, table.flag('named')),
        'named_before': (exchanged, table.flag('old_before')),
        'stale': (removed, table.flag('old') & ~table.flag('named')),
        'contrast': (removed, table.flag('old') & table.flag('named')),
        'stable': (still, table.distance <= noise + 1e-6),
    }
    found = {'n': int(rows.sum()), 'images': len(np.unique(table.image[rows]))}
    found |= {name: rates.of(hit[of], table.image[of]) for name, (of, hit) in hits.items()}
    for name, those in (('drift', still), ('moved', rows)):
        found[name] = _mean(table.distance[those], table.image[those], seed, resamples)
    return found


def _mean(values, images, seed, resamples):
    """A mean with its bootstrap interval over images."""
    if not len(values):
        return {'value': None, 'n': 0, 'ci95': None}
    _, image = np.unique(images, return_inverse=True)
    sums, counts = np.bincount(image, values), np.bincount(image)
    ratio = lambda drawn: (drawn @ sums) / (drawn @ counts)
    ci95 = rates.bootstrap(ratio, len(sums), seed, resamples)
    return {'value': float(values.mean()), 'n': len(values), 'ci95': ci95}


def _coupling(table, rows, seed, resamples):
    """Correlation of the two shifts over the edits, and against chance.

    Pairs of one image are alike in both shifts whatever the explanations do, so the null takes one pair an image, and
    permutes within families: that one family moves both more than another is no coupling.
    """
    generator = np.random.default_rng(seed)
    rows = generator.permutation(np.flatnonzero(rows))[:_MOST_COUPLED]
    _, first = np.unique(table.image[rows], return_index=True)
    one = rows[first]
    moved, shift, family = table.distance[one], table.shift[one], table.family[one]
    value = _correlation(table.shift[rows], table.distance[rows])
    single = _correlation(shift, moved)
    if value is None or single is None:
        return {'value': None, 'n': len(rows), 'reason': 'answers or explanations never move, or always alike'}
    order = np.argsort(family, kind='stable')
    moved, shift, family = moved[order], shift[order], family[order]
    null = np.empty(_PERMUTATIONS)
    for i in range(_PERMUTATIONS):
        # Sorted by family, then at random: a permutation within each family.
        null[i] = _correlation(shift, moved[np.lexsort((generator.random(len(moved)), family))])
    _, image = np.unique(table.image[rows], return_inverse=True)
    return {
        'value': value,
        'n': len(rows),
        'ci95': _correlation_interval(table.shift[rows], table.distance[rows], image, seed, resamples),
        'one_an_image': {'value': single, 'n': len(one)},
        'null95': np.quantile(null, [0.025, 0.975]).tolist(),
        'p': float((1 + (null >= single - 1e-12).sum()) / (1 + _PERMUTATIONS)),
    }


def _correlation(x, y):
    """Pearson's; None where one does not vary."""
    x, y = (np.asarray(v, np.float64) - np.mean(v, dtype=np.float64) for v in (x, y))
    scale = math.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if len(x) > 1 and scale > 1e-12 else None


def _correlation_interval(x, y, image, seed, resamples):
    """Bootstrap over images, by the sums that a correlation is made of."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    sums = np.stack([np.bincount(image, v) for v in (np.ones_like(x), x, y, x * x, y * y, x * y)], axis=1)

    def correlations(drawn):
        n, sx, sy, xx, yy, xy = (drawn @ sums).T
        with np.errstate(invalid='ignore', divide='ignore'):
            return (xy - sx * sy / n) / np.sqrt((xx - sx**2 / n) * (yy - sy**2 / n))

    return rates.bootstrap(correlations, len(sums), seed, resamples)
