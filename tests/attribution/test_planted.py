"""Nets that are built so that one thing decides: methods have to find it.

What decides sets the first element of its vector. A head of attention that prefers such vectors brings it to the place
where the answer is read; everything else is small noise.
"""

import functools

import attributed
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evil_jax.attribution import gradients, methods, subjects
from evil_jax.attribution.base import Settings
from evil_jax.models import bert, gpt2, uniter
from evil_jax.models.context import Condition
from evil_jax.models.vlnle import Vlnle

WIDTH, WORDS, DECISIVE, SAID = 16, 20, 7, 9
# Those for a target, but LRP's baselines, which are nearly the same for all targets, and SmoothGrad, which says how
# easily something would change the answer. Input times gradient does not see through norms, so it finds no region.
FIND_WORDS = (
    'gradcam', 'transformer_attribution', 'generic', 'attnlrp', 'integrated_gradients', 'legrad', 'input_x_gradient',
)  # fmt: skip
FIND_REGIONS = FIND_WORDS[:-1]
SETTINGS = Settings(steps=40, chunk=8)
STD = 0.1


def plant(params, path, value, *at):
    """Sets numbers of one array."""
    array = params
    for name in path.split('/'):
        array = array[int(name) if name.isdigit() else name]
    array.get_value()[at] = value


def plant_attention(params, block):
    """The first head looks at vectors with a large first element, and passes that on; the other one is noise."""
    plant(params, f'{block}/attention/query/bias', 1.0, 0)
    plant(params, f'{block}/attention/key/kernel', 1.0, 0, 0)
    plant(params, f'{block}/attention/value/kernel', 0.7, 0, 0)
    plant(params, f'{block}/attention/out/kernel', 0.7, 0, 0)


@functools.cache
def classifier():
    """(graph, state): class 1 of a text with the word DECISIVE."""
    size = bert.Size(layers=1, width=WIDTH, heads=2, hidden=16, positions=8)
    graph, params = attributed.filled(lambda: bert.Bert(size, words=WORDS, answers=2, rngs=nnx.Rngs(params=0)), STD)
    for table in ('word', 'position', 'type'):  # nothing else has a first element
        plant(params, f'text/{table}/embedding', 0, ..., 0)
    plant(params, 'text/word/embedding', 1.5, DECISIVE, 0)
    plant_attention(params, 'layers/0')
    plant(params, 'pooler/kernel', 1.0, 0, 0)
    plant(params, 'head/answer/kernel', 3.0, 0, 1)
    return graph, params


def texts():
    """Two texts of 6 and 4 words; the decisive one stands at position 3, and at 2."""
    r = np.random.default_rng(0)
    ids = r.integers(10, WORDS, (2, 6)).astype(np.int32)
    ids[0, 3] = ids[1, 2] = DECISIVE
    return {'text': ids, 'text_type': np.zeros_like(ids), 'text_length': np.array([6, 4], np.int32)}, np.array([3, 2])


@functools.cache
def explainer():
    """(graph, state): GPT-2 says the word SAID because of a region whose first feature is large."""
    size = uniter.Size(layers=1, width=WIDTH, heads=2, hidden=16, positions=8, std=0, word_std=0)
    small = gpt2.Size(layers=1, width=WIDTH, heads=2, positions=32, std=0)
    markers = gpt2.Markers(b_img=1, e_img=2, b_rtnl=3, types=(16, 17, 18, 19))

    def build():
        task = uniter.Uniter(size, words=WORDS, answers=2, rngs=nnx.Rngs(params=0))
        return Vlnle(task, gpt2.Gpt2(small, rows=WORDS, markers=markers, rngs=nnx.Rngs(params=0)))

    graph, params = attributed.filled(build, STD)
    for table in ('task/text/word', 'task/text/position', 'task/text/type', 'expl/wte', 'expl/wpe'):
        plant(params, f'{table}/embedding', 0, ..., 0)
    plant(params, 'task/image/feature/kernel', 1.0, 0, 0)
    plant(params, 'task/image/location/kernel', 0, ...)
    plant(params, 'expl/wte/embedding', 5.0, SAID, 0)
    plant_attention(params, 'expl/layers/0')
    return graph, params


def pictures():
    """(inputs of subjects.explanation, the decisive region of each example); SAID is token 2."""
    r = np.random.default_rng(0)
    features = r.normal(size=(2, 4, 2048)).astype(np.float32)
    features[:, :, 0] = 0
    features[0, 2, 0] = features[1, 1, 0] = 60
    ids = lambda *shape: r.integers(10, 16, shape).astype(np.int32)
    batch = {
        'text': ids(2, 3), 'text_type': np.zeros((2, 3), np.int32), 'text_length': np.array([3, 2], np.int32),
        'features': features, 'locations': np.zeros((2, 4, 7), np.float32), 'region_length': np.array([4, 3], np.int32),
        'question': ids(2, 2), 'question_length': np.array([2, 2], np.int32),
    }  # fmt: skip
    tokens = ids(2, 4)
    tokens[:, 0], tokens[:, 2] = 3, SAID
    condition = Condition(np.zeros(2, np.int32), ids(2, 2), np.array([2, 1], np.int32))
    return (batch, condition, tokens, np.array([4, 3], np.int32)), np.array([2, 1])


def peaks_of_texts(names):
    """{method: whether each text's largest value is at the decisive word}, share that IG lacks to add up (or None)."""
    graph, state = classifier()
    batch, place_B = texts()

    @jax.jit
    def run(state, batch):
        subject, targets_BK = subjects.answer(nnx.merge(graph, state), batch), jnp.ones((2, 1), int)
        found = {name: methods.relevance(subject, targets_BK, name, SETTINGS).values_BKS for name in names}
        other = subjects.answer(
            nnx.merge(graph, state), batch | {'text': jnp.where(batch['text'] == DECISIVE, 12, batch['text'])}
        )
        logits = subject.forward(subject.inputs)[0][:, 1], other.forward(other.inputs)[0][:, 1]
        gap = None
        if 'integrated_gradients' in names:
            gap_BK = gradients.completeness_gap(subject, targets_BK, found['integrated_gradients'])
            change_BK = gradients.completeness_gap(subject, targets_BK, jnp.zeros_like(found['integrated_gradients']))
            gap = gap_BK / change_BK
        return found, logits, gap

    found, (logits, without), gap = run(state, batch)
    assert (logits > without + 1).all()  # it decides
    return {name: np.asarray(values)[:, 0].argmax(-1) == place_B for name, values in found.items()}, gap


def peaks_of_pictures(names):
    """{method: whether, of all that was read for the word, the decisive region has the largest value}."""
    graph, state = explainer()
    inputs, region_B = pictures()

    @jax.jit
    def run(state, inputs):
        subject = subjects.explanation(nnx.merge(graph, state), *inputs)
        found = {name: methods.relevance(subject, jnp.full((2, 1), 2), name, SETTINGS) for name in names}
        features = inputs[0]['features'].at[:, :, 0].set(0)
        other = subjects.explanation(nnx.merge(graph, state), inputs[0] | {'features': features}, *inputs[1:])
        return found, subject.forward(subject.inputs)[0][:, 2], other.forward(other.inputs)[0][:, 2]

    found, logits, without = run(state, jax.tree.map(jnp.asarray, inputs))
    assert (logits > without + 1).all()
    place_B = np.asarray(found[names[0]].spans['regions'][0]) + region_B
    return {name: np.asarray(r.values_BKS)[:, 0].argmax(-1) == place_B for name, r in found.items()}


def test_the_word_that_decides_and_integrated_gradients_add_up():
    found, gap = peaks_of_texts(('transformer_attribution', 'integrated_gradients'))
    assert all(peak.all() for peak in found.values()), found
    assert (gap < 0.01).all(), gap


def test_the_region_that_a_word_was_said_for():
    found = peaks_of_pictures(('generic', 'attnlrp'))
    assert all(peak.all() for peak in found.values()), found


@pytest.mark.acceptance
def test_all_methods_find_what_decides(measured):
    for what, found in (('word', peaks_of_texts(FIND_WORDS)[0]), ('region', peaks_of_pictures(FIND_REGIONS))):
        for name, peak in found.items():
            measured(f'planted {what} is the peak of {name}, share', '>=', 1, float(peak.mean()))
