"""The LXMERT obj36 reader: real rows, the offset file, and every way in which a file may be bad."""

import base64
import concurrent.futures
import multiprocessing
import operator
import os
import pickle
import warnings

import numpy as np
import pytest

from evil_jax.data import features
from evil_jax.data.features import tsv

FIRST = 'COCO_train2014_000000132417'


def rows(path):
    return path.read_bytes().splitlines(keepends=True)


def edit(path, line, column, change):
    """Replaces one cell of a TSV; `change` takes and gives bytes."""
    lines = rows(path)
    cells = lines[line - 1].rstrip(b'\r\n').split(b'\t')
    cells[column] = change(cells[column])
    lines[line - 1] = b'\t'.join(cells) + b'\r\n'
    path.write_bytes(b''.join(lines))


def decoded(change, dtype='<f4'):
    def on_base64(cell):
        return base64.b64encode(change(np.frombuffer(base64.b64decode(cell), dtype).copy()).tobytes())

    return on_base64


def test_real_rows(real_tsv):
    reader = features.open_features(real_tsv)
    assert len(reader) == 10
    assert reader.ids()[0] == FIRST
    assert reader.resolve(132417) == FIRST
    regions = reader[FIRST]
    assert regions.size == (500, 333)  # the file has height first
    assert regions.features.shape == (36, 2048)
    assert regions.classes[:4].tolist() == [72, 291, 291, 291]
    assert regions.conf[0] == pytest.approx(0.8533651)
    for image_id in reader.ids():
        regions = reader[image_id]
        width, height = regions.size
        assert len(regions) == 36
        x1, y1, x2, y2 = regions.boxes.T
        assert min(x1.min(), y1.min()) >= 0 and (x1 < x2).all() and (y1 < y2).all()
        assert width - 2 <= x2.max() <= width and height - 2 <= y2.max() <= height
    with pytest.raises(ValueError, match=r"train2014_obj36_demo.tsv: no regions of image '5'"):
        reader[5]


@pytest.mark.parametrize('end', ['\n', '\r\n'])
def test_line_ends(make_regions, make_tsv, end):
    regions = make_regions(1)
    read = tsv.Reader(make_tsv({'a': make_regions(0), 'b': regions}, end=end))['b']
    for name in ('features', 'boxes', 'conf', 'classes'):
        np.testing.assert_array_equal(getattr(read, name), getattr(regions, name))
    assert read.size == regions.size


def test_no_line_end_after_a_complete_last_row(real_tsv):
    real_tsv.write_bytes(real_tsv.read_bytes().rstrip(b'\r\n'))
    assert len(tsv.Reader(real_tsv)) == 10


def test_offset_file_is_made_and_used(real_tsv, monkeypatch):
    tsv.Reader(real_tsv)
    index = real_tsv.with_name('train2014_obj36_demo_offset.txt')
    lines = [line.split('\t') for line in index.read_text().splitlines()]
    assert lines[0] == [FIRST, '0']
    assert lines[2][1] == str(sum(map(len, rows(real_tsv)[:2])))
    monkeypatch.setattr(tsv.Reader, '_scan', lambda self: pytest.fail('scanned although there is an index'))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        reader = tsv.Reader(real_tsv)
    assert [reader[i].size for i in reader.ids()][1] == (640, 428)


def test_folder_that_is_to_stay_as_it_is(shared, real_tsv):
    os.chmod(real_tsv.parent, 0o555)
    reader = tsv.Reader(real_tsv)
    os.chmod(real_tsv.parent, 0o755)
    assert len(reader) == 10
    assert os.listdir(real_tsv.parent) == [real_tsv.name]


def test_stale_offset_file_is_replaced(real_tsv):
    tsv.Reader(real_tsv)
    index = real_tsv.with_name('train2014_obj36_demo_offset.txt')
    good, lines = index.read_text(), rows(real_tsv)
    for content, message in (
        (lines[1:], 'at byte 0 the file has'),
        (lines[:9], 'at byte .* the file has'),
        (lines + [lines[0].replace(FIRST.encode(), b'COCO_train2014_000000000009')], 'bytes follow its last row'),
    ):
        index.write_text(good)
        real_tsv.write_bytes(b''.join(content))
        with pytest.warns(UserWarning, match=f'_offset.txt does not belong to .*{message}'):
            reader = tsv.Reader(real_tsv)
        assert len(reader) == len(content)
        assert reader.ids()[-1].encode() == content[-1].split(b'\t')[0]
        assert len(index.read_text().splitlines()) == len(content)


@pytest.mark.parametrize('text', ['', 'a b c\n', f'{FIRST}\t\n', f'{FIRST}\t12\n'])
def test_unreadable_offset_file_is_replaced(real_tsv, text):
    real_tsv.with_name('train2014_obj36_demo_offset.txt').write_text(text)
    with pytest.warns(UserWarning, match='does not belong'):
        assert len(tsv.Reader(real_tsv)) == 10


def test_large_offset_file_is_not_read(real_tsv, monkeypatch):
    tsv.Reader(real_tsv)
    index = real_tsv.with_name('train2014_obj36_demo_offset.txt')
    size = index.stat().st_size
    assert len(tsv.Reader(real_tsv, index_limit=size)) == 10
    with pytest.warns(UserWarning, match=f'it has {size} bytes, wanted at most {size - 1}.*building it anew'):
        assert len(tsv.Reader(real_tsv, index_limit=size - 1)) == 10


def test_blanks_around_ids_do_not_count(make_regions, make_tsv, same, monkeypatch):
    path = make_tsv({'a ': make_regions(0), ' b': make_regions(1), 'c': make_regions(2)})
    reader = tsv.Reader(path)
    assert reader.ids() == ['a', 'b', 'c']
    same(reader['b'], make_regions(1))
    monkeypatch.setattr(tsv.Reader, '_scan', lambda self: pytest.fail('scanned although there is an index'))
    assert tsv.Reader(path).ids() == ['a', 'b', 'c']
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"blank.tsv:1: image '': the row has no image id"):
        tsv.Reader(make_tsv({' ': make_regions(0)}, 'blank.tsv'))


def test_file_that_changes_under_an_open_reader(make_regions, make_tsv):
    path = make_tsv({'a': make_regions(0), 'b': make_regions(1)})
    reader = tsv.Reader(path)
    make_tsv({'c': make_regions(0), 'd': make_regions(1)})
    with pytest.raises(ValueError, match=r"a.tsv:2: image 'b': the row is of 'd'; the file changed"):
        reader['b']


@pytest.mark.parametrize('keep', [1000, 300_000, 395_000])
def test_truncated_row(real_tsv, keep):
    lines = rows(real_tsv)
    image_id = lines[9].split(b'\t')[0].decode()
    real_tsv.write_bytes(b''.join(lines[:9]) + lines[9][:keep])
    with pytest.raises(ValueError, match=rf'demo.tsv:10: image {image_id!r}: .*truncated row'):
        features.open_features(real_tsv)


def test_truncated_row_is_found_with_an_offset_file_too(real_tsv):
    tsv.Reader(real_tsv)
    real_tsv.write_bytes(real_tsv.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r'demo.tsv:10: .*truncated row'):
        tsv.Reader(real_tsv)


@pytest.mark.parametrize('change, found', [(lambda c: c + b'\t5', 11), (lambda c: c.partition(b'A')[0], 10)])
def test_columns(real_tsv, change, found):
    lines = rows(real_tsv)
    if found == 11:
        edit(real_tsv, 3, 1, change)
    else:
        real_tsv.write_bytes(b''.join(lines[:2] + [lines[2].replace(b'\t394\t', b'\t')] + lines[3:]))
        found = 9
    with pytest.raises(
        ValueError, match=rf"demo.tsv:3: image 'COCO_train2014_000000578174': {found} columns, wanted 10 \(img_id"
    ):
        features.open_features(real_tsv)


def test_empty_file_and_empty_line(real_tsv):
    lines = rows(real_tsv)
    real_tsv.write_bytes(b''.join(lines[:2]) + b'\r\n' + b''.join(lines[2:]))
    with pytest.raises(ValueError, match=r'demo.tsv:3: empty line between rows'):
        tsv.Reader(real_tsv)
    real_tsv.write_bytes(b''.join(lines[:2]) + b'\r\n\n')
    assert len(tsv.Reader(real_tsv)) == 2
    real_tsv.with_name('train2014_obj36_demo_offset.txt').unlink()
    real_tsv.write_bytes(b'')
    with pytest.raises(ValueError, match='the file holds no rows'):
        features.open_features(real_tsv)


def test_repeated_ids(real_tsv):
    lines = rows(real_tsv)
    real_tsv.write_bytes(b''.join(lines + [lines[1].replace(b'\t428\t640\t', b'\t429\t640\t')]))
    with pytest.raises(
        ValueError, match=r"image 'COCO_train2014_000000573195' is both in line 2 and in line 11; delete one"
    ):
        tsv.Reader(real_tsv)
    real_tsv.write_bytes(b''.join(lines))  # as told
    with pytest.warns(UserWarning, match='building it anew'):
        assert len(tsv.Reader(real_tsv)) == 10


@pytest.mark.parametrize(
    'column, change, message',
    [
        (9, lambda c: c[:50] + b'**' + c[50:], r'features \(393218 characters\) are not base64'),
        (8, lambda c: c[:-1], r'boxes \(767 characters\) are not base64: .*padding'),
        (9, decoded(lambda a: a[: 36 * 1024]), 'features hold 147456 bytes = 36 regions of width 1024, '
                                               'wanted 294912 bytes = 36 regions of width 2048'),
        (9, decoded(lambda a: np.where(np.arange(len(a)) == 2050, np.nan, a).astype('<f4')),
         'features hold 1 NaN or infinite values, first in region 1'),
        (9, decoded(lambda a: np.where(np.arange(len(a)) == 0, np.inf, a).astype('<f4')),
         'features hold 1 NaN or infinite values, first in region 0'),
        (8, decoded(lambda a: a * np.float32(np.nan)), 'boxes hold 144 NaN'),
        (4, decoded(lambda a: a * np.float32(np.nan)), 'conf hold 36 NaN'),
        (7, lambda c: b'35', 'num_boxes is 35, but boxes hold 576 bytes = 36 regions'),
        (8, decoded(lambda a: a[:-4]), 'num_boxes is 36, but boxes hold 560 bytes = 35 regions'),
        (3, decoded(lambda a: a[:-1], '<i8'), 'num_boxes is 36, but objects_id hold 280 bytes = 35 regions'),
        (7, lambda c: b'many', "num_boxes is 'many', wanted a whole number"),
        (1, lambda c: b'-4', "img_h is '-4', wanted a whole number"),
        (2, lambda c: b'0', r'size \(width, height\) is \(0, 428\)'),
    ],
)  # fmt: skip
def test_bad_cells_name_file_line_and_image(real_tsv, column, change, message):
    edit(real_tsv, 2, column, change)
    reader = tsv.Reader(real_tsv)
    with pytest.raises(ValueError, match=rf"demo.tsv:2: image 'COCO_train2014_000000573195': {message}"):
        reader[573195]
    assert len(reader[132417]) == 36  # other rows are not touched


def _read(reader, image_id):
    return float(reader[image_id].features.sum())


def test_threads_pickle_fork_and_spawn(real_tsv):
    reader = tsv.Reader(real_tsv)
    ids = reader.ids()
    wanted = [_read(reader, i) for i in ids] * 4
    assert len(set(wanted)) == 10
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda i: _read(reader, i), ids * 4)) == wanted
    copy = pickle.loads(pickle.dumps(reader))
    assert [_read(copy, i) for i in ids] == wanted[:10]
    for start in ('fork', 'spawn'):
        with multiprocessing.get_context(start).Pool(2) as pool:
            # A function of this file could not be imported by a spawned process.
            read = pool.starmap(operator.getitem, [(reader, i) for i in ids * 2], chunksize=1)
        assert [float(regions.features.sum()) for regions in read] == wanted[:20]
