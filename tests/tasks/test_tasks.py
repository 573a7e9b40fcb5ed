"""Tasks: targets, loss, condition, judgement of the entailment and the open-question family."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax import config as configs
from evil_jax.data import tokenizers
from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.records import Example, Prediction
from evil_jax.tasks import base

ANSWERS = ('', 'red', 'blue', 'two', 'left side')
TEXTS = ['is the circle red or blue ?', 'there are two on the left side', 'contradiction neutral entailment']


@pytest.fixture(scope='module')
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp('assets')
    return tokenizers.train_word(TEXTS, folder / 'word'), tokenizers.train_expl(TEXTS, folder / 'expl')


def make(vocabularies, task, answers, builder='', choice_loss='bce', **data):
    config = configs.base()
    config.train.choice_loss = choice_loss
    config.data.update(task=task, builder=builder or task, max_text=8, max_regions=3, max_answer=6, max_explanation=9)
    config.data.update(data)
    return base.make_task(config, None if vocabularies is None else tokenizers.Assets(*vocabularies, answers))


@pytest.fixture(scope='module')
def entailment(vocabularies):
    return make(vocabularies, 'esnlive', CLASSES)


@pytest.fixture(scope='module', params=['vqav2', 'vqax'])
def questions(vocabularies, request):
    return make(vocabularies, request.param, ANSWERS)


@pytest.fixture(scope='module')
def choosing(vocabularies):
    return make(vocabularies, 'vcr', (), choices=3)


def choice(**kwargs):
    values = {'id': '7', 'image_id': 'pic', 'text': 'is <|det1|> red ?', 'choices': ['two', 'left <|det1|>', 'two']}
    return Example(**values | {'objects': ['circle']} | kwargs)


def question(**kwargs):
    return Example(**({'id': '7', 'image_id': 'pic', 'text': 'is the circle red ?'} | kwargs))


def test_transform_gives_the_batch_contract(entailment, questions):
    for task, example in (
        (entailment, question(label='neutral', explanations=['two on the left'])),
        (questions, question(answers={'red': 0.3, 'blue': 1.0, 'purple': 0.9})),
    ):
        row = task.transform(example, None)
        assert {name: (a.shape, a.dtype.name) for name, a in row.items()} == {
            'text': ((8,), 'int32'), 'text_type': ((8,), 'int32'), 'text_length': ((), 'int32'),
            'features': ((3, 2048), 'float16'), 'locations': ((3, 7), 'float32'), 'region_length': ((), 'int32'),
            'question': ((19,), 'int32'), 'question_length': ((), 'int32'),
            'explanation': ((9,), 'int32'), 'explanation_length': ((), 'int32'),
            'gold': ((), 'int32'), 'answer_ids': ((10,), 'int32'), 'answer_scores': ((10,), 'float32'),
        }  # fmt: skip


def test_entailment_targets(entailment):
    row = entailment.transform(question(label='entailment'), None)
    assert row['gold'] == 2 and row['answer_ids'][0] == 2 and row['answer_scores'].tolist() == [1.0] + [0.0] * 9
    assert entailment.transform(question(label=0), None)['gold'] == 0
    assert entailment.transform(question(), None)['gold'] == -1
    for label in ('maybe', 3, -1):
        with pytest.raises(ValueError, match=f"example '7' has label '?{label}'?, wanted one of contradiction"):
            entailment.transform(question(label=label), None)


def test_question_targets_leave_out_what_is_not_in_the_vocabulary(questions):
    row = questions.transform(question(answers={'left side': 0.6, 'purple': 1.0, 'two': 0.6}), None)
    assert row['gold'] == 3 and row['answer_ids'][:3].tolist() == [3, 4, 0]
    np.testing.assert_allclose(row['answer_scores'][:3], [0.6, 0.6, 0.0])
    assert questions.transform(question(answers={'purple': 1.0}), None)['gold'] == -1


def test_transform_with_choices(choosing):
    row = choosing.transform(choice(label=2, explanations=['red']), None)
    assert {name: (a.shape, a.dtype.name) for name, a in row.items()} == {
        'text': ((8,), 'int32'), 'text_type': ((8,), 'int32'), 'text_tags': ((8,), 'int32'),
        'text_length': ((), 'int32'), 'choices': ((3, 8), 'int32'), 'choices_type': ((3, 8), 'int32'),
        'choices_tags': ((3, 8), 'int32'), 'choices_length': ((3,), 'int32'),
        'features': ((3, 2048), 'float16'), 'locations': ((3, 7), 'float32'), 'region_length': ((), 'int32'),
        'question': ((19,), 'int32'), 'question_length': ((), 'int32'),
        'answers': ((3, 6), 'int32'), 'answers_length': ((3,), 'int32'),
        'explanation': ((9,), 'int32'), 'explanation_length': ((), 'int32'),
        'gold': ((), 'int32'), 'answer_ids': ((10,), 'int32'), 'answer_scores': ((10,), 'float32'),
    }  # fmt: skip
    assert row['gold'] == 2 and row['answer_ids'][0] == 2 and row['answer_scores'].tolist() == [1.0] + [0.0] * 9
    assert choosing.transform(choice(), None)['gold'] == -1
    expl = choosing.assets.expl
    assert row['answers'][1][: row['answers_length'][1]].tolist() == [
        expl.id('<|b_ans|>'), *expl.encode('left'), expl.id('<|det1|>'), expl.id('<|e_ans|>')
    ]  # fmt: skip
    assert expl.id('<|det1|>') in row['question']


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'choices': ['a', 'b']}, r"example '7' has 2 choices, wanted 3 \(data.choices\)"),
        ({'choices': None}, r"example '7' has no choices, wanted 3 \(data.choices\)"),
        ({'label': 3}, r"example '7' has label 3, wanted 0 ... 2"),
        ({'label': 'two'}, r"example '7' has label 'two', wanted 0 ... 2"),
    ],
)
def test_examples_with_other_choices_are_refused(choosing, changes, message):
    with pytest.raises(ValueError, match=message):
        choosing.transform(choice(**changes), None)


def batch_of(task, examples):
    rows = [task.transform(example, None) for example in examples]
    return {name: jnp.asarray(np.stack([row[name] for row in rows])) for name in rows[0]}


def test_entailment_loss_and_prediction(entailment):
    batch = batch_of(entailment, [question(label='neutral'), question()])
    logits = jnp.log(jnp.array([[1.0, 2.0, 5.0], [1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(jax.jit(entailment.loss)(logits, batch), [np.log(4), 0], rtol=1e-6)
    index, probabilities = jax.jit(entailment.predict)(logits)
    assert index.tolist() == [2, 0]
    np.testing.assert_allclose(probabilities[0], [1 / 8, 2 / 8, 5 / 8], rtol=1e-6)


def test_question_loss_and_prediction(questions):
    batch = batch_of(questions, [question(answers={'red': 0.3, 'blue': 1.0}), question(), question(answers={'': 0.6})])
    logits = jax.random.normal(jax.random.key(0), (3, 5)).astype(jnp.bfloat16)
    targets = np.zeros((3, 5))
    targets[0, 1], targets[0, 2], targets[2, 0] = 0.3, 1.0, 0.6
    p = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
    wanted = -(targets * np.log(p) + (1 - targets) * np.log(1 - p)).mean(-1) * 5
    np.testing.assert_allclose(jax.jit(questions.loss)(logits, batch), wanted, rtol=1e-5)
    index, probabilities = questions.predict(logits)
    np.testing.assert_array_equal(index, np.argmax(p, -1))
    np.testing.assert_allclose(probabilities, p, rtol=1e-5)
    assert probabilities.dtype == jnp.float32


def test_loss_and_prediction_of_choices(choosing):
    batch = batch_of(choosing, [choice(label=1), choice(), choice(label=0)])
    logits = jax.random.normal(jax.random.key(0), (3, 3))
    p = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
    wanted = [-(np.log(p[0, 1]) + np.log(1 - p[0, [0, 2]]).sum()), 0, -(np.log(p[2, 0]) + np.log(1 - p[2, 1:]).sum())]
    np.testing.assert_allclose(jax.jit(choosing.loss)(logits, batch), wanted, rtol=1e-5)
    index, probabilities = jax.jit(choosing.predict)(logits)
    np.testing.assert_array_equal(index, np.argmax(p, -1))
    np.testing.assert_allclose(probabilities, jax.nn.softmax(logits), rtol=1e-6)


def test_choices_may_compete(vocabularies):
    task = make(vocabularies, 'vcr', (), choices=3, choice_loss='softmax')
    batch = batch_of(task, [choice(label=1), choice(), choice(label=0)])
    logits = jax.random.normal(jax.random.key(0), (3, 3))
    log_p = jax.nn.log_softmax(logits)
    np.testing.assert_allclose(jax.jit(task.loss)(logits, batch), [-log_p[0, 1], 0, -log_p[2, 0]], rtol=1e-5)


def test_condition_is_the_choice_in_the_decoders_tokens(choosing):
    expl, examples = choosing.assets.expl, [choice(), choice(choices=['a', 'b', 'red two left side']), choice()]
    condition = jax.jit(choosing.condition)(batch_of(choosing, examples), jnp.array([1, 2, -1]))
    assert condition.answer_index_B.tolist() == [1, 2, -1]
    for row, answer in enumerate(['left <|det1|>', 'red two left side', '']):
        ids, _ = expl.piece('ans', answer, 6)
        assert condition.length_B[row] == len(ids)
        assert condition.tokens_BT[row].tolist() == ids + [expl.end_of_text] * (6 - len(ids))


def test_choices_are_judged_and_named(choosing):
    example = choice(label=2)
    assert [choosing.judge(a, example) for a in ('two', 'left <|det1|>', 'other')] == [1.0, 0.0, 0.0]
    assert [choosing.answer_text(i, example) for i in (1, 2, -1)] == ['left <|det1|>', 'two', '']
    assert choosing.answer_index('two', example) == 0 and choosing.answers == ()
    with pytest.raises(ValueError, match=r"'tow' is not one of the 3 choices of example '7'. Did you mean 'two'"):
        choosing.answer_index('tow', example)
    with pytest.raises(ValueError, match="'7' has no label"):
        choosing.judge('two', choice())
    with pytest.raises(ValueError, match="'7' has 1 choices"):
        choosing.answer_text(0, choice(choices=['two']))


def test_condition_is_the_answer_in_the_decoders_tokens(questions):
    expl = questions.assets.expl
    tokens, lengths = questions.answer_table
    assert tokens.shape == (5, 6) and lengths.tolist() == [len(expl.piece('ans', a, 6)[0]) for a in ANSWERS]
    condition = jax.jit(lambda index: questions.condition({}, index))(jnp.array([4, -1, 1, 0]))
    assert condition.answer_index_B.tolist() == [4, -1, 1, 0]
    for row, answer in enumerate(['left side', '', 'red', '']):
        ids = [expl.id('<|b_ans|>'), *expl.encode(answer), expl.id('<|e_ans|>')]
        assert condition.length_B[row] == len(ids) <= 6
        assert condition.tokens_BT[row].tolist() == ids + [expl.end_of_text] * (6 - len(ids))


def test_judging(entailment, questions):
    assert entailment.judge('neutral', question(label='neutral')) == 1.0
    assert entailment.judge('neutral', question(label=2)) == 0.0 == entailment.judge('no such', question(label=2))
    example = question(answers={'red': 0.3, 'purple': 1.0})
    assert [questions.judge(a, example) for a in ('red', 'purple', 'blue')] == [0.3, 1.0, 0.0]
    assert questions.judge('red', question(answers={})) == 0.0
    with pytest.raises(ValueError, match="'7' has no label"):
        entailment.judge('neutral', question())
    with pytest.raises(ValueError, match="'7' has no answers"):
        questions.judge('red', question())


def test_answer_texts_and_indices(entailment, questions):
    example = question()
    assert [entailment.answer_text(i, example) for i in (0, 2, -1)] == ['contradiction', 'entailment', '']
    assert questions.answer_index('left side', example) == 4
    with pytest.raises(ValueError, match=r"'leftside' is not one of the 5 answers. Did you mean 'left side'"):
        questions.answer_index('leftside', example)
    assert questions.explanation_truth(Prediction('7', 'red'), example) is None


def test_answers_of_another_task_are_refused(vocabularies):
    with pytest.raises(ValueError, match=r"answers of the data set are \['', 'red'.*wanted \['contradiction'"):
        make(vocabularies, 'esnlive', ANSWERS)
    with pytest.raises(ValueError, match=r'answer vocabulary .* is empty'):
        make(vocabularies, 'vqav2', ())
    with pytest.raises(ValueError, match=r"answers of the data set are \['', 'red'.*, wanted none"):
        make(vocabularies, 'vcr', ANSWERS, choices=3)


def test_choices_need_a_number_and_room(vocabularies):
    with pytest.raises(ValueError, match=r'data.choices is 0, task vcr wants at least 2'):
        make(vocabularies, 'vcr', ())
    with pytest.raises(ValueError, match=r'data.max_text is 4, wanted at least 5'):
        make(vocabularies, 'vcr', (), choices=2, max_text=4)


def test_tasks_are_picklable(entailment, questions, choosing):
    for task in (entailment, questions, choosing):
        copy = pickle.loads(pickle.dumps(task))
        example = question(label='neutral', answers={'red': 1.0}, explanations=['two', 'red'])
        if task is choosing:
            example = choice(label=1, explanations=['two', 'red'])
        for seed in range(5):
            ours = task.transform(example, None, np.random.default_rng(seed))
            theirs = copy.transform(example, None, np.random.default_rng(seed))
            assert all((ours[name] == theirs[name]).all() for name in ours)


def test_judging_needs_neither_assets_nor_jax():
    code = (
        'import sys\n'
        'from evil_jax import config as configs\n'
        'from evil_jax.records import Example\n'
        'from evil_jax.tasks import base\n'
        'config = configs.base()\n'
        'for task, builder in (("esnlive", "esnlive"), ("vqav2", "vqav2"), ("vqax", "vqax"), ("shapes", "shapes_ve"),\n'
        '                      ("shapes", "shapes_vqa"), ("vcr", "vcr"), ("shapes", "shapes_vcr")):\n'
        '    config.data.update(task=task, builder=builder, choices=2)\n'
        '    choices = {"label": 1, "choices": ["a", "neutral"]} if "vcr" in builder else {"label": "neutral"}\n'
        '    example = Example("1", "p", "t", answers={"neutral": 1.0}, **choices)\n'
        '    assert base.make_task(config).judge("neutral", example) == 1.0\n'
        'assert "jax" not in sys.modules and "tensorflow" not in sys.modules\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True, timeout=60)
