"""Tokens of an explanation: what is read is what M_E says, and relevance goes through its prefix into M_T."""

import attributed
import jax
import jax.numpy as jnp
import numpy as np

from evil_jax.attribution import gradients, subjects
from evil_jax.attribution.base import Settings


def subject(task, expl):
    graph, params = attributed.make(task, expl)
    inputs = (attributed.batch(), *attributed.said())
    return params, inputs, lambda params, inputs: attributed.subject_of(graph, params, inputs)


def test_memory_is_handed_over_to_the_position_that_it_is_from():
    """In the published order, too, where padding of the text stands inside the memory and before it in no row of M_T:
    the transpose of the model's own moves is the judge."""
    params, inputs, make = subject('uniter_quirks', 'gpt2_late')

    @jax.jit
    def run(params, inputs, r_KBP):
        found = make(params, inputs)
        expl = found.last.expl

        def moved(x_RSD):
            context = found.first.finish(found.first.task, x_RSD)[1]
            return expl.embed(found.last.batch, context, *found.last.rest)[0]

        _, back = jax.vjp(moved, found.inputs[0])
        cotangent_KBPD = jnp.zeros((*r_KBP.shape, expl.size.width)).at[..., 0].set(r_KBP)
        return found.hand_over(r_KBP)[0], jax.vmap(back)(cotangent_KBPD)[0][..., 0]

    r_KBP = np.random.default_rng(0).random((2, attributed.ROWS, 23)).astype(np.float32)
    ours, wanted = run(params, inputs, r_KBP)
    np.testing.assert_allclose(ours, wanted, rtol=1e-6)
    assert (np.count_nonzero(wanted, axis=-1) == 11).all()  # seven words with their padding, four regions


def test_outputs_are_the_logits_of_what_was_said():
    params, inputs, make = subject('uniter', 'gpt2')
    tokens, length = inputs[2:]
    targets_BK = np.array([[1, 4, subjects.WHOLE]] * 2 + [[2, 3, subjects.WHOLE]])

    @jax.jit
    def run(params, inputs):
        found = make(params, inputs)
        _, context = found.first.task(inputs[0])
        logits_BTV = found.last.expl(inputs[0], context, *inputs[1:3])
        parts = gradients.input_x_gradient(found, targets_BK, Settings())
        return found.forward(found.inputs)[0], logits_BTV, found.relevance(parts, targets_BK)

    outputs_BT, logits_BTV, found = run(params, inputs)
    rows, place = np.arange(attributed.ROWS)[:, None], np.arange(1, attributed.EXPLAINED)
    inside = place < length[:, None]
    wanted_BT = logits_BTV[rows, place - 1, tokens[:, 1:]]
    np.testing.assert_allclose(outputs_BT[:, 1:][inside], wanted_BT[inside], rtol=1e-4, atol=1e-5)
    assert (outputs_BT[:, 0] == 0).all()

    values_BKS = np.asarray(found.values_BKS)
    start, number = (np.asarray(x) for x in found.spans['explanation'])
    # A token depends on those before it only; one that is padding is no token.
    for row, target in ((0, 1), (2, 2)):
        mine = values_BKS[row, 0, start[row] :][: number[row]]
        assert mine[:target].all() and not mine[target:].any()
    assert values_BKS[0, 1].any() and not values_BKS[1, 1].any()
    assert all(values_BKS[0, 2, s[0] : s[0] + n[0]].any() for s, n in found.spans.values())
