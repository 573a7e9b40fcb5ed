"""Links of cumulative models: the log-probability of a rating and what its derivatives need, for each row.

A rating has probability F(upper) - F(lower), where upper and lower are its thresholds less the linear predictor; the
best category has upper = inf, the worst lower = -inf. `slope` is the derivative of the log-probability when both move
together (the predictor falling), `weight` minus the second one; `weight` is never negative, as both links are
log-concave. Differences are taken of logarithms, so that nothing cancels in the tails.
"""

import dataclasses

import numpy as np
from scipy import special

_LOG_ROOT_2_PI = 0.5 * np.log(2 * np.pi)


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """Of each row (any shape); `_upper` and `_lower` are derivatives by these.

    Attributes:
      log: of the probability.
      upper, lower: its derivatives.
      slope: their sum.
      slope_upper, slope_lower: derivatives of the slope.
      weight: minus their sum.
      weight_upper, weight_lower: derivatives of the weight.
    """

    log: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    slope: np.ndarray
    slope_upper: np.ndarray
    slope_lower: np.ndarray
    weight: np.ndarray
    weight_upper: np.ndarray
    weight_lower: np.ndarray


def logit(upper, lower):
    """Terms of the logistic distribution: F(u) - F(l) = F(u) F(-l) (1 - exp(l - u))."""
    over, under = special.expit(-upper), special.expit(lower)  # probabilities above upper and below lower
    width = upper - lower
    near = 1 / np.expm1(np.minimum(width, 700))
    log = special.log_expit(upper) + special.log_expit(-lower) + np.log(-np.expm1(-width))
    at_upper, at_lower = over * (1 - over), under * (1 - under)
    return Terms(
        log=log,
        upper=over + near,
        lower=-under - near,
        slope=over - under,
        slope_upper=-at_upper,
        slope_lower=-at_lower,
        weight=at_upper + at_lower,
        weight_upper=at_upper * (2 * over - 1),
        weight_lower=at_lower * (1 - 2 * under),
    )


def probit(upper, lower):
    """Terms of the normal distribution."""
    # In the upper tail, take the mirror image: there log F(u) - log F(l) would be a difference of two zeros.
    flip = lower > 0
    high, low = np.where(flip, -lower, upper), np.where(flip, -upper, lower)
    log_high, log_low = special.log_ndtr(high), special.log_ndtr(low)
    log = log_high + np.log(-np.expm1(log_low - log_high))
    # Densities over the probability; infinite ends have none.
    a, b = np.where(np.isinf(upper), 0, upper), np.where(np.isinf(lower), 0, lower)
    density_a = np.where(np.isinf(upper), 0, np.exp(-0.5 * a * a - _LOG_ROOT_2_PI - log))
    density_b = np.where(np.isinf(lower), 0, np.exp(-0.5 * b * b - _LOG_ROOT_2_PI - log))
    slope = density_a - density_b
    slope_a, slope_b = -density_a * (a + slope), density_b * (b + slope)
    return Terms(
        log=log,
        upper=density_a,
        lower=-density_b,
        slope=slope,
        slope_upper=slope_a,
        slope_lower=slope_b,
        weight=np.maximum(-slope_a - slope_b, 0),
        weight_upper=-density_a * (a + density_a) * (a + slope)
        + density_a * (1 + slope_a)
        + density_a * density_b * (b + slope)
        - density_b * slope_a,
        weight_lower=density_a * density_b * (a + slope)
        + density_a * slope_b
        + density_b * (b - density_b) * (b + slope)
        - density_b * (1 + slope_b),
    )


LINKS = {'logit': logit, 'probit': probit}
