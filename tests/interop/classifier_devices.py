"""Scores of pairs on all devices: `python classifier_devices.py FOLDER PAIRS.json OUT.npz`."""

import json
import pathlib
import sys

import jax
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from evil_jax.interop import classifier


def split(shapes):
    """Matrices by their columns, where there is an even number; the head has three."""
    even = lambda leaf: len(leaf.shape) == 2 and leaf.shape[1] % 2 == 0
    return {path: PartitionSpec(None, 'fsdp') if even(leaf) else PartitionSpec() for path, leaf in shapes.items()}


if __name__ == '__main__':
    pairs = json.loads(pathlib.Path(sys.argv[2]).read_text())
    mesh = jax.make_mesh((1, len(jax.devices()), 1), ('data', 'fsdp', 'tensor'), axis_types=(AxisType.Auto,) * 3)
    found = {'devices': mesh.size}
    for name, specs in (('replicated', None), ('split', split)):
        tell = classifier.open_classifier(sys.argv[1], tokens=25, mesh=mesh, specs=specs)
        leaves = jax.tree.leaves(tell._net._layers[0][1])
        found[f'{name}_parts'] = max(leaf.size // leaf.addressable_shards[0].data.size for leaf in leaves)
        found[name] = tell(pairs)
    np.savez(sys.argv[3], **found)
