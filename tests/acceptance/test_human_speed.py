"""Cumulative link mixed models as large as a whole benchmark's ratings: seconds, and whether planted effects return."""

import csv
import json
import time

import numpy as np
import pytest

from evil_jax.human import clmm

QUALITY = {'gt': 0.0, 'A': -0.4, 'B': -0.8, 'C': -1.2, 'D': -1.6}
THRESHOLDS = (-2.0, -0.8, 0.2)
DEVIATIONS = {'item': 1.0, 'rater': 0.6, 'dataset': 0.3}


def ratings_of_a_benchmark(pool, raters=220, seed=0):
    """4 systems x 3 data sets x 300 items x 3 raters x the system's and the gold explanation: 21,600 ratings.

    Each system's items are drawn from the `pool` that a data set has: 300 are the same for all.

    Returns:
      (ratings, systems, factor -> level in each row).
    """
    generator = np.random.default_rng(seed)
    item = generator.normal(0, DEVIATIONS['item'], (3, pool))
    rater = generator.normal(0, DEVIATIONS['rater'], raters)
    dataset = generator.normal(0, DEVIATIONS['dataset'], 3)
    systems, levels, predictor = [], [], []
    for d in range(3):
        for name in list(QUALITY)[1:]:
            for i in generator.choice(pool, 300, replace=False):
                for r in generator.choice(raters, 3, replace=False):
                    for system in (name, 'gt'):
                        systems.append(system)
                        levels.append(((d, int(i)), int(r), d))
                        predictor.append(QUALITY[system] + item[d, i] + rater[r] + dataset[d])
    ratings = np.searchsorted(THRESHOLDS, np.array(predictor) + generator.logistic(size=len(predictor)))
    return ratings.tolist(), systems, dict(zip(DEVIATIONS, map(list, zip(*levels))))


@pytest.mark.acceptance
@pytest.mark.parametrize('pool, factors', [(300, ('item', 'rater')), (1200, ('item', 'rater', 'dataset'))])
def test_clmm_of_a_whole_benchmark(measured, pool, factors):
    ratings, systems, random = ratings_of_a_benchmark(pool)
    random = {name: random[name] for name in factors}
    assert len(ratings) == 21600
    start = time.perf_counter()
    found = clmm.fit(ratings, {'system': systems}, random, fixed_levels={'system': tuple(QUALITY)})
    seconds = time.perf_counter() - start
    assert found.reason is None
    sizes = ', '.join(f'{len(set(levels)):,} {name}s' for name, levels in random.items())
    measured(f'CLMM of 21,600 ratings ({sizes}): seconds', '<=', 600, seconds)
    distance = max(abs(found.coefficients[f'system{s}'] - QUALITY[s]) / found.se[f'system{s}'] for s in 'ABCD')
    measured(f'CLMM of 21,600 ratings ({sizes}): planted effects, standard errors away', '<=', 3, distance)
    for name in ('item', 'rater'):
        distance = abs(found.sd[name] - DEVIATIONS[name]) / found.sd_se[name]
        measured(f'CLMM of 21,600 ratings ({sizes}): planted sd of {name}, errors away', '<=', 3, distance)


@pytest.mark.acceptance
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
def test_clmm_beside_r(measured, shared, name, factors, options):
    folder = shared / 'data' / 'metrics'
    with open(folder / 'human_ratings_synth.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    theirs = json.loads((folder / 'human_R_results.json').read_text())[name]
    start = time.perf_counter()
    found = clmm.fit(
        [int(row['rating']) for row in rows],
        {'model': [row['model'] for row in rows]},
        {factor: [row[factor] for row in rows] for factor in factors},
        fixed_levels={'model': ('GT', 'PJ-X', 'FME', 'RVT', 'e-UG')},
        **options,
    )
    measured(f'{name} of 900 ratings: seconds', '<=', 30, time.perf_counter() - start)
    values = found.thresholds | found.coefficients
    furthest = lambda ours, wanted: max(abs(ours[term] - value) for term, value in wanted.items())
    measured(f'{name}: coefficients beside R', '<=', 1e-4, furthest(values, theirs['coef']))
    measured(f'{name}: standard errors beside R', '<=', 1e-4, furthest(found.se, theirs['se']))
    measured(f'{name}: log-likelihood beside R', '<=', 1e-4, abs(found.log_likelihood - theirs['logLik']))
    if factors:
        measured(f'{name}: sd of random effects beside R', '<=', 1e-4, furthest(found.sd, theirs['sd']))
