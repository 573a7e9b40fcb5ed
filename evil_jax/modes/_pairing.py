"""Which trained model is decoded: that of one checkpoint, or the M_T of one with the M_E of another.

    --config.decode.task_checkpoint=runs/task --config.decode.checkpoint=runs/expl/best/900

An M_E reads the memory of the M_T that it was trained on; that of any other M_T says something else, and it would
explain something else without a sign. So the parameters are compared. Of M_E that read no memory (`reads_memory` of its
file in models/) any M_T may answer.
"""

import pathlib

import jax
import jax.numpy as jnp

from evil_jax import lookup
from evil_jax.modes import _predictions
from evil_jax.training import checkpoint, regime

_SHOWN = 3


def find_task(config) -> pathlib.Path | None:
    """The checkpoint of `decode.task_checkpoint`; None where M_T comes from the same one as M_E.

    Raises:
      ValueError: there is none.
    """
    path = config.decode.task_checkpoint
    if not path:
        return None
    try:
        return checkpoint.find(path)
    except ValueError as error:
        raise ValueError(f'decode.task_checkpoint: {error}') from error


def check(config, folder: pathlib.Path, task: pathlib.Path | None) -> None:
    """Refuses checkpoints that are not those of this config, or of one another.

    Args:
      folder: of the checkpoint.
      task: of the one whose M_T takes the place of its own, or None.

    Raises:
      ValueError: all differing settings and vocabularies and all missing modules, of both checkpoints.
    """
    now, origin = checkpoint.leaves(checkpoint.plain(config)), checkpoint.read_origin(folder)
    if task is None:
        answers_only = _regime(origin) == regime.TASK
        differing = _differences(origin, now, *(['model.expl'] if answers_only else []))
        absent = _absent(folder, ['task'] if answers_only or not config.model.expl.name else checkpoint.MODULES)
        if differing or absent:
            what = 'was trained with other settings' if differing else 'does not fit the model'
            raise ValueError(f'{folder} {what}:\n  ' + '\n  '.join(differing + absent))
        return
    other, faults = checkpoint.read_origin(task), []
    if config.model.expl.name == '':
        faults.append("model.expl.name is '': there is no M_E to pair an M_T with")
    reads = bool(config.model.expl.name) and reads_memory(config)
    for path, document, module, without in (
        (folder, origin, 'expl', () if reads else ('model.task',)),
        (task, other, 'task', ('model.expl',)),
    ):
        names = {'expl': 'decode.checkpoint', 'task': 'decode.task_checkpoint'}
        found = _differences(document, now, *without) + _absent(path, [module])
        faults += [f'{names[module]} {path}: {fault}' for fault in found]
    if reads and 'task' not in checkpoint.held(folder):
        faults.append(
            f'decode.checkpoint {folder} has no parameters of the M_T that its M_E was trained on, so it cannot be '
            f'seen whether that of {task} is the same'
        )
    faults += [f'vocabularies: {x}' for x in checkpoint.differences(other['assets'], origin['assets'])]
    if faults:
        raise ValueError('M_T and M_E do not make a pair:\n  ' + '\n  '.join(faults))


def built(config, folder: pathlib.Path):
    """The config of the model that a checkpoint holds: without M_E after training in the regime 'task'."""
    return regime.built(config, _regime(checkpoint.read_origin(folder)))


def reads_memory(config) -> bool:
    """Whether M_E reads what M_T hands over."""
    module = lookup.module('models', config.model.expl.name)
    return module.reads_memory(config) if hasattr(module, 'reads_memory') else True


def restore(config, folder: pathlib.Path, task: pathlib.Path, shapes: dict) -> dict[str, jax.Array]:
    """Parameters of a pair, {path: array}: M_E's from `folder`, M_T's from `task`.

    Raises:
      ValueError: names and shapes differ, or M_E reads the memory of another M_T.
    """
    of = lambda module: {path: leaf for path, leaf in shapes.items() if path.startswith(f'{module}/')}
    found = checkpoint.restore_params(folder, 'latest', of('expl'))
    answering = checkpoint.restore_params(task, 'latest', of('task'))
    if reads_memory(config):
        trained_on = checkpoint.restore_params(folder, 'latest', of('task'))
        equal = jax.device_get(jax.jit(lambda a, b: {p: jnp.array_equal(a[p], b[p]) for p in a})(answering, trained_on))
        if other := [path for path, same in sorted(equal.items()) if not same]:
            some = ', '.join(other[:_SHOWN]) + (' ...' if other[_SHOWN:] else '')
            raise ValueError(
                f'M_T and M_E do not make a pair: M_E of {folder} reads the memory of the M_T that it was trained on; '
                f'that of {task} is another one ({len(other)} of {len(equal)} parameters differ: {some}). Train M_E on '
                f"it: train.regime='expl', model.task.init={task}"
            )
    return found | answering


def _regime(origin) -> str:
    return checkpoint.settings(origin['config'])['train.regime']


def _differences(origin, now, *without) -> list[str]:
    before = checkpoint.settings(origin['config'])
    return checkpoint.differences(*(_predictions.trained_with(x, *without) for x in (before, now)))


def _absent(folder, modules) -> list[str]:
    return [f'no parameters of {module!r}' for module in modules if module not in checkpoint.held(folder)]
