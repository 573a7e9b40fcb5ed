"""What a run trains (`train.regime`).

joint   M_T and M_E together; the gradient of the explanation loss reaches M_T through its memory
task    M_T alone: there is no M_E, no pass of a decoder, and nothing below expl/ in the checkpoints
expl    M_E on an M_T that was trained before: M_T runs as in evaluation, has neither gradient nor moments, and is in
        the checkpoints bit for bit as it came (model.task.init or train.init)
"""

from collections.abc import Iterable

from absl import logging

from evil_jax import lookup
from evil_jax.training import optim

JOINT, TASK, EXPL = 'joint', 'task', 'expl'


def check(config) -> None:
    """Refuses regimes in which nothing would be learnt, or that contradict the rest of the config.

    Raises:
      ValueError: all that is wrong.
    """
    train, explains, faults = config.train, bool(config.model.expl.name), []
    if train.regime == EXPL and not explains:
        faults.append("train.regime is 'expl', but model.expl.name is '': there is no explanation module to train")
    if train.regime == EXPL and not train.expl_weight:
        faults.append("train.regime is 'expl' and train.expl_weight 0: nothing would be trained")
    if train.regime == TASK and not train.task_weight:
        faults.append("train.regime is 'task' and train.task_weight 0: nothing would be trained")
    if train.regime == JOINT:
        faults += _untrained(config)
    if train.dwa and not (train.regime == JOINT and explains and train.task_weight and train.expl_weight):
        faults.append(
            f'train.dwa is {train.dwa}: it balances two losses, but with train.regime {train.regime!r}, '
            f'model.expl.name {config.model.expl.name!r}, train.task_weight {train.task_weight} and train.expl_weight '
            f'{train.expl_weight} there is only one'
        )
    # Where a config without M_E asks for scores of explanations, as opposed to a regime that leaves M_E out.
    if train.regime != TASK and train.eval_every and not explains and train.select != 's_t':
        faults.append(f'train.select is {train.select!r}, but a model without explanations has only s_t')
    if faults:
        raise ValueError('; '.join(faults))


def tell(config) -> None:
    """Says what of the config is not read."""
    train = config.train
    if train.regime == TASK and train.eval_every and train.select != 's_t':
        print(f'train.regime is task: s_t chooses the best checkpoint (train.select is {train.select})', flush=True)
    if train.regime == TASK and config.model.expl.init:
        logging.warning('train.regime is task: model.expl.init %r is not read', config.model.expl.init)


def _untrained(config) -> list[str]:
    """Modules that training both together would leave as they are drawn."""
    train, name = config.train, config.model.expl.name
    if not train.task_weight and not (name and train.expl_weight):
        why = f'train.expl_weight {train.expl_weight}' if name else "model.expl.name ''"
        return [f"train.regime is 'joint', train.task_weight {train.task_weight} and {why}: nothing would be trained"]
    if name and not train.expl_weight:
        return [
            f"train.regime is 'joint' and train.expl_weight {train.expl_weight}: nothing would train M_E. To train M_T "
            "alone: train.regime='task'"
        ]
    if not train.task_weight and not _reads_memory(config):
        return [
            f"train.regime is 'joint', train.task_weight {train.task_weight} and model.expl.image "
            f'{config.model.expl.image!r}: nothing would train M_T, whose vectors M_E does not read. To train M_E on '
            "an M_T that is trained: train.regime='expl'"
        ]
    return []


def _reads_memory(config) -> bool:
    """Whether the loss of M_E has a gradient in M_T: it comes through the vectors that are handed over."""
    module = lookup.module('models', config.model.expl.name)
    return not hasattr(module, 'reads_memory') or module.reads_memory(config)


def built(config, regime: str | None = None):
    """The config of the model that a regime has: without M_E where that takes no part.

    Args:
      config: the whole config; it stays as it is.
      regime: instead of `train.regime`, for a checkpoint that says itself what it was trained in.
    """
    if (config.train.regime if regime is None else regime) != TASK:
        return config
    config = config.copy_and_resolve_references()
    config.model.expl.name = ''
    config.train.select = 's_t'
    return config


def trained(config, shapes: dict) -> list[str]:
    """Paths of the parameters that learn, of {path: leaf}."""
    paths: Iterable[str] = optim.trainable(shapes, config.optim.lr_mult)
    return [path for path in paths if config.train.regime != EXPL or not path.startswith('task/')]
