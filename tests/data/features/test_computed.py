"""Pictures of every kind as a network reads them, and the reader that computes in batches."""

import numpy as np
import pytest
from PIL import Image

from evil_jax.data import pictures
from evil_jax.data.features import computed, convert, open_features

PATTERN = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
PATTERN[:20] = (250, 10, 10)


def gray():
    return Image.fromarray(PATTERN[..., 0])


KINDS = {
    'rgb.png': lambda: Image.fromarray(PATTERN),
    'gray.jpg': gray,
    'palette.png': lambda: Image.fromarray(PATTERN).quantize(200),
    'cmyk.jpg': lambda: Image.fromarray(PATTERN).convert('CMYK'),
    'binary.png': lambda: gray().convert('1'),
    'deep.png': lambda: Image.fromarray(PATTERN[..., 0].astype(np.uint16) * 257),
    'alpha.png': lambda: Image.merge('RGBA', [*Image.fromarray(PATTERN).split(), gray().point(lambda v: 255)]),
}


@pytest.mark.parametrize('name', KINDS)
def test_pictures_of_every_kind_become_rgb(tmp_path, name):
    original = KINDS[name]()
    original.save(tmp_path / name)
    found, size = computed.square(tmp_path / name, 16)
    assert found.shape == (16, 16, 3) and found.dtype == np.uint8 and size == (60, 40)
    plain = gray() if original.mode.startswith('I') or 'gray' in name else Image.open(tmp_path / name)
    wanted = np.asarray(plain.convert('RGB').resize((16, 16), Image.Resampling.BILINEAR), int)
    assert np.abs(wanted - found).max() <= (12 if name.endswith('jpg') else 2)
    if 'gray' not in name and 'deep' not in name and 'binary' not in name:
        assert found[2, 2, 0] > 200 and found[2, 2, 1:].max() < 60  # red stays red


def test_what_is_transparent_shows_white(tmp_path):
    Image.new('RGBA', (8, 8), (0, 0, 0, 0)).save(tmp_path / 'a.png')
    assert (computed.square(tmp_path / 'a.png', 4)[0] == 255).all()


def test_a_picture_on_its_side_is_read_as_it_is_stored(tmp_path):
    """Boxes of regions count such pixels, and the pages show pictures so."""
    tags = Image.Exif()
    tags[0x0112] = 6
    Image.fromarray(PATTERN).save(tmp_path / 'a.png', exif=tags)
    Image.fromarray(PATTERN).save(tmp_path / 'b.png')
    (one, size), (other, _) = (computed.square(tmp_path / f'{name}.png', 16) for name in 'ab')
    assert size == (60, 40)
    np.testing.assert_array_equal(one, other)


def test_damaged_pictures_are_named(tmp_path):
    Image.fromarray(PATTERN).save(tmp_path / 'good.png')
    whole = (tmp_path / 'good.png').read_bytes()
    rng = np.random.default_rng(0)
    damaged = {'cut': whole[: len(whole) // 2], 'empty': b'', 'text': b'not a picture', 'head': whole[:20]}
    for number in range(20):
        content = bytearray(whole)
        for place in rng.integers(8, len(whole), 5):
            content[place] ^= 1 << rng.integers(8)
        damaged[f'flipped{number}'] = bytes(content)
    refused = 0
    for name, content in damaged.items():
        path = tmp_path / f'{name}.png'
        path.write_bytes(content)
        try:
            computed.square(path, 16)
        except ValueError as error:
            assert str(error).startswith(f'{path}: not a readable picture: '), error
            refused += 1
        else:
            assert name.startswith('flipped')
    assert refused >= 10


class Network:
    """Gives each cell the mean colour of its pixels, and remembers what it was asked."""

    def __init__(self, cells, batch):
        self.cells, self.batch, self.asked = cells, batch, []

    def __call__(self, pixels_BHW3):
        assert pixels_BHW3.shape == (self.batch, 16, 16, 3) and pixels_BHW3.dtype == np.uint8
        self.asked.append([int(row.max()) for row in pixels_BHW3])
        side = 16 // self.cells
        means = pixels_BHW3.reshape(self.batch, self.cells, side, self.cells, side, 3).mean((2, 4))
        return np.pad(means, ((0, 0), (0, 0), (0, 0), (0, 2045))).astype(np.float16)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'pictures' / 'more').mkdir(parents=True)
    for number in range(7):  # picture n is 10 (n + 1) all over
        path = tmp_path / 'pictures' / ('more' if number % 2 else '.') / f'COCO_val2014_{number:012d}.png'
        Image.new('RGB', (30, 20), (10 * (number + 1),) * 3).save(path)
    return tmp_path / 'pictures'


def reader(folder, network, **about):
    return computed.Reader(
        pictures.Images(folder), network, cells=(network.cells,) * 2, pixels=16, batch=network.batch, about=about
    )


def test_pictures_are_computed_in_batches_in_the_order_that_was_announced(folder, tmp_path):
    network = Network(2, 3)
    source = reader(folder, network, net='a')
    assert len(source) == 7 and '4' in source and 'COCO_val2014_000000000004' in source and '9' not in source
    assert source.provenance() == {'net': 'a'}
    asked = ['6', '0', '3', '5', '4']
    convert.convert([source], tmp_path / 'store', image_ids=asked, progress=False)
    order = [int(name[-1]) for name in source.ids() if name[-1] in '60354']
    colours = [10 * (n + 1) for n in order] + [0]
    assert network.asked == [colours[:3], colours[3:]]
    store = open_features(tmp_path / 'store')
    for name in asked:
        found = store[name]
        assert (found.features[:, :3] == 10 * (int(name) + 1)).all() and (found.conf == 1).all()
        assert found.size == (30, 20) and found.grid
        assert found.boxes.tolist() == [[0, 0, 15, 10], [15, 0, 30, 10], [0, 10, 15, 20], [15, 10, 30, 20]]


def test_a_single_picture_and_its_outline(folder):
    network = Network(1, 3)
    source = reader(folder, network)
    outline = source.outline('3')
    assert not network.asked and outline.boxes.tolist() == [[0, 0, 30, 20]] and not outline.features.any()
    assert source['3'].features[0, 0] == 40 and source['3'].boxes.tolist() == [[0, 0, 30, 20]]
    assert network.asked == [[40, 0, 0]]


def test_a_damaged_picture_costs_no_finished_shard(folder, tmp_path):
    good = (folder / 'COCO_val2014_000000000004.png').read_bytes()
    (folder / 'COCO_val2014_000000000004.png').write_bytes(good[:60])
    few = dict(progress=False, shard_mib=0.03)  # one picture a shard
    network = Network(2, 2)
    with pytest.raises(ValueError, match=r'COCO_val2014_000000000004\.png: not a readable picture'):
        convert.convert([reader(folder, network)], tmp_path / 'store', **few)
    (folder / 'COCO_val2014_000000000004.png').write_bytes(good)
    network = Network(2, 2)
    numbers = convert.convert([reader(folder, network)], tmp_path / 'store', **few)
    # The shard of the second picture was not full yet when the third was found damaged.
    assert numbers['kept_shards'] == 1 and sum(map(len, network.asked)) == 6
    convert.convert([reader(folder, Network(2, 7))], tmp_path / 'other', **few)
    names = [p.relative_to(tmp_path / 'other') for p in (tmp_path / 'other').rglob('*.*') if p.is_file()]
    assert len(names) > 40
    for name in names:
        assert (tmp_path / 'store' / name).read_bytes() == (tmp_path / 'other' / name).read_bytes(), name
    with pytest.raises(ValueError, match='feature store with other settings'):
        convert.convert([reader(folder, network, net='b')], tmp_path / 'store', **few)


def test_two_files_of_one_name_are_refused_and_a_lost_one_is_told(folder):
    source = reader(folder, Network(1, 2))
    Image.new('RGB', (4, 4)).save(folder / 'more' / 'COCO_val2014_000000000002.jpg')
    twice = reader(folder, Network(1, 2))
    with pytest.raises(ValueError, match=r'could be COCO_val2014_0+2\.png or more/COCO_val2014_0+2\.jpg'):
        twice.resolve('2')
    (folder / 'COCO_val2014_000000000000.png').unlink()
    with pytest.raises(ValueError, match=r"the picture 'COCO_val2014_0+' has gone"):
        source['0']
