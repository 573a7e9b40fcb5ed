"""The training state: born sharded, identical on every mesh, and an overview of what is in it."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from evil_jax.training import balance, optim, regime, sharding


class TrainState(NamedTuple):
    """Everything a step changes.

    Attributes:
      step: int32 scalar, number of updates done.
      params: {path: array}, all parameters.
      opt: optax state over the trained parameters only.
      balance: memory of dynamic weight averaging (balance.py); None without it.
    """

    step: jax.Array
    params: dict[str, jax.Array]
    opt: Any
    balance: dict[str, jax.Array] | None = None


@dataclasses.dataclass(frozen=True)
class Net:
    """The static half of a model.

    Attributes:
      graphdef: of `nnx.split`.
      like: state of `nnx.split` with ShapeDtypeStructs (and their sharding) as leaves.
    """

    graphdef: Any
    like: Any

    @property
    def shapes(self) -> dict[str, jax.ShapeDtypeStruct]:
        return sharding.flatten(self.like)

    def merge(self, params: dict[str, jax.Array]) -> nnx.Module:
        """The model with these parameters, {path: array}; also under a trace."""
        return nnx.merge(self.graphdef, sharding.unflatten(params, self.like))


def abstract(build: Callable[[jax.Array], nnx.Module], config, mesh) -> Net:
    """Sizes a model without allocating it; each leaf of `Net.like` knows its place on the mesh.

    Args:
      build: key -> model, for example `lambda key: vlnle.build(config, assets, key)`.
      config: `config.sharding` is read.
      mesh: of `sharding.make_mesh`.
    """
    graphdef, like = nnx.split(nnx.eval_shape(lambda: build(jax.random.key(0))), nnx.Param)
    flat = sharding.flatten(like)
    specs = sharding.param_specs(flat, config.sharding, mesh)
    placed = {
        path: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=jax.sharding.NamedSharding(mesh, specs[path]))
        for path, leaf in flat.items()
    }
    return Net(graphdef, sharding.unflatten(placed, like))


def abstract_state(build, config, mesh):
    """Like `create` without allocating: (net, optimiser, state of ShapeDtypeStructs with their shardings)."""
    net = abstract(build, config, mesh)
    optimiser = optim.make(config, regime.trained(config, net.shapes))
    shapes = jax.eval_shape(lambda params: start(params, optimiser, config), net.shapes)
    specs = {path: leaf.sharding.spec for path, leaf in net.shapes.items()}
    place = lambda leaf, where: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where)
    return net, optimiser, jax.tree.map(place, shapes, sharding.inherit(shapes, specs, mesh))


def create(build, config, mesh):
    """A fresh state.

    Parameters depend on `config.seed` only, not on the mesh; no device ever holds more than its share.

    Returns:
      (net, optimiser, state, shardings): shardings has the structure of the state.
    """
    net, optimiser, shapes = abstract_state(build, config, mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, shapes)

    def init(key):
        return start(sharding.flatten(nnx.split(build(key), nnx.Param)[1]), optimiser, config)

    with jax.set_mesh(mesh):
        state = jax.jit(init, out_shardings=shardings)(keys(config)[0])
    return net, optimiser, state, shardings


def fresh(build, net: Net, key, mesh) -> dict[str, jax.Array]:
    """Initial parameters of a key, {path: array}, each at its place on the mesh; no optimiser."""
    shardings = {path: leaf.sharding for path, leaf in net.shapes.items()}
    with jax.set_mesh(mesh):
        init = jax.jit(lambda key: sharding.flatten(nnx.split(build(key), nnx.Param)[1]), out_shardings=shardings)
        return init(key)


def start(params, optimiser, config) -> TrainState:
    """State before the first update."""
    trained = {path: params[path] for path in regime.trained(config, params)}
    memory = balance.start() if config.train.dwa else None
    return TrainState(jnp.zeros((), jnp.int32), params, optimiser.init(trained), memory)


def keys(config) -> tuple[jax.Array, jax.Array]:
    """(key of the initial parameters, key of dropout)."""
    initial, dropout = jax.random.split(jax.random.key(config.seed))
    return initial, dropout


def overview(net: Net, config, depth: int = 2) -> str:
    """A table: parameters and MB of each module down to `depth`, in all and as one device holds them."""
    trained = set(regime.trained(config, net.shapes))
    rows: dict[str, np.ndarray] = {}
    for path, leaf in net.shapes.items():
        size, here = leaf.size, int(np.prod(leaf.sharding.shard_shape(leaf.shape)))
        width = leaf.dtype.itemsize
        line = np.array([size, size if path in trained else 0, size * width, here * width])
        parts = path.split('/')[:-1] or [path]
        for name in {'/'.join(parts[:i]) for i in range(1, depth + 1)} | {'total'}:
            rows[name] = rows.get(name, 0) + line
    total = rows.pop('total')
    width = max(map(len, [*rows, 'module']))
    lines = [f'{"module":<{width}} {"parameters":>13} {"trained":>13} {"MB":>9} {"MB/device":>10}']
    for name, (count, learnt, size, here) in [*sorted(rows.items()), ('total', total)]:
        amounts = f'{count:>13,} {learnt:>13,} {size / 1e6:>9.2f} {here / 1e6:>10.2f}'
        lines.append(f'{name:<{width}} {amounts}')
    return '\n'.join(lines)
