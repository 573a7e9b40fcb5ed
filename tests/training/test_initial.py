"""Starting from another run's parameters: answers in another order, other vocabularies, what is absent."""

import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax import config as config_lib
from evil_jax.data import answers, tokenizers
from evil_jax.training import checkpoint, initial, sharding
from evil_jax.training import state as state_lib

HEAD = 'task/head/answer/kernel', 'task/head/answer/bias'
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


def save(folder, params, answers=THERE, texts=TEXTS, **changes):
    """A run on disk with these parameters."""
    assets, config = make_assets(folder / 'assets', answers, texts), config_lib.base()
    config.update_from_flattened_dict(changes)
    origin = {'config': checkpoint.plain(config), 'assets': assets.hashes(), 'data': ''}
    saved = checkpoint.Checkpoints(folder, 1, origin)
    saved.save(state_lib.TrainState(jnp.int32(7), params, {}), {})
    saved.close()
    return folder


def begin(init, params, shapes, assets, **changes):
    """`init`: of `train.init`. Returns (parameters, what was told)."""
    config = config_lib.base()
    config.update_from_flattened_dict({'train.init': str(init)} | changes)
    found, told = initial.begin(config, params, shapes, assets)
    return found, '\n'.join(told)


@pytest.fixture(scope='module')
def there(tmp_path_factory):
    folder, params = tmp_path_factory.mktemp('there') / 'source', fresh(THERE, 0)
    return save(folder, params), params


@pytest.fixture
def source(there, tmp_path):
    """(work folder of a run with the answers `THERE`, its parameters)"""
    shutil.copytree(there[0], tmp_path / 'source')
    return tmp_path / 'source', there[1]


@pytest.mark.parametrize(
    'ours', [THERE, ('yes', 'two', 'blue', 'red'), ('blue', 'red'), ('no', 'yes', 'three', *THERE[:3]), ('a', 'b')]
)
def test_answers_keep_their_rows(source, tmp_path, ours):
    folder, old = source
    before, shapes = placed(fresh(ours, 1))
    new, told = begin(folder, before, shapes, make_assets(tmp_path / 'ours', ours))
    for column, answer in enumerate(ours):
        here, there = (old, THERE.index(answer)) if answer in THERE else (before, column)
        for name in HEAD:
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
    save(tmp_path / 'source', old, lxmert)
    before, shapes = placed(fresh(uniter, 1))
    new, _ = begin(tmp_path / 'source', before, shapes, make_assets(tmp_path / 'ours', uniter))
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
        begin(folder, before, shapes, make_assets(tmp_path / 'ours', THERE, **other))


def test_without_its_vocabularies_only_the_same_ones_will_do(source, tmp_path):
    before, shapes = placed(fresh(THERE, 1))
    moved = (source[0] / 'checkpoints' / '7').rename(tmp_path / 'moved')
    new, _ = begin(moved, before, shapes, make_assets(tmp_path / 'same', THERE))
    np.testing.assert_array_equal(new['task/head/answer/bias'], source[1]['task/head/answer/bias'])
    with pytest.raises(ValueError, match=r'that .*moved was trained with are in none of these folders'):
        begin(moved, before, shapes, make_assets(tmp_path / 'ours', THERE[::-1]))


def test_a_head_of_another_name_does_not_fit(source, tmp_path):
    before, shapes = placed(fresh(THERE, 1))
    shapes['task/classifier/bias'] = shapes.pop('task/head/answer/bias')
    with pytest.raises(ValueError, match=r'task/classifier/bias: missing(.|\n)*task/head/answer/bias: not in the'):
        begin(source[0], before, shapes, make_assets(tmp_path / 'ours', THERE[::-1]))


def test_choices_and_a_set_of_answers_have_no_head_in_common(source, tmp_path):
    before, shapes = placed(fresh(THERE, 1))
    for path in HEAD:
        shapes[path.replace('head', 'head_vcr')] = shapes.pop(path)
    with pytest.raises(ValueError, match='trained with a set of answers for all examples, this data set has choices'):
        begin(source[0], before, shapes, make_assets(tmp_path / 'ours', ()))


def test_what_is_as_long_as_the_answers_is_not_rearranged(tmp_path):
    """A hidden layer of the head may have as many units as there are answers."""
    ours = ('no', 'yes', *THERE[:2])
    add = lambda params, values: params | {'task/head/hidden/bias': jnp.asarray(values, jnp.float32)}
    old = add(fresh(THERE, 0), range(4))
    before, shapes = placed(add(fresh(ours, 1), range(4, 8)))
    new, _ = begin(save(tmp_path / 'source', old), before, shapes, make_assets(tmp_path / 'ours', ours))
    assert new['task/head/hidden/bias'].tolist() == [0, 1, 2, 3]


# Modules from different places ---------------------------------------------------------------------------------------


def test_each_module_from_its_own_place(source, tmp_path):
    other = fresh(THERE, 5)
    save(tmp_path / 'other', other)
    before, shapes = placed(fresh(THERE, 1))
    ours = make_assets(tmp_path / 'ours', THERE)
    task, expl = str(source[0]), str(tmp_path / 'other' / 'checkpoints' / '7')

    def taken(found):
        sides = {'source': source[1], 'other': other, 'fresh': before}
        return [
            next(name for name, params in sides.items() if np.array_equal(found[path], params[path]))
            for path in ('task/hidden/kernel', 'expl/out/kernel')
        ]

    found, told = begin('', before, shapes, ours, **{'model.task.init': task, 'model.expl.init': expl})
    assert taken(found) == ['source', 'other']
    assert re.fullmatch(r'initial parameters of task from .*source.*\ninitial parameters of expl from .*other.*', told)
    assert taken(begin('', before, shapes, ours, **{'model.expl.init': expl})[0]) == ['fresh', 'other']
    found, told = begin(task, before, shapes, ours, **{'model.expl.init': expl})  # train.init gives the rest
    assert taken(found) == ['source', 'other'] and told.count('initial parameters of') == 2
    assert taken(begin('', before, shapes, ours)[0]) == ['fresh', 'fresh']
    with pytest.raises(ValueError, match=r'train\.init is .*but model\.task\.init and model\.expl\.init name all of'):
        begin(task, before, shapes, ours, **{'model.task.init': task, 'model.expl.init': expl})


def test_one_message_names_every_mismatch_of_both_modules(source, tmp_path):
    """Other sizes, another vocabulary, another kind of head, a missing half: whatever is wrong with any of the two."""
    before, shapes = placed(fresh(('a', 'b'), 1))
    shapes['task/hidden/kernel'] = jax.ShapeDtypeStruct((4, 9), np.float32, sharding=shapes[HEAD[0]].sharding)
    shapes['expl/out/kernel'] = jax.ShapeDtypeStruct((9, 5), np.float32, sharding=shapes[HEAD[0]].sharding)
    ours = make_assets(tmp_path / 'ours', ('a', 'b'), texts=['a cat sat'])
    wrong = save(tmp_path / 'vcr', fresh(THERE, 0), **{'data.choices': 4, 'model.task.size': 'tiny'})
    shutil.rmtree(source[0] / 'checkpoints' / '7' / 'expl')
    settings = {'model.task.init': str(wrong), 'model.expl.init': str(source[0])}
    with pytest.raises(ValueError) as error:
        begin('', before, shapes, ours, **settings)
    for part in (
        'model.task.init: ', 'trained with other word pieces', 'trained with choices in each example, this data set',
        "model.task.size: 'tiny' there, 'base' here", 'task/hidden/kernel: checkpoint (4, 8), model (4, 9)',
        'model.expl.init: ', 'has no parameters of expl',
    ):  # fmt: skip
        assert part in str(error.value), part
    with pytest.raises(ValueError) as error:  # one source, both modules
        begin(wrong, before, shapes, ours)
    for part in ('word pieces and explanation tokens', 'task/hidden/kernel: ch', 'expl/out/kernel: checkpoint (8, 5)'):
        assert part in str(error.value), part


@pytest.mark.parametrize('key', ['train.init', 'model.task.init', 'model.expl.init'])
@pytest.mark.parametrize('value', ['nowhere', 'hf:nowhere', 'torch:nowhere.pt', 'eug:nowhere.pth'])
def test_what_is_not_there_names_the_setting(there, key, value):
    before, shapes = placed(fresh(THERE, 1))
    with pytest.raises(ValueError, match=f'{key}.*(nowhere|both modules|one module)') as error:
        begin('', before, shapes, tokenizers.load_assets(there[0] / 'assets'), **{key: value})
    assert len(str(error.value).splitlines()) == 1


def checked(workdir, coming=False, **changes):
    config = config_lib.base()
    config.update_from_flattened_dict(changes)
    initial.check(config, workdir, coming)


@pytest.mark.parametrize('value', ['nowhere', 'hf:nowhere', 'torch:nowhere.pt', 'eug:nowhere.pth', 'hf:'])
@pytest.mark.parametrize('key', ['train.init', 'model.task.init', 'model.expl.init'])
def test_what_is_not_there_is_told_before_there_is_a_data_set(tmp_path, key, value):
    with pytest.raises(ValueError, match=f'{key}.*{value}') as error:
        checked(tmp_path, **{key: value})
    assert len(str(error.value).splitlines()) == 1
    coming = lambda: checked(tmp_path, True, **{key: value})
    if value.startswith(('torch:', 'eug:')):  # no mode writes such
        with pytest.raises(ValueError, match=f'{key}.*{value}'):
            coming()
    else:
        coming()
    (tmp_path / 'checkpoints' / '4').mkdir(parents=True)  # it goes on from there
    checked(tmp_path, **{key: value})


def test_what_needs_no_data_set_is_told_before_there_is_one(source, tmp_path, caplog):
    task, expl = {'train.regime': 'expl', 'model.task.init': str(source[0])}, {'model.expl.init': 'hf:nowhere'}
    with pytest.raises(ValueError, match=r"train\.regime is 'expl'.*set model\.task\.init"):
        checked(tmp_path, **{'train.regime': 'expl'})
    with pytest.raises(ValueError) as error:
        checked(tmp_path, **task | expl | {'data.regions': 'zero', 'data.max_text': 9})
    for part in ('data.regions: ', 'data.max_text: 20 there, 9 here', 'model.expl.init: hf:nowhere: '):
        assert part in str(error.value), part
    with pytest.raises(ValueError, match='name all of the model'):
        checked(tmp_path, **task | {'model.expl.init': str(source[0]), 'train.init': str(source[0])})
    (tmp_path / 'LAST.pth').touch()
    file = {'train.init': f'eug:{tmp_path / "LAST.pth"}'}
    with pytest.raises(ValueError, match='works only as it was trained'):
        checked(tmp_path, **file | {'train.regime': 'expl'})
    checked(tmp_path, **file)
    checked(tmp_path, **{'train.regime': 'task', 'model.expl.init': 'hf:nowhere'})  # is not read
    checked(tmp_path, **{'model.task.init': f'torch:{tmp_path / "LAST.pth"}', 'model.expl.init': f'hf:{tmp_path}'})
    checked(tmp_path, **task)
    assert not caplog.text, 'that the latest checkpoint is taken is said once'
    shutil.rmtree(source[0] / 'checkpoints' / '7' / 'task')
    with pytest.raises(ValueError, match='has no parameters of task'):
        checked(tmp_path, **task)


def test_published_weights_of_a_module(there, tmp_path, monkeypatch):
    """A table with fewer rows is the beginning of ours; what a file lacks stays fresh."""
    from evil_jax.interop import start

    before, shapes = placed(fresh(THERE, 1))
    words = np.full((3, 5), 7, np.float32)
    calls = []

    def load(*arguments):
        calls.append(arguments)
        return {'expl/out/kernel': words}, 'three rows'

    monkeypatch.setattr(start, 'load', load)
    assets = tokenizers.load_assets(there[0] / 'assets')
    found, told = begin('', before, shapes, assets, **{'model.expl.init': f'hf:{tmp_path}'})
    assert told == 'three rows' and calls[0][:3] == ('expl', 'gpt2', f'hf:{tmp_path}') and calls[0][-1] == 'base'
    np.testing.assert_array_equal(found['expl/out/kernel'][:3], words)
    np.testing.assert_array_equal(found['expl/out/kernel'][3:], before['expl/out/kernel'][3:])
    np.testing.assert_array_equal(found['task/hidden/kernel'], before['task/hidden/kernel'])
    assert found['expl/out/kernel'].sharding == before['expl/out/kernel'].sharding


# A frozen M_T --------------------------------------------------------------------------------------------------------


def frozen(source, shapes, ours, init='model.task.init', **changes):
    return begin(
        '', placed(fresh(ours.answers, 1))[0], shapes, ours, **{init: str(source), 'train.regime': 'expl'} | changes
    )


@pytest.mark.parametrize('init', ['model.task.init', 'train.init'])
def test_a_frozen_task_module_is_complete(source, tmp_path, init):
    shapes, ours = placed(fresh(THERE, 1))[1], make_assets(tmp_path / 'ours', THERE)
    found, _ = frozen(source[0], shapes, ours, init)
    assert all(np.array_equal(found[path], source[1][path]) for path in found if path.startswith('task/'))
    turned = make_assets(tmp_path / 'turned', THERE[::-1])
    found, _ = frozen(source[0], shapes, turned, init)
    np.testing.assert_array_equal(found[HEAD[1]], source[1][HEAD[1]][::-1])
    with pytest.raises(
        ValueError, match=r"1 of our 4 answers are not among those of .* with train.regime 'expl' nothing"
    ):
        frozen(source[0], shapes, make_assets(tmp_path / 'more', (*THERE[1:], 'no')), init)
    other = {'data.regions': 'zero', 'compat': 'original'}
    with pytest.raises(
        ValueError, match=r"trained with compat: 'fixed' there(.|\n)*data.regions: 'detected' there, 'zero'"
    ):
        frozen(source[0], shapes, ours, init, **other)
    step = source[0] / 'checkpoints' / '7'
    (step / 'expl').rename(tmp_path / 'away')  # as after training M_T alone
    found, _ = frozen(source[0], shapes, ours, init)
    np.testing.assert_array_equal(found[HEAD[0]], source[1][HEAD[0]])
    np.testing.assert_array_equal(found['expl/out/kernel'], fresh(THERE, 1)['expl/out/kernel'])
    (tmp_path / 'away').rename(step / 'expl')
    (step / 'task').rename(tmp_path / 'away')
    with pytest.raises(ValueError, match=r'init: .* has no parameters of task$'):
        frozen(source[0], shapes, ours, init)


SEEN = {
    'compat': 'original', 'model.task.size': 'tiny', 'data.locations': 'evil_vqax', 'data.regions': 'zero',
    'data.choices': 4, 'data.tags': 'det', 'data.tag_regions': False, 'data.objects': 'detected', 'data.max_text': 19,
    'data.max_regions': 37,
}  # fmt: skip


def test_what_a_frozen_task_module_sees_is_listed():
    assert {key.replace('task.size', 'task') for key in SEEN} == set(initial._SEEN)


@pytest.mark.parametrize(('key', 'value'), SEEN.items())
def test_a_frozen_task_module_sees_what_it_saw(source, tmp_path, key, value):
    shapes, ours = placed(fresh(THERE, 1))[1], make_assets(tmp_path / 'ours', THERE)
    usual = checkpoint.leaves(checkpoint.plain(config_lib.base()))[key]
    with pytest.raises(ValueError, match=re.escape(f'was trained with {key}: {usual!r} there, {value!r} here')):
        frozen(source[0], shapes, ours, **{key: value})


def test_a_frozen_task_module_of_the_published_code_sees_what_it_saw(there, tmp_path, monkeypatch):
    """As it is decoded only with its quirks; one that is trained on may get used to others."""
    monkeypatch.setattr(initial, 'original', lambda file, shapes, assets: there[1])
    shapes, ours = placed(fresh(THERE, 1))[1], tokenizers.load_assets(there[0] / 'assets')
    (tmp_path / 'LAST.pth').touch()
    file = f'eug:{tmp_path / "LAST.pth"}'
    with pytest.raises(ValueError, match=r"train\.init: .* works only as it was trained:(.|\n)*wanted 'original'"):
        frozen(file, shapes, ours, 'train.init')
    for changes in (
        {'compat': 'original'}, {'train.regime': 'joint'}, {'train.regime': 'expl', 'model.task.init': str(there[0])},
    ):  # fmt: skip
        frozen(file, shapes, ours, 'train.init', **changes)
    monkeypatch.undo()  # an empty file
    with pytest.raises(ValueError, match=r'do not fit:\n(.|\n)*only as it was trained(.|\n)*LAST\.pth: '):
        frozen(file, shapes, ours, 'train.init')


def test_a_frozen_task_module_has_to_come_from_somewhere(source, tmp_path, monkeypatch):
    from evil_jax.interop import start

    shapes, ours = placed(fresh(THERE, 1))[1], make_assets(tmp_path / 'ours', THERE)
    with pytest.raises(ValueError, match=r"train.regime is 'expl'.*set model.task.init"):
        frozen(source[0], shapes, ours, 'model.expl.init')
    monkeypatch.setattr(start, 'load', lambda *_: ({'task/hidden/kernel': np.zeros((4, 8), np.float32)}, ''))
    with pytest.raises(ValueError, match=r'would stay random: task/head/answer/kernel, task/head/answer/bias$'):
        frozen(f'hf:{tmp_path}', shapes, ours)


def test_the_sketches_of_a_frozen_task_module_are_no_others(source, tmp_path, monkeypatch):
    """They are integers that nothing trains, but drawn from the seed: those of another seed are other ones."""
    from evil_jax.interop import start

    sketch, ours = {'task/fuse/first/hash': jnp.arange(4)}, make_assets(tmp_path / 'ours', THERE)
    shapes, params = placed(fresh(THERE, 1) | sketch)[1], source[1]
    monkeypatch.setattr(start, 'load', lambda *_: ({p: np.array(x) for p, x in params.items() if 'task' in p}, ''))
    with pytest.raises(ValueError, match=r'would stay random: task/fuse/first/hash$'):
        frozen(f'hf:{tmp_path}', shapes, ours)
    found, _ = frozen(save(tmp_path / 'run', params | sketch), shapes, ours)
    assert found['task/fuse/first/hash'].tolist() == [0, 1, 2, 3]
