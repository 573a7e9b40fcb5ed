"""Intervals and tests of shares k/n whose n trials came in clusters (questions, pictures), and corrections for many.

Everything is vectorised: k, n and probabilities are numbers or arrays of one shape, and effective sample sizes may be
fractions. Legend: C cells (one cluster in one group), G groups, H hypotheses.
"""

import numpy as np
from scipy import special, stats


def design_effect(k_C, n_C, group_C=None, groups: int = 1) -> np.ndarray:
    """By how much clusters inflate the variance of each group's proportion, [groups], at least 1 (Kish, 1965).

    The variance between clusters of k_c - p n_c (the linearised ratio estimator), over the binomial one. Where hardly
    any trial differs from the others, clusters cannot be seen to agree within: 30 of 30 in ten pictures would look like
    30 independent trials. So one more cluster of average size is counted, all of whose trials went against the
    majority. With it, Wilson intervals at n / design effect cover 94 to 98 % at intraclass correlations of .3 and .7;
    without, 84 to 95 %.

    Args:
      k_C: successes of each cell.
      n_C: trials of each cell, at least 1.
      group_C: index of each cell's group; None puts all into one.
      groups: number of groups.
    """
    k_C, n_C = np.asarray(k_C, np.float64), np.asarray(n_C, np.float64)
    group_C = np.zeros(len(k_C), np.intp) if group_C is None else group_C
    total = lambda values_C: np.bincount(group_C, values_C, groups)
    n_G, k_G, squares_G = total(n_C), total(k_C), total(n_C**2)
    some_G = np.maximum(n_G, 1)
    extra_G = squares_G / some_G  # the size of the cluster in which an average trial is
    against_G = np.where(2 * k_G >= n_G, 0.0, extra_G)
    p_G = (k_G + against_G) / np.maximum(n_G + extra_G, 1)
    between_G = total((k_C - p_G[group_C] * n_C) ** 2) + (against_G - p_G * extra_G) ** 2
    binomial_G = p_G * (1 - p_G) * (n_G + extra_G)
    return np.maximum(np.divide(between_G, binomial_G, out=np.ones(groups), where=binomial_G > 0), 1.0)


def effective_n(k_C, n_C, group_C=None, groups: int = 1) -> np.ndarray:
    """How many independent trials each group's are worth: n / design effect, [groups]. Arguments as above."""
    group_C = np.zeros(len(k_C), np.intp) if group_C is None else group_C
    return np.bincount(group_C, n_C, groups) / design_effect(k_C, n_C, group_C, groups)


def at_least(k, n, p):
    """One-sided exact binomial test: probability of k or more successes in n trials if each succeeds with p.

    The incomplete beta function is that sum, and goes on between the integers, where effective samples lie.
    """
    k, n = np.asarray(k, np.float64), np.asarray(n, np.float64)
    above = special.betainc(np.maximum(k, np.finfo(float).tiny), np.maximum(n - k + 1, 1), p)
    return np.where(k <= 0, 1.0, above)[()]


def exceeds(k, n, k_other, n_other):
    """One-sided exact test of Fisher (1935): probability of k or more successes if both samples have the same rate.

    Effective samples are rounded towards the other's rate. No trials in either: 1.
    """
    n, n_other = (np.floor(np.asarray(x, np.float64) + 1e-9) for x in (n, n_other))
    k = np.minimum(np.floor(np.asarray(k, np.float64) + 1e-9), n)
    k_other = np.minimum(np.ceil(np.asarray(k_other, np.float64) - 1e-9), n_other)
    p = stats.hypergeom.sf(k - 1, n + n_other, k + k_other, n)
    return np.where((n > 0) & (n_other > 0), p, 1.0)[()]


def benjamini_hochberg(p_H, tests: int | None = None) -> np.ndarray:
    """Adjusted p-values (q) of Benjamini and Hochberg (1995): those <= alpha are found at false discovery rate alpha.

    Args:
      p_H: p-values.
      tests: number of hypotheses, where those with the largest p are left out; None = as many as p-values.
    """
    p_H = np.asarray(p_H, np.float64)
    tests = len(p_H) if tests is None else tests
    if tests < len(p_H):
        raise ValueError(f'{len(p_H)} p-values of {tests} tests')
    order_H = np.argsort(p_H, kind='stable')
    scaled_H = p_H[order_H] * tests / np.arange(1, len(p_H) + 1)
    q_H = np.empty(len(p_H))
    q_H[order_H] = np.minimum(np.minimum.accumulate(scaled_H[::-1])[::-1], 1)
    return q_H


def heterogeneity(k_G, n_G, effect: float = 1.0, parent_G=None, parents: int = 1):
    """Chi-square tests that the groups of a parent have one common rate, [parents].

    After Rao and Scott (1981) the statistic is divided by the design effect within the groups.

    Args:
      k_G: successes of each group.
      n_G: trials of each group; groups of none are left out.
      effect: design effect.
      parent_G: index of each group's parent; None puts all under one.
      parents: number of parents.

    Returns:
      (chi-square, degrees of freedom, p); p is 1 where nothing can differ.
    """
    k_G, n_G = np.asarray(k_G, np.float64), np.asarray(n_G, np.float64)
    parent_G = np.zeros(len(k_G), np.intp) if parent_G is None else np.asarray(parent_G)
    some_G = n_G > 0
    k_G, n_G, parent_G = k_G[some_G], n_G[some_G], parent_G[some_G]
    total = lambda values_G: np.bincount(parent_G, values_G, parents)
    p_G = (total(k_G) / np.maximum(total(n_G), 1))[parent_G]
    binomial_G = n_G * p_G * (1 - p_G)
    terms_G = np.divide((k_G - p_G * n_G) ** 2, binomial_G, out=np.zeros(len(n_G)), where=binomial_G > 0)
    chi_square = total(terms_G) / effect
    degrees = np.maximum(np.bincount(parent_G, minlength=parents) - 1, 0)
    return chi_square, degrees, np.where(degrees > 0, stats.chi2.sf(chi_square, np.maximum(degrees, 1)), 1.0)


def intersection_union(p_H) -> float:
    """p of 'all of these hold' (Berger, 1982): the largest of the p-values, without any correction; 1 of none."""
    return float(np.max(p_H, initial=0.0)) if len(p_H) else 1.0
