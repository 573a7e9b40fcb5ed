"""Rule sets against the reference code's arrays in float64: attention, gradients, relevances, pixels."""

import golden_models
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

WANTED = 1e-6


def error(found, wanted):
    return np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max()


def cotangents(model, batch, rules, targets, heads, *, of=None):
    """(logits, maps, cotangents at every map, at the first layer's input and at batch[of], targets first)."""
    model.set_attributes(rules=rules)
    graph, state = nnx.split(model)

    @jax.jit
    def run(state, batch):
        model = nnx.merge(graph, state)

        def rest(taps, moved, inputs):
            x, length, spans = model.embed(batch if of is None else batch | {of: inputs})
            maps, x = [], x + moved
            for block, tap in zip(model.layers, taps):
                x, found = block(x, length, tap_BNQK=tap)
                maps.append(found)
            return model.finish(x, length, spans, batch)[0], maps

        shape = jax.eval_shape(lambda: model.embed(batch)[0]).shape
        taps = [jnp.zeros((shape[0], heads, shape[1], shape[1]))] * len(model.layers)
        logits, pull, maps = jax.vjp(rest, taps, jnp.zeros(shape), None if of is None else batch[of], has_aux=True)
        seeds = jnp.stack([jnp.zeros_like(logits).at[:, target].set(1) for target in targets])
        return logits, maps, jax.vmap(pull)(seeds)

    return run(state, batch)


@pytest.fixture
def exact():
    with jax.enable_x64(True), jax.default_matmul_precision('highest'):
        yield


@pytest.mark.parametrize('rules', ['gradient', 'chefer2020', 'lrp'])
def test_vit(exact, shared, rules):
    model, images, golden = golden_models.vit(shared)
    logits, maps, (taps, _, pixels) = cotangents(model, {'images': images}, rules, (0, 3), 4, of='images')
    assert error(logits, golden['logits_lrp']) <= WANTED
    for image in range(2):
        for number, target in enumerate((0, 3)):
            at = f'img{image}/cls{target}/'
            for layer, tap in enumerate(taps):
                name = {'gradient': 'attn_grad', 'chefer2020': 'attn_cam'}.get(rules)
                assert error(maps[layer][image, :, 0], golden[f'{at}attn_cls_row_l{layer}']) <= WANTED
                if name:
                    assert error(tap[number, image, :, 0], golden[f'{at}{name}_cls_row_l{layer}']) <= WANTED
                if rules == 'chefer2020':
                    assert error(tap[number, image].sum(), golden[f'{at}attn_cam_sum_l{layer}']) <= WANTED
            found = pixels[number, image].sum(-1)
            if rules == 'lrp':
                last = jax.nn.relu(taps[-1][number, image]).mean(0)[0, 1:]
                assert error(last, golden[f'{at}partial_lrp']) <= WANTED
                assert error(found, golden[f'{at}full_lrp'][0]) <= WANTED
            if rules == 'chefer2020':
                assert error(found, golden[f'{at}full_lrp_ours_rules'][0]) <= WANTED


@pytest.mark.parametrize('rules', ['gradient', 'chefer2020', 'lrp'])
def test_bert(exact, shared, rules):
    model, batch, golden = golden_models.bert(shared)
    logits, maps, (taps, x, _) = cotangents(model, batch, rules, (0, 1), 4)
    assert error(logits, golden['logits']) <= WANTED
    for text in range(2):
        for target in range(2):
            at = f'seq{text}/cls{target}/'
            for layer, tap in enumerate(taps):
                assert error(maps[layer][text], golden[f'{at}attn_l{layer}']) <= WANTED
                if rules != 'lrp':
                    name = {'gradient': 'attn_grad', 'chefer2020': 'attn_cam'}[rules]
                    assert error(tap[target, text], golden[f'{at}{name}_l{layer}']) <= WANTED
            if rules != 'gradient':
                name = {'lrp': 'full_lrp', 'chefer2020': 'full_lrp_ours_rules'}[rules]
                assert error(x[target, text].sum(-1)[1:], golden[at + name][0, 1:]) <= WANTED  # theirs has 0 at [CLS]
