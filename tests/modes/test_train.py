"""Training through the real binary on a small built-in world: resume, refusal, selection, failure."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import types

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from evil_jax import config as config_lib
from evil_jax.data import load
from evil_jax.modes import build, train
from evil_jax.tasks import base
from evil_jax.training import checkpoint, state

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SETTINGS = {
    'data.world_train': 64, 'data.world_dev': 16, 'data.world_test': 16,
    'model.dropout': 0.1, 'optim.accum': 2, 'train.steps': 40, 'train.batch': 8, 'train.dwa': 4, 'train.log_every': 20,
    'train.eval_every': 0, 'train.save_every': 1000, 'decode.batch': 8,
}  # fmt: skip


def make_config(data, **changes):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS['shapes_ve'])
    config.model.task.size = config.model.expl.size = 'tiny'
    config.model.dtype = 'float32'
    settings = SETTINGS | {'data.dir': str(data)} | {key.replace('__', '.'): value for key, value in changes.items()}
    config.update_from_flattened_dict(settings)
    return config


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A built data set; do not change it."""
    folder = tmp_path_factory.mktemp('world')
    build.run(make_config(folder), folder)
    return folder


def start(world, workdir, cache, **changes):
    """`python -m evil_jax.main --mode=train` with the settings above; its compiled step is kept in `cache`."""
    settings = SETTINGS | {'data.dir': str(world)} | {key.replace('__', '.'): value for key, value in changes.items()}
    arguments = [f'--config.{key}={value}' for key, value in settings.items()]
    environment = os.environ | {
        'JAX_PLATFORMS': 'cpu', 'JAX_COMPILATION_CACHE_DIR': str(cache),
        'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0', 'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1',
    }  # fmt: skip
    command = ['-m', 'evil_jax.main', '--mode=train', '--config=eug:shapes_ve', f'--workdir={workdir}', *arguments]
    return subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def saved_arrays(workdir, step):
    """All arrays of a checkpoint, parameters and moments, by path."""
    folder, found = workdir / 'checkpoints' / str(step), {}
    for item in ('task', 'expl', 'train'):
        tree = ocp.StandardCheckpointer().restore(folder / item)
        leaves = ocp.tree.to_flat_dict(tree, sep='/')
        found |= {f'{item}/{path}': np.asarray(value) for path, value in leaves.items() if value is not None}
    return found


def lines(workdir):
    """The log without what depends on the clock."""
    rows = map(json.loads, (workdir / 'metrics.jsonl').read_text().splitlines())
    return [{name: value for name, value in row.items() if name != 'examples_per_second'} for row in rows]


def test_forty_steps_equal_twenty_a_kill_and_twenty_more(world, tmp_path):
    cache = tmp_path / 'cache'
    whole, broken = tmp_path / 'whole', tmp_path / 'broken'
    code, out, err = finish(start(world, whole, cache))
    assert code == 0, err
    assert 'task/layers' in out and 'total' in out  # the overview

    process = start(world, broken, cache)
    while process.poll() is None and not (broken / 'metrics.jsonl').exists():
        time.sleep(0.001)  # the first line is written after step 20
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 0, err
    (stopped,) = checkpoint.steps(broken / 'checkpoints')
    assert 20 <= stopped < 40 and f'stopped and saved at step {stopped}' in out
    assert not (broken / 'train.json').exists()  # nothing after training ran

    code, out, err = finish(start(world, broken, cache))
    assert code == 0, err
    a, b = saved_arrays(whole, 40), saved_arrays(broken, 40)
    assert a.keys() == b.keys() and len([path for path in a if '/mu/' in path]) > 50
    assert (a['train/balance/before'] > 0).all() and (a['train/balance/last'] > 0).all()
    differing = [path for path in a if not np.array_equal(a[path], b[path])]
    assert not differing
    assert lines(whole) == lines(broken) and [row['step'] for row in lines(whole)] == [20, 40]

    code, out, err = finish(start(world, broken, cache, train__steps=60))
    assert code == 1 and 'train.steps: 40 there, 60 here' in err and 'Traceback' not in err


@pytest.fixture(scope='module')
def trained(world, tmp_path_factory):
    """(workdir, result) of four steps with evaluations at 2 and 4."""
    workdir = tmp_path_factory.mktemp('trained')
    return workdir, train.run(_short(world), workdir)


def _short(world, **changes):
    few = dict(train__steps=4, train__log_every=1, train__eval_every=2, train__eval_examples=6, train__save_every=3)
    plain = {'model.dropout': 0.0, 'optim.accum': 1, 'train.dwa': 0}
    return make_config(world, **(few | plain | changes))


def test_evaluation_chooses_the_best(trained):
    workdir, result = trained
    dev = [row for row in lines(workdir) if row['split'] == 'dev']
    assert [row['step'] for row in dev] == [2, 4] and all('s_t' in row for row in dev)
    (best,) = checkpoint.steps(workdir / 'best')
    meta = checkpoint.read_meta(workdir / 'best' / str(best))
    assert result['step'] == 4 and result['best_step'] == best and result['best_score'] == meta['score']
    assert meta['select'] == 's_o_true' and meta['score'] == max(row.get('s_o_true', 0.0) for row in dev)
    assert meta['config'] == json.loads((workdir / 'config.json').read_text())
    assert checkpoint.steps(workdir / 'checkpoints') == [3, 4]
    assert np.isfinite(result['loss'])


def test_the_workdir_has_all_that_later_modes_need(world, trained):
    workdir, _ = trained
    assert json.loads((workdir / 'config.json').read_text())['train']['steps'] == 4
    for path in ('answers.json', 'word/vocab.txt', 'expl/vocab.json', 'expl/merges.txt'):
        assert (workdir / 'assets' / path).read_bytes() == (world / 'assets' / path).read_bytes()
    assert list((workdir / 'tb').iterdir())


def test_a_finished_run_has_nothing_left_to_do(world, trained):
    workdir, result = trained
    before = (workdir / 'metrics.jsonl').read_bytes()
    again = train.run(_short(world), workdir)
    assert (workdir / 'metrics.jsonl').read_bytes() == before
    assert (again['step'], again['best_step']) == (4, result['best_step'])


def test_other_vocabularies_than_the_run_had_are_refused(world, trained, tmp_path):
    workdir, data = tmp_path / 'run', tmp_path / 'data'
    shutil.copytree(trained[0], workdir)
    shutil.copytree(world / 'assets', data / 'assets')
    (data / 'assets' / 'answers.json').write_text('["yes", "no"]')
    with pytest.raises(ValueError, match=r'other vocabularies.*answers\.json differ'):
        train._copy_assets(data / 'assets', workdir)


def test_init_takes_the_modules_that_are_there(world, trained, tmp_path, capsys):
    source = tmp_path / 'source'
    shutil.copytree(trained[0] / 'checkpoints' / '4', source)
    shutil.rmtree(source / 'expl')  # its work folder is away too: only the hashes tell that the vocabularies are ours
    settings = {'train.init': str(source), 'train.steps': 1, 'train.eval_every': 0, 'optim.lr_mult': ((r'.*', 0.0),)}
    config = _short(world, **settings)
    train.run(config, tmp_path / 'run')
    assert 'initial parameters of task' in capsys.readouterr().out
    old, new = saved_arrays(trained[0], 4), saved_arrays(tmp_path / 'run', 1)
    task = [path for path in old if path.startswith('task/')]
    assert all(np.array_equal(old[path], new[path]) for path in task)
    assert not np.array_equal(old['expl/wte/embedding'], new['expl/wte/embedding'])


def test_a_loss_that_is_not_finite_stops_with_step_and_ids(world, tmp_path):
    config = _short(world, **{'optim.lr': 1e30, 'optim.warmup': 0.0, 'train.eval_every': 0, 'train.save_every': 1})
    with pytest.raises(ValueError, match=r'step [23]: loss is .*Examples of the batch: \S+, \S+') as error:
        train.run(config, tmp_path)
    stopped = int(str(error.value).split()[1].rstrip(':'))
    assert checkpoint.steps(tmp_path / 'checkpoints')[-1] == stopped - 1
    for path, value in saved_arrays(tmp_path, stopped - 1).items():
        assert np.isfinite(value).all(), path


def test_a_model_without_explanations_is_chosen_by_s_t(world, tmp_path):
    config = _short(world, **{'model.expl.name': '', 'train.steps': 2})
    with pytest.raises(ValueError, match="'s_o', but a model without explanations has only s_t"):
        train.run(config, tmp_path)
    config.train.select = 's_t'
    result = train.run(config, tmp_path)
    assert result['expl_loss'] == 0 and (tmp_path / 'best' / str(int(result['best_step'])) / 'task').is_dir()
    assert not (tmp_path / 'best' / str(int(result['best_step'])) / 'expl').exists()


def dev_examples(world):
    config = _short(world)
    examples = load.load_examples(config, 'dev')
    return config, [examples[i] for i in range(6)]


@pytest.mark.parametrize(
    'scene, explained, metrics, wanted, chosen',
    [
        (True, True, ('rouge', 'cider'), 's_o', 's_o_true'),
        (True, True, (), 's_e', 's_e_true'),
        (True, True, (), 's_t', 's_t'),
        (False, True, ('rouge', 'cider'), 's_o', 's_o_fast'),
        (False, True, ('bleu',), 's_o', 's_t'),
        (False, False, ('rouge', 'cider'), 's_e', 's_t'),
    ],
)
def test_which_score_selects(world, caplog, scene, explained, metrics, wanted, chosen):
    """What the dev split can be scored by decides, not what one evaluation came to."""
    config, examples = dev_examples(world)
    config.train.select, config.evaluate.metrics = wanted, metrics
    for example in examples:
        example.explanations = example.explanations if explained else []
        example.extra = example.extra if scene else {}
    assert train.which_score(examples, base.make_task(config), config) == chosen
    assert ('s_t chooses the best checkpoint' in caplog.text) == (chosen == 's_t' != wanted)


def test_an_evaluation_without_explanation_score_counts_zero(tmp_path):
    """Formerly s_t took its place, and beat every later s_o. A best one by another score is replaced."""
    rows = []
    journal = types.SimpleNamespace(write=lambda *row: rows.append(row), say=lambda text: None, restart_clock=int)
    dev = types.SimpleNamespace(select='s_o_fast', scores=lambda params: scores)
    saved = checkpoint.Checkpoints(tmp_path, keep=1)
    loop = train._Loop(config_lib.base(), None, None, None, dev, None, saved, journal, {})

    def evaluate(step):
        loop._evaluate(state.TrainState(jax.numpy.int32(step), {'task/x': jax.numpy.ones(1)}, {}), step)
        return saved.best()

    scores = {'s_t': 0.3}
    assert evaluate(1) == (1, 0.0)
    scores = {'s_t': 0.2, 's_o_fast': 0.05}
    assert evaluate(2) == (2, 0.05)
    scores = {'s_t': 0.9}
    assert evaluate(3) == (2, 0.05)
    dev.select, scores = 's_o_true', {'s_o_true': 0.01, 's_o_fast': 0.1}
    assert evaluate(4) == (4, 0.01)
    assert checkpoint.read_meta(tmp_path / 'best' / '4')['select'] == 's_o_true' and len(rows) == 4
    saved.close()


def test_a_run_goes_on_with_the_data_in_another_place(world, trained, tmp_path):
    workdir, data = tmp_path / 'run', tmp_path / 'moved'
    shutil.copytree(trained[0], workdir)
    shutil.copytree(world, data)
    assert train.run(_short(data), workdir)['step'] == 4
    document = json.loads((data / 'build.json').read_text())
    document['sources']['raw/esnlive_train.csv'] = 'another'
    (data / 'build.json').write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r'run was trained on another data set than .*moved holds now'):
        train.run(_short(data), workdir)


def test_one_training_at_a_time(world, tmp_path):
    with checkpoint.exclusive(tmp_path, 'train'):
        with pytest.raises(ValueError, match='another --mode=train works in this folder right now'):
            train.run(_short(world), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_needs_no_data_is_refused_before_there_are_any(tmp_path):
    config = config_lib.base()
    train.check_files(config, tmp_path, ['build'])
    source = str(tmp_path / 'export')
    for init in (source, f'hf:{source}'):
        config.model.expl.init = init
        with pytest.raises(ValueError, match=r'model\.expl\.init: .*export'):
            train.check_files(config, tmp_path, ['build'])
        for mode in ('train', 'sweep', 'export'):
            train.check_files(config, tmp_path, ['build', mode])
    config.train.regime = 'task'  # without M_E, whose settings do not count
    config.model.update(task=dict(name='bert'))
    train.check_files(config, tmp_path, ['build'])
    config.compat = '3'
    with pytest.raises(ValueError, match='has quirk 3, which bert'):
        train.check_files(config, tmp_path, ['build'])
    config.train.task_weight = 0.0
    with pytest.raises(ValueError, match='nothing would be trained'):
        train.check_files(config, tmp_path, ['build'])
