"""Settings that a pair of models does not read: refused where a result would mean something else than the config says.

A model's file says what it reads, beside what all do:

  READS: keys of `_OPTIONAL`.
  QUIRKS: numbers of compat.py, of those in `_QUIRKS`.
  MEMORY: False for an M_T that hands no vectors over to M_E.
"""

import functools

from absl import logging

from evil_jax import compat, lookup
from evil_jax import config as config_lib

_QUIRKS = {'task': (3, 4), 'expl': (1, 2)}  # those inside of models
_IMAGE, _REMAT = 'model.expl.image', 'model.remat'
_OPTIONAL = {'task': ('model.task.fusion', 'model.task.gate', _REMAT), 'expl': ('model.expl.attend', _REMAT)}


def check(config) -> None:
    """Refuses what the models of a config would ignore and a result be taken for; warns, once, of what else they do.

    Raises:
      ValueError: all that is wrong, in one message.
    """
    there = {kind: lookup.module('models', config.model[kind].name) for kind in _QUIRKS if config.model[kind].name}
    reads = {kind: getattr(module, 'READS', ()) for kind, module in there.items()}
    names = {kind: config.model[kind].name for kind in there}
    faults = []
    for kind, module in there.items():
        asked = [n for n in _QUIRKS[kind] if compat.has(config, n)]
        if absent := [n for n in asked if n not in getattr(module, 'QUIRKS', ())]:
            faults.append(
                f'config.compat={config.compat} has quirk {" and ".join(map(str, absent))}, which {names[kind]} '
                f'(config.model.{kind}.name) has not: name the other quirks one by one'
            )
    if 'expl' in there and _IMAGE not in reads['expl']:
        if not getattr(there['task'], 'MEMORY', True):
            faults.append(
                f'config.model.expl.name is {names["expl"]!r}, which reads the vectors of M_T, but '
                f"{names['task']!r} hands none over: wanted 'gpt2' with config.{_IMAGE} 'tags' or 'none'"
            )
        if (image := config.model.expl.image) != 'memory':
            faults.append(
                f"config.{_IMAGE} is {image!r}, but {names['expl']} always reads the vectors of M_T: wanted 'memory'"
            )
    if config.data.regions == 'zero' and config.data.objects:
        faults.append(
            f"config.data.regions is 'zero', which hides the picture, but config.data.objects is "
            f"{config.data.objects!r}: the names of what is in it would still be read. Wanted data.objects=''"
        )
    if faults:
        raise ValueError('\n'.join(faults))
    _tell(config, names, reads)


def _tell(config, names, reads):
    chosen, usual = config.model.to_dict(), config_lib.base().model.to_dict()
    for kind, keys in _OPTIONAL.items():
        for key in keys:
            value, default = (functools.reduce(dict.get, key.split('.')[1:], tree) for tree in (chosen, usual))
            if kind in names and key not in reads[kind] and value != default:
                _warn(f'config.{key} is {value!r}, which {names[kind]} does not read')
    if config.data.objects and names['task'] != 'bert' and not ('expl' in names and config.model.expl.image == 'tags'):
        _warn(
            f'config.data.objects is {config.data.objects!r}: {names["task"]} reads names of objects in its text, '
            'beside the picture itself; they are meant for bert, or for gpt2 with '
            f"config.{_IMAGE}='tags'"
        )


@functools.cache  # a model is built several times in a run
def _warn(text):
    logging.warning(text)
