"""Marginal likelihood of a cumulative link mixed model, with its exact gradient.

A random effect is a standard normal b times its factor's deviation. With the mode b of the joint density and the
curvature H there,

    Laplace:       log p(y | b) - b'b / 2 - log|H| / 2
    Gauss-Hermite: for each level, log of the sum over nodes x of sqrt(2) w exp(x^2) p(y, b + sqrt(2 / H) x) / sqrt(H)

(one factor only; with one node it is Laplace). Mode and curvature move with the parameters, which the gradient follows
by adjoints: from the value back to H, from H and the nodes back to b, and from b, by the implicit function theorem,
back to the parameters. So no derivative is approximated here, and none costs more than one pass over the rows.
"""

import numpy as np

from evil_jax.human._clmm_factors import Factors

_STEPS = 50


class Likelihood:
    """The ratings; `at` evaluates parameters.

    Args:
      link: of `_clmm_links`.
      category_N: numbers of the ratings, 0 .. categories - 1.
      categories: how many there are.
      x_NP: columns of the fixed effects.
      index_FN, sizes: level numbers of the random factors and how many levels each has, the largest first; may be none.
      quadrature: nodes; more than 1 with one factor only.
    """

    def __init__(self, link, category_N, categories, x_NP, index_FN, sizes, quadrature):
        self.link, self.category, self.categories, self.x = link, category_N, categories, x_NP
        self.factors = Factors(index_FN, sizes)
        self.mode = [np.zeros(size) for size in sizes]
        nodes, weights = np.polynomial.hermite.hermgauss(quadrature)
        self.nodes = nodes
        self.log_weights = np.log(weights) + nodes**2
        self.quadrature = quadrature

    def at(self, thresholds, beta, deviation):
        """(log-likelihood, its derivatives by thresholds, beta and deviations), -inf and None where it is not finite.

        Thresholds must rise. `mode` then has the standardised modes of the random effects.
        """
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        fixed = self.x @ beta
        upper, lower = ends[self.category + 1] - fixed, ends[self.category] - fixed
        with np.errstate(all='ignore'):
            if not self.factors.sizes:
                terms = self.link(upper, lower)
                value, rows = terms.log.sum(), (terms.upper, terms.lower)
                gradient = self._by_parameter(*rows, np.zeros(0))
            else:
                value, gradient = self._mixed(upper, lower, np.asarray(deviation, np.float64))
        if not (np.isfinite(value) and all(np.isfinite(part).all() for part in gradient)):
            return -np.inf, None
        return float(value), gradient

    def _mixed(self, upper, lower, deviation):
        factors = self.factors
        terms, curvature, found = self._find_mode(upper, lower, deviation)
        if not found:
            return -np.inf, ()
        mode = self.mode
        if self.quadrature == 1:
            value = terms.log.sum() - 0.5 * sum((b**2).sum() for b in mode) - 0.5 * curvature.log_det
            covariances = curvature.row_covariances()
            by_upper, by_lower = terms.upper, terms.lower
            by_mode = [np.zeros_like(b) for b in mode]  # at the mode, nothing of first order
            by_deviation = -_level_sums(factors, mode, terms.slope)
        else:
            value, by_upper, by_lower, by_mode, by_deviation, by_curvature = self._nodes(
                upper, lower, deviation[0], curvature.first
            )
            covariances = -2 * deviation[0] * by_curvature[factors.index[0]][None]
        # From H back: its weights, and the deviations in its z.
        by_deviation = by_deviation - (terms.weight * covariances).sum(1)
        by_weight = -0.5 * (deviation[:, None] * covariances).sum(0)
        moved_upper, moved_lower = by_weight * terms.weight_upper, by_weight * terms.weight_lower
        moved = moved_upper + moved_lower
        by_mode = [part - d * s for part, d, s in zip(by_mode, deviation, factors.gather(moved))]
        by_deviation = by_deviation - _level_sums(factors, mode, moved)
        # From the mode back: there b + deviation * (sum of the slopes of its rows) = 0.
        pull = curvature.solve(by_mode)
        pull_N = factors.spread(pull, deviation)
        pull_upper, pull_lower = -pull_N * terms.slope_upper, -pull_N * terms.slope_lower
        by_deviation = by_deviation - _level_sums(factors, pull, terms.slope)
        by_deviation = by_deviation - _level_sums(factors, mode, pull_upper + pull_lower)
        gradient = self._by_parameter(
            by_upper + moved_upper + pull_upper, by_lower + moved_lower + pull_lower, by_deviation
        )
        return value, gradient

    def _by_parameter(self, by_upper, by_lower, by_deviation):
        ends = np.bincount(self.category + 1, by_upper, self.categories + 1)
        ends += np.bincount(self.category, by_lower, self.categories + 1)
        return ends[1:-1], -(self.x.T @ (by_upper + by_lower)), by_deviation

    def _find_mode(self, upper, lower, deviation):
        """Newton's method on a concave function, steps halved where they would descend."""
        factors = self.factors

        def joint(mode):
            shift = factors.spread(mode, deviation)
            terms = self.link(upper - shift, lower - shift)
            return terms.log.sum() - 0.5 * sum((b**2).sum() for b in mode), terms

        mode = self.mode
        value, terms = joint(mode)
        if not np.isfinite(value):
            mode = [np.zeros_like(b) for b in mode]
            value, terms = joint(mode)
        if not np.isfinite(value):
            return terms, None, False
        for _ in range(_STEPS):
            curvature = factors.curvature(terms.weight, deviation)
            slopes = factors.gather(terms.slope)
            step = curvature.solve([-b - d * s for b, d, s in zip(mode, deviation, slopes)])
            largest = max(np.abs(part).max() for part in step)
            if not np.isfinite(largest):
                return terms, None, False
            length = 1.0
            for _ in range(30):
                tried = [b + length * part for b, part in zip(mode, step)]
                higher, new = joint(tried)
                if higher >= value - 1e-10 * abs(value):
                    break
                length /= 2
            mode, value, terms = tried, higher, new
            if largest * length < 1e-7:  # the next step would be its square
                self.mode = mode
                return terms, factors.curvature(terms.weight, deviation), True
        return terms, None, False

    def _nodes(self, upper, lower, deviation, curvature):
        """Gauss-Hermite sum of each level, its derivatives at fixed nodes, and those by mode and curvature."""
        index, size, mode = self.factors.index[0], self.factors.sizes[0], self.mode[0]
        width = np.sqrt(2 / curvature)
        at_LK = mode[:, None] + width[:, None] * self.nodes
        shift_NK = deviation * at_LK[index]
        terms = self.link(upper[:, None] - shift_NK, lower[:, None] - shift_NK)
        sums = lambda rows_NK: np.stack([np.bincount(index, column, size) for column in rows_NK.T], 1)
        log_LK = sums(terms.log) - 0.5 * at_LK**2 + self.log_weights
        largest = log_LK.max(1, keepdims=True)
        share_LK = np.exp(log_LK - largest)
        total = share_LK.sum(1, keepdims=True)
        share_LK /= total
        value = (largest + np.log(total)).sum() - 0.5 * np.log(np.pi * curvature).sum()
        share_NK = share_LK[index]
        by_node = share_LK * (-at_LK - deviation * sums(terms.slope))
        # A node is mode + x sqrt(2 / H); and the sum has H^(-1/2) before it.
        by_curvature = -0.5 / curvature * ((by_node * self.nodes).sum(1) * width + 1)
        by_deviation = -np.array([(share_NK * terms.slope * at_LK[index]).sum()])
        by_upper, by_lower = (share_NK * terms.upper).sum(1), (share_NK * terms.lower).sum(1)
        return value, by_upper, by_lower, [by_node.sum(1)], by_deviation, by_curvature


def _level_sums(factors, effects, rows_N):
    """For each factor, the sum over rows of the row's number times the effect at its level [F]."""
    return np.array([(e * s).sum() for e, s in zip(effects, factors.gather(rows_N))])
