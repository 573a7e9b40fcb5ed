"""Sharding is data: a mesh (data, fsdp, tensor), a table of path regexes, and the batch split over (data, fsdp)."""

import functools
import itertools
import math

import jax
import numpy as np
from absl import logging
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from evil_jax import config as config_lib
from evil_jax.training import processes

AXES = ('data', 'fsdp', 'tensor')
BATCH = PartitionSpec(('data', 'fsdp'))


def make_mesh(config, devices=None) -> jax.sharding.Mesh:
    """The mesh of `config.mesh`; a size of -1 takes the devices that the other axes leave.

    Raises:
      ValueError: the sizes do not multiply to the number of devices.
    """
    if devices is None and jax.process_count() != processes.count():
        raise ValueError(f'JAX sees {jax.process_count()} processes: start all of them with --distributed=auto')
    devices = jax.devices() if devices is None else devices
    sizes = [config.mesh[axis] for axis in AXES]
    wanted = ', '.join(f'{axis}={size}' for axis, size in zip(AXES, sizes))
    if sizes.count(-1) > 1 or any(size < 1 and size != -1 for size in sizes):
        raise ValueError(f'config.mesh is {wanted}; sizes are positive, and one of them may be -1 (the rest)')
    rest = len(devices) // math.prod(size for size in sizes if size != -1)
    shape = tuple(rest if size == -1 else size for size in sizes)
    if math.prod(shape) != len(devices):
        raise ValueError(f'config.mesh ({wanted}) needs a multiple or divisor that fits {len(devices)} devices')
    # Auto: the compiler propagates shardings. make_mesh's default, Explicit, refuses embedding look-ups.
    mesh = jax.make_mesh(shape, AXES, axis_types=(AxisType.Auto,) * len(AXES), devices=devices)
    if processes.count() > 1 and devices[0].platform == 'cpu':
        _connect(mesh)
    return mesh


def _connect(mesh) -> None:
    """Lets every group of devices that a mesh has communicate once.

    Gloo connects a group when it is first used, and fails if its processes are 30 s apart then, as they may well be
    after having compiled a step. Later they may be any time apart.
    """
    sharding = NamedSharding(mesh, PartitionSpec(AXES))
    numbers = jax.make_array_from_callback((mesh.size,), sharding, lambda where: np.ones(mesh.size, np.float32)[where])
    axes = [axis for axis in AXES if mesh.shape[axis] > 1]
    groups = [group for size in range(1, len(axes) + 1) for group in itertools.combinations(axes, size)]
    processes.meet()
    for group in groups:
        add = jax.shard_map(
            functools.partial(jax.lax.psum, axis_name=group), mesh=mesh, in_specs=sharding.spec, out_specs=sharding.spec
        )
        jax.block_until_ready(jax.jit(add)(numbers))
    multihost_utils.sync_global_devices('connected')


def paths(tree) -> list[str]:
    """Path of every leaf in flattening order: 'task/layers/0/query/kernel'. NNX variables add nothing to the path."""
    return [path_of(keys) for keys, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]


def path_of(keys) -> str:
    """A key path of `jax.tree_util` as text."""
    parts = [str(getattr(key, 'key', getattr(key, 'idx', getattr(key, 'name', key)))) for key in keys]
    if keys and isinstance(keys[-1], jax.tree_util.GetAttrKey) and parts[-1] == 'value':
        parts.pop()  # the value inside an nnx.Variable
    return '/'.join(parts)


def flatten(tree) -> dict:
    """Parameters as {path: array}: the form that tables of regexes, the optimiser and checkpoints work on."""
    return dict(zip(paths(tree), jax.tree.leaves(tree)))


def unflatten(flat: dict, like):
    """Puts {path: array} back into the structure of `like`, for example the state of `nnx.split`."""
    return jax.tree.unflatten(jax.tree.structure(like), [flat[path] for path in paths(like)])


def parse_spec(spec) -> tuple:
    """A spec of the table as a tuple: ('tensor', None) itself, or text such as 'tensor,-' or 'data+fsdp,tensor'."""
    if not isinstance(spec, str):
        return tuple(tuple(a) if isinstance(a, list | tuple) else a for a in spec)
    entries = [entry.strip() for entry in spec.split(',')] if spec.strip() else []
    names = [None if entry in ('', '-', 'None') else entry for entry in entries]
    return tuple(tuple(name.split('+')) if name and '+' in name else name for name in names)


def param_specs(flat: dict, table, mesh) -> dict[str, PartitionSpec]:
    """Spec of each parameter, {path: PartitionSpec}.

    Args:
      flat: {path: array or ShapeDtypeStruct}.
      table: ((path regex, spec), ...), first match wins.
      mesh: its axes may be named. An axis whose size does not divide the dimension is left out, and said so.

    Raises:
      ValueError: a path without a match, an axis that does not exist, or more entries than dimensions.
    """
    return {path: _fit(path, leaf.shape, parse_spec(config_lib.first_match(table, path)), mesh)
            for path, leaf in flat.items()}  # fmt: skip


def _fit(path, shape, spec, mesh) -> PartitionSpec:
    if len(spec) > len(shape):
        raise ValueError(f'config.sharding gives {path!r} the spec {spec}, but its shape is {tuple(shape)}')
    fitted, dropped = [], []
    for size, entry in zip(shape, spec):
        kept = []
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            if axis not in mesh.shape:
                raise ValueError(
                    f'config.sharding gives {path!r} the axis {axis!r}; the mesh has {", ".join(mesh.shape)}'
                )
            if size % (mesh.shape[axis] * math.prod(mesh.shape[a] for a in kept)):
                dropped.append(axis)
            else:
                kept.append(axis)
        fitted.append(kept[0] if len(kept) == 1 else tuple(kept) or None)
    if dropped:
        sizes = ', '.join(f'{axis} ({mesh.shape[axis]})' for axis in dropped)
        logging.warning('%s %s is not split over %s: not divisible', path, tuple(shape), sizes)
    return PartitionSpec(*fitted)


def inherit(tree, specs: dict[str, PartitionSpec], mesh):
    """Sharding of every leaf of a state: a leaf below a parameter's path (its value, its moments) takes the parameter's
    spec; everything else (counters) is replicated."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    found = []
    for keys, _ in leaves:
        owner = next((k.key for k in keys if isinstance(k, jax.tree_util.DictKey) and k.key in specs), None)
        found.append(NamedSharding(mesh, specs.get(owner, PartitionSpec())))
    return jax.tree.unflatten(structure, found)


def check_batch(batch: int, accum: int, mesh) -> None:
    """Raises ValueError unless every device gets the same whole number of rows in every micro-batch."""
    ways = mesh.shape['data'] * mesh.shape['fsdp']
    if batch % (ways * accum):
        raise ValueError(
            f'train.batch {batch} is not a multiple of {ways * accum} '
            f'(optim.accum {accum} x data {mesh.shape["data"]} x fsdp {mesh.shape["fsdp"]})'
        )


def local_rows(batch: int, mesh) -> np.ndarray:
    """Which rows of a global batch the devices of this process hold, ascending.

    They need not be neighbours: the order of a mesh follows the wires between devices. Where `tensor` spans processes,
    several of them hold the same rows.
    """
    return np.concatenate([np.arange(first, last) for first, last in _local_parts(batch, mesh)])


def _local_parts(batch, mesh):
    slices = NamedSharding(mesh, BATCH).addressable_devices_indices_map((batch,)).values()
    return sorted({rows.indices(batch)[:2] for (rows,) in slices})


def place(batch: dict[str, np.ndarray], mesh) -> dict[str, jax.Array]:
    """Global arrays from the rows that this process holds, those of `local_rows`."""
    sharding, ways = NamedSharding(mesh, BATCH), mesh.shape['data'] * mesh.shape['fsdp']
    held = len(_local_parts(ways, mesh))

    def spread(value):
        share = len(value) // held  # rows of one device
        starts = {first: share * i for i, (first, _) in enumerate(_local_parts(share * ways, mesh))}

        def part(where):
            at = starts[where[0].start or 0]
            return value[at : at + share]

        return jax.make_array_from_callback((share * ways, *value.shape[1:]), sharding, part)

    return {key: spread(value) for key, value in batch.items()}
