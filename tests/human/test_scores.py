import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from evil_jax.human import _twoway, responses, scores, summary
from evil_jax.human.responses import Response
from evil_jax.human.study import RATINGS

change = dataclasses.replace


def _page(rater, item, own, gold, *, system='A', dataset='vqax', **fields):
    """The two explanations of an item as a rater saw them; ratings in thirds."""
    own_row = Response(
        dataset, system, item, system, rater, RATINGS[own], assignment=f'{rater}-1', correct=True, seconds=60.0,
        explanation='own', image_id=f'{item}.jpg',
    )  # fmt: skip
    gold_row = change(own_row, system='gt', rating=RATINGS[gold], explanation='gold')
    return [change(row, **fields) for row in (own_row, gold_row)]


def _small():
    return responses.mark(
        [
            *_page('r1', '1', 3, 3), *_page('r2', '1', 2, 3), *_page('r3', '1', 0, 2),
            *_page('r1', '2', 3, 2), *_page('r2', '2', 1, 1),
            *_page('r1', '3', 3, 3, correct=False),
            *_page('r1', '1', 1, 0, system='B', assignment='r1-2'),
            change(_page('r4', 'k', 3, 0)[0], system='trusted', beside='trusted', reason='failed check'),
            *_page('r4', '4', 3, 0),
        ]
    )  # fmt: skip


def test_scores_of_a_small_study():
    found = scores.summary(_small(), s_t={('vqax', 'A'): 0.5}, resamples=20)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found['counts'] == {
        'ratings': 17, 'counted': 12, 'left_out': {'answered otherwise': 2, 'failed check': 3},
    }  # fmt: skip
    own, other, gold = found['scores']
    assert (own['system'], own['items'], own['lost'], own['ratings'], own['raters'], own['pictures']) == (
        'A', 2, 2, 5, 3, 2
    )  # fmt: skip
    assert own['s_e'] == pytest.approx((5 / 9 + 4 / 6) / 2)
    assert own['s_e_ratings'] == pytest.approx(9 / 15)
    assert own['s_e_median'] == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert own['s_e_majority'] == pytest.approx((1 + 0.5) / 2)
    assert (own['s_t'], own['s_o']) == (0.5, pytest.approx(0.5 * own['s_e']))
    assert own['s_o_ci95'] == pytest.approx([end / 2 for end in own['s_e_ci95']])
    assert own['shares'] == {'no': 0.2, 'weak_no': 0.2, 'weak_yes': 0.2, 'yes': 0.4}
    # At least as good as the gold one: yes, no, no of the first item, and both of the second.
    compared = own['comparative']
    assert compared['value'] == pytest.approx((1 / 3 + 1) / 2)
    assert (compared['pairs'], compared['items']) == (5, 2)
    assert [compared[name] for name in ('better', 'same', 'worse')] == [0.2, 0.4, 0.4]
    # The gold explanation of item 1 counts once beside A and once beside B.
    assert (gold['system'], gold['items'], gold['ratings'], gold['lost']) == ('gt', 3, 6, 2)
    assert gold['s_e'] == pytest.approx((8 / 9 + 3 / 6 + 0) / 3)
    assert gold['s_t'] is gold['comparative'] is None
    assert (other['s_t'], other['s_o']) == (None, None) and other['s_e_ci95'] is None
    differences = {(row['a'], row['b']): row for row in found['differences']}
    assert list(differences) == [('A', 'B'), ('A', 'gt'), ('B', 'gt')]
    assert differences['A', 'gt']['difference'] == pytest.approx(own['s_e'] - (8 / 9 + 3 / 6) / 2)
    assert differences['B', 'gt']['difference'] == pytest.approx(1 / 3)
    assert differences['A', 'B']['pictures_shared'] == 1
    assert [row['name'] for row in found['agreement']] == list(summary.AGREEMENT)


def test_shortcomings_and_preferences_are_shares_of_ratings():
    rows = _page('r1', '1', 3, 3, preference='this') + _page('r2', '1', 1, 1, shortcomings=('confusing_sentence',))
    own, gold = scores.summary(responses.mark(rows), resamples=0)['scores']
    assert own['shortcomings'] == {
        'incorrect_description': 0, 'insufficient_justification': 0, 'confusing_sentence': 0.5,
    }  # fmt: skip
    assert own['preference'] == {'ratings': 1, 'this': 1, 'other': 0, 'none': 0} and gold['preference'] is None
    assert own['s_e_ci95'] is None and own['comparative']['ci95'] is None


def test_raters_beside_each_other():
    first, *others = scores.summary(_small(), resamples=0)['raters']
    assert (first['rater'], first['pages'], first['ratings'], first['left_out'], first['seconds']) == (
        'r1',
        2,
        6,
        2,
        60,
    )
    assert first['wrong'] == pytest.approx(1 / 4) and first['checks'] == 0
    # Own less the others': 3 - 1 and 3 - 2.5 beside two, 3 - 1 and 2 - 1 beside one; nobody else rated B.
    assert first['bias'] == pytest.approx((2 + 0.5 + 2 + 1) / 4 / 3)
    assert first['agreement'] == pytest.approx(1 - (1 + 3 + 0 + 1 + 2 + 1) / 6 / 3)
    last = others[-1]
    assert (last['rater'], last['ratings'], last['left_out'], last['checks'], last['checks_failed']) == (
        'r4',
        0,
        2,
        1,
        1,
    )
    assert last['mean'] is last['bias'] is last['agreement'] is None


def test_overall_is_the_mean_of_data_sets():
    rows = [
        *_page('r1', '1', 3, 3), *_page('r1', '2', 3, 3), *_page('r1', '1', 0, 0, dataset='vcr', assignment='v'),
        *_page('r2', '9', 1, 3, system='B'),
    ]  # fmt: skip
    found = scores.summary(responses.mark(rows), s_t={('vqax', 'A'): 1, ('vcr', 'A'): 0}, resamples=10)
    every = [row for row in found['scores'] if row['dataset'] == 'all']
    assert [(row['system'], row['datasets'], row['items']) for row in every] == [('A', 2, 3), ('gt', 2, 4)]
    own = every[0]
    assert (own['s_e'], own['s_t'], own['s_o'], own['comparative']['value']) == (0.5, 0.5, 0.5, 1)
    assert own['shares']['yes'] == 0.5 and own['comparative']['pairs'] == 3
    assert [(row['a'], row['b']) for row in found['differences'] if row['dataset'] == 'all'] == [('A', 'gt')]
    assert {row['dataset'] for row in found['agreement']} == {'vqax', 'vcr', 'all'}


def test_without_ratings_the_reasons_are_told():
    with pytest.raises(ValueError, match='no rating counts: there are none'):
        scores.summary([])
    with pytest.raises(ValueError, match='no rating counts: 2 rejected'):
        scores.summary(responses.mark(_page('r', '1', 1, 1, status='rejected')))


def test_gold_explanations_without_a_neighbour_are_compared_with_all():
    rows = [change(row, beside=row.system, rater='') for row in _page('r', '1', 3, 0) + _page('s', '2', 0, 0)]
    found = scores.summary(responses.mark(rows), resamples=5)
    assert found['differences'][0]['difference'] == pytest.approx(0.5)
    assert found['raters'] == [] and found['scores'][0]['raters'] == 0
    # A rater who is known is compared with himself.
    rows = [change(row, rater='r') for row in rows]
    assert scores.summary(responses.mark(rows), resamples=0)['scores'][0]['comparative']['better'] == 0.5


def test_equal_opinions_are_equal_numbers():
    """Thirds are no exact floats: summed as such, these means are 0.8822222222222225 and 0.8822222222222222."""
    opinions = [(3, 2), (2, 3, 3), (3, 3), (1, 3, 3, 3, 2), (3, 3, 2)]
    rows = [
        _page(f'r{i}', str(item), score, 3, system=system)[0]
        for system, order in (('A', opinions), ('B', opinions[::-1]))
        for item, ratings in enumerate(order) for i, score in enumerate(ratings)
    ]  # fmt: skip
    found = scores.summary(responses.mark(rows), resamples=0)
    exact = sum(Fraction(sum(ratings), 3 * len(ratings)) for ratings in opinions) / len(opinions)
    assert [row['s_e'] for row in found['scores']] == [float(exact)] * 2
    assert found['differences'][0]['difference'] == 0


def test_a_page_is_of_one_person_also_where_it_is_not_known_who():
    known = responses.mark(
        _page('r', '1', 3, 0) + _page('s', '1', 0, 0) + _page('r', '2', 1, 2) + _page('t', '2', 2, 3)
    )
    wanted, found = (
        scores.summary(rows, resamples=50)['scores'] for rows in (known, [change(row, rater='') for row in known])
    )
    for one, other in zip(found, wanted, strict=True):
        assert one | {'raters': 0} == other | {'raters': 0}
    assert found[0]['comparative']['pairs'] == 4


@pytest.mark.parametrize('name, n, own, gold', [('esnlive', 1104, 0.8572, 0.8502), ('vqax', 1462, 0.8953, 0.8985)])
def test_scores_of_ofax(shared, name, n, own, gold):
    rows = responses.mark(responses.read(shared / 'data' / 'human_eval' / f'ofax_large_{name}.csv', 'ofax'))
    first, second = scores.summary(rows, resamples=0)['scores']
    assert (first['ratings'], second['ratings']) == (n, n)
    assert first['s_e_ratings'] == pytest.approx(own, abs=5e-5)
    assert second['s_e_ratings'] == pytest.approx(gold, abs=5e-5)


def test_what_it_costs():
    assert scores.cost(30, 3, 1.0, 0.2) == pytest.approx({'assignments': 90, 'reward': 90, 'fee': 18, 'total': 108})
    rows = _small() + _page('r9', '1', 1, 1, status='rejected')
    assert scores.paid(rows, 0.5, 0)['assignments'] == 5


def test_disagreements_to_look_at():
    rows = responses.mark(
        [
            *_page('r1', '1', 3, 3), *_page('r2', '1', 0, 3), *_page('r1', '2', 3, 0), *_page('r2', '2', 3, 1),
            *_page('r1', '3', 2, 2, shortcomings=('confusing_sentence',)), *_page('r2', '3', 1, 3, correct=False),
            *_page('r1', '4', 2, 1), *_page('r2', '4', 1, 1),
        ]
    )  # fmt: skip
    found = scores.disagreements(rows, 5)
    assert [(row['why'], row['item']) for row in found] == [
        ('spread', '1'),
        ('spread', '4'),
        ('better', '2'),
        ('better', '4'),
    ]
    assert found[2] == {
        'why': 'better', 'dataset': 'vqax', 'system': 'A', 'item': '2', 'image_id': '2.jpg', 'explanation': 'own',
        'mean': 1.0, 'gold_explanation': 'gold', 'gold_mean': pytest.approx(1 / 6),
        'ratings': [
            {'rater': 'r1', 'rating': 'yes', 'shortcomings': [], 'gold_rating': 'no', 'gold_shortcomings': []},
            {'rater': 'r2', 'rating': 'yes', 'shortcomings': [], 'gold_rating': 'weak_no', 'gold_shortcomings': []},
        ],
    }  # fmt: skip
    assert len(scores.disagreements(rows, 1)) == 2


def _drawn(generator, items, raters, item_sd, rater_sd, rest_sd):
    """Ratings with a true mean of 0, three raters an item."""
    own, bias = generator.normal(0, item_sd, items), generator.normal(0, rater_sd, raters)
    for i in range(items):
        for rater in generator.choice(raters, 3, replace=False):
            yield 'g', i, i, rater, own[i] + bias[rater] + generator.normal(0, rest_sd)


@pytest.mark.parametrize('rater_sd', [0.0, 0.15])
def test_intervals_hold_the_truth_as_often_as_they_say(rater_sd):
    # Drawing items alone holds it in half of the studies where raters differ so; the pigeonhole bootstrap alone in 99 %
    # where they do not.
    generator = np.random.default_rng(3)
    ends = [
        _twoway.Means(_drawn(generator, 60, 15, 0.2, rater_sd, 0.3), resamples=200, seed=seed).interval({'g': 1}, -9, 9)
        for seed in range(120)
    ]
    held = np.mean([low <= 0 <= high for low, high in ends])
    assert 0.89 <= held <= 0.985


def test_intervals_of_differences_know_what_is_shared():
    generator = np.random.default_rng(5)
    item, bias = generator.normal(0, 0.3, 50), generator.normal(0, 0.3, 9)
    rows = [
        (group, (group, i), i, rater, 0.5 + item[i] + bias[rater] + add)
        for i in range(50) for rater in generator.choice(9, 3, replace=False) for group, add in (('a', 0.1), ('b', 0))
    ]  # fmt: skip
    means = _twoway.Means(rows, resamples=100)
    low, high = means.interval({'a': 1, 'b': -1}, low=-1)
    assert low == pytest.approx(0.1) and high == pytest.approx(0.1)
    low, high = means.interval({'a': 1})
    assert high - low > 0.2
    assert means.interval({'a': 100}) == [1, 1]  # within what is possible
    alike = [('g', 1, 1, 'r', 0.5), ('g', 2, 2, 'r', 0.5)]
    assert _twoway.Means(alike, resamples=9).interval({'g': 1}) == [0.5, 0.5]
    assert _twoway.Means(alike, resamples=0).interval({'g': 1}) is None
    assert _twoway.Means(alike[:1], resamples=9).interval({'g': 1}) is None
    # Of few pictures all resamples may lie on one side of what they are resamples of.
    few = [('g', 1, 1, 'r', 0.0), ('g', 2, 2, 'r', 1.0), ('g', 3, 2, 's', 1.0)]
    for seed in range(20):
        low, high = _twoway.Means(few, resamples=2, seed=seed).interval({'g': 1})
        assert low <= 2 / 3 <= high
