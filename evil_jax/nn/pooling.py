"""Compact bilinear pooling of two vectors (Fukui et al. 2016, arXiv 1606.01847, section 3.1, algorithm 1).

The outer product x (x) y has I J elements. Its count sketch (Charikar et al. 2002) has D, in each of which the elements
of one hash meet, each with its sign; with the hash h(i) + h'(j) mod D and the sign s(i) s'(j) it is the circular
convolution of the sketches of x and y (Pham and Pagh 2013), a product of Fourier transforms.

Legend: I, J widths of the vectors, D outputs; leading axes are free.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.nn import ops


class Sketch(ops.Op):
    """Count sketch of a vector, [..., I] -> [..., D] float32: y[d] = sum of s(i) x[i] over i with h(i) = d.

    `hash` (int32 I, 0 ... D - 1) and `sign` (int8 I, -1 or 1) are drawn once. They are parameters, so that a checkpoint
    has them, but of integers, so that nothing trains them (`optim.trainable`).
    """

    def __init__(self, inputs: int, outputs: int, *, rngs: nnx.Rngs):
        self.hash = nnx.Param(jax.random.randint(rngs.params(), inputs, 0, outputs, jnp.int32))
        self.sign = nnx.Param(jax.random.rademacher(rngs.params(), inputs, jnp.int8))
        self.outputs = outputs

    def __call__(self, x):
        return self.op.sketch(x, self.hash[...], self.sign[...], self.outputs)


class CompactBilinear(ops.Op):
    """`(x [..., I], y [..., J]) -> [..., D]` float32, before any normalisation. Leading axes broadcast, and what
    depends on one of the two only (its sketch, its transform) is computed before they do: a question meets all cells of
    its picture, a picture all its questions, at the cost of one."""

    def __init__(self, first: int, second: int, outputs: int, *, rngs: nnx.Rngs):
        self.first = Sketch(first, outputs, rngs=rngs)
        self.second = Sketch(second, outputs, rngs=rngs)

    def __call__(self, x, y):
        return self.op.convolve(self.first(x), self.second(y))
