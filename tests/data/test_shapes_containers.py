"""The world's regions in every container, read back from the descriptions of the formats and not by our readers."""

import ast
import base64
import json
import struct
import zipfile

import lmdb
import msgpack
import numpy as np
import pytest
from PIL import Image

from evil_jax.data import features, shapes
from evil_jax.data.shapes import containers, examples, write

COUNTS = {'train': 24, 'dev': 6, 'test': 9}
SEED = 2
FEATURES = 'feat_th0.2_max100_min10'
PATHS = {
    'lxmert': 'regions.tsv',
    'butd': 'regions_butd.tsv',
    'lmdb': FEATURES,
    'npz': 'regions_npz',
    'grid': 'grid_npz',
}
DETECTED = [name for name in containers.CONTAINERS if name != 'grid']


def detected(form):
    """(split, size, Detections) of each picture, as the world's own generator gives them."""
    found = []
    for number, split in enumerate(write.SPLITS):
        for scene, _, rng in examples.generate(form, split, COUNTS[split], [SEED, number]):
            image = shapes.render(scene)
            found.append((split, image.size, shapes.detect(scene, image, rng)))
    return found


def names(form, container, position, split):
    """The id of the picture at a position in the order of writing."""
    n = position + 1
    stem = f'shapes_0000_{_clock(position * 10)}-{_clock(position * 10 + 10)}@0'
    if container in ('lmdb', 'npz', 'grid'):
        return {
            'shapes_ve': f'flickr30k_00100000{n:04d}.npz',
            'shapes_vqa': f'coco_shapes_{n:012d}.npz',
            'shapes_vcr': f'vcr_{"val" if split == "test" else "train"}_{stem}.npz',
        }[form]
    short = str(n) if container == 'butd' else f'COCO_shapes_{n:012d}'
    return {'shapes_ve': f'100000{n:04d}', 'shapes_vqa': short, 'shapes_vcr': stem}[form]


def _clock(seconds):
    minutes, seconds = divmod(seconds, 60)
    return f'00.{minutes:02d}.{seconds:02d}.000'


def read_lxmert(folder):
    for line in (folder / 'regions.tsv').read_bytes().removesuffix(b'\r\n').split(b'\r\n'):
        name, height, width, ids, conf, _, _, n, boxes, vectors = line.split(b'\t')
        yield (
            name.decode(),
            {
                'size': (int(width), int(height)),
                'boxes': _floats(boxes, 4),
                'features': _floats(vectors, 2048),
                'conf': _floats(conf, 1)[:, 0],
                'classes': np.array(struct.unpack(f'<{int(n)}q', base64.b64decode(ids))),
            },
        )


def read_butd(folder):
    for line in (folder / 'regions_butd.tsv').read_text().removesuffix('\n').split('\n'):
        name, width, height, n, boxes, vectors = line.split('\t')
        boxes, vectors = _floats(boxes, 4), _floats(vectors, 2048)
        assert len(boxes) == len(vectors) == int(n)
        yield name, {'size': (int(width), int(height)), 'boxes': boxes, 'features': vectors}


def _floats(text, columns):
    content = base64.b64decode(text)
    return np.array(struct.unpack(f'<{len(content) // 4}f', content)).reshape(-1, columns)


def read_lmdb(folder):
    path = folder / FEATURES
    assert [p.name for p in path.iterdir()] == ['data.mdb']
    counts = json.loads((folder / 'nbb_th0.2_max100_min10.json').read_text())
    with lmdb.open(str(path), readonly=True, lock=False) as env, env.begin() as transaction:
        entries = dict(transaction.cursor())
    keys = json.loads(entries.pop(b'__keys__'))
    assert sorted(keys) == sorted(key.decode() for key in entries) == sorted(counts)
    for key in keys:
        value = msgpack.unpackb(entries[key.encode()], raw=False, strict_map_key=False)
        assert list(value) == ['norm_bb', 'features', 'conf', 'soft_labels']
        for array in value.values():
            assert array.keys() == {b'nd', b'type', b'kind', b'shape', b'data'}
            assert array[b'nd'] is True and array[b'type'] == '<f2' and array[b'kind'] == b''
        value = {k: np.frombuffer(v[b'data'], '<f2').reshape(v[b'shape']) for k, v in value.items()}
        assert len(value['features']) == counts[key]
        yield key, _uniter(value)


def read_npz(folder):
    for name, value in _archives(folder / 'regions_npz'):
        assert value['num_boxes'] == len(value['bbox'])
        size = int(value['image_w']), int(value['image_h'])
        yield name, _uniter(value) | {'size': size, 'boxes': value['bbox']}


def _archives(folder):
    for path in sorted(folder.iterdir()):
        value = {}
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            for name in archive.namelist():
                content = archive.read(name)
                (length,) = struct.unpack('<H', content[8:10])
                header = ast.literal_eval(content[10 : 10 + length].decode())
                assert content[:8] == b'\x93NUMPY\x01\x00' and not header['fortran_order']
                array = np.frombuffer(content[10 + length :], header['descr']).reshape(header['shape'])
                value[name.removesuffix('.npy')] = array
        yield path.name, value


def _uniter(value):
    boxes, labels = value['norm_bb'].astype(np.float64), value['soft_labels'].astype(np.float64)
    assert boxes.shape[1] == 6 and labels.shape[1] == 1601
    np.testing.assert_allclose(boxes[:, 4:], boxes[:, 2:4] - boxes[:, :2], atol=2e-3)  # w/W, h/H
    np.testing.assert_allclose(labels.sum(1), 1, atol=2e-3)
    conf = value['conf'][:, 0]
    np.testing.assert_array_equal(labels[:, 1:].max(1), conf)
    assert (np.diff(conf.astype(float)) > 0).any()  # proposals' order, not that of confidences
    return {
        'boxes': boxes[:, :4] * 144,
        'features': value['features'],
        'conf': conf,
        'classes': labels[:, 1:].argmax(1),  # column 0 is the background
    }


READERS = {'lxmert': read_lxmert, 'butd': read_butd, 'lmdb': read_lmdb, 'npz': read_npz}


@pytest.mark.parametrize('container', DETECTED)
@pytest.mark.parametrize('form', shapes.FORMS)
def test_a_container_holds_what_was_detected(tmp_path, form, container):
    shapes.write_world(form, tmp_path / 'raw', counts=COUNTS, seed=SEED, container=container)
    present = {p.name for p in (tmp_path / 'raw').iterdir()} & {*PATHS.values(), 'nbb_th0.2_max100_min10.json'}
    assert present == {PATHS[container]} | ({'nbb_th0.2_max100_min10.json'} if container == 'lmdb' else set())
    rows, wanted = dict(READERS[container](tmp_path / 'raw')), detected(form)
    assert len(rows) == len(wanted)
    exact = {} if container != 'lmdb' else {'rtol': 1e-3, 'atol': 1e-3}
    ours = features.open_features(tmp_path / 'raw' / PATHS[container])
    for position, (split, size, found) in enumerate(wanted):
        name = names(form, container, position, split)
        row = rows[name]
        near = [np.abs(row['boxes'] - box).sum(1).argmin() for box in found.boxes]
        assert sorted(near) == list(range(len(found.boxes)))
        np.testing.assert_allclose(row['boxes'][near], found.boxes, rtol=1e-3, atol=0.1)
        np.testing.assert_allclose(row['features'][near], found.features, **exact or {'rtol': 1e-6})
        if 'classes' in row:
            np.testing.assert_array_equal(row['classes'][near], found.class_ids)
            np.testing.assert_allclose(row['conf'][near], found.class_conf, **exact or {'rtol': 1e-6})
        assert row.get('size', size) == size
        # Our readers give the same, by the id that the annotations have.
        regions = ours[names(form, 'lxmert', position, split)]
        np.testing.assert_array_equal(regions.features, row['features'].astype(regions.features.dtype))
        scale = np.divide((144, 144), regions.size)
        np.testing.assert_allclose(regions.boxes * np.tile(scale, 2), row['boxes'], atol=1e-3)


@pytest.mark.parametrize('form', shapes.FORMS)
def test_a_grid_holds_one_vector_a_cell(tmp_path, form):
    shapes.write_world(form, tmp_path / 'raw', counts=COUNTS, seed=SEED, container='grid')
    assert {p.name for p in (tmp_path / 'raw').iterdir()} & {*PATHS.values()} == {'grid_npz'}
    rows = dict(_archives(tmp_path / 'raw' / 'grid_npz'))
    ours = features.open_features(tmp_path / 'raw' / 'grid_npz')
    assert len(rows) == len(ours) == len(detected(form))
    position = 0
    for number, split in enumerate(write.SPLITS):
        for scene, _, _ in examples.generate(form, split, COUNTS[split], [SEED, number]):
            (x,) = (row := rows[names(form, 'grid', position, split)]).values()
            assert list(row) == ['x'] and x.shape == (2048, 3, 3) and x.dtype == '<f4'
            image = shapes.render(scene)
            for cell in range(9):
                i, j = divmod(cell, 3)
                alone = image.crop((48 * j, 48 * i, 48 * j + 48, 48 * i + 48))
                wider = Image.new('RGB', image.size, (0, 255, 0))  # the same cell of quite another picture
                wider.paste(alone, (48 * j, 48 * i))
                np.testing.assert_array_equal(x[:, i, j], shapes.cell_features(wider, 3, 3)[i, j])
            regions = ours[names(form, 'lxmert', position, split)]
            np.testing.assert_array_equal(regions.features, x.reshape(2048, 9).T)
            assert regions.grid and regions.boxes[5].tolist() == np.float32([2 / 3, 1 / 3, 1, 2 / 3]).tolist()
            position += 1


@pytest.mark.parametrize('container', DETECTED)
def test_width_and_height_are_not_exchanged(tmp_path, container):
    found = detected('shapes_ve')[0][2]
    with containers.open_container(container, tmp_path, 1) as add:
        add(containers.Names('1', '1', '1.npz'), Image.new('RGB', (200, 150)), found)
    ((_, row),) = READERS[container](tmp_path)
    if 'size' in row:
        assert row['size'] == (200, 150)
    if container == 'lmdb':
        row['boxes'] *= np.array([200, 150, 200, 150]) / 144
    np.testing.assert_allclose(sorted(row['boxes'].tolist()), sorted(found.boxes.tolist()), rtol=1e-3, atol=0.1)
    regions = features.open_features(tmp_path / PATHS[container])['1']
    assert regions.size == ((1, 1) if container == 'lmdb' else (200, 150))


@pytest.mark.parametrize('container', containers.CONTAINERS)
def test_the_same_settings_give_the_same_bytes(tmp_path, container):
    for name in ('a', 'b'):
        shapes.write_world('shapes_vqa', tmp_path / name, counts=COUNTS, seed=SEED, container=container)
    files = [sorted(p for p in (tmp_path / name).rglob('*') if p.is_file()) for name in ('a', 'b')]
    assert [p.relative_to(tmp_path / 'a') for p in files[0]] == [p.relative_to(tmp_path / 'b') for p in files[1]]
    for one, other in zip(*files):
        assert one.read_bytes() == other.read_bytes(), one


def test_only_the_regions_differ_between_containers(tmp_path):
    for container in containers.CONTAINERS:
        shapes.write_world('shapes_vqa', tmp_path / container, counts=COUNTS, seed=SEED, container=container)
    for path in (p for p in (tmp_path / 'lxmert').rglob('*') if p.is_file()):
        if path.name not in ('regions.tsv', 'world.json'):
            for container in containers.CONTAINERS:
                other = tmp_path / container / path.relative_to(tmp_path / 'lxmert')
                assert path.read_bytes() == other.read_bytes(), other


def test_a_database_is_as_large_as_its_content(tmp_path):
    """Many pictures: several commits, and no hole of the size that was allowed."""
    found = detected('shapes_ve')[0][2]
    count = containers._PER_COMMIT + 3
    with containers.open_container('lmdb', tmp_path, 10 * count) as add:
        for i in range(count):
            add(containers.Names('', '', f'{i}.npz'), Image.new('RGB', (144, 144)), found)
    path = tmp_path / FEATURES / 'data.mdb'
    content = count * len(found.boxes) * 2 * (2048 + 6 + 1 + 1601)
    assert content < path.stat().st_size < 1.25 * content
    assert len(dict(read_lmdb(tmp_path))) == count


def test_the_container_is_a_setting(tmp_path):
    folder = tmp_path / 'raw'
    shapes.write_world('shapes_ve', folder, counts=COUNTS, seed=SEED)
    assert 'container' not in json.loads((folder / 'world.json').read_text())  # as worlds always were
    assert not shapes.write_world('shapes_ve', folder, counts=COUNTS, seed=SEED, container='lxmert')
    with pytest.raises(ValueError, match=r"world\.json: .*container is 'lxmert', wanted 'butd'"):
        shapes.write_world('shapes_ve', folder, counts=COUNTS, seed=SEED, container='butd')
    shapes.write_world('shapes_ve', tmp_path / 'butd', counts=COUNTS, seed=SEED, container='butd')
    with pytest.raises(ValueError, match=r"world\.json: .*container is 'butd', wanted 'lxmert'"):
        shapes.write_world('shapes_ve', tmp_path / 'butd', counts=COUNTS, seed=SEED)
    with pytest.raises(
        ValueError, match="container of the regions is 'zip', wanted one of lxmert, butd, lmdb, npz, grid"
    ):
        shapes.write_world('shapes_ve', tmp_path / 'new', counts=COUNTS, container='zip')
    assert not (tmp_path / 'new').exists()
