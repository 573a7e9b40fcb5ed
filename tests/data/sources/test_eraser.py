import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evil_jax.data.builders import _base
from evil_jax.data.builders.eraser import Builder
from evil_jax.data.sources import eraser

DOCUMENT = 'a bad  film .\n\n  it is\xa0not good , no .\r\n'
TOKENS = ['a', 'bad', 'film', '.', 'it', 'is\ufffdnot', 'good', ',', 'no', '.']


def span(docid, start, end, text=None):
    row = {'docid': docid, 'start_token': start, 'end_token': end, 'start_sentence': -1, 'end_sentence': -1}
    return row | ({} if text is None else {'text': text})


def record(name='r1', **changes):
    row = {'annotation_id': name, 'query': 'What?', 'query_type': None, 'classification': 'NEG', 'docids': None,
           'evidences': [[span('d1', 1, 3, 'bad film')], [span('d1', 5, 7, 'is\xa0not  good')]]}  # fmt: skip
    return row | changes


def write(folder, rows, split='train'):
    (folder / 'docs').mkdir(exist_ok=True)
    (folder / 'docs' / 'd1').write_text(DOCUMENT, newline='')
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / f'{split}.jsonl').write_text('\n'.join(lines))
    return folder


def read(folder, split='train'):
    return list(Builder.read(Builder.files(folder)[split]))


def test_30_spans_of_real_reviews_have_exact_offsets(shared, tmp_path):
    folder = shared / 'data/attribution/eraser_movies_sample'
    (tmp_path / 'docs').symlink_to(folder / 'docs')
    (tmp_path / 'train.jsonl').symlink_to(folder / 'sample.jsonl')
    examples = read(tmp_path)
    assert [(e.id, e.label, len(e.text.split())) for e in examples] == [
        ('negR_000.txt', 'NEG', 847), ('negR_003.txt', 'NEG', 604), ('negR_805.txt', 'NEG', 767),
    ]  # fmt: skip
    rows = [json.loads(line) for line in (folder / 'sample.jsonl').read_text().splitlines()]
    spans = 0
    for example, row in zip(examples, rows, strict=True):
        words = example.text.split()
        for (start, end), group in zip(example.extra['evidence'], row['evidences'], strict=True):
            assert ' '.join(words[start:end]) == group[0]['text']
            spans += 1
    assert spans == 30


def test_an_example_and_its_document(tmp_path):
    write(tmp_path, [record(), record('r2', classification='POS', evidences=[], docids=['d1'])])
    write(tmp_path, [record('r3', evidences=[[span('d1', 0, 10)]])], 'val')
    first, second = read(tmp_path)
    assert (first.id, first.image_id, first.label) == ('r1', 'd1', 'NEG')
    assert first.text.split() == TOKENS  # the no-break space makes no word
    assert first.extra == {'docid': 'd1', 'evidence': [[1, 3], [5, 7]]}
    assert (second.label, second.extra['evidence']) == ('POS', [])
    assert [e.id for e in read(tmp_path, 'dev')] == ['r3']
    assert (Builder.name, Builder.classes, Builder.inputs) == ('eraser', ('NEG', 'POS'), 'text')
    assert [p.name for p in Builder.sources(tmp_path)] == ['train.jsonl', 'val.jsonl']


def test_documents_in_one_file_are_the_same(tmp_path):
    one, many = tmp_path / 'one', tmp_path / 'many'
    for folder in (one, many):
        folder.mkdir()
        write(folder, [record()])
    (one / 'docs' / 'd1').unlink()
    (one / 'docs').rmdir()
    (one / 'docs.jsonl').write_text(json.dumps({'docid': 'd1', 'document': DOCUMENT}) + '\n')
    assert read(one) == read(many)
    documents = eraser.documents(eraser.place(many))
    assert list(documents) == ['d1'] and len(documents) == 1 and documents['d1'] == TOKENS
    (one / 'docs').mkdir()
    with pytest.raises(ValueError, match=r'has both docs/ and docs\.jsonl'):
        read(one)
    (one / 'docs').rmdir()
    (one / 'docs.jsonl').unlink()
    with pytest.raises(ValueError, match='has neither docs/ nor'):
        read(one)


def test_evidence_in_groups_over_several_documents(tmp_path):
    write(tmp_path, [record(evidences=[[span('d1', 0, 1), span('d2', 1, 2)]])])
    (tmp_path / 'docs' / 'd2').write_text('x y z')
    docs = eraser.documents(eraser.place(tmp_path))
    (found,) = eraser.read(tmp_path / 'train.jsonl', docs)
    assert found.docids == ('d1', 'd2') and found.groups == ((('d1', 0, 1), ('d2', 1, 2)),)
    with pytest.raises(ValueError, match='is about 2 documents'):
        read(tmp_path)


@pytest.mark.parametrize(
    ('row', 'message'),
    [
        (record(evidences=[[span('d1', 1, 3, 'good film')]]), r"text is 'good film', but tokens 1 to 3 .* 'bad film'"),
        (record(evidences=[[span('d1', 8, 11)]]), 'evidence 1: start_token 8 and end_token 11 are no span.* 10 tokens'),
        (record(evidences=[[span('d1', 3, 3)]]), 'start_token 3 and end_token 3'),
        (record(evidences=[[span('d1', -1, -1, 'x')]]), 'start_token -1'),
        (record(evidences=[[span('d9', 0, 1)]]), "document 'd9' is not there"),
        (record(evidences=[[span('../train.jsonl', 0, 1)]]), 'is not there'),
        (record(evidences=[], docids=['d7']), "document 'd7' is not there"),
        (record('d7', evidences=[]), "document 'd7' is not there"),
        (record(classification='MAYBE'), "classification is 'MAYBE', wanted one of NEG, POS"),
        (record(evidences=[span('d1', 0, 1)]), 'evidence 1 is .* wanted list'),
        (record(evidences=None), 'evidences is None, wanted list'),
        (record(evidences=[[span('d1', 1.0, 3)]]), 'start_token is 1.0, wanted int'),
        ('{"annotation_id": ', 'not JSON'),
        (record('r0'), "annotation 'r0' is at .*:1 already"),
    ],
)
def test_bad_records_name_file_line_and_annotation(tmp_path, row, message):
    write(tmp_path, [record('r0'), row])
    with pytest.raises(ValueError, match=rf'train\.jsonl:2: (annotation .*)?{message}'):
        read(tmp_path)


def test_bad_documents(tmp_path):
    write(tmp_path, [record()])
    (tmp_path / 'docs' / 'd1').write_bytes(b'a \xff')
    with pytest.raises(ValueError, match=r'd1: not UTF-8 text at byte 2'):
        read(tmp_path)
    (tmp_path / 'train.jsonl').unlink()
    with pytest.raises(ValueError, match=r'looked in .* for train\.jsonl or'):
        Builder.files(tmp_path)


_VALUE = (
    st.none()
    | st.booleans()
    | st.integers(-2, 12)
    | st.floats()
    | st.sampled_from(['', 'd1', 'x', '\0', '..', '\ud800'])
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_records(tmp_path, data):
    row = copy.deepcopy(record())
    places = [(row, key) for key in row] + [(part, key) for group in row['evidences'] for part in group for key in part]
    where, key = data.draw(st.sampled_from(places))
    where[key] = data.draw(_VALUE | st.lists(_VALUE, max_size=2) | st.dictionaries(st.sampled_from(['a']), _VALUE))
    try:
        (example,) = read(write(tmp_path, [row]))
    except ValueError as error:
        assert 'train.jsonl:1' in str(error) or 'train.jsonl: annotation' in str(error)
        return
    assert all(0 <= start < end <= len(TOKENS) for start, end in example.extra['evidence'])
    assert example.label in Builder.classes
    _base.encode(example)
