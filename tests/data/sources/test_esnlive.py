import collections
import dataclasses
import gzip
import json

import pytest

from evil_jax.data.builders import _base
from evil_jax.data.builders.esnlive import Builder
from evil_jax.data.sources import esnlive

HEADER = ',pairID,Flickr30kID,hypothesis,gold_label,explanation\n'
ROW = '0,44.jpg#2r1c,44.jpg,"A man, alone.",contradiction,"He ""is"" not.\nThere are two."\n'


def test_real_files_have_the_published_counts(shared):
    wanted = {
        'dev': {'contradiction': 5_643, 'neutral': 3_442, 'entailment': 5_254},
        'test': {'contradiction': 5_721, 'neutral': 3_801, 'entailment': 5_218},
    }
    for split, counts in wanted.items():
        examples = list(esnlive.read(shared / 'data' / 'esnlive' / f'esnlive_{split}.csv'))
        assert collections.Counter(e.label for e in examples) == counts
        assert len({e.image_id for e in examples}) == 1_000
        assert all(len(e.explanations) == 1 for e in examples)
        relabelled = sum(e.id[-1] != e.label[0] for e in examples)
        assert relabelled == {'dev': 1_708, 'test': 1_689}[split]
        if split == 'dev':
            assert examples[0].image_id == '4465359505'
            assert examples[0].explanations == ['Hair and tree are two different things.']


def test_the_letter_at_the_end_of_a_pair_id_is_the_label_only_on_request(shared, tmp_path):
    files = Builder.files(shared / 'data' / 'esnlive')
    original = dataclasses.replace(_base.DEFAULT, labels='original')
    for split, moved in {
        'dev': {('neutral', 'entailment'): 843, ('neutral', 'contradiction'): 837},
        'test': {('neutral', 'entailment'): 828, ('neutral', 'contradiction'): 827},
    }.items():
        before = list(Builder.read(files[split], original))
        after = list(Builder.read(files[split]))
        assert [dataclasses.replace(e, label='') for e in before] == [dataclasses.replace(e, label='') for e in after]
        pairs = collections.Counter((b.label, a.label) for b, a in zip(before, after) if b.label != a.label)
        assert {pair: pairs[pair] for pair in moved} == moved
        assert sum(pairs.values()) == {'dev': 1_708, 'test': 1_689}[split]
    assert 'labels' in Builder.heeds
    path = tmp_path / 'x.csv'
    path.write_text(HEADER + ROW + '1,44.jpg#2,44.jpg,h,neutral,e\n')
    assert len(list(esnlive.read(path))) == 2
    with pytest.raises(ValueError, match=r"x\.csv:4: data\.labels='original' wants .*\(c, n, e\).*is '44\.jpg#2'"):
        list(esnlive.read(path, 'original'))


def record(**changes):
    row = {'question_id': '4465.jpg#2r1c', 'img_id': 'flickr30k_000000004465.npz', 'sent': 'A man, alone.',
           'label': 'contradiction', 'explanation': ['He "is" not.\nThere are two.']}  # fmt: skip
    return row | changes


def test_both_forms_give_the_same_example(tmp_path):
    csv, document = tmp_path / 'esnlive_dev.csv', tmp_path / 'esnlive_test.json.gz'
    csv.write_text(HEADER + ROW.replace('44.jpg', '4465.jpg'))
    document.write_bytes(gzip.compress(json.dumps([record()]).encode()))
    files = Builder.files(tmp_path)
    assert list(Builder.read(files['test'])) == list(Builder.read(files['dev'])) != []
    # The label is what the file says; on request, what the id says.
    document.write_text(json.dumps([record(label='entailment', explanation='one')]))
    (example,) = esnlive.read(document)
    assert (example.label, example.explanations) == ('entailment', ['one'])
    (example,) = esnlive.read(document, 'original')
    assert example.label == 'contradiction'
    (tmp_path / 'esnlive_dev.json').touch()
    with pytest.raises(ValueError, match=r'both esnlive_dev\.csv and esnlive_dev\.json could be the dev split'):
        Builder.files(tmp_path)


def test_the_same_rows_in_both_forms(shared, tmp_path):
    """Real rows, put into the other form here."""
    wanted = list(esnlive.read(shared / 'data' / 'esnlive' / 'esnlive_dev.csv'))
    rows = [
        {
            'question_id': e.id,
            'img_id': f'flickr30k_{int(e.image_id):012d}.npz',
            'sent': e.text,
            'label': e.label,
            'explanation': e.explanations,
        }
        for e in wanted
    ]
    (tmp_path / 'x.json').write_text(json.dumps(rows))
    assert list(esnlive.read(tmp_path / 'x.json')) == wanted


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'label': 2}, 'label is 2, wanted text'),
        ({'label': 'maybe'}, "label is 'maybe', wanted one of contradiction"),
        ({'sent': ' '}, 'sent is empty'),
        ({'question_id': None}, 'question_id is None, wanted text'),
        ({'img_id': '.npz'}, "img_id is '.npz', which names no picture"),
        ({'explanation': [3]}, 'explanation: an entry is 3, wanted text'),
        ({'explanation': [' ']}, 'explanation: an entry is empty'),
        ({'sent': '\ud800'}, r"sent has half a surrogate pair, '\\ud800', which is no character"),
        ({'question_id': '4465.jpg#2r1c'}, r"pairID '4465.jpg#2r1c' was already at .*record 1"),
    ],
)
def test_malformed_json_records_are_named(tmp_path, changes, message):
    path = tmp_path / 'x.json'
    path.write_text(json.dumps([record(), record(question_id='b') | changes]))
    with pytest.raises(ValueError, match=rf'x\.json: record 2: {message}'):
        list(esnlive.read(path))


def test_quotes_line_breaks_and_gzip(tmp_path):
    path = tmp_path / 'esnlive_dev.csv.gz'
    path.write_bytes(gzip.compress((HEADER + ROW).encode()))
    (example,) = esnlive.read(path)
    assert (example.text, example.image_id, example.id) == ('A man, alone.', '44', '44.jpg#2r1c')
    assert example.explanations == ['He "is" not.\nThere are two.']


def test_up_to_three_references_or_none(tmp_path):
    path = tmp_path / 'x.csv'
    path.write_text('pairID,Flickr30kID,hypothesis,gold_label,explanation,explanation_2,explanation_3\n'
                    'a,1.jpg,h,neutral,one,two,3\nb,1.jpg,h,neutral,one,,3\nc,1.jpg,h,neutral,,,\n')  # fmt: skip
    assert [e.explanations for e in esnlive.read(path)] == [['one', 'two', '3'], ['one', '3'], []]
    path.write_text('pairID,Flickr30kID,hypothesis,gold_label\na,1.jpg,h,neutral\n')
    assert [e.explanations for e in esnlive.read(path)] == [[]]


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('', r'x\.csv: is empty'),
        ('pairID,hypothesis\n', r'x\.csv:1: has no column Flickr30kID, gold_label; it has: pairID, hypothesis'),
        (
            HEADER + ROW + '1,b,44.jpg,h,maybe,e\n',
            r"x\.csv:4: gold_label is 'maybe', wanted one of contradiction, neut",
        ),
        (HEADER + ROW + '1,b,44.jpg,h,neutral\n', r'x\.csv:4: has 5 cells, wanted 6'),
        (HEADER + ROW + '1,b,44.jpg, ,neutral,e\n', r'x\.csv:4: hypothesis is empty'),
        (HEADER + ROW + ROW, r"x\.csv:4: pairID '44.jpg#2r1c' was already at .*x\.csv:2"),
        (HEADER + '1,b,44.jpg,"h,neutral,e\n', r'x\.csv:2: not CSV'),
    ],
)
def test_malformed_rows_are_named_with_their_line(tmp_path, text, message):
    path = tmp_path / 'x.csv'
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        list(esnlive.read(path))
