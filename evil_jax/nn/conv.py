"""Leaves of convolutional nets: convolution, and batch normalisation that no longer looks at batches.

Legend: B batch, H, W rows and columns, I inputs, O outputs, D channels.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.nn import ops

EPS = 1e-5  # PyTorch's


class Conv(ops.Op):
    """Convolution without bias; kernel [size, size, I, O] float32, computed in `dtype`, [B, H, W, I] -> [B, h, w, O].

    Zeros stand around the picture as in PyTorch: size // 2 of them on each side, so that h = ceil(H / stride).
    Initial weights: normal, with the variance 2 / (size^2 O) (He et al. 2015).
    """

    def __init__(self, inputs: int, outputs: int, size: int, *, stride: int = 1, dtype, rngs: nnx.Rngs):
        std = (2 / (size * size * outputs)) ** 0.5
        self.kernel = nnx.Param(std * jax.random.normal(rngs.params(), (size, size, inputs, outputs)))
        self.size, self.stride, self.dtype = size, stride, dtype

    def __call__(self, x_BHWI):
        return self.op.conv(x_BHWI.astype(self.dtype), self.kernel[...].astype(self.dtype), self.stride, self.size // 2)


class FrozenNorm(ops.Op):
    """(x - mean) / sqrt(var + eps) * scale + bias a channel, with statistics of another time (Ioffe and Szegedy 2015).

    The four vectors [D] are kept as files have them, so that they can be saved again; in use they are one product and
    one sum.
    """

    def __init__(self, width: int):
        self.scale, self.bias = nnx.Param(jnp.ones(width)), nnx.Param(jnp.zeros(width))
        self.mean, self.var = nnx.Param(jnp.zeros(width)), nnx.Param(jnp.ones(width))

    def __call__(self, x):
        scale_D = self.scale[...] * jax.lax.rsqrt(self.var[...] + EPS)
        shift_D = self.bias[...] - self.mean[...] * scale_D
        return self.op.affine(x, scale_D.astype(x.dtype), shift_D.astype(x.dtype))
