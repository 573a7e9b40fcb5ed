"""launch/processes.sh with a stand-in for the interpreter: who is started, restarted, told and stopped.

The real binary under it: tests/training/test_processes.py and tests/acceptance/test_processes.py.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / 'launch' / 'processes.sh'
STAND_IN = """#!/usr/bin/env bash
if [ "$1" = -c ]; then echo $((20000 + RANDOM)); exit; fi  # a free port
this=${@: -1}
this=${this#--process_id=}
cd "$FOLDER"
for ((attempt = 0; ; attempt++)); do [ -e "arguments-$this-$attempt" ] || break; done
printf '%s\\n' "$@" >"arguments-$this-$attempt"
[ "$JAX_LOCAL_DEVICE_IDS" = "$this" ] || exit 9
echo $$ >>pids
"""
# Tests that run in the background ignore SIGINT, and so would the script.
HEEDING = 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])'


@pytest.fixture
def start(tmp_path):
    """Function: (scene, script arguments) -> the running script. In the scene, bash, there are $this and $attempt."""
    begun = []

    def begin(scene, *arguments):
        stand_in = tmp_path / 'python'
        stand_in.write_text(STAND_IN + scene)
        stand_in.chmod(0o755)
        (tmp_path / 'tmp').mkdir()
        env = os.environ | {'PYTHON': str(stand_in), 'FOLDER': str(tmp_path), 'TMPDIR': str(tmp_path / 'tmp')}
        command = [sys.executable, '-c', HEEDING, 'bash', SCRIPT, *arguments]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
    for pid in pids(tmp_path):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def finish(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def pids(folder):
    path = folder / 'pids'
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(pid):
    try:
        state = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except FileNotFoundError:
        return False
    return state != 'Z'


def await_started(folder, count):
    end = time.monotonic() + 30
    while len(pids(folder)) < count:
        assert time.monotonic() < end
        time.sleep(0.02)


def attempts(folder, this):
    return [path.read_text().splitlines() for path in sorted(folder.glob(f'arguments-{this}-*'))]


def test_arguments_reach_every_process_as_they_are(start, tmp_path):
    odd = ['--config=a b', '--x="(\'c\',)"', '', '$HOME *', '--workdir=runs/é']
    code, out, err = finish(start('echo "this is $this"; echo "warning $this" >&2', '3', '--', *odd))
    assert (code, out, err) == (0, 'this is 0\n', 'warning 0\n')
    ports = set()
    for this in range(3):
        (got,) = attempts(tmp_path, this)
        *rest, coordinator, number, own = got
        assert rest == ['-m', 'evil_jax.main', *odd]
        assert (number, own) == ('--num_processes=3', f'--process_id={this}')
        ports.add(coordinator)
    (coordinator,) = ports
    assert coordinator.startswith('--coordinator=127.0.0.1:')
    assert not list((tmp_path / 'tmp').iterdir())  # logs of a run that went well


def test_output_of_the_others(start, tmp_path):
    code, out, _ = finish(start('echo "this is $this"', '2', f'--logs={tmp_path}/my logs', '--', 'x'))
    assert (code, out) == (0, 'this is 0\n')
    assert [path.name for path in (tmp_path / 'my logs').iterdir()] == ['process-1.log']
    assert (tmp_path / 'my logs/process-1.log').read_text() == 'this is 1\n'


def test_an_error_in_the_input_is_told_once_and_not_tried_again(start, tmp_path):
    scene = 'if [ $this = 1 ]; then exit 1; fi; echo "error: process 1 failed" >&2; exec sleep 1000'
    code, _, err = finish(start(scene, '3', '--', 'x'))
    assert (code, err) == (1, 'error: process 1 failed\n')
    assert len(pids(tmp_path)) == 3 and not any(map(alive, pids(tmp_path)))
    assert list((tmp_path / 'tmp').glob('*/process-1.log'))


@pytest.mark.parametrize('death', ['kill -KILL $$', 'kill -SEGV $$', 'kill -ABRT $$', 'exit 75'])
def test_after_a_death_all_start_again(start, tmp_path, death):
    scene = f'[ $attempt = 1 ] && exit 0; [ $this = 1 ] && {death}; sleep 0.5; exit 75'
    code, _, err = finish(start(scene, '2', '--', 'x'))
    assert code == 0, err
    assert 'process 1 (' in err and 'starting all 2 processes again (1 of 3)' in err and 'line' not in err
    for this in (0, 1):
        before, after = attempts(tmp_path, this)
        assert before[-3] != after[-3]  # a new port
        assert before[:-3] == after[:-3]
    assert not any(map(alive, pids(tmp_path)))


def test_a_death_that_the_others_follow_is_a_death(start, tmp_path):
    """The one that is left may end first, with a code of its own."""
    scene = '[ $attempt = 1 ] && exit 0; [ $this = 0 ] && exit 1; kill -KILL $$'
    code, _, err = finish(start(scene, '2', '--', 'x'))
    assert code == 0, err


@pytest.mark.parametrize(('told', 'others'), [(1, 134), (1, 75), (130, 1)])
def test_an_error_that_others_stumble_over_stays_an_error(start, tmp_path, told, others):
    code, _, err = finish(start(f'[ $this = 1 ] && exit {told}; exit {others}', '3', '--', 'x'))
    assert code in (told, others) and code != 134 and not err
    assert len(pids(tmp_path)) == 3


def test_restarts_have_a_limit(start, tmp_path):
    code, _, err = finish(start('kill -KILL $$', '2', '--restarts=1', '--', 'x'))
    assert code == 137
    assert err.count('starting all') == 1 and err.splitlines()[-1] == 'error: given up after 1 restarts'
    assert len(attempts(tmp_path, 0)) == 2


@pytest.mark.parametrize(('signum', 'code'), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_are_passed_on_and_waited_for(start, tmp_path, signum, code):
    """Each stand-in saves for a second and then ends as training does."""
    scene = f"""
        trap 'sleep 1; echo saved >"saved-$this"; exit {code}' {signum.name[3:]}
        echo $this >>ready
        while :; do sleep 0.1; done
    """
    process = start(scene, '2', '--', 'x')
    while not (tmp_path / 'ready').exists() or len((tmp_path / 'ready').read_text()) < 4:
        time.sleep(0.02)
    process.send_signal(signum)
    assert finish(process)[0] == code
    assert len(list(tmp_path.glob('saved-*'))) == 2
    assert len(pids(tmp_path)) == 2 and not any(map(alive, pids(tmp_path)))


def test_a_second_signal_ends_all_at_once(start, tmp_path):
    process = start('trap "" TERM; echo >"deaf-$this"; while :; do sleep 0.1; done', '2', '--', 'x')
    while len(list(tmp_path.glob('deaf-*'))) < 2:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.7)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 137
    assert not any(map(alive, pids(tmp_path)))


def test_children_of_a_process_end_with_it(start, tmp_path):
    """As grain's workers, which a kill -9 of their parent leaves behind."""
    scene = (
        '[ $attempt = 1 ] && exit 0; sleep 1000 & echo $! >>pids; sleep 0.3; [ $this = 1 ] && kill -KILL $$; exit 75'
    )
    code, _, err = finish(start(scene, '2', '--', 'x'))
    assert code == 0, err
    assert len(pids(tmp_path)) == 6 and not any(map(alive, pids(tmp_path)))


@pytest.mark.skipif(not shutil.which('setpriv'), reason='setpriv (util-linux) is not installed')
def test_nobody_outlives_the_script(start, tmp_path):
    process = start('exec sleep 1000', '2', '--', 'x')
    await_started(tmp_path, 2)
    time.sleep(0.2)
    process.kill()
    end = time.monotonic() + 10
    while any(map(alive, pids(tmp_path))) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, pids(tmp_path)))


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ([], 'how many processes?'),
        (['two', '--', 'x'], "the number of processes is 'two'"),
        (['0', '--', 'x'], 'the number of processes is 0'),
        (['2', '--config=eug'], "unknown argument '--config=eug'; those of evil_jax.main come after --"),
        (['2', '--restarts=-1', '--', 'x'], "--restarts is '-1'"),
        (['2'], 'nothing to run'),
        (['2', '--logs=', '--', 'x'], '--logs is empty'),
    ],
)
def test_usage(start, tmp_path, arguments, message):
    code, out, err = finish(start('', *arguments))
    assert code == 1 and not out and err.startswith('error: ') and message in err and err.count('\n') == 1
    assert not pids(tmp_path)
