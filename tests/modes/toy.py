"""A tiny trained-looking e-UG run on disk, with ten examples of ragged lengths, for the modes that only read it.

As a script it decodes them on eight fake devices and prints the predictions, one JSON list for each of the given
settings: `python toy.py WORKDIR '[{"method": "greedy"}]'`.
"""

import json
import os
import pathlib
import sys

if __name__ == '__main__':
    quick = '--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false'  # to compile
    flags = f'--xla_force_host_platform_device_count=8 {quick}'
    os.environ.update(JAX_PLATFORMS='cpu', XLA_FLAGS=flags)

import jax
import jax.numpy as jnp
import numpy as np

from evil_jax import config as configs
from evil_jax.data import tokenizers
from evil_jax.data.features.regions import Regions
from evil_jax.models import gpt2, uniter, vlnle
from evil_jax.records import Example
from evil_jax.training import checkpoint, sharding, state

ANSWERS = ('red', 'blue', 'two', 'left side', 'yes', 'no')
TEXTS = [
    'is the circle red or blue ?', 'how many squares are there ?', 'the two squares', 'left ?', 'a blue one ?',
    'what stands on the left side of the red circle ?', 'there are two squares because they are on the left side',
]  # fmt: skip


uniter.SIZES['toy'] = uniter.Size(layers=1, width=32, heads=2, hidden=64, positions=32, std=0.1, word_std=0.1)
gpt2.SIZES['toy'] = gpt2.Size(layers=2, width=32, heads=2, positions=96, std=0.1)


class Reader(dict):
    """Regions by image id, as `open_features` gives them."""

    def ids(self):
        return list(self)

    def resolve(self, image_id):
        if image_id not in self:
            raise ValueError(f'no regions of image {image_id!r}')
        return image_id

    def provenance(self):
        return {'sha256': 'f' * 64}


def make_config(**decode):
    config = configs.base()
    config.data.update(
        builder='vqav2', task='vqav2', max_text=10, max_regions=4, max_question=12, max_answer=8, max_explanation=12
    )
    config.model.task.size = config.model.expl.size = 'toy'
    config.model.update(dtype='float32', dropout=0.0)
    config.decode.update({'batch': 10} | decode)
    config.train.steps = 10
    return config


def make_examples(count=10):
    """Questions of different lengths; every third has no answer in the vocabulary."""
    answers = lambda i: {'purple': 1.0} if i % 3 == 2 else {ANSWERS[i % 6]: 1.0, 'purple': 0.3}
    return [
        Example(id=f'q{i}', image_id=f'image{i % 4}', text=TEXTS[i % 6], answers=answers(i), explanations=[TEXTS[-1]])
        for i in range(count)
    ]


def make_reader():
    """Pictures with 1, 2, 3 and 5 regions: one more than fit."""
    rng = np.random.default_rng(0)
    return Reader(
        {
            f'image{i}': Regions(
                features=rng.normal(size=(n, 2048)).astype(np.float16),
                boxes=np.tile(np.array([[10, 20, 60, 90]], np.float32), (n, 1)) + i,
                size=(120, 100),
                conf=np.full(n, 0.5, np.float32),
                classes=np.zeros(n, np.int32),
            )
            for i, n in enumerate((1, 2, 3, 5))
        }
    )


def make_run(workdir) -> None:
    """Writes config, vocabularies and checkpoints; parameters are random, but explanations end at different lengths."""
    workdir = pathlib.Path(workdir)
    word = tokenizers.train_word(TEXTS, workdir / 'assets' / 'word')
    expl = tokenizers.train_expl(TEXTS, workdir / 'assets' / 'expl')
    assets = tokenizers.Assets(word, expl, ANSWERS)
    tokenizers.save_assets(workdir / 'assets', assets)
    config = make_config()
    checkpoint.write_config(config, workdir)
    net = state.abstract(lambda key: vlnle.build(config, assets, key), config, sharding.make_mesh(config))
    rng = np.random.default_rng(1)
    params = {path: jnp.asarray(_values(path, leaf.shape, rng)) for path, leaf in net.shapes.items()}
    params['expl/wte/embedding'] = params['expl/wte/embedding'].at[expl.id('<|e_rtnl|>')].multiply(3)
    origin = {'config': checkpoint.plain(config), 'assets': assets.hashes(), 'data': 'none'}
    saved = checkpoint.Checkpoints(workdir, keep=2, origin=origin)
    for step in (1, 2):
        saved.save(state.TrainState(jnp.int32(step), params, {'count': jnp.int32(step)}), {})
        params = {path: x * 0.9 for path, x in params.items()}
    saved.wait()
    saved.close()


def _values(path, shape, rng):
    noise = rng.normal(size=shape).astype(np.float32)
    if path.endswith('kernel'):
        return noise * 3 / shape[0] ** 0.5
    return noise * 0.1 + (1 if path.endswith('scale') else 0)


if __name__ == '__main__':
    from evil_jax.modes import decode

    folder, methods = sys.argv[1:]
    assert len(jax.devices()) == 8
    for settings in json.loads(methods):
        here = make_config(**settings)
        here.mesh.update(data=2, fsdp=2, tensor=2)
        decoder, parameters = decode.load_trained(here, folder, decode.find_checkpoint(folder, 'latest'))
        batches = decoder.predictions(parameters, make_examples(), make_reader())
        print(json.dumps([prediction.to_json() for rows in batches for prediction in rows]))
