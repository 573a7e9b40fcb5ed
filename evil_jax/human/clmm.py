"""Cumulative link (mixed) models of ordered ratings, by maximum likelihood.

    P(rating <= c) = F(threshold_c - x beta - sum over factors of b_level),   b ~ N(0, sd^2)

with F logistic (`logit`) or normal (`probit`): the signs and names of R's package ordinal (Christensen, 2022), whose
`clm` and `clmm` this reproduces. A positive coefficient means better ratings. Two categories make it a logistic mixed
model (as R's `glmer`) whose intercept is minus the threshold.

Random effects are integrated out by Laplace's approximation, for any number of crossed or nested factors, or by
adaptive Gauss-Hermite quadrature for one. Standard errors come from the Hessian of that marginal likelihood, the
deviations among its parameters. p is two-sided on the normal distribution.

    fit = clmm.fit(ratings, {'system': systems}, {'item': items, 'rater': raters}, levels=study.RATINGS)
    null = clmm.fit(ratings, {}, {'item': items, 'rater': raters}, levels=study.RATINGS)
    chi2, df, p = clmm.likelihood_ratio(fit, null)
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from scipy import stats as scipy_stats

from evil_jax import lookup
from evil_jax.human import _coding
from evil_jax.human._clmm_likelihood import Likelihood
from evil_jax.human._clmm_links import LINKS
from evil_jax.human._clmm_optimum import LEAST, MOST, Search, separated

_MOST_QUADRATURE = 50
_MOST_LEVELS = 8000  # of all factors but the largest: their matrix has 0.5 GB
_QUANTILE = {'logit': scipy_stats.logistic.ppf, 'probit': scipy_stats.norm.ppf}


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model, or why there is none.

    Attributes:
      thresholds: between neighbouring categories, name 'lower|upper' -> value; {} where there is a `reason`, as below.
      coefficients: of the fixed effects, name -> value.
      names: of both, in the order of `cov`.
      cov: covariance of thresholds and coefficients; [0, 0] without a fit.
      se, z, p: by name, of both.
      sd: standard deviation of each random factor, on the scale of the coefficients; 0 at the boundary.
      sd_se: its standard error; None where `sd` is 0.
      modes: factor -> level -> its most likely effect.
      log_likelihood, aic: None without a fit.
      parameters: how many were estimated, deviations included.
      n: ratings.
      counts: category -> its ratings, of all levels that were named.
      link, quadrature: as given.
      notes: what the reader must know of a fit that exists.
      reason: why there is none.
    """

    n: int
    counts: dict[Hashable, int]
    link: str
    quadrature: int
    thresholds: dict[str, float] = dataclasses.field(default_factory=dict)
    coefficients: dict[str, float] = dataclasses.field(default_factory=dict)
    cov: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    sd: dict[str, float] = dataclasses.field(default_factory=dict)
    sd_se: dict[str, float | None] = dataclasses.field(default_factory=dict)
    modes: dict[str, dict[Hashable, float]] = dataclasses.field(default_factory=dict)
    log_likelihood: float | None = None
    parameters: int = 0
    notes: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def converged(self) -> bool:
        return self.reason is None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.thresholds, *self.coefficients)

    @property
    def se(self) -> dict[str, float]:
        return dict(zip(self.names, np.sqrt(np.diag(self.cov)).tolist()))

    @property
    def z(self) -> dict[str, float]:
        values = self.thresholds | self.coefficients
        return {name: values[name] / se for name, se in self.se.items()}

    @property
    def p(self) -> dict[str, float]:
        return {name: float(2 * scipy_stats.norm.sf(abs(z))) for name, z in self.z.items()}

    @property
    def aic(self) -> float | None:
        return None if self.log_likelihood is None else 2 * self.parameters - 2 * self.log_likelihood


def fit(
    ratings: Sequence[Hashable],
    fixed: Mapping[str, Sequence[Hashable]] | tuple[np.ndarray, Sequence[str]] = (),
    random: Mapping[str, Sequence[Hashable]] = (),
    *,
    link: str = 'logit',
    quadrature: int = 1,
    levels: Sequence[Hashable] | None = None,
    fixed_levels: Mapping[str, Sequence[Hashable]] = (),
) -> Fit:
    """Fits a model.

    Args:
      ratings: one a row.
      fixed: factor -> its level in each row, treatment coded (`fixed_levels`): a coefficient is the difference to the
        first level and is named factor + level; or columns [n, p] without the constant, and their names.
      random: factor -> its level in each row.
      link: 'logit' or 'probit'.
      quadrature: nodes of Gauss-Hermite quadrature; 1 is Laplace, and more is for one random factor only.
      levels: the categories, worst first. None: those that occur, sorted.
      fixed_levels: of a fixed factor all levels, the reference first. Default: sorted.

    Returns:
      A `Fit`, with a `reason` instead of numbers where these ratings have no maximum likelihood estimate: one category,
      factors that cannot be told apart or have one level, a column that separates the ratings, random effects that
      explain them fully. A category that does not occur is left out; a note says so.

    Raises:
      ValueError: no ratings; sequences of other lengths; a value outside its levels; columns that are not finite; an
        unknown link; quadrature that cannot be had.
    """
    n = len(ratings)
    if not n:
        raise ValueError('no ratings to fit')
    terms = lookup.entry(LINKS, link, 'link')
    random = dict(random)
    if not 1 <= quadrature <= _MOST_QUADRATURE:
        raise ValueError(f'quadrature is {quadrature}, wanted 1 (Laplace) to {_MOST_QUADRATURE} nodes')
    if quadrature > 1 and len(random) != 1:
        raise ValueError(
            f'quadrature is {quadrature}, but there are {len(random)} random factors; wanted one, or 1 node'
        )
    fixed, x_NP, names = _columns(fixed, dict(fixed_levels), n)
    category_N, counts = _categories(ratings, levels)
    used = [level for level, count in counts.items() if count]
    groupings = [_coding.grouping(name, values, n) for name, values in random.items()]
    about = dict(n=n, counts=counts, link=link, quadrature=quadrature)
    notes = [f'no rating is {level}: fitted without it' for level in counts if level not in used]
    if len(used) < 2:
        return Fit(**about, reason=f'all ratings are {used[0]}: there is nothing to explain')
    if reason := _coding.why_not(fixed, np.column_stack([np.ones(n), x_NP]), groupings):
        return Fit(**about, reason=reason)
    # Columns of mean 0 and variance 1: coefficients of one size, whatever the units are.
    mean, size = x_NP.mean(0), x_NP.std(0)
    x_NP = (x_NP - mean) / size
    if apart := separated(category_N, len(used), x_NP):
        which = ' and '.join(names[i] for i in apart)
        return Fit(**about, reason=f'ratings are separated perfectly by {which}: no finite estimate')
    kept = sorted(groupings, key=lambda grouping: -len(grouping.levels))
    parameters = len(used) - 1 + len(names) + len(kept)
    if (left := sum(len(grouping.levels) for grouping in kept[1:])) > _MOST_LEVELS:
        smaller = ' and '.join(grouping.name for grouping in kept[1:])
        return Fit(**about, reason=f'{smaller} have {left} levels, more than the {_MOST_LEVELS} that fit into memory')
    best, likelihood, varying = _maximum(terms, link, category_N, len(used), x_NP, kept, quadrature)
    sd, sd_se, modes = {}, {}, {}
    for grouping in kept:
        if grouping not in varying:
            sd[grouping.name], sd_se[grouping.name] = 0.0, None
            modes[grouping.name] = dict.fromkeys(grouping.levels, 0.0)
            notes.append(f'{grouping.name} does not vary (sd 0): standard errors are of the model without it')
    steps, cut = len(used) - 1, len(used) - 1 + len(names)
    for grouping, value in zip(varying, best.point[cut:]):
        if value > 0.9 * MOST:
            return Fit(**about, reason=f'{grouping.name} varies without bound: its levels alone explain the ratings')
    if best.reason is not None:
        return Fit(**about, reason=best.reason)
    # Back to columns as they were given: their mean moves the thresholds.
    back = np.eye(len(best.point))
    back[steps:cut, steps:cut] = np.diag(1 / size)
    back[:steps, steps:cut] = mean / size
    values, covariance = back @ best.point, back @ best.covariance @ back.T
    for f, grouping in enumerate(varying):
        sd[grouping.name] = float(values[cut + f])
        sd_se[grouping.name] = float(np.sqrt(covariance[cut + f, cut + f]))
        modes[grouping.name] = dict(zip(grouping.levels, (values[cut + f] * likelihood.mode[f]).tolist()))
    return Fit(
        **about,
        thresholds={f'{a}|{b}': value for a, b, value in zip(used, used[1:], values[:steps].tolist())},
        coefficients=dict(zip(names, values[steps:cut].tolist())),
        cov=covariance[:cut, :cut],
        sd={name: sd[name] for name in random},
        sd_se={name: sd_se[name] for name in random},
        modes={name: modes[name] for name in random},
        log_likelihood=best.value,
        parameters=parameters,
        notes=tuple(notes),
    )


def likelihood_ratio(full: Fit, null: Fit) -> tuple[float, int, float]:
    """(chi2, df, p) of two nested models of the same ratings.

    With a deviation among what the null model lacks, p is conservative: it is at the edge of its range.

    Raises:
      ValueError: a model without a fit, not the same ratings, link or quadrature, or not nested.
    """
    for name, model in (('full', full), ('null', null)):
        if model.reason is not None:
            raise ValueError(f'the {name} model has no fit: {model.reason}')
    for what in ('n', 'counts', 'link', 'quadrature'):
        if getattr(full, what) != getattr(null, what):
            raise ValueError(f'{what} of the full model is {getattr(full, what)}, of the null {getattr(null, what)}')
    df = full.parameters - null.parameters
    chi2 = 2 * (full.log_likelihood - null.log_likelihood)
    if df < 1 or chi2 < -1e-4:
        raise ValueError(
            f'models are not nested: the full one has {df} parameters and {chi2 / 2:.4g} log-likelihood more'
        )
    chi2 = max(chi2, 0.0)
    return chi2, df, float(scipy_stats.chi2.sf(chi2, df))


def _columns(fixed, levels, n):
    """(factor or name -> values, columns without the constant, their names)."""
    if isinstance(fixed, tuple) and fixed:
        matrix, names = np.asarray(fixed[0], np.float64), tuple(fixed[1])
        if matrix.shape != (n, len(names)):
            raise ValueError(f'columns have shape {matrix.shape}, wanted {(n, len(names))}: rows by names')
        if not np.isfinite(matrix).all():
            raise ValueError(
                f'{names[int(np.flatnonzero(~np.isfinite(matrix).all(0))[0])]} has values that are not finite'
            )
        return dict(zip(names, matrix.T.tolist())), matrix, names
    matrix, names = _coding.treatment(dict(fixed), levels, n)
    return dict(fixed), matrix[:, 1:], names[1:]


def _categories(ratings, levels):
    """(number of each rating among the categories that occur, category -> how many)."""
    known = tuple(sorted(set(ratings)) if levels is None else levels)
    counts = dict.fromkeys(known, 0)
    for rating in ratings:
        if rating not in counts:
            raise ValueError(f'rating is {rating!r}, wanted one of {", ".join(map(str, known))}')
        counts[rating] += 1
    place = {level: i for i, level in enumerate(level for level, count in counts.items() if count)}
    return np.fromiter((place[rating] for rating in ratings), np.int64, len(ratings)), counts


def _maximum(terms, link, category_N, categories, x_NP, groupings, quadrature):
    """(the maximum, the likelihood with the modes there, the random factors whose deviation is not 0 there)."""
    shares = np.cumsum(np.bincount(category_N, minlength=categories))[:-1] / len(category_N)
    start = np.concatenate([_QUANTILE[link](shares), np.zeros(x_NP.shape[1])])
    while True:
        likelihood = Likelihood(
            terms,
            category_N,
            categories,
            x_NP,
            [grouping.index for grouping in groupings],
            [len(grouping.levels) for grouping in groupings],
            quadrature if groupings else 1,
        )
        search = Search(likelihood, categories - 1, x_NP.shape[1], len(groupings))
        near = search.approach(np.concatenate([start, np.full(len(groupings), 0.5)]))
        best = None
        if (near[len(start) :] > 2 * LEAST).all():
            best = search.finish(near)
            near = best.point
        varying = [grouping for grouping, value in zip(groupings, near[len(start) :]) if value > 2 * LEAST]
        if len(varying) == len(groupings):
            return best, likelihood, varying
        groupings = varying
