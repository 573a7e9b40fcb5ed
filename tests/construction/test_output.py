import csv
import dataclasses
import json
import math

import pytest
from judgements import judged, pair

from evil_jax.construction import output
from evil_jax.construction.pairs import Pair
from evil_jax.data.builders.esnlive import Builder


@pytest.mark.parametrize('split', ['dev', 'test'])
def test_a_released_file_is_written_again_byte_for_byte(shared, tmp_path, split):
    path = shared / 'data' / 'esnlive' / f'esnlive_{split}.csv'
    with open(path, encoding='utf-8', newline='') as file, output.writer(tmp_path, [split]) as writer:
        for row in csv.DictReader(file):
            texts = '', row['hypothesis'], row['gold_label'], split, [row['explanation']]
            writer.keep(Pair(row['pairID'], row['Flickr30kID'].removesuffix('.jpg'), *texts))
    assert writer.rows == {split: {'dev': 14_339, 'test': 14_740}[split]}
    assert output.csv_path(tmp_path, split).read_bytes() == path.read_bytes()
    assert output.removed_path(tmp_path).read_bytes() == b''


def test_the_builder_reads_what_was_written(tmp_path):
    odd = '=1+2, "three"\nlines \u2028 \r é'
    with output.writer(tmp_path, ['train', 'dev', 'test'], 'all') as writer:
        for i, split in enumerate(('train', 'dev', 'test', 'train')):
            writer.keep(pair(i, split=split, hypothesis=odd, explanations=['one', '-two', 'three'][: i + 1]))
    assert writer.rows == {'train': 2, 'dev': 1, 'test': 1}
    files = Builder.files(tmp_path)
    train = list(Builder.read(files['train']))
    assert [(e.id, e.image_id, e.text, e.label) for e in train] == [
        ('0.jpg#0r1n', '0', odd, 'neutral'), ('3.jpg#0r1n', '0', odd, 'neutral')
    ]  # fmt: skip
    assert [e.explanations for e in train] == [['one'], ['one', '-two', 'three']]


def test_removed_pairs_have_the_reason_and_what_it_rests_on(tmp_path):
    scores = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]
    with output.writer(tmp_path, ['train']) as writer:
        writer.remove(judged(pair(0, hypothesis='é'), meaning=2.5, words=1, scores=scores), 'five captions say so')
        writer.remove(judged(pair(1), meaning=math.nan, words=1), "it has 'sentence'")
    rows = list(map(json.loads, output.removed_path(tmp_path).read_text().splitlines()))
    assert [(row['id'], row['reason'], row['detail'], row['removing']) for row in rows] == [
        ('0.jpg#0r1n', 'meaning', 'five captions say so', ['meaning', 'words']),
        ('1.jpg#0r1n', 'words', "it has 'sentence'", ['words']),
    ]
    assert rows[0]['scores'] == scores and 'scores' not in rows[1]
    assert rows[1]['values'] == {'meaning': None, 'words': 1} and rows[0]['hypothesis'] == 'é'


def test_after_an_error_older_files_are_as_they_were(tmp_path):
    bad, message = pair(1, split='test', where='m.jsonl:2'), "m.jsonl:2: split 'test', wanted train"
    older = output.csv_path(tmp_path, 'train')
    older.write_text('older')
    (tmp_path / '.esnlive_dev.csv.aB3_x9zq').write_text('of a run that was killed')
    with pytest.raises(ValueError, match=message), output.writer(tmp_path, ['train']) as writer:
        writer.keep(pair(0))
        writer.keep(bad)
    assert [path.name for path in tmp_path.iterdir()] == ['esnlive_train.csv'] and older.read_text() == 'older'


def test_what_a_pair_lacks_is_an_empty_cell_and_splits_without_pairs_have_no_file(tmp_path):
    output.csv_path(tmp_path, 'dev').write_text('of an earlier run')
    with output.writer(tmp_path, ['train']) as writer:
        writer.keep(dataclasses.replace(pair(0, explanations=[]), image_id=''))
        writer.drop(pair(1), 'no_majority', 'nobody agrees')
    assert output.csv_path(tmp_path, 'train').read_text().splitlines()[1].endswith(',')
    assert ',,' in output.csv_path(tmp_path, 'train').read_text().splitlines()[1]
    (row,) = map(json.loads, output.removed_path(tmp_path).read_text().splitlines())
    assert (row['id'], row['reason'], row['detail']) == ('1.jpg#0r1n', 'no_majority', 'nobody agrees')
    assert not output.csv_path(tmp_path, 'dev').exists()
