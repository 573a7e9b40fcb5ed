"""Tokens of an explanation: what is read is what M_E says, and relevance goes through its prefix into M_T."""

import functools

import attributed
import jax
import jax.numpy as jnp
import numpy as np
import planted
from flax import nnx

from evil_jax.attribution import attention, methods, subjects
from evil_jax.attribution.base import Settings

ASKED = {  # method, settings; that is: the first layer, and whether rows sum to 1
    'generic': ('generic', Settings(), 0, False),
    'from M_E on': ('generic', Settings(start_layer=1), 1, False),
    'row norm': ('generic', Settings(row_norm=True), 0, True),
    'rollout': ('rollout', Settings(), 0, True),
}
TARGETS = (2, 1, subjects.WHOLE)
REGIONS, PREFIX = 4, 7  # places of regions, and of all of M_T's vectors


@functools.cache
def explained():
    """(relevance; outputs, attentions and their gradients; by the models' own calls: logits of what was said)."""
    graph, params = planted.explainer()
    inputs, _ = planted.pictures()

    @attributed.quick_jit
    def run(params, inputs):
        model, targets_BK = nnx.merge(graph, params), np.tile(TARGETS, (2, 1))
        subject = subjects.explanation(model, *inputs)
        found = {name: methods.relevance(subject, targets_BK, *asked[:2]) for name, asked in ASKED.items()}
        outputs_BT = subject.forward(subject.inputs)[0]
        seen = attention.cotangents(subject, targets_BK, 'gradient')
        batch, condition, tokens_BT, _ = inputs
        logits_BTV = model.expl(batch, model.task(batch)[1], condition, tokens_BT)
        return found, (outputs_BT, *seen), jnp.take_along_axis(logits_BTV[:, :-1], tokens_BT[:, 1:, None], axis=-1)

    return jax.tree.map(np.asarray, run(params, inputs))


def test_relevance_is_that_of_products_of_whole_matrices():
    """Of full matrices (I + A_L) ... (I + A_1) of each transformer, the second one's prefix put in place of the first
    one's rows by hand."""
    found, (_, maps, gradients), _ = explained()
    (batch, condition, _, length_B), _ = planted.pictures()
    for name, (method, _, start, norm) in ASKED.items():
        for row in range(2):
            text, memory = batch['text_length'][row], batch['text_length'][row] + batch['region_length'][row]
            first = 4 + memory + condition.length_B[row]  # of the explanation: markers, prefix, question, answer
            for k, target in enumerate(TARGETS):
                factors, own_factors = [], []
                for attention_BNQS, gradient_KBNQS in zip(maps, gradients):
                    weight_NQS = np.maximum(gradient_KBNQS[k, row], 0) if method == 'generic' else 1
                    matrix = (weight_NQS * attention_BNQS[row]).mean(0)
                    scale = 1 + matrix.sum(-1, keepdims=True) if norm else 1
                    own_factors.append(np.eye(len(matrix)) / scale)
                    factors.append((np.eye(len(matrix)) + matrix) / scale)
                read = np.zeros(len(factors[1]))
                for token in [target] if target > 0 else range(1, length_B[row]):
                    read[first + token - 1] = 1
                arrived = read @ factors[1]
                wanted = arrived - read @ own_factors[1]  # of what only the identity carries M_E's positions have none
                wanted[1 : 1 + memory] = 0
                prefix = np.zeros(PREFIX)
                prefix[:memory] = arrived[1 : 1 + memory]
                wanted = np.concatenate([prefix if start else prefix @ factors[0], wanted])
                ours = found[name].values_BKS[row, k]
                np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-6 * wanted.max(), err_msg=(name, row, k))
                assert wanted[text:memory].any()


def test_outputs_are_the_logits_of_what_was_said():
    _, (outputs_BT, *_), said_BT1 = explained()
    inside = np.arange(1, 4) < planted.pictures()[0][3][:, None]
    np.testing.assert_allclose(outputs_BT[:, 1:][inside], said_BT1[inside, 0], rtol=1e-4, atol=1e-5)
    assert (outputs_BT[:, 0] == 0).all()


def test_a_token_depends_on_those_before_it_only():
    found, *_ = explained()
    values_BKS, spans = found['rollout'].values_BKS, found['rollout'].spans
    start, number = spans['explanation']
    for row in range(2):
        for k, target in enumerate(TARGETS[:2]):
            mine = values_BKS[row, k, start[row] :][: number[row]]
            assert mine[:target].all() and not mine[target:].any()
    assert all(values_BKS[0, 2, s[0] : s[0] + n[0]].any() for s, n in spans.values())


def test_the_region_that_a_word_was_said_for():
    found, *_ = explained()
    _, region_B = planted.pictures()
    for name, r in found.items():
        if name != 'rollout':  # which knows of no target
            peak_B = r.values_BKS[:, TARGETS.index(2)].argmax(-1)
            assert (peak_B == r.spans['regions'][0] + region_B).all(), name


def test_memory_is_handed_over_to_the_position_that_it_is_from():
    """In the published order, too, where padding of the text stands inside the memory and before it in no row of M_T:
    the transpose of the model's own moves is the judge."""
    graph, params = attributed.make('uniter_quirks', 'gpt2_late')

    @attributed.quick_jit
    def run(params, inputs, r_KBP):
        found = attributed.subject_of(graph, params, inputs)
        expl = found.last.expl

        def moved(x_RSD):
            context = found.first.finish(found.first.task, x_RSD)[1]
            return expl.embed(found.last.batch, context, *found.last.rest)[0]

        _, back = jax.vjp(moved, found.inputs[0])
        cotangent_KBPD = jnp.zeros((*r_KBP.shape, expl.size.width)).at[..., 0].set(r_KBP)
        return found.hand_over(r_KBP)[0], jax.vmap(back)(cotangent_KBPD)[0][..., 0]

    r_KBP = np.random.default_rng(0).random((2, attributed.ROWS, 23)).astype(np.float32)
    ours, wanted = run(params, (attributed.batch(), *attributed.said()), r_KBP)
    np.testing.assert_allclose(ours, wanted, rtol=1e-6)
    assert (np.count_nonzero(wanted, axis=-1) == 11).all()  # seven words with their padding, four regions
