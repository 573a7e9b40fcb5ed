"""The binary itself, as a user calls it: names, overrides and what it says when they are wrong."""

import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

from evil_jax import main

ROOT = pathlib.Path(__file__).resolve().parent.parent


def call(*arguments, cwd=ROOT, **env):
    """Runs the binary; returns (exit code, stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', *arguments],
        cwd=cwd, env={**os.environ, 'PYTHONPATH': str(ROOT), **env}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ('arguments', 'hint'),
    [
        (['--config=eug:shapes_ve', '--config.optim.lrr=1'], 'Did you mean "lr"'),
        (['--config=eug:shapes_ve', '--config.optim.lr=fast'], 'could not convert'),
        (['--config=eug:shapes_v'], "no data set 'shapes_v'; there are: shapes_ve"),
        (['--config=eug:shapes_ve,sise=tiny'], "Did you mean 'size'"),
        (['--config=eugg'], "no config 'eugg'. Did you mean 'eug'"),
        (['--config=eug:shapes_ve', '--mode=trian'], "Did you mean 'train'"),
        (['--config=eug:shapes_ve', '--workdirr=x'], 'workdir'),
        (['--config=eug:shapes_ve', 'config.seed=1'], "unknown argument 'config.seed=1'"),
        (['--config=eug:shapes_ve', '--config.train.batch=0'], 'config.train.batch is 0, wanted at least 1'),
        (['--config=/nonexistent/dir/eug.py:vqax'], '/nonexistent/dir/eug.py: no such file'),
        (['--config=eug:shapes_ve,size=bse'], "config.model.task.size is 'bse'. Did you mean 'base'"),
        (['--config=eug:shapes_ve', '--config.decode.limit=-5'], '(--trace shows where)'),
        (['--config=eug:shapes_ve', '--config.seed=-1', '--trace=false'], 'config.seed is -1'),
        (['--config=eug:shapes_ve', '--config.seed=-1', '--trace=perhaps'], "'perhaps'"),
        (
            ['--config=eug:shapes_ve', '--mode=evaluate', '--config.evaluate.compare=("x=absent.json",)'],
            'absent.json: there is no such',
        ),
        (['--config=eug:shapes_ve', '--config.train.regime=expl'], 'set model.task.init (or train.init) to the work'),
        (
            ['--config=eug:shapes_ve', '--config.train.task_weight=0', '--config.train.expl_weight=0'],
            'nothing would be',
        ),
        (['--config=eug:shapes_ve', '--config.model.task.init=hf:none'], 'none does not exist; wanted the folder of a'),
        (['--config=fme:shapes_ve', '--config.compat=3'], 'has quirk 3, which updown'),
        (['--config=eug:shapes_ve', '--num_processes=2'], '--coordinator and --process_id not given'),
        (['--config=eug:shapes_ve', '--distributed=some'], 'value should be one of <off|auto|manual>'),
        ([], 'which experiment?'),
    ],
)
def test_a_wrong_command_line_gets_one_line(arguments, hint, tmp_path):
    code, _, err = call(*arguments, cwd=tmp_path)
    assert code == 1
    assert hint in err
    assert len(err.strip().splitlines()) == 1, err
    assert not list(tmp_path.iterdir()), 'nothing is written'


def test_trace_is_shown_when_asked_for(tmp_path):
    for flag in ('--trace', '--trace=true', '-trace'):
        code, _, err = call('--config=eug:shapes_ve', '--config.seed=-1', flag, cwd=tmp_path)
        assert code == 1 and 'Traceback' in err and 'ValueError: config.seed is -1' in err


def test_an_interrupted_run_ends_in_a_word(monkeypatch, capsys):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(main.app, 'run', interrupt)
    monkeypatch.setattr(sys, 'argv', ['evil_jax.main'])
    with pytest.raises(SystemExit) as left:
        main.run()
    assert left.value.code == 130 and capsys.readouterr().err == 'interrupted (--trace shows where)\n'


def test_config_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ('eug', 'eug.py', 'configs/eug', 'configs/eug.py', './eug'):
        assert main.resolve_config(f'{name}:vqax') == f'{ROOT}/configs/eug.py:vqax'
    for name in ('/nonexistent/eug.py', 'mine/eug.py', '../configs/eug.py', 'eug.yaml'):
        with pytest.raises(ValueError, match='no such file'):
            main.resolve_config(f'{name}:vqax')
    assert main.resolve_config('eug:vqax,size=tiny') == f'{ROOT}/configs/eug.py:vqax,size=tiny'
    assert main.resolve_config(f'{ROOT}/configs/eug.py') == f'{ROOT}/configs/eug.py'
    assert main.default_workdir('configs/eug.py:shapes_ve,text_only') == 'runs/eug-shapes_ve-text_only'
    assert main.default_workdir('eug') == 'runs/eug'


def test_several_processes_are_asked_for_in_full_or_not_at_all():
    place = ('10.0.0.1:99', 4, 1)
    assert main.distribution(None, None, None, None, 300) is None
    assert main.distribution('off', None, None, None, 300) is None
    assert main.distribution('auto', None, None, None, 9)['auto']
    for kind in (None, 'manual'):
        found = main.distribution(kind, *place, 300)
        assert found == dict(auto=False, coordinator='10.0.0.1:99', number=4, this=1, timeout=300)
    for kind, *rest, hint in (
        ('off', *place, 300, '--distributed=off contradicts --coordinator=10.0.0.1:99, --num_processes=4'),
        ('auto', None, None, 0, 300, '--distributed=auto contradicts --process_id=0'),
        ('manual', None, None, None, 300, '--coordinator and --num_processes and --process_id not given'),
        (None, '10.0.0.1:99', 4, None, 300, '--process_id not given'),
        (None, '10.0.0.1:99', 4, 4, 300, '--process_id is 4, wanted 0 ... 3'),
        (None, '10.0.0.1:99', 4, -1, 300, '--process_id is -1, wanted 0 ... 3'),
        (None, '10.0.0.1:99', 0, 0, 300, '--num_processes is 0, wanted at least 1'),
        (None, '10.0.0.1', 4, 1, 300, "--coordinator is '10.0.0.1', wanted HOST:PORT"),
        (None, ':99', 4, 1, 300, "--coordinator is ':99', wanted HOST:PORT"),
        (None, 'host:port', 4, 1, 300, "--coordinator is 'host:port', wanted HOST:PORT"),
        (None, 'host:65536', 4, 1, 300, "--coordinator is 'host:65536', wanted HOST:PORT"),
        (None, *place, 0, '--connect_timeout is 0, wanted at least 1'),
    ):
        with pytest.raises(ValueError, match=re.escape(hint)):
            main.distribution(kind, *rest)


def test_nobody_at_the_coordinator(tmp_path):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        address = f'127.0.0.1:{free.getsockname()[1]}'  # bound, but nobody listens
        place = (f'--coordinator={address}', '--num_processes=2', '--process_id=1', '--connect_timeout=1')
        code, _, err = call('--config=eug:shapes_ve', *place, cwd=tmp_path)
    assert code == 1
    assert err.startswith(f'error: process 1 found no coordinator at {address} in 1 s') and err.count('\n') == 1
    assert not list(tmp_path.iterdir())


def test_no_cluster_to_be_found(tmp_path):
    code, _, err = call('--config=eug:shapes_ve', '--distributed=auto', cwd=tmp_path, JAX_PLATFORMS='cpu')
    assert code == 1
    assert err.startswith('error: --distributed=auto found no TPU pod') and err.count('\n') == 1


def test_help_is_light():
    """`--help` and grain's workers import main: it must not pull JAX in."""
    heavy = ('jax', 'flax', 'grain', 'tensorflow_datasets')
    code = f'import sys, evil_jax.main; print([m for m in {heavy} if m in sys.modules])'
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[]'
