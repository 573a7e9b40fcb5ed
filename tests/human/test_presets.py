import csv
import dataclasses
import json

import numpy as np
import pytest

from evil_jax.human import presets
from evil_jax.human.responses import Response
from evil_jax.human.study import RATINGS


def finite(document):
    """The document after JSON, which has no NaN."""
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.fixture(scope='module')
def synthetic(shared):
    with open(shared / 'data' / 'metrics' / 'human_ratings_synth.csv', newline='') as file:
        return [
            Response('synth', row['model'], row['item'], '', row['annotator'], RATINGS[int(row['rating']) - 1])
            for row in csv.DictReader(file)
        ]


def planted(datasets=('x', 'y'), systems=('A', 'B'), items=12, raters=6, per=3, seed=0):
    """Studies: system B is as good as gold, A is worse; raters differ. Gold is rated beside each system."""
    draw = np.random.default_rng(seed)
    rows = []
    lenient = draw.normal(0, 0.5, raters)
    for dataset in datasets:
        for i in range(items):
            of_item = draw.normal(0, 0.5)
            for beside in systems:
                for r in draw.choice(raters, per, replace=False):
                    for system in (beside, 'gt'):
                        value = 2.3 - 1.2 * (system == 'A') + of_item + lenient[r] + draw.normal(0, 0.7)
                        rating = RATINGS[int(np.clip(np.floor(value), 0, 3))]
                        rows.append(Response(dataset, system, f'i{i}', beside, f'r{r}', rating, correct=True))
    return rows


def test_golden(synthetic, shared):
    """The whole document against R's clmm and lmer, reference and pairs included."""
    golden = json.loads((shared / 'data' / 'metrics' / 'human_R_results.json').read_text())
    found = finite(presets.run('clmm', synthetic))
    wanted = golden['clmm_item_annotator_laplace']
    assert found['formula'] == 'rating ~ system + (1 | item) + (1 | rater), logit link'
    assert found['reference'] == 'gt' and found['n'] == 900 and found['reason'] is None
    assert found['sizes'] == {'system': 5, 'item': 60, 'rater': 12}
    for row in found['coefficients']:
        assert row['estimate'] == pytest.approx(wanted['coef'][f'model{row["name"]}'], abs=1e-4)
        assert row['se'] == pytest.approx(wanted['se'][f'model{row["name"]}'], abs=1e-4)
    assert [row['name'] for row in found['thresholds']] == ['no|weak_no', 'weak_no|weak_yes', 'weak_yes|yes']
    assert found['thresholds'][2]['estimate'] == pytest.approx(wanted['coef']['3|4'], abs=1e-4)
    assert found['sd'] == pytest.approx({'item': wanted['sd']['item'], 'rater': wanted['sd']['annotator']}, abs=1e-4)
    assert found['likelihood_ratio'] == pytest.approx(
        {'chi2': golden['lrt']['chisq'], 'df': 4, 'p': golden['lrt']['p']}, rel=1e-3
    )
    pairs = {(row['a'], row['b']): row for row in found['contrasts']}
    assert len(pairs) == 10 and ('RVT', 'e-UG') in pairs
    estimate = wanted['coef']['modelRVT'] - wanted['coef']['modele-UG']
    assert pairs['RVT', 'e-UG']['estimate'] == pytest.approx(estimate, abs=1e-4)
    assert pairs['e-UG', 'gt']['p'] == pytest.approx(wanted['p']['modele-UG'], rel=1e-2)
    assert all(row['p'] <= row['p_holm'] <= 1 for row in pairs.values())


@pytest.mark.parametrize('name', presets.PRESETS)
def test_every_model_finds_what_was_planted(name):
    rows = planted()
    found = finite(presets.run(name, rows))
    assert found['reason'] is None
    (pair,) = [row for row in found['contrasts'] if (row['a'], row['b']) == ('A', 'B')]
    assert pair['estimate'] < 0 and pair['p_holm'] < 0.05 and pair['ci95'][1] < 0
    assert found['likelihood_ratio']['p'] < 0.01
    gold = presets.PRESETS[name].gold
    assert found['reference'] == ('gt' if gold else 'A')
    assert len(found['contrasts']) == (3 if gold else 1)
    if gold:
        (same,) = [row for row in found['contrasts'] if (row['a'], row['b']) == ('B', 'gt')]
        assert same['ci95'][0] < 0 < same['ci95'][1]
    # Ours allow for the difficulty of data sets; the paper's take it as random.
    names = [row['name'] for row in found['coefficients']]
    assert ('dataset y' in names) == (not name.startswith('kayser'))
    # Which model takes several ratings of one explanation for independent is told.
    assert any('taken for independent' in note for note in found['notes']) == (
        name in ('clmm', 'kayser2021_lmm', 'kayser2021_positive')
    )


def test_neither_order_nor_ratings_that_do_not_count_change_a_number():
    rows = planted()
    junk = [dataclasses.replace(row, rating='no', reason='answered otherwise') for row in rows[:5]]
    junk += [dataclasses.replace(row, system='trusted', beside='trusted') for row in rows[:5]]
    junk += [dataclasses.replace(row, rating='') for row in rows[:5]]
    wanted, found = presets.run('kayser2021_positive', rows), presets.run('kayser2021_positive', [*junk, *rows[::-1]])
    assert found['n'] == wanted['n'] == len(rows)
    for one, other in zip(found['contrasts'], wanted['contrasts'], strict=True):
        assert (one['estimate'], one['se']) == pytest.approx((other['estimate'], other['se']), rel=1e-3)


def test_medians_are_exact_categories():
    """Of 2 raters a median may lie between two ratings: it is a category of its own; 3 raters have a middle one."""
    rows = []
    for i, ratings in enumerate([('yes', 'no'), ('yes', 'yes'), ('no', 'no'), ('weak_no', 'no', 'yes')] * 4):
        for system in 'AB':
            rows += [Response('x', system, f'{i}', system, f'r{k}', r) for k, r in enumerate(ratings)]
    found = finite(presets.run('kayser2021_clmm', rows))
    assert found['n'] == 32 and 'rater' not in found['sizes']
    assert [row['name'] for row in found['thresholds']] == [
        'no|weak_no', 'weak_no|weak_no/weak_yes', 'weak_no/weak_yes|yes'
    ]  # fmt: skip
    assert found['contrasts'][0]['estimate'] == pytest.approx(0, abs=1e-6)


def test_factors_that_cannot_be_told_apart_are_left_out_and_named():
    one = planted(datasets=('x',))
    found = presets.run('kayser2021_lmm', one)
    assert found['formula'] == 'score ~ system' and found['notes'][0] == 'one data set: no effect of it'
    assert 'taken for independent' in found['notes'][1]
    assert found['sd'].keys() == {'residual'} and found['reason'] is None
    nobody = [dataclasses.replace(row, rater='') for row in one]
    found = presets.run('lmm', nobody)
    assert found['sizes'].keys() == {'system', 'item', 'explanation'}
    assert found['notes'][0] == 'raters are not known: no random effect of them'
    paged = [dataclasses.replace(row, rater='', assignment=row.rater) for row in one]
    found = presets.run('lmm', paged)
    assert found['sizes']['rater'] == 6 and 'each of their pages counts as a rater' in found['notes'][0]
    # Numbers of assignments return in other tables: there they are of other people.
    again = [dataclasses.replace(row, rater='', assignment=row.rater) for row in planted(datasets=('x', 'y'))]
    assert presets.run('kayser2021_positive', again)['sizes']['rater'] == 12
    # A single rating of each explanation: it cannot be told from noise.
    seen, single = set(), []
    for row in planted(datasets=('x',), items=20):
        if row.system != 'gt' and (row.item, row.system) not in seen:
            seen.add((row.item, row.system))
            single.append(row)
    found = presets.run('lmm', single)
    assert 'one rating of each explanation: no random effect of it' in found['notes'] and found['reason'] is None


def test_studies_that_compare_nothing_say_why():
    rows = planted(datasets=('x',), systems=('A',))
    for name, reason in (
        ('kayser2021_lmm', 'wanted two systems, there is A; gold explanations are none of them'),
        ('kayser2021_clmm', 'wanted two systems'),
    ):
        found = finite(presets.run(name, rows))
        assert found['contrasts'] == [] and found['reference'] is None
        assert found['reason'].startswith(reason)
    apart = [row for row in planted() if row.system != 'gt' and (row.dataset == 'x') == (row.system == 'A')]
    assert presets.run('lmm', apart)['reason'] == 'systems cannot be compared: they have no data set in common'
    same = [dataclasses.replace(row, rating='yes') for row in planted()]
    for name in presets.PRESETS:
        found = finite(presets.run(name, same))
        assert 'all ' in found['reason'] and found['coefficients'] == []
    assert presets.run('clmm', [])['reason'] == 'wanted two systems, there is none'


def test_wrong_input():
    with pytest.raises(ValueError, match=r"model of ratings is 'clm'\. Did you mean 'clmm'\?"):
        presets.run('clm', [])
    with pytest.raises(ValueError, match=r"f\.csv:2: rating is 'good', wanted one of no"):
        presets.run('lmm', [Response('x', 'A', 'i', 'A', 'r', 'good', source='f.csv:2')])
