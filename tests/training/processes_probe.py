"""Run as a script, one of several processes: `processes_probe.py SCENE FOLDER PORT NUMBER THIS`. See test_processes.py.

What a scene prints goes to FOLDER/told-THIS, as only the first process keeps its stdout.
"""

import importlib.util
import json
import os
import pathlib
import signal
import sys
import time

os.environ.update(JAX_PLATFORMS='cpu', TPU_SKIP_MDS_QUERY='1', XLA_FLAGS='--xla_force_host_platform_device_count=2')

from evil_jax.training import processes

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it
scene, folder, port, number, this = sys.argv[1], pathlib.Path(sys.argv[2]), *map(int, sys.argv[3:])


def tell(value):
    with open(folder / f'told-{this}', 'a') as file:
        file.write(json.dumps(value) + '\n')


def together(value):
    """A computation that all processes take part in."""
    import numpy as np
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(np.array([value]), tiled=True).tolist()


def helpers():
    print(f'process {this} prints')
    tell([processes.count(), processes.index()])
    tell(processes.first(lambda: {'from': this, 'time': (time.sleep(1), 1)[1]}))
    processes.alone(lambda: tell('alone'))
    processes.same('thing', [1, 'two'])
    processes.check_shared(folder / 'new')
    tell(together(this))


def error_in_the_first():
    def build():
        time.sleep(0.5)
        raise ValueError('file.csv:3: bad row')

    processes.first(build)


def error_in_another():
    if this == 1:
        raise ValueError('image 7 is missing')
    together(1)
    time.sleep(60)


def error_everywhere():
    raise ValueError('step 5: loss is nan')


def bug():
    if this == 0:
        raise RuntimeError('unexpected')
    processes.meet()


def killed():
    together(1)
    if this == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    together(2)


def silently_killed():
    """While the other one computes alone, so that Gloo does not tell it."""
    together(1)
    processes.meet()
    if this == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(80)  # JAX itself would abort after 100


def first_killed():
    if this == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    processes.first(lambda: None)


def differ():
    processes.same('seed', this)
    time.sleep(60)


def other_folders():
    processes._SEEN = 1
    processes.check_shared(folder / str(this))
    time.sleep(60)


def stop():
    from evil_jax.training import signals

    step = 0
    with signals.Stop() as stop:
        while not stop.agreed(now=step == 10_000):
            step += 1
            together(step)
            if this == 1 and step == 3:
                os.kill(os.getpid(), signal.SIGINT)
    tell([step, stop.exit_code])
    raise SystemExit(stop.exit_code)


def interrupted():
    if this == 1:
        processes.meet()

    def wait():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    processes.first(wait)


def no_stop():
    from evil_jax.training import signals

    with signals.Stop() as stop:
        tell([stop.agreed(now=True) for _ in range(5)])


def train():
    """Meshes in which the rows of a process are neighbours, are not, or are those of another too; the tiny model."""
    import jax
    import numpy as np

    from evil_jax.training import sharding, state, step

    spec = importlib.util.spec_from_file_location('training_fake', pathlib.Path(__file__).with_name('fake.py'))
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)
    devices = jax.devices()
    for order, tensor in (([0, 1, 2, 3], 1), ([0, 2, 1, 3], 2), ([0, 2, 1, 3], 1)):
        config = fake.config()
        config.mesh.tensor = tensor
        mesh = sharding.make_mesh(config, [devices[i] for i in order])
        rows = sharding.local_rows(8, mesh)
        placed = sharding.place({'row': np.int32(rows)}, mesh)['row']
        everywhere = jax.jit(lambda x: x, out_shardings=jax.NamedSharding(mesh, jax.P()))(placed)
        tell([rows.tolist(), np.asarray(everywhere).tolist()])
    net, optimiser, now, shardings = state.create(fake.Pair, config, mesh)
    run = step.make_step(net, fake.Task(), optimiser, config, mesh, shardings)
    for number in range(3):
        own = {name: value[rows] for name, value in fake.batch(number).items()}
        now, metrics = run(now, sharding.place(own, mesh))
        tell(float(metrics['loss']))


if __name__ == '__main__':
    options = processes.Options(False, f'127.0.0.1:{port}', number, this, 60)
    processes.run(options, {'scene': scene}, globals()[scene])
    tell('end')
