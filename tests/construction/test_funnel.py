import math

from judgements import FILTERS, judged, pair

from evil_jax.construction import funnel


def test_each_pair_is_counted_once_in_each_place():
    counts = funnel.Funnel(FILTERS)
    for each in (
        judged(pair(0), meaning=2.5, words=0),
        judged(pair(1), meaning=2.5, words=1),
        judged(pair(2), meaning=2.0, words=1),
        judged(pair(3), meaning=math.nan, words=0),
        judged(pair(4, 'entailment', 'dev'), words=1),
        judged(pair(5, 'entailment', 'dev'), words=0),
    ):
        counts.add(each)
    row = lambda n, e=0: {'contradiction': 0, 'neutral': n, 'entailment': e}
    assert counts.to_json() == {
        'before': {'train': row(4), 'dev': row(0, 2)},
        'kept': {'train': row(1), 'dev': row(0, 1)},
        'filters': {
            'meaning': {
                'seen': {'train': row(4)},
                'removed': {'train': row(2)},
                'alone': {'train': row(1)},
                'first': {'train': row(2)},
                'unmeasured': 1,
                'share': 0.5,
            },
            'words': {
                'seen': {'train': row(4), 'dev': row(0, 2)},
                'removed': {'train': row(2), 'dev': row(0, 1)},
                'alone': {'train': row(1), 'dev': row(0, 1)},
                'first': {'train': row(1), 'dev': row(0, 1)},
                'unmeasured': 0,
                'share': 0.5,
            },
        },
    }


def test_a_filter_that_looked_at_nothing_has_no_share():
    assert funnel.Funnel(FILTERS).to_json()['filters']['words']['share'] is None
