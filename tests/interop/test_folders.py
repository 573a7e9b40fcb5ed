"""'hf:FOLDER/model.safetensors' is compared with what lies beside the file, as 'hf:FOLDER' is."""

import dataclasses
import json
import types

import nets
import numpy as np
import pytest
from flax import nnx

from evil_jax.data import tokenizers
from evil_jax.interop import bert, gpt2, resnet, roberta, table, uniter, vit, weights
from evil_jax.models import bert as bert_net
from evil_jax.models import gpt2 as gpt2_net
from evil_jax.models import resnet as resnet_net
from evil_jax.models import roberta as roberta_net
from evil_jax.models import uniter as uniter_net
from evil_jax.models import vit as vit_net
from evil_jax.training import sharding

WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', *(f'w{n}' for n in range(30))]
ANSWERS = ('yes', 'no', 'red')
SIZE = bert_net.Size(layers=1, width=8, heads=2, hidden=16, positions=9)
ROBERTA = dataclasses.replace(SIZE, types=1)
SEEING = uniter_net.Size(layers=1, width=8, heads=2, hidden=16, positions=9, std=0.1, word_std=0.1)
EXPL = gpt2_net.Size(layers=1, width=8, heads=2, positions=20, std=0.1)
GRID = resnet_net.Size((1, 1, 1, 1), stem=4, widths=(8, 12, 16, 20))
EYES = vit_net.SIZES['tiny']


@pytest.fixture(scope='module')
def assets(tmp_path_factory):
    expl = tokenizers.train_expl(['a man waits'], tmp_path_factory.mktemp('bpe'), size=258)
    return types.SimpleNamespace(word=tokenizers.WordTokenizer(WORDS), expl=expl, answers=ANSWERS)


def make(name, assets):
    """(parameters, what a file holds of them, config.json, `load(path, shapes)`) of a random model."""
    build = {
        'bert': lambda: bert_net.Bert(SIZE, words=len(WORDS), answers=len(ANSWERS), rngs=nnx.Rngs(0)),
        'roberta': lambda: roberta_net.Roberta(ROBERTA, words=len(WORDS), classes=2, rngs=nnx.Rngs(0)),
        'uniter': lambda: uniter_net.Uniter(SEEING, words=len(WORDS), answers=len(ANSWERS), rngs=nnx.Rngs(0)),
        'gpt2': lambda: gpt2_net.Gpt2(
            EXPL, rows=assets.expl.rows, markers=gpt2_net.Markers(0, 1, 2, (3, 4, 5, 6)), rngs=nnx.Rngs(0)),
        'vit': lambda: vit_net.Vit(EYES, answers=3, rngs=nnx.Rngs(0)),
        'resnet': lambda: resnet_net.ResNet(GRID, rngs=nnx.Rngs(0)),
    }[name]  # fmt: skip
    if name == 'resnet':  # with statistics, which are no nnx.Param
        shapes = sharding.flatten(nnx.eval_shape(lambda: nnx.state(build())))
        params = {path: np.ones(x.shape, np.float32) for path, x in shapes.items()}
    else:
        params = nets.random(nets.abstract(build))
    plain = len(assets.expl.vocabulary)
    without_head = {path: x for path, x in params.items() if not path.startswith('head')}
    state, config, load = {
        'bert': lambda: (bert.save(params), bert.hf_config(SIZE, len(WORDS)), lambda *a: bert.load(*a, assets, SIZE)),
        'roberta': lambda: (roberta.save(params), roberta.hf_config(ROBERTA, len(WORDS), 2),
                            lambda *a: roberta.load(*a, ROBERTA)),
        'uniter': lambda: (uniter.save(without_head), bert.hf_config(SIZE, len(WORDS)),
                           lambda *a: uniter.load(*a, assets, SEEING)),
        'gpt2': lambda: (gpt2.save(params, plain), gpt2.hf_config(EXPL, plain), lambda *a: gpt2.load(*a, assets, EXPL)),
        'vit': lambda: (vit.save(params), vit.hf_config(EYES, 3), lambda *a: vit.load(*a, size=EYES)),
        'resnet': lambda: (table.save(resnet.HUGGINGFACE, params, where='test'), {'layer_type': 'bottleneck'},
                           resnet.load),
    }[name]()  # fmt: skip
    return params, state, config, load


@pytest.mark.parametrize(
    ('name', 'setting', 'value'),
    [('bert', 'num_attention_heads', 4), ('roberta', 'num_attention_heads', 4), ('uniter', 'num_attention_heads', 4),
     ('gpt2', 'n_head', 4), ('vit', 'num_attention_heads', 2), ('resnet', 'layer_type', 'basic')],
)  # fmt: skip
def test_the_config_beside_a_file_is_compared(assets, tmp_path, name, setting, value):
    params, state, config, load = make(name, assets)
    weights.write(tmp_path / 'model.safetensors', state)
    path = weights.spec(f'hf:{tmp_path}/model.safetensors').path
    (tmp_path / 'config.json').write_text(json.dumps(config))
    assert load(path, params)
    (tmp_path / 'config.json').write_text(json.dumps(config | {setting: value}))
    with pytest.raises(ValueError, match=rf'1 differing:\n    config\.json: {setting} is {value!r}, wanted'):
        load(path, params)


@pytest.mark.parametrize('name', ['bert', 'uniter', 'gpt2'])
def test_the_vocabulary_beside_a_file_is_compared(assets, tmp_path, name):
    params, state, _, load = make(name, assets)
    weights.write(tmp_path / 'model.safetensors', state)
    if name == 'gpt2':
        tokens = {token: len(assets.expl.vocabulary) - 1 - n for token, n in assets.expl.vocabulary.items()}
        tokenizers.ExplTokenizer(tokens, assets.expl.merges).save(tmp_path)
    else:
        tokenizers.WordTokenizer([*WORDS[:4], *WORDS[:3:-1]]).save(tmp_path)
    with pytest.raises(ValueError, match=r'1 differing:\n    .*: its (word pieces|tokens) are'):
        load(tmp_path / 'model.safetensors', params)


def test_the_labels_beside_a_file_order_its_classifier(assets, tmp_path):
    params, state, config, load = make('bert', assets)
    weights.write(tmp_path / 'model.safetensors', state)
    config |= {'id2label': {str(n): label for n, label in enumerate(ANSWERS[::-1])}}
    (tmp_path / 'config.json').write_text(json.dumps(config))
    found = load(tmp_path / 'model.safetensors', params)
    np.testing.assert_array_equal(found['head/answer/bias'], params['head/answer/bias'][::-1])
