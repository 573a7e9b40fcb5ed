"""The maximum of a cumulative link mixed model's likelihood, and its curvature there.

Parameters are thresholds, coefficients, deviations, one after another. A quasi-Newton search comes near (with rising
thresholds kept rising by the logarithms of their distances, and deviations within bounds), Newton's method ends it. The
Hessian is a central difference of the exact gradient.
"""

import dataclasses

import numpy as np
from scipy import linalg, optimize

LEAST, MOST = 1e-4, 50.0  # deviations: below nothing varies, above levels decide ratings
FAR = 60.0  # of thresholds and coefficients (of columns of variance 1): nothing but infinity is there
_DIFFERENCE = 1e-4
_NEWTON_STEPS = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Optimum:
    """What was found.

    Attributes:
      point: parameters.
      value: log-likelihood.
      covariance: inverse of minus its Hessian; None without a maximum.
      reason: why there is none.
    """

    point: np.ndarray
    value: float
    covariance: np.ndarray | None
    reason: str | None = None


class Search:
    """Climbs a likelihood.

    Args:
      likelihood: a `Likelihood`.
      thresholds, coefficients, deviations: how many parameters of each kind it has.
    """

    def __init__(self, likelihood, thresholds, coefficients, deviations):
        self.likelihood = likelihood
        self.parts = np.cumsum([thresholds, coefficients])
        self.thresholds = thresholds
        self.size = thresholds + coefficients + deviations

    def value(self, point):
        """(log-likelihood, gradient); -inf and None outside."""
        thresholds, beta, deviation = np.split(point, self.parts)
        if (np.diff(thresholds) <= 0).any() or not np.isfinite(point).all():
            return -np.inf, None
        value, gradient = self.likelihood.at(thresholds, beta, deviation)
        return value, None if gradient is None else np.concatenate(gradient)

    def approach(self, start):
        """A point near the maximum, deviations within their bounds."""
        t = self.thresholds
        best = (-np.inf, start)
        n = len(self.likelihood.category)

        def descend(inner):
            nonlocal best
            distances = np.exp(inner[1:t])
            point = np.concatenate([inner[0] + np.cumsum(np.concatenate([[0], distances])), inner[t:]])
            value, gradient = self.value(point)
            if gradient is None:
                return 1e6, np.zeros_like(inner)
            if value > best[0]:
                best = value, point
            later = np.cumsum(gradient[:t][::-1])[::-1]
            # Of one rating: the first step is as long as the gradient.
            return -value / n, -np.concatenate([later[:1], later[1:] * distances, gradient[t:]]) / n

        inner = np.concatenate([start[:1], np.log(np.diff(start[:t])), start[t:]])
        bounds = [(-FAR, FAR)] + [(-12, 5)] * (t - 1) + [(-FAR, FAR)] * (self.parts[1] - t)
        bounds += [(LEAST, MOST)] * (self.size - self.parts[1])
        options = {'maxiter': 500, 'ftol': 1e-15, 'gtol': 1e-9}
        optimize.minimize(descend, inner, jac=True, method='L-BFGS-B', bounds=bounds, options=options)
        return best[1]

    def finish(self, point):
        """Newton's method from a point nearby -> `Optimum`; the likelihood is left with the modes there."""
        value, gradient = self.value(point)
        for _ in range(_NEWTON_STEPS):
            if gradient is None:
                return Optimum(point, value, None, 'the likelihood is not finite')
            hessian = self._hessian(point)
            if hessian is None:
                return Optimum(point, value, None, 'the likelihood is not finite')
            spread, directions = linalg.eigh(-hessian)
            if spread[0] <= 1e-9 * spread[-1]:
                # Not concave here: go up along each direction instead of to the stationary point.
                if np.abs(gradient).max() < 1e-5:
                    return Optimum(point, value, None, 'the likelihood is flat or has no maximum near its best point')
                spread = np.maximum(np.abs(spread), 1e-6 * np.abs(spread).max())
            step = directions @ ((directions.T @ gradient) / spread)
            decrement = float(step @ gradient)
            for length in 0.5 ** np.arange(12):
                tried = point + length * step
                tried[self.parts[1] :] = np.abs(tried[self.parts[1] :])
                higher, slope = self.value(tried)
                if higher > value - 1e-12 * abs(value):
                    break
            else:
                return Optimum(point, value, None, 'the search stopped where the likelihood still rises')
            point, value, gradient = tried, higher, slope
            if decrement < 1e-10:  # the step was 1e-5 standard errors: the Hessian is still that of this point
                return Optimum(point, value, (directions / spread) @ directions.T)
        return Optimum(point, value, None, f'no maximum after {_NEWTON_STEPS} steps of Newton')

    def _hessian(self, point):
        rows = []
        for i in range(self.size):
            ends = []
            for sign in (1, -1):
                moved = point.copy()
                moved[i] += sign * _DIFFERENCE
                ends.append(self.value(moved)[1])
            if ends[0] is None or ends[1] is None:
                return None
            rows.append((ends[0] - ends[1]) / (2 * _DIFFERENCE))
        hessian = np.stack(rows)
        return (hessian + hessian.T) / 2


def separated(category_N, categories, x_NP):
    """Numbers of the columns along which the likelihood rises for ever; () where there is a maximum.

    A direction (d of the thresholds, e of the coefficients) with d_c - x e >= 0 above and d_(c - 1) - x e <= 0 below
    each rating lowers no rating's probability. Linear programming finds one that raises some.
    """
    first = np.unique(np.column_stack([category_N, x_NP]), axis=0, return_index=True)[1]
    x, category = x_NP[first], category_N[first]
    thresholds = np.eye(categories - 1)
    above, below = category < categories - 1, category > 0
    rising = np.concatenate(
        [
            np.column_stack([thresholds[category[above]], -x[above]]),
            np.column_stack([-thresholds[category[below] - 1], x[below]]),
        ]
    )
    found = optimize.linprog(-rising.sum(0), -rising, np.zeros(len(rising)), bounds=(-1, 1), method='highs')
    if found.status != 0 or -found.fun < 1e-7:
        return ()
    return tuple(np.flatnonzero(np.abs(found.x[categories - 1 :]) > 1e-7).tolist())
