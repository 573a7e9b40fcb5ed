"""The search for rules of one family and kind: candidates in the half that discovers, none of them told twice.

Legend: R rows (edits), G groups of rows (hypotheses), I items (a word in one sense).
"""

import dataclasses

import numpy as np

from evil_jax.counterfactual import classes, intervals
from evil_jax.counterfactual._evidence import Evidence

# Conditions other than words: name -> codes of rows and their texts; '' is not a condition.
CONDITIONS = {
    'asks': lambda edits: (edits.asks, edits.names['asks']),
    'role': lambda edits: (edits.role, edits.names['role']),
    'twin': lambda edits: (edits.twin.astype(int), ('', 'noun')),
    'senses': lambda edits: (np.searchsorted([1, 2, 5], edits.senses, 'right'), ('', 'one', 'few', 'many')),
}
_EXCEPTIONS = 0.1  # share of edits that may be of words which contradict a statement about all words


@dataclasses.dataclass(slots=True, eq=False)
class Candidate:
    """A group of edits that may be a rule.

    Attributes:
      level: 'family', 'class', 'source', 'target' or one of `CONDITIONS`: what the condition is about.
      key: its value: '', a synset, a word, (word, target), a text.
      inside: [R] bool. Its rows, of all of the evidence.
      beside: [R] bool. The rows among which it is special; None = all.
      other: what k and n of the others among them are worth, in the half that discovers.
      q: by which it was chosen, adjusted for the other hypotheses of family and kind: of being special and, where no
        second half will test it, of tau.
    """

    level: str
    key: str | tuple[str, str]
    inside: np.ndarray
    beside: np.ndarray | None
    other: tuple[float, float]
    q: float


class Search:
    """Of one evidence.

    Attributes:
      evidence: all of it.
      entire: what its rules are told of, where they are searched in a part of the edits only.
      whole: the candidate of all rows.
      testing: [R] bool. The half that tests candidates; all rows where there are no halves.
      tested: its counts.
      blanket: whether what holds is told of the whole family: then no part of it is a finding.
      exceptions: words that contradict it.
      tests: number of hypotheses about parts of the family.
      parts: those that reach tau with q <= alpha.
      p: of 'no part of the family is special' (Simes, 1986).
    """

    def __init__(self, evidence: Evidence, lexicon, settings, entire: Evidence | None = None):
        self.evidence, self.entire, self._settings = evidence, entire or evidence, settings
        self._first = evidence.take(~evidence.second)
        self._total = self._first.count()
        self._all = np.ones(len(evidence.held), bool)
        self.testing = evidence.second if settings.halves else self._all
        self.tested = evidence.count(rows=np.flatnonzero(self.testing))
        self._itemise()
        self.whole = Candidate('family', '', self._all, None, (0, 0), float(self._total.against(settings.tau)[0]))
        contradicting_I = self._items.contradicting(np.ones(len(self._items.n), bool))
        low = self._total.interval[0][0]
        self.blanket = bool(
            settings.supported(self._total, part=True)[0]
            and low >= settings.tau
            and self._items.n[contradicting_I].sum() <= _EXCEPTIONS * self._total.n[0]
        )
        words = evidence.edits.names['source']
        self.exceptions = sorted({words[code] for code in self._source_I[contradicting_I]} - {''})
        self.tests, self.parts, self.p = 0, [], 1.0
        if not self.blanket:
            self._hierarchy = None
            if lexicon is not None:
                edits = self.entire.edits
                self._hierarchy = classes.Hierarchy(lexicon, edits.names['source_synset'], edits.source_synset)
            self._test()
            self._test_targets()

    def rules(self, alpha: float) -> list[Candidate]:
        """The rules at this level of q: the most general ones, and of those with the same rows the largest."""
        if self.blanket:
            return []
        found = [candidate for candidate in self.parts if candidate.q <= alpha and self._reaches(candidate)]
        return self._prune(self._general(found))

    def _reaches(self, candidate):
        """Whether it reaches tau in all that it will be told of."""
        rows = self.inside(candidate.level, candidate.key, self.entire.edits) & ~self.entire.second
        return self.entire.held[rows].mean() >= self._settings.tau

    def inside(self, level: str, key: str | tuple[str, str], edits) -> np.ndarray:
        """Rows of edits that a candidate is about, [R] bool."""
        match level:
            case 'family':
                return np.ones(len(edits), bool)
            case 'source':
                return edits.where(source=key)
            case 'class':
                return np.isin(edits.source_synset, self._hierarchy.below(key))
            case 'target':
                return edits.where(source=key[0], target=key[1])
        codes, texts = CONDITIONS[level](edits)
        return codes == list(texts).index(key)

    def _itemise(self):
        edits, first = self.evidence.edits, ~self.evidence.second
        key_R = edits.source.astype(np.int64) * len(edits.names['source_synset']) + edits.source_synset
        key_I, self._item_R = np.unique(key_R, return_inverse=True)
        self._source_I, self._synset_I = np.divmod(key_I, len(edits.names['source_synset']))
        counts = self._first.count(self._item_R[first], len(key_I))
        self._items = classes.Items(counts.k, counts.n, counts.effect, self._settings.tau)

    def _test(self):
        edits, first = self.evidence.edits, self._first.edits
        self._test_level('source', first.source, edits.names['source'])
        for level, codes in CONDITIONS.items():
            self._test_level(level, *codes(first))
        if self._hierarchy is not None:
            self._test_classes()
        q = intervals.benjamini_hochberg([candidate.q for candidate in self.parts], self.tests)
        for candidate, one in zip(self.parts, q):
            candidate.q = float(one)
        self.p = min([1.0, *(2 * q)])  # twice: there are the targets as well
        self.parts = [candidate for candidate in self.parts if candidate.q <= self._settings.alpha]
        for candidate in self.parts:
            candidate.inside = self.inside(candidate.level, candidate.key, self.evidence.edits)

    def _test_level(self, level, code_R, texts):
        n_G = np.bincount(code_R, minlength=len(texts))
        k_G = np.bincount(code_R, self._first.held, len(texts))
        named_G = np.array([bool(text) for text in texts])
        chosen_G = self._promising(named_G, k_G, n_G)
        place_G = np.full(len(texts), -1)
        place_G[chosen_G] = np.arange(len(chosen_G))
        counts = self._first.count(place_G[code_R], len(chosen_G))
        self._add(level, [texts[code] for code in chosen_G], counts)

    def _test_classes(self):
        hierarchy, synsets = self._hierarchy, len(self.evidence.edits.names['source_synset'])
        total = lambda values_I: hierarchy.total(np.bincount(self._synset_I, values_I, synsets))
        several_K = total((self._items.n > 0).astype(float)) > 1
        chosen = self._promising(several_K, total(self._items.k), total(self._items.n))
        mask_K = np.zeros(len(hierarchy.names), bool)
        mask_K[chosen] = True
        place_K = np.cumsum(mask_K) - 1
        rows, class_R = hierarchy.expand(self._first.edits.source_synset, mask_K)
        counts = self._first.count(place_K[class_R], len(chosen), rows)
        self._add('class', [hierarchy.names[k] for k in chosen], counts)

    def _promising(self, known_G, k_G, n_G):
        """Indexes of groups that reach tau. Those that could have, but do not, are tests as well, with a large p."""
        large_G = known_G & (n_G >= self._settings.least(part=True)[0])
        self.tests += int(large_G.sum())
        return np.flatnonzero(large_G & (k_G >= self._settings.tau * n_G))

    def _add(self, level, keys, counts):
        p, other = self._p(counts, self._total), np.transpose(counts.others(self._total))
        for g in np.flatnonzero(self._settings.supported(counts, part=True)):
            self.parts.append(Candidate(level, keys[g], self._all, None, tuple(other[g].tolist()), float(p[g])))

    def _p(self, counts, beside):
        p = counts.above(beside)
        return p if self._settings.halves else np.maximum(p, counts.against(self._settings.tau))

    def _general(self, found):
        """Words and classes that are inside no more general rule, conditions that are more than these, and targets."""
        words = [candidate for candidate in found if candidate.level in ('source', 'class')]
        inside_NI = np.zeros((len(words), len(self._items.n)), bool)
        for node, candidate in enumerate(words):
            inside_NI[node, np.unique(self._item_R[candidate.inside])] = True
        is_class_N = np.array([candidate.level == 'class' for candidate in words], bool)
        told = [words[node] for node in classes.climb(inside_NI, is_class_N, self._items)]
        others = [candidate for candidate in found if candidate.level not in ('source', 'class')]
        return told + [other for other in others if other.level == 'target' or self._is_general(other, told)]

    def _is_general(self, condition, told):
        """Whether a condition holds whatever the word, but for a few, and beyond each rule about words."""
        rows = np.flatnonzero(condition.inside & ~self.evidence.second)
        counts = self.evidence.count(self._item_R[rows], len(self._items.n), rows)
        items = classes.Items(counts.k, counts.n, counts.effect, self._settings.tau)
        against = items.n[items.contradicting(items.n > 0)].sum()
        return against <= _EXCEPTIONS * len(rows) and all(
            self._holds(condition, ~rule.inside) for rule in told if (rule.inside & condition.inside).any()
        )

    def _holds(self, candidate, among):
        """Whether a candidate holds by itself on its rows among others, in the half that discovers."""
        rest = self.evidence.count(rows=np.flatnonzero(candidate.inside & among & ~self.evidence.second))
        worth = (float(x[0] / rest.effect[0]) for x in (rest.k, rest.n))
        return rest.n[0] >= classes.LEAST and classes.special(*worth, *candidate.other, self._settings.tau)

    def _prune(self, found):
        """Greedy, the one with most rows that hold first: a rule has to hold on the rows that no other one told."""
        size = lambda candidate: (candidate.inside & ~self.evidence.second & self.evidence.held).sum()
        told, covered = [], ~self._all
        for candidate in sorted(found, key=size, reverse=True):
            if self._holds(candidate, ~covered):
                told.append(candidate)
                covered = covered | candidate.inside
        return told

    def _test_targets(self):
        """Pairs of a word and its target, of words whose targets differ."""
        edits, words = self._first.edits, len(self.evidence.edits.names['source'])
        key_R = edits.source.astype(np.int64) * words + edits.target
        key_G, group_R = np.unique(key_R, return_inverse=True)
        source_G, target_G = np.divmod(key_G, words)
        counts = self._first.count(group_R, len(key_G))
        often_G = counts.n >= classes.LEAST
        effect = float(np.average(counts.effect, weights=counts.n * often_G)) if often_G.any() else 1.0
        _, degrees, p = intervals.heterogeneity(counts.k * often_G, counts.n * often_G, effect, source_G, words)
        several, mixed = np.flatnonzero(degrees), np.zeros(words, bool)
        q = intervals.benjamini_hochberg(p[several])
        self.p = min([self.p, *(2 * q)])
        mixed[several] = q <= self._settings.alpha
        large_G = mixed[source_G] & (counts.n >= self._settings.least(part=True)[0])
        self.tests += int(large_G.sum())
        chosen = large_G & (counts.rate >= self._settings.tau) & self._settings.supported(counts, part=True)
        counts, siblings = counts.take(chosen), self._first.count(edits.source, words).take(source_G[chosen])
        q = intervals.benjamini_hochberg(self._p(counts, siblings), int(large_G.sum()))
        other = np.transpose(counts.others(siblings))
        for g in np.flatnonzero(q <= self._settings.alpha):
            key = (edits.names['source'][source_G[chosen][g]], edits.names['target'][target_G[chosen][g]])
            beside = self.inside('source', key[0], self.evidence.edits)
            inside = self.inside('target', key, self.evidence.edits)
            self.parts.append(Candidate('target', key, inside, beside, tuple(other[g].tolist()), float(q[g])))
