"""Which examples of VCR's files make which split."""

import dataclasses
import json

import pytest

from evil_jax.data import pictures
from evil_jax.data.builders import _base, vcr


def row(n, picture):
    return {
        'annot_id': f'train-{n}', 'img_fn': f'film/{picture}@0.jpg', 'objects': ['person'], 'question': ['Who', [0]],
        'answer_choices': [['a'], ['b'], ['c'], ['d']], 'answer_label': 0,
        'rationale_choices': [['a'], ['b'], ['c'], ['d']], 'rationale_label': 1,
    }  # fmt: skip


def write(folder, name, rows):
    (folder / name).write_text(''.join(json.dumps(r) + '\n' for r in rows), encoding='utf-8')


@pytest.fixture
def raw(tmp_path):
    """200 training questions about 100 pictures, two validation questions."""
    write(tmp_path, 'train.jsonl', [row(n, f'p{n % 100}') for n in range(200)])
    write(tmp_path, 'val.jsonl', [row(n, f'v{n}') for n in range(2)])
    write(tmp_path, 'test.jsonl', [row(0, 't')])
    return tmp_path


def read(folder, **options):
    options = dataclasses.replace(_base.DEFAULT, **options)
    files = vcr.Builder.files(folder, options)
    return {split: list(vcr.Builder.read(value, options)) for split, value in files.items()}


def test_dev_is_carved_out_of_train_by_picture(raw):
    splits = read(raw, dev_share=0.3)
    assert list(splits) == ['train', 'dev', 'test']
    pictures = {split: {e.image_id for e in rows} for split, rows in splits.items()}
    assert pictures['train'].isdisjoint(pictures['dev'])
    assert len(splits['train']) + len(splits['dev']) == 200
    assert len(splits['dev']) == 2 * len(pictures['dev'])  # all questions of a picture
    assert 15 <= len(pictures['dev']) <= 45  # 30 expected, standard deviation 4.6
    assert [e.id for e in splits['test']] == ['train-0', 'train-1']
    assert pictures['test'] == {'v0@0', 'v1@0'}  # the official validation set; test.jsonl is left alone
    assert read(raw, dev_share=0.3) == splits
    assert {e.image_id for e in read(raw, dev_share=0.3, dev_seed=1)['dev']} != pictures['dev']
    # A larger share only adds pictures, and a picture's side does not depend on the others in the file.
    assert pictures['dev'] < {e.image_id for e in read(raw, dev_share=0.5)['dev']}
    write(raw, 'train.jsonl', [row(n, f'p{n}') for n in range(50)])
    assert {e.image_id for e in read(raw, dev_share=0.3)['dev']} == {
        name for name in pictures['dev'] if int(name[1:-2]) < 50
    }


def test_no_dev_split(raw):
    splits = read(raw, dev_share=0.0)
    assert list(splits) == ['train', 'test']
    assert len(splits['train']) == 200
    write(raw, 'vcr_dev_split.json', [row(7, 'd')])
    assert {split: len(rows) for split, rows in read(raw).items()} == {'train': 200, 'dev': 1, 'test': 2}


def test_dev_by_a_list(raw, tmp_path):
    ids = tmp_path / 'ids.txt'
    ids.write_text('p7@0\n\ntrain-8\n train-108\np7@0\n')
    splits = read(raw, dev_ids=str(ids))
    assert [e.id for e in splits['dev']] == ['train-7', 'train-8', 'train-107', 'train-108']
    assert len(splits['train']) == 196
    # The settings have the content of the list, which may move.
    sources = vcr.Builder.sources(raw, dataclasses.replace(_base.DEFAULT, dev_ids=str(ids)))
    assert sources == [raw / 'train.jsonl', raw / 'val.jsonl']


@pytest.mark.parametrize(('share', 'split'), [(1e-6, 'dev'), (1.0, 'train')])
def test_a_share_that_leaves_a_split_empty_is_named(raw, share, split):
    with pytest.raises(
        ValueError, match=rf'data\.dev_share is {share}: that leaves the {split} split without a picture'
    ):
        read(raw, dev_share=share)
    write(raw, 'train.jsonl', [])
    assert read(raw, dev_share=share)['train'] == [], 'a file without examples is another matter'


def test_settings_that_make_no_difference_are_told(raw, tmp_path):
    def told(**options):
        options = dataclasses.replace(_base.DEFAULT, **options)
        lines = vcr.Builder.remarks(vcr.Builder.files(raw, options), options)
        assert lines[-1].startswith('no metadata: object tags stand for no region')
        return [line.split()[0] for line in lines[:-1]]

    assert told() == told(dev_share=0.2, dev_seed=3) == told(dev_share=0.0) == []
    assert told(labels='original', tag_base=0) == ['data.labels', 'data.tag_base']
    assert told(dev_share=0.0, dev_seed=3) == ['data.dev_seed']
    (tmp_path / 'ids').write_text('p7@0')
    assert told(dev_ids=str(tmp_path / 'ids'), dev_share=0.2, dev_seed=3) == ['data.dev_share', 'data.dev_seed']
    write(raw, 'dev.jsonl', [row(0, 'd')])
    assert told(dev_share=0.2, dev_seed=3) == ['data.dev_share', 'data.dev_seed']
    (raw / 'train.jsonl').write_text('[]')
    assert told(tag_base=0) == []


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('p1@0\nx\ny\n', r'ids\.txt: 2 of 3 ids are neither examples nor pictures of .*train\.jsonl: x, y'),
        ('train-1\n', r'ids\.txt: 1 pictures would be in train and in dev.*: p1@0; list the pictures instead'),
        ('\n', r'ids\.txt: lists no ids'),
        (None, r"data\.dev_ids is '.*ids\.txt', which is not a file"),
    ],
)
def test_bad_lists(raw, tmp_path, content, message):
    if content is not None:
        (tmp_path / 'ids.txt').write_text(content)
    with pytest.raises(ValueError, match=message):
        read(raw, dev_ids=str(tmp_path / 'ids.txt'))


def test_a_list_needs_a_training_file_to_choose_from(raw, tmp_path):
    write(raw, 'dev.jsonl', [row(0, 'd')])
    with pytest.raises(ValueError, match=r"data\.dev_ids is 'x', but .* has a dev split of its own, dev\.jsonl"):
        read(raw, dev_ids='x')
    (raw / 'dev.jsonl').unlink()
    (raw / 'train.jsonl').unlink()
    with pytest.raises(ValueError, match='has no training file'):
        read(raw, dev_ids='x')


def test_file_names_of_both_forms(tmp_path):
    names = ('vcr_train_split.json', 'vcr_dev_split.json', 'vcr_valtest.json', 'scenes.jsonl', 'test.jsonl.gz')
    for name in names:
        (tmp_path / name).touch()
    found = vcr.Builder.files(tmp_path)
    assert {split: files['rows'].name for split, files in found.items()} == dict(zip(('train', 'dev', 'test'), names))
    (tmp_path / 'val.jsonl').touch()
    with pytest.raises(ValueError, match=r'both val\.jsonl and vcr_valtest\.json could be the test split'):
        vcr.Builder.files(tmp_path)
    (tmp_path / 'empty').mkdir()
    with pytest.raises(ValueError, match=r'no raw files: looked in .* for \*\.jsonl\* .*, valtest, '):
        vcr.Builder.files(tmp_path / 'empty')


@pytest.mark.parametrize(
    'folder', ['vcr1images', 'images', '', 'vcr1/vcr1images', 'a/b', '../vcr1images', '../vcr1/vcr1images']
)
def test_boxes_come_from_a_folder_of_films(raw, folder):
    inner = raw / 'raw'
    inner.mkdir()
    for path in raw.glob('*.jsonl'):
        path.rename(inner / path.name)
    raw = inner
    film = raw / folder / 'film'
    film.mkdir(parents=True)
    for n in range(100):
        document = {'boxes': [[0, 0, n + 1, 1, 0.5]], 'width': 200, 'height': 2, 'names': ['person']}
        (film / f'p{n}@0.json').write_text(json.dumps(document))
    files = vcr.Builder.files(raw)
    assert files['train']['metadata'].resolve() == (raw / folder).resolve()
    (film / 'p1@0.jpg').touch()
    assert vcr.Builder.pictures(raw).resolve() == (raw / folder).resolve()
    assert vcr.Builder.remarks(files) == []
    assert {e.extra['boxes'][0][2] for e in vcr.Builder.read(files['dev'])} <= set(range(1, 101))
    with pytest.raises(ValueError, match=r'val\.jsonl:1: train-0: metadata file .*v0@0\.json does not exist'):
        list(vcr.Builder.read(files['test']))
    assert vcr.Builder.sources(raw) == [raw / 'train.jsonl', raw / 'val.jsonl']  # 110,000 files are not compared


def test_a_picture_is_found_by_its_id(tmp_path):
    path = tmp_path / 'lsmdc_3015' / '3015_CHARLIE_00.23.57.935-00.24.00.783@0.jpg'
    path.parent.mkdir()
    path.touch()
    assert pictures.Images(tmp_path)['3015_CHARLIE_00.23.57.935-00.24.00.783@0'] == path
    assert pictures.Images(tmp_path)['3015_CHARLIE_00.23.57.935-00.24.00.783@1'] is None
