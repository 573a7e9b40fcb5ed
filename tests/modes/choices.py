"""A tiny e-UG for examples with choices of their own (VCR), its decoder and its training step, on any mesh.

As a script it prints the metrics of two steps on eight fake devices, as JSON: `python choices.py DIR`.
"""

import json
import os
import pathlib
import sys

if __name__ == '__main__':
    quick = '--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false'  # to compile
    flags = f'--xla_force_host_platform_device_count=8 {quick}'
    os.environ.update(JAX_PLATFORMS='cpu', XLA_FLAGS=flags)
    sys.path.insert(0, str(pathlib.Path(__file__).parent))

import jax
import numpy as np

from evil_jax import config as configs
from evil_jax.data import pipeline, tokenizers
from evil_jax.data.features.regions import Regions
from evil_jax.models import gpt2, uniter, vlnle
from evil_jax.modes import decode
from evil_jax.records import Example
from evil_jax.tasks import base
from evil_jax.training import sharding, state, step

CHOICES = ('it is red', '<|det1|> is blue', '<|det2|> is left of <|det1|>', 'it is red')  # two of the same words
QUESTIONS = ('what is <|det1|> ?', 'where is <|det2|> ?', 'why ?')
BATCH = 8

uniter.SIZES['choices'] = uniter.Size(layers=1, width=32, heads=2, hidden=64, positions=32, std=0.2, word_std=0.3)
gpt2.SIZES['choices'] = gpt2.Size(layers=1, width=32, heads=2, positions=96, std=0.2)


def make_config(mesh=(1, 1, 1)):
    config = configs.base()
    config.data.update(
        builder='vcr', task='vcr', choices=4, max_text=18, max_regions=3, max_question=10, max_answer=10,
        max_explanation=8,
    )  # fmt: skip
    config.model.task.size = config.model.expl.size = 'choices'
    config.model.update(dtype='float32', dropout=0.0)
    config.decode.update(batch=BATCH, max_tokens=4)
    config.optim.update(lr=2e-3, warmup=0.0)
    config.train.update(steps=4, batch=BATCH)
    config.mesh.update(dict(zip(sharding.AXES, mesh)))
    return config


def make_examples(count=BATCH):
    boxes = {'boxes': [[0, 0, 50, 50], [50, 50, 100, 100]], 'size': [100, 100]}
    return [
        Example(
            id=f'v{i}', image_id=str(i % 4), text=QUESTIONS[i % 3], label=None if i == 5 else i % 4,
            choices=[CHOICES[(i + c) % 4] for c in range(4)], objects=['person', 'dog'], extra=boxes,
            explanations=['because <|det2|> is red'],
        )
        for i in range(count)
    ]  # fmt: skip


def make_reader():
    """Pictures with 1, 2, 3 and 3 regions; the first two are objects 2 and 1."""
    rng, found = np.random.default_rng(0), {}
    boxes = np.float32([[98, 100, 200, 200], [0, 0, 100, 100], [5, 5, 20, 20]])
    for i, n in enumerate((1, 2, 3, 3)):
        features = rng.normal(size=(n, 2048)).astype(np.float16)
        found[str(i)] = Regions(features, boxes[:n], (200, 200), np.ones(n, np.float32), np.zeros(n, np.int32))
    return found


def make_task(config, folder):
    texts = [*QUESTIONS, *CHOICES, 'Casey dog because']
    word, expl = tokenizers.train_word(texts, f'{folder}/word'), tokenizers.train_expl(texts, f'{folder}/expl', 300)
    tokenizers.save_assets(folder, tokenizers.Assets(word, expl, ()))
    return base.make_task(config, tokenizers.load_assets(folder))


class Run:
    """A net with fresh parameters.

    Args:
      folder: for the vocabularies.
      mesh: sizes of its axes.
      **settings: of `config.decode`.
    """

    def __init__(self, folder, mesh=(1, 1, 1), **settings):
        self.config = make_config(mesh)
        self.config.decode.update(settings)
        self.task = make_task(self.config, folder)
        self.mesh = sharding.make_mesh(self.config, jax.devices()[: int(np.prod(mesh))])
        build = lambda key: vlnle.build(self.config, self.task.assets, key)
        self.net, self.optimiser, self.state, self.shardings = state.create(build, self.config, self.mesh)

    def predictions(self):
        decoder = decode.Decoder(self.net, self.task, self.config, self.mesh)
        rows = decoder.predictions(self.state.params, make_examples(), make_reader())
        return [prediction for batch in rows for prediction in batch]

    def steps(self):
        """Metrics of two steps on the same batch."""
        train = step.make_step(self.net, self.task, self.optimiser, self.config, self.mesh, self.shardings)
        batches = pipeline.eval_batches(make_examples(), pipeline.Encode(self.task, make_reader()), batch=BATCH)
        batch, found = sharding.place(next(batches), self.mesh), []
        for _ in range(2):
            self.state, metrics = train(self.state, batch)
            found.append({name: float(value) for name, value in metrics.items()})
        return found


if __name__ == '__main__':
    assert len(jax.devices()) == 8
    print(json.dumps(Run(sys.argv[1], (2, 2, 2)).steps()))
