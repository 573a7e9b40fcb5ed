"""Optimisers: AdamW and BertAdam, with a linear warm-up and decay, clipping, and tables of factors by parameter path.

Everything here works on {path: array} (see `sharding.flatten`) and only on the parameters that are trained.
"""

import jax
import jax.numpy as jnp
import optax
from absl import logging

from evil_jax import compat
from evil_jax import config as config_lib

_EVERY_PARAMETER = ((r'.*', 1.0),)


def schedule(lr: float, warmup: float, steps: int, first_is_zero: bool = False):
    """Linear warm-up over the share `warmup` of the steps, then linear decay to 0 at `steps`.

    Update number k (from 0) uses lr * (k + 1) / (W + 1) for k < W = warmup * steps, afterwards
    lr * (steps - k) / (steps - W): no update is wasted on a learning rate of 0.

    Args:
      first_is_zero: lr * k / W during the warm-up instead, so that the first update does nothing. This is BertAdam's
        `warmup_linear` (facts 1.7) and, for whole W, Hugging Face's `get_linear_schedule_with_warmup`.

    Returns:
      function of k giving a float32 scalar.
    """
    rise = warmup * steps

    def value(k):
        k = jnp.asarray(k, jnp.float32)
        up = k / max(rise, 1e-9) if first_is_zero else (k + 1) / (rise + 1)
        down = (steps - k) / max(steps - rise, 1e-9)
        return lr * jnp.clip(jnp.where(k < rise, up, down), 0.0, 1.0)

    return value


def rate(config):
    """Learning rate of a config, as a function of the number of updates done; see `schedule`. Quirk 8: from 0 on."""
    o = config.optim
    return schedule(o.lr, o.warmup, config.train.steps, first_is_zero=compat.has(config, 8))


def trainable(params, lr_mult) -> list[str]:
    """Paths of {path: array or shape} whose learning-rate factor is not 0; none of integers, which are constants of a
    model (the hashes of a count sketch). The others are frozen: no gradient, no moments, no decay."""
    chosen = [path for path in params if config_lib.first_match(lr_mult, path) != 0]
    return [path for path in chosen if jnp.issubdtype(params[path].dtype, jnp.floating)]


def make(config, paths) -> optax.GradientTransformation:
    """The optimiser of `config.optim` for the trained parameters.

    The update of parameter p with gradient g (clipped so that the norm of all gradients together is at most `clip`) is

      p <- p - lr(k) * lr_mult * (m / (sqrt(v) + eps) + weight_decay * decay * p)

    with m, v the running means of g and g^2. 'adamw' divides both by 1 - b^(k+1) (Loshchilov and Hutter 2019, as in
    PyTorch); 'bert_adam' does not (Devlin et al. 2018).

    Quirk 8 of compat.py is BertAdam as e-UG has it: `optim.name` and `optim.decay` are not read, every trained
    parameter decays, and the first update has a learning rate of 0.

    Args:
      config: the whole config.
      paths: of the trained parameters.

    Raises:
      ValueError: a path that no pattern of `optim.decay` or `optim.lr_mult` matches, or a value out of range.
    """
    o = config.optim
    for key, low, high in (('warmup', 0, 1), ('b1', 0, 1), ('b2', 0, 1), ('clip', 0, None), ('weight_decay', 0, None)):
        if o[key] < low or (high is not None and o[key] > high):
            raise ValueError(f'config.optim.{key} is {o[key]}, wanted {low} to {"any" if high is None else high}')
    name, decay_table = o.name, o.decay
    if compat.has(config, 8):
        name, decay_table = 'bert_adam', _EVERY_PARAMETER
        if (o.name, o.decay) != (name, decay_table):
            logging.warning('config.compat: BertAdam decays every parameter; optim.name and optim.decay are not read')
    decay = {p: o.weight_decay * config_lib.first_match(decay_table, p) for p in paths}
    factor = {p: config_lib.first_match(o.lr_mult, p) for p in paths}
    learning_rate = rate(config)

    def add_decay(updates, params):
        return {p: u + decay[p] * params[p] if decay[p] else u for p, u in updates.items()}

    def scale(updates, state, params=None):
        del params
        step_size = -learning_rate(state.count)
        updates = {p: (step_size * factor[p]) * u for p, u in updates.items()}
        return updates, optax.ScaleByScheduleState(count=optax.safe_increment(state.count))

    adam = optax.scale_by_adam if name == 'adamw' else _scale_by_bert_adam
    return optax.chain(
        optax.clip_by_global_norm(o.clip) if o.clip else optax.identity(),
        adam(b1=o.b1, b2=o.b2, eps=o.eps),
        optax.stateless(add_decay),
        optax.GradientTransformation(lambda _: optax.ScaleByScheduleState(count=jnp.zeros((), jnp.int32)), scale),
    )


def _scale_by_bert_adam(b1: float, b2: float, eps: float) -> optax.GradientTransformation:
    """m / (sqrt(v) + eps) without the bias correction: early updates are (1 - b1) / sqrt(1 - b2) times as large."""

    def init(params):
        zeros = lambda: jax.tree.map(jnp.zeros_like, params)
        return optax.ScaleByAdamState(count=jnp.zeros((), jnp.int32), mu=zeros(), nu=zeros())

    def update(updates, state, params=None):
        del params
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state.nu, updates)
        scaled = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mu, nu)
        return scaled, optax.ScaleByAdamState(count=optax.safe_increment(state.count), mu=mu, nu=nu)

    return optax.GradientTransformation(init, update)
