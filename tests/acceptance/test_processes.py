"""Several processes through the real binary, both modules at work: losses, restarts, kills, merged predictions."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from evil_jax.training import checkpoint

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance
SETTINGS = {
    'data.world_train': 64, 'data.world_dev': 16, 'data.world_test': 10, 'model.dropout': 0.1, 'train.steps': 12,
    'train.batch': 8, 'train.dwa': 2, 'train.log_every': 1, 'train.eval_every': 0, 'train.eval_examples': 5,
    'train.save_every': 4, 'decode.batch': 8,
}  # fmt: skip


class Runs:
    """Starts the binary in a folder of its own. Programs stay compiled from one run to the next."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, number, workdir, mode, *options, devices=1, **changes):
        """In `number` processes of so many devices; 0 is the binary without the launcher."""
        settings = SETTINGS | {'data.dir': self.folder / 'data'}
        settings |= {key.replace('__', '.'): value for key, value in changes.items()}
        command = [sys.executable, '-m', 'evil_jax.main']
        if number:
            command = [
                'bash',
                'launch/processes.sh',
                str(number),
                f'--logs={self.folder}/{workdir}-logs',
                *options,
                '--',
            ]
        command += ['--config=eug:shapes_ve', f'--mode={mode}', f'--workdir={self.folder}/{workdir}']
        command += [f'--config.{key}={value}' for key, value in settings.items()]
        env = os.environ | {
            'JAX_COMPILATION_CACHE_DIR': str(self.folder / 'cache'), 'PYTHON': sys.executable,
            'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0', 'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1',
            'XLA_FLAGS': f'--xla_force_host_platform_device_count={devices}',
        }  # fmt: skip
        return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *arguments, code=0, **changes):
        process = self.start(*arguments, **changes)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, out[-2000:] + err[-3000:]
        return out, err

    def losses(self, workdir):
        rows = map(json.loads, (self.folder / workdir / 'metrics.jsonl').read_text().splitlines())
        return {row['step']: row['loss'] for row in rows if row['split'] == 'train'}

    def arrays(self, workdir, step=SETTINGS['train.steps']):
        """Parameters and moments by path; the devices that saved them need not be here."""
        found = {}
        for item in ('task', 'expl', 'train'):
            path, reader = self.folder / workdir / 'checkpoints' / str(step) / item, ocp.PyTreeCheckpointer()
            like = jax.tree.map(
                lambda _: ocp.RestoreArgs(restore_type=np.ndarray), reader.metadata(path).item_metadata.tree
            )
            leaves = ocp.tree.to_flat_dict(reader.restore(path, restore_args=like), sep='/')
            found |= {f'{item}/{name}': np.asarray(value) for name, value in leaves.items() if value is not None}
        return found

    def differing(self, left, right):
        """How many arrays are not the same, bit for bit."""
        a, b = self.arrays(left), self.arrays(right)
        assert a.keys() == b.keys() and len(a) > 200
        return sum(not np.array_equal(a[path], b[path]) for path in a)

    def furthest(self, left, right):
        """Largest relative difference of the losses."""
        a, b = self.losses(left), self.losses(right)
        assert a.keys() == b.keys() == set(range(1, SETTINGS['train.steps'] + 1))
        return max(abs(a[step] / b[step] - 1) for step in a)

    def predictions(self, workdir):
        return list(map(json.loads, (self.folder / workdir / 'predictions.jsonl').read_text().splitlines()))


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
    """With runs of 1, 2 and 4 processes, of a device each, and of one process with 4 devices."""
    runs = Runs(tmp_path_factory.mktemp('processes'))
    runs.run(2, 'two', 'build,train')
    runs.run(0, 'one', 'train')
    runs.run(4, 'four', 'train')
    runs.run(0, 'four_devices', 'train', devices=4)
    return runs


def test_losses_of_one_process(runs, measured):
    for name, number in (('two', 2), ('four', 4)):
        measured(f'{number} processes: largest relative difference of losses', '<=', 1e-5, runs.furthest(name, 'one'))
    found = runs.furthest('four', 'four_devices')
    measured('4 processes and one with 4 devices: the same', '<=', 1e-6, found)


def test_restart_on_another_number_of_processes(runs, measured):
    """Two processes are asked to stop, four and then one go on."""
    for number, last in ((2, 3), (4, 7)):
        process = runs.start(number, 'wandering', 'train')
        log = runs.folder / 'wandering' / 'metrics.jsonl'
        while process.poll() is None and not (log.exists() and max(runs.losses('wandering'), default=0) >= last):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0 and 'the same command continues' in out, out + err
        assert last <= checkpoint.steps(runs.folder / 'wandering/checkpoints')[-1] < SETTINGS['train.steps']
    runs.run(0, 'wandering', 'train')
    found = runs.furthest('wandering', 'one')
    measured('2, then 4, then 1 process: largest relative difference of losses', '<=', 1e-5, found)


def test_a_killed_process(runs, measured):
    """kill -9 of one in the middle of training: the launcher starts all again, and nothing is lost."""
    process = runs.start(2, 'killed', 'train')
    folder = runs.folder / 'killed'
    while process.poll() is None and 4 not in checkpoint.steps(folder / 'checkpoints'):
        time.sleep(0.01)
    (victim,) = (
        int(path.parent.name)
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline')
        if f'--workdir={folder}'.encode() in (line := _read(path).split(b'\0')) and line[-2:-1] == [b'--process_id=1']
    )
    os.kill(victim, signal.SIGKILL)
    start = time.monotonic()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert 'process 1 (137)' in err and 'starting all 2 processes again (1 of 3)' in err
    measured('kill -9 of one of 2: seconds to the end of the run', '<=', 240, time.monotonic() - start)
    measured(
        'kill -9 of one of 2: arrays that differ from the uninterrupted run', '<=', 0, runs.differing('killed', 'two')
    )
    assert runs.losses('killed') == runs.losses('two')


def _read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b''


def test_predictions_are_merged(runs, measured):
    """Ten examples in batches of eight, and one example on four processes; then an interrupted run goes on."""
    trained = {'decode__checkpoint': f'{runs.folder}/one/checkpoints/12'}
    for number in (0, 2, 4):
        runs.run(number, f'decoded-{number}', 'decode', **trained)
    wanted = runs.predictions('decoded-0')
    assert len(wanted) == 10
    for number in (2, 4):
        found = runs.predictions(f'decoded-{number}')
        assert _words(found) == _words(wanted)
        measured(f'{number} processes: largest difference of a probability', '<=', 1e-6, _furthest(found, wanted))

    runs.run(4, 'decoded-single', 'decode', decode__limit=1, **trained)
    assert _words(runs.predictions('decoded-single')) == _words(wanted[:1])

    path = runs.folder / 'decoded-2/predictions.jsonl'
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b''.join(lines[:3]) + lines[3][:20])  # as a kill leaves it
    out, _ = runs.run(4, 'decoded-2', 'decode', **trained)
    assert 'has 3 of 10 predictions; going on' in out
    assert path.read_bytes().splitlines(keepends=True)[:3] == lines[:3]
    assert _words(runs.predictions('decoded-2')) == _words(wanted)


def _words(predictions):
    """Without the probabilities."""
    return [{**row, 'answer_scores': list(row['answer_scores'])} for row in predictions]


def _furthest(left, right):
    pairs = zip(left, right, strict=True)
    return max(abs(a['answer_scores'][k] - b['answer_scores'][k]) for a, b in pairs for k in a['answer_scores'])


def test_a_loss_that_is_not_finite(runs):
    """All end with one message, which names the examples of all."""
    changes = {'optim__lr': 1e30, 'optim__clip': 0.0, 'model__expl__name': '', 'train__dwa': 0}
    _, err = runs.run(2, 'nan', 'train', code=1, **changes)
    (message,) = (line for line in err.splitlines() if line.startswith('error: '))
    assert message.partition('Examples of the batch: ')[2].count(',') == 7, err
    assert 'starting' not in err  # again
    assert (runs.folder / 'nan-logs/process-1.log').read_text().count('error: ') == 1


def test_only_one_run_in_a_folder(runs):
    """The lock is the first process's; the others end with it."""
    (runs.folder / 'busy').mkdir()
    from evil_jax import records

    with records.locked(runs.folder / 'busy/.train.lock', 'held'):
        _, err = runs.run(2, 'busy', 'train', code=1)
    assert err.count('error: ') == 1 and 'another --mode=train works in this folder' in err
    assert 'error: process 0 failed: ' in (runs.folder / 'busy-logs/process-1.log').read_text()
