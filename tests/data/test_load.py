import pathlib
import pickle
import subprocess
import sys

import pytest

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.data import load, pictures
from evil_jax.modes import build


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """A config whose data set is built; tests change copies of it."""
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS['shapes_ve'])
    config.data.dir = str(tmp_path_factory.mktemp('load') / 'data')
    config.data.update(world_train=20, world_dev=0, world_test=6)
    build.run(config, None)
    return config


def changed(config, **data):
    config = config.copy_and_resolve_references()
    config.data.update(data)
    return config


def test_random_access(built):
    examples = load.load_examples(built, 'train')
    assert len(examples) == 20
    everything = list(examples)
    assert len({e.id for e in everything}) == 20
    assert examples[7] == everything[7] == examples[-13]
    assert everything[0].label in ('contradiction', 'neutral', 'entailment')
    with pytest.raises(IndexError, match='example 20 of 20'):
        examples[20]
    with pytest.raises(IndexError, match='example -21 of 20'):
        examples[-21]


def test_it_travels_to_other_processes(built):
    examples = load.load_examples(built, 'test')
    first = examples[0]
    copy = pickle.loads(pickle.dumps(examples))
    assert (len(copy), copy[0]) == (6, first)


def test_limit_and_slices(built):
    everything = load.load_examples(built, 'train')
    limited = load.load_examples(changed(built, limit=3), 'train')
    assert list(limited) == list(everything)[:3]
    with pytest.raises(IndexError):
        limited[3]
    assert list(load.load_examples(built, 'train[5:7]')) == list(everything)[5:7]


def test_errors_say_what_to_do(built, tmp_path):
    with pytest.raises(ValueError, match=r'no split .dev. in .*, which has: train, test'):
        load.load_examples(built, 'dev')
    with pytest.raises(ValueError, match=rf'no data set in {tmp_path}: .*Run --mode=build first'):
        load.load_examples(changed(built, dir=str(tmp_path)), 'train')
    with pytest.raises(ValueError, match=rf'no feature store in {tmp_path}.*run --mode=build first'):
        load.open_store(changed(built, dir=str(tmp_path)))
    with pytest.raises(ValueError, match=r'built with other settings: data\.seed was 0 and is now 3'):
        load.load_examples(changed(built, seed=3), 'train')
    with pytest.raises(ValueError, match=r'is not a folder'):
        load.images(changed(built, images=str(tmp_path / 'absent')))


def test_pictures_and_regions_of_the_world(built):
    example = load.load_examples(built, 'test')[0]
    path = load.images(built)[example.image_id]
    assert path == pathlib.Path(built.data.dir, 'raw', 'images', f'{example.image_id}.png')
    assert load.open_store(built)[example.image_id].features.shape[1] == 2048
    assert load.images(built)['44'] is None


@pytest.mark.parametrize(
    ('image_id', 'file'),
    [
        ('9', 'train2014/COCO_train2014_000000000009.jpg'),
        ('COCO_train2014_000000000009', 'train2014/COCO_train2014_000000000009.jpg'),
        ('coco_train2014_000000000009.npz', 'train2014/COCO_train2014_000000000009.jpg'),
        ('COCO_val2014_000000000009', None),
        ('12', 'val/COCO_val2014_000000000012.JPG'),
        ('5', '5.png'),
        ('COCO_train2014_000000000005', '5.png'),
        ('flickr30k_004465359505', 'flickr/4465359505.jpg'),
        ('vcr_val_3015_A_00.23.57.935-00.24.00.783@0.npz', 'film/3015_A_00.23.57.935-00.24.00.783@0.jpg'),
        ('3015_A_00.23.57.935-00.24.00.783@1', None),
        ('7', None),
        ('x', None),
        ('two', r"'two' could be a/two\.jpg or b/two\.png in"),
        ('3', r"'3' could be a/COCO_val2014_0+3\.jpg or b/COCO_train2014_0+3\.jpg in"),
    ],
)
def test_pictures_are_named_like_regions(image_id, file, tmp_path):
    for name in (
        'train2014/COCO_train2014_000000000009.jpg', 'val/COCO_val2014_000000000012.JPG', '5.png', '7.txt',
        'flickr/4465359505.jpg', 'film/3015_A_00.23.57.935-00.24.00.783@0.jpg', 'a/two.jpg', 'b/two.png',
        'a/COCO_val2014_000000000003.jpg', 'b/COCO_train2014_000000000003.jpg',
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    images = pictures.Images(tmp_path)
    if file and 'could be' in file:
        with pytest.raises(ValueError, match=file):
            images[image_id]
    else:
        assert images[image_id] == (tmp_path / file if file else None)


def test_where_pictures_are_looked_for(built, tmp_path):
    config = changed(built, manual_dir=str(tmp_path), builder='vcr')
    assert load.images(config).path is None
    for name in ('vcr1/vcr1images', 'images'):  # the first is for VCR only
        (tmp_path / name / 'film').mkdir(parents=True)
        (tmp_path / name / 'film' / 'x@0.jpg').touch()
        assert load.images(config).path == tmp_path / name
        assert load.images(changed(config, builder='vqax')).path == (tmp_path / name if name == 'images' else None)
    assert load.images(changed(config, images=str(tmp_path / 'vcr1'))).path == tmp_path / 'vcr1'
    assert load.images(changed(config, manual_dir=str(tmp_path / 'no' / 'absent'))).path is None


def test_a_list_of_ids_counts_by_its_content(built, tmp_path):
    ids, copy = tmp_path / 'ids.txt', tmp_path / 'copy.txt'
    ids.write_text('p1')
    config = changed(built, builder='vcr', dir=str(tmp_path), dev_ids=str(ids))
    records.write_json(tmp_path / 'build.json', {'settings': load.settings(config)})
    ids.rename(copy)
    load.built(changed(config, dev_ids=str(copy)))
    load.built(config)  # the list is not there: that it is another one is not known
    assert load.heeded(config)['dev_ids'].startswith('sha256:')
    copy.write_text('p2')
    for other in (str(copy), ''):
        with pytest.raises(ValueError, match=r"data\.dev_ids was 'sha256:.*' and is now"):
            load.built(changed(config, dev_ids=other))
    records.write_json(tmp_path / 'build.json', {'settings': load.settings(changed(config, dev_ids=''))})
    with pytest.raises(ValueError, match=r"data\.dev_ids was '' and is now '.*ids\.txt'"):
        load.built(config)


def test_no_pictures_at_all(built, tmp_path):
    assert load.images(changed(built, dir=str(tmp_path)))['1'] is None


def test_jax_and_tensorflow_stay_out(built):
    code = f"""
import sys
from evil_jax import config as config_lib
from evil_jax.data import load
config = config_lib.base()
config.data.update(config_lib.DATA_SETS['shapes_ve'])
config.data.update(dir={built.data.dir!r}, world_train=20, world_dev=0, world_test=6)
load.load_examples(config, 'test')[0], load.open_store(config), load.images(config)['x']
print([name for name in ('tensorflow', 'jax') if name in sys.modules])
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ['[]'], done.stderr
