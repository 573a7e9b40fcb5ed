"""All methods on all kinds of nets: names, places of values, messages; example by example in the acceptance tests."""

import functools

import attributed
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evil_jax.attribution import methods, subjects
from evil_jax.attribution.base import Settings

FEW = Settings(steps=3, samples=3, chunk=2)
GRADIENTS = ('input_x_gradient', 'integrated_gradients', 'smoothgrad', 'random')
PAIRS = (
    ('uniter', 'gpt2'), ('uniter_choices', 'gpt2'), ('uniter_quirks', 'gpt2_late'), ('uniter', 'each_word'),
    ('bert', 'gpt2_tags'), ('bert', 'gpt2_none'), ('pjx', 'once'), ('pjx_choices', 'once'), ('pjx', 'gpt2'),
    ('fme', 'each_word'), ('fme_choices', 'each_word'),
)  # fmt: skip
KINDS = (*((task, '') for task in attributed.TASKS), *PAIRS)
BATCH_DECIDES = 'uniter_quirks'  # quirk 3: every row has as many regions as the largest of its batch


def inputs_of(expl, dtype=np.float32):
    batch = {n: x.astype(dtype) if x.dtype == np.float32 else x for n, x in attributed.batch().items()}
    return (batch, *attributed.said()) if expl else (batch,)


def targets_of(expl):
    return np.array([[1, 2], [2, subjects.WHOLE], [1, 3]]) if expl else np.array([[0, 1], [2, 1], [1, 0]])


@functools.cache
def supported(task, expl):
    found = []
    graph, params = attributed.make(task, expl)
    look = lambda p: found.extend(methods.supported(attributed.subject_of(graph, p, inputs_of(expl))))
    jax.eval_shape(lambda p: (look(p), 0)[1], params)
    return tuple(found)


@pytest.mark.parametrize('task, expl', [('bert', ''), ('pjx', ''), ('fme_choices', 'each_word'), ('pjx', 'gpt2')])
def test_what_a_model_does_not_support_is_told(task, expl):
    graph, params = attributed.make(task, expl)

    def ask(params):
        subject = attributed.subject_of(graph, params, inputs_of(expl))
        names = methods.supported(subject)
        assert set(GRADIENTS) < set(names)
        assert ('generic' in names) == (task == 'bert' or expl == 'gpt2') and ('attnlrp' in names) == (task == 'bert')
        for name in set(methods.METHODS) - set(names):
            told = rf"does not support method '{name}': wanted one of .*input_x_gradient"
            with pytest.raises(ValueError, match=told):
                methods.relevance(subject, targets_of(expl), name, FEW)

    jax.eval_shape(ask, params)


def everywhere(subject, targets_BK):
    """Relevance 1 of all positions, put in order."""
    return subject.relevance([jnp.ones((targets_BK.shape[1], *x.shape[:2])) for x in subject.inputs], targets_BK)


def test_values_have_a_place_for_every_input():
    for task, expl in KINDS:
        graph, params = attributed.make(task, expl)
        ask = lambda p, g=graph, e=expl: everywhere(attributed.subject_of(g, p, inputs_of(e)), targets_of(e))
        memory = attributed.REGIONS + (0 if task == 'pjx' else attributed.TOKENS)
        first = {'bert': 7, 'distilbert': 7, 'roberta': 7, 'vit': 10}.get(task, 11)
        last = {'gpt2': memory + 14, 'gpt2_late': 23, 'gpt2_tags': 15, 'gpt2_none': 12, '': 0}.get(expl, 8)
        assert jax.eval_shape(ask, params).values_BKS.shape == (3, 2, first + last), (task, expl)


@pytest.mark.parametrize(
    'task, expl, there, beyond',
    [
        ('uniter_choices', '', (2, 0), (3, 9, -1)),
        ('pjx_choices', '', (2, 0), (3, 9, -1)),
        ('bert', '', (0, 3), (4, -1)),
        ('bert', 'gpt2_none', (2, subjects.WHOLE), (0, 5, -2)),
    ],
)
def test_targets_out_of_range_have_nothing_and_choices_their_own_length(task, expl, there, beyond):
    graph, params = attributed.make(task, expl)
    targets_BK = np.tile((*there, *beyond), (attributed.ROWS, 1))
    run = attributed.quick_jit(lambda params, i: everywhere(attributed.subject_of(graph, params, i), targets_BK))
    found = run(params, inputs_of(expl))
    values_BKS = np.asarray(found.values_BKS)
    assert values_BKS[:, :2].any(-1).all() and (values_BKS[:, 2:] == 0).all()
    if 'choices' in task:
        batch, place_S = attributed.batch(), np.arange(values_BKS.shape[-1])
        inside_BKS = np.zeros(values_BKS.shape, bool)
        for start_BK, number_BK in found.spans.values():
            inside_BKS |= (place_S >= start_BK[..., None]) & (place_S < (start_BK + number_BK)[..., None])
        np.testing.assert_array_equal(values_BKS[:, :2], inside_BKS[:, :2])
        np.testing.assert_array_equal(found.spans['text'][1][:, :2], batch['choices_length'][:, there])
        np.testing.assert_array_equal(found.spans['regions'][1][:, 0], batch['region_length'])


def test_a_subject_leaves_its_model_as_it_is():
    """Also where a function that is traced has closed over the model: no parameter is written to."""
    arrays = lambda model: jax.tree.leaves(nnx.state(model))

    def ask(model, batch):
        before = arrays(model)
        subjects.answer(model, batch)
        assert before and all(x is y for x, y in zip(before, arrays(model), strict=True))

    batch = attributed.batch()
    for task in ('uniter', 'bert'):
        graph, params = attributed.make(task)
        model = nnx.merge(graph, jax.tree.map(jnp.asarray, params))
        jax.eval_shape(lambda params, batch, graph=graph: ask(nnx.merge(graph, params), batch), params, batch)
        jax.eval_shape(lambda batch, model=model: ask(model, batch), batch)
    ask(model, batch)  # op by op


def test_names_presets_and_rules():
    assert methods.resolve('chefer2020_bert') == (
        'transformer_attribution', Settings(start_layer=-1, row_norm=True)
    )  # fmt: skip
    assert methods.resolve('chefer2021', Settings(seed=3))[1] == Settings(start_layer=0, row_norm=False, seed=3)
    with pytest.raises(ValueError, match=r"preset 'chefer2020_vit' has start_layer=1, not 2"):
        methods.resolve('chefer2020_vit', Settings(start_layer=2))
    with pytest.raises(ValueError, match=r"Did you mean 'rollout'"):
        methods.resolve('rolout')
    with pytest.raises(ValueError, match=r"rules 'lrp' are not for method 'attnlrp': wanted one of attnlrp, cplrp"):
        methods.resolve('attnlrp', Settings(rules='lrp'))
    assert methods.resolve('gradcam', Settings(rules='lrp'))[0] == 'gradcam'  # it has none to choose from
    with pytest.raises(ValueError, match=r'steps is 0'):
        Settings(steps=0)
    with pytest.raises(ValueError, match=r'start_layer is 2, but there are 2 layers: wanted -2 to 1'):
        asked = (('generic', Settings(start_layer=2)),)
        attributed.attribute('bert', '', asked).eval_shape(inputs_of(''), targets_of(''))


def test_targets_that_do_not_exist_are_told():
    subjects.check_targets([[0, 3]], answers=4)
    subjects.check_targets([[-1, 1, 4]], length_B=[5])
    with pytest.raises(ValueError, match=r'target 4 of example 1: wanted 0 to 3'):
        subjects.check_targets([[0], [4]], answers=4)
    for wrong in (0, 5, -2):
        with pytest.raises(ValueError, match=rf'target {wrong} of example 0 of 5 tokens: wanted -1, or 1 up to'):
            subjects.check_targets([[1, wrong]], length_B=[5])
    with pytest.raises(ValueError, match=r'shape \(2,\)'):
        subjects.check_targets([0, 1], answers=4)


def test_a_pair_that_does_not_explain_has_no_tokens():
    class Mute:
        expl = None

    with pytest.raises(ValueError, match='only answers'):
        subjects.explanation(Mute(), {}, None, jnp.zeros((1, 3)), jnp.ones(1))


@pytest.mark.acceptance
@pytest.mark.parametrize('task, expl', KINDS)
def test_every_method_on_every_kind(task, expl, measured):
    """In float64: relevance by LRP rules divides by numbers that may be close to 0."""
    with jax.enable_x64(True):
        names, inputs, targets = supported(task, expl), inputs_of(expl, np.float64), targets_of(expl)
        run = attributed.attribute(task, expl, tuple((name, FEW) for name in names), 'float64')
        batched = run(inputs, targets)
        finite = [name for name in names if np.isfinite(batched[name].values_BKS).all()]
        measured(f'{task} {expl}: methods with finite values', '>=', len(names), len(finite))
        if task != BATCH_DECIDES:
            single = run(attributed.alone(inputs, 1), targets[1:2, :1])
            worst = max((attributed.difference(batched[name], single[name], 1), name) for name in names)
            measured(f'{task} {expl}: in a batch and alone, relative, worst ({worst[1]})', '<=', 1e-5, worst[0])
    attributed.attribute.cache_clear()
    jax.clear_caches()  # programs take memory maps, of which a process has a limited number
