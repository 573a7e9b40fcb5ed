"""Run as a script: saves step 1, then dies by SIGKILL in the middle of saving step 2. `save_probe.py FOLDER`."""

import importlib.util
import os
import pathlib
import signal
import sys
import threading

os.environ['JAX_PLATFORMS'] = 'cpu'

import jax
import numpy as np

from evil_jax.training import checkpoint, sharding, state

spec = importlib.util.spec_from_file_location('training_fake', pathlib.Path(__file__).with_name('fake.py'))
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)


def kill_when_writing(folder):
    """Ends the process as soon as arrays of the second save lie under its temporary name."""
    while not any('.orbax-checkpoint-tmp' in path and 'task' in path and files for path, _, files in os.walk(folder)):
        pass
    print(*sorted(p.name for p in folder.iterdir()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def main(workdir):
    config = fake.config()
    mesh = sharding.make_mesh(config)
    _, _, now, _ = state.create(fake.Pair, config, mesh)
    saved = checkpoint.Checkpoints(workdir, keep=1)
    at = lambda number: now._replace(step=jax.numpy.int32(number))
    saved.save(at(1), {'note': 'first'})
    saved.wait()
    threading.Thread(target=kill_when_writing, args=(workdir / 'checkpoints',), daemon=True).start()
    big = {'task/big': jax.numpy.asarray(np.random.default_rng(0).normal(size=(4000, 2000)).astype(np.float32))}
    saved.save(at(2)._replace(params=now.params | big), {'note': 'second'})
    saved.wait()
    print('saved', flush=True)


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
