"""Names of ResNets: layouts told apart, both ways, and everything that does not fit in one message."""

import json

import numpy as np
import pytest
import torch
from flax import nnx

from evil_jax.interop import resnet as names
from evil_jax.interop import table, weights
from evil_jax.models import resnet
from evil_jax.training import sharding

SIZE = resnet.Size((1, 2, 1, 1), stem=4, widths=(8, 12, 16, 20))
LAYOUTS = {'torchvision': names.TORCHVISION, 'huggingface': names.HUGGINGFACE}


def shapes(size):
    return sharding.flatten(nnx.eval_shape(lambda: nnx.state(resnet.ResNet(size, rngs=nnx.Rngs(0)))))


@pytest.fixture(scope='module')
def ours():
    rng = np.random.default_rng(0)
    return {path: rng.normal(size=x.shape).astype(np.float32) for path, x in shapes(SIZE).items()}


def saved(folder, layout, ours, *, prefix='resnet.', config=None, **more):
    """A Hugging Face folder with these parameters under the names of a layout, and what files have besides."""
    there = table.save(LAYOUTS[layout], ours, where='test')
    there |= {
        name.replace('running_var', 'num_batches_tracked'): np.array(3) for name in there if 'running_var' in name
    }
    head = 'fc' if layout == 'torchvision' else 'classifier.1'
    if prefix or layout == 'torchvision':
        there |= {f'{head}.weight': np.zeros((5, 20), np.float32), f'{head}.bias': np.zeros(5, np.float32)}
    folder.mkdir()
    there = {name.removeprefix('' if prefix else 'resnet.'): x for name, x in (there | more).items() if x is not None}
    weights.write(folder / 'model.safetensors', there)
    (folder / 'config.json').write_text(json.dumps({'model_type': 'resnet'} | (config or {})))
    return folder


@pytest.mark.parametrize(('layout', 'prefix'), [('torchvision', ''), ('huggingface', 'resnet.'), ('huggingface', '')])
def test_the_layout_is_told_by_the_names(tmp_path, ours, layout, prefix):
    found = names.load(saved(tmp_path / 'net', layout, ours, prefix=prefix), ours)
    assert found.keys() == ours.keys()
    for path, array in ours.items():
        np.testing.assert_array_equal(found[path], array)


def test_a_file_of_pytorch(tmp_path, ours):
    there = table.save(names.TORCHVISION, ours, where='test')
    state = {f'module.{name}': torch.from_numpy(x) for name, x in there.items()}
    torch.save({'state_dict': state, 'epoch': 3}, tmp_path / 'net.pth')
    found = names.load(tmp_path / 'net.pth', ours)
    np.testing.assert_array_equal(found['stages/1/1/middle/kernel'], ours['stages/1/1/middle/kernel'])


def test_names_are_those_of_the_published_nets():
    empty = {path: np.broadcast_to(np.float32(0), x.shape) for path, x in shapes(resnet.SIZES['101']).items()}
    there = {layout: table.save(rows, empty, where='test') for layout, rows in LAYOUTS.items()}
    norms = sum(name.endswith('running_mean') for name in there['torchvision'])
    assert len(there['torchvision']) + norms + 2 == 626  # of torchvision and timm, counters and fc included
    assert there['torchvision']['layer3.22.conv2.weight'].shape == (256, 256, 3, 3)
    assert there['torchvision']['layer4.0.downsample.1.running_var'].shape == (2048,)
    assert there['huggingface']['resnet.encoder.stages.2.layers.22.layer.1.convolution.weight'].shape == (
        256,
        256,
        3,
        3,
    )
    assert there['huggingface']['resnet.encoder.stages.3.layers.0.shortcut.normalization.running_var'].shape == (2048,)
    assert there['huggingface']['resnet.embedder.embedder.convolution.weight'].shape == (64, 3, 7, 7)


def test_all_that_does_not_fit_is_told_at_once(tmp_path, ours):
    wrong = {
        'bn1.running_mean': None,
        'layer1.0.conv2.weight': np.zeros((2, 2, 1, 1), np.float32),
        'layer2.0.bn1.bias': np.full(3, np.nan, np.float32),
        'layer2.0.se.fc1.weight': np.zeros((3, 3), np.float32),
    }
    with pytest.raises(ValueError, match=r'net does not fit the model') as caught:
        names.load(saved(tmp_path / 'net', 'torchvision', ours, **wrong), ours)
    told = str(caught.value)
    assert 'bn1.running_mean (stem_norm/mean)' in told and 'layer2.0.se.fc1.weight' in told
    assert 'layer1.0.conv2.weight: (1, 1, 2, 2) as stages/0/0/middle/kernel, wanted (3, 3, 2, 2)' in told
    assert 'layer2.0.bn1.bias: holds NaN' in told and 'backbone_size' not in told


@pytest.mark.parametrize('layout', LAYOUTS)
def test_another_depth_is_told(tmp_path, ours, layout):
    path = saved(tmp_path / 'net', layout, ours)
    with pytest.raises(ValueError, match=r'It has 1, 2, 1, 1 blocks in its stages, the model 1, 2, 3, 1: set build\.'):
        names.load(path, shapes(resnet.Size((1, 2, 3, 1), stem=4, widths=(8, 12, 16, 20))))


@pytest.mark.parametrize(
    ('setting', 'value'), [('downsample_in_bottleneck', True), ('layer_type', 'basic'), ('hidden_act', 'gelu')]
)
def test_another_kind_of_net_with_the_same_shapes_is_refused(tmp_path, ours, setting, value):
    with pytest.raises(ValueError, match=rf'config\.json: {setting} is {value!r}, wanted'):
        names.load(saved(tmp_path / 'net', 'huggingface', ours, config={setting: value}), ours)
