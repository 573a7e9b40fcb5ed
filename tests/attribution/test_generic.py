"""Rules for two streams and for an encoder with a decoder, against the reference code (Chefer et al. 2021, ICCV)."""

import attributed
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax.attribution import coattention, generic
from evil_jax.attribution.generic import heads

WANTED = 1e-6


def error(found, wanted):
    return np.abs(np.asarray(found) - wanted).max() / max(np.abs(wanted).max(), 1e-30)


def arrays(path):
    """{name: {'attn', 'grad', 'cam'}} of layers, {name: array} of maps."""
    layers, maps = {}, {}
    with np.load(path, allow_pickle=False) as file:
        for name in file.files:
            head, _, leaf = name.rpartition('/')
            if head.startswith('out'):
                maps[name.removeprefix('out/')] = file[name]
            elif head:
                layers.setdefault(head, {})[leaf] = jnp.asarray(file[name][0])
    return layers, maps


def test_coattention(shared):
    layers, wanted = arrays(shared / 'data/attribution/lxmert_rules_golden.npz')

    @attributed.quick_jit
    def run(layers):
        of = lambda kind, what: [layers[f'{kind}{i}'][what] for i in range(2)]
        inside = lambda name, what: [layers[f'x{i}/{name}'][what] for i in range(3)]

        def rules(what='attn', **ablation):
            a = {name: heads(layer['grad'], layer[what]) for name, layer in layers.items()}
            crosses = [
                generic.Cross(*(a[f'x{i}/{n}'] for n in ('lang_to_vis', 'vis_to_lang', 'lang_self', 'vis_self')))
                for i in range(3)
            ]
            return generic.coattention([a['lang0'], a['lang1']], [a['vis0'], a['vis1']], crosses, **ablation)

        language, image = ('lang', 'lang_self'), ('vis', 'vis_self')
        every = lambda kinds, what: of(kinds[0], what) + inside(kinds[1], what)
        own, cross = layers['x2/lang_self'], layers['x2/lang_to_vis']
        return {
            'generic': rules(),
            'generic_lrp': rules('cam'),
            'generic_no_norm': rules(norm=False),
            'generic_no_self_in_10': rules(self_in_cross=False),
            'no_aggregation': rules(norm=False, aggregate=False),
            'raw_attention': coattention.raw_attention(own['attn'], cross['attn']),
            'gradcam': coattention.cam((own['grad'], own['attn']), (cross['grad'], cross['attn'])),
            'partial_lrp': coattention.partial_lrp(own['cam'], cross['cam']),
            'rollout': coattention.rollout(every(language, 'attn'), every(image, 'attn'), cross['attn']),
            'transformer_attribution': coattention.transformer_attribution(
                list(zip(every(language, 'grad'), every(language, 'cam'))), (cross['grad'], cross['cam'])
            ),
        }

    found = run(layers)
    for name, relevances in found.items():
        for part, r in zip(('R_t_t', 'R_t_i', 'R_i_i', 'R_i_t'), relevances):
            if (key := f'{name}/{part}') in wanted:
                assert error(r, wanted.pop(key)) <= WANTED, key
    assert not wanted, f'not compared: {list(wanted)}'


def test_encoder_and_decoder(shared):
    layers, wanted = arrays(shared / 'data/attribution/detr_rules_golden.npz')

    @attributed.quick_jit
    def run(layers):
        a = {name: heads(layer['grad'], layer['attn']) for name, layer in layers.items()}
        decoder = [(a[f'dec{i}/self'], a[f'dec{i}/cross']) for i in range(2)]
        last = layers['dec1/cross']
        return {
            'generic': generic.encoder_decoder([a['enc0'], a['enc1']], decoder),
            'raw_attention': last['attn'].mean(0),
            'gradcam': coattention.gradcam.heads(last['grad'], last['attn']),
            'partial_lrp': coattention.unit_range(last['cam'].mean(0)),
            'transformer_attribution': heads(last['grad'], last['cam']),
        }

    found = run(layers)
    assert found.keys() == wanted.keys()
    for name, r in found.items():
        assert error(r[2], wanted[name][0, 0, 0]) <= WANTED, name  # of target query 2


def test_rows_without_relevance_are_no_nan():
    r = np.array([[1.0, 0.25, 0.75], [2.0, 1.0, 2.0], [0.0, 0.0, 1.0]], np.float32)
    np.testing.assert_allclose(jax.jit(generic.normalise)(r), [[1.0, 0.25, 0.75], [0.5, 1.0, 0.5], [0.0, 0.0, 1.0]])


def test_the_clamp_stands_before_the_mean_over_heads():
    gradient = np.array([[[-1.0]], [[3.0]]], np.float32)
    assert jax.jit(heads)(gradient, np.ones_like(gradient)).item() == pytest.approx(1.5)
