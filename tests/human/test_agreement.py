import csv
import json
from collections import defaultdict

import numpy as np
import pytest

from evil_jax.human import agreement

IRRCAC = {'krippendorff': 'krippendorff', 'fleiss': 'fleiss', 'gwet': 'gwet_ac', 'brennan_prediger': 'bp'}
_ = None
# 12 units, 4 raters, with gaps; one unit without any and two with a single rating.
GAPS = [
    [_, _, 4, 3], [4, _, 4, 4], [3, 2, 2, _], [_, 2, _, _], [1, 2, _, _], [_, _, _, _], [2, 1, _, 1], [_, 3, _, _],
    [3, 4, _, 4], [3, 3, 3, 4], [4, 3, _, 3], [3, 4, _, 2],
]  # fmt: skip
# Of krippendorff 0.9.0 (three alphas) and irrCAC 0.4.4 for Python (the rest; without the empty unit): value, error.
WITH_GAPS = {
    'krippendorff_nominal': (0.11458333333333348, None),
    'krippendorff_ordinal': (0.5678316422397596, None),
    'krippendorff_interval': (0.6279761904761905, None),
    'krippendorff_ordinal_weights': (0.542389210019, None),
    'fleiss': (0.044448001707, 0.148272758037),
    'fleiss_ordinal': (0.477885652643, 0.184012909803),
    'fleiss_quadratic': (0.570150980028, 0.188686954812),
    'gwet_ac1': (0.099602795515, 0.140415220433),
    'gwet_ac2_ordinal': (0.630744038481, 0.119673951961),
    'gwet_ac2_quadratic': (0.714128732727, 0.123388424965),
    'brennan_prediger': (0.086419753086, 0.139784492392),
    'brennan_prediger_ordinal': (0.595061728395, 0.118811366595),
    'brennan_prediger_quadratic': (0.681481481481, 0.123949633561),
}


def found(units, categories=None, **options):
    return {a.name: a for a in agreement.table(units, categories, **options)}


def test_golden(shared):
    """krippendorff 0.9 to 1e-12; irrCAC 0.4.4, whose values are rounded to 5 digits, to that, its p to 1e-6."""
    folder = shared / 'data' / 'metrics'
    golden = json.loads((folder / 'agreement_synth.json').read_text())
    units = defaultdict(list)
    with open(folder / 'human_ratings_synth.csv', newline='') as file:
        for row in csv.DictReader(file):
            units[row['item'], row['model']].append(int(row['rating']))
    ours = found(units.values(), range(1, 5))
    assert ours['fleiss'].units == 300 and ours['fleiss'].ratings == 900
    compared = 0
    for name in ('krippendorff_nominal', 'krippendorff_ordinal', 'krippendorff_interval'):
        assert ours[name].value == pytest.approx(golden[name], abs=1e-12), name
        compared += 1
    for name, (kind, weights) in agreement.COEFFICIENTS.items():
        if weights == agreement.OWN:
            continue
        theirs = golden[f'irrCAC_{IRRCAC[kind]}_{weights}']
        assert ours[name].value == pytest.approx(theirs['value'], abs=5e-6), name
        assert ours[name].se == pytest.approx(theirs['se'], abs=5e-6), name
        # irrCAC's p of Brennan-Prediger is one-sided.
        sides = 0.5 if kind == 'brennan_prediger' else 1
        assert ours[name].p * sides == pytest.approx(theirs['p'], rel=1e-6), name
        compared += 1
    assert compared == len(golden) == 15
    # The two ordinal alphas are different numbers.
    assert ours['krippendorff_ordinal'].value - ours['krippendorff_ordinal_weights'].value > 0.01


def test_golden_with_missing_ratings():
    ours = found(GAPS, range(1, 5))
    assert set(ours) == set(WITH_GAPS)
    for name, (value, se) in WITH_GAPS.items():
        assert ours[name].value == pytest.approx(value, abs=1e-11), name
        if se is not None:
            assert ours[name].se == pytest.approx(se, abs=1e-11), name
        assert (ours[name].units, ours[name].ratings, ours[name].single) == (9, 26, 2)


def test_alpha_by_its_definition():
    """Krippendorff's pairs, one by one: 1 - observed / expected disagreement."""
    units = [[r for r in unit if r is not None] for unit in GAPS]
    units = [u for u in units if len(u) > 1]
    everything = [r for u in units for r in u]
    number = {c: everything.count(c) for c in range(1, 5)}

    def ordinal(a, b):
        a, b = sorted((a, b))
        return (sum(number[c] for c in range(a, b + 1)) - (number[a] + number[b]) / 2) ** 2

    for name, metric in [
        ('krippendorff_nominal', lambda a, b: a != b),
        ('krippendorff_interval', lambda a, b: (a - b) ** 2),
        ('krippendorff_ordinal', ordinal),
        ('krippendorff_ordinal_weights', lambda a, b: (abs(a - b) + 1) * abs(a - b) / 2),
    ]:
        n = len(everything)
        observed = sum(metric(a, b) / (len(u) - 1) for u in units for a in u for b in u) / n
        expected = sum(metric(a, b) for a in everything for b in everything) / (n * (n - 1))
        assert found(GAPS, range(1, 5))[name].value == pytest.approx(1 - observed / expected, abs=1e-12)


def test_error_of_alpha_is_the_spread_of_samples():
    """Of units with 2 to 4 ratings: what fixes the mean number of raters, which no golden number has."""
    rng = np.random.default_rng(0)
    taste = rng.integers(1, 4, size=600)
    units = [np.clip(t + rng.integers(-1, 2, size=rng.integers(2, 5)), 1, 4).tolist() for t in taste]
    for name in ('krippendorff_interval', 'krippendorff_nominal', 'fleiss_ordinal', 'gwet_ac2_quadratic'):
        one = agreement.table(units, range(1, 5), names=[name], resamples=2000)[0]
        assert one.ci95[1] - one.ci95[0] == pytest.approx(2 * 1.96 * one.se, rel=0.08), name


def test_perfect_and_worse_than_chance():
    perfect = found([[c] * 3 for c in (1, 2, 3, 4)], range(1, 5))
    assert [a.value for a in perfect.values()] == pytest.approx([1] * 13)
    assert perfect['fleiss'].se == 0 and perfect['fleiss'].p is None
    assert all(a.value < 0 for a in found([[1, 4], [4, 1], [1, 4]], [1, 4]).values())


def test_ratings_that_are_all_equal():
    observed = found([[2, 2], [2, 2, 2]])
    assert all(a.value is None and 'all ratings are equal' in a.reason for a in observed.values())
    scale = found([[2, 2], [2, 2, 2]], range(4))
    assert scale['krippendorff_interval'].value is None and scale['fleiss'].value is None
    # With the scale known, Gwet and Brennan-Prediger are defined: chance would have given other ratings.
    assert scale['gwet_ac1'].value == scale['brennan_prediger'].value == 1


@pytest.mark.parametrize('units', [[], [[1, 2, 2]], [[1], [2], [3]], [[1, 2], [None, float('nan')], [3]]])
def test_too_little(units):
    for a in found(units, range(1, 5), resamples=10).values():
        assert a.value is None and a.reason.endswith('units with two ratings or more, wanted 2')
        json.dumps(a.to_json())
    assert agreement.table(units)[0].value is None


def test_unused_categories_count_for_gwet_and_brennan_prediger_only():
    few, many = found(GAPS, range(1, 5)), found(GAPS, range(1, 8))
    for name in ('krippendorff_nominal', 'krippendorff_ordinal', 'krippendorff_interval', 'fleiss'):
        assert few[name].value == pytest.approx(many[name].value, abs=1e-12)
    for name in ('gwet_ac1', 'brennan_prediger'):
        assert abs(few[name].value - many[name].value) > 1e-3


def test_bootstrap_is_over_clusters_and_only_of_used_units():
    rng = np.random.default_rng(2)
    base = rng.integers(4, size=(30, 1))
    units = np.clip(base + rng.integers(-1, 2, size=(30, 3)), 0, 3).tolist()
    name = 'krippendorff_ordinal'
    narrow, wide = (
        agreement.table(units * 9, range(4), names=[name], clusters=keys, resamples=300)[0]
        for keys in (None, list(range(30)) * 9)
    )
    assert narrow.value == wide.value
    assert 2 < (wide.ci95[1] - wide.ci95[0]) / (narrow.ci95[1] - narrow.ci95[0]) < 4  # sqrt(9) = 3
    assert wide.ci95[0] < wide.value < wide.ci95[1]
    # A unit that is left out takes its key with it.
    keys = list(range(15)) * 2
    plain, single = (
        agreement.table(all_units, range(4), names=[name], clusters=all_keys, resamples=50)[0]
        for all_units, all_keys in ((units, keys), ([[1], *units], [99, *keys]))
    )
    assert single.single == 1 and single.ci95 == plain.ci95
    with pytest.raises(ValueError, match='1 cluster keys for 30 units'):
        agreement.table(units, range(4), names=[name], clusters=[1], resamples=50)


def test_errors():
    with pytest.raises(ValueError, match='rating 5 is not on the scale 1, 2, 3, 4'):
        agreement.table(GAPS[:3] + [[5, 1]], range(1, 5))
    with pytest.raises(ValueError, match="coefficient is 'alpha'"):
        agreement.table(GAPS, names=['alpha'])
    with pytest.raises(ValueError, match="weights is 'cubic'"):
        agreement.weights('cubic', [1, 2])


def test_weights_of_four_categories():
    np.testing.assert_allclose(agreement.weights('ordinal', [0, 1, 2, 3])[0], [1, 5 / 6, 1 / 2, 0])
    np.testing.assert_allclose(agreement.weights('quadratic', [0, 1, 2, 3])[0], [1, 8 / 9, 5 / 9, 0])
    np.testing.assert_allclose(agreement.weights('quadratic', [0, 1, 10])[1], [0.99, 1, 0.19])
    np.testing.assert_allclose(agreement.weights('identity', [5, 6]), np.eye(2))
