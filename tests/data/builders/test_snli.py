"""SNLI as examples: pairs of texts, of the built-in world too."""

import collections
import gzip
import json

import pytest

from evil_jax.data import shapes, words
from evil_jax.data.builders import shapes_nli, snli


def test_pairs_with_a_label_are_examples(tmp_path):
    shapes.write_world('shapes_nli', tmp_path / 'raw', counts={'train': 150, 'test': 12}, seed=1)
    files = shapes_nli.Builder.files(tmp_path / 'raw')
    assert files['train']['rows'].name == 'snli_1.0_train.jsonl'
    lines = files['train']['rows'].read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row['gold_label'] != '-']
    examples = list(shapes_nli.Builder.read(files['train']))
    assert len(rows) < len(lines) and [example.id for example in examples] == [row['pairID'] for row in rows]
    for example, row in zip(examples, rows):
        assert words.halves(example.text) == (row['sentence1'], row['sentence2'])
        assert (example.label, example.explanations) == (row['gold_label'], [])
        assert shapes.label_by_caption(*words.halves(example.text)) == example.label
    shares = collections.Counter(example.label for example in examples)
    assert set(shares) == set(snli.Builder.classes) and min(shares.values()) > 30


def test_files_are_found_by_their_names(tmp_path):
    for split in ('train', 'dev'):
        with gzip.open(tmp_path / f'snli_1.0_{split}.jsonl.gz', 'wt') as file:
            row = {'gold_label': 'neutral', 'pairID': '1.jpg#0r1n', 'captionID': '1.jpg#0'}
            file.write(json.dumps(row | {'sentence1': 'A dog .', 'sentence2': 'A cat .'}) + '\n')
    files = snli.Builder.files(tmp_path)
    assert list(files) == ['train', 'dev']
    assert [example.text for example in snli.Builder.read(files['dev'])] == ['A dog . [SEP] A cat .']
    with pytest.raises(ValueError, match=r'no raw files: looked in .* for snli_1\.0_\*\.jsonl'):
        snli.Builder.files(tmp_path / 'none')
