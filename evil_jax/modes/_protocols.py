"""What `attribute.evaluate` can be. A protocol measures a method example by example, and makes its numbers of that.

It is a class `Protocol` in modes/_<name>.py with

    __init__(config, decoder, sample, reader)  `sample`: a batch, whose shapes say what the model reads
    settings                                   {name: value} for the page
    deciding                                   those that decide what is measured, as JSON
    measurer(explainer, params) -> measure     `measure(batch on the device) -> {name: array [B, ...]}`
    finish(rows, examples) -> {'metrics', 'curves', 'details'}     of one method, from {name: [N, ...]}; 'files':
                                               {name: records} to be written as JSON lines
    TITLE, AXES, NAMES                         of the page: what x and y are, {metric: name that is shown}
    MAIN                                       metrics that the terminal shows, as far as they are there

A metric is {'value', 'ci95', 'n', 'better': 'higher' or 'lower'}, with 'reason' where there is no value.
"""

import importlib

import jax
import jax.numpy as jnp

from evil_jax.attribution import removal, subjects

NAMES = ('perturbation', 'segmentation', 'rationale', 'sanity')


def make(name: str, examples, config, decoder, sample, reader):
    """The protocol of a name. Raises ValueError where examples or model have not what it needs."""
    module = importlib.import_module(f'evil_jax.modes._{name}')
    if hasattr(module, 'check'):
        module.check(examples, reader)
    return module.Protocol(config, decoder, sample, reader)


def better(estimate: dict, which: str) -> dict:
    """An estimate {'value', 'ci95', 'n'}, and whether more of it is better."""
    reason = {} if estimate['value'] is not None else {'reason': 'undefined for these examples'}
    return {**estimate, 'better': which, **reason}


def bootstrap(config, examples) -> dict:
    """Arguments of every estimate: pictures (texts) are drawn whole."""
    return {
        'images': [example.image_id for example in examples],
        'resamples': config.evaluate.bootstrap,
        'seed': config.seed,
    }


def items(found, span: str, size: int):
    """Traced: relevance of the items of a span for the only target, BN."""
    only = tuple(x[:, 0] if x.ndim == 2 else x for x in found.spans[span])
    return removal.span_values(found.values_BKS[:, 0], only, size)


def spans(decoder, sample) -> tuple[str, ...]:
    """Names of what an answer is read from: 'patches', or 'text' and 'regions', or one of them."""
    found = []

    def look(params, batch):
        subject = subjects.answer(decoder.net.merge(params).task, batch)
        found.extend(subject.spans(jnp.zeros((len(batch['mask']), 1), jnp.int32)))

    jax.eval_shape(look, decoder.net.shapes, sample)
    return tuple(found)
