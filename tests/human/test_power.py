import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from evil_jax.human import power, responses
from evil_jax.human.responses import Response
from evil_jax.human.study import RATINGS

PARTS = power.Components(item=0.03, explanation=0.012, rater=0.01, together=0.015, residual=0.045, source='made up')


def studies(difference, parts, items, raters, same_items, number, seed):
    """Means of items [number, 2, items] of simulated studies whose raters are strangers to each other."""
    draw = np.random.default_rng(seed)
    normal = lambda variance, *shape: draw.normal(0, np.sqrt(variance), (number, *shape))
    item = normal(parts.item, 1 if same_items else 2, items)
    noise = parts.rater + parts.together + parts.residual
    scores = normal(noise, 2, items, raters).mean(-1) + normal(parts.explanation, 2, items) + item
    return scores + np.array([difference, 0])[:, None]


@pytest.mark.parametrize(
    'items, raters, difference, same_items, alpha',
    [(60, 3, 0.07, True, 0.05), (60, 3, 0.07, False, 0.05), (12, 1, 0.25, True, 0.01), (5, 5, 0.2, False, 0.05)],
)
def test_power_is_the_share_of_simulated_studies_that_find_it(items, raters, difference, same_items, alpha):
    number = 4000
    test = stats.ttest_rel if same_items else stats.ttest_ind
    for true in (difference, 0):
        scores = studies(true, PARTS, items, raters, same_items, number, seed=items)
        apart = scores.mean(-1) @ [1, -1]
        found = (test(scores[:, 0], scores[:, 1], axis=1).pvalue < alpha).mean()
        wanted = power.power(true, PARTS, items, raters, same_items=same_items, alpha=alpha)
        assert found == pytest.approx(wanted, abs=4 * np.sqrt(wanted * (1 - wanted) / number))
        error = power.standard_error(PARTS, items, raters, same_items=same_items)
        assert apart.std() == pytest.approx(error, rel=4 / np.sqrt(2 * number))
    assert power.power(0, PARTS, items, raters, same_items=same_items, alpha=alpha) == pytest.approx(alpha)


def test_the_least_number_of_items_is_enough_and_one_less_is_not():
    for raters, options in ((1, {}), (3, {'same_items': False}), (3, {'alpha': 0.01, 'comparisons': 6})):
        for wanted in (0.8, 0.95):
            least = power.items_needed(0.05, PARTS, raters, wanted, **options)
            assert power.power(0.05, PARTS, least, raters, **options) >= wanted
            assert power.power(0.05, PARTS, least - 1, raters, **options) < wanted
            smallest = power.detectable(PARTS, least, raters, wanted, **options)
            assert power.power(smallest, PARTS, least, raters, **options) == pytest.approx(wanted, abs=1e-4)
            assert smallest <= 0.05
    assert power.items_needed(1e-6, PARTS, 3) is None
    assert power.items_needed(50, PARTS, 3) == 2


def test_power_of_very_many_items_is_a_number():
    # scipy 1.17 has none here: NaN.
    parts = power.Components(0.1, 0.1, 0.1, 0.1, 0.2, 'x')
    found = power.power(0.01, parts, 100_000, 50, same_items=False, alpha=0.001)
    assert found == pytest.approx(power.power(0.01, parts, 100_001, 50, same_items=False, alpha=0.001), abs=1e-4)


def test_more_raters_help_less_than_more_items():
    error = lambda items, raters: power.standard_error(PARTS, items, raters)
    assert error(400, 1) < error(200, 2) < error(100, 4) < error(100, 1)
    assert error(100, 10**6) == pytest.approx(np.sqrt(2 * PARTS.explanation / 100), rel=1e-3)


def test_defaults_are_those_of_the_published_ratings(shared):
    """Of one data set; the others in tests/acceptance."""
    path = shared / 'data' / 'human_eval' / 'ofax_large_esnlive.csv'
    found = dataclasses.asdict(power.components(responses.mark(responses.read([path], 'ofax'))))
    wanted = dataclasses.asdict(power.DEFAULTS['esnlive'])
    assert found.pop('source').split(', ')[-1] == wanted.pop('source').split(', ')[-1]
    assert found == pytest.approx(wanted, abs=2e-5)


def rated(systems, raters, items=150, seed=0):
    """Explanations of wide and narrow quality, rated by raters of their own."""
    draw = np.random.default_rng(seed)
    rows = []
    for i in range(items):
        of_item = draw.normal(0, 0.8)
        for system in systems:
            value = 1.5 + of_item + draw.normal(0, 0.6)
            for rater in draw.choice(20, raters, replace=False):
                rating = RATINGS[int(np.clip(round(value + draw.normal(0, 0.7)), 0, 3))]
                rows.append(Response('x', system, f'{i}', system, f'r{rater}', rating))
    return rows


def test_components_are_of_scores_and_sum_to_their_variance():
    rows = rated('AB', 3)
    found = power.components(rows)
    parts = dataclasses.asdict(found)
    assert parts.pop('source') == 'these ratings, n = 900'
    assert sum(parts.values()) == pytest.approx(np.var([RATINGS.index(row.rating) / 3 for row in rows]), rel=0.1)
    # About 0.8^2, 0.6^2 and 0.7^2 in thirds, less what the ends of the scale cut off.
    assert found.item > found.explanation > 0.01 and 0.03 < found.residual + found.together < 0.06
    assert found.rater < 0.003
    # What the formula says of a study like this one is what its items' means say.
    means = {}
    for row in rows:
        means.setdefault((row.item, row.system), []).append(RATINGS.index(row.rating) / 3)
    gaps = [np.mean(means[f'{i}', 'A']) - np.mean(means[f'{i}', 'B']) for i in range(150)]
    assert power.standard_error(found, 150, 3) == pytest.approx(np.std(gaps, ddof=1) / np.sqrt(150), rel=0.05)
    # One system: what is the item's and what the explanation's cannot be told; the worse is taken.
    alone = power.components([row for row in rows if row.system == 'A'])
    assert alone.item == 0 and alone.explanation == pytest.approx(found.item + found.explanation, rel=0.3)


def test_ratings_that_tell_no_variance():
    for rows, reason in (
        (rated('AB', 1), 'no explanation has two ratings'),
        ([], '0 scores for'),
        (rated('A', 2, items=2)[:2], '2 scores for'),
    ):
        with pytest.raises(ValueError, match=rf'pilot\.csv: variances of ratings cannot be told.*{reason}'):
            power.components(rows, 'pilot.csv')


def test_plan_is_json_that_answers():
    found = json.loads(json.dumps(power.plan(0.05, power.DEFAULTS['esnlive']), allow_nan=False))
    assert [row['raters'] for row in found['needed']] == [1, 2, 3, 5]
    for row in found['needed']:
        assert row['ratings'] == 2 * row['items'] * row['raters']
    by = {(row['items'], row['raters']): row for row in found['table']}
    assert len(by) == 24
    # The paper's 300 items and 3 raters tell systems apart that differ by four points.
    assert 0.03 < by[300, 3]['detectable'] < 0.05 < by[100, 3]['detectable']
    assert by[300, 3]['power'] > 0.8 > by[100, 3]['power']
    hopeless = power.plan(1e-6, PARTS, items=(10,), raters=(1,))
    assert hopeless['needed'] == [{'raters': 1, 'items': None, 'ratings': None}]


def test_wrong_input():
    for call, message in (
        (lambda: power.power(0.1, PARTS, 1, 3), '1 items and 3 raters, wanted two items'),
        (lambda: power.power(0.1, PARTS, 10, 0), '10 items and 0 raters'),
        (lambda: power.power(0.1, PARTS, 10, 3, alpha=0), 'alpha is 0 for 1 comparisons'),
        (lambda: power.items_needed(0.1, PARTS, 3, 1.0), 'power is 1.0, wanted more than alpha and less than 1'),
        (lambda: power.items_needed(0.1, PARTS, 3, 0.04), 'power is 0.04'),
        (lambda: power.detectable(PARTS, 10, 3, 1.0), 'power is 1.0'),
    ):
        with pytest.raises(ValueError, match=message):
            call()
