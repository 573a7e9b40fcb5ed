import json

import numpy as np
import pytest

from evil_jax import text
from evil_jax.data import answers
from evil_jax.data.sources import vqax
from evil_jax.records import Example


def test_the_two_orders_of_3129_answers(shared):
    folder = shared / 'data' / 'vocab'
    lxmert = answers.read(folder / 'trainval_label2ans.json')
    uniter = answers.read(folder / 'uniter_ans2label.json')
    assert len(lxmert) == len(uniter) == 3_129
    assert answers.read(folder / 'trainval_ans2label.json') == lxmert
    assert (lxmert[0], uniter[0], uniter[2]) == ('', 'net', 'orange')
    there, back = answers.remap(lxmert, uniter), answers.remap(uniter, lxmert)
    assert sorted(there) == list(range(3_129))
    assert np.array_equal(there[back], np.arange(3_129))
    assert (there == np.arange(3_129)).sum() == 1  # one coinciding id
    assert all(uniter[there[label]] == lxmert[label] for label in range(3_129))


def test_answers_of_vqax_outside_the_vocabulary(shared):
    labels = answers.index(answers.read(shared / 'data' / 'vocab' / 'trainval_label2ans.json'))
    examples = vqax.read(shared / 'data' / 'vqax' / 'vqaX_test.json')
    assert sum(not any(a in labels for a in e.answers) for e in examples) == 7


def test_remap_marks_what_is_absent():
    remap = answers.remap(('a', 'b', 'c'), ('c', 'a'))
    assert remap.tolist() == [1, -1, 0]
    assert remap.dtype == np.int32


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('{"a": 0, "b": 2}', r'labels of its 2 answers are not 0 \.\.\. 1'),
        ('{"a": 0, "b": 0}', r'not 0 \.\.\. 1'),
        ('{"a": "0"}', r'not 0 \.\.\. 0'),
        ('["a", "b", "a"]', "answer 'a' has the labels 0 and 2"),
        ('["a", 3]', 'label 1 is 3, wanted text'),
        ('[]', 'wanted a non-empty JSON list'),
        ('[', 'no answer vocabulary'),
    ],
)
def test_bad_vocabularies(tmp_path, content, message):
    path = tmp_path / 'a.json'
    path.write_text(content)
    with pytest.raises(ValueError, match=r'a\.json: .*' + message):
        answers.read(path)


def made(heading=None, annotations=None, scores=None):
    extra = {} if heading is None else {'multiple_choice_answer': heading}
    return Example('1', '1', 'x', annotations=annotations, answers=scores, extra=extra)


def test_building_counts_normalised_headings():
    examples = [
        made('The net.', ['orange'] * 10),
        made(None, ['b'] * 4 + ['net'] * 6),
        made(None, None, {'rare': 0.3, 'two': 0.9}),
        made('2'),
        made('b'),
        made(),
    ]
    assert answers.build(examples, 2, text.vqa_normalise) == ('2', 'net')
    assert answers.build(examples, 1, text.vqa_normalise) == ('2', 'net', 'b')
    with pytest.raises(ValueError, match=r'no answer heads 3 questions .*most frequent heads 2.*answers_min_count'):
        answers.build(examples, 3, text.vqa_normalise)


def test_a_built_vocabulary_can_be_read_again(tmp_path):
    (tmp_path / 'a.json').write_text(json.dumps(list(answers.build([made('b')], 1, str))))
    assert answers.read(tmp_path / 'a.json') == ('b',)
