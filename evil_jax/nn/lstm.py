"""Recurrent nets over rows of different lengths: LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014).

Both are PyTorch's: an input and a recurrent map with a bias each, whose outputs are the gates side by side in PyTorch's
order (its weights are our kernels transposed, `weight_ih_l0` = input, `weight_hh_l0` = recurrent).

Initial weights: normal of variance 1 / inputs for the input, orthogonal for each gate of the recurrent map, so that
signals keep their size over steps (Saxe et al. 2014), and a forget gate that begins open, bias 1 (Jozefowicz et al.
2015).

Legend: B batch, Q positions, I input width, D width.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.nn import ops


class _Recurrent(ops.Op):
    """What both have: `input` [I, gates D] and `recurrent` [D, gates D], and the run over a row."""

    gates = 0

    def __init__(self, inputs: int, width: int, *, dtype, rngs: nnx.Rngs):
        outputs = self.gates * width
        self.input = ops.Linear(inputs, outputs, std=inputs**-0.5, dtype=dtype, rngs=rngs)
        self.recurrent = ops.Linear(width, outputs, std=0.0, dtype=dtype, rngs=rngs)
        square = jax.nn.initializers.orthogonal()
        kernels = [square(rngs.params(), (width, width)) for _ in range(self.gates)]
        self.recurrent.kernel = nnx.Param(jnp.concatenate(kernels, axis=1))
        self.width, self.dtype = width, dtype

    def start(self, rows: int):
        """The state before the first position, float32."""
        raise NotImplementedError

    def advance(self, projected, state):
        """Next state from `self.input(x)` [B, gates D] of a position and the state before it."""
        raise NotImplementedError

    def step(self, x_BI, state):
        """Next state from the input of one position."""
        return self.advance(self.input(x_BI), state)

    def part(self, x, first: int = 0):
        """What some of the inputs, from number `first` on, add to `self.input(x)`; the bias comes with the first ones.

        The sum over all parts is the whole: what is known before a loop is projected once, outside it.
        """
        kernel_IG, bias_G = (p[...].astype(self.dtype) for p in (self.input.kernel, self.input.bias))
        rows_IG = jax.lax.slice_in_dim(kernel_IG, first, first + x.shape[-1])
        return self.op.linear(x.astype(self.dtype), rows_IG, bias_G if first == 0 else jnp.zeros_like(bias_G))

    def __call__(self, x_BQI, length_B):
        """Reads rows from their first to their last position.

        Args:
          x_BQI: inputs.
          length_B: positions of each row that count. Beyond them its state does not change.

        Returns:
          (states_BQD after each position, last_BD), in the dtype of the module. A row of length 0 ends in zeros.
        """
        projected_BQG = self.input(x_BQI)
        inside_QB = jnp.arange(x_BQI.shape[1])[:, None] < length_B

        def body(state, item):
            projected_BG, inside_B = item
            new = self.advance(projected_BG, state)
            state = jax.tree.map(lambda a, b: jnp.where(inside_B[:, None], a, b), new, state)
            return state, _hidden(state).astype(self.dtype)

        state, states_QBD = jax.lax.scan(body, self.start(len(x_BQI)), (projected_BQG.swapaxes(0, 1), inside_QB))
        return states_QBD.swapaxes(0, 1), _hidden(state).astype(self.dtype)


class Lstm(_Recurrent):
    """`(x_BQI, length_B) -> (states_BQD, last_BD)`; `step(x_BI, (h_BD, c_BD)) -> (h_BD, c_BD)`, float32.

    Gates in their order: input i, forget f, candidate g, output o (PyTorch's LSTM and LSTMCell):
    c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c'), s the logistic function.
    """

    gates = 4

    def __init__(self, inputs: int, width: int, *, dtype, rngs: nnx.Rngs):
        super().__init__(inputs, width, dtype=dtype, rngs=rngs)
        self.input.bias = nnx.Param(jnp.zeros(4 * width).at[width : 2 * width].set(1.0))

    def start(self, rows: int):
        zeros = jnp.zeros((rows, self.width), jnp.float32)
        return zeros, zeros

    def advance(self, projected, state):
        op, (h_BD, c_BD) = self.op, state
        sums = op.add(projected, self.recurrent(h_BD)).astype(jnp.float32)
        i, f, g, o = jnp.split(sums, 4, axis=-1)
        c_BD = op.add(op.gate(op.sigmoid(f), c_BD), op.gate(op.sigmoid(i), op.tanh(g)))
        return op.gate(op.sigmoid(o), op.tanh(c_BD)), c_BD


class Gru(_Recurrent):
    """`(x_BQI, length_B) -> (states_BQD, last_BD)`; `step(x_BI, h_BD) -> h_BD`, float32.

    Gates in their order: reset r, update z, candidate n (PyTorch's GRU and GRUCell). With x and h for what the two maps
    say of each gate: n = tanh(x + s(r) h), h' = (1 - s(z)) n + s(z) h; the reset gate works on the recurrent map's
    output, bias included, not on its input.
    """

    gates = 3

    def start(self, rows: int):
        return jnp.zeros((rows, self.width), jnp.float32)

    def advance(self, projected, state):
        op, h_BD = self.op, state
        x_r, x_z, x_n = jnp.split(projected.astype(jnp.float32), 3, axis=-1)
        h_r, h_z, h_n = jnp.split(self.recurrent(h_BD).astype(jnp.float32), 3, axis=-1)
        reset, update = op.sigmoid(op.add(x_r, h_r)), op.sigmoid(op.add(x_z, h_z))
        new_BD = op.tanh(op.add(x_n, op.gate(reset, h_n)))
        return op.add(op.gate(1 - update, new_BD), op.gate(update, h_BD))


def _hidden(state):
    return state[0] if isinstance(state, tuple) else state
