"""Examples and gold explanations from the files that a user names."""

import json

import pytest
from written import lines, write

from evil_jax import records
from evil_jax.data import references
from evil_jax.data.sources import _references
from evil_jax.records import Example

TEN = [{'answer': 'shower'}] * 10


# --- published files ---


def test_explanations_of_a_further_file_replace_those_of_the_first(shared):
    folder = shared / 'data' / 'vqax'
    lower = references.read([folder / 'vqaX_test.json'], 'vqax')
    assert len(lower) == 1_968 and lower[0].id == '262284001' and lower[0].answers == {'shower': 1.0}
    assert lower[0].image_id == 'COCO_val2014_000000262284'
    assert lower[0].explanations[2] == 'there is a faucet and a bathtub'
    cased = references.read([folder / 'vqaX_test.json', folder / 'scr_test_exp_anno.json'], 'vqax')
    assert [e.id for e in cased] == [e.id for e in lower], 'in the order of the first'
    assert cased[0].answers == {'shower': 1.0} and cased[0].explanations[2] == 'There is a faucet and a bathtub.'
    again = references.read([folder / f for f in ('vqaX_test.json', 'scr_test_exp_anno.json', 'cocoEval_test.json')])
    assert again == lower, 'cocoEval_test.json has the same texts'
    with pytest.raises(ValueError, match=r'scr_val.*its 1,459 ids are not those of the 1,968 examples of .*vqaX_test'):
        references.read([folder / 'vqaX_test.json', folder / 'scr_val_exp_anno.json'])
    with pytest.raises(ValueError, match=r'vqaX_test\.json has more than the explanations of .*: name it first'):
        references.read([folder / 'scr_test_exp_anno.json', folder / 'vqaX_test.json'])


def test_explanations_alone(shared):
    path = shared / 'data' / 'vqax' / 'scr_test_exp_anno.json'
    examples = references.read([str(path)], 'vqax')
    assert len(examples) == 1_968 and {e.text for e in examples} == {''}
    assert {(e.answers, e.label, e.choices) == (None, None, None) for e in examples} == {True}
    full = {e.id: e for e in references.read([shared / 'data' / 'vqax' / 'vqaX_test.json'])}
    assert all(int(full[e.id].image_id[-12:]) == int(e.image_id) for e in examples), 'the ids tell the pictures'
    assert all(e.image_id == e.id for e in references.read([path]))


def test_esnlive_labels(shared):
    path = shared / 'data' / 'esnlive' / 'esnlive_test.csv'
    gold, original = (references.read([path], 'esnlive', labels=labels) for labels in ('gold', 'original'))
    assert len(gold) == 14_740 and sum(a.label != b.label for a, b in zip(gold, original)) == 1_689
    assert references.marks([path]) == {'labels': 'gold'}
    assert references.marks([path], 'original') == {'labels': 'original'}
    with pytest.raises(ValueError, match=r'do2020_gt_labels\.csv:1: has no column Flickr30kID'):
        references.read([path.with_name('do2020_gt_labels.csv')])


def test_predictions_are_no_references(shared):
    with pytest.raises(ValueError, match='these are captions, which are predictions'):
        references.read([shared / 'data' / 'generated' / 'nlxgpt_vqaX_p_exp_unfiltered.json'])


# --- every form ---


def vqa_v2(folder):
    row = lambda n: {'question_id': n, 'image_id': n // 1000, 'question': f'What is {n}?'}
    questions = write(folder / 'q.json', {'data_subtype': 'val2014', 'questions': [row(4001), row(4002), row(5001)]})
    annotations = write(folder / 'a.json', {'annotations': [{'question_id': 4002, 'answers': TEN}]})
    return questions, annotations


def test_vqa_v2_files_and_original_explanations(tmp_path):
    questions, annotations = vqa_v2(tmp_path)
    found = references.read([annotations, questions])
    assert [(e.id, e.answers) for e in found] == [('4001', None), ('4002', {'shower': 1.0}), ('5001', None)]
    explained = write(tmp_path / 'e.json', {'4002': ['it is wet']})
    other = write(tmp_path / 'o.json', {'4002': ['It is wet.']})
    (found,) = references.read([explained, questions, annotations, other], 'vqax')
    assert (found.text, found.answers, found.explanations) == ('What is 4002?', {'shower': 1.0}, ['It is wet.'])
    assert found.image_id == 'COCO_val2014_000000000004'
    with pytest.raises(ValueError, match=r"a\.json: holds answers only: VQA v2's questions file"):
        references.read([explained, annotations])
    others = write(tmp_path / 'b.json', {'annotations': [{'question_id': 7, 'answers': TEN}]})
    with pytest.raises(ValueError, match=r"b\.json: answers none of the questions in .*q\.json, but 1 id: '7'"):
        references.read([questions, annotations, others])


def forms():
    """name -> (content, the first example)."""
    ten = {'question': 'What?', 'answers': TEN, 'image_id': '4', 'image_name': 'C_4.jpg', 'explanation': ['so']}
    lxmert = {'question_id': 7, 'img_id': 'C_4', 'sent': 'What?', 'label': {'red': 0.9}, 'explanation': ['so']}
    pair = {'question_id': '44.jpg#2r1c', 'img_id': 'flickr30k_0044.npz', 'sent': 'A man.', 'label': 'neutral',
            'explanation': ['No.']}  # fmt: skip
    entailed = Example('44.jpg#2r1c', '44', 'A man.', label='neutral', explanations=['No.'])
    official = {'annot_id': 'val-0', 'movie': 'm', 'objects': ['person'], 'img_fn': 'f/a@0.jpg',
                'metadata_fn': 'f/a@0.json', 'question': ['Is', [0], '?'],
                'answer_choices': [['a'], [[0]], ['c'], ['d']], 'answer_label': 1,
                'rationale_choices': [['a'], ['b'], ['c'], [[0], 'is']], 'rationale_label': 3}  # fmt: skip
    eug = {'question_id': 'val-0', 'raw_img_id': 'f/a@0.jpg', 'movie': 'm', 'objects': ['person'],
           'sent': 'Is <|det1|>?', 'answer_choices': ['a', '<|det1|>', 'c', 'd'], 'label': 1,
           'explanation': '<|det1|> is'}  # fmt: skip
    chosen = Example('val-0', 'a@0', 'Is <|det1|>?', ['a', '<|det1|>', 'c', 'd'], 1, objects=['person'],
                     explanations=['<|det1|> is'], extra={'img_fn': 'f/a@0.jpg', 'movie': 'm'})  # fmt: skip
    # fmt: off
    gen = {'question_id': '4001', 'question': 'What?', 'generated_explanation': 'None', 'prediction': 'blue',
           'correct_explanations': ['so', 'yes'], 'gt': {'red': 1.0, 'pink': 0.3}, 'img_id': '', 'correct': 0}
    gen_vcr = gen | {'question_id': 'val-0', 'correct_explanations': '1 is', 'gt': 1, 'img_id': 'f/a@0.jpg',
                     'movie': 'm', 'answer_choices': ['a', '1', 'c', 'd']}
    # fmt: on
    csv = ',pairID,Flickr30kID,hypothesis,gold_label,explanation\r\n0,44.jpg#2r1c,44.jpg,A man.,neutral,No.\r\n'
    soft = {'answers': {'shower': 1.0}, 'annotations': ['shower'] * 10}
    return {
        'ours': ([{'id': '1', 'image_id': '2', 'text': 't', 'label': 'x'}], Example('1', '2', 't', label='x')),
        'short': ([{'id': 1, 'explanations': ['a', '']}], Example('1', '1', '', explanations=['a', ''])),
        'annotated': ([{'id': 'a', 'image_id': 3, 'annotations': ['shower'] * 10}], Example('a', '3', '', **soft)),
        'vqax nlx': ({'7': ten}, Example('7', 'C_4', 'What?', explanations=['so'], **soft)),
        'vqax lxmert': ({0: [lxmert]}, Example('7', 'C_4', 'What?', answers={'red': 0.9}, explanations=['so'])),
        'esnlive csv': (csv, entailed),
        'esnlive json': ({0: [pair]}, entailed),
        'vcr official': ([official, official | {'annot_id': 'val-1'}], chosen),
        'vcr eug': ({0: [eug]}, chosen),
        'gen vqax': ([gen], Example('4001', '4001', 'What?', answers=gen['gt'], explanations=['so', 'yes'])),
        'gen esnlive': (
            [gen | {'question_id': '44.jpg#2r1c', 'gt': 'neutral'}],
            Example('44.jpg#2r1c', '44.jpg#2r1c', 'What?', label='neutral', explanations=['so', 'yes']),
        ),
        'gen vcr': ([gen_vcr], Example('val-0', 'a@0', 'What?', ['a', '1', 'c', 'd'], 1, explanations=['1 is'])),
        'nlx esnlive': (
            {'0': {'hypothesis': 'a man', 'answers': 'neutral', 'image_name': '44.jpg', 'explanation': 'no'}},
            Example('0', '44', 'a man', label='neutral', explanations=['no']),
        ),
        'explanations': ({'7': ['a', 'b']}, Example('7', '7', '', explanations=['a', 'b'])),
        'one explanation': ({'7': 'a'}, Example('7', '7', '', explanations=['a'])),
        'coco': (
            {'images': [{'id': 5}, {'id': 6}], 'annotations': [{'id': n, 'image_id': 5, 'caption': c} for n, c in
                                                               enumerate(('a', 'b'))]},
            Example('5', '5', '', explanations=['a', 'b']),
        ),
    }  # fmt: skip


@pytest.mark.parametrize('mark', ['', '\ufeff'])
@pytest.mark.parametrize('name', forms())
def test_the_form_shows_in_the_content(tmp_path, name, mark):
    content, wanted = forms()[name]
    if isinstance(content, list):
        content = ''.join(json.dumps(row) + '\n' for row in content)
    elif not isinstance(content, str):
        content = json.dumps(content.get(0, content))
    path = write(tmp_path / 'some file', mark + content)
    assert references.read([path])[0] == wanted
    if not name.startswith('esnlive') and content[0] in '[{':
        pretty = [json.loads(line) for line in content.splitlines()]
        if len(pretty) == 1 and _references.form(path) not in ('jsonl', 'gen_test', 'vcr'):
            write(path, json.dumps(pretty[0], indent=2))
            assert references.read([path])[0] == wanted


def test_ids_tell_pictures_where_all_of_them_do(tmp_path):
    pictures = lambda path, builder: [e.image_id for e in references.read([path], builder)]
    questions = write(tmp_path / 'q.json', {'262284001': ['a'], '262284002': ['b'], '10000': ['c']})
    assert pictures(questions, 'vqax') == pictures(questions, 'vqav2') == ['262284', '262284', '10']
    assert pictures(questions, 'vcr') == pictures(questions, '') == ['262284001', '262284002', '10000']
    rows = write(tmp_path / 'r.json', {str(n): ['a'] for n in range(990, 1010)})
    assert pictures(rows, 'vqax') == [str(n) for n in range(990, 1010)], 'they count rows'
    pairs = lines(tmp_path / 'p.jsonl', {'id': '44.jpg#1r1c', 'image_id': 'mine'}, {'id': '44.jpg#1r1e'})
    assert pictures(pairs, 'esnlive') == ['mine', '44']


def test_labels_that_cannot_be_told(tmp_path):
    path = write(tmp_path / 'e.json', forms()['nlx esnlive'][0])
    assert references.marks([path]) == {'labels': 'gold'}
    with pytest.raises(ValueError, match=r"data\.labels='original' needs e-SNLI-VE's own CSV or JSON"):
        references.read([path], 'esnlive', labels='original')
    assert references.marks([lines(tmp_path / 'e.jsonl', {'id': 1})]) == {}


def test_examples_of_ours_are_read_as_they_are(tmp_path):
    said = [
        Example(
            '1', 'i', 'Zoë ||| a\nb', ['a', 'b'], 1, {'a': 0.3}, ['x'], 'other', 'what', ['dog'], ['', 'so'], {'k': 1}
        )
    ]
    records.write_jsonl(tmp_path / 'e.jsonl', said)
    assert references.read([tmp_path / 'e.jsonl']) == said


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', r'r: is empty'),
        (' \n', r'r: is empty'),
        ('[]', 'no form of references that is known; it is'),
        ('{}', 'r: holds no examples'),
        ('{"a": 3}', 'no form of references that is known'),
        ('{"a": {"b": 1}}', 'no form of references that is known'),
        ('id,explanation\n1,a\n', 'neither JSON nor the CSV of e-SNLI-VE .*JSON lines'),
        ('{"id": 1, "explanations": "a"}', r"r:1: field 'explanations' is 'a', wanted list"),
        ('{"id": 1, "explanations": [3]}', r'r:1: an entry of explanations is 3, wanted text'),
        ('{"id": 1, "explanation": ["a"]}', r"r:1: unknown field 'explanation'; Example has id"),
        ('{"id": 1, "answers": {"a": 2}}', r"r:1: score of 'a' is 2, wanted a number in \[0, 1\]"),
        ('{"id": 1, "answers": {"a": "b"}}', r"r:1: score of 'a' is 'b'"),
        ('{"id": 1}\n{"id": "1"}\n', r"r: repeats 1 id: '1'"),
        ('{"id": 1}\n{"id": ""}\n', r'r:2: id is empty'),
        ('{"id": 1}\n{"text": "a"}\n', r"r:2: missing field 'id'"),
        ('{"id": 1}\n{"id": 2', r'r:2: not JSON'),
        ('{"question": "a"}\n{"question": "b"}', r'r:1: a line of JSON lines needs an id, found only question; wanted'),
        ('{"7": ["a"], "7": ["b"]}', "the key '7' appears twice"),
        ('{"7": ["a"], "8": [""]}', 'question 8: an entry is empty'),
        ('{"images": [], "annotations": []}', 'holds no examples'),
        ('{"images": [{"id": 1}, {"id": "1"}], "annotations": []}', "image 2: the id '1' appears twice"),
        ('{"images": [{}], "annotations": []}', "image 1: has no 'id'"),
        ('{"images": [{"id": 1}], "annotations": [{"image_id": 2, "caption": "a"}]}', "1: image_id '2' is none of the"),
        ('{"images": [{"id": 1}], "annotations": [{"image_id": 1, "caption": " "}]}', 'annotation 1: caption is empty'),
    ],
)
def test_what_is_wrong_is_named(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        references.read([write(tmp_path / 'r', content)])
    assert str(tmp_path / 'r') in str(caught.value)


def test_answers_with_explanations_are_no_explanations(tmp_path):
    def annotations(n, text):
        rows = [{'image_id': i, 'caption': text} for i in range(n)]
        return write(tmp_path / f'{n}.json', {'images': [{'id': i} for i in range(n)], 'annotations': rows})

    with pytest.raises(ValueError, match="each of 20 captions reads 'answer because explanation'"):
        references.read([annotations(20, 'yes because it is')])
    assert len(references.read([annotations(19, 'yes because it is')])) == 19
    assert len(references.read([annotations(30, 'because it is')])) == 30


def test_coco_annotations_without_captions_have_no_explanation(tmp_path):
    path = write(
        tmp_path / 'c.json', {'images': [{'id': 1}, {'id': 2}], 'annotations': [{'image_id': 2, 'caption': 'a'}]}
    )
    assert [e.explanations for e in references.read([path])] == [[], ['a']]


def test_gen_test_with_a_choice_that_is_not_there(tmp_path):
    row = forms()['gen vcr'][0][0]
    with pytest.raises(ValueError, match=r'g\.json:1: gt is 4, wanted 0 to 3'):
        references.read([lines(tmp_path / 'g.json', row | {'gt': 4})])
    with pytest.raises(ValueError, match=r"g\.json:1: has no 'gt'"):
        references.read([lines(tmp_path / 'g.json', {k: v for k, v in row.items() if k != 'gt'})])


def test_no_file_at_all():
    with pytest.raises(ValueError, match='no file of references'):
        references.read([])
    with pytest.raises(ValueError, match='nowhere: cannot be read'):
        references.read(['nowhere'])
