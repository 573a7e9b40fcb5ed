"""Small obj36 files for the tests of the readers, and the real one."""

import base64
import shutil

import numpy as np
import pytest

from evil_jax.data.features.regions import WIDTH, Regions


def _row(image_id, regions):
    """One obj36 row, without line end."""
    arrays = {
        'objects_id': regions.classes.astype('<i8'),
        'objects_conf': regions.conf.astype('<f4'),
        'boxes': regions.boxes.astype('<f4'),
        'features': regions.features.astype('<f4'),
    }
    cells = {name: base64.b64encode(array.tobytes()).decode() for name, array in arrays.items()}
    width, height = regions.size
    return '\t'.join([
        image_id, str(height), str(width), cells['objects_id'], cells['objects_conf'], cells['objects_id'],
        cells['objects_conf'], str(len(regions)), cells['boxes'], cells['features'],
    ])  # fmt: skip


def _regions(seed, n=3, width=WIDTH):
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 50, (n, 2))
    return Regions(
        features=rng.exponential(1.0, (n, width)).astype(np.float32),
        boxes=np.concatenate([corner, corner + rng.uniform(1, 50, (n, 2))], axis=1).astype(np.float32),
        size=(120, 100 + seed),
        conf=rng.uniform(0.2, 1.0, n).astype(np.float32),
        classes=rng.integers(0, 1600, n).astype(np.int32),
    )


@pytest.fixture
def make_regions():
    """make_regions(seed, n=3, width=2048) -> Regions of a picture 120 wide and 100 + seed high."""
    return _regions


@pytest.fixture
def make_tsv(tmp_path):
    """make_tsv({id: Regions} or [(id, Regions)], name='a.tsv', end='\\n') -> path."""

    def make(rows, name='a.tsv', end='\n'):
        path = tmp_path / name
        pairs = rows.items() if isinstance(rows, dict) else rows
        path.write_bytes(''.join(_row(i, r) + end for i, r in pairs).encode())
        return path

    return make


@pytest.fixture
def real_tsv(shared, tmp_path):
    """A copy of the ten real images' regions, in a folder of its own."""
    folder = tmp_path / 'real'
    folder.mkdir()
    shutil.copyfile(shared / 'data/features/train2014_obj36_demo.tsv', folder / 'train2014_obj36_demo.tsv')
    return folder / 'train2014_obj36_demo.tsv'
