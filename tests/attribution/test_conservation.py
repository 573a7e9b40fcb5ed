"""Shares of relevance that arrive, where they are known."""

import jax
import numpy as np
import pytest
from flax import nnx

from evil_jax.attribution import conservation
from evil_jax.models import bert
from evil_jax.nn import ops

SIZE = bert.Size(layers=2, width=8, heads=2, hidden=16, positions=6, std=0.4, word_std=1.0, pool='relu')


def make(choices=0):
    make = lambda: bert.Bert(SIZE, words=20, answers=3, choices=choices, rngs=nnx.Rngs(params=0))
    graph, state = nnx.split(nnx.eval_shape(make))
    r = np.random.default_rng(0)
    model = nnx.merge(graph, jax.tree.map(lambda x: np.asarray(r.normal(scale=0.4, size=x.shape), np.float32), state))
    for _, module in nnx.iter_modules(model):
        if isinstance(module, ops.Linear | ops.Norm):
            module.bias[...] *= 0
    for block in model.layers:
        block.mlp.activation = 'relu'
    return model


def texts(*shape, seed=0):
    r = np.random.default_rng(seed)
    return {'': r.integers(0, 20, (*shape, 6)), '_type': np.zeros((*shape, 6), int), '_length': np.full(shape, 5)}


@pytest.mark.parametrize('choices', [0, 2])
def test_a_homogeneous_net_loses_nothing(choices):
    """Without biases and with ReLU, CP-LRP conserves in front of every layer; an example's choices count together."""
    model = make(choices)
    batch = {f'text{name}': x for name, x in texts(3).items()}
    if choices:
        batch |= {f'choices{name}': x for name, x in texts(3, choices, seed=1).items()}
    found = jax.jit(lambda batch: conservation.shares(model, batch, np.array([0, 1, 0]), 'cplrp'))(batch)
    assert found.shape == (3, 3) and model.rules == 'gradient'
    np.testing.assert_allclose(found, 1, rtol=1e-3)


def test_original_rules_make_relevance():
    model, batch = make(), {f'text{name}': x for name, x in texts(2).items()}
    run = lambda rules: jax.jit(lambda batch: conservation.shares(model, batch, np.array([0, 1]), rules))(batch)
    ours, original = run('chefer2020'), run('lrp')
    np.testing.assert_allclose(ours[-1], 1, rtol=1e-4)  # pooler and head: linear maps and what passes
    assert (np.abs(original[0] - 1) > 2 * np.abs(ours[0] - 1)).all()
    with pytest.raises(ValueError, match=r"rules is 'lpr'\. Did you mean 'lrp'"):
        run('lpr')
