import gzip

import pytest
from written import write

from evil_jax.data.sources import vqav2

TEN = ['red'] * 3 + ['Red'] * 1 + ['dark red'] * 2 + ['blue'] * 4


def question(qid=1, **changes):
    return {'question_id': qid, 'image_id': 9, 'question': 'What colour?'} | changes


def annotation(qid=1, **changes):
    answers = [{'answer': a, 'answer_id': n} for n, a in enumerate(TEN, 1)]
    return {'question_id': qid, 'image_id': 9, 'answers': answers, 'answer_type': 'other'} | changes


def test_raw_answers_are_counted_as_written(tmp_path):
    questions = write(tmp_path / 'q.json', {'data_subtype': 'val2014', 'questions': [question()]})
    annotations = write(tmp_path / 'a.json', {'annotations': [annotation(multiple_choice_answer='blue')]})
    (example,) = vqav2.read(questions, annotations)
    assert example.answers == {'red': 0.9, 'Red': 0.3, 'dark red': 0.6, 'blue': 1.0}
    assert example.annotations == TEN
    assert example.image_id == 'COCO_val2014_000000000009'
    assert (example.id, example.text, example.answer_type) == ('1', 'What colour?', 'other')
    assert example.question_type is None
    assert example.extra == {'multiple_choice_answer': 'blue'}


def test_a_test_split_has_no_answers(tmp_path):
    questions = write(tmp_path / 'q.json', {'questions': [question(1), question(2)]})
    annotations = write(tmp_path / 'a.json', {'annotations': [annotation(2)]})
    assert [e.answers for e in vqav2.read(questions)] == [None, None]
    first, second = vqav2.read(questions, annotations)
    assert first.answers is None
    assert first.annotations is None
    assert second.answers['blue'] == 1.0
    assert first.image_id == '9'


def test_explanations_join_by_question_id(tmp_path):
    questions = write(tmp_path / 'q.json', {'questions': [question(1), question(2)]})
    explanations = write(tmp_path / 'e.json', {'2': ['it is blue ', 'so it is'], '77': ['of another question']})
    assert [e.explanations for e in vqav2.read(questions, None, explanations)] == [[], ['it is blue', 'so it is']]


Q, A, E = 'q.json', 'a.json', 'e.json'
BAD = {
    'no questions': (Q, {'info': 1}, "q.json: has no 'questions', only info"),
    'no object': (Q, [1], 'q.json: the document is .* wanted object'),
    'record': (Q, {'questions': [question(), 'x']}, "q.json: record 2 is 'x', wanted object"),
    'no id': (Q, {'questions': [{'question': 'x'}]}, "q.json: record 1: has no 'question_id'"),
    'twice': (Q, {'questions': [question(5), question(5)]}, 'q.json: question 5: .*twice'),
    'text': (Q, {'questions': [question(5, question=None)]}, 'q.json: question 5: question is None, wanted text'),
    'empty': (Q, {'questions': [question(5, question=' ')]}, 'q.json: question 5: question is empty'),
    'image': (Q, {'questions': [question(5, image_id=True)]}, 'q.json: question 5: image_id is True'),
    'nine': (A, {'annotations': [annotation(answers=[{'answer': 'x'}] * 9)]}, 'question 1: has 9 .* wanted 10'),
    'number': (A, {'annotations': [annotation(answers=[{'answer': 3}] * 10)]}, 'question 1: .* is 3, wanted text'),
    'answers': (A, {'annotations': [annotation(answers='red')]}, "question 1: answers is 'red', wanted list"),
    'a twice': (A, {'annotations': [annotation(), annotation()]}, 'a.json: question 1: .*twice'),
    'picture': (A, {'annotations': [annotation(image_id=8)]}, 'question 1 is about picture 9, its annotation about 8'),
    'reason': (E, {'1': [3]}, 'e.json: question 1: an entry is 3, wanted text'),
    'no reason': (E, {'1': ['']}, 'e.json: question 1: an entry is empty'),
}


@pytest.mark.parametrize(('name', 'document', 'message'), BAD.values(), ids=BAD)
def test_malformed_records_are_named(tmp_path, name, document, message):
    good = {Q: {'questions': [question()]}, A: {'annotations': [annotation()]}, E: {'1': ['because']}}
    paths = [write(tmp_path / file, document if file == name else good[file]) for file in (Q, A, E)]
    with pytest.raises(ValueError, match=message):
        list(vqav2.read(*paths))


def test_a_broken_file_is_named_with_its_line(tmp_path):
    path = tmp_path / 'q.json'
    path.write_text('{"questions": [\n{"question_id": 1,,}]}', encoding='utf-8')
    with pytest.raises(ValueError, match=r'q\.json:2: not JSON'):
        list(vqav2.read(path))
    path.write_bytes(gzip.compress(b'{"questions": []}')[:-9])
    with pytest.raises(ValueError, match=r'q\.json: cannot be read'):
        list(vqav2.read(path))
    with pytest.raises(ValueError, match=r'absent\.json: cannot be read'):
        list(vqav2.read(tmp_path / 'absent.json'))


def test_the_60_000_real_questions(shared):
    counts = {'train': 48_061, 'valid': 8_977, 'test': 2_962}
    folder = shared / 'data' / 'vqav2'
    for split, count in counts.items():
        names = (folder / f'vqa_questions_{split}.gzip', folder / f'vqa_annotatons_{split}.gzip')
        examples = list(vqav2.read(*names, shared / 'data' / 'vqax' / 'scr_train_exp_anno.json'))
        assert len(examples) == len({e.id for e in examples}) == count
        assert all(len(e.annotations) == 10 and max(e.answers.values()) >= 0.3 for e in examples)
        assert {e.answer_type for e in examples} == {'yes/no', 'number', 'other'}
    assert sum(bool(e.explanations) for e in examples) == 165
