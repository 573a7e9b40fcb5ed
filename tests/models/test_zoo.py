"""All five models of the benchmark in bfloat16, as they are trained on accelerators, and with dropout."""

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from vocabularies import ASSETS, Vocabulary

from evil_jax.models import vlnle
from evil_jax.models.context import Condition

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / 'configs'
MODELS = ('pjx', 'fme', 'rvt', 'eug', 'qa_gpt2')
ROWS, CHOICES = 2, 4


def make(model, data, dtype, dropout=0.0):
    spec = importlib.util.spec_from_file_location(model, CONFIGS / f'{model}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = module.get_config(data)
    config.model.update(dtype=dtype, dropout=dropout)
    return config.data, lambda: vlnle.build(config, ASSETS, jax.random.key(0))


def make_inputs(data):
    """A batch, an answer and the words of an explanation."""
    r = np.random.default_rng(0)
    ids = lambda *shape: r.integers(0, 40, shape)
    text, regions = data.max_text, data.max_regions
    batch = {
        'text': ids(ROWS, text), 'text_type': np.zeros((ROWS, text), int), 'text_length': np.array([text, 3]),
        'text_tags': np.full((ROWS, text), -1),
        'choices': ids(ROWS, CHOICES, text), 'choices_type': np.zeros((ROWS, CHOICES, text), int),
        'choices_length': np.full((ROWS, CHOICES), text), 'choices_tags': np.full((ROWS, CHOICES, text), -1),
        'features': r.normal(size=(ROWS, regions, 2048)).astype(np.float16),
        'locations': r.random((ROWS, regions, 7), np.float32), 'region_length': np.array([regions, 2]),
        'question': ids(ROWS, data.max_question), 'question_length': np.array([data.max_question, 3]),
        'objects': ids(ROWS, data.max_objects), 'objects_length': np.array([5, 2]),
    }  # fmt: skip
    condition = Condition(np.zeros(ROWS, int), ids(ROWS, data.max_answer), np.array([3, 2]))
    return batch, condition, ids(ROWS, 6)


def both_ways(model, data, dtype):
    """(answer and word logits, all gradients in a row) of fresh parameters."""
    limits, build = make(model, data, dtype)
    batch, condition, tokens = make_inputs(limits)

    def run():
        graph, params, constants = nnx.split(build(), lambda _, x: jnp.issubdtype(x.dtype, jnp.floating), ...)

        def loss(params):
            net = nnx.merge(graph, params, constants)
            answers, context = net.task(batch)
            words = net.expl(batch, context, condition, tokens)[..., : Vocabulary.size]
            return (answers**2).mean() + (words**2).mean(), (answers, words)

        (_, logits), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        return logits, jnp.concatenate([x.ravel() for x in jax.tree.leaves(gradient)])

    return jax.jit(run, compiler_options={'xla_backend_optimization_level': 0})()


# A quarter of a minute each: one of them in every run of the suite.
@pytest.mark.parametrize(
    ('model', 'data'),
    [
        pytest.param(model, data, marks=() if (model, data) == ('fme', 'shapes_ve') else pytest.mark.acceptance)
        for model in MODELS
        for data in ('shapes_ve', 'shapes_vcr')
    ],
)
def test_bfloat16_says_about_what_float32_says(model, data):
    """Logits are float32 and differ by hundredths; gradients are finite, and point the same way."""
    (logits, gradient), (less, less_gradient) = (both_ways(model, data, dtype) for dtype in ('float32', 'bfloat16'))
    for want, got in zip(logits, less, strict=True):
        assert got.dtype == jnp.float32
        assert np.abs(want - got).max() < 0.1 * np.abs(want).max()
    assert np.isfinite(less_gradient).all()
    assert gradient @ less_gradient > 0.9 * np.linalg.norm(gradient) * np.linalg.norm(less_gradient)


@pytest.mark.parametrize('data', ['shapes_ve', 'shapes_vcr'])
@pytest.mark.parametrize('model', MODELS)
def test_every_dropout_has_a_key_of_its_own(model, data, monkeypatch):
    """Two with one key would drop the same places."""
    limits, build = make(model, data, 'float32', dropout=0.5)
    batch, condition, tokens = make_inputs(limits)
    graph, params = nnx.split(nnx.eval_shape(build))
    folded, used, made = jax.random.fold_in, [], {}  # made: keys are abstract here, known by how they were made

    def fold_in(key, number):
        new = folded(key, number)
        made[id(new)] = (new, (*made[id(key)][1], int(number)))  # with the key: its id must stay its own
        return new

    def bernoulli(key, keep, shape):
        used.append(made[id(key)][1])
        return jnp.ones(shape, bool)

    monkeypatch.setattr(jax.random, 'fold_in', fold_in)
    monkeypatch.setattr(jax.random, 'bernoulli', bernoulli)

    def run(params):
        key, net = jax.random.key(0), nnx.merge(graph, params)
        made[id(key)] = key, ()
        _, context = net.task(batch, key=fold_in(key, 0))
        net.expl(batch, context, condition, tokens, key=fold_in(key, 1))

    jax.eval_shape(run, params)
    assert len(used) == len(set(used)), sorted(used)
    assert {path[0] for path in used} == {0, 1}, 'both modules drop'
