"""Run as a script: a tiny e-UG on eight fake devices and on one. Prints the differences as JSON."""

import json
import os
import sys

os.environ.update(
    JAX_PLATFORMS='cpu',
    XLA_FLAGS='--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 '
    '--xla_cpu_use_fusion_emitters=false',
)

import jax
import numpy as np

from evil_jax import config as config_lib
from evil_jax.data import pipeline, tokenizers
from evil_jax.data.features.regions import Regions
from evil_jax.models import vlnle
from evil_jax.records import Example
from evil_jax.tasks import base
from evil_jax.training import checkpoint, sharding, state, step

ANSWERS = ('yes', 'no', 'red', 'blue', 'two', 'three', 'left', 'right')
STEPS = 3


def make_config():
    config = config_lib.base()
    config.data.update(
        builder='vqav2', task='vqav2', max_text=8, max_regions=4, max_question=8, max_answer=4, max_explanation=8
    )
    config.model.task.size = config.model.expl.size = 'tiny'
    config.model.update(dtype='float32', dropout=0.1)
    config.optim.update(lr=1e-4, warmup=0.0, accum=2)
    config.train.update(steps=10, batch=16, dwa=1)
    return config


def make_batches(task):
    rng = np.random.default_rng(0)
    regions = lambda n: Regions(
        rng.normal(size=(n, 2048)).astype(np.float16), np.tile(np.float32([5, 5, 50, 60]), (n, 1)), (100, 90),
        np.full(n, 0.5, np.float32), np.zeros(n, np.int32),
    )  # fmt: skip
    examples = [
        Example(str(i), str(i), f'is it {ANSWERS[i % 8]} ?', answers={ANSWERS[i % 8]: 1.0, ANSWERS[(i + 1) % 8]: 0.3},
                explanations=[] if i % 5 == 4 else [f'it is {ANSWERS[i % 8]} ' * (i % 3)])
        for i in range(32)
    ]  # fmt: skip
    encode = pipeline.Encode(task, {str(i): regions(1 + i % 5) for i in range(32)})
    batches = pipeline.train_batches(examples, encode, batch=16, seed=0)
    return [next(batches) for _ in range(STEPS)]


def arrays(tree):
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True))


def furthest(a, b):
    return max(float(np.abs(x - y).max()) for x, y in zip(arrays(a), arrays(b), strict=True))


def main(folder):
    texts = [f'is it {a} ?' for a in ANSWERS]
    assets = tokenizers.Assets(
        tokenizers.train_word(texts, f'{folder}/word'), tokenizers.train_expl(texts, f'{folder}/expl', 300), ANSWERS
    )
    config = make_config()
    task = base.make_task(config, assets)
    batches = make_batches(task)
    build = lambda key: vlnle.build(config, assets, key)
    runs = {}
    for shape, count in (((1, 1, 1), 1), ((2, 2, 2), 8)):
        config.mesh.update(dict(zip(sharding.AXES, shape)))
        mesh = sharding.make_mesh(config, jax.devices()[:count])
        net, optimiser, now, shardings = state.create(build, config, mesh)
        initial, losses = {k: np.array(v) for k, v in now.params.items()}, []
        run = step.make_step(net, task, optimiser, config, mesh, shardings)
        for batch in batches:
            now, metrics = run(now, sharding.place(batch, mesh))
            losses.append({name: float(value) for name, value in metrics.items()})
        runs[count] = initial, losses, now
    (initial, losses, one), (sharded_initial, sharded_losses, eight) = runs[1], runs[8]
    saved = checkpoint.Checkpoints(f'{folder}/run', keep=1)
    saved.save(eight, {})
    saved.wait()
    restored = {}
    for shape, count in (((2, 2, 2), 8), ((8, 1, 1), 8), ((1, 2, 2), 4), ((1, 1, 1), 1)):
        config.mesh.update(dict(zip(sharding.AXES, shape)))
        mesh = sharding.make_mesh(config, jax.devices()[:count])
        abstract = state.abstract_state(build, config, mesh)[-1]
        again, _ = saved.restore(abstract)
        placed = all(x.sharding == a.sharding for x, a in zip(jax.tree.leaves(again), jax.tree.leaves(abstract)))
        restored[str(shape)] = equal(again, eight) and placed
    saved.close()
    kernel = eight.params['task/layers/0/mlp/up/kernel']
    print(json.dumps({
        'initial_equal': equal(initial, sharded_initial),
        'metrics': {k: max(abs(a[k] - b[k]) for a, b in zip(losses, sharded_losses)) for k in losses[0]},
        'params': furthest(one.params, eight.params),
        'moments': furthest(one.opt, eight.opt),
        'shard': [kernel.shape, kernel.sharding.shard_shape(kernel.shape)],
        'moment_specs': sorted({str(x.sharding.spec) for x in jax.tree.leaves(eight.opt)}),
        'restored': restored,
    }))  # fmt: skip


if __name__ == '__main__':
    main(sys.argv[1])
