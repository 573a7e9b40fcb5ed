"""METEOR 1.5's score from its 23 statistics (Denkowski and Lavie, 2014; parameters of the English ranking task).

P and R are weighted matches over weighted length; F = 1 / ((1 - alpha) / P + alpha / R); the score is
F (1 - gamma (chunks / matches) ^ beta). Operations come in the original's order: equal statistics give its very bits.
"""

import math

import numpy as np

ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
WEIGHTS = (1.0, 0.6, 0.8, 0.6)  # exact, stem, synonym, paraphrase
CHUNKS = 20  # the column

_power = np.frompyfunc(math.pow, 2, 1)  # NumPy's own may differ from Java's in the last bit


def score(statistics: np.ndarray) -> np.ndarray:
    """Scores [...] from statistics [..., 23]; 0 where nothing matches or a text is empty."""
    s = np.asarray(statistics, np.float64)
    with np.errstate(divide='ignore', invalid='ignore'):
        precision, recall = (_matched(s, side) / _length(s, side) for side in (0, 1))
        f = 1 / ((1 - ALPHA) / precision + ALPHA / recall)
        fragmentation = np.where(perfect(s), 0.0, s[..., CHUNKS] / ((s[..., 21] + s[..., 22]) / 2))
        penalty = GAMMA * np.asarray(_power(fragmentation, BETA), np.float64)
        values = f * (1 - penalty)
    return np.where(np.isnan(values), 0.0, np.maximum(values, 0.0))


def perfect(statistics: np.ndarray) -> np.ndarray:
    """Where all words of both texts match in one chunk: no penalty, and no part in the corpus's chunks."""
    s = np.asarray(statistics)
    return (s[..., 21] == s[..., 0]) & (s[..., 22] == s[..., 1]) & (s[..., CHUNKS] == 1)


def _length(s: np.ndarray, side: int) -> np.ndarray:
    return DELTA * (s[..., side] - s[..., 2 + side]) + (1 - DELTA) * s[..., 2 + side]


def _matched(s: np.ndarray, side: int) -> np.ndarray:
    total = np.zeros(s.shape[:-1])
    for first, delta in ((4, DELTA), (6, 1 - DELTA)):  # content words, then function words
        for module, weight in enumerate(WEIGHTS):
            total = total + s[..., first + side + 4 * module] * weight * delta
    return total
