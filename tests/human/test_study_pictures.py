import dataclasses
import os

import PIL.Image
import pytest

from evil_jax.data.pictures import Images
from evil_jax.human import pictures, sampling
from evil_jax.records import Example, Prediction


@pytest.fixture
def study():
    examples = [
        Example(f'{i}', f'm{i}', 'why?', label='neutral', explanations=['because'], objects=['dog'],
                extra={'boxes': [[0, 0, 10, 10]], 'size': [20, 20]} if i == 2 else {})
        for i in range(5)
    ]  # fmt: skip
    predictions = {'a': {e.id: Prediction(e.id, 'neutral', explanation='<|det1|>') for e in examples}}
    right = {'a': {e.id: 1.0 for e in examples}}
    return sampling.sample(examples, predictions, right, dataset='esnlive', limit=0, trusted='')


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / 'source'
    source.mkdir()
    exif = PIL.Image.Exif()
    exif[274], exif[0x8298] = 6, 'somebody'  # turned by 90 degrees; copyright
    PIL.Image.new('RGB', (1500, 600), 'red').save(source / 'm0.jpg', exif=exif, comment=b'at home')
    PIL.Image.new('RGBA', (40, 30), (0, 0, 0, 0)).save(source / 'm1.png')
    PIL.Image.new('RGB', (40, 20), 'blue').save(source / 'm2.jpg', exif=exif)
    PIL.Image.new('L', (9, 9)).save(source / 'm3.jpg')
    return source


def test_pictures_are_small_and_tell_nothing(study, folder, tmp_path):
    found = pictures.add(study, Images(folder), tmp_path / 'human')
    names = {item.image_id: item.image for item in found.items.values()}
    assert names['m4'] == '' and found.settings['shortfalls'][-1] == "1 of 5 pictures are not there, for example 'm4'"
    assert sorted(os.listdir(tmp_path / 'human/images')) == sorted(filter(None, names.values()))
    assert os.listdir(tmp_path / 'human') == ['images']
    assert not any(image_id in name for image_id, name in names.items())
    sizes = {}
    for image_id, name in names.items():
        if name:
            path = tmp_path / 'human/images' / name
            assert b'somebody' not in path.read_bytes() and b'at home' not in path.read_bytes()
            with PIL.Image.open(path) as image:
                assert not image.getexif() and image.mode == 'RGB'
                sizes[image_id] = image.size, image.format, image.getpixel((0, 0))
    assert sizes['m0'][:2] == ((400, 1000), 'JPEG') and sizes['m1'] == ((40, 30), 'PNG', (255, 255, 255))
    assert sizes['m2'][0] == (40, 20)  # its boxes count pixels as stored
    found.write(tmp_path / 'human')
    assert type(found).open(tmp_path / 'human') == found


def test_all_or_nothing(study, folder, tmp_path):
    pictures.add(study, Images(folder), tmp_path / 'human')
    before = sorted(os.listdir(tmp_path / 'human/images'))
    (folder / 'm3.jpg').write_bytes(b'no picture')
    with pytest.raises(ValueError, match=r'm3\.jpg: not a readable picture'):
        pictures.add(study, Images(folder), tmp_path / 'human')
    assert sorted(os.listdir(tmp_path / 'human/images')) == before and os.listdir(tmp_path / 'human') == ['images']
    (folder / 'm3.jpg').unlink()
    other = dataclasses.replace(study, settings=study.settings | {'seed': 9})
    pictures.add(other, Images(folder), tmp_path / 'human')
    assert len(os.listdir(tmp_path / 'human/images')) == 3 and not set(before) & set(
        os.listdir(tmp_path / 'human/images')
    )
    assert {item.image for item in pictures.add(study, None, tmp_path / 'human').items.values()} == {''}
