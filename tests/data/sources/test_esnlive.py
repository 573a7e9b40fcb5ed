import collections
import gzip

import pytest

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
