"""`--mode=build` with a network: pictures become the features of the store."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest
import torch
from flax import nnx
from PIL import Image

from evil_jax import config as config_lib
from evil_jax.data import load
from evil_jax.data.features import computed
from evil_jax.interop import resnet as names
from evil_jax.interop import table, weights
from evil_jax.models import resnet
from evil_jax.modes import _extract, build
from evil_jax.training import sharding

COCO = (127510, 185590, 200717, 324266)


def abstract():
    return nnx.split(nnx.eval_shape(lambda: resnet.build_backbone('tiny', rngs=nnx.Rngs(0))))


@pytest.fixture(scope='module')
def params():
    """Of the tiny net, whose features are of unit order."""
    rng, found = np.random.default_rng(0), {}
    for path, leaf in sharding.flatten(abstract()[1]).items():
        x = rng.normal(size=leaf.shape).astype(np.float32)
        found[path] = x * (2 / np.prod(leaf.shape[:-1])) ** 0.5 if x.ndim > 1 else np.abs(x) * 0.1 + 0.5
    return found


@pytest.fixture(scope='module')
def inits(params, tmp_path_factory):
    """The same weights as a folder of Hugging Face and as a file of PyTorch."""
    folder = tmp_path_factory.mktemp('weights')
    weights.write(folder / 'model.safetensors', table.save(names.HUGGINGFACE, params, where='test'))
    (folder / 'config.json').write_text(json.dumps({'model_type': 'resnet', 'layer_type': 'bottleneck'}))
    there = table.save(names.TORCHVISION, params, where='test')
    torch.save({name: torch.from_numpy(x) for name, x in there.items()}, folder / 'net.pth')
    return {'hf': f'hf:{folder}', 'torch': f'torch:{folder / "net.pth"}'}


def made(data_set, folder, init, *, data=(), **settings):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[data_set])
    config.data.update(dir=str(folder), max_regions=4)
    config.data.update(dict(data))
    config.build.update(
        {'backbone': 'resnet', 'backbone_size': 'tiny', 'backbone_init': init, 'pixels': 64, 'batch': 3} | settings
    )
    return config


def world(folder, init, **settings):
    """Eight pictures: four questions each."""
    return made('shapes_vqa', folder, init, data=dict(world_train=24, world_dev=4, world_test=4), **settings)


def wanted(params, paths, pixels=64):
    graph, shapes = abstract()
    net = nnx.merge(graph, sharding.unflatten(params, shapes))
    return jax.jit(net)(resnet.normalised(np.stack([computed.square(path, pixels)[0] for path in paths])))


def test_real_pictures_become_a_grid_of_features(shared, tmp_path, params, inits):
    for split, ids in (('train', (*COCO[:3], 999)), ('dev', COCO[3:])):
        rows = [{'question_id': n, 'image_id': n, 'question': f'What is in the picture {n}?'} for n in ids]
        answers = [{'question_id': n, 'answers': [{'answer': 'dog'}] * 10} for n in ids]
        (tmp_path / f'questions_{split}.json').write_text(json.dumps({'questions': rows}))
        (tmp_path / f'annotations_{split}.json').write_text(json.dumps({'annotations': answers}))
    data = dict(manual_dir=str(tmp_path), images=str(shared / 'data' / 'images'), answers_min_count=1, max_text=12)
    config = made('vqav2', tmp_path / 'out', inits['torch'], data=data)
    with pytest.raises(ValueError, match='1 examples are about 1 pictures without region features: 999'):
        build.run(config, None)
    config.data.missing_features = 'drop'
    numbers = build.run(config, None)
    assert (numbers['store_images'], numbers['mean_regions'], numbers['missing_train']) == (4, 4, 1)
    store = load.open_store(config)
    grid, _ = wanted(params, [load.images(config)[str(n)] for n in COCO])
    for image_id, cells in zip(COCO, np.asarray(grid)):
        found = store[str(image_id)]
        with Image.open(load.images(config)[str(image_id)]) as image:
            assert found.size == image.size and found.grid
        np.testing.assert_allclose(found.features, cells.reshape(4, 2048), rtol=2e-3, atol=2e-3)
    assert 0.1 < np.abs(np.asarray(grid)).mean() < 10  # not all zeros, for which anything would do
    # Nothing to do again, also where the weights have gone; another network is refused.
    assert build.run(config, None) == numbers
    config.build.backbone_init = 'torch:elsewhere.pth'
    assert build.run(config, None) == numbers
    for name, value in (('pixels', 32), ('pooled', True), ('backbone_size', '101'), ('backbone_init', inits['hf'])):
        other = config.copy_and_resolve_references()
        other.build[name] = value
        with pytest.raises(ValueError, match=rf'was built with other settings: build\.{name}'):
            build.run(other, None)
    other = config.copy_and_resolve_references()
    other.build.backbone = ''
    with pytest.raises(ValueError, match=r'was built with other settings: build\.backbone'):
        build.run(other, None)


def test_pooled_features_and_an_interrupted_build_goes_on(tmp_path, params, inits, monkeypatch):
    config = world(tmp_path / 'out', inits['hf'], pooled=True)
    with config.build.ignore_type():
        config.build.shard_mib = 0.02  # three pictures a shard
    asked, original = itertools.count(1), computed.square

    def square(path, pixels):
        if next(asked) == 7:
            raise ValueError(f'{path}: not a readable picture: pulled out')
        return original(path, pixels)

    monkeypatch.setattr(computed, 'square', square)
    with pytest.raises(ValueError, match='not a readable picture: pulled out'):
        build.run(config, None)
    finished = sorted(p.name for p in (tmp_path / 'out' / 'store').glob('shard-*'))
    assert finished and not (tmp_path / 'out' / 'build.json').exists()
    before = {name: (tmp_path / 'out' / 'store' / name / 'features.npy').stat().st_mtime_ns for name in finished}
    numbers = build.run(config, None)
    assert {n: (tmp_path / 'out' / 'store' / n / 'features.npy').stat().st_mtime_ns for n in finished} == before
    assert (numbers['mean_regions'], numbers['store_images']) == (1, 8)
    assert 7 + 5 < next(asked) <= 9 + 5 + 1  # of the next try, what the finished shard has not
    store = load.open_store(config)
    paths = [load.images(config)[image_id] for image_id in store.ids()]
    for image_id, vector in zip(store.ids(), np.asarray(wanted(params, paths)[1])):
        np.testing.assert_allclose(store[image_id].features, vector[None], rtol=2e-3, atol=2e-3)
        assert store[image_id].boxes.tolist() == [[0, 0, 144, 144]]


def test_two_devices_give_what_one_gives(shared, tmp_path, inits):
    images = shared / 'data' / 'images'
    code = (
        'import sys; sys.path.insert(0, "tests/modes"); import jax, test_extract as t;'
        'assert jax.local_device_count() == 2; t.save_features(*sys.argv[1:])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code, str(images), inits['hf'], str(tmp_path / 'two.npy')],
        env=os.environ | {'XLA_FLAGS': '--xla_force_host_platform_device_count=2'},
        cwd=pathlib.Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    save_features(images, inits['hf'], tmp_path / 'one.npy')
    one, two = (np.load(tmp_path / f'{name}.npy').astype(np.float32) for name in ('one', 'two'))
    assert one.shape == (5, 4, 2048) and np.abs(one).mean() > 0.1
    np.testing.assert_allclose(two, one, rtol=2e-3, atol=1e-3)


def save_features(images, init, path):
    """Of the first five pictures of a folder; by one device three at a time, by two devices four."""
    source = _extract.reader(made('vqav2', path, init, data=dict(images=str(images))))
    names = source.ids()[:5]
    source.expect(names)
    np.save(path, np.stack([source[name].features for name in names]))


def test_a_grid_that_would_be_cut_is_refused_before_anything_is_computed(tmp_path, inits, monkeypatch):
    monkeypatch.setattr(computed, 'square', None)
    with pytest.raises(ValueError, match=r'images: .*a grid of 16 cells.*build\.max_regions=16 and data\.max_reg'):
        build.run(world(tmp_path, inits['hf'], pixels=128), None)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'backbone': 'resnt'}, r"config\.build\.backbone is 'resnt'\. Did you mean 'resnet'\? There are: resnet"),
        ({'backbone': 'vit'}, r"config\.build\.backbone is 'vit'.* There are: resnet"),
        ({'backbone_size': '18'}, r"config\.build\.backbone_size is '18'.* There are: 50, 101, 152, tiny"),
        ({'backbone_init': ''}, r"config\.build\.backbone_init is '', wanted hf:FOLDER or torch:FILE"),
        (
            {'backbone_init': 'hf:/nowhere'},
            r'hf:/nowhere: /nowhere does not exist; wanted the folder of a Hugging Face',
        ),
        (
            {'backbone_size': '50'},
            r'config\.build\.backbone_init: .* does not fit the model(.|\n)*It has 1, 1, 1, 1 blo',
        ),
        ({'pixels': 50}, r'build\.pixels is 50, wanted a multiple of 32'),
        ({'pixels': 0}, r'build\.pixels is 0, wanted a multiple of 32'),
    ],
)
def test_wrong_settings_are_told(tmp_path, inits, settings, message):
    (tmp_path / 'raw' / 'images').mkdir(parents=True)
    config = made('vqav2', tmp_path, inits['hf'], data=dict(manual_dir=str(tmp_path / 'raw')), **settings)
    with pytest.raises(ValueError, match=message):
        _extract.reader(config)
    assert [p.name for p in tmp_path.iterdir()] == ['raw']


def test_pictures_are_needed_and_features_are_not_wanted(tmp_path, inits, monkeypatch):
    config = made('vqav2', tmp_path, inits['hf'])
    with pytest.raises(ValueError, match=r'there are no pictures: set data\.images'):
        _extract.reader(config)
    config.data.update(features=('a.tsv',), images=str(tmp_path))
    with pytest.raises(ValueError, match='features are either read or computed'):
        _extract.reader(config)
    config.data.features = ()
    monkeypatch.setitem(resnet.SIZES, 'tiny', resnet.Size((1, 1, 1, 1), stem=8, widths=(16, 32, 64, 512)))
    with pytest.raises(ValueError, match='resnet tiny gives vectors of 512 numbers, wanted 2048'):
        _extract.reader(config)
