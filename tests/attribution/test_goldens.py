"""Methods against maps of the reference code (Chefer et al. 2021) on small nets in float64.

What they differ in by intention: nothing is scaled from 0 to 1 here, and the class token's own entry is 0, where the
reference's transformer attribution of BERT has the smallest value of the row.
"""

import re
import types

import golden_models
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evil_jax.attribution import attention, lrp, methods, removal, subjects
from evil_jax.attribution.base import Settings
from evil_jax.pages import heat

WANTED = 1e-6
PIXELS = 'pixels'  # full LRP, pixel by pixel
OURS = Settings(rules='chefer2020')
VIT = {  # by the file's name: method, settings
    'raw_attention': ('raw_attention', Settings()),
    'rollout_sl0': ('rollout', Settings()),
    'rollout_sl1': ('rollout', Settings(start_layer=1)),
    'gradcam': ('gradcam', Settings()),
    'generic2021': ('chefer2021', Settings()),
    'transformer_attribution_sl0': ('transformer_attribution', Settings()),
    'transformer_attribution_sl1': ('chefer2020_vit', Settings()),
}
VIT_LRP = {
    'lrp_rollout_sl1': ('rollout', Settings(rules='chefer2020', start_layer=1, row_norm=False)),
    'partial_lrp': ('partial_lrp', Settings()),
    'partial_lrp_ours_rules': ('partial_lrp', OURS),
    'full_lrp': (PIXELS, Settings()),
    'full_lrp_ours_rules': (PIXELS, OURS),
}
BERT = {
    'raw_attention': ('raw_attention', Settings()),
    'rollout': ('rollout', Settings()),
    'gradcam': ('gradcam', Settings()),
    'transformer_attribution_sl0': ('transformer_attribution', Settings(row_norm=True)),
    'transformer_attribution_sl2': ('chefer2020_bert', Settings()),
}
BERT_LRP = {
    'partial_lrp': ('partial_lrp', Settings()),
    'full_lrp': ('full_lrp', Settings()),
    'full_lrp_ours_rules': ('full_lrp', OURS),
}
PICTURE = {  # of a map as large as its picture
    'upsampled_minmax_rowsum': lambda map_HW: map_HW.sum(1),
    'upsampled_minmax_8x8': lambda map_HW: map_HW[:8, :8],
    'upsampled_mean': lambda map_HW: map_HW.mean(),
}
LAYERS = {'attn', 'attn_grad', 'attn_cam'}  # these and logits: test_golden_rules.py
VIT_LAYERS = {'attn_cam_sum', *(f'{name}_cls_row' for name in LAYERS)}


@pytest.fixture
def exact():
    with jax.enable_x64(True), jax.default_matmul_precision('highest'):
        yield


def attribute(model, batch, targets, asked):
    """{name: values [B, K, ...]}, in one program."""
    graph, state = nnx.split(model)

    @jax.jit
    def run(state, batch):
        subject, found = subjects.answer(nnx.merge(graph, state), batch), {}
        targets_BK = jnp.tile(jnp.array(targets), (2, 1))
        for name, (method, settings) in asked.items():
            if method == PIXELS:
                found[name] = lrp.pixels(subject, targets_BK, settings).swapaxes(0, 1)
            else:
                found[name] = methods.relevance(subject, targets_BK, method, settings).values_BKS
        return found

    return jax.tree.map(np.asarray, run(state, batch))


def error(found, wanted):
    found, wanted = np.ravel(found), np.ravel(wanted)
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def unit_range(x):
    return (x - x.min()) / (x.max() - x.min())


def vit_errors(shared, asked):
    model, images, golden = golden_models.vit(shared)
    targets = (0, 3)
    for name, values in attribute(model, {'images': images}, targets, asked).items():
        for image in range(2):
            for k, target in enumerate(targets):
                found = values[image, k]
                wanted = golden.get(f'img{image}/cls{target}/{name}', golden.get(f'img{image}/{name}'))
                if asked[name][0] != PIXELS:
                    assert found[0] == 0  # the class token
                    found = found[1:]
                yield name, error(unit_range(found) if name == 'gradcam' else found, wanted)


def bert_errors(golden, found):
    """(name, error) of each of the maps `found`, {name: values BKS}, for targets 0 and 1."""
    for name, values in found.items():
        for text in range(2):
            for target in range(2):
                at, found = f'seq{text}/cls{target}/', np.array(values[text, target])
                assert found[0] == 0  # [CLS]
                if name.startswith('transformer'):
                    found[0] = found[1:].min()
                if name == 'gradcam':  # theirs is scaled over all rows, and its weights are means over all rows
                    gradient, weights = golden[at + 'attn_grad_l2'], golden[at + 'attn_l2']
                    rows = np.maximum((gradient.mean((1, 2), keepdims=True) * weights).mean(0), 0)
                    if not rows.max():
                        assert not found.any() and np.isnan(golden[at + name][0, 1:]).all()  # 0 / 0
                        continue
                    found[1:] = (found[1:] / len(found) - rows.min()) / (rows.max() - rows.min())
                yield name, error(found, golden[at + name])


def check(errors):
    errors = list(errors)
    assert all(e <= WANTED for _, e in errors), errors


class Recorded:
    """A subject whose attentions, gradients and relevances of attentions are the reference's own, of all its texts."""

    last, has_layers, first_layer, first = None, True, 0, types.SimpleNamespace(patches=False)

    def __init__(self, golden, targets=(0, 1), texts=2, layers=3):
        of = lambda name, layer: np.stack(
            [[golden[f'seq{b}/cls{k}/{name}_l{layer}'] for b in range(texts)] for k in targets]
        )
        self.maps, self.gradients, self.relevances = (
            [of(name, layer) for layer in range(layers)] for name in ('attn', 'attn_grad', 'attn_cam')
        )
        self.maps = [a[0] for a in self.maps]  # the same for each target
        self.taps = self.maps

    def readout(self, targets_BK):
        """[CLS] of each row."""
        return jnp.zeros((len(targets_BK.T), *self.maps[0].shape[::3])).at[..., 0].set(1)


def test_bert(exact, shared, monkeypatch):
    """What methods make of the reference's arrays. That ours are the same: test_golden_rules.py, and the acceptance
    test of all methods from end to end."""
    _, _, golden = golden_models.bert(shared)
    subject = Recorded(golden)

    def cotangents(subject, targets_BK, rules, layers=None):
        return subject.maps, subject.relevances if rules == 'chefer2020' else subject.gradients

    monkeypatch.setattr(attention, 'cotangents', cotangents)
    monkeypatch.setattr(attention, 'attentions', lambda subject, layers: subject.maps)

    @jax.jit
    def run(targets_BK):
        found = {}
        for name, asked in BERT.items():
            method, settings = methods.resolve(*asked)
            (values_KBS,) = methods.METHODS[method].run(subject, targets_BK, settings)
            found[name] = values_KBS.swapaxes(0, 1)
        return found

    check(bert_errors(golden, run(jnp.tile(jnp.arange(2), (2, 1)))))


@pytest.mark.parametrize('upsample', [
    lambda map_P: heat.upsample(map_P.reshape(14, 14), (224, 224)),
    lambda map_P: np.asarray(removal.picture_values(jnp.asarray(map_P)[None], 224)).reshape(224, 224),
], ids=['page', 'removal'])  # fmt: skip
def test_map_as_large_as_its_picture(exact, shared, upsample):
    """The reference's bilinear x16, then min-max, of a map of its own."""
    with np.load(shared / 'data/attribution/vit_tiny_golden_f64.npz', allow_pickle=False) as golden:
        map_HW = heat.scaled(upsample(golden['img0/cls0/transformer_attribution_sl1'][0]))
        for name, of in PICTURE.items():
            assert error(of(map_HW), golden[f'img0/cls0/{name}']) <= WANTED, name


def names(golden):
    """Of all arrays of the file but weights, whatever the example, target and layer."""
    return {re.sub(r'_l\d+$', '', name.split('/')[-1]) for name in golden if not name.startswith('w/')}


@pytest.mark.acceptance
def test_all(exact, shared, measured):
    """Those of the plain test, too. Its other file, test_golden_rules.py, has the arrays that all are made of."""
    model, batch, golden = golden_models.bert(shared)
    assert names(golden) == {*BERT, *BERT_LRP, *LAYERS, 'logits', 'input_ids', 'config_json'}
    vit, images, of_vit = golden_models.vit(shared, final_eps=1e-6)
    assert names(of_vit) == {*VIT, *VIT_LRP, *VIT_LAYERS, *PICTURE, 'logits_lrp', 'logits_new', 'x'}
    logits = jax.jit(lambda images: vit({'images': images})[0])(images)
    measured(
        "vit logits of the reference's plain model, relative error", '<=', WANTED, error(logits, of_vit['logits_new'])
    )
    of_bert = bert_errors(golden, attribute(model, batch, (0, 1), BERT | BERT_LRP))
    found = [('vit', *e) for e in vit_errors(shared, VIT | VIT_LRP)]
    found += [('bert', *e) for e in of_bert]
    for net, name in dict.fromkeys((net, name) for net, name, _ in found):
        worst = max(e for n, m, e in found if (n, m) == (net, name))
        measured(f'{net} {name}, relative error', '<=', WANTED, worst)
