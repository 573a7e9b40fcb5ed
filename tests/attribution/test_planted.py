"""A net in which one word decides: methods have to find it, and the same in a batch and alone."""

import dataclasses
import functools

import attributed
import jax.numpy as jnp
import numpy as np
import planted
import pytest
from flax import nnx

from evil_jax.attribution import gradients, methods, subjects
from evil_jax.attribution.base import Settings

# Those for a target, but LRP's baselines, which are nearly the same for all targets, and SmoothGrad, which says how
# easily something would change the answer. Input times gradient does not see through norms, so it finds no region.
FIND_WORDS = (
    'gradcam', 'transformer_attribution', 'generic', 'attnlrp', 'integrated_gradients', 'legrad', 'input_x_gradient',
)  # fmt: skip
FIND_REGIONS = FIND_WORDS[:-1]
SETTINGS = Settings(steps=40, chunk=8)
RULES = {'partial_lrp': 'chefer2020'}  # those of transformer attribution: no further pass
ALONE = ('gradcam', 'partial_lrp', 'random')
PLAIN = ('transformer_attribution', *ALONE, 'legrad', 'integrated_gradients')
TARGETS = (1, 0)


settings_of = lambda name: dataclasses.replace(SETTINGS, rules=RULES.get(name, ''))


@functools.cache
def attribute(names):
    """Compiled `(batch, targets_BK) -> ({method: Relevance}, logits BA, share that integrated gradients lack)`."""
    graph, params = planted.classifier()

    @attributed.quick_jit
    def run(params, batch, targets_BK):
        subject = subjects.answer(nnx.merge(graph, params), batch)
        found = {name: methods.relevance(subject, targets_BK, name, settings_of(name)) for name in names}
        gap = None
        if 'integrated_gradients' in names:
            values_BKS = found['integrated_gradients'].values_BKS
            gap_BK, change_BK = (
                gradients.completeness_gap(subject, targets_BK, x) for x in (values_BKS, jnp.zeros_like(values_BKS))
            )
            gap = gap_BK / change_BK
        return found, subject.forward(subject.inputs)[0], gap

    return functools.partial(run, params)


def in_batch(names):
    batch, place_B = planted.texts()
    found, logits, gap = attribute(names)(batch, np.tile(TARGETS, (2, 1)))
    return found, np.asarray(logits), gap, place_B


def peaks(found, place_B):
    """{method: whether the largest value for the decided class is at the decisive word, of each text}."""
    return {name: np.asarray(r.values_BKS)[:, 0].argmax(-1) == place_B for name, r in found.items()}


def test_the_word_that_decides_and_integrated_gradients_add_up():
    found, logits, gap, place_B = in_batch(PLAIN)
    batch, _ = planted.texts()
    other = batch | {'text': np.where(batch['text'] == planted.DECISIVE, 12, batch['text'])}
    without = attribute(PLAIN)(other, np.tile(TARGETS, (2, 1)))[1]
    assert (logits[:, 1] > without[:, 1] + 1).all()  # it decides
    peak = peaks({name: r for name, r in found.items() if name in FIND_WORDS}, place_B)
    assert all(there.all() for there in peak.values()), peak
    assert (gap < 0.01).all(), gap


def test_an_example_does_not_depend_on_its_batch_nor_a_target_on_others():
    found, *_ = in_batch(PLAIN)
    batch, _ = planted.texts()
    for k, target in enumerate(TARGETS):
        single, *_ = attribute(ALONE)(*attributed.alone((batch,), 1), np.array([[target]]))
        for name in ALONE:
            assert attributed.difference(found[name], single[name], 1, k) < 1e-3, (name, target)
    for name, r in found.items():
        values_BKS = np.asarray(r.values_BKS)
        assert np.isfinite(values_BKS).all() and values_BKS.any(-1).all(), name
        assert not values_BKS[0, :, 8:].any() and not values_BKS[1, :, 7:].any(), name  # six and two, four and three
    assert not np.allclose(found['random'].values_BKS[0, :, 1], found['random'].values_BKS[1, :, 1])
    assert (found['legrad'].values_BKS >= 0).all()  # what speaks against a target does not count


@pytest.mark.acceptance
def test_all_methods_find_what_decides(measured):
    found, *_, place_B = in_batch(FIND_WORDS)
    of_words = peaks(found, place_B)
    graph, params = planted.explainer()
    inputs, region_B = planted.pictures()

    @attributed.quick_jit
    def run(params, inputs):
        subject = subjects.explanation(nnx.merge(graph, params), *inputs)
        return {name: methods.relevance(subject, jnp.full((2, 1), 2), name, SETTINGS) for name in FIND_REGIONS}

    found = run(params, inputs)
    of_regions = peaks(found, np.asarray(found['generic'].spans['regions'][0]) + region_B)
    for what, all_peaks in (('word', of_words), ('region', of_regions)):
        for name, peak in all_peaks.items():
            measured(f'planted {what} is the peak of {name}, share', '>=', 1, float(peak.mean()))
