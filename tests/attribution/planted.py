"""Small nets in which one thing decides, and what they read.

What decides sets the first element of its vector. A head of attention that prefers such vectors brings it to the place
where the answer is read; everything else is small noise.
"""

import functools

import attributed
import numpy as np
from flax import nnx

from evil_jax.models import gpt2, uniter
from evil_jax.models.context import Condition
from evil_jax.models.vlnle import Vlnle

WIDTH, WORDS, DECISIVE, SAID = 16, 20, 7, 9
STD = 0.1
_SIZE = uniter.Size(layers=1, width=WIDTH, heads=2, hidden=16, positions=8, std=0, word_std=0)


def _plant(params, path, value, *at):
    """Sets numbers of one array."""
    array = params
    for name in path.split('/'):
        array = array[int(name) if name.isdigit() else name]
    array.get_value()[at] = value


def _plant_attention(params, block):
    """The first head looks at vectors with a large first element, and passes that on; the other one is noise."""
    _plant(params, f'{block}/attention/query/bias', 1.0, 0)
    _plant(params, f'{block}/attention/key/kernel', 1.0, 0, 0)
    _plant(params, f'{block}/attention/value/kernel', 0.7, 0, 0)
    _plant(params, f'{block}/attention/out/kernel', 0.7, 0, 0)


@functools.cache
def classifier():
    """(graph, parameters): class 1 of a text with the word DECISIVE, whatever the picture."""
    build = lambda: uniter.Uniter(_SIZE, words=WORDS, answers=2, rngs=nnx.Rngs(params=0))
    graph, params = attributed.filled(build, STD)
    for table in ('text/word/embedding', 'text/position/embedding', 'text/type/embedding'):
        _plant(params, table, 0, ..., 0)  # nothing else has a first element
    for norm in ('feature_norm', 'location_norm', 'norm'):
        _plant(params, f'image/{norm}/scale', 0, 0)
    _plant(params, 'text/word/embedding', 1.5, DECISIVE, 0)
    _plant_attention(params, 'layers/0')
    _plant(params, 'pooler/kernel', 1.0, 0, 0)
    _plant(params, 'head/up/kernel', 1.0, 0, 0)
    _plant(params, 'head/answer/kernel', 3.0, 0, 1)
    return graph, params


def texts():
    """(batch, position of the decisive word): two texts with pictures; each has padding of one kind, behind it."""
    r = np.random.default_rng(0)
    ids = r.integers(10, WORDS, (2, 6)).astype(np.int32)
    ids[0, 3] = ids[1, 2] = DECISIVE
    return {
        'text': ids, 'text_type': np.zeros_like(ids), 'text_length': np.array([6, 4], np.int32),
        'features': r.normal(size=(2, 3, 2048)).astype(np.float32), 'region_length': np.array([2, 3], np.int32),
        'locations': r.random((2, 3, 7), np.float32),
    }, np.array([3, 2])  # fmt: skip


@functools.cache
def explainer():
    """(graph, parameters): GPT-2 says the word SAID because of a region whose first feature is large."""
    small = gpt2.Size(layers=1, width=WIDTH, heads=2, positions=32, std=0)
    markers = gpt2.Markers(b_img=1, e_img=2, b_rtnl=3, types=(16, 17, 18, 19))

    def build():
        task = uniter.Uniter(_SIZE, words=WORDS, answers=2, rngs=nnx.Rngs(params=0))
        return Vlnle(task, gpt2.Gpt2(small, rows=WORDS, markers=markers, rngs=nnx.Rngs(params=0)))

    graph, params = attributed.filled(build, STD)
    for table in ('task/text/word', 'task/text/position', 'task/text/type', 'expl/wte', 'expl/wpe'):
        _plant(params, f'{table}/embedding', 0, ..., 0)
    _plant(params, 'task/image/feature/kernel', 1.0, 0, 0)
    _plant(params, 'task/image/location/kernel', 0, ...)
    _plant(params, 'expl/wte/embedding', 5.0, SAID, 0)
    _plant_attention(params, 'expl/layers/0')
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
