"""Plain classifiers: what a row of a batch holds, loss and judgement, and configs that fit no data."""

import pickle

import jax
import numpy as np
import pytest

from evil_jax import config as configs
from evil_jax.data import pictures, tokenizers
from evil_jax.models import vlnle
from evil_jax.records import Example
from evil_jax.tasks import base

DIGITS, SIDES = tuple('0123456789'), ('NEG', 'POS')
TARGETS = {'answer_ids', 'answer_scores', 'gold'}


@pytest.fixture(scope='module')
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp('assets')
    return tokenizers.train_word(['a film that nobody likes'], folder / 'w'), tokenizers.train_expl([], folder / 'e')


def make_config(builder='digits', model='vit', expl='', **data):
    config = configs.base()
    config.data.update(task='classify', builder=builder, max_text=6, pixels=32, **data)
    config.model.task.update(name=model, size='tiny')
    config.model.expl.name = expl
    return config


def make(vocabularies, answers=DIGITS, **settings):
    return base.make_task(make_config(**settings), tokenizers.Assets(*vocabularies, answers))


def example(label='3', text=''):
    return Example('e1', 'p1', text, label=label)


def test_a_row_of_a_picture(vocabularies):
    task = pickle.loads(pickle.dumps(make(vocabularies, shift=2)))
    picture = np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)
    row = task.transform(example(), picture)
    assert row.keys() == {'images'} | TARGETS
    np.testing.assert_array_equal(row['images'], pictures.prepare(picture, 32))
    assert (row['gold'], row['answer_ids'][0], row['answer_scores'].tolist()) == (3, 3, [1.0] + [0.0] * 9)
    moved = [task.transform(example(), picture, np.random.default_rng(n))['images'] for n in range(8)]
    assert len({x.tobytes() for x in moved}) > 4, 'a training picture moves'
    places = [pictures.shifted(row['images'], y, x).tobytes() for y in range(-2, 3) for x in range(-2, 3)]
    assert all(x.tobytes() in places for x in moved)
    still = make(vocabularies).transform(example(), picture, np.random.default_rng(0))['images']
    np.testing.assert_array_equal(still, row['images'])
    gray = task.transform(example(), picture[..., 0])['images']
    assert gray.shape == (32, 32, 3)
    assert make(vocabularies, resize='crop').transform(example(), picture)['images'].shape == (32, 32, 3)


def test_a_row_of_a_text(vocabularies):
    task = make(vocabularies, SIDES, builder='eraser', model='bert')
    row = task.transform(example('POS', 'a film that nobody likes'), None)
    assert row.keys() == {'text', 'text_type', 'text_length'} | TARGETS
    word = task.assets.word
    assert row['text'].tolist() == [word.cls, *word.encode('a film that nobody'), word.sep]
    assert (row['text_length'], row['gold']) == (6, 1)


def test_a_row_of_a_pair_of_texts(vocabularies):
    labels = ('contradiction', 'neutral', 'entailment')
    task = make(vocabularies, labels, builder='snli', model='bert')
    row = task.transform(example('neutral', 'a film [SEP] that nobody likes'), None)
    assert row.keys() == {'text', 'text_type', 'text_length'} | TARGETS
    word = task.assets.word
    assert row['text'].tolist() == [word.cls, *word.encode('a'), word.sep, *word.encode('that nobody'), word.sep]
    assert (row['text_type'].tolist(), row['gold'], task.pairs) == ([0, 0, 0, 1, 1, 1], 1, True)
    with pytest.raises(ValueError, match="wanted a pair of texts as 'premise"):
        task.transform(example('neutral', 'a film'), None)


def test_labels_that_are_not_there_are_no_targets(vocabularies):
    task = make(vocabularies, ('n1', 'n2'), builder='imagenet_seg')
    rows = [task.transform(example(label), np.zeros((4, 4, 3), np.uint8)) for label in ('n2', 'n3', None)]
    assert [int(row['gold']) for row in rows] == [1, -1, -1]
    logits = np.array([[1.0, 3.0]] * 3, np.float32)
    loss = task.loss(logits, {'gold': np.array([row['gold'] for row in rows])})
    np.testing.assert_allclose(loss, [np.log(1 + np.exp(-2)), 0, 0], rtol=1e-6)


def test_the_likeliest_class_is_judged(vocabularies):
    task = make(vocabularies)
    logits = np.zeros((1, 10), np.float32)
    logits[0, 7] = np.log(2)
    index, probabilities = task.predict(logits)
    assert int(index[0]) == 7
    np.testing.assert_allclose(np.asarray(probabilities)[0, [7, 0]], [2 / 11, 1 / 11], rtol=1e-6)
    assert task.answer_text(7, example()) == '7'
    for judging in (task, base.make_task(make_config(), None)):
        assert (judging.judge('3', example()), judging.judge('4', example())) == (1.0, 0.0)
        with pytest.raises(ValueError, match="'e1' has no label to judge by"):
            judging.judge('3', example(None))


@pytest.mark.parametrize(
    ('settings', 'hint'),
    [
        ({'builder': 'vqax'}, "data.builder 'vqax' gives regions to read, wanted pictures or text"),
        (
            {'model': 'bert'},
            "model.task.name is 'bert', but data.builder 'digits' gives pictures to read, wanted 'vit'",
        ),
        (
            {'builder': 'eraser'},
            "model.task.name is 'vit', but data.builder 'eraser' gives text to read, wanted 'bert'",
        ),
        ({'expl': 'gpt2'}, "nothing for model.expl.name 'gpt2' to learn"),
        ({'answers': SIDES}, r"the answers of the data set are \['NEG', 'POS'\], wanted \['0'"),
        ({'answers': (), 'builder': 'imagenet'}, 'the data set has no classes'),
    ],
)
def test_what_does_not_fit(vocabularies, settings, hint):
    with pytest.raises(ValueError, match=hint):
        make(vocabularies, **settings)


def test_a_model_of_pictures_says_what_it_reads(vocabularies):
    assets = tokenizers.Assets(*vocabularies, DIGITS)
    for change, hint in (
        ({'pixels': 48}, 'data.pixels is 48, but vit tiny reads pictures of 32 x 32 pixels: set data.pixels=32'),
        ({'task': 'vqax', 'builder': 'vqax'}, "reads pictures alone, but data.task is 'vqax', wanted 'classify'"),
    ):
        config = make_config()
        config.data.update(change)
        with pytest.raises(ValueError, match=hint):
            vlnle.build(config, assets, jax.random.key(0))
