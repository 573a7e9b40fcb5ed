"""Starting from another run's parameters: answers in another order, other vocabularies, what is absent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax import config as config_lib
from evil_jax.data import answers, tokenizers
from evil_jax.training import checkpoint, initial, sharding
from evil_jax.training import state as state_lib

THERE = ('red', 'blue', 'two', 'yes')
TEXTS = ['is it red ?', 'is it blue ?']


def make_assets(folder, answers, texts=TEXTS, lowercase=True):
    word, expl = tokenizers.train_word(texts, folder / 'word', lowercase), tokenizers.train_expl(texts, folder / 'expl')
    assets = tokenizers.Assets(word, expl, tuple(answers))
    tokenizers.save_assets(folder, assets)
    return assets


def fresh(answers, seed):
    rng = np.random.default_rng(seed)
    shapes = {
        'task/hidden/kernel': (4, 8), 'task/head/answer/kernel': (8, len(answers)),
        'task/head/answer/bias': (len(answers),), 'expl/out/kernel': (8, 5),
    }  # fmt: skip
    return {path: jnp.asarray(rng.normal(size=shape), jnp.float32) for path, shape in shapes.items()}


def placed(params):
    everywhere = jax.sharding.NamedSharding(sharding.make_mesh(config_lib.base()), jax.sharding.PartitionSpec())
    params = {path: jax.device_put(x, everywhere) for path, x in params.items()}
    return params, {p: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=everywhere) for p, x in params.items()}


@pytest.fixture
def source(tmp_path):
    """(work folder of a run with the answers `THERE`, its parameters)"""
    folder, params = tmp_path / 'source', fresh(THERE, 0)
    assets = make_assets(folder / 'assets', THERE)
    saved = checkpoint.Checkpoints(folder, 1, {'config': {}, 'assets': assets.hashes(), 'data': ''})
    saved.save(state_lib.TrainState(jnp.int32(7), params, {}), {})
    saved.close()
    return folder, params


@pytest.mark.parametrize(
    'ours', [THERE, ('yes', 'two', 'blue', 'red'), ('blue', 'red'), ('no', 'yes', 'three', *THERE[:3]), ('a', 'b')]
)
def test_answers_keep_their_rows(source, tmp_path, ours):
    folder, old = source
    before, shapes = placed(fresh(ours, 1))
    new, told = initial.load(folder, before, shapes, make_assets(tmp_path / 'ours', ours))
    for column, answer in enumerate(ours):
        here, there = (old, THERE.index(answer)) if answer in THERE else (before, column)
        for name in initial.ANSWER_HEAD:
            np.testing.assert_array_equal(new[name][..., column], here[name][..., there])
    np.testing.assert_array_equal(new['task/hidden/kernel'], old['task/hidden/kernel'])
    np.testing.assert_array_equal(new['expl/out/kernel'], old['expl/out/kernel'])
    assert {path: x.sharding for path, x in new.items()} == {path: x.sharding for path, x in before.items()}
    assert 'initial parameters of task, expl' in told
    known = len(set(ours) & set(THERE))
    assert (f'{known} of our {len(ours)} answers are among its 4' in told) == (ours != THERE)


def test_between_the_two_orders_of_vqa_v2(shared, tmp_path):
    """LXMERT's order -> UNITER's: each answer's values follow it."""
    vocabularies = shared / 'data' / 'vocab'
    lxmert = answers.read(vocabularies / 'trainval_label2ans.json')
    uniter = answers.read(vocabularies / 'uniter_ans2label.json')
    old = fresh(lxmert, 0)
    assets = make_assets(tmp_path / 'source' / 'assets', lxmert)
    saved = checkpoint.Checkpoints(tmp_path / 'source', 1, {'config': {}, 'assets': assets.hashes(), 'data': ''})
    saved.save(state_lib.TrainState(jnp.int32(7), old, {}), {})
    saved.close()
    before, shapes = placed(fresh(uniter, 1))
    new, _ = initial.load(tmp_path / 'source', before, shapes, make_assets(tmp_path / 'ours', uniter))
    bias = dict(zip(lxmert, old['task/head/answer/bias'].tolist()))
    assert [bias[answer] for answer in uniter] == new['task/head/answer/bias'].tolist()


@pytest.mark.parametrize(
    'other, absent, message',
    [
        (dict(lowercase=False), '', 'trained with other word pieces than'),
        (dict(texts=['a cat sat']), '', 'trained with other word pieces and explanation tokens than'),
        (dict(texts=['a cat sat']), 'task', 'trained with other explanation tokens than'),
    ],
)
def test_other_vocabularies_are_refused(source, tmp_path, other, absent, message):
    before, shapes = placed(fresh(THERE, 1))
    folder = source[0] / 'checkpoints' / '7'
    if absent:
        (folder / absent).rename(tmp_path / absent)
    with pytest.raises(ValueError, match=message):
        initial.load(folder, before, shapes, make_assets(tmp_path / 'ours', THERE, **other))


def test_without_its_vocabularies_only_the_same_ones_will_do(source, tmp_path):
    before, shapes = placed(fresh(THERE, 1))
    moved = (source[0] / 'checkpoints' / '7').rename(tmp_path / 'moved')
    new, _ = initial.load(moved, before, shapes, make_assets(tmp_path / 'same', THERE))
    np.testing.assert_array_equal(new['task/head/answer/bias'], source[1]['task/head/answer/bias'])
    with pytest.raises(ValueError, match=r'that .*moved was trained with are in none of these folders'):
        initial.load(moved, before, shapes, make_assets(tmp_path / 'ours', THERE[::-1]))


def test_a_head_of_another_name_cannot_be_rearranged(source, tmp_path):
    before, shapes = placed(fresh(THERE, 1))
    shapes['task/classifier/bias'] = shapes.pop('task/head/answer/bias')
    with pytest.raises(ValueError, match='has other answers, and the model has no task/head/answer/bias'):
        initial.load(source[0], before, shapes, make_assets(tmp_path / 'ours', THERE[::-1]))


def test_choices_and_a_set_of_answers_have_no_head_in_common(source, tmp_path):
    before, shapes = placed(fresh(THERE, 1))
    for path in initial.ANSWER_HEAD:
        shapes[path.replace('head', 'head_vcr')] = shapes.pop(path)
    with pytest.raises(ValueError, match='trained with a set of answers for all examples, this data set has choices'):
        initial.load(source[0], before, shapes, make_assets(tmp_path / 'ours', ()))
