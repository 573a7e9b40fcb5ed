import pytest
from written import write

from evil_jax.data.sources import vqax

TEN = [{'answer': 'shower'}] * 10


def test_real_nlx_gpt_files(shared):
    folder = shared / 'data' / 'vqax'
    for split, count in {'val': 1_459, 'test': 1_968}.items():
        examples = list(vqax.read(folder / f'vqaX_{split}.json'))
        assert len(examples) == count
        assert sum(len(e.explanations) for e in examples) == 3 * count
    shower = next(e for e in examples if e.id == '262284001')
    assert (shower.text, shower.answers) == ('What is this?', {'shower': 1.0})
    assert shower.image_id == 'COCO_val2014_000000262284'
    assert shower.explanations[1] == 'there is a shower head'


def test_original_form_joins_all_vqa_v2_files(tmp_path):
    explained = write(tmp_path / 'e.json', {'2': ['it is wet'], '7': ['tiles', 'a hose']})
    row = lambda qid: {'question_id': qid, 'image_id': 4, 'question': f'What is {qid}?'}
    questions = [
        write(tmp_path / 'q1.json', {'questions': [row(1), row(2)]}),
        write(tmp_path / 'q2.json', {'data_subtype': 'val2014', 'questions': [row(7), row(8)]}),
    ]
    annotations = [write(tmp_path / 'a.json', {'annotations': [{'question_id': 7, 'answers': TEN}]})]
    two, seven = vqax.read(explained, questions, annotations)
    assert (two.id, two.text, two.image_id, two.answers, two.explanations) == (
        '2',
        'What is 2?',
        '4',
        None,
        ['it is wet'],
    )
    assert (seven.image_id, seven.answers) == ('COCO_val2014_000000000004', {'shower': 1.0})
    assert seven.explanations == ['tiles', 'a hose']
    with pytest.raises(ValueError, match=r'e\.json: 1 of 2 question ids have no question in .*q1\.json.*: 7'):
        list(vqax.read(explained, questions[:1]))
    with pytest.raises(ValueError, match=r'e\.json: holds explanations only'):
        list(vqax.read(explained))


def lxmert(**changes):
    row = {'question_id': 3, 'img_id': 'COCO_val2014_000000000004', 'sent': 'Wet?', 'label': {'yes': 1, 'no': 0.3}}
    return row | {'explanation': ['it drips'], 'answer_type': 'yes/no'} | changes


def test_lxmert_form(tmp_path):
    rows = [lxmert(), lxmert(question_id=4, explanation='one text')]
    del rows[1]['answer_type']
    first, second = vqax.read(write(tmp_path / 'x.json', rows))
    assert (first.id, first.image_id, first.text) == ('3', 'COCO_val2014_000000000004', 'Wet?')
    assert first.answers == {'yes': 1.0, 'no': 0.3}
    assert (first.annotations, first.answer_type, second.answer_type) == (None, 'yes/no', None)
    assert second.explanations == ['one text']


def test_eug_file_with_one_to_three_explanations(tmp_path):
    rows = [
        lxmert(question_id=n, explanation=['a', 'b', 'c'][:n], label={'yes': 0.3, 'no': 0.9, 'maybe': 0.6, 'so': 1})
        for n in (1, 2, 3)
    ]
    examples = list(vqax.read(write(tmp_path / 'train_x.json', rows)))
    assert [e.explanations for e in examples] == [['a'], ['a', 'b'], ['a', 'b', 'c']]
    assert examples[0].answers == {'yes': 0.3, 'no': 0.9, 'maybe': 0.6, 'so': 1.0}
    assert [e.id for e in examples] == ['1', '2', '3']


def test_a_question_id_in_two_files(tmp_path):
    explained = write(tmp_path / 'e.json', {'2': ['it is wet']})
    row = {'question_id': 2, 'image_id': 4, 'question': 'What?'}
    first, second = (write(tmp_path / f'{n}.json', {'questions': [row]}) for n in 'ab')
    assert len(list(vqax.read(explained, [first, second]))) == 1  # of minival, say
    write(second, {'questions': [row | {'question': 'Who?'}]})
    with pytest.raises(ValueError, match=r'b\.json: question 2 is another one in a file before it'):
        list(vqax.read(explained, [first, second]))
    annotations = write(tmp_path / 'c.json', {'annotations': [{'question_id': 2, 'image_id': 5, 'answers': TEN}]})
    with pytest.raises(ValueError, match=r'c\.json: question 2 is about picture 4, its annotation about 5'):
        list(vqax.read(explained, [first], [annotations]))
    (tmp_path / 'e.json').write_text('{"2": ["a"], "3": ["b"], "2": ["c"]}')
    with pytest.raises(ValueError, match=r"e\.json: the key '2' appears twice in one JSON object"):
        list(vqax.read(explained, [first]))


@pytest.mark.parametrize(
    ('document', 'message'),
    [
        ([lxmert(label={'yes': 1.5})], r"x\.json: question 3: score of 'yes' is 1.5, wanted a number in \[0, 1\]"),
        ([lxmert(label={'yes': float('nan')})], r"question 3: score of 'yes' is nan"),
        ([lxmert(label={'\udfff': 1})], r'question 3: an answer has half a surrogate pair'),
        ([lxmert(label={'yes': 10**400})], r"question 3: score of 'yes' is 1000.*0, wanted a number in"),
        ([lxmert(img_id=' ')], r'question 3: img_id is empty'),
        ({' ': {}}, r'x\.json: a question id is empty'),
        ([lxmert(label='yes')], r"x\.json: question 3: label is 'yes', wanted object"),
        ([lxmert(), lxmert()], r'x\.json: question 3: .*twice'),
        ([lxmert(sent=' ')], r'x\.json: question 3: sent is empty'),
        ([{'sent': 'x'}], r"x\.json: record 1: has no 'question_id'"),
        ({'3': {'question': 'x', 'image_name': 'i.jpg'}}, r"x\.json: question 3: has no 'answers'"),
        ({'3': {'question': 'x', 'answers': TEN}}, r"x\.json: question 3: has no 'image_name'"),
        ({'3': {'question': 'x', 'answers': TEN[:9], 'image_name': 'i.jpg'}}, r'question 3: has 9 .* wanted 10'),
        ({'3': ['fine'], '4': 5}, r'x\.json: question 4 is 5, wanted list'),
        ('"text"', r"x\.json: the document is 'text', wanted object or list"),
    ],
)
def test_malformed_records_are_named(tmp_path, document, message):
    with pytest.raises(ValueError, match=message):
        list(vqax.read(write(tmp_path / 'x.json', document), ['never opened']))
