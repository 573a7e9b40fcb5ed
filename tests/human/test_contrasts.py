import numpy as np
import pytest
from scipy import stats

from evil_jax.human import contrasts, mixed


def test_pairs_do_not_depend_on_the_reference():
    """Tukey's table without Tukey: all pairs of a one-way layout, by hand; the reference is only a way to write it."""
    draw = np.random.default_rng(0)
    groups = {'a': draw.normal(0, 1, 9), 'b': draw.normal(1, 1, 7), 'c': draw.normal(0.4, 1, 12)}
    scores = np.concatenate(list(groups.values()))
    system = [name for name, values in groups.items() for _ in values]
    pooled = sum(((v - v.mean()) ** 2).sum() for v in groups.values()) / (len(scores) - 3)
    by_hand, p_values = [], []
    for a, b in (('a', 'b'), ('a', 'c'), ('b', 'c')):
        estimate = groups[a].mean() - groups[b].mean()
        se = np.sqrt(pooled * (1 / len(groups[a]) + 1 / len(groups[b])))
        p_values.append(2 * stats.t.sf(abs(estimate / se), len(scores) - 3))
        by_hand.append((a, b, estimate, se))
    smallest, middle, largest = np.argsort(p_values)
    holm = dict(zip((smallest, middle, largest), np.maximum.accumulate(np.sort(p_values) * [3, 2, 1])))
    for reference in 'abc':
        order = [reference, *(s for s in 'abc' if s != reference)]
        fit = mixed.fit(scores, {'s': system}, {}, fixed_levels={'s': order})
        names = list(fit.coefficients)
        columns = {s: names.index(f's{s}') for s in order[1:]}
        found = contrasts.pairwise('abc', columns, list(fit.coefficients.values()), fit.cov, fit.degrees)
        for i, (contrast, (a, b, estimate, se)) in enumerate(zip(found, by_hand, strict=True)):
            assert (contrast.a, contrast.b) == (a, b)
            numbers = (contrast.estimate, contrast.se, contrast.df, contrast.p, contrast.p_holm)
            assert numbers == pytest.approx((estimate, se, len(scores) - 3, p_values[i], min(1, holm[i])))
            assert contrast.ci95 == pytest.approx(stats.t.interval(0.95, len(scores) - 3, estimate, se))


def test_normal_where_there_are_no_degrees_of_freedom():
    """Two coefficients behind two thresholds; hand-made covariance."""
    cov = np.diag([9.0, 9.0, 0.04, 0.09])
    cov[2, 3] = cov[3, 2] = 0.02
    (ab,) = contrasts.pairwise(['A', 'B'], {'A': 2, 'B': 3}, [-1, 1, 0.7, 0.3], cov)
    se = np.sqrt(0.04 + 0.09 - 2 * 0.02)
    assert (ab.estimate, ab.se, ab.p) == pytest.approx((0.4, se, 2 * stats.norm.sf(0.4 / se)))
    assert ab.df is None and ab.p_holm == ab.p
    assert ab.to_json()['ci95'] == pytest.approx([0.4 - 1.959964 * se, 0.4 + 1.959964 * se])


def test_wrong_input():
    with pytest.raises(ValueError, match=r'covariance of shape \(1, 1\) for 2 coefficients'):
        contrasts.pairwise(['a', 'b'], {'b': 1}, [0, 1], [[1.0]])
    with pytest.raises(ValueError, match='a and b: the variance of their difference is 0'):
        contrasts.pairwise(['a', 'b'], {'b': 1}, [0, 1], np.diag([1.0, 0]))
    assert contrasts.pairwise(['a'], {}, [0], [[1.0]]) == []
