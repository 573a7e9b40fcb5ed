"""Our models as {path: array} and back, without a configuration."""

from flax import nnx


def abstract(build):
    """A model without values: no initial weights are computed."""
    return nnx.eval_shape(build)


def shapes(model) -> dict:
    """{path: something with a shape} of an abstract model."""
    flat = nnx.to_flat_state(nnx.state(model, nnx.Param))
    return {'/'.join(map(str, path)): leaf[...] for path, leaf in flat}


def filled(model, params: dict):
    """An abstract model with these values; all have to be there."""
    graph, state = nnx.split(model)
    flat = {path: leaf.replace(params['/'.join(map(str, path))]) for path, leaf in nnx.to_flat_state(state)}
    return nnx.merge(graph, nnx.from_flat_state(flat))
