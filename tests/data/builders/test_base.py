import json
import subprocess
import sys

import pytest
import tensorflow_datasets as tfds

from evil_jax.data.builders import _base, esnlive, vqav2, vqax
from evil_jax.records import Example

FULL = Example(
    id='é1',
    image_id='9',
    text='What?',
    choices=['a', ''],
    label=2,
    answers={'x': 1 / 3, '': 0.1},
    annotations=['x'] * 10,
    answer_type='other',
    question_type='what',
    objects=['person'],
    explanations=['one', 'two'],
    extra={'scene': {'n': [1, None]}, 'ü': True},
)
EMPTY = Example('2', '9', '', [], '', {}, [], '', '', [])  # everything set, and empty
UNSET = Example('3', '9', 'x')


class Given(_base.ExampleBuilder, skip_registration=True):
    """Examples that a test gives."""

    description = 'for tests'
    examples = {'train': [FULL, EMPTY, UNSET], 'dev': [UNSET, FULL]}

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        return {split: {'file': split} for split in cls.examples}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return iter(cls.examples[files['file']])


def prepare(builder, manual_dir):
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(manual_dir=manual_dir))
    return {s: list(map(_base.decode, builder.as_data_source(split=s))) for s in builder.info.splits}


def test_all_fields_come_back_in_order(tmp_path):
    builder = Given(data_dir=tmp_path)
    assert prepare(builder, tmp_path) == Given.examples  # exact: also 1 / 3, and None is not []
    again = tfds.builder_from_directory(builder.data_dir).as_data_source(split='train')
    assert _base.decode(again[1]) == EMPTY
    assert [p.name for p in tmp_path.glob('given/1.0.0/given-train.array_record*')]


def test_limit_counts_what_is_kept(tmp_path):
    builder = Given(data_dir=tmp_path, limit=1, keep=lambda example: example.label is None)
    assert prepare(builder, tmp_path) == {'train': [UNSET], 'dev': [UNSET]}


@pytest.mark.parametrize(
    ('name', 'split'),
    [
        ('v2_OpenEnded_mscoco_train2014_questions.json', 'train'),
        ('v2_OpenEnded_mscoco_val2014_questions.json', 'dev'),
        ('v2_OpenEnded_mscoco_test-dev2015_questions.json', 'test'),
        ('vqa_annotatons_valid.gzip', 'dev'),
        ('esnlive_dev.csv', 'dev'),
        ('vqaX_val.json', 'dev'),
        ('scr_test_exp_anno.json', 'test'),
        ('validation_questions.json', 'dev'),
        ('trainval_label2ans.json', None),
        ('retrieval_questions.json', None),
        ('latest_questions.json', None),
    ],
)
def test_split_of_a_file_name(name, split):
    assert _base.split_of(name) == split


def test_real_folders(shared):
    data = shared / 'data'
    files = vqav2.Builder.files(data / 'vqav2')
    assert {s: f['annotations'].name for s, f in files.items()} == {
        'train': 'vqa_annotatons_train.gzip',
        'dev': 'vqa_annotatons_valid.gzip',
        'test': 'vqa_annotatons_test.gzip',
    }
    assert all(f['explanations'] is None for f in files.values())
    assert list(esnlive.Builder.files(data / 'esnlive')) == ['dev', 'test']
    with pytest.raises(ValueError, match=r'both scr_test_exp_anno.json and vqaX_test.json could be the test split'):
        vqax.Builder.files(data / 'vqax')


def test_settings_that_make_no_difference_are_told():
    options = _base.Options(labels='original', tag_base=0, dev_share=0.2)
    told = lambda builder: [line.split()[0] for line in builder.remarks({}, options)]
    assert told(vqav2.Builder) == ['data.labels', 'data.tag_base', 'data.dev_share']
    assert told(esnlive.Builder) == ['data.tag_base', 'data.dev_share']
    assert vqav2.Builder.remarks({}) == []


def test_where_labels_come_from(tmp_path):
    files = {'rows': tmp_path / 'esnlive_dev.csv'}
    for content, options, labels in (
        ('pairID', _base.DEFAULT, 'gold'), ('pairID', _base.Options('original'), 'original'),
        (' [{}]', _base.DEFAULT, 'json'), ('[{}]', _base.Options('original'), 'original'),
    ):  # fmt: skip
        files['rows'].write_text(content)
        assert esnlive.Builder.marks(files, options) == {'labels': labels}
    assert vqav2.Builder.marks({}) == {}


def test_absent_files_are_described(tmp_path):
    (tmp_path / 'notes.txt').touch()
    with pytest.raises(
        ValueError, match=r'looked in .* for \*questions\* with one of .*train, dev, .* holds notes.txt'
    ):
        vqav2.Builder.files(tmp_path)
    with pytest.raises(ValueError, match=r'the folder does not exist. Set data.manual_dir'):
        esnlive.Builder.files(tmp_path / 'absent')


def test_vqax_original_form_as_a_data_set(tmp_path):
    raw = tmp_path / 'raw'
    raw.mkdir()
    questions = [{'question_id': n, 'image_id': n, 'question': f'What is {n}?'} for n in range(4)]
    answers = [{'question_id': n, 'answers': [{'answer': 'it'}] * 10} for n in range(4)]
    for name, document in {
        'v2_OpenEnded_mscoco_val2014_questions.json': {'data_subtype': 'val2014', 'questions': questions},
        'v2_mscoco_val2014_annotations.json': {'annotations': answers},
        'val_exp_anno.json': {'1': ['a'], '0': ['b', 'c']},
        'test_exp_anno.json': {'3': ['d']},
    }.items():
        (raw / name).write_text(json.dumps(document))
    found = prepare(vqax.Builder(data_dir=tmp_path / 'out'), raw)
    assert {s: [(e.id, e.explanations) for e in rows] for s, rows in found.items()} == {
        'dev': [('1', ['a']), ('0', ['b', 'c'])],
        'test': [('3', ['d'])],
    }
    assert found['test'][0].image_id == 'COCO_val2014_000000000003'
    assert found['test'][0].answers == {'it': 1.0}


def test_neither_tensorflow_nor_jax_is_imported(tmp_path):
    """The whole way there and back, in a fresh interpreter."""
    (tmp_path / 'esnlive_dev.csv').write_text('pairID,Flickr30kID,hypothesis,gold_label\na,1.jpg,h,neutral\n')
    code = f"""
import sys
import tensorflow_datasets as tfds
from evil_jax.data.builders import _base, esnlive
builder = esnlive.Builder(data_dir={str(tmp_path)!r})
builder.download_and_prepare(download_config=tfds.download.DownloadConfig(manual_dir={str(tmp_path)!r}))
source = tfds.builder_from_directory(builder.data_dir).as_data_source(split='dev')
assert _base.decode(source[0]).label == 'neutral'
print([name for name in ('tensorflow', 'jax', 'grain') if name in sys.modules])
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ['[]'], done.stderr


@pytest.mark.acceptance
def test_60_000_real_questions_as_a_data_set(shared, tmp_path):
    builder = vqav2.Builder(data_dir=tmp_path)
    raw = shared / 'data' / 'vqav2'
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(manual_dir=raw))
    sizes = {split: info.num_examples for split, info in builder.info.splits.items()}
    assert sizes == {'train': 48_061, 'dev': 8_977, 'test': 2_962}
    source = builder.as_data_source(split='dev')
    for position, example in enumerate(vqav2.Builder.read(vqav2.Builder.files(raw)['dev'])):
        if position % 100 == 0:
            assert _base.decode(source[position]) == example
