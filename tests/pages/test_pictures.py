import base64
import io

import numpy as np
import PIL.Image
import pytest

from evil_jax.pages import pictures


def decoded(uri):
    return PIL.Image.open(io.BytesIO(base64.b64decode(uri.partition(',')[2])))


def test_noise_is_made_to_fit(tmp_path):
    path = tmp_path / 'noise.png'
    PIL.Image.fromarray(np.random.default_rng(0).integers(0, 255, (700, 900, 3), np.uint8)).save(path)
    uri, size = pictures.picture_uri(path)
    assert size == (900, 700) and len(uri) < 25_000 * 4 / 3 + 100
    small = decoded(uri)
    assert max(small.size) <= 512 and abs(small.width / small.height - 9 / 7) < 0.02


def test_small_pictures_keep_their_size_and_transparent_ones_become_white(tmp_path):
    path = tmp_path / 'clear.png'
    PIL.Image.new('RGBA', (40, 20), (255, 0, 0, 0)).save(path)
    uri, size = pictures.picture_uri(path)
    assert size == (40, 20) == decoded(uri).size
    assert min(decoded(uri).convert('RGB').getpixel((5, 5))) > 250


def test_real_photograph_fits(shared):
    path = shared / 'data/images/COCO_val2014_000000127510.jpg'
    uri, size = pictures.picture_uri(path)
    assert size == PIL.Image.open(path).size and len(uri) < 34_000
    assert max(decoded(uri).size) >= 256


def test_not_a_picture(tmp_path):
    path = tmp_path / 'text.png'
    path.write_text('hello')
    with pytest.raises(ValueError, match=r'text\.png: not a readable picture'):
        pictures.picture_uri(path)


def test_boxes_are_placed_over_their_picture():
    boxes = np.array([[0.25, 0.5, 1, 1]], np.float32)
    assert pictures.placed(boxes, (1, 1), (200, 100)) == ([[50, 50, 200, 100]], (200, 100)), 'relative ones'
    assert pictures.placed(boxes, (1, 1), None) == ([[100, 150, 400, 300]], (400, 300))
    assert pictures.placed([[1, 2, 30.04, 40]], (60, 50), (200, 100)) == ([[1, 2, 30, 40]], (60, 50))
    assert pictures.placed([[1, 2, 30, 40]], None, (200, 100)) == ([[1, 2, 30, 40]], (200, 100))
    assert pictures.placed([[1, 2, 30, 40]], None, None) == ([[1, 2, 30, 40]], (30, 40))
    assert pictures.placed(None, None, None) == ([], (4, 3))
