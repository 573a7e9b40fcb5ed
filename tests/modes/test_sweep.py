"""Sweeps: what is run, skipped, refused, averaged and told. The runs themselves are faked but for one."""

import functools
import json
import math
import re
import signal

import jax
import pytest

from evil_jax import config as config_lib
from evil_jax import lookup, records
from evil_jax.modes import _grid, _trials, sweep, train


def make_config(grid=(('optim.lr', (1e-3, 2e-3)), ('seed', (0, 1))), over=('seed',), **sweep_settings):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS['shapes_ve'])
    config.sweep.update(grid=grid, over=over, **sweep_settings)
    return config.lock()


_BODY = functools.cache(lookup._body)  # checking a config reads the sources of all models


class Runs:
    """Stands for build, train, decode and evaluate: notes what is called, and what happens is set by the test.

    Attributes:
      scores: function of a config.
      trains: function of a config and a folder, called in place of training.
    """

    def __init__(self, monkeypatch, tmp_path):
        self.trained, self.built, self.hash = [], [], lambda config: 'data'
        self.scores = lambda config: {'s_t': config.optim.lr * 100 + config.seed / 10, 's_e_true': 0.5}
        self.trains = lambda config, folder: None
        monkeypatch.setattr(sweep.train, 'run', self._train)
        monkeypatch.setattr(sweep.decode, 'run', lambda config, folder: {'examples': 4.0})
        monkeypatch.setattr(sweep.evaluate, 'run', lambda config, folder: self.scores(config))
        monkeypatch.setattr(sweep.build, 'run', lambda config, folder: self.built.append(config.data.dir))
        monkeypatch.setattr(sweep.checkpoint, 'data_hash', lambda config: self.hash(config))
        monkeypatch.setattr(sweep, 'which_score', lambda config, wanted: wanted or 's_t')
        monkeypatch.setattr(sweep.jax, 'clear_caches', lambda: None)
        monkeypatch.setattr(sweep.gc, 'collect', lambda: None)
        monkeypatch.setattr(lookup, '_body', _BODY)

    def _train(self, config, folder):
        self.trained.append(folder.name)
        folder.mkdir(parents=True, exist_ok=True)
        self.trains(config, folder)
        return {'step': 7, 'best_step': 5}


@pytest.fixture
def runs(monkeypatch, tmp_path):
    return Runs(monkeypatch, tmp_path)


def saved(workdir):
    return json.loads((workdir / 'sweep.json').read_text())


def test_every_combination_runs_once_and_the_best_mean_wins(runs, tmp_path, capsys):
    document = sweep.run(make_config(), tmp_path)
    names = ['lr-0.001,seed-0', 'lr-0.001,seed-1', 'lr-0.002,seed-0', 'lr-0.002,seed-1']
    assert runs.trained == names and runs.built == ['data/shapes_ve']
    assert saved(tmp_path) == json.loads(json.dumps(document)), 'main writes what is returned to the same file'
    point = document['points'][3]
    assert point['overrides'] == {'optim.lr': 0.002, 'seed': 1} and point['status'] == 'done'
    assert (point['scores']['s_t'], point['steps'], point['best_step']) == (pytest.approx(0.3), 7, 5)
    assert json.loads((tmp_path / names[3] / 'evaluate.json').read_text()) == point['scores']
    group = document['groups'][1]['scores']['s_t']
    assert group == {'mean': pytest.approx(0.25), 'sd': pytest.approx(math.sqrt(0.005)), 'n': 2}
    best = json.loads((tmp_path / 'best.json').read_text())
    assert best['flags'] == '--config.optim.lr=0.002' and best['names'] == names[2:] and best['select'] == 's_t'
    out = capsys.readouterr().out
    assert '0.250 ± 0.071 (n 2)' in out and '--config.optim.lr=0.002' in out and '4 of 4: lr-0.002,seed-1' in out
    assert 'lr-0.002,seed-1' in (tmp_path / 'sweep.html').read_text()


def test_points_are_plain_runs_on_the_split_that_is_scored(runs, tmp_path):
    seen = []
    runs.trains = lambda config, folder: seen.append(config)
    sweep.run(make_config(split='test'), tmp_path)
    one = seen[-1]
    assert (one.optim.lr, one.seed, one.decode.split, one.evaluate.split) == (2e-3, 1, 'test', '')
    assert one.sweep == config_lib.base().sweep, 'a longer grid must not make it another run'
    runs.trained.clear()
    sweep.run(make_config(split=''), tmp_path / 'dev')
    assert seen[-1].decode.split == 'dev'


def test_what_is_finished_stays_and_more_values_may_be_added(runs, tmp_path, capsys):
    sweep.run(make_config(), tmp_path)
    runs.trained.clear()
    before = saved(tmp_path)
    assert sweep.run(make_config(), tmp_path)['best'] == before['best'] and not runs.trained
    # In another order, with another value of each, and other settings that change no result.
    config = make_config((('seed', (2, 0, 1)), ('optim.lr', (1e-3, 5e-3, 2e-3))))
    config.train.log_every, config.evaluate.report = 1, False
    document = sweep.run(config, tmp_path)
    assert sorted(runs.trained) == sorted(
        ['lr-0.001,seed-2', 'lr-0.002,seed-2', 'lr-0.005,seed-0', 'lr-0.005,seed-1', 'lr-0.005,seed-2']
    )
    assert [g['scores']['s_t']['n'] for g in document['groups']] == [3, 3, 3]
    assert document['best']['overrides'] == {'optim.lr': 5e-3}
    assert '1 of 9: lr-0.001,seed-2' in capsys.readouterr().out


def test_another_sweep_is_refused_with_every_difference(runs, tmp_path):
    sweep.run(make_config(), tmp_path)
    config = make_config((('optim.lr', (1e-3,)), ('train.batch', (8,))), over=(), split='test')
    config.optim.clip, config.model.task.size = 3.0, 'tiny'
    before = (tmp_path / 'sweep.json').read_bytes()
    for refuse in (sweep.run, lambda config, workdir: sweep.check_files(config, workdir, [])):
        with pytest.raises(ValueError) as told:
            refuse(config, tmp_path)
        text = str(told.value)
        for part in (str(tmp_path), "split: 'dev' there, 'test' here", 'grid, optim.lr: 0.002 there, not here',
                     'grid, seed: [0, 1] there, (absent) here', 'grid, train.batch: (absent) there, [8] here',
                     'optim.clip: 1.0 there, 3.0 here', "model.task.size: 'base' there, 'tiny' here"):  # fmt: skip
            assert part in text
    assert (tmp_path / 'sweep.json').read_bytes() == before


def test_a_sweep_from_before_a_key_existed_goes_on(runs, tmp_path):
    sweep.run(make_config(), tmp_path)
    document = saved(tmp_path)
    del document['config']['model.task.gate'], document['config']['optim.clip']
    (tmp_path / 'sweep.json').write_text(json.dumps(document))
    runs.trained.clear()
    sweep.run(make_config(), tmp_path)
    assert not runs.trained and saved(tmp_path)['config']['model.task.gate'] == 'tanh'
    (tmp_path / 'sweep.json').write_text(json.dumps(document))
    config = make_config()
    config.optim.clip = 3.0
    with pytest.raises(ValueError, match=r'optim\.clip: 1\.0 there, 3\.0 here'):
        sweep.run(config, tmp_path)


def test_a_folder_in_the_way_is_told_before_anything_is_trained(runs, tmp_path):
    (tmp_path / 'sweep.json').mkdir()
    for refuse in (sweep.run, lambda config, workdir: sweep.check_files(config, workdir, [])):
        with pytest.raises(ValueError, match=r'sweep\.json: a folder, wanted a file'):
            refuse(make_config(), tmp_path)
    assert not runs.trained


def test_a_grid_of_repetitions_has_no_flags_to_print(runs, tmp_path, capsys):
    document = sweep.run(make_config((('seed', (0, 1)),)), tmp_path)
    assert document['best']['flags'] == ''
    out = capsys.readouterr().out
    assert 'best by s_t on dev: ' in out and not any(line.isspace() for line in out.splitlines())


def test_another_data_set_is_refused(runs, tmp_path):
    sweep.run(make_config(), tmp_path)
    runs.hash = lambda config: 'other'
    with pytest.raises(ValueError, match=r'4 points, such as lr-0.001,seed-0, were trained on another data set'):
        sweep.run(make_config(), tmp_path)


def test_an_interrupted_point_goes_on_where_it_was(runs, tmp_path):
    def stop(config, folder):
        if config.seed == 1:
            raise SystemExit(0)

    runs.trains = stop
    with pytest.raises(SystemExit) as left:
        sweep.run(make_config(), tmp_path)
    assert left.value.code == 0
    statuses = [p['status'] for p in saved(tmp_path)['points']]
    assert statuses == ['done', 'interrupted', 'waiting', 'waiting']
    assert '2 of them are not finished' not in (page := (tmp_path / 'sweep.html').read_text())
    assert '3 of them are not finished' in page
    runs.trains = lambda config, folder: None
    runs.trained.clear()
    assert sweep.run(make_config(), tmp_path)['best']['n'] == 2
    assert runs.trained == ['lr-0.001,seed-1', 'lr-0.002,seed-0', 'lr-0.002,seed-1']


def test_failures_are_kept_and_the_others_run(runs, tmp_path, capsys):
    def fail(config, folder):
        if config.optim.lr == 2e-3 and config.seed == 1:
            raise train.Diverged('step 3: loss is nan')
        if config.optim.lr == 1e-3 and config.seed == 0:
            raise ValueError('[no] such file')

    runs.trains = fail
    document = sweep.run(make_config(), tmp_path)
    assert [p['status'] for p in document['points']] == ['failed', 'done', 'done', 'diverged']
    assert document['failed'] == 2 and document['points'][3]['reason'] == 'step 3: loss is nan'
    out = capsys.readouterr().out
    assert 'warning: 2 of 4 points have no score' in out and '[no] such file' in out
    assert 'step 3: loss is nan' in (tmp_path / 'sweep.html').read_text()
    # The same rate would diverge again; what else was wrong may be right now.
    runs.trains = lambda config, folder: None
    runs.trained.clear()
    document = sweep.run(make_config(), tmp_path)
    assert runs.trained == ['lr-0.001,seed-0'] and [p['status'] for p in document['points']].count('done') == 3
    assert 'reason' not in document['points'][0]
    (tmp_path / 'lr-0.002,seed-1').rmdir()
    runs.trained.clear()
    assert sweep.run(make_config(), tmp_path)['failed'] == 0 and runs.trained == ['lr-0.002,seed-1']


def test_a_group_with_a_failure_wins_only_where_all_have_one(runs, tmp_path):
    def fail(config, folder):
        if config.optim.lr == 2e-3 and config.seed == 0:
            raise train.Diverged('nan')

    runs.trains = fail
    best = sweep.run(make_config(), tmp_path)['best']
    assert best['overrides'] == {'optim.lr': 1e-3} and best['mean'] < 0.3
    runs.trains = lambda config, folder: fail(config, folder) or (config.seed == 0 and fail_always())

    def fail_always():
        raise train.Diverged('nan')

    assert sweep.run(make_config(), tmp_path / 'all')['best']['overrides'] == {'optim.lr': 2e-3}


def test_no_score_at_all_is_an_error(runs, tmp_path):
    def fail(config, folder):
        raise ValueError(f'no rate {config.optim.lr}')

    runs.trains = fail
    with pytest.raises(ValueError, match=r'no point of the sweep has a score: no rate 0\.001; no rate 0\.002'):
        sweep.run(make_config(), tmp_path)
    assert [p['status'] for p in saved(tmp_path)['points']] == ['failed'] * 4
    assert not (tmp_path / 'best.json').exists()
    runs.trains, runs.scores = (lambda config, folder: None), (lambda config: {'accuracy': 1.0})
    with pytest.raises(ValueError, match=r'there is no s_t in any scores\.json'):
        sweep.run(make_config(), tmp_path)


def test_other_errors_end_the_sweep(runs, tmp_path):
    for error in (OSError('no space left'), KeyError('bug'), KeyboardInterrupt()):
        runs.trains = lambda config, folder, error=error: (_ for _ in ()).throw(error)
        with pytest.raises(type(error)):
            sweep.run(make_config(), tmp_path)
        assert saved(tmp_path)['points'][0]['status'] == 'interrupted'


def test_several_processes_leave_only_diverged_points_behind(runs, tmp_path, monkeypatch):
    """Any other error may be of one process alone, while the others wait for it in the middle of a step."""
    monkeypatch.setattr(sweep.processes, 'count', lambda: 2)
    monkeypatch.setattr(sweep.processes, 'first', lambda function: function())
    runs.trains = lambda config, folder: (_ for _ in ()).throw(train.Diverged('nan') if config.seed else ValueError())
    with pytest.raises(ValueError):
        sweep.run(make_config(), tmp_path)
    runs.trained.clear()
    runs.trains = lambda config, folder: (_ for _ in ()).throw(train.Diverged('nan')) if config.seed else None
    assert sweep.run(make_config(), tmp_path)['failed'] == 2 and len(runs.trained) == 4


def test_only_one_process_writes(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep.processes, 'index', lambda: 1)
    monkeypatch.setattr(sweep.processes, 'first', lambda function: function())
    monkeypatch.setattr(sweep.processes, 'alone', lambda function: None)
    assert sweep.run(make_config(), tmp_path)['best']['n'] == 2
    assert not list(tmp_path.glob('*.json')) and not list(tmp_path.glob('*.html'))


def test_two_values_stand_side_by_side_seed_by_seed(runs, tmp_path, capsys):
    scores = {('task', 0): 0.5, ('task', 1): 0.7, ('task', 2): 0.6, ('joint', 0): 0.6, ('joint', 1): 0.7}
    runs.scores = lambda config: {'s_t': scores[config.train.regime, config.seed]}

    def fail(config, folder):
        if (config.train.regime, config.seed) == ('joint', 2):
            raise train.Diverged('nan')

    runs.trains = fail
    config = make_config((('train.regime', ('task', 'joint')), ('seed', (0, 1, 2))), split='test')
    (contrast,) = sweep.run(config, tmp_path)['contrasts']
    cells = contrast['rows'][0]['scores']['s_t']
    assert cells['first'] == {'mean': pytest.approx(0.6), 'sd': pytest.approx(0.1), 'n': 3}
    assert cells['second']['n'] == 2 and cells['difference'] == {
        'mean': pytest.approx(0.05), 'sd': pytest.approx(math.sqrt(0.005)), 'n': 2,
    }  # fmt: skip
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if '+0.050' in line]
    cells = [cell.strip() for cell in line.strip('│').split('│')]
    assert cells == ['uniter + gpt2', '0.600 ± 0.100 (n 3)', '0.650 ± 0.071 (n 2)', '+0.050 ± 0.071 (n 2)']
    assert 'task only' in out and 'compared on the test split' in out


# --- the grid ---


@pytest.mark.parametrize('grid,over,message', [
    ((), (), 'grid is empty; for example'),
    (('optim.lr', (1e-5, 2e-5)), (), "has 'optim.lr', wanted \\(key, \\(value, ...\\)\\) pairs in a tuple"),
    ((('optim.lr', 1e-5),), (), "has 1e-05 for 'optim.lr', wanted a tuple of values"),
    ((('optim.lr', ()),), (), "has \\(\\) for 'optim.lr'"),
    ((('optim.lrr', (1e-5,)),), (), "'optim.lrr', which is no key of the config. Did you mean 'optim.lr'"),
    ((('optim', (1e-5,)),), (), "'optim', which is no key of the config. It is a section: optim.accum"),
    ((('optim.lr', ('fast',)),), (), "optim.lr='fast', wanted float, for example"),
    ((('train.steps', (10, 2.5)),), (), 'train.steps=2.5, wanted int'),
    ((('train.steps', (True,)),), (), 'train.steps=True, wanted int'),
    ((('optim.lr', (1, 2.0, 1.0)),), (), 'optim.lr=1.0 twice'),
    ((('seed', (0,)), ('seed', (1,))), (), "'seed' twice"),
    ((('data.dir', ('a',)),), (), "'data.dir', which a sweep sets itself"),
    ((('sweep.split', ('dev',)),), (), "'sweep.split', which a sweep sets itself"),
    ((('evaluate.bootstrap', (1,)),), (), 'changes no score'),
    ((('decode.task_checkpoint', ('', 'runs/x')),), (), "'decode.task_checkpoint', which a sweep sets itself"),
    ((('optim.lr', (1e-5,)),), ('sed',), "sweep.over has 'sed', which is not in the grid. It has: optim.lr"),
    ((('model.task.size', ('tiny', 'hug')),), (), "the point size-hug of the sweep: config.model.task.size is 'hug'"),
    ((('optim.lr', (-1.0,)),), (), 'the point lr--1.0 of the sweep: config.optim.lr is -1.0, wanted at least 0'),
    ((('train.regime', ('joint', 'expl')),), (), "the point regime-expl of the sweep: train.regime is 'expl'.*set"),
    ((('train.init', ('', 'eug:none.pth')),), (), 'the point init-.* of the sweep: train.init: eug:none.pth: '),
    ((('compat', ('fixed', '3')), ('model.task.name', ('mcb',))), (), 'the point compat-3,name-mcb .* has quirk 3'),
])  # fmt: skip
def test_grids_that_make_no_sense_are_told_before_any_work(runs, tmp_path, grid, over, message):
    for refuse in (sweep.run, lambda config, workdir: sweep.check_files(config, workdir, [])):
        with pytest.raises(ValueError, match=message):
            refuse(make_config(grid, over), tmp_path)
    assert not list(tmp_path.iterdir()) and not runs.trained


@pytest.mark.parametrize('key,value', [
    ('evaluate.predictions', 'p.jsonl'), ('evaluate.references', 'e.jsonl'), ('evaluate.systems', ('a=b',)),
    ('evaluate.ratings', 'r.csv'), ('decode.checkpoint', 'runs/x'),
    ('decode.task_checkpoint', 'runs/x'),
])  # fmt: skip
def test_settings_that_would_give_every_point_the_same_score_are_refused(runs, tmp_path, key, value):
    config = make_config()
    config.update_from_flattened_dict({key: value})
    with pytest.raises(ValueError, match=re.escape(f'config.{key} is {value!r}, but every point')):
        sweep.run(config, tmp_path)


def test_a_point_that_is_finished_or_under_way_needs_its_source_no_longer(runs, tmp_path):
    config = make_config((('model.expl.init', ('hf:gone', '')), ('seed', (0, 1))))
    grid = _grid.read(config)
    points = _grid.points(config, grid)
    names = [point.name for point in points]
    document = _trials.begin(tmp_path / 'sweep.json', config, grid, points)
    document['points'][0]['status'] = 'done'
    records.write_json(tmp_path / 'sweep.json', document)
    with pytest.raises(ValueError, match=f'the point {names[1]} of the sweep: model.expl.init.*gone'):
        sweep.check_files(config, tmp_path, [])
    (tmp_path / names[1] / 'checkpoints' / '3').mkdir(parents=True)
    sweep.check_files(config, tmp_path, [])


def test_names_of_folders_are_short_safe_and_different():
    names = [
        _grid.name({'optim.lr': value, 'model.task.size': size, 'model.expl.size': 'tiny', 'train.init': init})
        for value in (1e-5, 2e-5)
        for size in ('tiny', 'base')
        for init in ('', '../../etc', 'a/b', 'a b', 'a,b', 'ä', 'hf:x', 'x' * 400, 'x' * 401)
    ]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r'[A-Za-z0-9_.,+-]{1,200}', name) and not name.startswith('.') for name in names), names
    assert _grid.name({'seed': 0, 'optim.lr': 1e-5}) == _grid.name({'optim.lr': 1e-5, 'seed': 0}) == 'lr-1e-05,seed-0'
    assert _grid.name({'model.task.size': 'base', 'model.expl.size': 'tiny'}) == 'expl.size-tiny,task.size-base'
    assert _grid.flags({'train.init': 'a b', 'optim.lr': 1e-5}) == "'--config.train.init=a b' --config.optim.lr=1e-05"


def test_values_get_the_type_of_their_key():
    config = make_config((('optim.lr', (1,)), ('evaluate.metrics', ())), over=())
    config.sweep.grid = (['optim.lr', [1, 2]], ('optim.lr_mult', ((('.*', 1.0),), [['.*', 2.0]])))
    grid = _grid.read(config)
    assert grid == {'optim.lr': (1.0, 2.0), 'optim.lr_mult': ((('.*', 1.0),), (('.*', 2.0),))}
    assert all(isinstance(value, float) for value in grid['optim.lr'])
    assert len(_grid.points(config, grid)) == 4


def test_data_sets_that_differ_have_folders_of_their_own(runs, tmp_path, capsys):
    config = make_config((('data.world_train', (12_000, 50)), ('data.max_text', (10, 12)), ('seed', (0,))))
    document = sweep.run(config, tmp_path)
    folders = {p['name']: p['data_dir'] for p in document['points']}
    assert folders == {
        'max_text-10,world_train-12000,seed-0': 'data/shapes_ve',
        'max_text-12,world_train-12000,seed-0': 'data/shapes_ve',
        'max_text-10,world_train-50,seed-0': 'data/shapes_ve-world_train-50',
        'max_text-12,world_train-50,seed-0': 'data/shapes_ve-world_train-50',
    }
    assert runs.built == ['data/shapes_ve', 'data/shapes_ve-world_train-50']
    assert 'note: the grid changes what is built' in capsys.readouterr().out
    runs.scores = lambda config: {'s_t': 1 / config.data.world_train}
    best = sweep.run(config, tmp_path / 'other')['best']
    assert '--config.data.dir=data/shapes_ve-world_train-50' in best['flags']
    real = config_lib.base()
    real.data.update(config_lib.DATA_SETS['vqax'])
    real.sweep.update(grid=(('data.answers_min_count', (9, 2)),))
    first, second = (p.config.data for p in _grid.points(real, _grid.read(real)))
    assert (first.dir, first.manual_dir) == ('data/vqax', '')
    assert (second.dir, second.manual_dir) == ('data/vqax-answers_min_count-2', 'data/vqax/raw')


@pytest.mark.parametrize('change,message', [
    (lambda d: '{', 'not JSON'),
    (lambda d: json.dumps({'step': 1}), "wanted an object with 'schema': 1 and 'kind': 'sweep'"),
    (lambda d: json.dumps(d | {'schema': 2}), "wanted an object with 'schema': 1"),
    (lambda d: json.dumps(d | {'points': 3}), 'not as --mode=sweep writes it'),
    (lambda d: json.dumps(d | {'grid': []}), 'grid is \\[\\], wanted dict'),
    (lambda d: json.dumps(d | {'points': [d['points'][0] | {'status': 'good'}]}), "status 'good'"),
    (lambda d: json.dumps(d | {'points': [d['points'][0] | {'scores': {'s_t': 'high'}}]}), 'numbers of lr-0.001'),
    (lambda d: json.dumps(d | {'points': [d['points'][0] | {'overrides': {'seed': 7}}]}), 'overrides of lr-0.001'),
])  # fmt: skip
def test_a_damaged_sweep_json_is_told(runs, tmp_path, change, message):
    document = sweep.run(make_config(), tmp_path)
    (tmp_path / 'sweep.json').write_text(change(document))
    with pytest.raises(ValueError, match=r'sweep\.json.*' + message):
        sweep.run(make_config(), tmp_path)


def test_another_sweep_at_work_is_told(runs, tmp_path):
    with records.locked(tmp_path / '.sweep.lock', 'x'), pytest.raises(ValueError, match='another --mode=sweep works'):
        sweep.run(make_config(), tmp_path)


@pytest.fixture
def compiles_fast():
    """XLA's optimisations take most of a test that runs three steps."""
    before = jax.config.read('jax_disable_most_optimizations')
    jax.config.update('jax_disable_most_optimizations', True)
    yield
    jax.config.update('jax_disable_most_optimizations', before)


@pytest.mark.usefixtures('compiles_fast')
def test_a_real_point_that_is_stopped_goes_on(toy, tmp_path, monkeypatch, capsys):
    """Through build, training, decoding and scoring: SIGTERM after the second step, then the same command again."""
    assert toy.uniter.SIZES['toy']
    monkeypatch.setattr(lookup, 'keys', lambda *_: ())  # such a size is for tests only
    config = make_config((('seed', (3,)),))
    config.data.update(dir=str(tmp_path / 'data'), world_train=24, world_dev=8, world_test=8)
    config.model.task.size, config.model.expl.name, config.model.dtype = 'toy', '', 'float32'
    config.train.update(steps=3, batch=8, log_every=1, eval_every=0, select='s_t')
    config.decode.batch, config.evaluate.bootstrap, config.evaluate.report = 8, 5, False
    workdir = tmp_path / 'run'
    with monkeypatch.context() as patch:
        write = train.log.Log.write

        def write_and_stop(self, step, split, values):
            write(self, step, split, values)
            if step == 2:
                signal.raise_signal(signal.SIGTERM)

        patch.setattr(train.log.Log, 'write', write_and_stop)
        with pytest.raises(SystemExit) as left:
            sweep.run(config, workdir)
    assert left.value.code == 0
    stopped = saved(workdir)
    assert stopped['points'][0]['status'] == 'interrupted' and stopped['select'] == 's_t' and stopped['best'] is None

    (point,) = sweep.run(config, workdir)['points']
    assert (point['status'], point['steps']) == ('done', 3) and point['seconds'] >= stopped['points'][0]['seconds']
    folder = workdir / 'seed-3'
    steps = [json.loads(line)['step'] for line in (folder / 'metrics.jsonl').read_text().splitlines()]
    assert steps == [1, 2, 3], 'no step is done twice'
    scores = json.loads((folder / 'scores.json').read_text())['evil']['all']
    assert point['scores']['s_t'] == scores['s_t']['value'] and scores['s_t']['n'] == 8
    assert len((folder / 'predictions.jsonl').read_text().splitlines()) == 8
    capsys.readouterr()
    assert sweep.run(config, workdir)['points'] == [point]
    assert '1 of 1: seed-3: done' in capsys.readouterr().out
    config.sweep.select = 's_tt'
    with pytest.raises(ValueError, match=r"sweep\.select is 's_tt'\. Did you mean 's_t'.* There are: .*s_e_true"):
        sweep.run(config, workdir)
