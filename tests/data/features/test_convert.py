"""Making a store: same content, same bytes, resumed after a kill, and clear errors that leave nothing half-written."""

import dataclasses
import errno
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from evil_jax.data import features
from evil_jax.data.features import convert as convert_module
from evil_jax.data.features import tsv
from evil_jax.data.features.convert import convert

ROOT = pathlib.Path(__file__).parents[3]


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob('*')) if p.is_file()}


def same(a, b):
    return a.size == b.size and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ('features', 'boxes', 'conf', 'classes')
    )


def test_store_equals_the_real_tsv(real_tsv, tmp_path):
    summary = convert([real_tsv], tmp_path / 'store', shard_mib=0.5, progress=False)
    assert (summary['images'], summary['regions'], summary['shards']) == (10, 360, 4)
    assert (summary['kept_shards'], summary['cut_images']) == (0, 0)
    source, store = features.open_features(real_tsv), features.open_features(tmp_path / 'store')
    assert store.ids() == source.ids()
    for image_id in source.ids():
        wanted = dataclasses.replace(source[image_id], features=source[image_id].features.astype(np.float16))
        assert same(store[image_id], wanted)
        assert store[image_id].features.dtype == np.float16
    for shard in (tmp_path / 'store').glob('shard-*'):
        size = sum(p.stat().st_size for p in shard.iterdir())
        assert size <= 0.5 * 2**20
    assert summary['bytes'] == sum(
        p.stat().st_size for p in (tmp_path / 'store').glob('shard-*/*') if p.name != 'manifest.json'
    )
    assert sorted(p.name for p in (tmp_path / 'store').iterdir()) == [
        *(f'shard-0000{i}' for i in range(4)),
        'store.json',
    ]
    store.verify()


def test_provenance(real_tsv, tmp_path):
    convert([real_tsv], tmp_path / 'store', threshold=0.1, max_regions=36, class_names=['cat', 'dog'], progress=False)
    meta = json.loads((tmp_path / 'store/store.json').read_text())
    assert (meta['version'], meta['width'], meta['dtype'], meta['count']) == (1, 2048, 'float16', 10)
    (source,) = meta['provenance']['sources']
    assert (source['name'], source['bytes']) == ('train2014_obj36_demo.tsv', 3_951_820)
    assert len(source['head_sha256']) == len(source['tail_sha256']) == 64
    assert meta['provenance']['thresholds'] == {'conf': 0.1, 'min_regions': 1, 'max_regions': 36}
    assert features.open_features(tmp_path / 'store').class_names == ['cat', 'dog']


def test_same_input_same_bytes_also_from_another_folder(make_regions, make_tsv, tmp_path):
    path = make_tsv({f'i{k}': make_regions(k) for k in range(4)})
    convert([path], tmp_path / 'one', progress=False)
    (tmp_path / 'moved').mkdir()
    path = path.rename(tmp_path / 'moved' / path.name)
    convert([tsv.Reader(path)], tmp_path / 'two', progress=False)
    assert content(tmp_path / 'one') == content(tmp_path / 'two')
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / 'one').glob('*/*')}
    assert convert([path], tmp_path / 'one', progress=False)['kept_shards'] == 1
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / 'one').glob('*/*')} == before
    convert([tmp_path / 'one'], tmp_path / 'three', progress=False)  # a store is a source, too
    store, again = features.open_features(tmp_path / 'one'), features.open_features(tmp_path / 'three')
    assert all(same(store[i], again[i]) for i in store.ids())


def test_several_sources_and_a_selection(make_regions, make_tsv, tmp_path):
    first = make_tsv({f'COCO_train2014_{k:012d}': make_regions(k) for k in range(3)}, 'train.tsv')
    second = make_tsv({f'COCO_val2014_{k:012d}': make_regions(k) for k in range(3, 6)}, 'val.tsv')
    convert([first, second], tmp_path / 'store', image_ids=[4, 'COCO_train2014_000000000002', '0'], progress=False)
    assert features.open_features(tmp_path / 'store').ids() == [
        'COCO_train2014_000000000000', 'COCO_train2014_000000000002', 'COCO_val2014_000000000004',
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r'2 images have no regions in .*train.tsv, .*val.tsv: 77, nobody'):
        convert([first, second], tmp_path / 'other', image_ids=[4, 77, 'nobody'], progress=False)
    with pytest.raises(ValueError, match='no images to convert'):
        convert([first], tmp_path / 'other', image_ids=[], progress=False)
    with pytest.raises(ValueError, match='no sources'):
        convert([], tmp_path / 'other', progress=False)
    assert not (tmp_path / 'other').exists()


def test_image_in_two_sources(make_regions, make_tsv, tmp_path):
    first = make_tsv({'a': make_regions(0), 'x_1': make_regions(1)}, 'first.tsv')
    second = make_tsv({'a': make_regions(0), 'y_1': make_regions(1)}, 'second.tsv')
    with pytest.raises(ValueError, match=r"image 'a' is both in .*first.tsv and in .*second.tsv"):
        convert([first, second], tmp_path / 'store', progress=False)
    message = r"image '1' is both in .*first.tsv and in .*second.tsv; list only one of them in data.features"
    with pytest.raises(ValueError, match=message):
        convert([first, second], tmp_path / 'store', image_ids=['1'], progress=False)


def test_one_picture_for_two_that_differ(make_regions, make_tsv, tmp_path):
    path = make_tsv({'7': make_regions(0), '8': make_regions(1), 'a@0': make_regions(2)})
    for first, second, key in (
        ('COCO_train2014_000000000007', 'COCO_val2014_000000000007', '7'),
        ('vcr_train_a@0.npz', 'vcr_val_a@0.npz', 'a@0'),
    ):
        message = rf"a.tsv: image '{key}' would be both '{first}' and '{second}', which are different pictures"
        with pytest.raises(ValueError, match=message):
            convert([path], tmp_path / 'store', image_ids=['7', '8', first, second], progress=False)
    assert not (tmp_path / 'store').exists()
    same = ['7', 'COCO_val2014_000000000007', '000007', 'coco_val2014_7.npz', 'COCO_train2014_000000000008']
    assert convert([path], tmp_path / 'store', image_ids=same, progress=False)['images'] == 2


def test_boxes_outside_the_picture_are_told_once(make_regions, make_tsv, tmp_path):
    wrong = {name: dataclasses.replace(make_regions(k), size=(60, 200)) for k, name in enumerate('bc')}
    for regions in wrong.values():
        regions.boxes[2] = [0, 0, 119, 99]
    path = make_tsv({'a': make_regions(0), **wrong})
    message = (
        r'^boxes of 2 pictures reach out of the picture \(are width and height exchanged\?\), for example '
        r".*a.tsv: image 'b', 60 wide and 200 high$"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        convert([path], tmp_path / 'store', shard_mib=0.001, progress=False)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        convert([path], tmp_path / 'other', image_ids=['a'], progress=False)


def test_region_counts(make_regions, make_tsv, tmp_path):
    regions = make_regions(0, n=5)
    regions.conf[:] = [0.5, 0.9, 0.1, 0.9, 0.8]
    path = make_tsv({'a': regions, 'b': make_regions(1, n=2)})
    summary = convert([path], tmp_path / 'store', max_regions=3, progress=False)
    assert (summary['cut_images'], summary['regions'], summary['without_conf']) == (1, 5, 0)
    again = convert([path], tmp_path / 'store', max_regions=3, progress=False)
    assert (again['cut_images'], again['kept_shards']) == (1, 1), 'also told of finished shards'
    assert features.open_features(tmp_path / 'store').region_counts().tolist() == [3, 2]
    kept = features.open_features(tmp_path / 'store')['a']
    assert kept.boxes.tolist() == regions.boxes[[1, 3, 4]].tolist()
    assert kept.classes.tolist() == regions.classes[[1, 3, 4]].tolist()
    with pytest.raises(ValueError, match='threshold is 1, wanted a confidence'):
        convert([path], tmp_path / 'other', threshold=1, progress=False)
    with pytest.raises(ValueError, match='min_regions 4 and max_regions 3'):
        convert([path], tmp_path / 'other', min_regions=4, max_regions=3, progress=False)
    with pytest.raises(ValueError, match='shard_mib is 0'):
        convert([path], tmp_path / 'other', shard_mib=0, progress=False)


@pytest.mark.parametrize(
    'threshold, least, most, kept',
    [
        (0.0, 1, 100, [0, 1, 2, 3, 4, 5]),
        (0.4, 1, 100, [0, 2, 5]),  # 0.4 itself is not more than 0.4
        (0.4, 5, 100, [0, 1, 2, 4, 5]),  # of equal ones the first
        (0.4, 10, 100, [0, 1, 2, 3, 4, 5]),
        (0.4, 1, 2, [0, 2]),
        (0.95, 0, 100, []),
        (0.95, 1, 100, [2]),
    ],
)
def test_number_of_regions_is_uniters(make_regions, make_tsv, tmp_path, threshold, least, most, kept):
    regions = make_regions(0, n=6)
    regions.conf[:] = np.float16([0.7, 0.4, 0.9, 0.1, 0.4, 0.5])
    summary = convert(
        [make_tsv({'a': regions})], tmp_path / 'store', threshold=threshold, min_regions=least, max_regions=most,
        progress=False,
    )  # fmt: skip
    assert summary['cut_images'] == (len(kept) < 6)
    store = features.open_features(tmp_path / 'store')['a']
    assert store.boxes.tolist() == regions.boxes[kept].tolist()
    assert store.conf.tolist() == regions.conf[kept].tolist()


def test_pictures_without_regions(make_regions, make_tsv, tmp_path):
    path = make_tsv({'a': make_regions(0, n=0), 'b': make_regions(1, n=0)})
    with pytest.raises(ValueError, match=r"a.tsv: image 'a': no regions; build.min_regions=0 allows that"):
        convert([path], tmp_path / 'other', progress=False)
    convert([path], tmp_path / 'store', min_regions=0, progress=False)
    store = features.open_features(tmp_path / 'store')
    assert store['b'].features.shape == (0, 2048) and store['b'].size == (120, 101)


def test_float16_overflow(make_regions, make_tsv, tmp_path):
    regions = make_regions(0)
    regions.features[2, 7] = 65504
    convert([make_tsv({'fits': regions}, 'fits.tsv')], tmp_path / 'fits', progress=False)
    assert features.open_features(tmp_path / 'fits')['fits'].features[2, 7] == 65504
    regions.features[2, 7] = -65505
    with pytest.raises(ValueError, match=r"a.tsv: image 'big': a feature has size 65505, more than float16 can hold"):
        convert([make_tsv({'big': regions})], tmp_path / 'store', progress=False)


def test_bad_row_keeps_finished_shards_and_no_store(real_tsv, tmp_path):
    good = real_tsv.read_bytes()
    lines = good.splitlines(keepends=True)
    lines[7] = lines[7].replace(b'\t36\t', b'\t37\t')
    real_tsv.write_bytes(b''.join(lines))
    with pytest.raises(ValueError, match=r'demo.tsv:8: .*num_boxes is 37'):
        convert([real_tsv], tmp_path / 'store', shard_mib=0.5, progress=False)
    names = sorted(p.name for p in (tmp_path / 'store').iterdir())
    assert names == ['build.json', 'shard-00000', 'shard-00001']
    with pytest.raises(ValueError, match='unfinished feature store; run the build again'):
        features.open_features(tmp_path / 'store')


SLOW = """
import sys, time
from evil_jax.data.features import tsv
from evil_jax.data.features.convert import convert

class Slow(tsv.Reader):
    def __getitem__(self, image_id):
        time.sleep(0.2)
        return super().__getitem__(image_id)

convert([Slow(sys.argv[1])], sys.argv[2], shard_mib=0.5, progress=False)
"""


def test_kill_in_the_middle_then_resume(real_tsv, tmp_path):
    tsv.Reader(real_tsv)
    folder = tmp_path / 'store'
    child = subprocess.Popen([sys.executable, '-c', SLOW, str(real_tsv), str(folder)], cwd=ROOT)
    try:
        end = time.monotonic() + 30
        while not ((folder / 'shard-00001').is_dir() and (folder / '.tmp-shard-00002').is_dir()):
            assert child.poll() is None and time.monotonic() < end, 'the conversion ended, or does not move'
            time.sleep(0.01)
        with pytest.raises(ValueError, match=rf'store: another process is converting .*process {child.pid} holds'):
            convert([real_tsv], folder, shard_mib=0.5, progress=False)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    names = sorted(p.name for p in folder.iterdir())
    assert names == ['.lock', '.tmp-shard-00002', 'build.json', 'shard-00000', 'shard-00001']
    assert (folder / '.lock').read_text() == str(child.pid)
    finished = {p: p.stat().st_mtime_ns for p in folder.glob('shard-*/*')}
    summary = convert([real_tsv], folder, shard_mib=0.5, progress=False)
    assert (summary['images'], summary['shards'], summary['kept_shards']) == (10, 4, 2)
    assert {p: p.stat().st_mtime_ns for p in finished} == finished
    convert([real_tsv], tmp_path / 'clean', shard_mib=0.5, progress=False)
    assert content(folder) == content(tmp_path / 'clean')


def test_damaged_finished_shard_is_done_anew(real_tsv, tmp_path):
    folder = tmp_path / 'store'
    convert([real_tsv], folder, shard_mib=0.5, progress=False)
    clean = content(folder)
    # As if killed before the last step, and with one byte flipped on the disk.
    meta = json.loads((folder / 'store.json').read_text())
    del meta['shards']
    (folder / 'store.json').unlink()
    (folder / 'build.json').write_text(json.dumps(meta))
    damaged = bytearray((folder / 'shard-00001/boxes.npy').read_bytes())
    damaged[-1] ^= 1
    (folder / 'shard-00001/boxes.npy').write_bytes(damaged)
    with pytest.warns(UserWarning, match='doing a shard anew: .*shard-00001/boxes.npy: sha256'):
        assert convert([real_tsv], folder, shard_mib=0.5, progress=False)['kept_shards'] == 1
    assert content(folder) == clean


def test_finished_store_with_a_lost_file_is_repaired(real_tsv, tmp_path):
    folder = tmp_path / 'store'
    convert([real_tsv], folder, shard_mib=0.5, progress=False)
    clean = content(folder)
    (folder / 'shard-00002/conf.npy').unlink()
    with pytest.warns(UserWarning, match='conf.npy: missing'):
        assert convert([real_tsv], folder, shard_mib=0.5, progress=False)['kept_shards'] == 2
    assert content(folder) == clean
    meta = json.loads((folder / 'store.json').read_text())
    (folder / 'store.json').write_text(json.dumps(meta | {'shards': [5]}))
    with pytest.warns(UserWarning, match='store.json: 5 does not describe a shard'):
        assert convert([real_tsv], folder, shard_mib=0.5, progress=False)['kept_shards'] == 4
    assert content(folder) == clean


def test_other_settings_or_input_in_the_same_folder(make_regions, make_tsv, tmp_path):
    path = make_tsv({'a': make_regions(0), 'b': make_regions(1)})
    convert([path], tmp_path / 'store', progress=False)
    clean = content(tmp_path / 'store')
    with pytest.raises(
        ValueError, match=r'holds a feature store with other settings: shard_mib was 1024.0 and is now 7'
    ):
        convert([path], tmp_path / 'store', shard_mib=7, progress=False)
    with pytest.raises(ValueError, match=r'thresholds.max_regions was 100 and is now 36\. Delete that folder'):
        convert([path], tmp_path / 'store', max_regions=36, progress=False)
    with pytest.raises(ValueError, match=r'sources.0.\w+ was '):
        convert([make_tsv({'a': make_regions(5), 'b': make_regions(1)})], tmp_path / 'store', progress=False)
    assert content(tmp_path / 'store') == clean
    assert convert([path], tmp_path / 'store', max_regions=36, replace=True, progress=False)['images'] == 2
    convert([path], tmp_path / 'clean', max_regions=36, progress=False)
    assert content(tmp_path / 'store') == content(tmp_path / 'clean')


class FullDisk(io.FileIO):
    """A file on a disk with 1 MiB left."""

    left = 2**20

    def write(self, data):
        FullDisk.left -= memoryview(data).nbytes
        if FullDisk.left < 0:
            raise OSError(errno.ENOSPC, 'No space left on device')
        return super().write(data)


def test_full_disk(real_tsv, tmp_path, monkeypatch):
    folder = tmp_path / 'store'
    with monkeypatch.context() as patch:
        patch.setattr(convert_module, 'open', FullDisk, raising=False)
        with pytest.raises(OSError, match=f'disk full .*; 2 finished shards are kept: .*{folder}') as error:
            convert([real_tsv], folder, shard_mib=0.5, progress=False)
    assert error.value.errno == errno.ENOSPC
    assert sorted(p.name for p in folder.iterdir()) == ['build.json', 'shard-00000', 'shard-00001']
    assert convert([real_tsv], folder, shard_mib=0.5, progress=False)['kept_shards'] == 2


def as_nobody(function):
    """Message of the PermissionError that `function` raises when it has no special rights."""
    if os.geteuid():
        with pytest.raises(PermissionError) as error:
            function()
        return str(error.value)
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            function()
            message = 'no error'
        except BaseException as error:
            message = f'{type(error).__name__}: {error}'
        os.write(write, message.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with open(read) as pipe:
        return pipe.read()


def test_no_write_permission(make_regions, make_tsv, tmp_path):
    reader = tsv.Reader(make_tsv({'a': make_regions(0)}))
    reader['a']  # opened while everybody may
    closed = tmp_path / 'closed'
    closed.mkdir(mode=0o755)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        os.chmod(folder, os.stat(folder).st_mode | 0o055)
    os.chmod(closed, 0o555)
    message = as_nobody(lambda: convert([reader], closed, progress=False))
    assert 'no permission to write a feature store into this folder' in message and str(closed) in message
    message = as_nobody(lambda: convert([reader], closed / 'store', progress=False))
    assert 'no permission to make the folder of the feature store' in message and str(closed / 'store') in message
    (tmp_path / 'file').write_text('')
    with pytest.raises(ValueError, match='file: wanted a folder for the feature store, but there is a file'):
        convert([reader], tmp_path / 'file', progress=False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_bar(make_regions, make_tsv, tmp_path, monkeypatch):
    path = make_tsv({'a': make_regions(0), 'b': make_regions(1)})

    def shown(folder, stream, **options):
        monkeypatch.setattr(sys, 'stderr', stream)
        convert([path], tmp_path / folder, **options)
        return stream.getvalue()

    assert '2/2' in shown('one', Terminal())
    assert shown('two', Terminal(), progress=False) == ''
    assert shown('three', io.StringIO()) == '', 'a log wants no bars'
