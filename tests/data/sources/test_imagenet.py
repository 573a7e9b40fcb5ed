import numpy as np
import PIL.Image
import pytest
import scipy.io

from evil_jax.data.builders import _base
from evil_jax.data.builders.imagenet import Builder
from evil_jax.data.sources import imagenet

KIT = 'ILSVRC2012_validation_ground_truth.txt'


def put(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'')


def val(*numbers):
    return [f'ILSVRC2012_val_{n:08d}.JPEG' for n in numbers]


def found(folder):
    """Split -> (picture, class) of each example, and all classes."""
    files = Builder.files(folder)
    rows = {split: [(e.image_id, e.label) for e in Builder.read(of)] for split, of in files.items()}
    return rows, Builder.labels(files)


def test_a_folder_a_class(tmp_path):
    put(tmp_path, 'n02/b.JPEG', 'n02/a.png', 'n01/c.jpg', 'n02/readme.txt', '.cache/x.jpg')
    rows, labels = found(tmp_path)
    assert rows == {'dev': [('c', 'n01'), ('a', 'n02'), ('b', 'n02')]} and labels == ('n01', 'n02')
    assert (Builder.name, Builder.inputs, Builder.classes) == ('imagenet', 'pictures', None)
    (tmp_path / 'n02/a.png').unlink()
    PIL.Image.new('RGB', (3, 2), 'red').save(tmp_path / 'n02/a.png')
    reader = Builder.reader(tmp_path)
    assert reader['a'].tolist() == [[[255, 0, 0]] * 3] * 2 and 'b' in reader


def test_train_and_val_are_train_and_dev(tmp_path):
    put(tmp_path, 'train/n02/a.JPEG', 'train/n03/b.JPEG', 'val/n01/c.JPEG', 'val/n02/d.JPEG')
    rows, labels = found(tmp_path)
    assert rows == {'train': [('a', 'n02'), ('b', 'n03')], 'dev': [('c', 'n01'), ('d', 'n02')]}
    assert labels == ('n01', 'n02', 'n03')
    # A list gives a classifier's own order, and classes of which there is no picture.
    (tmp_path / 'synset_words.txt').write_text('n03 cat, domestic cat\nn00 x\nn01 dog\nn02 y\n')
    assert found(tmp_path) == (rows, ('n03', 'n00', 'n01', 'n02'))
    assert [p.name for p in Builder.sources(tmp_path)] == ['synset_words.txt']
    (tmp_path / 'synset_words.txt').write_text('n03\nn02\n')
    with pytest.raises(ValueError, match=r"class 'n01' is none of the 2 in .*synset_words\.txt"):
        found(tmp_path)
    (tmp_path / 'synset_words.txt').write_text('n03\nn03\n')
    with pytest.raises(ValueError, match='lists 2 classes, 1 of them different'):
        found(tmp_path)


def test_pictures_and_a_list_of_names(tmp_path):
    put(tmp_path, *val(1, 2, 12))
    (tmp_path / 'val.txt').write_text('\n'.join(f'{n} {c}' for n, c in zip(val(12, 2, 1, 3), (3, 0, 11, 9))))
    rows, labels = found(tmp_path)
    assert [label for _, label in rows['dev']] == ['11', '0', '3']  # of the pictures 1, 2, 12
    assert labels == tuple(map(str, range(12)))  # index = number, though most have no picture
    assert any('classes are numbers' in line for line in Builder.remarks(Builder.files(tmp_path)))
    (tmp_path / 'synsets.txt').write_text(''.join(f'n{n:02d}\n' for n in reversed(range(12))))
    rows, labels = found(tmp_path)
    assert [label for _, label in rows['dev']] == ['n00', 'n11', 'n08'] and labels[0] == 'n11' and len(labels) == 12
    assert not any('classes are numbers' in line for line in Builder.remarks(Builder.files(tmp_path)))
    (tmp_path / 'synsets.txt').write_text('n00\nn01\n')
    with pytest.raises(ValueError, match=r'val\.txt: class 11 is none of the 2'):
        found(tmp_path)


def test_pictures_of_a_split_with_a_list_of_synsets(tmp_path):
    put(tmp_path, *(f'val/{name}' for name in val(1, 2)), 'train/n02/x.JPEG')
    (tmp_path / 'val.txt').write_text('val/ILSVRC2012_val_00000001.JPEG n02\nILSVRC2012_val_00000002.JPEG n01\n')
    rows, labels = found(tmp_path)
    assert [label for _, label in rows['dev']] == ['n02', 'n01'] and labels == ('n01', 'n02')


def meta(path, children=0):
    synsets = np.zeros(4, [('ILSVRC2012_ID', object), ('WNID', object), ('num_children', object)])
    for row, (number, synset, below) in enumerate(
        [(1, 'n30', 0), (2, 'n10', 0), (3, 'n20', children), (1001, 'n99', 4)]
    ):
        synsets[row] = (number, synset, below)
    scipy.io.savemat(path, {'synsets': synsets[:, None]})


def test_the_development_kits_numbers_are_of_another_order(tmp_path):
    put(tmp_path / 'images', *val(1, 2, 3, 5))  # the fourth is not there
    (tmp_path / KIT).write_text('2\n1\n3\n9\n2\n')
    rows, labels = found(tmp_path)
    assert [label for _, label in rows['dev']] == ['2', '1', '3', '2'] and labels == ('1', '2', '3')
    meta(tmp_path / 'meta.mat')
    rows, labels = found(tmp_path)
    assert [label for _, label in rows['dev']] == ['n10', 'n30', 'n20', 'n10'] and labels == ('n10', 'n20', 'n30')
    assert {p.name for p in Builder.sources(tmp_path)} == {KIT, 'meta.mat'}
    meta(tmp_path / 'meta.mat', children=2)
    with pytest.raises(ValueError, match='class 3 is none of the 2 that are listed'):
        found(tmp_path)
    (tmp_path / 'meta.mat').write_bytes(b'MATLAB 5.0 MAT-file' + bytes(300))
    with pytest.raises(ValueError, match=r'meta\.mat: not the meta\.mat of the development kit'):
        found(tmp_path)


def test_other_pictures_take_a_number_a_line_in_order(tmp_path):
    put(tmp_path, 'a.jpg', 'b.jpg')
    (tmp_path / KIT).write_text('2\n1\n')
    assert found(tmp_path)[0] == {'dev': [('a', '2'), ('b', '1')]}
    for content, message in (
        ('2\n', 'has 1 lines for 2 pictures'),
        ('2\n0\n', 'class 0, wanted numbers from 1'),
        ('', 'has 0 lines'),
    ):
        (tmp_path / KIT).write_text(content)
        with pytest.raises(ValueError, match=message):
            found(tmp_path)


@pytest.mark.parametrize(
    ('names', 'lists', 'message'),
    [
        (['a.jpg'], {}, r'wanted folders of pictures, one a class, or pictures and val\.txt or ILSVRC.* are neither'),
        (['a.jpg'], {'val.txt': 'a.jpg 0', KIT: '1'}, 'there are both lists'),
        (['n01/a.jpg', 'n02/notes.txt', 'n03/b.jpg'], {}, r"no pictures in folder 'n02'.*list all classes in synsets"),
        (['n01/a.jpg', 'n02/a.png'], {}, r"two pictures 'a' \(classes n01 and n02\)"),
        ([], {'val.txt': 'a.jpg 0'}, r'no pictures \(\.jpg, \.jpeg, \.png\) in it, wanted those of .*val\.txt'),
        (['a.jpg', 'b.jpg'], {'val.txt': 'a.jpg 0'}, r"val\.txt: no class of 1 id: 'b\.jpg'"),
        (['a.jpg'], {'val.txt': 'a.jpg 0\na.jpg 1'}, r"val\.txt: entry 2 is 'a\.jpg 1', wanted a new name"),
        (['a.jpg'], {'val.txt': 'a.jpg 0 1'}, 'entry 1 is'),
        ([val(7)[0]], {KIT: '1\n2'}, r"no class of 1 id: 'ILSVRC2012_val_00000007\.JPEG'"),
    ],
)
def test_folders_that_do_not_say_it(tmp_path, names, lists, message):
    put(tmp_path, *names)
    for name, content in lists.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        found(tmp_path)
    with pytest.raises(ValueError, match=r'nowhere is no folder\. Set data\.manual_dir'):
        Builder.files(tmp_path / 'nowhere')


def test_examples_can_be_written(tmp_path):
    put(tmp_path, 'n01/a.jpg')
    (example,) = Builder.read(Builder.files(tmp_path)['dev'])
    assert _base.encode(example)['label'] == '"n01"' and example.text == ''
    assert imagenet.read(tmp_path) == ((('a', 'n01'),), ('n01',))
