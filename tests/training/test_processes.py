"""Several processes on this machine: helpers and errors by processes_probe.py, then the real binary.

More processes, restarts and kills: tests/acceptance/test_processes.py.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from evil_jax.training import processes

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROBE = pathlib.Path(__file__).with_name('processes_probe.py')


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]


@pytest.fixture
def play(tmp_path):
    """Function: (scene, number) -> [(exit code, stdout, stderr, [what it told])] of each process."""
    begun = []

    def run(scene, number=2):
        port = free_port()
        for this in range(number):
            command = [sys.executable, PROBE, scene, tmp_path, port, number, this]
            begun.append(
                subprocess.Popen(
                    list(map(str, command)), env=os.environ | {'PYTHONPATH': str(ROOT)}, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )
            )  # fmt: skip
        found = []
        for this, process in enumerate(begun):
            out, err = process.communicate(timeout=300)
            told = tmp_path / f'told-{this}'
            lines = told.read_text().splitlines() if told.exists() else []
            found.append((process.returncode, out, err, [json.loads(line) for line in lines]))
        return found

    yield run
    for process in begun:
        process.kill()


def test_what_only_the_first_does(play, tmp_path):
    (*first, told), (*second, told_second) = play('helpers')
    assert first[0] == second[0] == 0
    assert 'process 0 prints' in first[1] and second[1] == ''
    common = {'from': 0, 'time': 1}
    assert told == [[2, 0], common, 'alone', [0, 1], 'end']
    assert told_second == [[2, 1], common, [0, 1], 'end']
    assert list((tmp_path / 'new').iterdir()) == []


@pytest.mark.parametrize(
    ('scene', 'guilty', 'message'),
    [
        ('error_in_the_first', 0, 'file.csv:3: bad row'),
        ('error_in_another', 1, 'image 7 is missing'),
        ('differ', 1, 'has another seed than process 0: 1 and 0'),
        ('other_folders', 1, 'all processes need one file system for --workdir and data.dir'),
    ],
)
def test_one_error_ends_all_with_its_message(play, scene, guilty, message):
    start = time.monotonic()
    for this, (code, _, err, told) in enumerate(play(scene)):
        assert code == 1 and not told
        assert message in err and err.count('\n') == 1, err
        assert err.startswith('error: ' if this == guilty else f'error: process {guilty} failed: ')
    assert time.monotonic() - start < 50  # idle: 3 s; the scenes sleep for a minute


def test_the_same_error_everywhere_is_told_once_by_each(play):
    for code, _, err, _ in play('error_everywhere'):
        assert code == 1 and 'step 5: loss is nan' in err and err.count('\n') == 1


def test_a_bug_shows_where(play):
    first, second = play('bug')
    assert first[0] == second[0] == 1
    assert 'Traceback' in first[2] and first[2].endswith('RuntimeError: unexpected\n')
    assert second[2] == 'error: process 0 failed: RuntimeError: unexpected\n'


@pytest.mark.parametrize('scene', ['killed', 'silently_killed'])
def test_a_killed_process_is_missed(play, scene):
    """Exit code 75: start again."""
    left, killed = play(scene)
    assert killed[0] == -9
    assert left[0] == 75, left[2]
    assert left[2].startswith('error: another process is gone (') and left[2].count('\n') == 1


def test_without_the_first_nobody_waits(play):
    killed, left = play('first_killed')
    assert killed[0] == -9
    assert left[0] in (75, -6)  # JAX itself aborts when the coordinator is gone


def test_a_signal_to_one_stops_all_at_the_same_step(play):
    (*first, told), (*second, told_second) = play('stop')
    assert told == told_second
    ((step, code),) = told
    assert 3 <= step <= 6 and code == first[0] == second[0] == 130


def test_losses_do_not_depend_on_where_the_rows_are(play, trainer, fake):
    _, _, _, now, step = trainer()
    losses = []
    for number in range(3):
        now, metrics = step(now, fake.batch(number))
        losses.append(float(metrics['loss']))
    (*_, told), (*_, told_second) = play('train')
    everywhere = list(range(8))
    assert told[:3] == [[[0, 1, 2, 3], everywhere], [everywhere] * 2, [[0, 1, 4, 5], everywhere]]
    assert told_second[:3] == [[[4, 5, 6, 7], everywhere], [everywhere] * 2, [[2, 3, 6, 7], everywhere]]
    np.testing.assert_allclose(told[3:6], losses, rtol=1e-6)
    assert told[3:] == told_second[3:]


def test_ctrl_c_ends_who_waits(play):
    first, second = play('interrupted')
    assert (first[0], first[2]) == (130, 'error: interrupted\n')
    assert (second[0], second[2]) == (1, 'error: process 0 failed: interrupted\n')


# --- the binary ---

QUICK = {  # to compile
    'PYTHON': sys.executable,
    'XLA_FLAGS': '--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true',
    'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0', 'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1',
}  # fmt: skip
SETTINGS = {
    'data.world_train': 32, 'data.world_dev': 16, 'data.world_test': 10, 'model.dropout': 0.1, 'train.steps': 3,
    'train.batch': 8, 'train.log_every': 1, 'train.eval_every': 2, 'train.eval_examples': 5, 'train.save_every': 2,
    'decode.batch': 4, 'evaluate.report': False, 'evaluate.bootstrap': 10, 'model.expl.name': '', 'train.select': 's_t',
}  # fmt: skip


def test_all_modes_in_two_processes(tmp_path):
    """Every mode does its work once, prints it once, and leaves its numbers; no example is lost or doubled."""
    settings = SETTINGS | {'data.dir': tmp_path / 'data'}
    arguments = [f'--config.{key}={value}' for key, value in settings.items()]
    modes = ('build', 'train', 'decode', 'evaluate')
    done = subprocess.run(
        ['bash', ROOT / 'launch/processes.sh', '2', f'--logs={tmp_path}/logs', '--', '--config=eug:shapes_ve',
         f'--mode={",".join(modes)}', f'--workdir={tmp_path}/run', *arguments],
        cwd=ROOT, env=os.environ | QUICK | {'JAX_COMPILATION_CACHE_DIR': f'{tmp_path}/cache'},
        capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for mode in modes:
        assert (tmp_path / 'run' / f'{mode}.json').is_file()
        assert done.stdout.count(f'== {mode}: ') == 1
    assert json.loads((tmp_path / 'run/decode.json').read_text())['examples'] == 10
    ids = [json.loads(line)['id'] for line in (tmp_path / 'run/predictions.jsonl').read_text().splitlines()]
    assert len(set(ids)) == len(ids) == 10
    rows = map(json.loads, (tmp_path / 'run/metrics.jsonl').read_text().splitlines())
    assert [(row['step'], row['split']) for row in rows] == [
        (1, 'train'), (2, 'train'), (2, 'dev'), (3, 'train'), (3, 'dev'),
    ]  # fmt: skip
    log = (tmp_path / 'logs/process-1.log').read_text()
    assert '==' not in log and 'rror' not in log + done.stderr
    assert not list((tmp_path / 'run').glob('.*')) and not list((tmp_path / 'data').glob('.shared*'))


@pytest.mark.parametrize(
    ('error', 'lost'),
    [
        (ValueError('UNKNOWN: Gloo all-reduce failed: Connection closed by peer'), True),
        (ValueError('UNAVAILABLE/x/predictions.jsonl: there is no such file'), False),
        (ValueError("q7: the answer is 'Gloomy day', wanted one of 'ABORTED'"), False),
        (OSError('UNAVAILABLE: Gloo'), False),
    ],
)
def test_words_of_the_input_are_no_sign_of_a_dead_process(error, lost):
    assert processes._is_loss(error) is lost
