import statistics

import numpy as np
import pytest
import scipy.stats

from evil_jax import stats


@pytest.mark.parametrize('parts', [(0.2, 0.5), (0.116, 0.172, 0.395, 0.2), (0, 0.4), (1,), (0, 0)])
def test_harmonic_mean_is_that_of_statistics(parts):
    assert stats.harmonic_mean(*parts) == pytest.approx(statistics.harmonic_mean(parts), abs=1e-15)


def test_harmonic_mean_of_arrays():
    mean = stats.harmonic_mean(np.array([0.5, 0.0, np.nan, np.nan]), np.array([0.25, 1.0, 1.0, 0.0]))
    np.testing.assert_allclose(mean, [1 / 3, 0.0, np.nan, np.nan])


def test_harmonic_mean_refuses_negative_and_nothing():
    with pytest.raises(ValueError, match='negative'):
        stats.harmonic_mean(0.3, -0.1)
    with pytest.raises(ValueError, match='nothing'):
        stats.harmonic_mean()


def test_resample_draws_n_and_is_seeded_whatever_the_chunks(monkeypatch):
    whole = np.concatenate(list(stats.resample(7, 50, seed=3)))
    assert whole.shape == (50, 7)
    assert (whole.sum(1) == 7).all()
    monkeypatch.setattr(stats, '_CHUNK', 21)
    chunks = list(stats.resample(7, 50, seed=3))
    assert len(chunks) > 10
    np.testing.assert_array_equal(np.concatenate(chunks), whole)
    assert not np.array_equal(np.concatenate(list(stats.resample(7, 50, seed=4))), whole)


def test_clusters_come_along_whole():
    clusters = ['x', 'y', 'x', 'z', 'y', 'x']
    counts = np.concatenate(list(stats.resample(6, 200, clusters=clusters)))
    np.testing.assert_array_equal(counts[:, 0], counts[:, 2])
    np.testing.assert_array_equal(counts[:, 0], counts[:, 5])
    np.testing.assert_array_equal(counts[:, 1], counts[:, 4])
    assert (counts[:, [0, 1, 3]].sum(1) == 3).all()


def test_mean_interval_is_that_of_theory():
    values = np.random.default_rng(0).normal(5, 2, 2000)
    low, high = stats.mean_interval(values, resamples=2000)
    error = 1.96 * values.std() / np.sqrt(2000)
    assert low == pytest.approx(values.mean() - error, abs=0.15 * error)
    assert high == pytest.approx(values.mean() + error, abs=0.15 * error)


def test_clusters_widen_the_interval():
    values = np.repeat(np.random.default_rng(0).normal(size=100), 14)
    low, high = stats.mean_interval(values)
    low_c, high_c = stats.mean_interval(values, clusters=np.repeat(np.arange(100), 14).tolist())
    assert 3 < (high_c - low_c) / (high - low) < 4.5  # sqrt(14) = 3.7


def test_interval_leaves_out_undefined_resamples():
    assert stats.interval([np.nan, 1.0, 1.0]) == (1.0, 1.0)
    assert stats.interval([np.nan]) is None


def test_errors():
    with pytest.raises(ValueError, match='no examples'):
        next(stats.resample(0))
    with pytest.raises(ValueError, match='2 cluster keys for 3 examples'):
        next(stats.resample(3, clusters=['a', 'b']))


def test_wilson_is_that_of_scipy():
    k, n = (a.ravel() for a in np.meshgrid(np.arange(0, 31, 3), [1, 2, 5, 12, 30]))
    k, n = k[k <= n], n[k <= n]
    for level in (0.8, 0.95, 0.999):
        low, high = stats.wilson(k, n, level)
        wanted = [
            scipy.stats.binomtest(a, b).proportion_ci(level, method='wilson') for a, b in zip(k.tolist(), n.tolist())
        ]
        np.testing.assert_allclose(low, [w.low for w in wanted], atol=1e-12)
        np.testing.assert_allclose(high, [w.high for w in wanted], atol=1e-12)


@pytest.mark.parametrize(
    'k, n, low', [(10, 10, 0.722), (20, 20, 0.839), (30, 30, 0.886), (35, 35, 0.901), (50, 50, 0.929), (48, 50, 0.865),
                  (95, 100, 0.888), (190, 200, 0.910)]
)  # fmt: skip
def test_support_that_a_lower_bound_needs(k, n, low):
    assert stats.wilson(k, n)[0] == pytest.approx(low, abs=5e-4)


def test_wilson_of_nothing_and_of_fractions():
    assert stats.wilson(0, 0) == (0.0, 1.0)
    low, high = stats.wilson(9.5, 10.5)
    assert stats.wilson(9, 10)[0] < low < 9.5 / 10.5 < high < 1
