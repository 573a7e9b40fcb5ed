import random

from judgements import FILTERS, judged, pair

from evil_jax.construction import samples

CAPTIONS = {str(i): [f'caption {i}', 'A dog.'] for i in range(40)}


def drawn(judgements, n=3, seed=0):
    found = samples.Samples(FILTERS, n, seed)
    for each in judgements:
        found.add(each, CAPTIONS)
    return found.to_json()


def test_samples_do_not_depend_on_the_order_and_are_spread_over_all():
    scores = [[0.25, 0.5, 0.25], [0, 0.5, 0.5]]
    every = [judged(pair(i, ('neutral', 'entailment')[i % 2]), meaning=3, words=0, scores=scores) for i in range(200)]
    first = drawn(every)
    assert [row['label'] for row in first['meaning']] == ['neutral'] * 3 + ['entailment'] * 3 and first['words'] == []
    random.Random(0).shuffle(every)
    assert drawn(every) == first != drawn(every, seed=1)
    row = first['meaning'][0]
    assert row['detail'] == f'{row["id"]} has 3' and row['value'] == 3
    assert [each['scores'] for each in row['captions']] == scores
    # A larger sample has the smaller one's rows; all rows are drawn when there is room.
    ids = {row['id'] for row in drawn(every, n=10)['meaning']}
    assert {row['id'] for row in first['meaning']} < ids
    assert len(drawn(every, n=1000)['meaning']) == 200
    numbers = [int(i.split('.')[0]) for i in ids]
    assert min(numbers) < 60 and max(numbers) > 140
    assert drawn(every, n=0) == {'meaning': [], 'words': []}


def test_a_pair_that_two_filters_remove_is_in_both_and_one_without_a_model_has_no_scores():
    found = drawn([judged(pair(0, explanations=[]), meaning=3, words=1)])
    assert [rows[0]['id'] for rows in found.values()] == ['0.jpg#0r1n'] * 2
    assert found['words'][0]['explanation'] == ''
    assert found['words'][0]['captions'] == [{'text': 'caption 0', 'scores': None}, {'text': 'A dog.', 'scores': None}]
