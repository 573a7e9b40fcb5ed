"""Scores of subsets, intervals over pictures, combined scores, and what is absent for which reason."""

import math
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest
from scored_worlds import CLASSES, class_world, equal_class, mean_metric, soft, vqa_world

from evil_jax import stats
from evil_jax.metrics import _sheet, bleu, chrf, cider, evil, resources, rouge
from evil_jax.records import Example, Prediction


def test_values_are_those_of_the_metrics_on_the_subset():
    predictions, examples, truth = class_world()
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=0)
    gold = {e.id: e for e in examples}
    for subset, chosen in {
        'all': predictions,
        'correct': [p for p in predictions if p.answer == gold[p.id].label],
    }.items():
        texts = {p.id: p.explanation for p in chosen}
        references = {p.id: gold[p.id].explanations[:1] for p in chosen}  # of a class one reference counts
        for metric in (bleu, rouge, cider, chrf):
            for name, wanted in metric.score(texts, references).items():
                score = scores[subset][name]
                assert score.value == pytest.approx(wanted.value, abs=1e-12), (subset, name)
                assert score.n == wanted.n
                assert score.per_example == pytest.approx(wanted.per_example, abs=1e-12)
    right = scores['correct']
    s_t = statistics.mean(p.answer == gold[p.id].label for p in predictions)
    s_e = statistics.harmonic_mean([right['rouge_l'].value, right['cider'].value])
    s_e_true = statistics.mean(truth[p.id] for p in predictions if p.answer == gold[p.id].label)
    assert scores['all']['s_t'].value == pytest.approx(s_t)
    assert scores['all']['s_e_fast'].value == right['s_e_fast'].value == pytest.approx(s_e)
    assert scores['all']['s_o_fast'].value == pytest.approx(s_t * s_e)
    assert scores['all']['s_e_true'].value == pytest.approx(s_e_true)
    assert scores['all']['s_o_true'].value == pytest.approx(s_t * s_e_true)
    assert scores['all']['s_t'].n == 60
    assert scores['all']['s_e_true'].n == scores['all']['s_e_fast'].n == right['bleu1'].n < 60


def test_groups():
    predictions, examples, truth = class_world()
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=50)
    assert list(scores) == ['all', 'correct'] + [f'class={c}' for c in sorted(CLASSES)]
    gold = {e.id: e for e in examples}
    for label in CLASSES:
        group = scores[f'class={label}']
        ids = [e.id for e in examples if e.label == label]
        answer = {p.id: p.answer for p in predictions}
        assert group['s_t'].value == pytest.approx(statistics.mean(answer[i] == label for i in ids))
        assert group['s_e_true'].value == pytest.approx(statistics.mean(truth[i] for i in ids if answer[i] == label))
        assert group['s_t'].n == group['bleu1'].n == len(ids)
        texts = {p.id: p.explanation for p in predictions if p.id in ids}
        wanted = bleu.score(texts, {i: gold[i].explanations[:1] for i in ids})['bleu2'].value
        assert group['bleu2'].value == pytest.approx(wanted, abs=1e-12)
        # CIDEr keeps the document frequency of the whole, so groups add up to it.
        for i in ids:
            assert group['cider'].per_example[i] == scores['all']['cider'].per_example[i]
        for score in group.values():
            assert score.value is None or score.ci95 is not None
    total = sum(scores[f'class={c}']['cider'].value * scores[f'class={c}']['cider'].n for c in CLASSES)
    assert total / 60 == pytest.approx(scores['all']['cider'].value)


def test_order_changes_nothing():
    predictions, examples, truth = class_world()
    one = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=100)
    two = evil.evaluate(
        predictions[::-1], examples[30:] + examples[:30], judge=equal_class, truth=truth, bootstrap=100
    )  # fmt: skip
    assert one == two


def test_intervals_equal_a_plain_loop_over_drawn_pictures():
    predictions, examples, truth = class_world(n=40, pictures=13)
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=80, seed=7)
    order = np.argsort([p.id for p in predictions])
    predictions, examples = [predictions[i] for i in order], [examples[i] for i in order]
    correct = np.array([p.answer == e.label for p, e in zip(predictions, examples)])
    row = {p.id: i for i, p in enumerate(predictions)}
    table = bleu.table(
        {p.id: p.explanation for p in predictions}, {e.id: e.explanations[:1] for e in examples}
    )  # fmt: skip
    per_cider = {row[i]: v for i, v in scores['correct']['cider'].per_example.items()}
    per_rouge = {row[i]: v for i, v in scores['correct']['rouge_l'].per_example.items()}
    samples = {'bleu4': [], 's_o_fast': [], 's_e_true': []}
    for counts in np.concatenate(list(stats.resample(40, 80, 7, [e.image_id for e in examples]))):
        drawn = np.repeat(np.arange(40), counts.astype(int))
        right = drawn[correct[drawn]]
        samples['bleu4'].append(bleu.bleu(table.statistics[drawn].sum(0))['bleu4'])
        parts = [np.mean([per[i] for i in right]) for per in (per_rouge, per_cider)]
        samples['s_o_fast'].append(correct[drawn].mean() * statistics.harmonic_mean(parts))
        samples['s_e_true'].append(np.mean([truth[predictions[i].id] for i in right]))
    for name, values in samples.items():
        wanted = tuple(np.quantile(values, [0.025, 0.975]))
        assert scores['all'][name].ci95 == pytest.approx(wanted, abs=1e-12), name
        assert wanted[0] < scores['all'][name].value < wanted[1]


def test_one_picture_gives_no_interval():
    predictions, examples, truth = class_world(pictures=1)
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth)
    assert scores['all']['s_t'].value is not None
    assert scores['all']['s_t'].ci95 is None


def test_the_index_decides_among_choices_that_repeat():
    examples = [Example(str(i), 'i', 't', choices=['a', 'b', 'b', 'c'], label=1) for i in range(4)]
    right_words = lambda answer, example: float(answer == example.choices[example.label])
    given = [('b', 1), ('b', 2), ('b', None), ('c', 3)]
    predictions = [Prediction(str(i), answer, index) for i, (answer, index) in enumerate(given)]
    scores = evil.evaluate(predictions, examples, judge=right_words, bootstrap=0)
    assert list(scores['all']['s_t'].per_example.values()) == [1, 0, 1, 0]
    assert 'correct:equality' in scores['all']['accuracy'].signature
    table = evil.accuracy_table(evil.sheet(predictions, examples, judge=right_words))
    assert [row['correct'] for row in table if row['group'] == 'all'] == [2]
    for index, message in (
        (3, "'0': the answer is 'b', but choice 3, its answer_index, is 'c'"),
        (4, '4 choices, from'),
    ):
        predictions[0].answer_index = index
        with pytest.raises(ValueError, match=message):
            evil.evaluate(predictions, examples, judge=right_words)
    # Of an example without choices an index says nothing.
    class_examples = [Example('0', 'i', 't', label='a')]
    assert evil.evaluate([Prediction('0', 'a', 7)], class_examples, judge=equal_class)['all']['s_t'].value == 1


def test_s_e_auto_needs_every_part():
    predictions, examples, _truth = class_world()
    parts = {name: {p.id: 0.1 + k / 10 for p in predictions} for k, name in enumerate(['meteor', 'spice', 'bertscore'])}
    scores = evil.evaluate(predictions, examples, judge=equal_class, bootstrap=0)
    assert scores['all']['s_e_auto'].value is None
    assert scores['all']['s_e_auto'].reason == 'needs meteor, spice, bertscore, not computed'
    assert scores['all']['ngram'].reason == 'needs meteor, spice, not computed'
    assert scores['all']['s_o_auto'].value is None
    more = [mean_metric(name, values) for name, values in parts.items()]
    scores = evil.evaluate(predictions, examples, judge=equal_class, metrics=['rouge', 'cider', *more[:2]], bootstrap=0)
    assert scores['all']['ngram'].value is not None
    assert scores['all']['s_e_auto'].reason == 'needs bertscore, not computed'
    scores = evil.evaluate(predictions, examples, judge=equal_class, metrics=['rouge', 'cider', *more], bootstrap=30)
    right = scores['correct']
    ngram = statistics.harmonic_mean([0.1, 0.2, right['rouge_l'].value, right['cider'].value])
    assert right['ngram'].value == pytest.approx(ngram)
    assert right['s_e_auto'].value == pytest.approx(statistics.harmonic_mean([ngram, 0.3]))
    assert scores['all']['s_e_auto'].value == right['s_e_auto'].value
    assert scores['all']['ngram'].value != right['ngram'].value
    assert scores['all']['s_o_auto'].value == pytest.approx(scores['all']['s_t'].value * right['s_e_auto'].value)
    assert scores['all']['s_o_auto'].ci95[0] < scores['all']['s_o_auto'].value < scores['all']['s_o_auto'].ci95[1]
    negative = mean_metric('bertscore', {p.id: -0.1 for p in predictions})
    scores = evil.evaluate(
        predictions, examples, judge=equal_class, metrics=['rouge', 'cider', *more[:2], negative], bootstrap=0
    )
    assert scores['all']['s_e_auto'].value is None
    assert scores['all']['s_e_auto'].reason == 'undefined: a part is negative or not a number'


def test_a_zero_part_gives_zero():
    predictions, examples, _truth = class_world()
    for p in predictions:
        p.explanation = 'entirely unrelated'
    scores = evil.evaluate(predictions, examples, judge=equal_class, bootstrap=20)
    assert scores['all']['s_e_fast'].value == 0
    assert scores['all']['s_e_fast'].ci95 == (0, 0)


def test_missing_explanations():
    predictions, examples, truth = class_world(n=12)
    for p in predictions:
        p.explanation = ''
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth)
    assert scores['all']['s_t'].value > 0
    for name in ('bleu1', 'rouge_l', 'cider', 'chrf', 's_e_fast', 's_o_fast', 's_e_auto', 's_e_true', 's_o_true'):
        assert scores['all'][name].value is None, name
        assert scores['all'][name].reason == 'no prediction has an explanation', name
    predictions[0].explanation = 'a dog'  # now the empty ones count as empty
    predictions[0].answer = examples[0].label
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=0)
    assert scores['all']['bleu1'].n == 12
    for e in examples:
        e.explanations = []
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=0)
    assert scores['all']['cider'].reason == 'no example has a gold explanation'
    assert scores['all']['s_e_true'].value is not None
    examples[1].explanations = examples[2].explanations = ['a dog']
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=0)
    assert scores['all']['cider'].n == 2
    assert scores['all']['s_t'].n == 12


def test_truth_must_be_known_for_correct_answers():
    predictions, examples, truth = class_world(n=12)
    scores = evil.evaluate(predictions, examples, judge=equal_class, bootstrap=0)
    assert 'no truth values' in scores['all']['s_e_true'].reason
    wrong = next(p.id for p, e in zip(predictions, examples) if p.answer != e.label)
    right = next(p.id for p, e in zip(predictions, examples) if p.answer == e.label)
    del truth[wrong]
    assert evil.evaluate(predictions, examples, judge=equal_class, truth=truth)['all']['s_e_true'].value is not None
    truth[right] = None
    score = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=0)['all']['s_o_true']
    assert score.value is None
    assert repr(right) in score.reason


def test_ids_must_agree():
    predictions, examples, _truth = class_world(n=12)
    extra = Prediction('zz', 'neutral')
    with pytest.raises(ValueError, match="no prediction for 1 id: 'q3'; no example for 1 id: 'zz'"):
        evil.evaluate([*predictions[:3], *predictions[4:], extra], examples, judge=equal_class)
    with pytest.raises(ValueError, match="repeated in the predictions: 1 id: 'q0'"):
        evil.evaluate([predictions[0], *predictions], examples, judge=equal_class)
    with pytest.raises(ValueError, match='nothing to score'):
        evil.evaluate([], [], judge=equal_class)


def test_bad_arguments():
    predictions, examples, _truth = class_world(n=6)
    with pytest.raises(ValueError, match=r"the protocol is 'cocoo'\. Did you mean 'coco'"):
        evil.evaluate(predictions, examples, judge=equal_class, protocol='cocoo')
    with pytest.raises(ValueError, match=r"unknown rule 'nonzer'.*nonzero"):
        evil.evaluate(predictions, examples, judge=equal_class, rule='nonzer')
    with pytest.raises(ValueError, match=r"no 'rogue' in evil_jax/metrics.*rouge"):
        evil.evaluate(predictions, examples, judge=equal_class, metrics=['rogue'])
    for name in ('base', 'vqa', 'evil'):
        with pytest.raises(ValueError, match=f'{name!r} is not a metric of explanations'):
            evil.evaluate(predictions, examples, judge=equal_class, metrics=[name])
    with pytest.raises(ValueError, match=r"'q0': answer .* was judged 1.5, wanted 0..1"):
        evil.evaluate(predictions, examples, judge=lambda a, e: 1.5)
    with pytest.raises(ValueError, match='was judged nan'):
        evil.evaluate(predictions, examples, judge=lambda a, e: math.nan)


def test_accuracy_table():
    predictions, examples, _truth = class_world()
    table = evil.accuracy_table(evil.sheet(predictions, examples, judge=equal_class))
    assert [row['group'] for row in table] == [f'class={c}' for c in sorted(CLASSES)] + ['all', 'macro']
    assert sum(row['n'] for row in table[:3]) == table[3]['n'] == 60
    assert sum(row['correct'] for row in table[:3]) == table[3]['correct']
    assert all(row['accuracy'] == row['mean'] == row['correct'] / row['n'] for row in table[:4])
    assert table[4]['accuracy'] == pytest.approx(statistics.mean(row['accuracy'] for row in table[:3]))
    predictions, examples = vqa_world()
    table = {
        row['group']: row for row in evil.accuracy_table(evil.sheet(predictions, examples, judge=soft, rule='top'))
    }
    assert table['answer_type=other']['correct'] == 0
    table = {row['group']: row for row in evil.accuracy_table(evil.sheet(predictions, examples, judge=soft))}
    assert table['answer_type=other']['correct'] == 1
    assert table['answer_type=yes/no'] == dict(
        group='answer_type=yes/no', n=2, correct=2, accuracy=1.0, mean=pytest.approx(0.75)
    )
    assert table['all']['mean'] == pytest.approx(0.45)
    # Overlapping groups have no meaningful average.
    table = evil.accuracy_table(evil.sheet(predictions, examples, judge=soft, groups=lambda e: ['=x', '=y']))
    assert [row['group'] for row in table] == ['=x', '=y', 'all']


@pytest.mark.acceptance
def test_fast_enough(measured):
    """14,339 explanations (the dev split of e-SNLI-VE), one reference: a few seconds, not minutes."""
    generator = np.random.default_rng(0)
    vocabulary = np.array([f'w{i}' for i in range(4000)])
    lines = [' '.join(vocabulary[(generator.pareto(1.0, 13) * 10).astype(int) % 4000]) for _ in range(14340)]
    predictions = {str(i): lines[i] for i in range(14339)}
    references = {str(i): [lines[i + 1]] for i in range(14339)}
    start = time.perf_counter()
    for metric in (bleu, rouge, cider):
        metric.score(predictions, references)
    measured('seconds for BLEU, ROUGE-L and CIDEr of 14,339', '<=', 15, time.perf_counter() - start)


def test_no_jax():
    code = """
import sys
from evil_jax import lookup, stats, text
for name in lookup.names('metrics'):
    lookup.module('metrics', name)
sys.exit('jax' in sys.modules)
"""
    root = pathlib.Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, '-c', code], cwd=root, check=False).returncode == 0


def test_unknown_answers_and_missing_explanations():
    predictions, examples, truth = class_world(n=12)
    for p in predictions:
        p.answer = None
    scores = evil.evaluate(predictions, examples, judge=equal_class, truth=truth, bootstrap=0)
    assert scores['all']['bleu1'].value is not None and scores['all']['bleu1'].n == 12
    for subset, name in (('all', 's_t'), ('all', 's_e_fast'), ('all', 's_o_fast'), ('correct', 'bleu1')):
        assert scores[subset][name].reason == 'predictions have no answer', name
    assert evil.accuracy_table(evil.sheet(predictions, examples, judge=equal_class)) == []
    predictions[3].answer = 'neutral'
    with pytest.raises(ValueError, match='11 of 12 predictions have no answer: 11 ids'):
        evil.evaluate(predictions, examples, judge=equal_class)
    for p, e in zip(predictions, examples):
        p.answer = e.label
    predictions[0].answer, predictions[0].explanation = 'none of these', None
    scores = evil.evaluate(predictions, examples, judge=equal_class, bootstrap=0)
    assert scores['all']['bleu1'].reason == '1 of 12 predictions come without an explanation'
    assert scores['correct']['bleu1'].n == scores['all']['s_e_fast'].n == 11
    predictions[1].explanation = None
    scores = evil.evaluate(predictions, examples, judge=equal_class, bootstrap=0)
    assert scores['correct']['bleu1'].reason == '1 correctly answered predictions come without an explanation'
    for e in examples:
        e.label = None
    scores = evil.evaluate(predictions, examples, judge=equal_class, bootstrap=0)
    assert scores['all']['s_t'].reason == 'examples have no gold answer'


def test_what_cannot_run_is_absent_with_its_reason_and_others_are_offered():
    predictions, examples, _truth = class_world()

    def lacking(predictions, references):
        raise resources.Unavailable('needs a jar')

    constant = lambda name: mean_metric(name, {p.id: 0.25 for p in predictions})
    metrics = {'rouge': 'rouge', 'cider': 'cider', 'meteor': constant('meteor'), 'bertscore': constant('bertscore')}
    scores = evil.evaluate(predictions, examples, judge=equal_class, metrics=metrics | {'spice': lacking}, bootstrap=30)
    for subset in ('all', 'correct'):
        assert scores[subset]['spice'].value is None and scores[subset]['spice'].reason == 'needs a jar'
        assert scores[subset]['ngram'].reason == 'needs spice, not computed'
        right = scores[subset]
        wanted = statistics.harmonic_mean([0.25, right['rouge_l'].value, right['cider'].value])
        assert right['ngram_without_spice'].value == pytest.approx(wanted)
        assert '|is:meteor+rouge_l+cider|' in right['ngram_without_spice'].signature
    offered = scores['correct']['s_e_auto_without_spice']
    assert offered.value == pytest.approx(statistics.harmonic_mean([wanted, 0.25])) and offered.ci95 is not None
    assert '|is:harmonic(meteor+rouge_l+cider)+bertscore|' in offered.signature
    assert scores['all']['s_o_auto_without_spice'].value == pytest.approx(scores['all']['s_t'].value * offered.value)
    assert scores['all']['s_e_auto'].reason == 'needs spice, not computed'
    del metrics['bertscore']
    scores = evil.evaluate(predictions, examples, judge=equal_class, metrics=metrics, bootstrap=0)['correct']
    assert scores['s_e_auto_without_spice_bertscore'].value == pytest.approx(scores['ngram_without_spice'].value)
    assert '|is:meteor+rouge_l+cider|' in scores['s_e_auto_without_spice_bertscore'].signature


def test_a_system_mixed_of_two_is_scored_as_if_it_were_one():
    predictions, examples, _truth = class_world(n=40, pictures=9)
    others, _, _ = class_world(n=40, pictures=9, seed=1)
    by_id = {e.id: e for e in examples}
    metrics = ('bleu', 'rouge', 'chrf')  # CIDEr has the document frequency of each system's own correct answers
    sheets = [evil.sheet(p, examples, judge=equal_class, metrics=metrics) for p in (predictions, others)]
    coin = np.random.default_rng(0).integers(2, size=(3, len(sheets[0].pictures))).astype(float)
    got = _sheet.mixed([(sheets[0], coin), (sheets[1], 1 - coin)], 'main')
    for trial, row in enumerate(coin):
        heads = {picture for picture, side in zip(sheets[0].pictures, row) if side}
        both = [a if by_id[a.id].image_id in heads else b for a, b in zip(predictions, others)]
        wanted = evil.evaluate(both, examples, judge=equal_class, metrics=metrics, bootstrap=0)
        assert got['s_t'][trial] == pytest.approx(wanted['all']['s_t'].value)
        for name in ('bleu4', 'rouge_l', 'chrf'):
            assert got[name][trial] == pytest.approx(wanted['correct'][name].value, abs=1e-12)
