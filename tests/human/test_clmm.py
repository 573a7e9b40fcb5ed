import csv
import json

import numpy as np
import pytest

from evil_jax.human import clmm
from evil_jax.human._clmm_likelihood import Likelihood
from evil_jax.human._clmm_links import LINKS

SYSTEMS = {'model': ('GT', 'PJ-X', 'FME', 'RVT', 'e-UG')}


@pytest.fixture(scope='module')
def synthetic(shared):
    """(ratings, systems, items, annotators, what R found for them)."""
    folder = shared / 'data' / 'metrics'
    with open(folder / 'human_ratings_synth.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    columns = [[row[name] for row in rows] for name in ('model', 'item', 'annotator')]
    golden = json.loads((folder / 'human_R_results.json').read_text())
    return [int(row['rating']) for row in rows], *columns, golden


def assert_as_r(found, coef, se, log_likelihood, sd, near):
    assert found.reason is None and found.converged and found.notes == ()
    values = found.thresholds | found.coefficients
    assert list(values) == list(coef) == list(found.names)
    for name in coef:
        assert values[name] == pytest.approx(coef[name], abs=near), name
        assert found.se[name] == pytest.approx(se[name], abs=near), name
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=near)
    assert found.sd == pytest.approx(sd, abs=near)


@pytest.mark.parametrize(
    'name, factors, options',
    [
        ('clm', (), {}),
        ('clmm_item_laplace', ('item',), {}),
        ('clmm_item_agq11', ('item',), {'quadrature': 11}),
        ('clmm_item_annotator_laplace', ('item', 'annotator'), {}),
        ('clmm_item_annotator_probit', ('item', 'annotator'), {'link': 'probit'}),
    ],
)
def test_as_r_ordinal(synthetic, name, factors, options):
    """clm and clmm of ordinal 2022.11-16. Their own search stops 2e-5 from the maximum with one Laplace factor."""
    ratings, systems, items, annotators, golden = synthetic
    random = {f: {'item': items, 'annotator': annotators}[f] for f in factors}
    found = clmm.fit(ratings, {'model': systems}, random, fixed_levels=SYSTEMS, **options)
    theirs = golden[name]
    assert_as_r(found, theirs['coef'], theirs['se'], theirs['logLik'], theirs['sd'], 3e-5)
    assert found.aic == pytest.approx(theirs['AIC'], abs=1e-5)
    for term, p in theirs['p'].items():
        assert found.p[term] == pytest.approx(p, rel=1e-2), term
    if name == 'clmm_item_annotator_laplace':
        null = clmm.fit(ratings, {}, random)
        assert null.log_likelihood == pytest.approx(golden['clmm_null']['logLik'], abs=1e-5)
        assert null.thresholds == pytest.approx(golden['clmm_null']['coef'], abs=3e-5)
        chi2, df, p = clmm.likelihood_ratio(found, null)
        assert (chi2, df) == (pytest.approx(golden['lrt']['chisq'], abs=1e-5), golden['lrt']['df'])
        assert p == pytest.approx(golden['lrt']['p'], rel=1e-5)


@pytest.mark.parametrize(
    'factors, quadrature, estimate, se, log_likelihood, sd',
    [
        # glmer(rating >= 3 ~ model + (1 | item) + (1 | annotator), family = binomial), lme4 1.1-31
        (
            ('item', 'annotator'), 1,
            [1.3796615094, -1.9658772415, -1.5027220931, -1.1906411548, -0.7044670827],
            [0.2609467140, 0.2642398474, 0.2580409092, 0.2561682275, 0.2582594063],
            -545.59409608, [1.002151103, 0.3948094356],
        ),
        # glmer(rating >= 3 ~ model + (1 | item), family = binomial, nAGQ = 25)
        (
            ('item',), 25,
            [1.3406456732, -1.9176201883, -1.4544392325, -1.1595564547, -0.7183864359],
            [0.2290612053, 0.2579273322, 0.2528568006, 0.2517494678, 0.2533143401],
            -550.080822402, [0.9723556219],
        ),
    ],
)  # fmt: skip
def test_two_categories_are_a_logistic_mixed_model(
    synthetic, factors, quadrature, estimate, se, log_likelihood, sd
):  # fmt: skip
    ratings, systems, items, annotators, _ = synthetic
    random = {f: {'item': items, 'annotator': annotators}[f] for f in factors}
    positive = [rating >= 3 for rating in ratings]
    found = clmm.fit(positive, {'model': systems}, random, fixed_levels=SYSTEMS, quadrature=quadrature)
    names = ('False|True', *found.coefficients)
    assert_as_r(
        found,
        dict(zip(names, [-estimate[0], *estimate[1:]])),
        dict(zip(names, se)),
        log_likelihood,
        dict(zip(factors, sd)),
        5e-5,
    )


def test_three_crossed_factors_and_their_modes(synthetic):
    """clmm(y ~ 1 + (1 | item) + (1 | annotator) + (1 | model), control = clmm.control(gradTol = 1e-8))."""
    ratings, systems, items, annotators, _ = synthetic
    found = clmm.fit(ratings, {}, {'model': systems, 'annotator': annotators, 'item': items})
    names = ('1|2', '2|3', '3|4')
    assert_as_r(
        found,
        dict(zip(names, [-1.4698532877, -0.2920344174, 0.8555548652])),
        dict(zip(names, [0.3591419347, 0.3555527310, 0.3565457850])),
        -1134.43130428,
        {'model': 0.6604806923, 'annotator': 0.4590905768, 'item': 0.9717704971},
        5e-5,
    )
    assert list(found.sd) == list(found.modes) == ['model', 'annotator', 'item']
    wanted = {'GT': 0.95845194, 'PJ-X': -0.89771637, 'FME': -0.32444822, 'RVT': -0.01045767, 'e-UG': 0.24828849}
    assert found.modes['model'] == pytest.approx(wanted, abs=5e-5)
    assert found.modes['annotator']['11'] == pytest.approx(-0.444155743, abs=5e-5)


def test_columns_of_numbers(synthetic):
    """clm(y ~ model + as.integer(annotator), link = 'probit'), where R's number of annotator 10 is 2 and so on."""
    ratings, systems, _, annotators, _ = synthetic
    place = {level: i + 1 for i, level in enumerate(sorted(set(annotators)))}
    columns = [[system == name for system in systems] for name in SYSTEMS['model'][1:]]
    matrix = np.array([*columns, [1e4 * place[a] + 1e7 for a in annotators]], float).T
    found = clmm.fit(ratings, (matrix, [*SYSTEMS['model'][1:], 'number']), link='probit')
    assert list(found.coefficients.values())[:4] == pytest.approx(
        [-1.00847538938, -0.70212568738, -0.51918522373, -0.41306765574], abs=1e-6
    )
    # The unit and the origin of a column change its coefficient, not the model.
    assert found.coefficients['number'] * 1e4 == pytest.approx(0.04321233118, abs=1e-7)
    assert found.se['number'] * 1e4 == pytest.approx(0.01068527322, abs=1e-7)
    assert found.thresholds['1|2'] - 1e7 * found.coefficients['number'] == pytest.approx(-1.00251249731, abs=1e-6)
    assert found.log_likelihood == pytest.approx(-1180.96433785, abs=1e-7)


@pytest.mark.parametrize('link', LINKS)
@pytest.mark.parametrize('factors, quadrature', [(0, 1), (1, 1), (1, 2), (1, 7), (3, 1)])
def test_the_gradient_is_that_of_the_value(link, factors, quadrature):
    generator = np.random.default_rng(factors * 10 + quadrature)
    sizes = [9, 4, 3][:factors]
    likelihood = Likelihood(
        LINKS[link],
        generator.integers(0, 4, 60),
        4,
        generator.normal(size=(60, 2)),
        [generator.integers(0, size, 60) for size in sizes],
        sizes,
        quadrature,
    )
    point = np.array([-1.5, 0.1, 0.8, 0.7, -0.4, 0.9, 0.3, 1.6][: 5 + factors])
    value = lambda p: likelihood.at(p[:3], p[3:5], p[5:])
    gradient = np.concatenate(value(point)[1])
    for i in range(len(point)):
        step = np.eye(len(point))[i] * 1e-5
        numeric = (value(point + step)[0] - value(point - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(numeric, rel=1e-7, abs=1e-7), i


@pytest.mark.parametrize('link, far', [('logit', 300.0), ('probit', 30.0)])
def test_tails_lose_nothing(link, far):
    """Far out, the log-probability is finite and its mirror image is the same."""
    upper, lower = np.array([-far, far + 1, np.inf, -far]), np.array([-far - 1, far, far, -np.inf])
    terms = LINKS[link](upper, lower)
    mirrored = LINKS[link](-lower, -upper)
    np.testing.assert_allclose(terms.log, mirrored.log, rtol=1e-12)
    np.testing.assert_allclose(terms.slope, -mirrored.slope, rtol=1e-10)
    moved = [LINKS[link](upper + step, lower + step) for step in (1e-4, -1e-4)]
    np.testing.assert_allclose((moved[0].log - moved[1].log) / 2e-4, terms.slope, rtol=1e-6)
    assert (terms.weight >= 0).all() and np.isfinite(terms.weight_upper + terms.weight_lower).all()


def simulated(seed=0, n=240, raters=6):
    generator = np.random.default_rng(seed)
    system = generator.integers(0, 2, n)
    ratings = np.searchsorted([-1, 0, 1], system + generator.logistic(size=n))
    return ratings.tolist(), [f's{s}' for s in system], (np.arange(n) % raters).tolist()


def test_no_variance_is_the_model_without_it():
    # Every rater gives the same ratings: they differ less than chance would have them.
    ratings, systems, _ = simulated(n=80)
    ratings, systems = ratings * 3, systems * 3
    raters = [i // 80 for i in range(240)]
    plain = clmm.fit(ratings, {'system': systems})
    for options in ({}, {'quadrature': 9}):
        found = clmm.fit(ratings, {'system': systems}, {'rater': raters}, **options)
        assert found.reason is None and found.sd == {'rater': 0.0} and found.sd_se == {'rater': None}
        assert found.modes == {'rater': {0: 0.0, 1: 0.0, 2: 0.0}}
        assert 'rater does not vary' in found.notes[0]
        assert found.coefficients == pytest.approx(plain.coefficients, abs=1e-8)
        assert found.se == pytest.approx(plain.se, abs=1e-8)
        assert found.aic == pytest.approx(plain.aic + 2)  # it was a parameter


def test_categories_that_nobody_chose():
    ratings, systems, _ = simulated()
    words = ['no', 'weak_no', 'weak_yes', 'yes']
    ratings = [(0, 1, 1, 3)[rating] for rating in ratings]
    found = clmm.fit([words[rating] for rating in ratings], {'system': systems}, levels=words)
    assert list(found.thresholds) == ['no|weak_no', 'weak_no|yes']
    assert found.notes == ('no rating is weak_yes: fitted without it',)
    assert found.counts['weak_yes'] == 0 and sum(found.counts.values()) == found.n == 240
    same = clmm.fit(ratings, {'system': systems})
    assert same.notes == () and same.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-9)


def test_what_has_no_estimate_says_why():
    ratings, systems, raters = simulated()
    # Of system s1, all ratings are the best one.
    best = [3 if system == 's1' else rating for rating, system in zip(ratings, systems)]
    for found, reason in [
        (clmm.fit([2] * 240, {'system': systems}, {'rater': raters}), 'all ratings are 2'),
        (
            clmm.fit(best, {'system': systems}, {'rater': raters}),
            'ratings are separated perfectly by systems1: no finite',
        ),
        (clmm.fit([s == 's1' for s in systems], {'system': systems}), 'perfectly by systems1'),
        (clmm.fit(ratings, {'system': ['a'] * 240}), "system is 'a' everywhere"),
        (clmm.fit(ratings, (np.ones((240, 1)), ['one'])), 'one is 1.0 everywhere'),
        (clmm.fit(ratings, {}, {'dataset': [0] * 240, 'rater': raters}), 'dataset is 0 everywhere'),
        (clmm.fit(ratings, {}, {'rater': raters, 'who': raters}), 'rater split the rows alike'),
        (clmm.fit([r > 2 for r in raters], {'system': systems}, {'rater': raters}), 'rater varies without bound'),
    ]:
        assert reason in found.reason and not found.converged
        assert found.log_likelihood is None and found.aic is None and found.cov.shape == (0, 0)
        assert found.thresholds == found.coefficients == found.se == found.p == found.sd == found.modes == {}
        with pytest.raises(ValueError, match='the full model has no fit: '):
            clmm.likelihood_ratio(found, found)


def test_another_reference_is_the_same_model():
    ratings, systems, _ = simulated()
    one = clmm.fit(ratings, {'system': systems})
    other = clmm.fit(ratings, {'system': systems}, fixed_levels={'system': ('s1', 's0')})
    assert list(one.coefficients) == ['systems1'] and list(other.coefficients) == ['systems0']
    assert other.coefficients['systems0'] == pytest.approx(-one.coefficients['systems1'], abs=1e-8)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-9)


@pytest.mark.parametrize(
    'change, message',
    [
        ({'ratings': []}, 'no ratings to fit'),
        ({'link': 'cloglog'}, 'link'),
        ({'quadrature': 0}, r'quadrature is 0, wanted 1 \(Laplace\) to 50 nodes'),
        ({'quadrature': 5, 'random': {}}, 'quadrature is 5, but there are 0 random factors'),
        ({'levels': (0, 1, 2)}, 'rating is 3, wanted one of 0, 1, 2'),
        ({'random': {'rater': [1, 2]}}, 'rater: 2 values for 240 ratings'),
        ({'fixed_levels': {'system': ['s0', 's2']}}, "system is 's1', wanted one of s0, s2"),
        ({'fixed': (np.full((240, 1), np.nan), ['gap'])}, 'gap has values that are not finite'),
        ({'fixed': (np.ones((3, 1)), ['x'])}, r'columns have shape \(3, 1\), wanted \(240, 1\)'),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    ratings, systems, raters = simulated()
    given = dict(ratings=ratings, fixed={'system': systems}, random={'rater': raters}) | change
    with pytest.raises(ValueError, match=message):
        clmm.fit(**given)


def test_models_that_are_not_nested():
    ratings, systems, _ = simulated()
    full, null = clmm.fit(ratings, {'system': systems}), clmm.fit(ratings)
    assert clmm.likelihood_ratio(full, null)[1] == 1
    with pytest.raises(ValueError, match='not nested: the full one has -1 parameters'):
        clmm.likelihood_ratio(null, full)
    with pytest.raises(ValueError, match='link of the full model is probit, of the null logit'):
        clmm.likelihood_ratio(clmm.fit(ratings, {'system': systems}, link='probit'), null)
    with pytest.raises(ValueError, match='n of the full model is 240, of the null 239'):
        clmm.likelihood_ratio(full, clmm.fit(ratings[1:]))
