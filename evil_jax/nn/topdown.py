"""Top-down attention over regions, and the layers of Up-Down VQA (Anderson et al. 2018; Teney et al. 2018).

Linear maps are weight-normalised (Salimans and Kingma 2016), by one norm of the whole matrix, and begin as plain ones.

Legend: B batch, R regions, F width of a region, D width, I inputs, O outputs.
"""

import jax.numpy as jnp
from flax import nnx

from evil_jax.nn import ops

# Standard deviation of the weights behind n inputs of unit variance: outputs of unit second moment.
_GAIN = {'tanh': 1.0, 'relu': 2**0.5, '': 1.0}


class Linear(ops.Op):
    """y = x W + b with W = scale V / |V|; kernel V [I, O] and scale (a scalar) float32, computed in `dtype`."""

    def __init__(self, inputs: int, outputs: int, *, gain: float = 1.0, dtype, rngs: nnx.Rngs):
        plain = ops.Linear(inputs, outputs, std=gain * inputs**-0.5, dtype=dtype, rngs=rngs)
        self.kernel, self.bias = plain.kernel, plain.bias
        self.scale = nnx.Param(_norm(self.kernel[...]))
        self.dtype = dtype

    def weight(self):
        """W [I, O], in `dtype`."""
        kernel_IO = self.kernel[...]
        return (kernel_IO * (self.scale[...] / _norm(kernel_IO))).astype(self.dtype)

    def __call__(self, x):
        return self.op.linear(x.astype(self.dtype), self.weight(), self.bias[...].astype(self.dtype))

    def pair(self, x_BRI, y_BJ):
        """The map of [x; y], y the same for all regions of a row: y's part is computed once."""
        w_IO, b_O = self.weight(), self.bias[...].astype(self.dtype)
        split = x_BRI.shape[-1]
        x_BRO = self.op.linear(x_BRI.astype(self.dtype), w_IO[:split], b_O)
        return self.op.add(x_BRO, self.op.linear(y_BJ.astype(self.dtype), w_IO[split:], jnp.zeros_like(b_O))[:, None])


class Layer(ops.Op):
    """A linear map and a non-linearity.

    Args:
      gate: 'tanh', tanh(W1 x + b1) * s(W2 x + b2) (Teney et al. 2018, eq. 1 and 2), or 'relu', ReLU(W x + b).
    """

    def __init__(self, inputs: int, outputs: int, gate: str, *, dtype, rngs: nnx.Rngs):
        make = lambda gain: Linear(inputs, outputs, gain=gain, dtype=dtype, rngs=rngs)
        self.up = make(_GAIN[gate])
        if gate == 'tanh':
            self.open = make(1.0)
        self.gate = gate

    def _act(self, read):
        if self.gate == 'relu':
            return self.op.relu(read(self.up))
        return self.op.gate(self.op.sigmoid(read(self.open)), self.op.tanh(read(self.up)))

    def __call__(self, x):
        return self._act(lambda linear: linear(x))

    def pair(self, x_BRI, y_BJ):
        """The layer of [x; y], y the same for all regions of a row."""
        return self._act(lambda linear: linear.pair(x_BRI, y_BJ))


class Attention(ops.Op):
    """Which regions matter to a question: `(x_BRF, length_B, question_BD) -> weights_BR`, float32.

    Args:
      gate: 'tanh' scores w . f([v; q]) (Teney et al. 2018, eq. 3); 'relu' scores w . (f(v) * g(q)), the product
        attention that later Up-Down code prefers. f and g are Layers of that gate.
    """

    def __init__(self, region: int, question: int, hidden: int, gate: str, *, dropout=0.0, dtype, rngs: nnx.Rngs):
        if gate == 'tanh':
            self.both = Layer(region + question, hidden, gate, dtype=dtype, rngs=rngs)
        else:
            self.region = Layer(region, hidden, gate, dtype=dtype, rngs=rngs)
            self.question = Layer(question, hidden, gate, dtype=dtype, rngs=rngs)
        self.score = Linear(hidden, 1, dtype=dtype, rngs=rngs)
        self.gate, self.dropout = gate, dropout

    def __call__(self, x_BRF, length_B, question_BD, *, key=None):
        if self.gate == 'tanh':
            joint_BRH = self.both.pair(x_BRF, question_BD)
        else:
            joint_BRH = self.op.product(self.region(x_BRF), self.question(question_BD)[:, None])
        scores_BR = self.score(ops.dropout(joint_BRH, self.dropout, key))[..., 0]
        return weights(self.op, scores_BR, length_B)


def weights(op, scores_BR, length_B):
    """Softmax over the first `length` regions of each row, float32; 0 elsewhere. A row of length 0 is all 0."""
    inside_BR = jnp.arange(scores_BR.shape[1]) < length_B[:, None]
    scores_BR = jnp.where(inside_BR, scores_BR.astype(jnp.float32), jnp.finfo(jnp.float32).min)
    return jnp.where(inside_BR, op.softmax(scores_BR), 0)


def mean(x_BRF, length_B):
    """Mean of the first `length` vectors of each row, float32; 0 for length 0."""
    inside_BR1 = (jnp.arange(x_BRF.shape[1]) < length_B[:, None])[..., None]
    total_BF = jnp.where(inside_BR1, x_BRF, 0).astype(jnp.float32).sum(1)
    return total_BF / jnp.maximum(length_B, 1)[:, None]


def _norm(kernel_IO):
    return jnp.sqrt(jnp.sum(kernel_IO**2))
