"""Files of e-ViL's and OFA-X's code, and our own."""

import json
import random
import re

import pytest
from written import lines, write

from evil_jax import lookup, records
from evil_jax.data import outputs
from evil_jax.records import Example, Prediction

# --- ours ---


def test_what_decoding_writes_is_read_as_it_was(tmp_path):
    said = [
        Prediction('1', 'dog', 2, {'dog': 0.5}, 'gold', 'Zoë ||| a\nb', [1, 2]),
        Prediction('2', None, explanation=None),
        Prediction('1', '', explanation=''),
    ]
    records.write_jsonl(tmp_path / 'p.jsonl', said)
    assert outputs.read(tmp_path / 'p.jsonl') == said


def test_lines_by_hand(tmp_path):
    path = write(tmp_path / 'p.jsonl', '\ufeff{"id": 7, "explanation": "so"}\n\n{"id": "8", "answer": "yes"}\n')
    assert outputs.read(path) == [Prediction('7', None, explanation='so'), Prediction('8', 'yes', explanation='')]


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        ('{"id": "1"}', r"p\.jsonl:2: missing field 'answer'"),
        ('{"answer": "a"}', r"p\.jsonl:2: missing field 'id'"),
        ('{"id": "", "answer": "a"}', r'p\.jsonl:2: id is empty'),
        ('{"id": 1.0, "answer": "a"}', r'p\.jsonl:2: id is 1\.0'),
        ('{"id": "1", "answer": 3}', r"p\.jsonl:2: field 'answer' is 3"),
        ('{"id": "1", "answer": "a", "anwser": "b"}', r"p\.jsonl:2: unknown field 'anwser'"),
        ('{"id": "1", "id": "2", "answer": "a"}', r"p\.jsonl:2: the key 'id' appears twice"),
        ('{"id": "1", "answer": "a", "answer_scores": {"a": NaN}}', r'p\.jsonl:2: nan is no JSON number'),
        ('{"id": "1", "answer": "\\ud800"}', r'p\.jsonl:2.*surrogate'),
        ('["1"]', r'p\.jsonl:2 is .*wanted object'),
        ('{"id": "1"', r'p\.jsonl:2: not JSON'),
    ],
)
def test_what_is_wrong_with_a_line_is_named(tmp_path, line, message):
    path = write(tmp_path / 'p.jsonl', '{"id": "0", "answer": "a"}\n' + line + '\n')
    with pytest.raises(ValueError, match=message) as caught:
        outputs.read(path)
    assert 'looks like' not in str(caught.value)


# --- OFA-X ---


def ofax(answers, explanations, ids=None):
    ids = [str(n) for n in range(len(answers))] if ids is None else ids
    return {'id': ids, 'answer': answers, 'explanation': explanations, 'target_explanation': [None] * len(ids)}


def test_ofax_takes_off_the_word_and_not_its_letters(tmp_path):
    texts = ['because a cat eats bees', 'because because we see sauce', '', 'because', ' because  use it ', 'it is']
    path = write(tmp_path / 'test_predict.json', ofax(['yes', 'a cause', 'no', 'x', 'y', 'z'], texts))
    found = outputs.read(path, 'ofax')
    assert [p.explanation for p in found] == ['a cat eats bees', 'because we see sauce', '', '', 'use it', 'it is']
    assert texts[0].lstrip('because ') == 't eats bees', 'what the published code scores'  # noqa: B005
    assert [p.answer for p in found] == ['yes', 'a cause', 'no', 'x', 'y', 'z']


def test_ofax_answers_become_classes_and_choices_of_the_examples(tmp_path):
    examples = [
        *(Example(str(n), 'i', 't', label=label) for n, label in enumerate(('neutral', 'entailment', 'contradiction'))),
        Example('3', 'i', 't', answers={'yes': 1.0}),
        Example('4', 'i', 't', choices=['w', 'x', 'y', 'y'], label=0),
        Example('5', 'i', 't', choices=['w', 'x', 'y', 'y'], label=0),
        Example('6', 'i', 't', label='dog'),
        Example('7', 'i', 't', label='neutral'),
    ]
    answers = ['yes', 'no', 'maybe', 'yes', 'answer3', 'answer4', 'yes', 'perhaps', 'no']
    path = write(tmp_path / 'p.json', ofax(answers, ['because x'] * 9))
    found = [(p.answer, p.answer_index) for p in outputs.read(path, 'ofax', examples)]
    assert found == [
        ('entailment', None), ('contradiction', None), ('neutral', None), ('yes', None), ('y', 3), ('answer4', None),
        ('yes', None), ('perhaps', None), ('no', None),
    ]  # fmt: skip
    assert [p.answer for p in outputs.read(path, 'ofax')] == answers


@pytest.mark.parametrize(
    ('document', 'message'),
    [
        (['id', 'answer', 'explanation', 'target_explanation'], 'the names of the lists .*several processes'),
        ([], 'wanted object'),
        ({'id': [], 'answer': [], 'explanation': []}, 'holds no predictions'),
        ({'id': ['1'], 'answer': ['a']}, "has no 'explanation', only id, answer"),
        (ofax(['a', 'b'], ['because c']), 'of different lengths: id has 2, answer has 2, explanation has 1'),
        (ofax(['a', 'b'], ['because c', None]), 'record 2: explanation is None, wanted text'),
        (ofax(['a', 3], ['because c', '']), 'record 2: answer is 3, wanted text'),
        (ofax(['a'], ['because c'], [None]), 'record 1: id is None'),
    ],
)
def test_what_is_wrong_with_ofax_is_named(tmp_path, document, message):
    with pytest.raises(ValueError, match=message):
        outputs.read(write(tmp_path / 'p.json', document), 'ofax')


# --- e-ViL ---


def gen(**changes):
    row = {'question_id': '262284001', 'question': 'What?', 'generated_explanation': 'it drips', 'prediction': 'shower',
           'correct_explanations': ['it is wet'], 'gt': {'shower': 1.0}, 'img_id': '2622', 'correct': 1}  # fmt: skip
    return row | changes


def test_gen_test_has_no_explanation_where_the_answer_is_wrong(tmp_path):
    wrong = gen(question_id=5, generated_explanation='None', prediction='sink', correct=0)
    path = lines(tmp_path / 'gen_test.json', gen(), wrong, gen(question_id='6', generated_explanation=''))
    assert outputs.read(path, 'gen_test') == [
        Prediction('262284001', 'shower', explanation='it drips'),
        Prediction('5', 'sink', explanation=None),
        Prediction('6', 'shower', explanation=''),
    ]


def test_gen_test_answers_become_choices(tmp_path):
    choices = ['<|det1|> waves', '<|det1|> waves', '<|det12|> sits', 'nobody']
    examples = [Example(f'v{n}', 'i', 't', choices=choices, label=1) for n in range(5)]
    rows = [
        gen(question_id='v0', prediction='12 sits', correct=0),
        gen(question_id='v1', prediction='<|det1|> waves', correct=1),
        gen(question_id='v2', prediction='<|det1|> waves', correct=0),
        gen(question_id='v3', prediction='somebody', correct=0),
        gen(question_id='v4', prediction='1 waves'),
    ]
    del rows[4]['correct']
    found = outputs.read(lines(tmp_path / 'g.json', *rows), 'gen_test', examples)
    assert [(p.answer, p.answer_index) for p in found] == [
        ('<|det12|> sits', 2), ('<|det1|> waves', 1), ('<|det1|> waves', 0), ('somebody', None),
        ('<|det1|> waves', None),  # the words name two
    ]  # fmt: skip


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'question_id': None}, r'g\.json:2: question_id is None'),
        ({'prediction': 3}, r'g\.json:2: prediction is 3, wanted text'),
        ({'generated_explanation': None}, r'g\.json:2: generated_explanation is None'),
    ],
)
def test_what_is_wrong_with_gen_test_is_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        outputs.read(lines(tmp_path / 'g.json', gen(), gen(**change)), 'gen_test')


# --- all of them ---


def samples(folder):
    """A sound file of each format."""
    row = [{'image_id': 1, 'caption': 'yes because Zoë "sits"'}, {'image_id': 2, 'caption': 'no because it\nrains'}]
    ours = ({'id': '1', 'answer': 'yes', 'explanation': 'Zoë'}, {'id': 2, 'answer': None, 'explanation': None})
    return {
        'jsonl': lines(folder / 'jsonl', *ours),
        'csv': write(folder / 'csv', 'id;answer;explanation\n1;yes;"Zoë ""sits"""\n2;no;"it\nrains"\n'),
        'coco': write(folder / 'coco', row),
        'nlxgpt_exp': write(folder / 'nlxgpt_exp', row),
        'nlxgpt_full': write(folder / 'nlxgpt_full', row),
        'ofax': write(folder / 'ofax', ofax(['yes', 'no'], ['because Zoë', ''])),
        'gen_test': lines(folder / 'gen_test', gen(), gen(question_id='2')),
        'text': write(folder / 'text', 'Zoë sits\nit rains\n'),
    }


EXAMPLES = [Example('1', 'i', ''), Example('2', 'i', '')]


def test_every_format_is_sampled_and_reads_its_sample(tmp_path):
    files = samples(tmp_path)
    assert sorted(files) == lookup.names(outputs.FOLDER)
    for format, path in files.items():
        assert len(outputs.read(path, format, EXAMPLES)) == 2, format


def test_another_format_is_told(tmp_path):
    files = samples(tmp_path)
    same = {'coco', 'nlxgpt_exp', 'nlxgpt_full'}
    for format in files:
        for other, path in files.items():
            if other == format or {format, other} <= same or other == 'text':
                continue
            with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
                outputs.read(path, format, EXAMPLES)
            looks = re.search(r"looks like format '(\w+)', not '(\w+)'", str(caught.value)).groups()
            assert looks == ('nlxgpt_full' if other in same else other, format)


def test_an_unknown_format_and_a_missing_file(tmp_path):
    with pytest.raises(ValueError, match=r"no 'nlxgpt_ful' in evil_jax/data/outputs\. Did you mean 'nlxgpt_full'"):
        outputs.read(tmp_path / 'p', 'nlxgpt_ful')
    for format in lookup.names(outputs.FOLDER):
        with pytest.raises(ValueError, match='nowhere: cannot be read'):
            outputs.read(tmp_path / 'nowhere', format, EXAMPLES)


@pytest.mark.parametrize('format', lookup.names(outputs.FOLDER))
def test_damaged_files_give_predictions_or_one_error_that_names_the_file(tmp_path, format):
    path = samples(tmp_path)[format]
    sound, draw = path.read_bytes(), random.Random(format)
    for _ in range(150):
        content = bytearray(sound)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(content))
            kind = draw.randrange(4)
            if kind == 0:
                del content[at : at + draw.randint(1, 9)]
            elif kind == 1:
                content[at:at] = bytes(draw.choice((b'"', b'{', b'\n', b'\0', b'\xff', b'null', b';', b'[]', b'1e999')))
            elif kind == 2:
                content[at] = draw.randrange(256)
            else:
                del content[at:]
            content = content or bytearray(b' ')
        path.write_bytes(content)
        try:
            found = outputs.read(path, format, EXAMPLES)
        except ValueError as error:
            assert str(path) in str(error) and len(str(error)) < 1_500
        else:
            assert all(isinstance(p, Prediction) and p.id.strip() for p in found)
            json.dumps([p.to_json() for p in found], allow_nan=False, ensure_ascii=False).encode()
