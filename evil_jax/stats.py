"""Bootstrap intervals, Wilson's interval, the harmonic mean, majorities. Resamples are numpy, seeded, vectorised.

A resample of n examples is a row of counts: how often each example was drawn. A score that depends on sums over
examples is then one matrix product, `counts_BN @ statistics_NK` (B resamples, N examples, K statistics), and scores
that share their examples are resampled jointly by sharing the counts.
"""

import collections
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import numpy as np

_CHUNK = 4_000_000  # counts held at once: 32 MB


def majority(votes: Iterable[Hashable], least: int = 2) -> Hashable | None:
    """What more than half of at least `least` voters say; None where there is no such thing."""
    votes = collections.Counter(votes)
    for value, number in votes.most_common(1):
        if number >= least and 2 * number > votes.total():
            return value
    return None


def harmonic_mean(*parts):
    """Harmonic mean of numbers, or element by element of arrays; 0 where a part is 0, NaN where a part is NaN.

    On numbers it is `statistics.harmonic_mean`, which the published e-ViL scores use.

    Raises:
      ValueError: no part, or a negative one.
    """
    if not parts:
        raise ValueError('harmonic mean of nothing')
    values = np.stack(np.broadcast_arrays(*[np.asarray(p, np.float64) for p in parts]))
    if (values < 0).any():
        raise ValueError(f'harmonic mean of a negative number: {values[values < 0].flat[0]}')
    zero = (values == 0).any(0) & ~np.isnan(values).any(0)
    with np.errstate(divide='ignore'):
        mean = np.where(zero, 0.0, len(parts) / (1 / values).sum(0))
    return float(mean) if mean.ndim == 0 else mean


def resample(
    n: int, resamples: int = 1000, seed: int = 0, clusters: Sequence[Hashable] | None = None
) -> Iterator[np.ndarray]:
    """Yields bootstrap counts in chunks of rows, [b, n] float64, `resamples` rows together.

    Args:
      n: number of examples.
      resamples: number of bootstrap resamples.
      seed: of the generator; the same seed gives the same counts whatever the chunks are.
      clusters: one key per example (the image id): whole clusters are drawn, since examples about one picture are not
        independent. None draws examples.

    Raises:
      ValueError: no examples, or not one key per example.
    """
    if n < 1:
        raise ValueError('bootstrap of no examples')
    member = None
    drawn = n
    if clusters is not None:
        if len(clusters) != n:
            raise ValueError(f'{len(clusters)} cluster keys for {n} examples')
        number = {key: i for i, key in enumerate(dict.fromkeys(clusters))}
        member = np.array([number[key] for key in clusters])
        drawn = len(number)
    generator = np.random.default_rng(seed)
    chunk = max(1, _CHUNK // n)
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        draws = generator.integers(drawn, size=(rows, drawn)) + drawn * np.arange(rows)[:, None]
        counts = np.bincount(draws.ravel(), minlength=rows * drawn).reshape(rows, drawn)
        yield (counts if member is None else counts[:, member]).astype(np.float64)


def interval(samples, level: float = 0.95) -> tuple[float, float] | None:
    """Percentile interval of bootstrap values. NaN (undefined in a resample) is left out; None if nothing remains."""
    samples = np.asarray(samples, np.float64)
    samples = samples[~np.isnan(samples)]
    if not samples.size:
        return None
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray], n: int, *, level=0.95, **options):
    """Interval of any statistic of the counts: `statistic(counts_BN) -> values_B`. Options are those of `resample`."""
    return interval(np.concatenate([np.asarray(statistic(w)) for w in resample(n, **options)]), level)


def mean_interval(values, **options) -> tuple[float, float] | None:
    """Bootstrap interval of a mean of per-example values."""
    values = np.asarray(values, np.float64)
    return bootstrap(lambda counts: counts @ values / counts.sum(1), len(values), **options)


def wilson(k, n, level: float = 0.95):
    """Wilson's (1927) score interval of a proportion; (0, 1) of no trials.

    Args:
      k: successes, 0..n.
      n: trials, or effective trials with k scaled alike.
      level: of confidence.

    Returns:
      (low, high), each of the shape of k and n.
    """
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    z = statistics.NormalDist().inv_cdf((1 + level) / 2)
    some = np.where(n > 0, n, 1.0)
    p = k / some
    centre = (p + z**2 / (2 * some)) / (1 + z**2 / some)
    half = z * np.sqrt(p * (1 - p) / some + z**2 / (4 * some**2)) / (1 + z**2 / some)
    low = np.where(n > 0, np.clip(centre - half, 0, p), 0.0)
    high = np.where(n > 0, np.clip(centre + half, p, 1), 1.0)
    return low[()], high[()]
