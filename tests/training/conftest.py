"""The tiny model is a fixture, so that test files need no path tricks."""

import importlib.util
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent


@pytest.fixture(scope='session')
def fake():
    """tests/training/fake.py as a module."""
    if 'training_fake' not in sys.modules:
        spec = importlib.util.spec_from_file_location('training_fake', FOLDER / 'fake.py')
        sys.modules['training_fake'] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules['training_fake'])
    return sys.modules['training_fake']


@pytest.fixture(scope='session')
def trainer(fake):
    """Function: (dropout=0, **config changes) -> (config, mesh, net, state, step)."""
    from evil_jax.training import sharding, state, step

    def make(dropout=0.0, **changes):
        config = fake.config(**changes)
        mesh = sharding.make_mesh(config)
        build = lambda key: fake.Pair(key, dropout, explains=config.train.regime != 'task')
        net, optimiser, start, shardings = state.create(build, config, mesh)
        run = step.make_step(net, fake.Task(), optimiser, config, mesh, shardings)
        return config, mesh, net, start, lambda s, b: run(s, sharding.place(b, mesh))

    return make
