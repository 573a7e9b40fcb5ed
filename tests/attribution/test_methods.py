"""All methods on all kinds of nets: names, messages, and that an example does not depend on what is beside it."""

import functools

import attributed
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax.attribution import methods, subjects
from evil_jax.attribution.base import Settings
from evil_jax.models.context import Condition

FEW = Settings(steps=3, samples=3, chunk=2)
GRADIENTS = ('input_x_gradient', 'integrated_gradients', 'smoothgrad', 'random')
PAIRS = (
    ('uniter', 'gpt2'), ('uniter_choices', 'gpt2'), ('uniter_quirks', 'gpt2_late'), ('uniter', 'each_word'),
    ('bert', 'gpt2_tags'), ('bert', 'gpt2_none'), ('pjx', 'once'), ('pjx_choices', 'once'), ('pjx', 'gpt2'),
    ('fme', 'each_word'), ('fme_choices', 'each_word'),
)  # fmt: skip
KINDS = (*((task, '') for task in attributed.TASKS), *PAIRS)
BATCH_DECIDES = 'uniter_quirks'  # quirk 3: every row has as many regions as the largest of its batch
_LENGTHS = {
    'text': 'text_length', 'text_type': 'text_length', 'text_tags': 'text_length', 'features': 'region_length',
    'locations': 'region_length', 'question': 'question_length', 'objects': 'objects_length',
}  # fmt: skip


def inputs_of(expl, dtype=np.float32):
    batch = {n: x.astype(dtype) if x.dtype == np.float32 else x for n, x in attributed.batch().items()}
    return (batch, *attributed.said()) if expl else (batch,)


def targets_of(expl):
    return np.array([[1, 2], [2, subjects.WHOLE], [1, 3]]) if expl else np.array([[0, 1], [2, 1], [1, 0]])


def alone(inputs, row):
    """One example without padding. (With choices its texts keep theirs: they have one length.)"""
    batch, one = inputs[0], {}
    for name, x in batch.items():
        length = _LENGTHS.get(name)
        one[name] = x[row : row + 1] if length is None else x[row : row + 1, : batch[length][row]]
    if len(inputs) == 1:
        return (one,)
    condition, tokens, length = inputs[1:]
    cut = condition.tokens_BT[row : row + 1, : condition.length_B[row]]
    mine = Condition(condition.answer_index_B[row : row + 1], cut, condition.length_B[row : row + 1])
    return one, mine, tokens[row : row + 1, : length[row]], length[row : row + 1]


def difference(batched, single, row):
    """Largest difference between the first target of an example in a batch and alone, relative; padding is to be 0."""
    ours, theirs = np.asarray(batched.values_BKS)[row, 0], np.asarray(single.values_BKS)[0, 0]
    scale, worst = np.abs(theirs).max() or 1.0, 0.0  # GradCAM can be 0 everywhere
    for name, (start, length) in batched.spans.items():
        first, alone_first, number = int(start[row]), int(single.spans[name][0][0]), int(single.spans[name][1][0])
        assert number == length[row], name
        worst = max(worst, np.abs(ours[first:][:number] - theirs[alone_first:][:number]).max(initial=0) / scale)
    # The rest: the same class token and markers, and zeros.
    return max(worst, np.abs(np.sort(np.abs(ours))[::-1][: len(theirs)] - np.sort(np.abs(theirs))[::-1]).max() / scale)


@functools.cache
def supported(task, expl):
    found = []
    graph, params = attributed.make(task, expl)
    look = lambda p: found.extend(methods.supported(attributed.subject_of(graph, p, inputs_of(expl))))
    jax.eval_shape(lambda p: (look(p), 0)[1], params)
    return tuple(found)


def test_an_example_does_not_depend_on_its_batch_nor_a_target_on_others():
    asked = tuple((name, FEW) for name in ('generic', 'random'))
    run, inputs, targets = attributed.attribute('uniter', '', asked), inputs_of(''), targets_of('')
    batched, single = run(inputs, targets), run(alone(inputs, 1), targets[1:2, :1])
    for name, _ in asked:
        assert np.isfinite(batched[name].values_BKS).all()
        assert difference(batched[name], single[name], 1) < 1e-3, name
        assert np.abs(np.asarray(batched[name].values_BKS)[:, 0]).sum(-1).all()
    # Three words and three regions: nothing else has relevance.
    assert (np.asarray(batched['generic'].values_BKS)[2, :, 6:] == 0).all()
    assert not np.allclose(batched['random'].values_BKS[0, :, 1], batched['random'].values_BKS[1, :, 1])


@pytest.mark.parametrize('task, expl', [('bert', ''), ('pjx', ''), ('fme_choices', 'each_word'), ('pjx', 'gpt2')])
def test_what_a_model_does_not_support_is_told(task, expl):
    names = supported(task, expl)
    layers = task == 'bert' or expl == 'gpt2'
    assert set(GRADIENTS) < set(names) and ('generic' in names) == layers and ('attnlrp' in names) == (task == 'bert')
    for name in sorted(set(methods.METHODS) - set(names)):
        with pytest.raises(ValueError, match=rf"does not support method '{name}': wanted one of .*input_x_gradient"):
            attributed.attribute(task, expl, ((name, FEW),)).eval_shape(inputs_of(expl), targets_of(expl))


def test_values_have_a_place_for_every_input():
    for task, expl in KINDS:
        found = attributed.attribute(task, expl, (('random', FEW),)).eval_shape(inputs_of(expl), targets_of(expl))
        memory = attributed.REGIONS + (0 if task == 'pjx' else attributed.TOKENS)
        first = {'bert': 7, 'distilbert': 7, 'roberta': 7, 'vit': 10}.get(task, 11)
        last = {'gpt2': memory + 14, 'gpt2_late': 23, 'gpt2_tags': 15, 'gpt2_none': 12, '': 0}.get(expl, 8)
        assert found['random'].values_BKS.shape == (3, 2, first + last), (task, expl)


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
    with pytest.raises(ValueError, match=r"rules 'lrp' are not for method 'gradcam': it has none"):
        methods.resolve('gradcam', Settings(rules='lrp'))
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
            single = run(alone(inputs, 1), targets[1:2, :1])
            worst = max((difference(batched[name], single[name], 1), name) for name in names)
            measured(f'{task} {expl}: in a batch and alone, relative, worst ({worst[1]})', '<=', 1e-5, worst[0])
    attributed.attribute.cache_clear()
    jax.clear_caches()  # programs take memory maps, of which a process has a limited number
