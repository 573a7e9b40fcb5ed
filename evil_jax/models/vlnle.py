"""The pair that answers and explains: task module M_T and explanation module M_E (Kayser et al. 2021, section 4.1)."""

import jax
from flax import nnx

from evil_jax import lookup
from evil_jax.models import settings


class Vlnle(nnx.Module):
    """Parameters are addressed as `task/...` and `expl/...`.

    Attributes:
      task: M_T, `(batch, key=None) -> (answer_logits_BA, Context)`.
      expl: M_E, `(batch, context, condition, tokens_BT, key=None) -> logits_BTV` with `prefill` and
        `extend`; None for a model that only answers.
    """

    def __init__(self, task: nnx.Module, expl: nnx.Module | None):
        self.task = task
        self.expl = expl


def build(config, assets, key: jax.Array) -> Vlnle:
    """The model of a config with fresh parameters. Call it under `jax.jit` or `nnx.eval_shape` to place or size it.

    Raises:
      ValueError: settings that the models do not read (`settings.check`), or that do not fit each other.
    """
    settings.check(config)
    task_key, expl_key = jax.random.split(key)
    task = lookup.module('models', config.model.task.name).build_task(config, assets, rngs=nnx.Rngs(params=task_key))
    if not config.model.expl.name:
        return Vlnle(task, None)
    module = lookup.module('models', config.model.expl.name)
    expl = module.build_expl(config, assets, memory_width=task.width, rngs=nnx.Rngs(params=expl_key))
    return Vlnle(task, expl)
