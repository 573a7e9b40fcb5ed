"""RemBERT against transformers' RemBertModel: every layer, names both ways, and what does not fit."""

import json

import jax
import nets
import numpy as np
import pytest
import torch
import transformers
from flax import nnx

from evil_jax.interop import rembert, weights
from evil_jax.models import bert as bert_net
from evil_jax.models import rembert as rembert_net

WORDS, INPUTS, Q = 60, 12, 9
SIZE = bert_net.Size(layers=3, width=24, heads=4, hidden=40, positions=20)


def make():
    return nets.abstract(lambda: rembert_net.RemBert(SIZE, words=WORDS, inputs=INPUTS, rngs=nnx.Rngs(0)))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder that transformers wrote, with random values everywhere."""
    config = transformers.RemBertConfig(**rembert.hf_config(SIZE, WORDS, INPUTS), attn_implementation='eager')
    torch.manual_seed(0)
    model = transformers.RemBertModel(config).eval()
    with torch.no_grad():
        for x in model.parameters():
            x.add_(0.1 * torch.randn(x.shape))
    path = tmp_path_factory.mktemp('rembert')
    model.save_pretrained(path)
    return path, model


def test_every_layer(folder):
    """<= 1e-5 a layer, ragged rows in one batch, types, and the pooled vector."""
    path, theirs = folder
    model = nets.filled(make(), rembert.load(path, nets.shapes(make()), SIZE))
    r = np.random.default_rng(0)
    ids, kinds, length = r.integers(1, WORDS, (3, Q)), r.integers(0, 2, (3, Q)), np.array([Q, 5, 2])
    valid = np.arange(Q) < length[:, None]
    with torch.no_grad():
        want = theirs(
            input_ids=torch.from_numpy(ids), token_type_ids=torch.from_numpy(kinds),
            attention_mask=torch.from_numpy(valid.astype(np.int64)), output_hidden_states=True,
        )  # fmt: skip

    @jax.jit
    def states(ids, kinds, length):
        found = [model.text(ids, kinds)]
        for block in model.layers:
            found.append(block(found[-1], length)[0])
        return found, model(ids, kinds, length)

    found, (last, pooled) = states(ids, kinds, length)
    assert len(found) == len(want.hidden_states) == SIZE.layers + 1
    for ours, x in zip(found, want.hidden_states):
        np.testing.assert_allclose(np.asarray(ours)[valid], x.numpy()[valid], atol=1e-5, rtol=0)
    np.testing.assert_allclose(np.asarray(last)[valid], want.last_hidden_state.numpy()[valid], atol=1e-5, rtol=0)
    np.testing.assert_allclose(pooled, want.pooler_output, atol=1e-5, rtol=0)


def test_names_both_ways(folder, tmp_path):
    """What is saved is what transformers has, bit for bit, and it reads it, with a prefix as well."""
    path, theirs = folder
    params = rembert.load(path, nets.shapes(make()), SIZE)
    saved = rembert.save(params, prefix='')
    wanted = {name: x.numpy() for name, x in theirs.state_dict().items()}
    assert saved.keys() == wanted.keys()
    for name, x in wanted.items():
        np.testing.assert_array_equal(saved[name], x)
    (tmp_path / 'config.json').write_text(json.dumps(rembert.hf_config(SIZE, WORDS, INPUTS)))
    weights.write(tmp_path / 'model.safetensors', rembert.save(params))
    again = rembert.load(tmp_path, nets.shapes(make()), SIZE)
    for name, x in params.items():
        np.testing.assert_array_equal(again[name], x)


def test_what_does_not_fit(folder, tmp_path):
    params = rembert.load(folder[0], nets.shapes(make()))
    arrays = rembert.save(params)
    arrays['rembert.encoder.strange'] = arrays.pop('rembert.encoder.embedding_hidden_mapping_in.weight')
    arrays['rembert.embeddings.word_embeddings.weight'] = np.zeros((WORDS, 7), np.float32)
    weights.write(tmp_path / 'model.safetensors', arrays)
    (tmp_path / 'config.json').write_text(json.dumps(rembert.hf_config(SIZE, WORDS, INPUTS) | {'hidden_size': 30}))
    with pytest.raises(ValueError, match='does not fit the model') as error:
        rembert.load(tmp_path, nets.shapes(make()), SIZE)
    for part in ('missing', 'embedding_hidden_mapping_in.weight (text/up/kernel)', 'encoder.strange',
                 '(60, 7) as text/word/embedding, wanted (60, 12)', 'hidden_size is 30, wanted 24'):  # fmt: skip
        assert part in str(error.value), part


def test_published_size():
    """As many parameters as transformers' class has by default, which are those of google/rembert."""
    with torch.device('meta'):
        net = transformers.RemBertModel(transformers.RemBertConfig())
    size, words, inputs = rembert_net.SIZES['base'], rembert_net.WORDS, rembert_net.INPUTS
    model = nnx.eval_shape(lambda: rembert_net.RemBert(size, words=words, inputs=inputs, rngs=nnx.Rngs(0)))
    ours = sum(int(np.prod(x.shape)) for x in jax.tree.leaves(nnx.state(model, nnx.Param)))
    assert ours == sum(p.numel() for p in net.parameters())
