"""Pictures -> region features by a network: what `--mode=build` reads in place of files where build.backbone is set.

    --config.build.backbone=resnet --config.build.backbone_init=torch:resnet101.pth --config.data.images=FOLDER

The network runs in float32 on all local devices, each with its share of the batch.
"""

import jax
import numpy as np
from flax import nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from evil_jax import lookup
from evil_jax.data import load
from evil_jax.data.features import computed
from evil_jax.data.features.regions import WIDTH
from evil_jax.interop import weights
from evil_jax.training import sharding


def reader(config) -> computed.Reader:
    """The reader of the pictures' features: `config.data` says where they are, `config.build` what becomes of them.

    Raises:
      ValueError: no pictures, no such network or size, weights that do not fit it, a width that the store has not, or a
        picture size that is no multiple of a cell.
    """
    build = config.build
    known = lookup.defining('models', 'build_backbone')
    if build.backbone not in known:
        raise ValueError(
            f'config.build.backbone is {build.backbone!r}.{lookup.nearest(build.backbone, known)} '
            f'There are: {", ".join(known)}'
        )
    if config.data.features:
        raise ValueError(
            f'data.features is {config.data.features} and build.backbone is {build.backbone!r}: features are either '
            'read or computed, leave one of them empty'
        )
    images = load.images(config)
    if images.path is None:
        raise ValueError(f'build.backbone is {build.backbone!r}, but there are no pictures: set data.images')
    network = lookup.module('models', build.backbone)
    cell = network.CELL
    if build.pixels < cell or build.pixels % cell:
        raise ValueError(f'build.pixels is {build.pixels}, wanted a multiple of {cell}, the side of a cell')
    side = 1 if build.pooled else build.pixels // cell
    devices = jax.local_devices()
    batch = -(-build.batch // len(devices)) * len(devices)
    return computed.Reader(
        images,
        _compute(build, network, devices),
        cells=(side, side),
        pixels=build.pixels,
        batch=batch,
        about={'format': 'pictures'} | load.backbone(config),
    )


def _compute(build, network, devices):
    """uint8 [batch, pixels, pixels, 3] -> float16 [batch, rows, columns, 2048]; batch is a multiple of the devices."""
    graph, shapes = nnx.split(nnx.eval_shape(lambda: network.build_backbone(build.backbone_size, rngs=nnx.Rngs(0))))
    width = nnx.merge(graph, shapes).width
    if width != WIDTH:
        raise ValueError(
            f'build.backbone {build.backbone} {build.backbone_size} gives vectors of {width} numbers, wanted {WIDTH}: '
            'the store has no other'
        )
    spec = weights.spec(build.backbone_init)
    if spec is None:
        raise ValueError(f'config.build.backbone_init is {build.backbone_init!r}, wanted hf:FOLDER or torch:FILE')
    try:
        found = lookup.module('interop', build.backbone).load(spec.path, sharding.flatten(shapes))
    except ValueError as error:
        raise ValueError(f'config.build.backbone_init: {error}') from error
    mesh = jax.make_mesh((len(devices),), ('data',), axis_types=(AxisType.Auto,), devices=devices)
    everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec('data'))
    params = jax.device_put(found, everywhere)

    def features(params, bytes_BHW3):
        net = nnx.merge(graph, sharding.unflatten(params, shapes))
        grid_BHWF, pooled_BF = net(network.normalised(bytes_BHW3))
        return (pooled_BF[:, None, None] if build.pooled else grid_BHWF).astype(np.float16)

    run = jax.jit(features, in_shardings=(everywhere, split), out_shardings=split)

    def compute(bytes_BHW3):
        with jax.default_matmul_precision('highest'):  # else GPUs and TPUs round the factors to fewer bits
            return run(params, jax.device_put(bytes_BHW3, split))

    return compute
