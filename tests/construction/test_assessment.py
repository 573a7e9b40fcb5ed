import csv

import pytest
import scipy.stats
from judgements import FILTERS, judged, pair

from evil_jax.construction import assessment, checked
from evil_jax.construction.pairs import Pair


def assessed(judgements, verdicts):
    found = assessment.Assessment(FILTERS, checked.Checked({i: checked.Verdict(*v) for i, v in verdicts.items()}))
    for each in judgements:
        found.add(each)
    return found


def test_precision_recall_and_what_is_left_against_counting_by_hand():
    # Of 40 neutral pairs every fourth is wrong; the filter removes 8 of those 10 and 4 right ones.
    wrong = set(range(0, 40, 4))
    removed = {0, 4, 8, 12, 16, 20, 24, 28, 1, 2, 3, 5}
    pairs = [judged(pair(i), meaning=3 if i in removed else 1) for i in range(40)]
    pairs += [judged(pair(i, 'entailment'), words=1) for i in range(40, 50)]  # one that another filter looks at
    pairs += [judged(pair(i), meaning=3) for i in range(50, 60)]  # nobody checked them
    verdicts = {f'{i}.jpg#0r1n': ('entailment' if i in wrong else 'neutral', '') for i in range(40)}
    verdicts |= {f'{i}.jpg#0r1n': ('entailment', 'low' if i < 45 else 'high') for i in range(40, 50)}
    found = assessed(pairs, verdicts | {'elsewhere': ('neutral', '')}).to_json()
    assert found['n'] == 50 and found['missing'] == "1 id: 'elsewhere'" and found['relabelled'] is None
    of = found['filters']['meaning']['wrong_label']
    assert [of[name] for name in ('n', 'errors', 'removed', 'right')] == [40, 10, 12, 8]
    wilson = lambda k, n: (k / n, *scipy.stats.binomtest(k, n).proportion_ci(method='wilson'))
    for name, k, n in (('precision', 8, 12), ('recall', 8, 10), ('before', 10, 40), ('after', 2, 28)):
        assert of[name] == pytest.approx(wilson(k, n))
    assert of['f1'][0] == pytest.approx(2 * 8 / (12 + 10)) and of['f1'][1] < of['f1'][0] < of['f1'][2]
    assert of['by_class']['neutral']['precision'] == of['precision']
    assert of['by_class']['entailment']['precision'] is None
    assert found['filters']['meaning']['bad_explanation']['n'] == 0
    assert found['filters']['words']['bad_explanation']['precision'][0] == 0.5
    assert found['errors']['before'] == pytest.approx(wilson(10, 50))
    assert found['errors']['after'] == pytest.approx(wilson(2, 28))
    assert found['errors']['by_class']['entailment'] == {'before': pytest.approx(wilson(0, 10)), 'after': None}
    assert found['bad_explanations']['before'] == pytest.approx(wilson(5, 10))


def test_the_quality_of_an_explanation_that_was_replaced_says_nothing_of_the_new_one():
    texts = ['It need not run.', 'people wrote this', 'It need  not run.']
    pairs = [judged(pair(i, explanations=[text]), words=1) for i, text in enumerate(texts)]
    found = assessed(pairs, {each.pair.id: ('neutral', 'low', 'It need not run.') for each in pairs}).to_json()
    assert found['bad_explanations']['before'][0] == 1 and found['replaced'] == 1
    assert [found['filters']['words'][error]['n'] for error in assessment.ERRORS] == [3, 2]


def test_new_labels_of_the_released_files_agree_with_the_sample_of_do_et_al(shared):
    # SNLI's own label is the last letter of a pairID: what stood there before people gave new ones.
    letters = {'c': 'contradiction', 'n': 'neutral', 'e': 'entailment'}
    verdicts = checked.read(shared / 'data' / 'esnlive' / 'do2020_gt_labels.csv')
    found = assessment.Assessment(FILTERS, verdicts)
    for split in ('dev', 'test'):
        with open(shared / 'data' / 'esnlive' / f'esnlive_{split}.csv', encoding='utf-8', newline='') as file:
            for row in csv.DictReader(file):
                texts = '', row['hypothesis'], row['gold_label'], split, [row['explanation']]
                old = letters[row['pairID'][-1]]
                original = '' if old == row['gold_label'] else old
                found.add(judged(Pair(row['pairID'], row['Flickr30kID'], *texts, original=original)))
    result = found.to_json()
    assert result['n'] == 298 and result['missing'].startswith('51 ids: ')
    assert result['errors']['before'][0] == pytest.approx(36 / 298)
    # All 23 new labels of checked pairs are what the sample says; none of the old ones is.
    assert result['relabelled']['changed'] == 23
    assert (result['relabelled']['new'][0], result['relabelled']['old'][0]) == (1, 0)
