"""Linear mixed models of scores with crossed and nested random effects, as R's lme4 and lmerTest fit them.

score = X beta + the effects of this item, this rater, ... + noise: effects of a factor's levels are independent normal
with a deviation of their own. `fit` maximises the profiled likelihood (`_profile.py`); statsmodels' `MixedLM` gives the
same numbers, but takes crossed factors as one group, with a dense matrix of ratings x ratings.

p-values are of t with Satterthwaite's degrees of freedom (Kuznetsova et al., 2017): 2 v^2 / Var(v) for the variance v
of an estimate, where Var(v) comes from the slopes of v in the deviations and the curvature of the deviance in them.
"""

import dataclasses
import math
import types
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from scipy import stats as scipy_stats

from evil_jax.human import _coding, _profile

RESIDUAL = 'residual'
_FLAT = 1e-6  # deviance that a Newton step may still promise at the maximum


@dataclasses.dataclass(frozen=True)
class Fit:
    """A model, or why there is none.

    Attributes:
      n: scores.
      reml: whether the likelihood is the restricted one.
      coefficients, se, t, df, p: of each fixed effect: '(Intercept)', then factor + level; p is two-sided.
      cov: of the coefficients, in their order [p, p].
      sd: deviation of each random factor's effects, and 'residual'.
      modes: {factor: {level: its most probable effect}}.
      log_likelihood: at the maximum.
      aic: -2 log-likelihood + 2 x number of parameters.
      singular: factors whose deviation is 0: they explain no more than noise would.
      converged: whether the maximum was found.
      reason: why there is no model; then there are no numbers either.
      slopes: of `cov` in each deviation [k, p, p], and `spread`, the covariance of the deviations [k, k].
    """

    n: int
    reml: bool
    coefficients: Mapping[str, float] = dataclasses.field(default_factory=dict)
    se: Mapping[str, float] = dataclasses.field(default_factory=dict)
    t: Mapping[str, float] = dataclasses.field(default_factory=dict)
    df: Mapping[str, float] = dataclasses.field(default_factory=dict)
    p: Mapping[str, float] = dataclasses.field(default_factory=dict)
    cov: np.ndarray | None = None
    sd: Mapping[str, float] = dataclasses.field(default_factory=dict)
    modes: Mapping[str, Mapping[Hashable, float]] = dataclasses.field(default_factory=dict)
    log_likelihood: float | None = None
    aic: float | None = None
    singular: tuple[str, ...] = ()
    converged: bool = False
    reason: str | None = None
    slopes: np.ndarray | None = dataclasses.field(default=None, repr=False)
    spread: np.ndarray | None = dataclasses.field(default=None, repr=False)

    def degrees(self, weights: Sequence[float]) -> float:
        """Satterthwaite's degrees of freedom of a weighted sum of the coefficients."""
        w = np.asarray(weights, np.float64)
        slopes = np.array([w @ slope @ w for slope in self.slopes])
        return float(2 * (w @ self.cov @ w) ** 2 / (slopes @ self.spread @ slopes))


def fit(
    scores: Sequence[float],
    fixed: Mapping[str, Sequence[Hashable]],
    random: Mapping[str, Sequence[Hashable]],
    *,
    fixed_levels: Mapping[str, Sequence[Hashable]] = types.MappingProxyType({}),
    reml: bool = True,
) -> Fit:
    """Fits a model in which each level of each random factor has an intercept.

    Args:
      scores: n numbers.
      fixed: {factor: its level at each score}; {} = the mean alone.
      random: {factor: its level at each score}; {} = a linear model.
      fixed_levels: {fixed factor: its levels}, of which the first is the reference. Others: sorted.
      reml: restricted maximum likelihood; models of different fixed effects are compared without it.

    Returns:
      The fit. Where the scores do not tell (they are equal, a factor has one level, or one for each score, two factors
      split the scores alike, ...), `reason` says so.

    Raises:
      ValueError: lengths differ, a score is not finite, or a level is not among those named.
    """
    y = np.asarray(scores, np.float64)
    n = len(y)
    if not np.isfinite(y).all():
        raise ValueError(f'score {int(np.argmin(np.isfinite(y)))} of {n} is {y[~np.isfinite(y)][0]}, wanted a number')
    groups = [_coding.grouping(name, values, n) for name, values in random.items()]
    x, names = _coding.treatment(fixed, fixed_levels, n)
    number = len(names) + len(groups) + 1
    reason = (
        (f'{n} scores for {number} parameters' if n <= number else None)
        or ('all scores are equal' if np.ptp(y) == 0 else None)
        or _coding.why_not(fixed, x, groups)
    )
    if reason:
        return Fit(n, reml, reason=reason)
    profile = _profile.Profile(y, x, [g.index for g in groups], [len(g.levels) for g in groups], reml)
    theta, promised = _profile.minimum(profile, 1e-10 * ((y - y.mean()) ** 2).sum())
    if theta is None:
        return Fit(n, reml, reason='the model explains every score: no noise is left to compare with')
    point = profile.at(theta)
    sigma = math.sqrt(point.squares / profile.degrees)
    cov = sigma**2 * point.inverse
    slopes, spread = _profile.uncertainty(profile, theta, sigma)
    ends = np.cumsum([len(g.levels) for g in groups])[:-1]
    modes = np.split(profile.modes(theta, point.beta), ends) if groups else []
    found = Fit(
        n,
        reml,
        cov=cov,
        sd={g.name: float(t) * sigma for g, t in zip(groups, theta)} | {RESIDUAL: sigma},
        modes={g.name: dict(zip(g.levels, some.tolist())) for g, some in zip(groups, modes)},
        log_likelihood=-point.deviance / 2,
        aic=point.deviance + 2 * number,
        singular=tuple(g.name for g, t in zip(groups, theta) if t == 0),
        converged=promised < _FLAT,
        slopes=slopes,
        spread=spread,
    )
    errors = np.sqrt(np.diag(cov))
    df = [found.degrees(row) for row in np.eye(len(names))]
    p = 2 * scipy_stats.t.sf(np.abs(point.beta / errors), df)
    named = lambda values: dict(zip(names, map(float, values)))
    return dataclasses.replace(
        found, coefficients=named(point.beta), se=named(errors), t=named(point.beta / errors), df=named(df), p=named(p)
    )


def likelihood_ratio(full: Fit, null: Fit) -> tuple[float, int, float]:
    """(chi2, df, p) of two models of the same scores and random factors, of which one lacks fixed effects.

    Raises:
      ValueError: a model without a fit, a restricted likelihood, other scores, or a null model that lacks none.
    """
    for name, model in (('full', full), ('null', null)):
        if model.reason is not None:
            raise ValueError(f'the {name} model has no fit: {model.reason}')
        if model.reml:
            raise ValueError(f'the {name} model has a restricted likelihood, wanted reml=False: fixed effects differ')
    df = len(full.coefficients) - len(null.coefficients)
    if df < 1 or full.n != null.n or set(full.sd) != set(null.sd):
        raise ValueError(
            f'models are not nested: {full.n} and {null.n} scores, {len(full.coefficients)} and '
            f'{len(null.coefficients)} coefficients, random {", ".join(full.sd)} and {", ".join(null.sd)}'
        )
    chi2 = max(2 * (full.log_likelihood - null.log_likelihood), 0.0)
    return chi2, df, float(scipy_stats.chi2.sf(chi2, df))
