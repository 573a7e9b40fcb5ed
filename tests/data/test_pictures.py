import os
import pickle

import numpy as np
import PIL.Image
import pytest

from evil_jax.data import pictures

RED, GREY = (200, 0, 0), (90, 90, 90)


def saved(path, mode, colour, size=(6, 4), **options):
    image = PIL.Image.new('RGB', size, colour)
    image = image.convert(mode) if mode != 'P' else image.quantize(4)
    image.save(path, **options)
    return path


@pytest.mark.parametrize(
    ('name', 'mode', 'colour'),
    [('a.png', 'RGB', RED), ('a.png', 'L', GREY), ('a.png', 'LA', GREY), ('a.png', 'P', RED), ('a.png', 'RGBA', RED),
     ('a.gif', 'P', RED), ('a.jpg', 'L', GREY), ('a.jpg', 'CMYK', RED), ('a.png', '1', (255, 255, 255))],
)  # fmt: skip
def test_pictures_of_every_kind_are_rgb(tmp_path, name, mode, colour):
    found = pictures.read(saved(tmp_path / name, mode, colour))
    assert (found.shape, found.dtype) == ((4, 6, 3), np.uint8)
    np.testing.assert_allclose(found, np.broadcast_to(colour, (4, 6, 3)), atol=3)


def test_what_is_transparent_is_white_and_what_lies_on_its_side_is_turned(tmp_path):
    PIL.Image.new('RGBA', (2, 2), (0, 0, 0, 0)).save(tmp_path / 'clear.png')
    assert (pictures.read(tmp_path / 'clear.png') == 255).all()
    image = PIL.Image.new('RGB', (6, 4), 'black')
    image.paste((255, 255, 255), (0, 0, 6, 1))  # a white edge on top, as it is stored
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise: top becomes right
    image.save(tmp_path / 'turned.png', exif=exif)
    found = pictures.read(tmp_path / 'turned.png')
    assert found.shape == (6, 4, 3)
    assert (found[:, 3] == 255).all() and (found[:, :3] == 0).all()


def test_what_is_no_picture_is_named(tmp_path):
    path = saved(tmp_path / 'whole.png', 'RGB', RED, size=(64, 64))
    (tmp_path / 'cut.png').write_bytes(path.read_bytes()[:-40])
    (tmp_path / 'text.jpg').write_text('no picture')
    (tmp_path / 'empty.png').touch()
    for name in ('cut.png', 'text.jpg', 'empty.png'):
        with pytest.raises(ValueError, match=rf'{name}: not a readable picture'):
            pictures.read(tmp_path / name)


def test_squash_is_pillows_and_black_is_minus_one():
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (5, 9, 3), np.uint8)
    found = pictures.prepare(picture, 8)
    small = np.asarray(PIL.Image.fromarray(picture).resize((8, 8), PIL.Image.Resampling.BILINEAR))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (small / 255 - 0.5) / 0.5, atol=1e-6)
    black, white = (pictures.prepare(np.full((3, 4), value, np.uint8), 2) for value in (0, 255))
    assert (black == -1).all() and (white == 1).all() and black.shape == (2, 2, 3)
    np.testing.assert_array_equal(pictures.prepare(picture[..., :1], 8), pictures.prepare(picture[..., 0], 8))
    assert np.ptp(pictures.prepare(picture[..., 0], 8), axis=-1).max() == 0, 'one channel becomes three equal ones'


@pytest.mark.parametrize('resize', pictures.RESIZE)
def test_a_mask_lies_over_its_picture(resize):
    rng = np.random.default_rng(0)
    mask = np.kron(rng.integers(0, 2, (3, 8)), np.ones((40, 40))).astype(np.uint8)  # wide: crop leaves half of it away
    picture = np.repeat(mask[..., None] * 255, 3, axis=2).astype(np.uint8)
    there, seen = pictures.resized_mask(mask, 56, resize), pictures.resized(picture, 56, resize)[..., 0]
    assert set(np.unique(there)) == {0, 1}
    assert ((seen > 127) == (there == 1)).mean() > 0.95  # but for edges


def test_crop_keeps_the_shape_and_cuts_the_middle_out():
    """Columns are numbered, so that what is left shows where it comes from."""
    picture = np.broadcast_to(np.arange(128, dtype=np.uint8)[None, :, None], (64, 128, 3))
    found = pictures.resized(picture, 56, 'crop')  # to 64 x 128, so nothing is scaled; 36 columns on each side go
    np.testing.assert_array_equal(found[0, :, 0], np.arange(36, 92))
    tall = pictures.resized(np.swapaxes(picture, 0, 1), 56, 'crop')
    np.testing.assert_array_equal(tall[:, 0, 0], np.arange(36, 92))
    assert pictures.resized(np.zeros((1, 300, 3), np.uint8), 224, 'crop').shape == (224, 224, 3)
    with pytest.raises(ValueError, match="resize is 'cut', wanted one of 'squash', 'crop'"):
        pictures.resized(picture, 56, 'cut')


@pytest.mark.parametrize(
    'picture',
    [
        np.zeros((2, 2, 3), np.float32),
        np.zeros((2, 2, 4), np.uint8),
        np.zeros(3, np.uint8),
        np.zeros((0, 2, 3), np.uint8),
    ],
)
def test_other_arrays_are_refused(picture):
    with pytest.raises(ValueError, match=r'wanted uint8 \[H, W, 3\]|has no pixels'):
        pictures.prepare(picture, 4)


def test_what_is_moved_in_is_black():
    picture = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    moved = pictures.shifted(picture, 1, 0)
    assert (moved[0] == -1).all()
    np.testing.assert_array_equal(moved[1], picture[0])
    moved = pictures.shifted(picture, 0, -1)
    assert (moved[:, 1] == -1).all()
    np.testing.assert_array_equal(moved[:, 0], picture[:, 1])
    np.testing.assert_array_equal(pictures.shifted(picture, 0, 0), picture)
    assert (pictures.shifted(picture, 5, -7) == -1).all()


def test_a_folder_of_pictures(tmp_path):
    (tmp_path / 'class').mkdir()
    saved(tmp_path / 'class' / 'one.png', 'RGB', RED)
    saved(tmp_path / 'ILSVRC2012_val_00000007.jpg', 'L', GREY, size=(3, 5))
    reader = pickle.loads(pickle.dumps(pictures.Pictures(tmp_path)))
    assert len(reader) == 2 and 'one' in reader and 'two' not in reader
    assert reader['one'].shape == (4, 6, 3) and reader['ILSVRC2012_val_00000007'].shape == (5, 3, 3)
    assert pickle.loads(pickle.dumps(reader))['one'].shape == (4, 6, 3), 'after it was used, too'
    with pytest.raises(ValueError, match=r"no picture 'two'; it has 2 pictures, for example 'ILSVRC2012_val_00000007'"):
        reader['two']
    before = pictures.Pictures(tmp_path).provenance()
    assert before == reader.provenance() and before['images'] == 2
    saved(tmp_path / 'class' / 'one.png', 'RGB', RED, size=(60, 4))
    assert pictures.Pictures(tmp_path).provenance() != before
    (tmp_path / 'class' / 'one.jpg').touch()
    with pytest.raises(ValueError, match=r"'one' could be class/one\.jpg or class/one\.png"):
        pictures.Pictures(tmp_path)['one']


def test_a_look_up_in_the_middle_of_anothers_scan_finds_everything(tmp_path, monkeypatch):
    """As a second thread does it."""
    for name in ('a/early.png', 'b/late.png'):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    reader, walk, found = pictures.Pictures(tmp_path), os.walk, []

    class Names(list):
        def __iter__(self):
            monkeypatch.setattr(os, 'walk', walk)
            found.append('late' in reader)
            return super().__iter__()

    wrapped = [(folder, below, Names(names)) for folder, below, names in walk(tmp_path)]
    monkeypatch.setattr(os, 'walk', lambda path: wrapped)
    assert 'early' in reader and found == [True] * 3
