"""Dynamic weight averaging (Liu, Johns and Davison, CVPR 2019, equation 7): the loss that falls slower weighs more.

With L_k(w) the mean of loss k over window w, a number of steps (in the paper an epoch), the weights in window t are

    lambda_k(t) = K exp(r_k(t - 1) / T) / sum_i exp(r_i(t - 1) / T),    r_k(t - 1) = L_k(t - 1) / L_k(t - 2)

for K = 2 losses and temperature T = 2. In the first two windows they are 1.
"""

import jax
import jax.numpy as jnp

LOSSES = ('task', 'expl')  # order of the vectors below
TEMPERATURE = 2.0


def start() -> dict[str, jax.Array]:
    """What has to be remembered from step to step, float32 [2] each.

    sum, count: of the losses of this window, and of how many steps; last, before: means of the two windows before, 0
    where there was none.
    """
    return {name: jnp.zeros(len(LOSSES), jnp.float32) for name in ('sum', 'count', 'last', 'before')}


def weights(memory) -> jax.Array:
    """Weights of the losses in this window, float32 [2]; their sum is 2."""
    # A mean of 0: no such window yet, or nothing of this loss in it. Then there is no rate, and 1 is "as before".
    known = (memory['last'] > 0) & (memory['before'] > 0)
    rate = jnp.where(known, memory['last'] / jnp.where(known, memory['before'], 1.0), 1.0)
    return len(LOSSES) * jax.nn.softmax(rate / TEMPERATURE)


def update(memory, losses: jax.Array, counted: jax.Array, step: jax.Array, window: int) -> dict[str, jax.Array]:
    """The memory after a step.

    Args:
      losses: of the whole batch, float32 [2].
      counted: bool [2]; a step without explanations says nothing about their loss.
      step: int32, number of updates before this one.
      window: steps.
    """
    total = memory['sum'] + jnp.where(counted, losses, 0.0)
    count = memory['count'] + counted
    mean = jnp.where(count > 0, total / jnp.maximum(count, 1), memory['last'])
    closing = (step + 1) % window == 0
    return {
        'sum': jnp.where(closing, 0.0, total),
        'count': jnp.where(closing, 0.0, count),
        'last': jnp.where(closing, mean, memory['last']),
        'before': jnp.where(closing, memory['last'], memory['before']),
    }
