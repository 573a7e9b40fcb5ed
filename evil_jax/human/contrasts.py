"""Differences between all pairs of levels of a factor, from any fitted model, corrected for their number."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats as scipy_stats

from evil_jax.metrics import significance

_LEVEL = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Contrast:
    """How much more one level has than another.

    Attributes:
      a, b: the levels.
      estimate: a minus b.
      se: its standard error.
      statistic: estimate / se.
      df: degrees of freedom of t; None = normal.
      p: two-sided.
      p_holm: corrected over all pairs (Holm, 1979).
      ci95: of this pair alone.
    """

    a: str
    b: str
    estimate: float
    se: float
    statistic: float
    df: float | None
    p: float
    p_holm: float
    ci95: tuple[float, float]

    def to_json(self) -> dict:
        return dataclasses.asdict(self) | {'ci95': list(self.ci95)}


def pairwise(
    levels: Sequence[str],
    columns: Mapping[str, int],
    estimates: Sequence[float],
    cov,
    degrees: Callable[[np.ndarray], float] | None = None,
) -> list[Contrast]:
    """All pairs (a, b), a before b.

    Args:
      levels: of the factor, in the order in which pairs are to be named.
      columns: where the coefficient of each level is among the estimates. The reference has none: it is 0.
      estimates: all coefficients of a model [p] (of a cumulative link model also its thresholds).
      cov: their covariance [p, p].
      degrees: of freedom of a weighted sum of the estimates; None = normal.

    Raises:
      ValueError: shapes differ, or a variance is not positive.
    """
    estimates, cov = np.asarray(estimates, np.float64), np.asarray(cov, np.float64)
    if cov.shape != (len(estimates),) * 2:
        raise ValueError(f'covariance of shape {cov.shape} for {len(estimates)} coefficients')
    found = []
    for i, a in enumerate(levels):
        for b in levels[i + 1 :]:
            weights = np.zeros(len(estimates))
            for level, sign in ((a, 1), (b, -1)):
                if level in columns:
                    weights[columns[level]] = sign
            variance = float(weights @ cov @ weights)
            if not variance > 0:
                raise ValueError(f'{a} and {b}: the variance of their difference is {variance}')
            df = degrees(weights) if degrees else None
            found.append((a, b, *tested(float(weights @ estimates), math.sqrt(variance), df)))
    corrected = significance.holm([p for *_, p, _ in found])
    return [Contrast(*row[:-1], p_holm, row[-1]) for row, p_holm in zip(found, corrected)]


def tested(
    estimate: float, se: float, df: float | None = None
) -> tuple[float, float, float, float | None, float, tuple[float, float]]:
    """(estimate, se, statistic, df, two-sided p of "it is 0", 95 % interval); `df` None = normal."""
    law = scipy_stats.norm if df is None else scipy_stats.t(df)
    half = float(law.ppf((1 + _LEVEL) / 2)) * se
    return estimate, se, estimate / se, df, float(2 * law.sf(abs(estimate / se))), (estimate - half, estimate + half)
