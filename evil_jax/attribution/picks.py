"""Evidence in words: relevance of words, the words that a heat map picks, and those that the best one could pick.

A model reads the beginning of a long text, so the words behind can never be picked.

Legend: Q positions of an encoded row, W words.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

GOLD = 'gold'  # as many words as people gave

Spans = Sequence[tuple[int, int]]


class Instance(NamedTuple):
    """One annotated document and the relevance of its words.

    Attributes:
      id, docid: of the annotation and of the document.
      gold: spans [start, end) of words that people gave.
      score_W: relevance of each word.
      shown: words that the model read, which may be picked.
    """

    id: str
    docid: str
    gold: Spans
    score_W: np.ndarray
    shown: Collection[int]

    @property
    def key(self) -> tuple[str, str]:
        """What tells instances apart."""
        return self.id, self.docid


def word_scores(relevance_Q, word_Q, words: int) -> np.ndarray:
    """Scores of words: the largest of their pieces', at least 0, as in the code of Chefer et al. (arXiv 2012.09838).

    Args:
      relevance_Q: score of each position of an encoded row.
      word_Q: word of each position, as `data.words.pieces` gives it.
      words: W.

    Returns:
      float64 [W]; 0 for a word without a piece in the row.

    Raises:
      ValueError: rows of different lengths, a word that there is not, a score that is NaN.
    """
    relevance_Q, word_Q = np.asarray(relevance_Q, np.float64), np.asarray(word_Q)
    if relevance_Q.shape != word_Q.shape or word_Q.ndim != 1:
        raise ValueError(f'scores of shape {relevance_Q.shape} for positions of shape {word_Q.shape}, wanted two rows')
    if word_Q.size and word_Q.max() >= words:
        raise ValueError(f'a position belongs to word {word_Q.max()} of {words}')
    inside = word_Q >= 0
    if np.isnan(relevance_Q[inside]).any():
        raise ValueError(f'the score of position {np.flatnonzero(inside & np.isnan(relevance_Q))[0]} is NaN')
    score_W = np.zeros(words)
    np.maximum.at(score_W, word_Q[inside], relevance_Q[inside])
    return score_W


def positions(spans: Spans) -> set[int]:
    """The words in some spans [start, end)."""
    return {position for start, end in spans for position in range(start, end)}


def runs(words: Iterable[int]) -> list[tuple[int, int]]:
    """The spans [start, end) of words that stand side by side."""
    found: list[tuple[int, int]] = []
    for word in sorted(set(words)):
        if found and found[-1][1] == word:
            found[-1] = found[-1][0], word + 1
        else:
            found.append((word, word + 1))
    return found


def count(top: int | float | str, instance: Instance) -> int:
    """How many words `top` means: a number, a share in (0, 1) of the document's words, rounded up, or GOLD."""
    if top == GOLD:
        return len(positions(instance.gold))
    if isinstance(top, float) and 0 < top < 1:
        # Else 0.07 of 100 words would be 8: their product is a little more than 7.
        return math.ceil(round(top * len(instance.score_W), 9))
    if isinstance(top, int) and not isinstance(top, bool) and top > 0:
        return top
    raise ValueError(f'top is {top!r}, wanted a number of words, a share between 0 and 1, or {GOLD!r}')


def pick(instance: Instance, k: int) -> set[int]:
    """The k words of highest score among those that were read (fewer if there are not so many), ties by place."""
    shown = np.array(sorted(instance.shown), np.int64)
    order = np.argsort(-np.asarray(instance.score_W)[shown], kind='stable')
    return set(shown[order[:k]].tolist())


def oracle(instance: Instance, k: int | None = None) -> set[int]:
    """The best k words to pick: gold ones that were read, then others that were read. None: those gold ones alone."""
    gold = positions(instance.gold)
    best = sorted(gold.intersection(instance.shown))
    if k is not None:
        best = (best + sorted(set(instance.shown) - gold))[:k]
    return set(best)


def check(instance: Instance) -> None:
    """Raises ValueError where scores are no numbers, or a gold span or a word that was read is outside the document."""
    words, score_W = len(instance.score_W), np.asarray(instance.score_W)
    if score_W.ndim != 1 or np.isnan(score_W).any():
        raise ValueError(
            f'annotation {instance.id!r}: scores of words are {score_W.shape}, or NaN; wanted a number a word'
        )
    for start, end in instance.gold:
        if not 0 <= start < end <= words:
            raise ValueError(f'annotation {instance.id!r}: gold words {start} to {end} of {words}')
    if outside := [word for word in instance.shown if not 0 <= word < words]:
        raise ValueError(f'annotation {instance.id!r}: word {outside[0]} was read, of {words}')
