"""How well metrics agree with people: rank correlations over explanations (the paper's Table 6).

Spearman's rho, Kendall's tau-b and Pearson's r equal R's `cor.test(exact = FALSE)`, values and two-sided p. People's
side are the exact means of `ratings.Item`, so that ties are ties.

Two 95 % intervals for rho: `ci95` is a percentile bootstrap in which whole pictures are drawn (explanations of several
systems for one picture, or about one picture, are not independent), ranks recomputed in each resample; `ci95_z` is
Fisher's z with the variance (1 + rho^2 / 2) / (n - 3) (Bonett and Wright, 2000), for independent items. P-values also
take items for independent, and are raw: no correction for the number of metrics.
"""

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from scipy import stats as scipy_stats

from evil_jax import stats
from evil_jax.human.ratings import Item

POOLED = 'all'
_LEVEL = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Correlation:
    """Three correlations of two lists of numbers, with two-sided p-values; None where undefined, with a reason."""

    n: int
    rho: float | None = None
    rho_p: float | None = None
    tau: float | None = None
    tau_p: float | None = None
    pearson: float | None = None
    pearson_p: float | None = None
    reason: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One metric on one data set (or on all, pooled) against people.

    Attributes:
      dataset: its name; 'all': every item of every data set in one ranking.
      metric: its name.
      n: explanations with a human score and a finite value.
      left_out: rated explanations without such a value.
      rho, p: Spearman's, two-sided.
      ci95: bootstrap over pictures; None if not asked for.
      ci95_z: analytic.
      tau, tau_p: Kendall's tau-b.
      pearson, pearson_p: Pearson's r.
      reason: why there is no number.
    """

    dataset: str
    metric: str
    n: int
    left_out: int
    rho: float | None
    p: float | None
    ci95: tuple[float, float] | None
    ci95_z: tuple[float, float] | None
    tau: float | None
    tau_p: float | None
    pearson: float | None
    pearson_p: float | None
    reason: str | None

    def to_json(self) -> dict:
        row = {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}
        return {k: v for k, v in row.items() if v is not None or k == 'rho'}


def correlate(values: Sequence[float], human: Sequence[float]) -> Correlation:
    """Correlations of two lists of n finite numbers.

    Raises:
      ValueError: lists of different lengths, or numbers that are not finite.
    """
    x, y = np.asarray([float(v) for v in values]), np.asarray([float(v) for v in human])
    if x.shape != y.shape:
        raise ValueError(f'{len(x)} values for {len(y)} human scores')
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError('correlation of numbers that are not finite: leave them out')
    n = len(x)
    if n < 3:
        return Correlation(n, reason=f'{n} items with both numbers, wanted 3 or more')
    for side, numbers in (('the metric', x), ('the human score', y)):
        if (numbers == numbers[0]).all():
            return Correlation(n, reason=f'{side} is the same for all {n} items')
    ranks = [scipy_stats.rankdata(numbers) for numbers in (x, y)]
    rho, pearson = _pearson(*ranks), _pearson(x, y)
    tau = scipy_stats.kendalltau(x, y, method='asymptotic')
    return Correlation(
        n, rho, _p_of_t(rho, n), float(tau.statistic), float(tau.pvalue), pearson, _p_of_t(pearson, n)
    )  # fmt: skip


def interval_z(r: float, n: int, kind: str = 'spearman', level: float = _LEVEL) -> tuple[float, float] | None:
    """Analytic interval of a correlation by Fisher's z, for independent items; None for too few.

    Variances of z: Pearson 1 / (n - 3); Spearman (1 + r^2 / 2) / (n - 3), Kendall .437 / (n - 4) (Bonett, Wright 2000;
    Fieller, Hartley, Pearson 1957).
    """
    fewer, share = {'pearson': (3, 1.0), 'spearman': (3, 1 + r * r / 2), 'kendall': (4, 0.437)}[kind]
    if n <= fewer:
        return None
    if abs(r) >= 1:
        return (math.copysign(1.0, r),) * 2
    half = scipy_stats.norm.ppf((1 + level) / 2) * math.sqrt(share / (n - fewer))
    return float(math.tanh(math.atanh(r) - half)), float(math.tanh(math.atanh(r) + half))


def table(
    metrics: Mapping[str, Mapping[str, float | None]],
    human: Sequence[Item],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Row]:
    """Every metric against people, by data set and, if there are several, pooled under the name 'all'.

    Args:
      metrics: {metric: {`Item.key`: value}}; None, NaN and missing values are left out and counted.
      human: rated explanations; those of gold are not used.
      resamples: of the bootstrap; 0 = no such intervals.
      seed: of the bootstrap. All metrics with the same items see the same draws.

    Returns:
      Rows, all data sets of a metric before the next metric.
    """
    items = sorted((i for i in human if not i.gold), key=lambda i: (i.dataset, i.system, i.item))
    groups = {name: [i for i in items if i.dataset == name] for name in dict.fromkeys(i.dataset for i in items)}
    if len(groups) > 1:
        groups[_pooled_name(groups)] = items
    rows = {}
    for dataset, members in groups.items():
        kept = {name: [i for i in members if _finite(values.get(i.key))] for name, values in metrics.items()}
        found = {n: correlate([metrics[n][i.key] for i in its], [i.mean for i in its]) for n, its in kept.items()}
        intervals = _bootstrap(metrics, kept, found, resamples, seed)
        for name, c in found.items():
            rows[name, dataset] = Row(
                dataset=dataset, metric=name, n=c.n, left_out=len(members) - c.n, rho=c.rho, p=c.rho_p,
                ci95=intervals.get(name), ci95_z=None if c.rho is None else interval_z(c.rho, c.n),
                tau=c.tau, tau_p=c.tau_p, pearson=c.pearson, pearson_p=c.pearson_p, reason=c.reason,
            )  # fmt: skip
    return [rows[name, dataset] for name in metrics for dataset in groups]


def spearman_samples(
    values: Sequence[Sequence[float]],
    human: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> np.ndarray:
    """Bootstrap distribution of Spearman's rho of M lists of n values against the same n human scores, [M, resamples].

    Ranks are those within each resample, where an item drawn twice ties with itself. NaN where one side is constant.
    """
    values, human = np.asarray(values, np.float64), np.asarray([float(v) for v in human])
    chunks = []
    for counts in stats.resample(len(human), resamples, seed, clusters):
        ranks = _centred_ranks(human, counts)
        norm = (counts * ranks**2).sum(1)
        chunk = np.full((len(values), len(counts)), np.nan)
        for row, one in zip(chunk, values):
            others = _centred_ranks(one, counts)
            product = np.sqrt(norm * (counts * others**2).sum(1))
            np.divide((counts * ranks * others).sum(1), product, out=row, where=product > 1e-9)
        chunks.append(chunk)
    return np.concatenate(chunks, 1)


def _centred_ranks(values, counts):
    """Mean ranks, less their mean, of n values of which each stands `counts` [b, n] times in a sample: [b, n]."""
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind='stable')
    starts = np.searchsorted(place[order], np.arange(len(distinct)))
    weight = np.add.reduceat(counts[:, order], starts, axis=1)
    ranks = np.cumsum(weight, 1) - weight / 2  # less one half, as is the mean rank
    return (ranks - weight.sum(1, keepdims=True) / 2)[:, place]


def _bootstrap(metrics, kept, found, resamples, seed):
    """{metric: interval}. Metrics that have the same items are drawn together."""
    together: dict[tuple[str, ...], list[str]] = {}
    for name, items in kept.items():
        if resamples and found[name].rho is not None:
            together.setdefault(tuple(i.key for i in items), []).append(name)
    intervals = {}
    for keys, names in together.items():
        items = kept[names[0]]
        samples = spearman_samples(
            [[metrics[name][key] for key in keys] for name in names],
            [i.mean for i in items],
            clusters=[(i.dataset, i.image or i.item) for i in items],
            resamples=resamples,
            seed=seed,
        )
        intervals |= {name: stats.interval(row, _LEVEL) for name, row in zip(names, samples)}
    return intervals


def _pooled_name(groups):
    if POOLED in groups:
        raise ValueError(f'a data set is named {POOLED!r}, which is the name of all data sets together: rename it')
    return POOLED


def _finite(value):
    return value is not None and math.isfinite(value)


def _pearson(x, y):
    """Pearson's r, kept within [-1, 1]. Scaled first, so that squares neither overflow nor vanish."""
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    return float(np.clip((x @ y) / math.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def _p_of_t(r, n):
    if abs(r) == 1:
        return 0.0
    return float(2 * scipy_stats.t.sf(abs(r) * math.sqrt((n - 2) / ((1 - r) * (1 + r))), n - 2))
