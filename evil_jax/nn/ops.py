"""Operations by rule set, and the leaf modules that hold their parameters.

An operation is looked up by rule set: `self.op.linear(x, w, b)`. Under the rules 'gradient' it is ordinary JAX (see
`forward`). Further rule sets (see `rules`) replace how relevance passes back through each operation, so that no method
of attribution needs a second copy of a model. `model.set_attributes(rules=...)` is static: `jax.jit` never mixes two.

Legend: I inputs, O outputs, V vocabulary, D width.
"""

import types

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax import lookup
from evil_jax.nn import rules
from evil_jax.nn.forward import FORWARD, convolve, linear, norm, signed_root, sketch, unit, wide, wide_type
from evil_jax.nn.rules import relevance

__all__ = [
    'FORWARD', 'OPS', 'Contrast', 'Embedding', 'Linear', 'Norm', 'Op', 'Pixels', 'convolve', 'dropout', 'fold',
    'linear', 'norm', 'relevance', 'signed_root', 'sketch', 'unit', 'wide', 'wide_type',
]  # fmt: skip
OPS = {'gradient': FORWARD, **rules.TABLES}


class Op(nnx.Module):
    """Base of every module: `self.op` is the table of the rule set that the model is in."""

    rules = 'gradient'

    @property
    def op(self) -> types.SimpleNamespace:
        return lookup.entry(OPS, self.rules, 'rules')


class Linear(Op):
    """y = x W + b; kernel [I, O] float32, computed in `dtype`. `std`: of the initial normal distribution."""

    kind = 'linear'

    def __init__(self, inputs: int, outputs: int, *, std: float, dtype, rngs: nnx.Rngs):
        self.kernel = nnx.Param(std * jax.random.normal(rngs.params(), (inputs, outputs)))
        self.bias = nnx.Param(jnp.zeros(outputs))
        self.dtype = dtype

    def __call__(self, x):
        return getattr(self.op, self.kind)(
            x.astype(self.dtype), self.kernel[...].astype(self.dtype), self.bias[...].astype(self.dtype)
        )


class Pixels(Linear):
    """The same for pixels of pictures x [B, P, I]: their values have bounds, which some rules need."""

    kind = 'patch'


class Contrast(Linear):
    """The second of two outputs minus the first, [...]."""

    kind = 'contrast'


class Norm(Op):
    """Layer normalisation with scale and bias [D]."""

    def __init__(self, width: int, *, eps: float):
        self.scale, self.bias, self.eps = nnx.Param(jnp.ones(width)), nnx.Param(jnp.zeros(width)), eps

    def __call__(self, x):
        return self.op.norm(x, self.scale[...], self.bias[...], self.eps)


class Embedding(Op):
    """Table [V, D] float32, read in `dtype`."""

    def __init__(self, rows: int, width: int, *, std: float, dtype, rngs: nnx.Rngs):
        self.embedding = nnx.Param(std * jax.random.normal(rngs.params(), (rows, width)))
        self.dtype = dtype

    def __call__(self, ids):
        return self.op.embed(self.embedding[...].astype(self.dtype), ids)


def dropout(x, rate: float, key):
    """Zeroes a share `rate` of x and scales the rest up; `key` None means evaluation: x unchanged."""
    if key is None or not rate:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0).astype(x.dtype)


def fold(key, number: int):
    """Key of the `number`-th user of dropout in a module; None stays None."""
    return None if key is None else jax.random.fold_in(key, number)
