"""Linear mixed models: R's numbers, a whole paper's ratings, and what intervals and tests are worth on simulated
studies. Seven minutes: `bash launch/test.sh --acceptance tests/acceptance/test_human_lmm.py`.
"""

import csv
import dataclasses
import json
import time

import numpy as np
import pytest

from evil_jax.human import mixed, power, presets, responses
from evil_jax.human.responses import Response
from evil_jax.human.study import RATINGS

pytestmark = pytest.mark.acceptance


def test_numbers_of_lme4_and_lmertest(shared, measured):
    folder = shared / 'data' / 'metrics'
    golden = json.loads((folder / 'human_R_results.json').read_text())
    with open(folder / 'human_ratings_synth.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    column = lambda name: [row[name] for row in rows]
    worst = lambda found, wanted: max(abs(found[name] - wanted[name]) for name in wanted)
    for name, wanted in golden.items():
        if not name.startswith('lmer'):
            continue
        random = {factor: column(factor) for factor in wanted['sd'] if factor != 'Residual'}
        levels = {'model': ['GT', 'PJ-X', 'FME', 'RVT', 'e-UG']}
        found = mixed.fit(
            [float(score) for score in column('score')],
            {'model': column('model')},
            random,
            fixed_levels=levels,
            reml=wanted['REML'],
        )
        measured(f'{name}: coefficients', '<=', 1e-4, worst(found.coefficients, wanted['coef']))
        measured(f'{name}: standard errors', '<=', 1e-4, worst(found.se, wanted['se']))
        measured(f'{name}: log-likelihood', '<=', 1e-4, abs(found.log_likelihood - wanted['logLik']))
        measured(f'{name}: deviations', '<=', 1e-4, worst({**found.sd, 'Residual': found.sd['residual']}, wanted['sd']))
        measured(f'{name}: degrees of freedom, relative', '<=', 1e-3, worst_ratio(found.df, wanted['df']))
        measured(f'{name}: p of t, relative', '<=', 1e-2, worst_ratio(found.p, wanted['p']))


def worst_ratio(found, wanted):
    return max(abs(found[name] / wanted[name] - 1) for name in wanted)


TRUE = {'A': -0.30, 'B': -0.25, 'C': -0.20, 'D': -0.10}  # less than gold
SD = {'item': 0.15, 'explanation': 0.15, 'rater': 0.08, 'item:rater': 0.13, 'residual': 0.2}


def paper(seed, examples=300, datasets=('esnlive', 'vqax', 'vcr'), true=None):
    """Scores of 4 models x 3 sets x 300 items x 3 raters, beside gold ones; raters are strangers to each other."""
    draw = np.random.default_rng(seed)
    true = TRUE if true is None else true
    drawn = {}
    effect = lambda kind, key: drawn.setdefault((kind, key), draw.normal(0, SD[kind]))
    rows = []
    for dataset in datasets:
        for system in true:
            # Systems are right on other examples, so that some are shared by all.
            for i in draw.choice(2 * examples, examples, replace=False):
                for rater in draw.choice(70, 3, replace=False):
                    for shown in (system, 'gt'):
                        item, who = (dataset, int(i)), (dataset, int(rater))
                        value = 0.75 + true.get(shown, 0) + effect('item', item) + effect('explanation', (item, shown))
                        value += effect('rater', who) + effect('item:rater', (item, who)) + draw.normal(0, 0.2)
                        rows.append((value, dataset, system, shown, item, who))
    return rows


def rating(value):
    return RATINGS[int(np.clip(np.floor(value * 4), 0, 3))]


def rated_paper():
    return [
        Response(dataset, shown, str(item[1]), system, '-'.join(map(str, who)), rating(value))
        for value, dataset, system, shown, item, who in paper(0)
    ]


def test_a_papers_ratings(measured):
    rows = rated_paper()
    start = time.perf_counter()
    found = presets.run('lmm', rows)
    measured('21,600 ratings, lmm with tests of all systems: minutes', '<=', 10, (time.perf_counter() - start) / 60)
    assert found['n'] == 21600 and found['reason'] is None
    order = sorted((row for row in found['coefficients'] if row['name'] in TRUE), key=lambda row: row['estimate'])
    measured('21,600 ratings: systems in the planted order', '==', 1, float([r['name'] for r in order] == list('ABCD')))
    measured('21,600 ratings: pairs told apart of 10', '>=', 9, sum(row['p_holm'] < 0.05 for row in found['contrasts']))


@pytest.mark.parametrize('name', ['clmm', *(name for name in presets.PRESETS if name.startswith('kayser2021'))])
def test_other_models_of_a_papers_ratings(measured, name):
    rows = rated_paper()
    start = time.perf_counter()
    found = presets.run(name, rows)
    minutes = (time.perf_counter() - start) / 60
    assert found['reason'] is None, found
    measured(f'21,600 ratings, {name} with tests of all systems: minutes', '<=', 10, minutes)
    pairs = [row for row in found['contrasts'] if 'gt' not in (row['a'], row['b'])]
    assert len(pairs) == 6
    measured(f'21,600 ratings, {name}: pairs of systems in the planted order', '==', 6,
             sum(TRUE[row['a']] < TRUE[row['b']] and row['estimate'] < 0 for row in pairs))  # fmt: skip


def test_intervals_and_tests_keep_their_word(measured):
    """40 studies in which A and B are alike: how often models call them different, and cover the truth."""
    studies, pairs, told, covered = 40, 0, dict.fromkeys(('with', 'without'), 0), 0
    true = {'A': -0.2, 'B': -0.2, 'C': -0.2, 'D': -0.1}
    for seed in range(studies):
        rows = paper(seed, examples=60, datasets=('x',), true=true)
        scores, _, _, shown, item, who = map(list, zip(*rows))
        random = {'item': item, 'explanation': list(zip(item, shown)), 'rater': who, 'item:rater': list(zip(item, who))}
        levels = {'system': ['gt', 'A', 'B', 'C', 'D']}
        for name, factors in (('with', random), ('without', {'item': item, 'rater': who})):
            fit = mixed.fit(scores, {'system': shown}, factors, fixed_levels=levels)
            for weights in ([0, 1, -1, 0, 0], [0, 1, 0, -1, 0], [0, 0, 1, -1, 0]):
                estimate = np.dot(weights, list(fit.coefficients.values()))
                error = np.sqrt(weights @ fit.cov @ weights)
                told[name] += abs(estimate / error) > 1.97
                pairs += name == 'with'
            if name == 'with':
                covered += abs(fit.coefficients['systemD'] + 0.1) < 1.97 * fit.se['systemD']
    # Two binomial deviations (pairs of one study are not independent).
    measured(f'systems that are alike: share of {pairs} pairs told apart at .05', '<=', 0.11, told['with'] / pairs)
    measured('a difference to gold: share of 95 % intervals with it', '>=', 0.88, covered / studies)
    measured(
        'systems that are alike, explanations taken as independent ratings: share told apart (why they are not)',
        '>=', told['with'] / pairs, told['without'] / pairs,
    )  # fmt: skip


def test_default_variances_are_those_of_published_ratings(shared, measured):
    folder = shared / 'data' / 'human_eval'
    rows = {
        name: responses.mark(responses.read([folder / f'ofax_large_{name}.csv'], 'ofax')) for name in power.DEFAULTS
    }
    rows['both'] = [row for some in rows.values() for row in some]
    for name, some in rows.items():
        found, wanted = (dataclasses.asdict(c) for c in (power.components(some), power.DEFAULTS.get(name, power.OTHER)))
        del found['source'], wanted['source']
        measured(
            f'variances of OFA-X ratings, {name}: to the default',
            '<=',
            2e-5,
            max(abs(found[k] - wanted[k]) for k in found),
        )
