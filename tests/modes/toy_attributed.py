"""--mode=attribute of a toy run (toy.py), for five of its examples in batches of three.

As a script it runs on two fake devices and prints the shape of their mesh and how many rows a batch has there:
`python toy_attributed.py WORKDIR`.
"""

import importlib.util
import os
import pathlib
import sys

if __name__ == '__main__':
    quick = '--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false'  # to compile
    flags = f'--xla_force_host_platform_device_count=2 {quick}'
    os.environ.update(JAX_PLATFORMS='cpu', XLA_FLAGS=flags)

from evil_jax.data import load, pictures
from evil_jax.modes import _explainer, attribute


def run(toy, workdir, patch=setattr) -> None:
    """Attributions below `workdir`; `patch(object, name, value)` replaces how data are opened."""
    patch(load, 'load_examples', lambda config, split: toy.make_examples(5))
    patch(load, 'open_inputs', lambda config: toy.make_reader())
    patch(load, 'images', lambda config: pictures.Images(None))
    config = toy.make_config()
    config.attribute.update(checkpoint='latest', batch=3, method='generic')
    attribute.run(config, workdir)


if __name__ == '__main__':
    spec = importlib.util.spec_from_file_location('modes_toy', pathlib.Path(__file__).parent / 'toy.py')
    toy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(toy)
    explain = _explainer.Explainer.explain

    def seen(self, *args):
        print(self.decoder.mesh.devices.size, self.decoder.batch)
        return explain(self, *args)

    _explainer.Explainer.explain = seen
    run(toy, sys.argv[1])
