import statistics

import numpy as np
import pytest

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
