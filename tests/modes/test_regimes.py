"""Regimes on a small built-in world and on disk: M_T alone, M_E on the frozen M_T, a pair of both, answers carried
over."""

import contextlib
import io
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.data import load
from evil_jax.models import gpt2
from evil_jax.modes import build, decode, evaluate, train
from evil_jax.records import Prediction
from evil_jax.training import checkpoint, state


def make_config(data, **changes):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS['shapes_vqa'])
    config.data.update(dir=str(data), world_train=48, world_dev=8, world_test=12)
    config.model.task.size, config.model.expl.size = 'toy', 'mini'
    config.model.update(dtype='float32', dropout=0.1)
    config.optim.update(lr=1e-2, weight_decay=0.1)
    config.train.update(steps=3, batch=8, log_every=1, eval_every=0, eval_examples=4, save_every=2)
    config.decode.batch = 12
    config.evaluate.update(bootstrap=0, report=False)
    config.update_from_flattened_dict({key.replace('__', '.'): value for key, value in changes.items()})
    return config


def run(config, workdir):
    """(result, what was printed)"""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = train.run(config, workdir)
    return result, out.getvalue()


@pytest.fixture(scope='module', autouse=True)
def compiled_once(tmp_path_factory):
    """Keeps compiled programs: several runs here are of the same ones. To compile fast counts more than to run fast."""
    settings = {
        'jax_disable_most_optimizations': True,
        'jax_compilation_cache_dir': str(tmp_path_factory.mktemp('cache')),
        'jax_persistent_cache_min_compile_time_secs': 0.0,
        'jax_persistent_cache_min_entry_size_bytes': -1,
    }
    before = {name: jax.config.values[name] for name in settings}
    for values in (settings, before):
        for name, value in values.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        if values is settings:
            yield


@pytest.fixture(scope='module')
def world(toy, tmp_path_factory):
    gpt2.SIZES['mini'] = gpt2.Size(layers=1, width=32, heads=2, positions=96, std=0.1)
    folder = tmp_path_factory.mktemp('world')
    build.run(make_config(folder), folder)
    return folder


@pytest.fixture(scope='module')
def task_run(world, tmp_path_factory):
    """(work folder, result, what was printed) of M_T alone."""
    workdir = tmp_path_factory.mktemp('task')
    return workdir, *run(make_config(world, train__regime='task', train__eval_every=3), workdir)


def expl_config(world, task_run, **changes):
    settings = dict(train__regime='expl', model__task__init=str(task_run[0]), train__eval_every=3)
    return make_config(world, **(settings | changes))


@pytest.fixture(scope='module')
def expl_run(world, task_run, tmp_path_factory):
    """The same of M_E on that M_T."""
    workdir = tmp_path_factory.mktemp('expl')
    return workdir, *run(expl_config(world, task_run), workdir)


def arrays(folder, *modules):
    """{path: array} of some parts of a checkpoint."""
    found = {}
    for module in modules:
        tree = ocp.StandardCheckpointer().restore((folder / module).absolute())
        leaves = ocp.tree.to_flat_dict(tree, sep='/')
        found |= {f'{module}/{path}': np.asarray(value) for path, value in leaves.items() if value is not None}
    return found


def lines(workdir, split):
    rows = map(json.loads, (workdir / 'metrics.jsonl').read_text().splitlines())
    return [row for row in rows if row['split'] == split]


def test_the_task_module_alone(task_run):
    workdir, result, told = task_run
    assert 's_t chooses the best checkpoint (train.select is s_o)' in told and 'expl' not in told.split('total')[0]
    folder = checkpoint.find(workdir)
    assert checkpoint.held(folder) == ['task'] and checkpoint.read_meta(folder)['select'] == 's_t'
    assert result['expl_loss'] == result['tokens'] == 0 and result['loss'] == result['task_loss']
    assert not [name for name in lines(workdir, 'dev')[0] if name.startswith(('s_e', 's_o'))]


@pytest.fixture(scope='module')
def answers(world, task_run, tmp_path_factory):
    """Predictions of M_T alone, decoded with a config that knows nothing of its training."""
    workdir = tmp_path_factory.mktemp('answers')
    shutil.copytree(task_run[0], workdir, dirs_exist_ok=True)
    decode.run(make_config(world), workdir)
    return workdir, records.read_jsonl(workdir / 'predictions.jsonl', Prediction)


def test_it_answers_without_explanations(world, answers):
    workdir, predictions = answers
    assert len(predictions) == 12 and all(p.answer and not p.explanation and not p.explanation_ids for p in predictions)
    scores = evaluate.run(make_config(world), workdir)
    test = load.load_examples(make_config(world), 'test')
    gold = {example.id: example.answers for example in test}
    assert {p.id for p in predictions} == gold.keys() and all(max(answers.values()) == 1 for answers in gold.values())
    right = sum(gold[p.id].get(p.answer) == 1 for p in predictions)
    assert scores['s_t'] == pytest.approx(right / 12)


def test_the_task_module_is_frozen_bit_for_bit(task_run, expl_run):
    workdir, result, told = expl_run
    source, folder = checkpoint.find(task_run[0]), workdir / 'checkpoints' / '3'
    assert f'initial parameters of task from {source}' in told
    before, after = arrays(source, 'task'), arrays(folder, 'task')
    assert before.keys() == after.keys() and all(before[path].tobytes() == after[path].tobytes() for path in before)
    early, late = arrays(workdir / 'checkpoints' / '2', 'expl'), arrays(folder, 'expl')
    assert all(not np.array_equal(early[path], late[path]) for path in early if not path.endswith('key/bias'))
    moments = arrays(folder, 'train')
    assert any('expl' in path for path in moments) and not any('task' in path for path in moments)
    assert result['loss'] == result['expl_loss'] != result['task_loss'] > 0
    (dev,) = lines(workdir, 'dev')
    assert dev['s_t'] == lines(task_run[0], 'dev')[0]['s_t'] and 's_o_true' in dev
    rows = {line.split()[0]: line.split()[1:3] for line in told.splitlines() if line.startswith(('task ', 'expl '))}
    assert rows['task'][1] == '0' and rows['expl'][0] == rows['expl'][1] != '0'


def test_it_goes_on_without_the_source(world, task_run, expl_run, tmp_path, caplog):
    """Where the parameters came from is no longer needed, may have another place, and stays on record."""
    workdir = tmp_path / 'moved'
    shutil.copytree(expl_run[0], workdir)
    shutil.rmtree(workdir / 'checkpoints' / '3')
    shutil.rmtree(workdir / 'best')
    gone = str(tmp_path / 'gone')
    run(expl_config(world, task_run, model__task__init=gone, train__eval_every=0), workdir)
    parts = 'task', 'expl', 'train'
    there, here = (arrays(folder / 'checkpoints' / '3', *parts) for folder in (expl_run[0], workdir))
    assert there.keys() == here.keys() and all(np.array_equal(there[path], here[path]) for path in there)
    assert f'{gone!r} is not read, as the run goes on from step 2' in caplog.text
    meta, written = (
        checkpoint.read_meta(workdir / 'checkpoints' / '3'),
        json.loads((workdir / 'config.json').read_text()),
    )
    assert meta['config']['model']['task']['init'] == written['model']['task']['init'] == str(task_run[0])


def changed_copy(source, target, module, change):
    """A checkpoint whose parameters of a module are others; `change`: array -> array."""
    folder = checkpoint.find(source)
    params = {path: jnp.asarray(x) for path, x in arrays(folder, *checkpoint.held(folder)).items()}
    params = {path: change(x) if path.startswith(f'{module}/') else x for path, x in params.items()}
    saved = checkpoint.Checkpoints(target, 1, checkpoint.read_origin(folder))
    saved.save(state.TrainState(jnp.int32(3), params, {}), {})
    saved.close()
    shutil.copytree(source / 'assets', target / 'assets')
    return target


def test_parameters_that_do_not_fit_leave_nothing_behind(world, task_run, tmp_path):
    narrow = changed_copy(task_run[0], tmp_path / 'narrow', 'task', lambda x: x[..., :-1])
    config = expl_config(world, task_run, model__task__init=str(narrow), model__expl__init=str(task_run[0]))
    with pytest.raises(ValueError) as error:
        train.run(config, tmp_path / 'run')
    for part in (
        'model.task.init: ', 'task/image/norm/bias: checkpoint (31,), model (32,)', 'and 19 more of task',
        'model.expl.init: ', 'has no parameters of expl',
    ):  # fmt: skip
        assert part in str(error.value), part
    assert not [path for path in (tmp_path / 'run').iterdir() if path.name != '.train.lock']


# Pairs ---------------------------------------------------------------------------------------------------------------


def pair(world, task, expl, **changes):
    return make_config(world, decode__task_checkpoint=str(task), decode__checkpoint=str(expl), **changes)


def test_a_pair_answers_and_explains(world, task_run, expl_run, answers, tmp_path):
    """Trained one after the other: answers are those of M_T alone, explanations are of the predicted answers."""
    workdir = tmp_path / 'out'
    config = pair(world, task_run[0], checkpoint.find(expl_run[0]))
    decode.run(config, workdir)
    predictions = records.read_jsonl(workdir / 'predictions.jsonl', Prediction)
    assert [p.answer for p in predictions] == [p.answer for p in answers[1]]
    assert {p.condition for p in predictions} == {'predicted'} and any(p.explanation for p in predictions)
    meta = json.loads((workdir / 'predictions.meta.json').read_text())
    assert meta['task_checkpoint']['step'] == meta['checkpoint']['step'] == 3
    assert meta['task_checkpoint']['sha256'] != meta['checkpoint']['sha256']
    assert not any(key.endswith('.init') for key in meta['config'])
    assert decode.run(config, workdir)['decoded'] == 0
    with pytest.raises(ValueError, match=r"task_checkpoint\.sha256: '\w+' there, '\(absent\)' here"):
        decode.run(make_config(world, decode__checkpoint=config.decode.checkpoint), workdir)


def test_a_task_module_that_it_was_not_trained_on_is_refused(world, task_run, expl_run, tmp_path, monkeypatch):
    other = changed_copy(task_run[0], tmp_path / 'other', 'task', lambda x: x * 1.001)
    config, folder = pair(world, other, expl_run[0]), checkpoint.find(expl_run[0])
    with pytest.raises(
        ValueError, match=r'reads the memory of the M_T that it was trained on; that of .*other.* parameters'
    ):
        decode.load_trained(config, expl_run[0], folder)
    stripped = tmp_path / 'stripped'
    shutil.copytree(folder, stripped)
    shutil.rmtree(stripped / 'task')
    shutil.copytree(expl_run[0] / 'assets', stripped / 'assets')
    with pytest.raises(ValueError, match='no parameters of the M_T that its M_E was trained on, so it cannot be seen'):
        decode.load_trained(config, stripped, stripped)
    # One that reads no memory explains for any M_T.
    monkeypatch.setattr(gpt2, 'reads_memory', lambda config: False)
    for source in (folder, stripped):
        _, params = decode.load_trained(config, stripped, source)
        wanted = arrays(checkpoint.find(other), 'task') | arrays(folder, 'expl')
        assert params.keys() == wanted.keys() and all(np.array_equal(params[path], wanted[path]) for path in wanted)


def test_one_message_says_why_two_checkpoints_are_no_pair(world, task_run, expl_run, tmp_path):
    other = tmp_path / 'other'
    shutil.copytree(checkpoint.find(task_run[0]), other)
    path = other / 'meta' / 'metadata'
    meta = json.loads(path.read_text())
    meta['config']['data']['max_regions'] = 9
    meta['config']['model']['expl']['size'] = 'base'  # M_T alone has no M_E: it may say anything
    meta['assets']['answers'] = 'others'
    path.write_text(json.dumps(meta))
    config, task = pair(world, other, task_run[0]), checkpoint.find(task_run[0])
    with pytest.raises(ValueError) as error:
        decode.load_trained(config, task_run[0], task)
    for part in (
        f"decode.checkpoint {task}: no parameters of 'expl'", f'checkpoint {other}: data.max_regions: 9 there, 4 here',
        "vocabularies: answers: 'others' there",
    ):  # fmt: skip
        assert part in str(error.value), part
    assert 'model.expl' not in str(error.value)
    with pytest.raises(ValueError, match=r'decode\.task_checkpoint: no complete checkpoint in .*nowhere'):
        decode.load_trained(pair(world, tmp_path / 'nowhere', task), task_run[0], task)


def test_older_runs_lack_younger_settings(world, expl_run, tmp_path):
    """They were trained with what is the default now."""
    workdir = tmp_path / 'old'
    shutil.copytree(expl_run[0], workdir)
    for path in (workdir / 'config.json', workdir / 'checkpoints' / '3' / 'meta' / 'metadata'):
        document = json.loads(path.read_text())
        config = document.get('config', document)
        for section, key in (('task', 'fusion'), ('expl', 'image')):
            del config['model'][section][key]
        path.write_text(json.dumps(document))
    checkpoint.check_config(make_config(world, train__regime='expl'), workdir)
    latest = workdir / 'checkpoints' / '3'
    decode._check_config(make_config(world), latest)
    with pytest.raises(ValueError, match=r"model.task.fusion: 'mcb' there, 'product' here"):
        decode._check_config(make_config(world, model__task__fusion='product'), latest)


# VQA v2, then VQA-X -------------------------------------------------------------------------------------------------


def test_answers_of_pretraining_are_carried_over(world, task_run, answers, tmp_path):
    """The second data set lists them in another order, lacks one, and has one that pre-training did not know."""
    known = json.loads((world / 'assets' / 'answers.json').read_text())
    ours = [*known[:2:-1], 'a zebra', *known[:2]]  # known[2] is gone
    (tmp_path / 'ours.json').write_text(json.dumps(ours))
    second = make_config(tmp_path / 'data', data__answers=str(tmp_path / 'ours.json'), train__regime='task')
    second.data.manual_dir = str(world / 'raw')
    build.run(second, tmp_path / 'data')
    frozen = {'train.init': str(task_run[0]), 'train.steps': 1, 'optim.lr_mult': ((r'.*', 0.0),)}
    second.update_from_flattened_dict(frozen)
    _, told = run(second, tmp_path / 'run')
    assert f'answer head: {len(known) - 1} of our {len(ours)} answers are among its {len(known)}' in told
    there, here = (arrays(checkpoint.find(folder), 'task') for folder in (task_run[0], tmp_path / 'run'))
    kept = [n for n, answer in enumerate(known) if answer in ours]
    columns = [ours.index(known[n]) for n in kept]
    for path in ('task/head/answer/kernel', 'task/head/answer/bias'):
        np.testing.assert_array_equal(here[path][..., columns], there[path][..., kept])
    decode.run(second, tmp_path / 'run')
    found = records.read_jsonl(tmp_path / 'run' / 'predictions.jsonl', Prediction)
    wanted = {p.id: p.answer_scores for p in answers[1]}
    for prediction in found:
        for answer, probability in prediction.answer_scores.items():
            if answer in wanted[prediction.id]:
                assert probability == pytest.approx(wanted[prediction.id][answer], rel=1e-4)
    best = lambda scores: next(answer for answer in scores if answer in known and answer in ours)
    assert len(found) == 12 and all(best(p.answer_scores) == best(wanted[p.id]) for p in found)
