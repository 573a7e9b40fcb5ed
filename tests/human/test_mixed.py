import csv
import json
import math
import warnings

import numpy as np
import pytest

from evil_jax.human import mixed

MODELS = ('GT', 'PJ-X', 'FME', 'RVT', 'e-UG')


@pytest.fixture(scope='module')
def synthetic(shared):
    with open(shared / 'data' / 'metrics' / 'human_ratings_synth.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    return {key: [row[key] for row in rows] for key in rows[0]} | {'score': [float(row['score']) for row in rows]}


@pytest.mark.parametrize(
    'name, random, reml',
    [
        ('lmer_reml', ('item', 'annotator'), True),
        ('lmer_ml', ('item', 'annotator'), False),
        ('lmer_reml_annotator_only', ('annotator',), True),
    ],
)
def test_golden(name, random, reml, synthetic, shared):
    """lme4 1.1-31 to 1e-6; degrees of freedom of lmerTest 3.1-3 to 1e-4 relative, p to 1e-3 (they go down to 1e-24)."""
    golden = json.loads((shared / 'data' / 'metrics' / 'human_R_results.json').read_text())[name]
    found = mixed.fit(
        synthetic['score'],
        {'model': synthetic['model']},
        {factor: synthetic[factor] for factor in random},
        fixed_levels={'model': MODELS},
        reml=reml,
    )
    assert found.reason is None and found.converged and found.n == 900
    assert found.coefficients == pytest.approx(golden['coef'], abs=1e-6)
    assert found.se == pytest.approx(golden['se'], abs=1e-6)
    assert found.sd == pytest.approx({k.replace('Residual', 'residual'): v for k, v in golden['sd'].items()}, abs=5e-6)
    assert found.log_likelihood == pytest.approx(golden['logLik'], abs=1e-7)
    assert found.df == pytest.approx(golden['df'], rel=1e-4)
    assert found.p == pytest.approx(golden['p'], rel=1e-3)
    assert np.sqrt(np.diag(found.cov)) == pytest.approx(list(found.se.values()))


def nested(seed=0, items=20, systems='abc', raters=6, per=3):
    """Scores of explanations, nested in items, by some of the raters."""
    draw = np.random.default_rng(seed)
    item, system, rater, score = [], [], [], []
    of_rater = draw.normal(0, 0.2, raters)
    for i in range(items):
        of_item = draw.normal(0, 0.3)
        for s in systems:
            of_explanation = draw.normal(0, 0.4)
            for r in draw.choice(raters, per, replace=False):
                item.append(i), system.append(s), rater.append(int(r))
                score.append(0.5 + 0.1 * (s == 'b') + of_item + of_explanation + of_rater[r] + draw.normal(0, 0.3))
    return score, {'system': system}, {'item': item, 'explanation': list(zip(item, system)), 'rater': rater}


def test_statsmodels_finds_the_same():
    """Crossed and nested factors together, which statsmodels takes as variance components of a single group."""
    import pandas as pd
    import statsmodels.formula.api as smf

    score, fixed, random = nested(seed=2, items=10)
    found = mixed.fit(score, fixed, random)
    frame = pd.DataFrame(
        {'score': score, 'system': fixed['system']} | {k: list(map(str, v)) for k, v in random.items()}
    )
    components = {factor: f'0 + C({factor})' for factor in random}
    model = smf.mixedlm('score ~ system', frame, groups=np.ones(len(score)), vc_formula=components, re_formula='0')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        theirs = model.fit(reml=True)
    assert found.log_likelihood == pytest.approx(theirs.llf, abs=1e-6)
    names = dict(zip(('Intercept', 'system[T.b]', 'system[T.c]'), found.coefficients))
    assert {names[k]: v for k, v in theirs.fe_params.items()} == pytest.approx(found.coefficients, abs=1e-5)
    assert {names[k]: v for k, v in theirs.bse_fe.items()} == pytest.approx(found.se, abs=1e-4)
    assert np.sqrt(theirs.vcomp) == pytest.approx([found.sd[k] for k in sorted(random)], abs=1e-3)


def test_balanced_and_without_random_effects_it_is_what_textbooks_say():
    """t of a linear model; in a balanced design by item the paired t-test, degrees of freedom included."""
    from scipy import stats

    draw = np.random.default_rng(1)
    effects = draw.normal(0, 1, 12)
    a, b = effects + draw.normal(0, 0.3, 12), effects + 0.2 + draw.normal(0, 0.3, 12)
    scores, system = [*a, *b], ['a'] * 12 + ['b'] * 12
    alone = mixed.fit(scores, {'s': system}, {})
    wanted = stats.ttest_ind(b, a)
    assert (alone.t['sb'], alone.p['sb'], alone.df['sb']) == pytest.approx((wanted.statistic, wanted.pvalue, 22))
    paired = mixed.fit(scores, {'s': system}, {'item': [*range(12)] * 2})
    wanted = stats.ttest_rel(b, a)
    assert (paired.t['sb'], paired.p['sb']) == pytest.approx((wanted.statistic, wanted.pvalue), rel=1e-4)
    assert paired.df['sb'] == pytest.approx(11, rel=1e-3)
    assert set(paired.modes['item']) == set(range(12))
    assert np.corrcoef(effects, list(paired.modes['item'].values()))[0, 1] > 0.9


def test_what_varies_no_more_than_noise_has_deviation_0():
    item = [i // 4 for i in range(40)]
    scores = [0.0, 1.0, 0.5, 0.5] * 10  # items are exactly alike
    found = mixed.fit(scores, {}, {'item': item})
    assert found.singular == ('item',) and found.sd['item'] == 0 and found.converged
    assert found.sd['residual'] == pytest.approx(np.std(scores, ddof=1))
    assert set(found.modes['item'].values()) == {0.0}


Y = [0.1, 0.5, 0.3, 0.9, 0.2, 0.8, 0.4, 0.7, 0.6]
S, ITEM = ['a', 'b', 'c'] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    'scores, fixed, random, reason',
    [
        ([], {}, {}, '0 scores for 2 parameters'),
        (Y[:4], {'s': S[:4]}, {'item': ITEM[:4]}, '4 scores for 5 parameters'),
        ([0.5] * 9, {'s': S}, {'item': ITEM}, 'all scores are equal'),
        (Y, {'s': ['a'] * 9}, {}, "s is 'a' everywhere"),
        (Y, {'s': S, 't': [x.upper() for x in S]}, {}, 's and t cannot be told apart'),
        (Y, {'s': S}, {'item': [7] * 9}, 'item is 7 everywhere'),
        (Y, {'s': S}, {'item': range(9)}, 'item is another in each of 9 rows'),
        (Y, {'s': S}, {'item': ITEM, 'x': list(map(str, ITEM))}, 'x and item split the rows alike'),
        (Y, {'s': S}, {'writer': S}, 'writer is known from s'),
        ([{'a': 0, 'b': 1, 'c': 1}[s] + i for s, i in zip(S, ITEM)], {'s': S}, {'item': ITEM}, 'explains every score'),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_has_a_reason_and_no_numbers(scores, fixed, random, reason):
    found = mixed.fit(scores, fixed, random)
    assert reason in found.reason
    assert not found.coefficients and not found.sd and found.log_likelihood is None and not found.converged


def test_raters_who_always_agree_leave_no_noise():
    """The likelihood rises for ever as the noise goes to 0; the search ends, and says why."""
    draw = np.random.default_rng(0)
    for values in (draw.normal(size=12), draw.integers(0, 4, 12) / 3):
        scores = np.repeat(values, 3)
        random = {'item': np.repeat(np.arange(4), 9).tolist(), 'explanation': np.repeat(np.arange(12), 3).tolist()}
        found = mixed.fit(scores, {'system': np.tile(np.repeat(list('abc'), 3), 4).tolist()}, random)
        assert found.reason == 'the model explains every score: no noise is left to compare with'


def test_wrong_input():
    for scores, fixed, random, levels, message in (
        ([*Y[:-1], math.nan], {}, {}, {}, 'score 8 of 9 is nan'),
        (Y, {'s': S[1:]}, {}, {}, 's: 8 values for 9'),
        (Y, {}, {'item': ITEM[1:]}, {}, 'item: 8 values for 9'),
        (Y, {'s': S}, {}, {'s': ['a', 'b']}, "s is 'c', wanted one of a, b"),
    ):
        with pytest.raises(ValueError, match=message):
            mixed.fit(scores, fixed, random, fixed_levels=levels)


def test_likelihood_ratio_is_of_models_without_restriction():
    score, fixed, random = nested(items=8)
    full, null = mixed.fit(score, fixed, random, reml=False), mixed.fit(score, {}, random, reml=False)
    chi2, df, p = mixed.likelihood_ratio(full, null)
    assert df == 2 and chi2 == pytest.approx(2 * (full.log_likelihood - null.log_likelihood)) and 0 < p < 1
    for one, other, message in (
        (mixed.fit(score, fixed, random), null, 'full model has a restricted likelihood'),
        (null, full, 'not nested'),
        (full, mixed.fit(score, {}, {}, reml=False), 'not nested'),
        (full, mixed.fit([0.5] * 9, {}, {}, reml=False), 'null model has no fit'),
    ):
        with pytest.raises(ValueError, match=message):
            mixed.likelihood_ratio(one, other)
