"""Scores that are functions of sums over examples, with bootstrap intervals. Numpy only.

Legend: B resamples, N examples.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from evil_jax import stats


def estimates(
    statistic: Callable[[np.ndarray], Mapping[str, np.ndarray]],
    n: int,
    *,
    images: Sequence[Hashable] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, dict]:
    """Every score of all examples, and its percentile interval; all of them share their resamples.

    Args:
      statistic: from how often each example was drawn, counts_BN, to named values B; NaN where one is undefined.
      n: number of examples.
      images: of each example, what is drawn as a whole (its picture or text). None: examples are drawn.
      resamples: 0 = no intervals. One picture has none either: drawn again it is itself.

    Returns:
      name -> {'value', 'ci95', 'n'}, as `curves.estimate` has them; value is None where it is undefined.

    Raises:
      ValueError: no examples, or not one picture an example.
    """
    if (n if images is None else len(set(images))) == 1:
        resamples = 0
    drawn = [statistic(counts) for counts in stats.resample(n, resamples, seed, images)]
    found = {}
    for name, (value,) in statistic(np.ones((1, n))).items():
        interval = stats.interval(np.concatenate([part[name] for part in drawn]), level) if drawn else None
        defined = not np.isnan(value)
        found[name] = {'value': float(value) if defined else None, 'ci95': interval and list(interval), 'n': n}
    return found


def mean(counts_BN: np.ndarray, values_N: np.ndarray) -> np.ndarray:
    """Means of the examples of each resample; NaN values do not count, and NaN is the mean of none."""
    counted_N = ~np.isnan(values_N)
    return ratio(counts_BN @ np.where(counted_N, values_N, 0), counts_BN @ counted_N)


def ratio(above, below) -> np.ndarray:
    """above / below, NaN where that is 0 / 0."""
    with np.errstate(invalid='ignore'):
        return np.asarray(above, np.float64) / below
