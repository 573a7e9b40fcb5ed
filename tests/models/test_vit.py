"""ViT against Hugging Face's, in PyTorch, with random weights."""

import jax
import numpy as np
import pytest
import torch
import transformers
from flax import nnx
from parity import relative

from evil_jax.interop import vit as names
from evil_jax.interop import weights
from evil_jax.models import vit
from evil_jax.training import sharding

SIZE = vit.SIZES['tiny']


def abstract(**head):
    return nnx.split(nnx.eval_shape(lambda: vit.Vit(SIZE, **head, rngs=nnx.Rngs(0))))


@pytest.fixture(scope='module')
def images():
    return np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype(np.float32)


def theirs_of(name, folder):
    """A model of Hugging Face and the folder where it saved itself."""
    torch.manual_seed(0)
    model = getattr(transformers, name)(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
        num_labels=5, initializer_range=0.1,
    )).eval()  # fmt: skip
    for parameter in model.parameters():  # biases and norms that must not be exchanged
        parameter.data += 0.05 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return torch, model


def loaded(path, **head):
    graph, params = abstract(**head)
    return nnx.merge(graph, sharding.unflatten(names.load(path, sharding.flatten(params), size=SIZE), params))


def test_vit_is_hugging_faces(tmp_path, images):
    torch, theirs = theirs_of('ViTModel', tmp_path)
    ours = loaded(tmp_path, pooler=True)
    taps = [np.zeros((2, 4, 17, 17), np.float32)] * 2
    batch = {'images': images}
    logits, context, maps = jax.jit(lambda x: ours(x, taps=taps))(batch)
    hidden, fused = context.memory_BSD, jax.jit(ours)(batch)[1].memory_BSD
    embedded, length, spans = ours.embed(batch)
    assert logits is None and length is None
    assert {name: [x.tolist() for x in span] for name, span in spans.items()} == {'patches': [[1, 1], [16, 16]]}
    with torch.no_grad():
        theirs.set_attn_implementation('eager')
        x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
        found = theirs(x, output_attentions=True)
        assert relative(embedded, theirs.embeddings(x).numpy()) <= 1e-5
        layer = jax.jit(lambda x: ours.layers[1](x)[0])(np.array(hidden))
        assert relative(layer, theirs.layers[1](torch.from_numpy(np.array(hidden))).numpy()) <= 1e-5
    assert relative(hidden, found.last_hidden_state.numpy()) <= 1e-4
    assert relative(fused, found.last_hidden_state.numpy()) <= 1e-4
    assert relative(context.pooled_BD, found.pooler_output.numpy()) <= 1e-4
    for ours, wanted in zip(maps, found.attentions, strict=True):
        assert relative(ours, wanted.numpy()) <= 1e-4


def test_the_classifier_is_hugging_faces_and_its_files_come_back_bit_for_bit(tmp_path, images):
    torch, theirs = theirs_of('ViTForImageClassification', tmp_path)
    ours = loaded(tmp_path, answers=5)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(images.transpose(0, 3, 1, 2).copy())).logits.numpy()
    assert relative(jax.jit(ours)({'images': images})[0], wanted) <= 1e-4
    saved, there = names.save(sharding.flatten(nnx.state(ours))), weights.read(tmp_path)
    assert saved.keys() == there.keys()
    for name, array in there.items():
        np.testing.assert_array_equal(saved[name], array)
    config = weights.read_config(tmp_path)
    for key, value in names.hf_config(SIZE, 5).items():
        assert config.get(key, value) == value, key
    torch.save(theirs.state_dict(), tmp_path / 'net.pt')  # names of transformers 5
    again = loaded(tmp_path / 'net.pt')
    np.testing.assert_array_equal(again.layers[1].attention.key.kernel[...], ours.layers[1].attention.key.kernel[...])


def test_what_does_not_fit_is_told_at_once(tmp_path):
    theirs_of('ViTModel', tmp_path)
    _, params = abstract(answers=5)
    other = vit.Size(layers=2, width=32, heads=8, hidden=64, patch=8, pixels=32)
    with pytest.raises(ValueError, match='does not fit the model') as caught:
        names.load(tmp_path, sharding.flatten(params), size=other)
    told = str(caught.value)
    assert 'config.json: num_attention_heads is 4, wanted 8' in told and 'classifier.weight (answer/kernel)' in told
    with pytest.raises(ValueError, match=r'pictures have shape \(32, 48, 3\), wanted \(32, 32, 3\)'):
        nnx.merge(*abstract()).embed({'images': np.zeros((1, 32, 48, 3))})
