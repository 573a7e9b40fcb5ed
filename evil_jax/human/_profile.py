"""The likelihood of a linear mixed model as a function of its random effects' relative deviations (Bates et al., 2015).

y = X beta + Z Lambda u + e, with u and e independent normal of variance s^2, Z the indicators of all levels of all
factors side by side, and Lambda diagonal: a factor's theta at each of its levels. For given theta, beta and s^2 have a
closed form, and what is left (section 3.4 there) needs only products of X, y and Z, which are formed once:

    A = Lambda Z'Z Lambda + 1,   S = [X y]'[X y] - (Lambda Z'[X y])' A^-1 (Lambda Z'[X y])

The last corner of S, less what beta explains, is the penalised sum of squares r^2. Deviance, with m = n (ML) or n - p:

    log|A| + (log|S_XX| if REML) + m (1 + log(2 pi r^2 / m))

A is sparse, and its factorisation stays so: items with few ratings are eliminated first.
"""

import dataclasses

import numpy as np
from scipy import linalg, optimize, sparse
from scipy.sparse import linalg as sparse_linalg

_STEP = 1e-3  # of differences in theta
_POLISH = 3  # Newton steps at the end
_MOST = 1e3  # theta of effects beside which there is no noise
_SAME = 1e-7  # deviances this near are the same


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """What the model is at one theta.

    Attributes:
      deviance: -2 log-likelihood at the best beta and s^2.
      log_det: the terms of it that do not depend on s^2.
      squares: r^2.
      beta: fixed effects [p].
      inverse: (S_XX)^-1 [p, p]; times s^2 it is the covariance of beta.
    """

    deviance: float
    log_det: float
    squares: float
    beta: np.ndarray
    inverse: np.ndarray


class Profile:
    """Sums over the ratings, from which `at` evaluates any theta.

    Args:
      y_N: scores.
      x_NP: columns of the fixed effects, independent.
      index_FN: for each random factor the level numbers of the ratings.
      sizes: number of levels of each factor.
      reml: restricted likelihood.
    """

    def __init__(self, y_N, x_NP, index_FN, sizes, reml):
        n = len(y_N)
        both_NB = np.column_stack([x_NP, y_N])
        parts = [
            sparse.csr_array((np.ones(n), (np.arange(n), index)), shape=(n, size))
            for index, size in zip(index_FN, sizes)
        ]
        z = sparse.hstack([*parts, sparse.csr_array((n, 0))], format='csr')
        self.owner = np.repeat(np.arange(len(sizes)), sizes)  # the factor of each level
        self.zz, self.z_both, self.both_both = (z.T @ z).tocsc(), z.T @ both_NB, both_NB.T @ both_NB
        # Each level has ratings, so the diagonal is there, and A has the places of Z'Z whatever theta is.
        self.zz.sort_indices()
        self.columns = np.repeat(np.arange(len(self.owner)), np.diff(self.zz.indptr))
        self.diagonal = np.flatnonzero(self.zz.indices == self.columns)
        self.factors, self.p, self.reml = len(sizes), x_NP.shape[1], reml
        self.degrees = n - self.p if reml else n

    def at(self, theta) -> Point:
        """Raises numpy's LinAlgError where the fixed effects cannot be told from each other."""
        s, log_det = self.both_both, 0.0
        if len(self.owner):
            solve, log_det = self._factor(theta)
            scaled = self.scale(theta)[:, None] * self.z_both
            s = s - scaled.T @ solve(scaled)
        p = self.p
        factor = linalg.cho_factor(s[:p, :p], lower=True)
        beta = linalg.cho_solve(factor, s[:p, p])
        squares = float(s[p, p] - s[:p, p] @ beta)
        if self.reml:
            log_det += 2 * np.log(np.diag(factor[0])).sum()
        # Rounding alone is left of scores that the model explains wholly.
        squares = max(squares, 1e-300)
        deviance = log_det + self.degrees * (1 + np.log(2 * np.pi * squares / self.degrees))
        return Point(float(deviance), float(log_det), squares, beta, linalg.cho_solve(factor, np.eye(p)))

    def modes(self, theta, beta) -> np.ndarray:
        """Most probable random effects, of all levels of all factors."""
        solve, _ = self._factor(theta)
        scale = self.scale(theta)
        return scale * solve(scale * (self.z_both[:, -1] - self.z_both[:, :-1] @ beta))

    def scale(self, theta) -> np.ndarray:
        """Lambda's diagonal."""
        return np.asarray(theta, np.float64)[self.owner]

    def _factor(self, theta):
        scale = self.scale(theta)
        values = self.zz.data * scale[self.zz.indices] * scale[self.columns]
        values[self.diagonal] += 1
        a = sparse.csc_array((values, self.zz.indices, self.zz.indptr), self.zz.shape)
        lu = sparse_linalg.splu(a, permc_spec='MMD_AT_PLUS_A', diag_pivot_thresh=0.0, options={'SymmetricMode': True})
        return lu.solve, float(np.log(np.abs(lu.U.diagonal())).sum())


def minimum(profile: Profile, noise: float) -> tuple[np.ndarray | None, float]:
    """Where the deviance is least.

    The deviance is an even function of each theta, so that 0 is no border.

    Args:
      profile: of the model.
      noise: sums of squares below this are rounding.

    Returns:
      (theta [k], not negative, or None where no noise is left; the deviance that a Newton step would still gain).
    """
    deviance = lambda theta: profile.at(theta).deviance
    theta = np.ones(profile.factors)
    if profile.factors:
        slope = lambda at: _slope(deviance, at)
        # Not bounded by 0: every slope is 0 there, and a search that touched it would stay.
        bounds = [(-_MOST, _MOST)] * len(theta)
        options = {'gtol': 1e-4, 'ftol': 1e-13}
        theta = np.abs(
            optimize.minimize(deviance, theta, jac=slope, method='L-BFGS-B', bounds=bounds, options=options).x
        )
    if (theta > 0.9 * _MOST).any() or profile.at(theta).squares < noise:
        return None, 0.0
    for _ in range(_POLISH):
        slope, curvature = _slope(deviance, theta), _curvature(deviance, theta)
        step = np.linalg.lstsq(curvature, slope)[0]
        if deviance(np.abs(theta - step)) >= deviance(theta):
            break
        theta = np.abs(theta - step)
    for i in range(len(theta)):
        none = np.where(np.arange(len(theta)) == i, 0.0, theta)
        if deviance(none) <= deviance(theta) + _SAME:
            theta = none
    slope, curvature = _slope(deviance, theta), _curvature(deviance, theta)
    return theta, float(np.abs(slope @ np.linalg.lstsq(curvature, slope)[0]))


def uncertainty(profile: Profile, theta, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """What Satterthwaite's degrees of freedom are made of, as lmerTest does it.

    Returns:
      (slopes of beta's covariance in each theta and in s [k + 1, p, p]; the covariance of theta and s [k + 1, k + 1],
      twice the inverse curvature of the deviance that is not profiled over s, in directions where it is curved).
    """
    k = profile.factors
    covariance = lambda theta: sigma**2 * profile.at(theta).inverse
    squares = lambda theta: profile.at(theta).squares

    def deviance(theta):
        point = profile.at(theta)
        return point.log_det + point.squares / sigma**2

    curvature = np.zeros((k + 1, k + 1))
    curvature[:k, :k] = _curvature(deviance, theta)
    curvature[k, :k] = curvature[:k, k] = -2 / sigma**3 * _slope(squares, theta)
    curvature[k, k] = 4 * profile.degrees / sigma**2
    values, vectors = np.linalg.eigh(curvature)
    kept = values > 1e-8 * values.max()
    spread = 2 * (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    slopes = [*_slope(covariance, theta), 2 * covariance(theta) / sigma]
    return np.array(slopes), spread


def _slope(function, theta):
    """Central differences, [k, ...]."""
    steps = np.diag(_step(theta))
    return np.array([(function(theta + h) - function(theta - h)) / (2 * h.max()) for h in steps])


def _curvature(function, theta):
    """Second differences [k, k]."""
    steps, middle = np.diag(_step(theta)), function(theta)
    found = np.zeros((len(theta), len(theta)))
    for i, a in enumerate(steps):
        found[i, i] = (function(theta + a) - 2 * middle + function(theta - a)) / a.max() ** 2
        for j, b in enumerate(steps[:i]):
            corners = function(theta + a + b) - function(theta + a - b) - function(theta - a + b)
            found[i, j] = found[j, i] = (corners + function(theta - a - b)) / (4 * a.max() * b.max())
    return found


def _step(theta):
    return _STEP * np.maximum(1, np.abs(theta))
