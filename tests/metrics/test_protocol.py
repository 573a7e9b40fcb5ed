"""Protocols: what metrics see of texts and references, which answers are right; published output under each."""

import json

import pytest
from scored_worlds import equal_class, soft, vqa_world

from evil_jax.metrics import evil
from evil_jax.records import Example, Prediction

SPLIT = ('bleu', 'rouge', 'cider')


def test_vqa_rules_and_scores():
    predictions, examples = vqa_world()
    scores = evil.evaluate(predictions, examples, judge=soft, rule='top')
    assert scores['all']['s_t'].value == scores['all']['vqa_soft'].value == pytest.approx((0.3 + 0.9 + 0 + 0.6) / 4)
    # Some annotator said blue, but more said red.
    assert scores['all']['accuracy'].per_example == {'0': 0, '1': 1, '2': 0, '3': 1}
    assert scores['correct']['bleu1'].n == 2
    assert 'correct:top' in scores['all']['s_e_fast'].signature
    scores = evil.evaluate(predictions, examples, judge=soft)
    assert scores['all']['accuracy'].value == 3 / 4
    assert scores['all']['accuracy'].per_example == {'0': 1, '1': 1, '2': 0, '3': 1}
    assert scores['all']['vqa_accuracy'].value == pytest.approx((1 + 1 + 0 + 1) / 4)
    assert scores['correct']['bleu1'].n == 3
    assert 'correct:nonzero' in scores['all']['s_e_fast'].signature
    assert list(scores) == ['all', 'correct', 'answer_type=number', 'answer_type=other', 'answer_type=yes/no']
    assert scores['answer_type=yes/no']['s_t'].value == pytest.approx(0.75)
    number = scores['answer_type=number']['s_e_fast']
    assert number.value is None and number.n == 0
    assert number.reason == 'no example of this subset can be scored'
    strict = evil.evaluate(predictions, examples, judge=soft, rule='equality', bootstrap=0)
    assert strict['correct']['bleu1'].value is None
    assert strict['correct']['bleu1'].reason == 'no example with a gold explanation was answered correctly'


def test_ties_for_the_best_answer_are_right_and_no_acceptable_answer_is_wrong():
    examples = [Example(i, i, 't', answers=a) for i, a in (('a', {'x': 0.6, 'y': 0.6}), ('b', {}), ('c', {'x': 0.0}))]
    for answer in ('x', 'y'):
        scores = evil.evaluate(
            [Prediction(e.id, answer) for e in examples], examples, judge=soft, bootstrap=0, protocol='coco'
        )
        assert scores['all']['accuracy'].per_example == {'a': 1, 'b': 0, 'c': 0}
        assert 'correct:top' in scores['all']['accuracy'].signature


def test_tags_are_scored_as_numbers():
    predictions = [Prediction(str(i), 'a', explanation='3 looks at 12') for i in range(2)]
    examples = [
        Example('0', 'i', 't', label='a', explanations=['<|det3|> looks at <|det12|>']),
        Example('1', 'j', 't', label='a', explanations=['<|det3|> looks at <|det2|>']),
    ]
    score = lambda **options: evil.evaluate(
        predictions, examples, judge=equal_class, metrics=['bleu'], bootstrap=0, **options
    )['all']['bleu1']
    assert score().per_example == {'0': pytest.approx(1), '1': pytest.approx(3 / 4)}
    assert '|det:all|' in score().signature
    assert score(tags='0-9').per_example == {'0': pytest.approx(3 / 4), '1': pytest.approx(3 / 4)}
    assert '|det:0-9|' in score(tags='0-9').signature
    predictions[0].explanation = '<|det3|> looks at <|det12|>'  # somebody else's decoder
    assert score().per_example['0'] == pytest.approx(1)
    for example in examples:
        example.explanations = ['3 looks']
    predictions[0].explanation = '3'
    assert 'det:' not in score().signature
    with pytest.raises(ValueError, match="unknown value of tags '0-8'"):
        score(tags='0-8')


def test_protocols_differ_in_tokens_and_say_so():
    predictions = [Prediction(str(i), 'a', explanation=f'The dog, {w}!') for i, w in enumerate(('runs', 'sits'))]
    examples = [Example(p.id, p.id, 't', label='a', explanations=[f'the dog {w}.']) for p, w in
                zip(predictions, ('runs', 'sits'))]  # fmt: skip
    evaluate = lambda protocol: evil.evaluate(
        predictions, examples, judge=equal_class, metrics=SPLIT, bootstrap=0, protocol=protocol
    )
    raw, words = evaluate('evil'), evaluate('coco')
    assert raw['all']['bleu1'].value < 0.01 and raw['all']['rouge_l'].value == 0
    assert words['all']['bleu1'].value == pytest.approx(1) and words['all']['rouge_l'].value == 1
    for subset in ('all', 'correct'):
        for name in ('bleu4', 'rouge_l', 'cider'):
            signature = words[subset][name].signature
            assert '|tok:ptb' in signature and '|case:lower|' in signature and '|protocol:coco|' in signature
            assert 'tok:none' in raw[subset][name].signature and 'protocol:evil' in raw[subset][name].signature
    assert 'protocol:coco' in words['all']['s_e_fast'].signature


@pytest.fixture(scope='module')
def published(shared):
    """NLX-GPT's released VQA-X test output (facts/evil.md 5.2): predictions, and a function references -> examples."""
    folder = shared / 'data'
    items = json.loads((folder / 'vqax' / 'vqaX_test.json').read_text())
    full, texts = (
        {str(r['image_id']): r['caption'] for r in json.loads((folder / 'generated' / name).read_text())}
        for name in ('nlxgpt_vqaX_p_full_unfiltered.json', 'nlxgpt_vqaX_p_exp_unfiltered.json')
    )

    def examples(name):
        references = json.loads((folder / 'vqax' / name).read_text())
        found = []
        for i, item in items.items():
            given = [a['answer'] for a in item['answers']]
            soft_scores = {a: min(1.0, round(0.3 * given.count(a), 1)) for a in set(given)}
            found.append(
                Example(i, i, item['question'], answers=soft_scores, annotations=given, explanations=references[i])
            )
        return found

    return [Prediction(i, full[i].partition(' because ')[0], explanation=texts[i]) for i in items], examples


METRICS = ('bleu1', 'bleu2', 'bleu3', 'bleu4', 'rouge_l', 'cider')


def percent(scores, names=METRICS):
    return {name: round(100 * scores[name].value, 1) for name in names}


def test_published_output_scores_as_measured(published):
    """Raw references, any annotator's answer: the protocol of e-UG's code."""
    predictions, examples = published
    scores = evil.evaluate(
        predictions, examples('scr_test_exp_anno.json'), judge=soft, metrics=SPLIT, bootstrap=0
    )  # fmt: skip
    assert scores['all']['s_t'].value == pytest.approx(0.7877, abs=5e-3)
    assert percent(scores['all'], ('bleu4', 'rouge_l', 'cider')) == {'bleu4': 23.0, 'rouge_l': 45.3, 'cider': 77.2}
    right = percent(scores['correct'], ('bleu1', 'bleu4', 'rouge_l', 'cider'))
    assert right == {'bleu1': 60.3, 'bleu4': 24.5, 'rouge_l': 46.9, 'cider': 83.3}


@pytest.mark.parametrize('references', ['cocoEval_test.json', 'scr_test_exp_anno.json'])
@pytest.mark.parametrize(
    ('protocol', 'n', 'right'),
    [
        ('nlxgpt', 1477, (64.2, 49.5, 37.6, 28.5, 51.5, 110.6)),
        ('nlxgpt_any', 1635, (None, None, None, 27.3, 50.4, 105.1)),
    ],
)
def test_published_output_scores_as_published(published, references, protocol, n, right):
    """Word tokens: the numbers printed in NLX-GPT's paper, to the last digit, also from references in original case."""
    predictions, examples = published
    scores = evil.evaluate(
        predictions, examples(references), judge=soft, metrics=SPLIT, bootstrap=0, protocol=protocol
    )  # fmt: skip
    assert percent(scores['all']) == dict(zip(METRICS, (61.2, 46.1, 34.3, 25.6, 48.7, 97.2)))
    assert scores['correct']['bleu1'].n == n
    got = percent(scores['correct'])
    assert {m: v for m, v in zip(METRICS, right) if v} == {m: got[m] for m, v in zip(METRICS, right) if v}
    assert f'|protocol:{protocol}|' in scores['all']['cider'].signature
    assert '|texts:lower+nostops|' in scores['all']['cider'].signature


def test_one_reference_of_a_class_and_all_of_an_open_question():
    predictions = [Prediction(i, 'a', explanation='a dog') for i in '12']
    for gold, of_evil in (({'label': 'a'}, '1'), ({'answers': {'a': 1.0}}, '2')):
        examples = [Example(i, i, 't', explanations=['no', 'a dog'], **gold) for i in '12']
        for protocol, number in (('evil', of_evil), ('coco', '2')):
            judge = equal_class if 'label' in gold else soft
            scores = evil.evaluate(predictions, examples, judge=judge, bootstrap=0, protocol=protocol)
            assert f'|nrefs:{number}|' in scores['all']['bleu1'].signature
            assert scores['all']['rouge_l'].value == (1 if number == '2' else 0)


def test_one_reference_where_examples_do_not_tell_what_their_answers_are():
    predictions = [Prediction(i, None, explanation='a dog') for i in '12']
    examples = [Example(i, i, '', explanations=['no', 'a dog']) for i in '12']
    for open_answers, number in ((True, 2), (False, 1)):
        scores = evil.evaluate(predictions, examples, judge=soft, bootstrap=0, open_answers=open_answers)
        assert f'|nrefs:{number}|' in scores['all']['bleu1'].signature


def test_rules_of_annotators():
    answers = ['red'] * 4 + ['blue'] * 6
    examples = [
        Example('a', 'a', 't', answers={'red': 1.0, 'blue': 1.0}, annotations=answers),
        Example('b', 'b', 't', answers={'red': 1.0}, annotations=['red'] * 9 + ['Red']),
    ]
    accuracy = lambda answer, protocol: list(
        evil.evaluate(
            [Prediction(e.id, answer) for e in examples], examples, judge=soft, bootstrap=0, protocol=protocol
        )['all']['accuracy'].per_example.values()
    )
    assert accuracy('red', 'coco') == [1, 1]
    assert accuracy('red', 'nlxgpt') == [0, 1]  # six of ten said blue
    assert accuracy('blue', 'nlxgpt') == [1, 0]
    assert accuracy('blue', 'nlxgpt_any') == [1, 0]
    assert accuracy('Red', 'nlxgpt_any') == [0, 1]  # letter by letter
    assert accuracy('Red', 'evil') == [0, 0]
    # Without annotators' answers of one example the soft scores decide for all, and signatures say so.
    examples.append(Example('c', 'c', 't', answers={'red': 0.9, 'blue': 0.3}))
    assert accuracy('red', 'nlxgpt') == [1, 1, 1] and accuracy('blue', 'nlxgpt_any') == [1, 0, 1]
    for protocol, rule in (('nlxgpt', 'top'), ('nlxgpt_any', 'nonzero')):
        scores = evil.evaluate([Prediction(e.id, 'red') for e in examples], examples, judge=soft, protocol=protocol)
        assert f'|correct:{rule}|' in scores['all']['accuracy'].signature
