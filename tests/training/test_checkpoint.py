import json
import os
import pathlib
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evil_jax import records
from evil_jax.data import load, tokenizers
from evil_jax.training import checkpoint, sharding
from evil_jax.training import state as state_lib

FOLDER = pathlib.Path(__file__).parent


def probe(name, *args):
    """Runs a script of this folder on its own."""
    environment = os.environ | {'PYTHONPATH': str(FOLDER.parent.parent)}
    return subprocess.run(
        [sys.executable, str(FOLDER / name), *map(str, args)], env=environment, capture_output=True, text=True
    )


def _equal(a, b):
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


def _at(state, number):
    return state._replace(step=jnp.int32(number))


@pytest.fixture
def saved(tmp_path):
    manager = checkpoint.Checkpoints(tmp_path, keep=2)
    yield manager
    manager.close()


def test_a_restored_run_goes_on_bit_for_bit(fake, trainer, saved):
    config, mesh, _, state, step = trainer(dropout=0.3)
    for number in range(3):
        state, _ = step(state, fake.batch(number))
    saved.save(state, {'evaluated': 2})
    for number in range(3, 6):  # goes on (and donates) while the save is being written
        state, _ = step(state, fake.batch(number))
    saved.wait()
    abstract = state_lib.abstract_state(lambda key: fake.Pair(key, 0.3), config, mesh)[-1]
    again, meta = saved.restore(abstract)
    assert meta == {'evaluated': 2, 'step': 3} and int(again.step) == 3
    for number in range(3, 6):
        again, _ = step(again, fake.batch(number))
    assert _equal(state, again)


def test_the_last_ones_are_kept(trainer, saved, tmp_path):
    state = trainer()[3]
    for number in (1, 2, 3):
        saved.save(_at(state, number), {})
    saved.save(_at(state, 3), {})  # nothing to do
    saved.wait()
    assert checkpoint.steps(tmp_path / 'checkpoints') == [2, 3] and saved.latest_step() == 3


def test_the_best_is_the_one_saved_as_best(trainer, saved, tmp_path):
    state = trainer()[3]
    assert saved.best() is None
    for number, score in ((1, 0.2), (2, 0.5)):
        saved.save_best(_at(state, number), score, {})
    assert saved.best() == (2, 0.5) and checkpoint.steps(tmp_path / 'best') == [2]
    assert checkpoint.find(tmp_path) == tmp_path / 'best' / '2'
    assert not (tmp_path / 'best' / '2' / 'train').exists()
    saved.save_best(_at(state, 1), 0.7, {})  # an earlier step, after going back
    assert saved.best() == (1, 0.7)


def test_scores_of_different_names_are_not_compared(trainer, saved, tmp_path):
    state = trainer()[3]
    saved.save_best(_at(state, 1), 0.9, {'select': 's_t'})
    assert saved.best('s_t') == saved.best() == (1, 0.9) and saved.best('s_o_true') is None
    saved._best.delete = lambda step: None  # as if killed before the older one was removed
    saved.save_best(_at(state, 2), 0.3, {'select': 's_o_true'})
    assert checkpoint.steps(tmp_path / 'best') == [1, 2]
    assert saved.best() == saved.best('s_o_true') == (2, 0.3) and checkpoint.find(tmp_path).name == '2'


def test_task_and_explanation_restore_alone_and_into_a_model(fake, trainer, saved, tmp_path):
    _, _, net, state, _ = trainer()
    saved.save(_at(state, 4), {})
    saved.wait()
    task = {path: leaf for path, leaf in net.shapes.items() if path.startswith('task/')}
    found = checkpoint.restore_params(tmp_path, 'latest', task)
    assert found.keys() == task.keys() and _equal(found, {p: state.params[p] for p in task})
    only = checkpoint.restore_params(tmp_path / 'checkpoints' / '4', 'best', net.shapes, ('expl',))
    assert isinstance(only['task/head/bias'], jax.ShapeDtypeStruct)
    np.testing.assert_array_equal(only['expl/out/kernel'], state.params['expl/out/kernel'])
    graphdef, like = nnx.split(nnx.eval_shape(lambda: fake.Pair(jax.random.key(0))), nnx.Param)
    model = nnx.merge(graphdef, checkpoint.restore_params(tmp_path, str(tmp_path / 'checkpoints' / '4'), like))
    np.testing.assert_array_equal(model.task.layers[1].kernel[...], state.params['task/layers/1/kernel'])


def test_best_falls_back_to_the_latest(trainer, saved, tmp_path):
    saved.save(_at(trainer()[3], 4), {})
    saved.wait()
    assert checkpoint.find(tmp_path, 'best') == tmp_path / 'checkpoints' / '4'
    with pytest.raises(ValueError, match=r'no complete checkpoint.*nowhere'):
        checkpoint.find(tmp_path / 'nowhere')


def test_a_checkpoint_of_another_model_lists_all_that_differs(trainer, saved, tmp_path):
    _, _, net, state, _ = trainer()
    saved.save(state, {})
    saved.wait()
    wanted = dict(net.shapes)
    wanted['task/new/bias'] = wanted.pop('task/head/bias')
    wanted['task/head/kernel'] = jax.ShapeDtypeStruct((8, 5), np.float32)
    with pytest.raises(ValueError) as error:
        checkpoint.restore_params(tmp_path, 'latest', wanted)
    for part in ('task/new/bias: missing', 'task/head/bias: not in the model', 'checkpoint (8, 3), model (8, 5)'):
        assert part in str(error.value)
    with pytest.raises(ValueError, match="no parameters of 'expl'"):
        (tmp_path / 'checkpoints' / '0' / 'expl').rename(tmp_path / 'away')
        checkpoint.restore_params(tmp_path, 'latest', net.shapes)


def test_a_workdir_of_another_config_is_refused(fake, tmp_path):
    checkpoint.check_config(fake.config(), tmp_path)
    checkpoint.write_config(fake.config(), tmp_path)
    assert json.loads((tmp_path / 'config.json').read_text())['train']['steps'] == 20
    checkpoint.check_config(
        fake.config(train__log_every=3, train__keep=9, mesh__fsdp=2, decode__beams=2, data__workers=3), tmp_path
    )
    places = dict(data__dir='/new', data__manual_dir='/raw', data__features=('/f',), data__images='/i')
    checkpoint.check_config(fake.config(**places, data__answers='/a', data__word_vocab='/w'), tmp_path)
    with pytest.raises(ValueError) as error:
        checkpoint.check_config(fake.config(train__steps=30, optim__lr=0.5), tmp_path)
    message = str(error.value)
    assert 'train.steps: 20 there, 30 here' in message and 'optim.lr: 0.05 there, 0.5 here' in message
    assert len(message.splitlines()) == 3


def _built(folder, config, sources):
    config.data.dir = str(folder)
    records.write_json(folder / 'build.json', {'settings': load.settings(config), 'sources': sources, 'counts': {}})
    return config


def test_the_data_set_may_move_but_not_change(fake, trainer, saved, tmp_path):
    config = _built(tmp_path / 'here', fake.config(), {'raw/a.csv': 'abc'})
    checkpoint.check_data(config, tmp_path)  # nothing trained yet
    assets = _assets(tmp_path / 'assets')
    manager = checkpoint.Checkpoints(tmp_path, keep=2, origin=checkpoint.origin(config, assets))
    manager.save(_at(trainer()[3], 1), {})
    manager.close()
    checkpoint.check_data(_built(tmp_path / 'there', fake.config(), {'raw/a.csv': 'abc'}), tmp_path)
    with pytest.raises(ValueError, match=r'trained on another data set than .*there holds now'):
        checkpoint.check_data(_built(tmp_path / 'there', fake.config(), {'raw/a.csv': 'abd'}), tmp_path)


def _assets(folder, answers=('yes', 'no')):
    texts = ['is it red ?', 'yes', 'no']
    word = tokenizers.train_word(texts, folder / 'word')
    made = tokenizers.Assets(word, tokenizers.train_expl(texts, folder / 'expl'), answers)
    tokenizers.save_assets(folder, made)
    return made


def test_vocabularies_are_found_by_their_content(trainer, tmp_path):
    run, other = tmp_path / 'run', tmp_path / 'other'
    assets = _assets(run / 'assets')
    _assets(other / 'assets', ('no', 'yes'))
    origin = {'config': {}, 'assets': assets.hashes(), 'data': ''}
    manager = checkpoint.Checkpoints(run, keep=1, origin=origin)
    manager.save_best(_at(trainer()[3], 1), 0.5, {})
    manager.close()
    assert checkpoint.read_origin(run / 'best' / '1') == origin
    assert checkpoint.find_assets(run / 'best' / '1').answers == ('yes', 'no')
    moved = (run / 'best' / '1').rename(tmp_path / 'moved')
    with pytest.raises(ValueError) as error:  # not silently those of another run
        checkpoint.find_assets(moved, other / 'assets')
    assert 'other/assets: others (answers: ' in str(error.value) and 'moved/assets: no such folder' in str(error.value)
    assert checkpoint.find_assets(moved, other / 'assets', run / 'assets').answers == ('yes', 'no')
    (run / 'assets').rename(moved / 'assets')
    assert checkpoint.find_assets(moved).answers == ('yes', 'no')


def test_a_checkpoint_that_does_not_say_its_origin(trainer, saved, tmp_path):
    saved.save(_at(trainer()[3], 1), {})
    saved.wait()
    with pytest.raises(ValueError, match=r'checkpoints/1/meta does not say with which config and assets and data'):
        checkpoint.read_origin(tmp_path / 'checkpoints' / '1')


def test_one_run_of_a_mode_at_a_time(tmp_path):
    with checkpoint.exclusive(tmp_path, 'train'), checkpoint.exclusive(tmp_path, 'decode'):
        with pytest.raises(ValueError, match='another --mode=train works in this folder right now'):
            with checkpoint.exclusive(tmp_path, 'train'):
                pass


def test_a_kill_during_a_save_leaves_the_older_checkpoint(fake, trainer, tmp_path):
    result = probe('save_probe.py', tmp_path)
    assert result.returncode == -signal.SIGKILL and '2.orbax' in result.stdout, result.stdout + result.stderr
    config, mesh, _, state, _ = trainer()
    assert checkpoint.find(tmp_path, 'latest') == tmp_path / 'checkpoints' / '1'
    manager = checkpoint.Checkpoints(tmp_path, keep=1)
    assert manager.latest_step() == 1
    again, meta = manager.restore(state_lib.abstract_state(fake.Pair, config, mesh)[-1])
    assert meta['note'] == 'first' and _equal(again.params, state.params)
    manager.save(_at(state, 2), {})  # in the place of the half-written one
    manager.close()
    assert [p.name for p in (tmp_path / 'checkpoints').iterdir()] == ['2']


def test_eight_devices_equal_one(tmp_path):
    """A tiny e-UG in float32 on (data, fsdp, tensor) = (2, 2, 2): same state, losses, parameters; restores anywhere."""
    result = probe('mesh_probe.py', tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert found['initial_equal'] and all(found['restored'].values()), found
    assert max(found['metrics'].values()) < 1e-5 and max(found['params'], found['moments']) < 1e-5, found
    assert found['shard'] == [[128, 512], [64, 256]] and "P('fsdp', 'tensor')" in found['moment_specs']
    assert 'rematerialization' not in result.stderr


def test_the_overview_counts_every_parameter(trainer):
    config, _, net, _, _ = trainer(optim__lr_mult=((r'task/.*', 0.0), (r'.*', 1.0)))
    rows = {line.split()[0]: line.split()[1:] for line in state_lib.overview(net, config).splitlines()[1:]}
    assert rows['total'][:2] == ['483', '272'] and rows['task'][:2] == ['211', '0'] and rows['expl/wte'][0] == '128'
    assert sum(leaf.size for leaf in net.shapes.values()) == 483
    assert sharding.flatten(net.like).keys() == net.shapes.keys()
