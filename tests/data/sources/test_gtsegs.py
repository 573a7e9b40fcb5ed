"""Files like gtsegs_ijcv.mat, written by h5py: object references, axes turned round, MATLAB's block in front."""

import pickle
import shutil
import sys

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evil_jax.data.builders.imagenet_seg import Builder
from evil_jax.data.sources import gtsegs

IDS = ('n02084071_123', 'n01440764_7', 'n02084071_5')


def pictures(seed=0):
    rng = np.random.default_rng(seed)
    sizes = ((5, 7), (4, 4), (6, 3))
    return [
        (rng.integers(0, 256, (*size, 3), np.uint8), rng.integers(0, 2, size, np.uint8)) for size in sizes
    ]  # fmt: skip


def write(path, ids=IDS, edit=None, header=b'MATLAB 7.3 MAT-file, Platform: GLNXA64'):
    with h5py.File(path, 'w', userblock_size=512) as file:
        put = lambda name, array: file.create_dataset(f'#refs#/{name}', data=array).ref
        columns = {'img': [], 'gt': [], 'id': [], 'target': []}
        for n, (name, (picture, mask)) in enumerate(zip(ids, pictures())):
            columns['img'].append(put(f'i{n}', picture.transpose(2, 1, 0)))
            masks = [put(f'm{n}_0', mask.T), put(f'm{n}_1', 1 - mask.T)]
            columns['gt'].append(put(f'g{n}', np.array([[m] for m in masks], h5py.ref_dtype)))
            units = np.frombuffer(name.encode('utf-16-le'), np.uint16)
            columns['id'].append(put(f'n{n}', units[:, None]))
            columns['target'].append(put(f't{n}', np.zeros((1, 1))))
        for name, references in columns.items():
            table = np.array(references, h5py.ref_dtype).reshape(len(references), 1)
            file.create_dataset(f'value/{name}', data=table, dtype=h5py.ref_dtype)
        if edit:
            edit(file, put)
    with open(path, 'r+b') as file:
        file.write(header)
    return path


def test_pictures_masks_and_classes(tmp_path):
    write(tmp_path / 'gtsegs_ijcv.mat')
    reader = Builder.reader(tmp_path)
    assert reader.ids() == list(IDS) and len(reader) == 3 and IDS[1] in reader and 'x' not in reader
    for name, (picture, mask) in zip(IDS, pictures()):
        found = reader[name]
        assert found.dtype == np.uint8 and found.flags.c_contiguous
        np.testing.assert_array_equal(found, picture)
        np.testing.assert_array_equal(reader.mask(name), mask)  # the first of two
        assert reader.mask(name).dtype == np.uint8 and reader.resolve(name) == name
    assert reader.synset(IDS[0]) == 'n02084071' and reader.synsets() == ['n01440764', 'n02084071']
    with pytest.raises(ValueError, match=r"gtsegs_ijcv\.mat: no picture 'x' among 3, 'n02084071_123', \.\.\."):
        reader['x']


def test_examples_are_the_test_split(tmp_path):
    write(tmp_path / 'gtsegs_ijcv.mat')
    files = Builder.files(tmp_path)
    examples = list(Builder.read(files['test']))
    assert list(files) == ['test'] and [e.image_id for e in examples] == [e.id for e in examples] == list(IDS)
    assert [e.label for e in examples] == ['n02084071', 'n01440764', 'n02084071'] and examples[0].text == ''
    assert Builder.name == 'imagenet_seg' and Builder.inputs == 'pictures'
    assert Builder.labels(files) == ('n01440764', 'n02084071') and Builder.pictures(tmp_path) is None
    with pytest.raises(ValueError, match=r'gtsegs_ijcv\.mat does not exist\. Set data\.manual_dir'):
        Builder.files(tmp_path / 'nowhere')


def test_pickled_readers_open_the_file_again(tmp_path, monkeypatch):
    path = write(tmp_path / 'x.mat')
    reader = gtsegs.GtSegs(path)
    assert pickle.loads(pickle.dumps(reader)).ids() == list(IDS)
    reader[IDS[0]]
    again = pickle.loads(pickle.dumps(reader))
    np.testing.assert_array_equal(again[IDS[2]], reader[IDS[2]])
    opened = reader._file
    reader[IDS[1]]
    assert reader._file is opened
    monkeypatch.setattr(gtsegs.os, 'getpid', lambda: -1)  # as after a fork
    np.testing.assert_array_equal(reader[IDS[1]], pictures()[1][0])
    assert reader._file is not opened
    moved = shutil.copy(path, tmp_path / 'y.mat')
    assert gtsegs.GtSegs(moved).provenance()['images'] == 3
    other = gtsegs.GtSegs(write(tmp_path / 'z.mat', ids=(*IDS[:2], 'n02084071_6')))
    assert other.provenance()['sha256'] != reader.provenance()['sha256']


def test_a_name_that_is_there_again_gets_a_number(tmp_path):
    reader = gtsegs.GtSegs(write(tmp_path / 'x.mat', ids=(IDS[0],) * 3))
    assert reader.ids() == [IDS[0], IDS[0] + '-2', IDS[0] + '-3'] and reader.synset(IDS[0] + '-2') == 'n02084071'
    np.testing.assert_array_equal(reader[IDS[0] + '-2'], pictures()[1][0])


def test_columns_may_lie_in_a_row(tmp_path):
    def edit(file, put):
        for name in ('img', 'gt', 'id'):
            table = file[f'value/{name}'][()].T
            del file[f'value/{name}']
            file.create_dataset(f'value/{name}', data=table, dtype=h5py.ref_dtype)

    reader = gtsegs.GtSegs(write(tmp_path / 'x.mat', edit=edit))
    np.testing.assert_array_equal(reader[IDS[2]], pictures()[2][0])
    np.testing.assert_array_equal(reader.mask(IDS[2]), pictures()[2][1])


def _point(column, make):
    """An edit that makes the first row of a column refer to something else."""

    def edit(file, put):
        file[f'value/{column}'][0, 0] = put('other', make())

    return edit


def _without(name):
    def edit(file, put):
        del file[name]

    return edit


def _shorter(file, put):
    table = file['value/gt'][()][:2]
    del file['value/gt']
    file.create_dataset('value/gt', data=table, dtype=h5py.ref_dtype)


def _numbers(file, put):
    del file['value/img']
    file.create_dataset('value/img', data=np.zeros((3, 1)))


@pytest.mark.parametrize(
    ('edit', 'message'),
    [
        (_without('value'), 'cannot read the names as those of gtsegs_ijcv.mat'),
        (_without('value/gt'), 'cannot read the names'),
        (_shorter, 'its columns have 3 img, 2 gt, 3 id'),
        (_without('#refs#/i0'), 'cannot read picture'),
        (_numbers, 'cannot read picture'),
        (_point('img', lambda: np.zeros((7, 5, 3), np.uint8)), r"picture 'n02084071_123' is uint8 \[7, 5, 3\], wanted"),
        (_point('img', lambda: np.zeros((3, 7, 5))), r'is float64 \[3, 7, 5\], wanted uint8 \[3, width, height\]'),
        (_point('img', lambda: np.zeros((3, 0, 5), np.uint8)), r'is uint8 \[3, 0, 5\]'),
        (_point('gt', lambda: np.zeros((7, 5), np.uint8)), 'cannot read mask'),
        (_point('id', lambda: np.zeros((2, 1), np.uint16)), 'the name of picture 0 is'),
        (_point('id', lambda: np.full((1, 1), 0xD800, np.uint16)), 'cannot read the names'),
    ],
)
def test_files_of_another_layout(tmp_path, edit, message):
    reader = gtsegs.GtSegs(write(tmp_path / 'x.mat', edit=edit))
    with pytest.raises(ValueError, match=rf'x\.mat: .*{message}'):
        reader[IDS[0]], reader.mask(IDS[0])


def test_masks_of_more_than_an_object(tmp_path):
    def edit(file, put):
        file['#refs#/m0_0'][0, 0] = 2

    reader = gtsegs.GtSegs(write(tmp_path / 'x.mat', edit=edit))
    with pytest.raises(ValueError, match=r"the mask of 'n02084071_123' is uint8 \[7, 5\].* of 0 and 1"):
        reader.mask(IDS[0])


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (lambda good: b'', 'cannot read the names'),
        (lambda good: b'MATLAB 5.0 MAT-file, Platform: PCWIN' + bytes(200), 'is a file of MATLAB 5; wanted MATLAB 7.3'),
        (lambda good: good[: len(good) // 2], 'truncated'),
        (lambda good: good[:600], 'cannot read the names'),
        (lambda good: b'<html>' * 100, 'cannot read the names'),
    ],
)
def test_files_that_are_no_such_file(tmp_path, content, message):
    path = write(tmp_path / 'x.mat')
    path.write_bytes(content(path.read_bytes()))
    with pytest.raises(ValueError, match=rf'x\.mat.*{message}'):
        gtsegs.GtSegs(path).ids()
    path.unlink()
    with pytest.raises(ValueError, match=r'x\.mat.*No such file'):
        gtsegs.GtSegs(path).ids()


def test_an_empty_file_of_the_right_kind(tmp_path):
    with pytest.raises(ValueError, match='its columns have 0 img, 0 gt, 0 id'):
        gtsegs.GtSegs(write(tmp_path / 'x.mat', ids=())).ids()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(512, 1 << 20), st.binary(min_size=1, max_size=12))
def test_damaged_bytes_are_one_kind_of_error(tmp_path, place, noise):
    path = tmp_path / 'x.mat'
    if not (tmp_path / 'good').exists():
        write(tmp_path / 'good')
    content = bytearray((tmp_path / 'good').read_bytes())
    place = 512 + place % (len(content) - 512)
    content[place : place + len(noise)] = noise
    path.write_bytes(content)
    reader = gtsegs.GtSegs(path)
    for read in (reader.__getitem__, reader.mask):
        try:
            for name in reader.ids():
                read(name)
        except ValueError as error:
            assert 'x.mat' in str(error)


def test_without_h5py_the_message_names_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path / 'x.mat')
    monkeypatch.setitem(sys.modules, 'h5py', None)
    with pytest.raises(ValueError, match=r"x\.mat is an HDF5 file.*pip install 'evil_jax\[attribution\]'"):
        gtsegs.GtSegs(path).ids()
