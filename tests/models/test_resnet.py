"""ResNet against PyTorch: a twin with torchvision's names, Hugging Face's, and values that were computed elsewhere."""

import zlib

import jax
import numpy as np
import pytest
import torch
import transformers
from flax import nnx
from parity import relative

from evil_jax.interop import resnet as names
from evil_jax.interop import table
from evil_jax.models import resnet
from evil_jax.training import sharding

SIZE = resnet.Size((2, 1, 1, 2), stem=8, widths=(16, 32, 64, 96))


def abstract(size):
    return nnx.split(nnx.eval_shape(lambda: resnet.ResNet(size, rngs=nnx.Rngs(0))))


def filled(size, rows, there, **options):
    """Our net with arrays under other names."""
    graph, params = abstract(size)
    found = table.load(rows, there, sharding.flatten(params), where='test', **options)
    return nnx.merge(graph, sharding.unflatten(found, params))


def arrays(module):
    return {name: x.numpy() for name, x in module.state_dict().items()}


def run(net, images):
    return jax.jit(lambda x: (net.steps(x), net(x)))(images)


def image(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize('sides', [(64, 64), (70, 45)])
def test_resnet_with_the_names_of_torchvision(sides):
    from resnet_twin import Twin

    twin, images = Twin(SIZE), image(2, *sides, 3)
    net = filled(SIZE, names.TORCHVISION, arrays(twin), ignored=names.IGNORED)
    steps, (grid, pooled) = run(net, images)
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    with torch.no_grad():
        wanted = twin(x)
        for stage, before, after in zip(range(1, 5), steps, steps[1:]):  # each from our own input
            here = torch.from_numpy(np.array(before).transpose(0, 3, 1, 2).copy())
            theirs = getattr(twin, f'layer{stage}')(here).numpy()
            assert relative(np.array(after).transpose(0, 3, 1, 2), theirs) <= 1e-5
    assert grid.shape == (2, -(-sides[0] // 32), -(-sides[1] // 32), 96)
    assert relative(np.array(grid).transpose(0, 3, 1, 2), wanted.numpy()) <= 1e-4
    assert relative(pooled, wanted.mean((2, 3)).numpy()) <= 1e-4


def test_resnet_of_hugging_face():
    from resnet_twin import randomise

    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=list(SIZE.widths), depths=list(SIZE.depths))
    theirs, images = transformers.ResNetModel(config).eval(), image(2, 70, 45, 3)
    randomise(theirs)
    there = {f'resnet.{name}': x for name, x in arrays(theirs).items()}
    steps, (grid, pooled) = run(filled(SIZE, names.HUGGINGFACE, there, ignored=names.IGNORED), images)
    with torch.no_grad():
        found = theirs(torch.from_numpy(images.transpose(0, 3, 1, 2).copy()), output_hidden_states=True)
    for ours, wanted in zip(steps, found.hidden_states, strict=True):
        assert relative(np.array(ours).transpose(0, 3, 1, 2), wanted.numpy()) <= 1e-4
    assert relative(np.array(grid).transpose(0, 3, 1, 2), found.last_hidden_state.numpy()) <= 1e-4
    assert relative(pooled, found.pooler_output[..., 0, 0].numpy()) <= 1e-4


def test_a_deep_net_gives_the_values_that_were_computed_elsewhere(shared):
    """101 layers, narrow; weights by a recipe from the names, see data/detector/README.md there."""
    wanted = np.load(shared / 'data' / 'detector' / 'resnet_grid_tiny.npz')
    size = resnet.Size((3, 4, 23, 3), stem=8, widths=(32, 64, 128, 256))
    ours = {path: np.zeros(x.shape, np.float32) for path, x in sharding.flatten(abstract(size)[1]).items()}
    shapes = {name: x.shape for name, x in table.save(names.HUGGINGFACE, ours, where='test').items()}
    shapes |= {'classifier.1.weight': (5, 256), 'classifier.1.bias': (5,)}
    there = {name: _by_recipe(name, shape) for name, shape in shapes.items()}
    np.testing.assert_allclose(
        [there[name].sum() for name in sorted(there)], wanted['weight_sums'], rtol=1e-4, atol=1e-4
    )
    net = filled(size, names.HUGGINGFACE, there, ignored=names.IGNORED)
    images = np.random.default_rng(2).standard_normal((1, 3, 96, 127)).astype(np.float32)
    steps, (grid, pooled) = run(net, images.transpose(0, 2, 3, 1))
    few = lambda x: np.array(x)[0].transpose(2, 0, 1)
    for name, got in (('stem_ch0_3', steps[0]), ('hidden1_ch0_3', steps[1]), ('hidden3_ch0_3', steps[3])):
        assert relative(few(got)[:4], wanted[name]) <= 1e-5
    assert relative(few(grid), wanted['grid']) <= 1e-4
    assert relative(pooled[0], wanted['pooled']) <= 1e-4
    logits = np.array(pooled[0]) @ there['classifier.1.weight'].T + there['classifier.1.bias']
    assert relative(logits, wanted['logits']) <= 1e-4


def _by_recipe(name, shape):
    z = np.random.default_rng([1, zlib.crc32(name.encode())]).standard_normal(shape)
    if name.endswith('running_var'):
        z = np.exp(0.2 * z)
    elif name.endswith('normalization.weight'):
        z = (0.2 if '.layer.2.' in name else 1) + 0.05 * z
    elif len(shape) == 4:
        z = z * np.sqrt(2 / np.prod(shape[1:]))
    elif len(shape) == 2:
        z = z / np.sqrt(shape[1])
    else:
        z = 0.1 * z
    return z.astype(np.float32)


def test_bytes_are_normalised_as_torchvision_does():
    got = resnet.normalised(np.array([[[[0, 128, 255]]]], np.uint8))
    np.testing.assert_allclose(got[0, 0, 0], [-0.485 / 0.229, (128 / 255 - 0.456) / 0.224, 0.594 / 0.225], rtol=1e-5)


def test_sizes_are_published_ones_and_an_unknown_one_is_refused():
    with pytest.raises(ValueError, match=r"config\.build\.backbone_size is '10'.*There are: 50, 101, 152, tiny"):
        resnet.build_backbone('10', rngs=nnx.Rngs(0))
    shapes = nnx.eval_shape(lambda: resnet.build_backbone('101', rngs=nnx.Rngs(0)))
    flat = sharding.flatten(nnx.state(shapes))
    moments = [path for path in flat if path.endswith(('/mean', '/var'))]
    # 44.5 million of torchvision's resnet101, without the classifier
    assert sum(np.prod(x.shape) for p, x in flat.items() if p not in moments) == 44_549_160 - 2048 * 1000 - 1000
