"""Small files of every container for the tests of the readers, and the real one."""

import base64
import io
import json
import shutil

import lmdb
import msgpack
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


@pytest.fixture
def make_butd(tmp_path):
    """make_butd([(id, Regions)], name='butd.tsv', end='\\n', cell=...) -> path of a six-column file."""

    def make(rows, name='butd.tsv', end='\n', cell=lambda text: text):
        lines = []
        for image_id, regions in rows:
            width, height = regions.size
            arrays = (regions.boxes.astype('<f4'), regions.features.astype('<f4'))
            cells = [cell(base64.b64encode(array.tobytes()).decode()) for array in arrays]
            lines.append('\t'.join([str(image_id), str(width), str(height), str(len(regions)), *cells]) + end)
        path = tmp_path / name
        path.write_bytes(''.join(lines).encode())
        return path

    return make


def _members(regions):
    """The arrays that UNITER's files hold of regions whose boxes are relative."""
    x1, y1, x2, y2 = regions.boxes.T
    labels = np.zeros((len(regions), 1601), np.float16)
    labels[:, 0] = 0.75  # the background may be the most likely of all, and is no class
    labels[np.arange(len(regions)), regions.classes + 1] = 0.5
    return {
        'features': regions.features.astype(np.float16),
        'norm_bb': np.stack([x1, y1, x2, y2, x2 - x1, y2 - y1], axis=1).astype(np.float16),
        'conf': regions.conf[:, None].astype(np.float16),
        'soft_labels': labels,
    }


def _packed(array, **change):
    return {
        b'nd': True, b'type': array.dtype.str, b'kind': b'', b'shape': list(array.shape), b'data': array.tobytes()
    } | change  # fmt: skip


def _zipped(arrays):
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=np.array(False), **arrays)  # what old versions of numpy added
    return content.getvalue()


class Uniter:
    """UNITER's values, and databases of them."""

    members, packed, zipped = staticmethod(_members), staticmethod(_packed), staticmethod(_zipped)

    @staticmethod
    def value(arrays) -> bytes:
        """msgpack, as uncompressed databases hold it."""
        return msgpack.packb({name: _packed(array) for name, array in arrays.items()}, use_bin_type=True)

    @staticmethod
    def write(folder, values, keys=True, counts=None):
        """data.mdb with these values (bytes); keys: whether there is a list of them, or its content."""
        env = lmdb.open(str(folder), map_size=1 << 28, lock=False, sync=False)
        with env.begin(write=True) as transaction:
            for key, value in values.items():
                transaction.put(key.encode(), value)
            if keys is not False:
                transaction.put(b'__keys__', json.dumps(list(values) if keys is True else keys).encode())
        env.close()
        if counts is not None:
            folder.with_name(folder.name.removesuffix('_compressed').replace('feat_', 'nbb_') + '.json').write_text(
                json.dumps(counts)
            )
        return folder


@pytest.fixture(scope='session')
def uniter():
    return Uniter


@pytest.fixture
def relative(make_regions):
    """relative(seed, n=3, width=2048) -> Regions in float16 with boxes relative to the picture, as UNITER has them."""

    def make(seed, n=3, width=WIDTH):
        regions = make_regions(seed, n, width)
        return Regions(
            features=regions.features.astype(np.float16),
            boxes=(regions.boxes / 100).astype(np.float16).astype(np.float32),
            size=(1, 1),
            conf=regions.conf.astype(np.float16).astype(np.float32),
            classes=regions.classes,
        )

    return make


@pytest.fixture
def same():
    """same(a, b): asserts that two Regions are equal."""

    def compare(found, wanted):
        assert found.size == wanted.size
        for name in ('features', 'boxes', 'conf', 'classes'):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)

    return compare
