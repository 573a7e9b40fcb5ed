"""Our models as {path: array} and back, without a configuration."""

import numpy as np
from flax import nnx

from evil_jax.training import sharding


def abstract(build):
    """A model without values: no initial weights are computed."""
    return nnx.eval_shape(build)


def shapes(model) -> dict:
    """{path: something with a shape} of a model."""
    return sharding.flatten(nnx.split(model, nnx.Param)[1])


def filled(model, params: dict):
    """The model with these values; all have to be there."""
    graph, like = nnx.split(model, nnx.Param)
    return nnx.merge(graph, sharding.unflatten(params, like))


def random(model, seed=0, std=0.1) -> dict[str, np.ndarray]:
    """Values for all parameters."""
    rng = np.random.default_rng(seed)
    return {path: (std * rng.standard_normal(leaf.shape)).astype(np.float32) for path, leaf in shapes(model).items()}
