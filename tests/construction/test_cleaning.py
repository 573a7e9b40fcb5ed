import math

import judgements
import numpy as np
import pytest

from evil_jax import config as config_lib
from evil_jax.construction import cleaning, filters

CAPTIONS = {'0': ['a dog', 'the dog', 'no cat', 'a pet', 'an animal'], '1': ['one caption', 'two']}


@pytest.fixture
def all_filters():
    return filters.make(config_lib.base().construct)


def says_entailment(text_pairs):
    return np.tile(np.array([0.1, 0.2, 0.7], np.float32), (len(text_pairs), 1))


def test_all_filters_are_measured_and_the_first_that_removes_is_named(all_filters):
    pairs = [
        judgements.pair(0, explanations=['The sentence says so.']),  # of picture 0
        judgements.pair(1, split='dev'),
        judgements.pair(5, premise='', hypothesis='Nothing.'),  # of picture 1
        judgements.pair(10, hypothesis='Something else.'),  # of a picture without captions
    ]
    removed, other_split, scaled, unknown = cleaning.clean(pairs, all_filters, CAPTIONS, says_entailment)
    assert removed.values == pytest.approx(
        {'false_neutral': 3.5, 'keywords': 1, 'similarity': 0.8, 'uncertainty': 0}, abs=1e-6
    )
    assert removed.removed_by == 'false_neutral'
    assert removed.removing == ['false_neutral', 'keywords', 'similarity']
    assert removed.scores_C3.shape == (5, 3)
    assert 'false_neutral' not in other_split.values  # it looks at train
    assert other_split.removed_by == 'similarity'
    assert math.isnan(scaled.values['similarity'])
    assert scaled.removing == ['false_neutral']
    assert unknown.scores_C3 is None
    assert math.isnan(unknown.values['false_neutral'])
    assert unknown.removed_by == ''
    assert unknown.removing == []


def test_chunks_change_nothing_and_each_caption_meets_its_own_hypothesis(all_filters):
    def score(text_pairs):
        asked.append(len(text_pairs))
        lengths = np.array([[len(a), len(b), 1] for a, b in text_pairs], np.float32)
        return lengths / lengths.sum(1, keepdims=True)

    pairs = [judgements.pair(i, hypothesis='x' * (i + 1)) for i in range(13)]
    found = []
    for chunk in (1, 7, 1000):
        asked = []
        found.append(list(cleaning.clean(iter(pairs), all_filters, CAPTIONS, score, chunk=chunk)))
        assert sum(asked) == 5 * 5 + 5 * 2
        assert max(asked) < chunk + 5
    for one in found:
        assert [each.pair for each in one] == pairs
        for i, each in enumerate(one[:10]):
            texts = CAPTIONS[str(i // 5)]
            assert each.scores_C3[:, 1] == pytest.approx([(i + 1) / (len(text) + i + 2) for text in texts])
            assert each.values == found[0][i].values


def test_no_model_is_asked_where_no_filter_needs_one(all_filters):
    plain = [each for each in all_filters if not each.needs_scores]
    (judged,) = cleaning.clean([judgements.pair(0)], plain, CAPTIONS)
    assert judged.scores_C3 is None
    assert judged.values.keys() == {'keywords', 'similarity'}
    with pytest.raises(ValueError, match='the filter false_neutral needs an NLI model'):
        next(cleaning.clean([judgements.pair(0)], all_filters, CAPTIONS))
