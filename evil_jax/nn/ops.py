"""The operations that every model is built from, and the leaf modules that hold their parameters.

An operation is looked up by rule set: `self.op.linear(x, w, b)`. Under the rules 'gradient' it is ordinary JAX. Further
rule sets replace how relevance (or a gradient) passes back through each operation, so that an attribution method needs
no second copy of a model: `model.set_attributes(rules=...)` is static, so `jax.jit` never mixes two of them.

Legend: B batch, P positions, D width, I inputs, O outputs, R rows, V vocabulary.
"""

import types

import jax
import jax.numpy as jnp
from flax import nnx


@jax.custom_vjp
def linear(x, w_IO, b_O):
    """x W + b over the last axis.

    The gradient is the usual one, but that of W is computed as (r^T x)^T where W widens. XLA on CPU transposes
    the right factor of x^T r inside the fusion that makes it: behind a GELU over four times the width, that alone took
    longer than all matrix products of the layer (jax 0.10.2). On GPU and TPU both forms are the same.
    """
    return x @ w_IO + b_O


def _linear_forward(x, w_IO, b_O):
    return linear(x, w_IO, b_O), (x, w_IO)


def _linear_backward(saved, r):
    x, w_IO = saved
    x_RI, r_RO = x.reshape(-1, x.shape[-1]), r.reshape(-1, r.shape[-1])
    inputs, outputs = w_IO.shape
    w_gradient_IO = (r_RO.T @ x_RI).T if outputs > inputs else x_RI.T @ r_RO
    return r @ w_IO.T, w_gradient_IO, r_RO.sum(0)


linear.defvjp(_linear_forward, _linear_backward)


def norm(x, scale_D, bias_D, eps):
    """Layer normalisation over the last axis, computed in float32 (Ba et al. 2016)."""
    x32 = x.astype(jnp.float32)
    centred = x32 - x32.mean(-1, keepdims=True)
    unit = centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + eps)
    return (unit * scale_D + bias_D).astype(x.dtype)


def select(x_BPD, index_BS):
    """Rows of each example: `x[b, index[b, s]]`."""
    return jnp.take_along_axis(x_BPD, index_BS[..., None], axis=1)


def signed_root(x):
    """sign(x) sqrt(|x|) of each element, as after bilinear pooling (Fukui et al. 2016). The derivative, infinite at 0,
    is kept below 1e4; elements of 1e-4 and more have a relative error below 1e-4 for it. Of an element that is exactly
    0 it is 0: fused with nothing (a picture without regions), it would drown the gradient of everything else."""
    x32 = x.astype(jnp.float32)
    something = x32 != 0
    root = x32 * jax.lax.rsqrt(jnp.where(something, jnp.abs(x32), 1.0) + 1e-8)
    return jnp.where(something, root, 0).astype(x.dtype)


def unit(x):
    """x / |x| over the last axis, computed in float32; 0 stays 0."""
    x32 = x.astype(jnp.float32)
    return (x32 * jax.lax.rsqrt((x32**2).sum(-1, keepdims=True) + 1e-12)).astype(x.dtype)


def sketch(x, hash_I, sign_I, outputs: int):
    """Sum of sign * x over equal hashes, float32 [..., outputs]. What is scattered are whole columns of x: far cheaper
    on CPU, GPU and TPU than single numbers."""
    x_NI = x.reshape(-1, x.shape[-1]).astype(jnp.float32) * sign_I
    y_DN = jax.ops.segment_sum(x_NI.T, hash_I, num_segments=outputs)
    return y_DN.T.reshape(*x.shape[:-1], outputs)


def convolve(a, b):
    """Circular convolution over the last axis, float32; leading axes broadcast behind the Fourier transforms."""
    return jnp.fft.irfft(jnp.fft.rfft(a) * jnp.fft.rfft(b), n=a.shape[-1])


def conv(x_BHWI, w_hwIO, stride: int, padding: int):
    """Convolution without bias over rows and columns, with `padding` zeros on every side."""
    return jax.lax.conv_general_dilated(
        x_BHWI, w_hwIO, (stride, stride), ((padding, padding),) * 2, dimension_numbers=('NHWC', 'HWIO', 'NHWC')
    )


def max_pool(x_BHWD, size: int, stride: int, padding: int):
    """Largest value of each window of size x size; `padding` cells on every side never win."""
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return jax.lax.reduce_window(x_BHWD, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), around)


FORWARD = types.SimpleNamespace(
    linear=linear,
    norm=norm,
    select=select,
    add=lambda a, b: a + b,
    embed=lambda table_VD, ids: jnp.take(table_VD, ids, axis=0),
    scores=lambda q_BQNH, k_BKNH: jnp.einsum('BQNH,BKNH->BNQK', q_BQNH, k_BKNH) * q_BQNH.shape[-1] ** -0.5,
    softmax=lambda x: jax.nn.softmax(x, axis=-1),
    mix=lambda a_BNQK, v_BKNH: jnp.einsum('BNQK,BKNH->BQNH', a_BNQK, v_BKNH),
    gelu=lambda x: jax.nn.gelu(x, approximate=False),  # BERT
    gelu_tanh=lambda x: jax.nn.gelu(x, approximate=True),  # GPT-2
    relu=jax.nn.relu,
    tanh=jnp.tanh,
    sigmoid=jax.nn.sigmoid,
    gate=lambda gate, x: gate * x,  # the first, in [0, 1], says how much of the second passes
    product=lambda a, b: a * b,  # of two equals: fusion of question and picture
    pool=lambda a_BR, x_BRD: jnp.einsum('B...R,BRD->B...D', a_BR, x_BRD),  # sum over regions, weighted by attention
    signed_root=signed_root,
    unit=unit,
    sketch=sketch,
    convolve=convolve,
    conv=conv,
    affine=lambda x, scale_D, shift_D: x * scale_D + shift_D,  # a frozen batch normalisation
    max_pool=max_pool,
    mean=lambda x, axes: x.mean(axes),
)
OPS = {'gradient': FORWARD}


class Op(nnx.Module):
    """Base of every module: `self.op` is the table of the rule set that the model is in."""

    rules = 'gradient'

    @property
    def op(self) -> types.SimpleNamespace:
        return OPS[self.rules]


class Linear(Op):
    """y = x W + b; kernel [I, O] float32, computed in `dtype`. `std`: of the initial normal distribution."""

    def __init__(self, inputs: int, outputs: int, *, std: float, dtype, rngs: nnx.Rngs):
        self.kernel = nnx.Param(std * jax.random.normal(rngs.params(), (inputs, outputs)))
        self.bias = nnx.Param(jnp.zeros(outputs))
        self.dtype = dtype

    def __call__(self, x):
        return self.op.linear(
            x.astype(self.dtype), self.kernel[...].astype(self.dtype), self.bias[...].astype(self.dtype)
        )


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
