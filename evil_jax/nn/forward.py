"""The operations that every model is built from, as ordinary JAX: the table of the rule set 'gradient'.

What narrower types would spoil is computed in at least float32, in float64 where x is (`wide`).

Legend: B batch, P positions, D width, I inputs, O outputs, R rows, S selected rows, V vocabulary, N heads, H head size.
"""

import types

import jax
import jax.numpy as jnp


def wide_type(dtype):
    """float32, or what is wider."""
    return jnp.promote_types(dtype, jnp.float32)


def wide(x):
    """x in at least float32."""
    return x.astype(wide_type(x.dtype))


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


def norm(x, scale_D, bias_D, eps, deviation=lambda x: x):
    """Layer normalisation over the last axis (Ba et al. 2016). `deviation`: what is done to 1 / standard deviation."""
    x_wide = wide(x)
    centred = x_wide - x_wide.mean(-1, keepdims=True)
    unit = centred * deviation(jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + eps))
    return (unit * scale_D + bias_D).astype(x.dtype)


def select(x_BPD, index_BS):
    """Rows of each example: `x[b, index[b, s]]`."""
    return jnp.take_along_axis(x_BPD, index_BS[..., None], axis=1)


def signed_root(x):
    """sign(x) sqrt(|x|) of each element, as after bilinear pooling (Fukui et al. 2016). The derivative, infinite at 0,
    is kept below 1e4; elements of 1e-4 and more have a relative error below 1e-4 for it. Of an element that is exactly
    0 it is 0: fused with nothing (a picture without regions), it would drown the gradient of everything else."""
    x_wide = wide(x)
    something = x_wide != 0
    root = x_wide * jax.lax.rsqrt(jnp.where(something, jnp.abs(x_wide), 1.0) + 1e-8)
    return jnp.where(something, root, 0).astype(x.dtype)


def unit(x):
    """x / |x| over the last axis; 0 stays 0."""
    x_wide = wide(x)
    return (x_wide * jax.lax.rsqrt((x_wide**2).sum(-1, keepdims=True) + 1e-12)).astype(x.dtype)


def sketch(x, hash_I, sign_I, outputs: int):
    """Sum of sign * x over equal hashes, [..., outputs]. What is scattered are whole columns of x: far cheaper
    on CPU, GPU and TPU than single numbers."""
    x_NI = wide(x.reshape(-1, x.shape[-1])) * sign_I
    y_DN = jax.ops.segment_sum(x_NI.T, hash_I, num_segments=outputs)
    return y_DN.T.reshape(*x.shape[:-1], outputs)


def convolve(a, b):
    """Circular convolution over the last axis; leading axes broadcast behind the Fourier transforms."""
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


def unembed(x, table_VD):
    """Scores of the rows of a table of words, x W^T (Press and Wolf 2017)."""
    return jnp.einsum('...D,VD->...V', x, table_VD, preferred_element_type=wide_type(x.dtype))


def contrast(x, w_I2, b_2):
    """The second of two outputs minus the first, as one operation: what is for the one and what is against the other
    would cancel in rules that look at sums."""
    y = linear(x, w_I2, b_2)
    return y[..., 1] - y[..., 0]


def inner(q_BQNH, k_BKNH):
    """Inner products of queries and keys."""
    return jnp.einsum('BQNH,BKNH->BNQK', q_BQNH, k_BKNH)


FORWARD = types.SimpleNamespace(
    fused=True,  # attention may be one operation that nothing looks into
    linear=linear,
    patch=linear,  # of pixels, whose values have bounds
    contrast=contrast,
    unembed=unembed,
    norm=norm,
    select=select,
    first=lambda x_BPD: x_BPD[:, 0],
    copy=lambda x: (x, x),  # for its two users
    add=lambda a, b: a + b,
    embed=lambda table_VD, ids: jnp.take(table_VD, ids, axis=0),
    scores=lambda q_BQNH, k_BKNH: inner(q_BQNH, k_BKNH) * q_BQNH.shape[-1] ** -0.5,
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
