import csv
import json
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as scipy_stats

from evil_jax import stats
from evil_jax.human import correlation
from evil_jax.human.ratings import Item, Rating, aggregate


def items(means, dataset='d', system='s', images=None, out_of=10):
    return [
        Item(dataset, system, f'{n:03}', (mean,), out_of, image=images and images[n]) for n, mean in enumerate(means)
    ]  # fmt: skip


def by_key(its, values):
    return {i.key: v for i, v in zip(its, values)}


@pytest.fixture(scope='module')
def study(shared):
    """Numbers of the golden file, as written there, and the exact ones: (metric, means as written, rating items)."""
    folder = shared / 'data' / 'metrics'
    with open(folder / 'spearman_input.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    with open(folder / 'human_ratings_synth.csv', newline='') as file:
        # The item's column has a number, the rating is one of 1..4.
        ratings = [Rating('d', r['model'], r['item'], int(r['rating']) - 1) for r in csv.DictReader(file)]
    assert len(rows) == 300 and len(ratings) == 900
    exact = {(i.system, i.item): i for i in aggregate(ratings)}
    metric = [float(r['metric']) for r in rows]
    return metric, [float(r['score']) for r in rows], [exact[r['model'], r['item']] for r in rows]


def test_golden_numbers_of_r(shared, study):
    golden = json.loads((shared / 'data' / 'metrics' / 'spearman_R.json').read_text())
    metric, written, _ = study
    found = correlation.correlate(metric, written)
    assert found.n == golden['n']
    assert found.rho == pytest.approx(golden['spearman']['rho'], abs=1e-12)
    assert found.rho_p == pytest.approx(golden['spearman']['p'], rel=1e-9)
    assert found.tau == pytest.approx(golden['kendall']['tau'], abs=1e-12)
    assert found.tau_p == pytest.approx(golden['kendall']['p'], rel=1e-9)
    assert found.pearson == pytest.approx(golden['pearson']['r'], abs=1e-12)
    assert found.pearson_p == pytest.approx(golden['pearson']['p'], rel=1e-9)
    interval = correlation.interval_z(found.pearson, found.n, 'pearson')
    assert interval == pytest.approx(golden['pearson']['ci'], abs=1e-11)


def test_means_of_thirds_would_untie_ranks(study):
    """The trap: the golden rho is that of 15 printed digits, where 4/9 and 5/9 stand in two forms each."""
    metric, written, exact = study
    sums = [i.total for i in exact]
    means = [sum(float(f'{s / 3:.15g}') for s in i.scores) / 3 for i in exact]  # of scores as a file has them
    assert len(set(sums)) == len({i.mean for i in exact}) == 10
    assert len(set(written)) == 12 and len(set(means)) > 10
    np.testing.assert_allclose(written, means, atol=1e-14)
    rho = correlation.correlate(metric, [i.mean for i in exact]).rho
    assert rho == pytest.approx(scipy_stats.spearmanr(metric, sums).statistic, abs=1e-14)
    assert rho == pytest.approx(0.3126055666, abs=1e-9)
    assert abs(rho - correlation.correlate(metric, written).rho) > 0.002
    # The table takes items, so it cannot fall into the trap.
    row = correlation.table({'m': by_key(exact, metric)}, exact, resamples=0)[0]
    assert row.n < 300 and row.dataset == 'd'  # the gold explanations are left out
    generated = [i for i in exact if not i.gold]
    values = [m for m, i in zip(metric, exact) if not i.gold]
    assert row.rho == pytest.approx(scipy_stats.spearmanr(values, [i.total for i in generated]).statistic, abs=1e-14)


def test_equal_means_of_unequal_numbers_are_ties():
    # 2/3 as 2 of 3, as 3 + 0 + 3 of 9, and so on: three equal opinions, and one below.
    several = [(2,), (3, 0, 3), (2, 2, 2, 2, 2), (1,)]
    its = [Item('d', 's', str(n), scores, 3) for n, scores in enumerate(several)]
    row = correlation.table({'m': by_key(its, [0.4, 0.1, 0.3, 0.2])}, its, resamples=0)[0]
    assert row.rho == pytest.approx(scipy_stats.spearmanr([0.4, 0.1, 0.3, 0.2], [2, 2, 2, 1]).statistic)


def test_equals_scipy_with_and_without_ties():
    rng = np.random.default_rng(0)
    for high in (3, 1000):
        x, y = rng.integers(high, size=(2, 40))
        found = correlation.correlate(x, y)
        assert (found.rho, found.rho_p) == pytest.approx(tuple(scipy_stats.spearmanr(x, y)), abs=1e-12)
        assert (found.pearson, found.pearson_p) == pytest.approx(tuple(scipy_stats.pearsonr(x, y)), abs=1e-12)


def test_pooled_is_one_ranking_of_all_items():
    first, second = items([1, 2, 3, 4], 'x'), items([5, 6, 7, 9], 'y')
    values = by_key(first, [4, 3, 2, 1]) | by_key(second, [8, 7, 6, 5])
    rows = correlation.table({'m': values}, first + second, resamples=0)
    assert [(r.dataset, r.n) for r in rows] == [('x', 4), ('y', 4), ('all', 8)]
    assert [r.rho for r in rows] == pytest.approx([-1, -1, 11 / 21])  # falls in each, rises over both
    assert rows[0].p == 0 and rows[0].ci95_z == (-1, -1)
    with pytest.raises(ValueError, match="named 'all'"):
        correlation.table({'m': values}, items([1, 2], 'all') + second)


def test_what_is_missing_is_counted_and_what_is_undefined_has_a_reason():
    its = items([1, 2, 3, 4, 5])
    metrics = {
        'holes': by_key(its, [1.0, None, 3.0, math.nan, 2.0]),
        'constant': by_key(its, [0.0] * 5),
        'few': by_key(its[:2], [1.0, 2.0]),
        'infinite': by_key(its, [1.0, math.inf, 2.0, 4.0, 3.0]),
        'none': {},
    }
    rows = {r.metric: r for r in correlation.table(metrics, its)}
    assert (rows['holes'].n, rows['holes'].left_out) == (3, 2)
    assert rows['holes'].rho == pytest.approx(0.5)
    assert rows['holes'].ci95_z is None  # n - 3 = 0
    assert rows['constant'].rho is None and 'the metric is the same for all 5' in rows['constant'].reason
    assert rows['few'].rho is None and rows['few'].reason.startswith('2 items')
    assert rows['none'].reason.startswith('0 items') and rows['none'].left_out == 5
    assert (rows['infinite'].n, rows['infinite'].left_out) == (4, 1)
    same = correlation.table({'m': by_key(its, range(5))}, items([4] * 5))[0]
    assert 'the human score is the same' in same.reason
    assert rows['none'].to_json() == {
        'dataset': 'd', 'metric': 'none', 'n': 0, 'left_out': 5, 'rho': None, 'reason': rows['none'].reason
    }  # fmt: skip
    json.dumps([r.to_json() for r in rows.values()], allow_nan=False)
    assert correlation.table({}, its) == correlation.table(metrics, []) == []


def test_errors():
    with pytest.raises(ValueError, match='2 values for 3'):
        correlation.correlate([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match='not finite'):
        correlation.correlate([1, 2, math.nan], [1, 2, 3])


def test_analytic_intervals_by_hand():
    # tanh(atanh(.5) -+ 1.959964 sqrt(share / (n - fewer))) for n = 28
    shares = {'pearson': 1 / 25, 'spearman': 1.125 / 25, 'kendall': 0.437 / 24}
    for kind, share in shares.items():
        half = 1.959963984540054 * math.sqrt(share)
        wanted = [math.tanh(math.atanh(0.5) + sign * half) for sign in (-1, 1)]
        assert correlation.interval_z(0.5, 28, kind) == pytest.approx(wanted, abs=1e-12)
    assert correlation.interval_z(0.5, 4, 'kendall') is correlation.interval_z(0.5, 3) is None


def test_bootstrap_equals_a_plain_loop():
    rng = np.random.default_rng(3)
    x, y = rng.integers(6, size=30).astype(float), rng.integers(4, size=30)
    clusters = rng.integers(12, size=30).tolist()
    got = correlation.spearman_samples([x, -x], y, clusters=clusters, resamples=60, seed=2)
    for row, counts in enumerate(np.concatenate(list(stats.resample(30, 60, 2, clusters)))):
        drawn = np.repeat(np.arange(30), counts.astype(int))
        wanted = scipy_stats.spearmanr(x[drawn], y[drawn]).statistic
        assert got[0, row] == pytest.approx(wanted, abs=1e-12)
    np.testing.assert_allclose(got[1], -got[0], atol=1e-12)


def test_constant_resamples_are_undefined():
    samples = correlation.spearman_samples([[1, 2, 3]], [Fraction(1, 3), 0, 0], resamples=50)
    assert np.isnan(samples).any() and not np.isnan(samples).all()


def test_intervals_cover_the_truth():
    """Of normal pairs with r = .5, whose rho is 6 / pi asin(.25); both intervals, 95 % nominal."""
    rng, true, hits = np.random.default_rng(5), 6 / math.pi * math.asin(0.25), defaultdict(int)
    for _ in range(200):
        x = rng.normal(size=100)
        y = 0.5 * x + math.sqrt(0.75) * rng.normal(size=100)
        low, high = correlation.interval_z(correlation.correlate(x, y).rho, 100)
        hits['z'] += low <= true <= high
        low, high = np.quantile(correlation.spearman_samples([x], y, resamples=200)[0], [0.025, 0.975])
        hits['bootstrap'] += low <= true <= high
    assert 0.9 <= hits['z'] / 200 <= 0.99
    assert 0.88 <= hits['bootstrap'] / 200 <= 0.99


def test_pictures_widen_the_interval():
    rng = np.random.default_rng(1)
    mean, value = rng.integers(11, size=40), rng.normal(size=40)
    value += mean / 6
    mean, value = np.repeat(mean, 9), np.repeat(value, 9)
    apart = items(mean.tolist())
    shown = items(mean.tolist(), images=[str(n // 9) for n in range(360)])
    widths = []
    for its in (apart, shown):
        low, high = correlation.table({'m': by_key(its, value.tolist())}, its, resamples=300)[0].ci95
        widths.append(high - low)
    assert 2 < widths[1] / widths[0] < 4  # sqrt(9) = 3
