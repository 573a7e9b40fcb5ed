"""Integers among the parameters, as the hashes of a count sketch, are constants: in the checkpoint, never trained."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from evil_jax.models.context import Context
from evil_jax.nn import ops, pooling
from evil_jax.training import checkpoint, optim, sharding, state, step

CONSTANTS = {f'task/fuse/{side}/{name}' for side in ('first', 'second') for name in ('hash', 'sign')}


class Answerer(nnx.Module):
    def __init__(self, rngs):
        self.fuse = pooling.CompactBilinear(4, 4, 8, rngs=rngs)
        self.head = ops.Linear(8, 3, std=0.5, dtype=jnp.float32, rngs=rngs)

    def __call__(self, batch, key=None):
        x = self.fuse(batch['features'], batch['features'])
        return self.head(x), Context(x[:, None], jnp.ones(len(x), jnp.int32), x, {})


class Model(nnx.Module):
    def __init__(self, key):
        self.task, self.expl = Answerer(nnx.Rngs(params=key)), None


def test_constants_are_saved_and_restored_and_nothing_changes_them(fake, tmp_path):
    config = fake.config(optim__weight_decay=0.1, optim__decay=((r'.*', 1.0),))  # decays everything
    mesh = sharding.make_mesh(config)
    net, optimiser, start, shardings = state.create(Model, config, mesh)
    assert {path for path, leaf in start.params.items() if not jnp.issubdtype(leaf.dtype, jnp.floating)} == CONSTANTS
    assert set(optim.trainable(net.shapes, config.optim.lr_mult)) == set(start.params) - CONSTANTS
    assert not any(jnp.issubdtype(x.dtype, jnp.integer) and x.ndim for x in jax.tree.leaves(start.opt))
    before = jax.tree.map(np.array, start.params)  # the step donates its input
    run = step.make_step(net, fake.Task(), optimiser, config, mesh, shardings)
    for number in range(2):
        start, metrics = run(start, sharding.place(fake.batch(number), mesh))
    assert metrics['finite'] == 1
    for path, value in start.params.items():
        assert np.array_equal(value, before[path]) == (path in CONSTANTS), path
    with_constants = checkpoint.Checkpoints(tmp_path, keep=1)
    with_constants.save(start, {})
    with_constants.wait()
    config.seed = 5  # other hashes, if they were drawn again
    fresh = state.create(Model, config, mesh)[2]
    assert not np.array_equal(fresh.params['task/fuse/first/hash'], before['task/fuse/first/hash'])
    again, _ = with_constants.restore(state.abstract_state(Model, config, mesh)[-1])
    with_constants.close()
    for path, value in start.params.items():
        assert again.params[path].dtype == value.dtype and np.array_equal(again.params[path], value), path


def test_the_overview_counts_constants_as_not_trained(fake):
    config = fake.config()
    net, *_ = state.create(Model, config, sharding.make_mesh(config))
    line = next(line for line in state.overview(net, config).splitlines() if line.startswith('task/fuse '))
    assert line.split()[1:3] == ['16', '0']
