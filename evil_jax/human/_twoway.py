"""Intervals of mean ratings when both the pictures and the raters might have been others.

The pictures and the raters are drawn with replacement, each as a whole and both together; a rating weighs how often its
picture was drawn times how often its rater was (Owen, 2007, "The pigeonhole bootstrap"). Whatever is peculiar to one
rating then enters the spread three times, and with three raters an item that is much of it. So deviations are scaled
to the two-way variance (Cameron, Gelbach and Miller, 2011): between pictures + between raters - within both; and, since
few raters say little about how raters differ, by the ratio of Student's t to the normal (degrees as Satterthwaite's).
"""

import math
from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from scipy import sparse, special

from evil_jax import stats


class Means:
    """Mean over units of the mean of their ratings, of several groups of units whose pictures and raters may be shared.

    Attributes:
      value: {group: mean}; of exact values it is rounded once, so that equal opinions are equal numbers.
    """

    def __init__(
        self,
        rows: Iterable[tuple[Hashable, Hashable, Hashable, Hashable, float]],
        *,
        resamples: int = 1000,
        seed: int = 0,
    ):
        """Draws the resamples.

        Args:
          rows: (group, unit, picture, rater, value) of each rating; a unit is of one group, and of one picture. Values
            are numbers, fractions among them.
          resamples: 0 = no intervals.
          seed: of the draws.
        """
        *names, values = zip(*rows)
        groups, units, pictures, raters = map(_numbers, names)
        group_K, unit_K = groups[1], units[1]
        self.value = _exact(names[0], unit_K.tolist(), values)
        values = np.array(values, np.float64)
        shares = 1 / np.bincount(unit_K)[unit_K]  # each unit weighs 1
        shape = (len(pictures[0]), len(raters[0]))
        cells = lambda weights, of: sparse.csr_array((weights[of], (pictures[1][of], raters[1][of])), shape)
        self._weights, self._sums = {}, {}
        for number, group in enumerate(groups[0]):
            of = group_K == number
            self._weights[group], self._sums[group] = cells(shares, of), cells(shares * values, of)
        self._draws = self._resample(shape, resamples, seed) if resamples else None

    def _resample(self, shape, resamples, seed):
        generator = np.random.default_rng(seed)
        draw = lambda n: generator.multinomial(n, np.full(n, 1 / n), size=resamples).T.astype(np.float64)
        pictures_PB, raters_RB = draw(shape[0]), draw(shape[1])
        drawn = lambda cells: ((cells.T @ pictures_PB) * raters_RB).sum(0)
        with np.errstate(invalid='ignore'):
            return {group: drawn(self._sums[group]) / drawn(self._weights[group]) for group in self.value}

    def of(self, combination: Mapping[Hashable, float]) -> float:
        """A sum of means, each times its factor."""
        return sum(factor * self.value[group] for group, factor in combination.items())

    def interval(self, combination: Mapping[Hashable, float], low: float = 0, high: float = 1) -> list[float] | None:
        """95 % interval of `of`, within what is possible; None without resamples, and where all is of one picture."""
        if self._draws is None or len({p for group in combination for p in self._weights[group].nonzero()[0]}) < 2:
            return None
        value = self.of(combination)
        off = sum(factor * self._draws[group] for group, factor in combination.items()) - value
        off = off[~np.isnan(off)]
        spread = off.std() if off.size else 0
        variance, freedom = self._variance(combination)
        longer = special.stdtrit(freedom, 0.975) / special.ndtri(0.975) if freedom < math.inf else 1
        scale = math.sqrt(variance) * longer / spread if spread > 1e-12 else 1
        ends = stats.interval(scale * off)
        if ends is None:
            return None
        # Of very few pictures all resamples may lie on one side.
        ends = min(ends[0], 0.0), max(ends[1], 0.0)
        return [min(max(value + end, low), high) for end in ends]

    def _variance(self, combination):
        total = 0
        for group, factor in combination.items():
            weights = self._weights[group]
            total = total + (self._sums[group] - self.value[group] * weights) * (factor / weights.sum())
        pictures, of_pictures = _variance(total.sum(1))
        raters, of_raters = _variance(total.sum(0))
        more = max(raters - _variance(total.data)[0], 0)  # of raters beyond that of single ratings
        variance = max(pictures + more, raters)
        spread = pictures**2 / max(of_pictures, 1) + more**2 / max(of_raters, 1)
        return variance, (pictures + more) ** 2 / spread if spread else math.inf


def _variance(parts):
    """(variance, degrees of freedom) of the sum of independent parts whose mean is 0."""
    n = np.count_nonzero(parts)
    return (float((np.asarray(parts) ** 2).sum()) * n / (n - 1) if n > 1 else 0.0), n - 1


def _exact(groups, units, values):
    """{group: mean of its units' means}."""
    of: dict[Hashable, dict[int, list]] = {}
    for group, unit, value in zip(groups, units, values):
        of.setdefault(group, {}).setdefault(unit, []).append(value)
    return {group: float(sum(sum(v) / len(v) for v in some.values()) / len(some)) for group, some in of.items()}


def _numbers(column):
    """(different keys in order, number of each row's key)."""
    number = {key: i for i, key in enumerate(dict.fromkeys(column))}
    return list(number), np.array([number[key] for key in column])
