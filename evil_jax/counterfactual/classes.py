"""Classes of words by WordNet: which synsets the words of edits stand under, and how far up a rule still holds.

Legend: R rows (edits), S synsets of the words, P pairs of a synset and a class above it, K classes, I items (a word in
one sense), N nodes (candidates for rules).
"""

import dataclasses

import numpy as np

from evil_jax.counterfactual import intervals
from evil_jax.counterfactual.lexicon import Lexicon

LEAST = 5  # edits, without which nothing is said about a part of a rule


class Hierarchy:
    """The classes over some synsets. Of classes with the same synsets the most specific stands for all.

    Attributes:
      names: of the K classes, themselves synsets.
    """

    def __init__(self, lexicon: Lexicon, vocabulary, used):
        """Takes the names of synsets and the codes (indexes into them) that are used; '' is none."""
        number, synset_P, class_P, depth_P = {}, [], [], []
        for code in np.unique(used).tolist():
            if vocabulary[code]:
                for name, depth in ((vocabulary[code], 0), *lexicon.ancestors(vocabulary[code])):
                    synset_P.append(code)
                    class_P.append(number.setdefault(name, len(number)))
                    depth_P.append(depth)
        self._synset_P, self._class_P = np.array(synset_P, np.intp), np.array(class_P, np.intp)
        self._synsets = len(vocabulary)
        self._keep_distinct(list(number), np.array(depth_P))

    def _keep_distinct(self, names, depth_P):
        # Equal sets of synsets have equal sums of random numbers; a sum over 64 bits wraps around and stays exact.
        random_S = np.random.default_rng(0).integers(2**63, size=self._synsets, dtype=np.uint64)
        sum_K = np.zeros(len(names), np.uint64)
        np.add.at(sum_K, self._class_P, random_S[self._synset_P])
        depth_K = np.bincount(self._class_P, depth_P, len(names))
        order_K = np.lexsort((names, depth_K, sum_K))
        first_K = np.ones(len(names), bool)
        first_K[1:] = sum_K[order_K][1:] != sum_K[order_K][:-1]
        kept = np.sort(order_K[first_K])
        self.names = [names[k] for k in kept]
        renumbered_K = np.full(len(names), -1)
        renumbered_K[kept] = np.arange(len(kept))
        inside_P = renumbered_K[self._class_P] >= 0
        self._synset_P, self._class_P = self._synset_P[inside_P], renumbered_K[self._class_P[inside_P]]

    def total(self, values_S: np.ndarray) -> np.ndarray:
        """Sums over each class's synsets, [K]."""
        return np.bincount(self._class_P, values_S[self._synset_P], len(self.names))

    def below(self, name: str) -> np.ndarray:
        """Codes of the synsets of a class."""
        return self._synset_P[self._class_P == self.names.index(name)]

    def expand(self, synset_R: np.ndarray, chosen_K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows, classes): each row once for each chosen class that it is in. `chosen_K` is a mask."""
        order_R = np.argsort(synset_R, kind='stable')
        number_S = np.bincount(synset_R, minlength=self._synsets)
        start_S = np.cumsum(number_S) - number_S
        chosen_P = chosen_K[self._class_P]
        synset_P, class_P = self._synset_P[chosen_P], self._class_P[chosen_P]
        length_P = number_S[synset_P]
        # Position within its own run of every row that a pair stands for.
        within = np.arange(length_P.sum()) - np.repeat(np.cumsum(length_P) - length_P, length_P)
        return order_R[np.repeat(start_S[synset_P], length_P) + within], np.repeat(class_P, length_P)


def special(k: float, n: float, other_k: float, other_n: float, tau: float, alpha: float = 0.01) -> bool:
    """Whether a part of a rule would hold by itself: tau reached, more than outside of the rule."""
    return bool(k >= tau * n and intervals.exceeds(k, n, other_k, other_n) <= alpha)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Counts of the words in their senses.

    Attributes:
      k, n: [I] float64. Rows that held, and rows.
      effect: [I] float64. Design effect of each.
      tau: share that a rule promises.
    """

    k: np.ndarray
    n: np.ndarray
    effect: np.ndarray
    tau: float

    def contradicting(self, inside_I: np.ndarray, alpha: float = 0.05) -> np.ndarray:
        """Members whose own share is below tau, [I] bool; alpha is shared among them (Bonferroni)."""
        members_I = inside_I & (self.n >= LEAST)
        p_I = intervals.at_least((self.n - self.k) / self.effect, self.n / self.effect, 1 - self.tau)
        return members_I & (p_I <= alpha / max(members_I.sum(), 1))

    def adds(self, rule_I: np.ndarray, lower_I: np.ndarray) -> bool:
        """Whether what a rule has beyond a lower one holds by itself."""
        more_I = rule_I & ~lower_I
        worth = lambda inside_I: ((x[inside_I] / self.effect[inside_I]).sum() for x in (self.k, self.n))
        return self.n[more_I].sum() >= LEAST and special(*worth(more_I), *worth(~rule_I), self.tau)


def climb(inside_NI: np.ndarray, is_class_N: np.ndarray, items: Items) -> list[int]:
    """Of nodes that are rules each, those to report: the most general homogeneous ones.

    A class is homogeneous if none of its members contradicts the rule, and it is more than any rule below it: what it
    adds holds by itself. Thus 'room' is told if bedrooms and kitchens behave alike, and 'bedroom' if only they do,
    whatever few kitchens there are. What is inside a node that is told is not told again.

    Args:
      inside_NI: which items each node has.
      is_class_N: whether a node is a class; others are single words.
      items: their counts.
    """
    size_N = inside_NI @ items.n
    general = []
    for node in np.flatnonzero(is_class_N):
        inside_I = inside_NI[node]
        if (inside_I & (items.n >= LEAST)).sum() < 2 or items.contradicting(inside_I).any():
            continue
        below_N = ~(inside_NI & ~inside_I).any(1) & (size_N < size_N[node])
        if all(items.adds(inside_I, inside_NI[lower]) for lower in np.flatnonzero(below_N)):
            general.append(node)
    # A word in several senses is as large as its synset: the word is told.
    candidates = [*general, *np.flatnonzero(~is_class_N)]
    kept = []
    for node in sorted(candidates, key=lambda node: (-size_N[node], is_class_N[node], node)):
        if not any(not (inside_NI[node] & ~inside_NI[larger]).any() for larger in kept):
            kept.append(int(node))
    return kept
