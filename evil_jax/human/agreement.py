"""How well annotators agree with each other: chance-corrected coefficients for any number of raters, ratings missing.

A unit is what was rated: a sequence of ratings, one for each annotator who rated it; None and NaN are missing ratings.
Who gave a rating does not matter. All coefficients are (observed - expected) / (1 - expected) with weights w(c, k) in
[0, 1] that say how much two ratings agree; they differ in what they expect:

* Krippendorff's alpha (Krippendorff, 2011): the pairs that all pairable ratings would form, without replacement. Units
  with a single rating are left out altogether, also from the expectation.
* Fleiss' kappa, generalised: two draws from the shares of the categories, sum w(c, k) p(c) p(k).
* Gwet's AC1 (identity weights) and AC2: sum w / (q (q - 1)) * sum p(c) (1 - p(c)).
* Brennan and Prediger: every category alike, sum w / q^2. The last two depend on the number of categories q, so give
  the whole scale, not only what was observed. In these three, single ratings count for the shares p, not for agreement.

Weights: `identity`; `quadratic`, 1 - ((c - k) / range)^2; `ordinal`, 1 - M(c, k) / M(worst, best), where M counts the
pairs of categories between c and k, both included (Gwet, 2014, chapter 3).

There are *two ordinal alphas*, and tools give either under the one name. `krippendorff_ordinal` has Krippendorff's own
metric: the distance of two categories is the square of the number of ratings that were given between their middles, so
it depends on the data (the package krippendorff). `krippendorff_ordinal_weights` has the fixed weights above (irrCAC).
Alpha with quadratic weights is `krippendorff_interval`, with identity weights `krippendorff_nominal`.

Standard errors are Gwet's linearised ones over units (2014, chapter 5), p is two-sided on t with units - 1 degrees of
freedom. Where weights depend on the data there are none, but a bootstrap interval. In Python, irrCAC 0.4.4 gives a
one-sided p for Brennan-Prediger, and, where units differ in their number of ratings, another error of alpha than the
original in R, which is the one here.
"""

import dataclasses
import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from scipy import stats as scipy_stats

from evil_jax import lookup, stats

OWN = 'own'  # Krippendorff's ordinal metric
# name -> (coefficient, weights)
COEFFICIENTS = {
    'krippendorff_nominal': ('krippendorff', 'identity'),
    'krippendorff_ordinal': ('krippendorff', OWN),
    'krippendorff_ordinal_weights': ('krippendorff', 'ordinal'),
    'krippendorff_interval': ('krippendorff', 'quadratic'),
    'fleiss': ('fleiss', 'identity'),
    'fleiss_ordinal': ('fleiss', 'ordinal'),
    'fleiss_quadratic': ('fleiss', 'quadratic'),
    'gwet_ac1': ('gwet', 'identity'),
    'gwet_ac2_ordinal': ('gwet', 'ordinal'),
    'gwet_ac2_quadratic': ('gwet', 'quadratic'),
    'brennan_prediger': ('brennan_prediger', 'identity'),
    'brennan_prediger_ordinal': ('brennan_prediger', 'ordinal'),
    'brennan_prediger_quadratic': ('brennan_prediger', 'quadratic'),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Agreement:
    """One coefficient.

    Attributes:
      name: one of `COEFFICIENTS`.
      value: at most 1; 0 is chance. None where it is undefined, and `reason` says why.
      se, p: standard error and two-sided p of "no better than chance"; None where there is none.
      ci95: bootstrap over units, where asked for.
      units: those with two ratings or more.
      ratings: in them.
      single: units with one rating.
      reason: why there is no value.
    """

    name: str
    value: float | None
    se: float | None = None
    p: float | None = None
    ci95: tuple[float, float] | None = None
    units: int = 0
    ratings: int = 0
    single: int = 0
    reason: str | None = None

    def to_json(self) -> dict:
        row = dataclasses.asdict(self)
        if self.ci95 is not None:
            row['ci95'] = list(self.ci95)
        return {k: v for k, v in row.items() if v is not None or k == 'value'}


def table(
    units: Iterable[Sequence[float | None]],
    categories: Sequence[float] | None = None,
    *,
    names: Sequence[str] = tuple(COEFFICIENTS),
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 0,
    seed: int = 0,
) -> list[Agreement]:
    """The named coefficients of the same ratings.

    Args:
      units: ratings of each unit.
      categories: all values of the scale. None: those that occur, which flatters nobody but depends on the sample.
      names: keys of `COEFFICIENTS`.
      clusters: one key a unit (the picture): drawn as a whole in the bootstrap.
      resamples: of the bootstrap; 0 = no intervals.
      seed: of the bootstrap.

    Raises:
      ValueError: a rating outside the categories, an unknown name, or not one key a unit.
    """
    counts_UQ, values = count(units, categories)
    if clusters is not None and len(clusters) != len(counts_UQ):
        raise ValueError(f'{len(clusters)} cluster keys for {len(counts_UQ)} units')
    found = [_coefficient(name, counts_UQ, values) for name in names]
    return _with_intervals(found, counts_UQ, values, clusters, resamples, seed) if resamples else found


def count(units, categories=None) -> tuple[np.ndarray, np.ndarray]:
    """(how often each unit was given each category [units, q], the categories in order [q])."""
    rows = [[float(r) for r in unit if r is not None and not math.isnan(r)] for unit in units]
    observed = {r for row in rows for r in row}
    values = np.array(sorted(observed if categories is None else set(map(float, categories))))
    place = {value: i for i, value in enumerate(values.tolist())}
    if strange := sorted(observed - set(place)):
        raise ValueError(f'rating {strange[0]:g} is not on the scale {", ".join(f"{v:g}" for v in place)}')
    counts = np.zeros((len(rows), len(values)))
    for row, ratings in zip(counts, rows):
        for rating in ratings:
            row[place[rating]] += 1
    return counts, values


def weights(kind: str, values: np.ndarray) -> np.ndarray:
    """Agreement of two categories, [q, q]; 1 on the diagonal."""
    return lookup.entry(_WEIGHTS, kind, 'weights')(np.asarray(values, np.float64))


def _identity(values):
    return np.eye(len(values))


def _quadratic(values):
    return 1 - ((values[:, None] - values) / max(np.ptp(values), 1e-300)) ** 2


def _ordinal(values):
    steps = np.abs(np.arange(len(values))[:, None] - np.arange(len(values))) + 1
    pairs = steps * (steps - 1) / 2
    return 1 - pairs / max(pairs.max(), 1)


_WEIGHTS = {'identity': _identity, 'ordinal': _ordinal, 'quadratic': _quadratic}


def _own(shares):
    """Krippendorff's ordinal metric as weights, from (multiples of) the numbers of ratings [..., q] by category."""
    upto = np.cumsum(shares, -1) - shares / 2  # up to the middle of a category
    distance = (upto[..., :, None] - upto[..., None, :]) ** 2
    most = distance.max((-1, -2), keepdims=True)
    return 1 - distance / np.where(most > 0, most, 1)


def _coefficient(name, counts_UQ, values):
    lookup.entry(COEFFICIENTS, name, 'coefficient')
    raters = counts_UQ.sum(1)
    several = raters >= 2
    about = dict(
        name=name, units=int(several.sum()), ratings=int(raters[several].sum()), single=int((raters == 1).sum())
    )
    if about['units'] < 2:
        return Agreement(**about, value=None, reason=f'{about["units"]} units with two ratings or more, wanted 2')
    kind, weights_QQ = _how(name, values)
    counts_UQ = counts_UQ[_used(kind, raters)]
    one = np.ones((1, len(counts_UQ)))
    value = float(_values(kind, counts_UQ, weights_QQ, one)[0])
    if math.isnan(value):
        # Only then is chance agreement perfect.
        return Agreement(**about, value=None, reason='all ratings are equal, and so they would be by chance')
    se = None if weights_QQ is None else _error(kind, counts_UQ, weights_QQ)
    p = float(2 * scipy_stats.t.sf(abs(value) / se, len(counts_UQ) - 1)) if se else None
    return Agreement(**about, value=value, se=se, p=p)


def _how(name, values):
    kind, weighting = lookup.entry(COEFFICIENTS, name, 'coefficient')
    return kind, None if weighting == OWN else weights(weighting, values)


def _used(kind, raters):
    return raters >= 2 if kind == 'krippendorff' else raters > 0


def _with_intervals(found, counts_UQ, values, clusters, resamples, seed):
    """Bootstrap intervals of those that have a value; coefficients of the same units share their draws."""
    raters = counts_UQ.sum(1)
    alike: dict[bytes, list[Agreement]] = {}
    for row in found:
        if row.value is not None:
            alike.setdefault(_used(_how(row.name, values)[0], raters).tobytes(), []).append(row)
    intervals = {}
    for mask, rows in alike.items():
        used = np.frombuffer(mask, bool)
        keys = None if clusters is None else [key for key, keep in zip(clusters, used) if keep]
        samples: dict[str, list[np.ndarray]] = {row.name: [] for row in rows}
        for draws_BU in stats.resample(int(used.sum()), resamples, seed, keys):
            for name, some in samples.items():
                kind, weights_QQ = _how(name, values)
                some.append(_values(kind, counts_UQ[used], weights_QQ, draws_BU))
        intervals |= {name: stats.interval(np.concatenate(some)) for name, some in samples.items()}
    return [dataclasses.replace(row, ci95=intervals.get(row.name)) for row in found]


def _values(kind, counts_UQ, weights_QQ, draws_BU):
    """The coefficient in each resample [b]; a row of `draws_BU` says how often each unit is in it."""
    raters = counts_UQ.sum(1)
    q = counts_UQ.shape[1]
    # Pairs of ratings of one unit, each unit worth its raters (alpha) or worth 1: [u, q, q].
    pairs = counts_UQ[:, :, None] * counts_UQ[:, None, :]
    pairs[:, range(q), range(q)] -= counts_UQ
    each = np.maximum(raters - 1, 1) if kind == 'krippendorff' else np.maximum(raters * (raters - 1), 1)
    observed_BQQ = (draws_BU @ (pairs / each[:, None, None]).reshape(len(pairs), -1)).reshape(-1, q, q)
    total = observed_BQQ.sum((-1, -2))
    if kind == 'krippendorff':
        numbers = draws_BU @ counts_UQ
        weights_QQ = _own(numbers) if weights_QQ is None else weights_QQ
        n = numbers.sum(1)
        apart = numbers[:, :, None] * numbers[:, None, :]
        apart[:, range(q), range(q)] -= numbers
        expected = (apart * weights_QQ).sum((-1, -2)) / (n * (n - 1))
    else:
        shares = draws_BU @ (counts_UQ / raters[:, None]) / draws_BU.sum(1, keepdims=True)
        expected = _expected(kind, shares, weights_QQ)
    agreed = (observed_BQQ * weights_QQ).sum((-1, -2)) / np.where(total > 0, total, np.nan)
    below = 1 - expected
    return (agreed - expected) / np.where(below > 1e-12, below, np.nan)


def _expected(kind, shares, weights_QQ):
    q = len(weights_QQ)
    if kind == 'fleiss':
        return ((shares @ weights_QQ) * shares).sum(-1)
    if kind == 'gwet':
        # With one category everything agrees by chance as well.
        return weights_QQ.sum() / (q * (q - 1)) * (shares * (1 - shares)).sum(-1) if q > 1 else np.ones(len(shares))
    return np.full(len(shares), weights_QQ.sum() / q**2)


def _error(kind, counts_UQ, weights_QQ):
    """Standard error over units: the spread of each unit's linear share in the coefficient (Gwet, 2014, chapter 5)."""
    raters = counts_UQ.sum(1)
    n, q = counts_UQ.shape
    agreeing = (counts_UQ * (counts_UQ @ weights_QQ - 1)).sum(1)
    if kind == 'krippendorff':
        mean = raters.mean()
        relative = (raters - mean) / mean
        observed = agreeing / (mean * (raters - 1))
        agreed = observed.mean()
        shares = (counts_UQ / mean).mean(0)
        expected = shares @ weights_QQ @ shares
        value = (agreed - expected) / (1 - expected)
        by_unit = (observed - agreed * relative - expected) / (1 - expected)
        chance = counts_UQ @ weights_QQ @ shares / mean - expected * relative
    else:
        several = raters >= 2
        observed = np.where(several, agreeing / np.maximum(raters * (raters - 1), 1), 0)
        shares = (counts_UQ / raters[:, None]).mean(0)
        expected = float(_expected(kind, shares[None], weights_QQ)[0])
        value = (observed.sum() / several.sum() - expected) / (1 - expected)
        by_unit = n / several.sum() * (observed - expected * several) / (1 - expected)
        chance = {
            'fleiss': lambda: counts_UQ @ weights_QQ @ shares / raters,
            'gwet': lambda: weights_QQ.sum() / (q * (q - 1)) * (counts_UQ @ (1 - shares)) / raters,
            'brennan_prediger': lambda: np.full(n, expected),
        }[kind]()
    linear = by_unit - 2 * (1 - value) * (chance - expected) / (1 - expected)
    error = math.sqrt(((linear - value) ** 2).sum() / (n * (n - 1)))
    return error if error > 1e-12 else 0.0  # units that agree alike differ by rounding
