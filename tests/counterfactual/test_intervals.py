"""Intervals and tests against SciPy's, against published tables, and in simulations of trials that depend."""

import numpy as np
import pytest
from scipy import stats

from evil_jax.counterfactual import intervals
from evil_jax.stats import wilson


def test_exact_binomial_is_that_of_scipy():
    for n in (1, 7, 40):
        k = np.arange(n + 1)
        for p in (0.1, 0.8, 0.97):
            np.testing.assert_allclose(intervals.at_least(k, n, p), stats.binom.sf(k - 1, n, p), rtol=1e-9)
    between = intervals.at_least([8, 8.5, 9], [10, 10, 10], 0.8)
    assert between[0] > between[1] > between[2]


def test_fisher_is_that_of_scipy():
    generator = np.random.default_rng(0)
    n, other = generator.integers(1, 60, (2, 50))
    k, k_other = generator.binomial(n, 0.7), generator.binomial(other, 0.5)
    wanted = [
        stats.fisher_exact([[a, b - a], [c, d - c]], alternative='greater').pvalue
        for a, b, c, d in zip(k, n, k_other, other)
    ]
    np.testing.assert_allclose(intervals.exceeds(k, n, k_other, other), wanted, rtol=1e-9)
    # 19.8 of 20.7 are not more than 19 of 20.
    assert intervals.exceeds(19.8, 20.7, 10.2, 20.5) == pytest.approx(intervals.exceeds(19, 20, 11, 20))
    assert intervals.exceeds(5, 5, 0, 0) == 1


def test_benjamini_hochberg_is_that_of_scipy():
    p = np.random.default_rng(0).beta(0.3, 1, 500)
    np.testing.assert_allclose(intervals.benjamini_hochberg(p), stats.false_discovery_control(p), atol=1e-15)
    # Hypotheses with p = 1 need not be listed.
    np.testing.assert_allclose(
        intervals.benjamini_hochberg(p, tests=700), stats.false_discovery_control([*p, *[1.0] * 200])[:500], atol=1e-15
    )
    assert intervals.benjamini_hochberg([]).shape == (0,)
    with pytest.raises(ValueError, match='3 p-values of 2 tests'):
        intervals.benjamini_hochberg([0.1, 0.2, 0.3], tests=2)


def test_heterogeneity_is_that_of_scipy():
    k, n = np.array([18, 25, 9, 0]), np.array([20, 40, 15, 0])
    wanted = stats.chi2_contingency([k[:3], (n - k)[:3]], correction=False)
    got = np.ravel(intervals.heterogeneity(k, n))
    np.testing.assert_allclose(got, [wanted.statistic, wanted.dof, wanted.pvalue])
    assert intervals.heterogeneity(k, n, effect=2)[0] == pytest.approx(wanted.statistic / 2)
    np.testing.assert_array_equal(np.ravel(intervals.heterogeneity([5, 9], [5, 9])), [0, 1, 1])
    np.testing.assert_array_equal(np.ravel(intervals.heterogeneity([], [])), [0, 0, 1])
    # Of several parents at once; the last has no group.
    both = intervals.heterogeneity([5, *k, 9], [5, *n, 9], parent_G=[1, 0, 0, 0, 0, 1], parents=3)
    np.testing.assert_allclose(np.transpose(both), [got, [0, 1, 1], [0, 0, 1]])


def test_intersection_union():
    assert intervals.intersection_union([0.01, 0.2, 0.03]) == 0.2
    assert intervals.intersection_union([]) == 1


def test_effective_n_of_cells_that_say_it_all():
    # Every cluster agrees with itself: ten answers count as one.
    k = np.array([10, 10, 0, 10, 0, 0, 10, 0])
    assert intervals.effective_n(k, np.full(8, 10))[0] == pytest.approx(8, rel=0.15)
    # One trial a cluster: nothing depends on anything.
    assert intervals.effective_n([1, 1, 0, 1, 1, 0], np.ones(6))[0] == pytest.approx(6)
    assert intervals.effective_n(np.ones(35), np.ones(35))[0] == pytest.approx(35)
    # All alike: how much they depend cannot be seen, and pictures count, not answers.
    assert intervals.effective_n(np.full(60, 2), np.full(60, 2))[0] == pytest.approx(60, rel=0.02)


def test_effective_n_of_groups_is_that_of_each():
    generator = np.random.default_rng(1)
    n, group = generator.integers(1, 9, 300), generator.integers(0, 4, 300)
    k = generator.binomial(n, generator.beta(2, 1, 300))
    together = intervals.effective_n(k, n, group, groups=5)
    for g in range(4):
        assert together[g] == pytest.approx(intervals.effective_n(k[group == g], n[group == g])[0])
    assert together[4] == 0
    assert (together[:4] < np.bincount(group, n)).all()


def coverage(clusters, size, p, correlation, simulations=3000, seed=0):
    """How often naive and effective 95 % Wilson intervals cover p: trials of a cluster correlate (beta-binomial)."""
    generator = np.random.default_rng(seed)
    scale = (1 - correlation) / correlation
    k = generator.binomial(size, generator.beta(p * scale, (1 - p) * scale, (simulations, clusters)))
    total, of = k.sum(1), clusters * size
    group = np.repeat(np.arange(simulations), clusters)
    effective = intervals.effective_n(k.ravel(), np.full(k.size, size), group, simulations)
    covers = []
    for n in (of, effective):
        low, high = wilson(total / of * n, n)
        covers.append(((low <= p) & (p <= high)).mean())
    return covers


@pytest.mark.parametrize('correlation, naive', [(0.3, 0.70), (0.7, 0.55)])
@pytest.mark.parametrize('p', [0.5, 0.8, 0.9, 0.95])
def test_effective_intervals_cover_where_naive_ones_do_not(correlation, naive, p):
    """35 questions, ten targets each."""
    got_naive, got = coverage(35, 10, p, correlation)
    assert got_naive == pytest.approx(naive, abs=0.05)
    assert 0.94 <= got <= 0.985


def test_effective_intervals_cover_with_few_pictures():
    for p in (0.8, 0.9, 0.95):
        assert 0.94 <= coverage(10, 3, p, 0.5)[1] <= 0.995
