import gzip
import json

import pytest
from written import lines

from evil_jax.data.sources import detokenise, vcr

PICTURE = 'lsmdc_1/1_A_00.23.57.935-00.24.00.783@0'
IMAGE = '1_A_00.23.57.935-00.24.00.783@0'


def official(n=0, **changes):
    row = {
        'movie': '1_A', 'objects': ['person', 'person', 'dog'],
        'img_fn': f'{PICTURE}.jpg', 'metadata_fn': f'{PICTURE}.json',
        'question_orig': 'Why do 1 and 2 look at 3 ?', 'answer_orig': 'x', 'rationale_orig': 'x',
        'question': ['Why', 'do', [0, 1], 'look', 'at', [2], '?'],
        'answer_choices': [['No', '.'], [[0], 'does', "n't", 'see', 'it', '.'], ['No', '.'], [[0, 1, 2], 'run']],
        'answer_label': 1,
        'rationale_choices': [['a'], ['b'], [[2], "'s", 'dark', ',', 'like', [1], '.'], ['d']],
        'rationale_label': 2,
        'annot_id': f'train-{n}', 'img_id': 'train-0',
    }  # fmt: skip
    return {name: value for name, value in (row | changes).items() if value is not ...}


def eug(n=0, **changes):
    row = {
        'question_id': f'train-{n}', 'img_id': f'vcr_train_{IMAGE}.npz', 'raw_img_id': f'{PICTURE}.jpg', 'movie': '1_A',
        'objects': ['person', 'person', 'dog'],
        'sent': 'Why do <|det1|> and <|det2|> look at <|det3|>?',
        'answer_choices': ['No.', "<|det1|> doesn't see it.", 'No.', '<|det1|>, <|det2|> and <|det3|> run'],
        'label': 1, 'explanation': "<|det3|>'s dark, like <|det2|>.",
    }  # fmt: skip
    return {name: value for name, value in (row | changes).items() if value is not ...}


def metadata(**changes):
    row = {'boxes': [[0, 1, 20.5, 30, 0.9], [5, 5, 9, 9, 1], [1, 2, 3, 4, 0.5]], 'width': 100, 'height': 50,
           'names': ['person', 'person', 'dog'], 'segms': [[], [], []]}  # fmt: skip
    return {name: value for name, value in (row | changes).items() if value is not ...}


def boxes_folder(tmp_path, document=None):
    path = tmp_path / 'vcr1images' / f'{PICTURE}.json'
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(metadata() if document is None else document))
    return tmp_path / 'vcr1images'


def test_official_form(tmp_path):
    (example,) = vcr.read(lines(tmp_path / 'train.jsonl', official()), metadata=boxes_folder(tmp_path))
    assert (example.id, example.image_id, example.label) == ('train-0', IMAGE, 1)
    assert example.text == 'Why do <|det1|> and <|det2|> look at <|det3|>?'
    assert example.choices == ['No.', "<|det1|> doesn't see it.", 'No.', '<|det1|>, <|det2|> and <|det3|> run']
    assert example.explanations == ["<|det3|>'s dark, like <|det2|>."]  # the right rationale, not the first
    assert example.objects == ['person', 'person', 'dog']
    assert example.extra == {
        'movie': '1_A',
        'img_fn': f'{PICTURE}.jpg',
        'boxes': [[0, 1, 20.5, 30], [5, 5, 9, 9], [1, 2, 3, 4]],
        'size': [100, 50],
    }


def test_both_forms_give_the_same_example(tmp_path):
    folder = boxes_folder(tmp_path)
    expected = list(vcr.read(lines(tmp_path / 'a.jsonl', official(0), official(1)), metadata=folder))
    path = tmp_path / 'b.json.gz'
    path.write_bytes(gzip.compress(json.dumps([eug(0), eug(1)]).encode()))
    assert list(vcr.read(path, metadata=folder)) == expected
    zero_based = eug(0)
    for old, new in ((1, 0), (2, 1), (3, 2)):
        zero_based = json.loads(json.dumps(zero_based).replace(f'<|det{old}|>', f'<|det{new}|>'))
    path.write_bytes(json.dumps([zero_based]).encode())
    assert list(vcr.read(path, metadata=folder, tag_base=0)) == expected[:1]
    # Without raw_img_id the picture still has its name; there is no way to its metadata.
    path.write_text(json.dumps([eug(raw_img_id=...)]))
    (example,) = vcr.read(path, metadata=folder)
    assert (example.image_id, example.extra) == (IMAGE, {'movie': '1_A'})


def test_without_labels_or_metadata(tmp_path):
    blind = official(answer_label=..., rationale_label=..., rationale_choices=...)
    (example,) = vcr.read(lines(tmp_path / 'test.jsonl', blind))
    assert (example.label, example.explanations) == (None, [])
    assert example.extra == {'movie': '1_A', 'img_fn': f'{PICTURE}.jpg'}
    assert len(example.choices) == 4


def test_ids(tmp_path):
    path = lines(tmp_path / 'a.jsonl', official(0), official(1, question='not looked at'))
    assert list(vcr.ids(path)) == [('train-0', IMAGE), ('train-1', IMAGE)]
    assert [e.id for e in vcr.read(path, wanted=lambda i, image: (i, image) == ('train-0', IMAGE))] == ['train-0']


BAD = {
    'choices': ({'answer_choices': [['x']] * 3}, 'answer_choices has 3 entries, wanted 4'),
    'rationales': ({'rationale_choices': [['x']] * 5}, 'rationale_choices has 5 entries, wanted 4'),
    'label': ({'answer_label': 4}, 'answer_label is 4, wanted 0 to 3'),
    'negative': ({'rationale_label': -1}, 'rationale_label is -1, wanted 0 to 3'),
    'float label': ({'answer_label': 1.0}, r'answer_label is 1\.0, wanted int'),
    'bool label': ({'answer_label': True}, 'answer_label is True, wanted int'),
    'object': ({'question': ['who', [3]]}, 'question: object 3 of 3, counted from 0, does not exist'),
    'negative object': ({'question': [[-1]]}, 'question: object -1 of 3'),
    'object text': ({'question': [['a']]}, "question: an object is 'a', wanted int"),
    'no object': ({'question': ['who', []]}, 'question: a token is an empty list'),
    'token': ({'question': ['who', 3]}, 'question: a token is 3, wanted text or list'),
    'written tag': ({'question': ['<|det1|>']}, r'question: a token is .<\|det1\|>.; objects are lists of numbers'),
    'question text': ({'question': 'Who ?'}, r"question is 'Who \?', wanted list"),
    'empty': ({'question': [' ']}, 'question is empty'),
    'empty choice': ({'answer_choices': [['a'], [], ['b'], ['c']]}, 'answer_choices is empty'),
    'objects': ({'objects': ['person', 1, 'dog']}, 'objects: an entry is 1, wanted text'),
    'no objects': ({'objects': None}, 'objects is None, wanted list'),
    'no question': ({'question': ...}, "has no 'question', only movie"),
    'no picture': ({'img_fn': ...}, 'names no picture'),
    'empty picture': ({'img_fn': '.jpg'}, "img_fn is '.jpg', which names no picture"),
    'metadata': ({'metadata_fn': '../x.json'}, 'metadata file .*is not below a folder of pictures'),
    'absent': ({'metadata_fn': 'lsmdc_1/x.json'}, 'metadata file .*x.json does not exist, although .* has others'),
    'boxes': ({'objects': ['person'] * 4}, r'has 4 objects, but .*783@0\.json has 3 boxes'),
    'names': ({'objects': ['person'] * 3}, 'objects are .*, but the names in .* are .*dog'),
}


@pytest.mark.parametrize(('changes', 'message'), BAD.values(), ids=BAD)
def test_malformed_records_are_named(tmp_path, changes, message):
    path = lines(tmp_path / 'a.jsonl', official(0), official(7, **changes))
    with pytest.raises(ValueError, match=rf'a\.jsonl:2: train-7: {message}'):
        list(vcr.read(path, metadata=boxes_folder(tmp_path)))


BAD_EUG = {
    'tag': ({'sent': 'Is <|det4|> there?'}, r'sent: tag <\|det4\|> .*: there are 3 objects, counted from data.tag'),
    'zero': ({'explanation': '<|det0|>.'}, r'explanation: tag <\|det0\|> does not exist'),
    'long tag': ({'sent': f'<|det{"9" * 5000}|>'}, r'sent: tag <\|det9{75} does not exist'),
    'other digits': ({'sent': '<|det٤|>'}, r'sent: tag <\|det٤\|> does not exist'),
    'choice tag': ({'answer_choices': ['<|det9|>', 'b', 'c', 'd']}, r'answer_choices: tag <\|det9\|>'),
    'choice': ({'answer_choices': ['a', 'b', 'c', 3]}, 'answer_choices: an answer is 3, wanted text'),
    'choices': ({'answer_choices': {}}, 'answer_choices is {}, wanted list'),
    'label': ({'label': '1'}, "label is '1', wanted int"),
    'explanation': ({'explanation': ''}, 'explanation: an entry is empty'),
    'pictures': ({'img_id': 'vcr_val_other@0.npz'}, "raw_img_id is of picture '1_A.*', img_id of 'other@0'"),
    'no picture': ({'img_id': ..., 'raw_img_id': ...}, 'names no picture'),
}  # fmt: skip


@pytest.mark.parametrize(('changes', 'message'), BAD_EUG.values(), ids=BAD_EUG)
def test_malformed_records_of_the_other_form_are_named(tmp_path, changes, message):
    path = tmp_path / 'a.json'
    path.write_text(json.dumps([eug(0), eug(7, **changes)]))
    with pytest.raises(ValueError, match=rf'a\.json: record 2: train-7: {message}'):
        list(vcr.read(path))


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'boxes': [[0, 1, 2, 3, 1]] * 2}, '3 objects, but .* has 2 boxes'),
        ({'boxes': [[0, 1, 2]] * 3}, r'a box is \[0, 1, 2\], wanted x1, y1, x2, y2'),
        ({'boxes': [[0, 1, 2, float('nan')]] * 3}, 'a box is .*nan'),
        ({'boxes': [[0, 1, 2, '3']] * 3}, "a number of a box is '3', wanted int or float"),
        ({'width': 0}, r'width and height are \[0, 50\]'),
        ({'height': ...}, "has no 'height'"),
        ({'names': 'person'}, "names is 'person', wanted list"),
    ],
)
def test_malformed_metadata_is_named(tmp_path, changes, message):
    path = lines(tmp_path / 'a.jsonl', official())
    with pytest.raises(ValueError, match=message) as caught:
        list(vcr.read(path, metadata=boxes_folder(tmp_path, metadata(**changes))))
    assert '783@0.json' in str(caught.value)


def test_metadata_is_read_once_a_picture_and_is_never_large(tmp_path, monkeypatch):
    folder = boxes_folder(tmp_path)
    other = {'img_fn': 'lsmdc_1/other@0.jpg', 'metadata_fn': 'lsmdc_1/other@0.json'}
    (folder / 'lsmdc_1/other@0.json').write_text(json.dumps(metadata()))
    path = lines(tmp_path / 'a.jsonl', official(0), official(1, **other), official(2), official(3, **other))
    read, count = vcr._files.read_json, []
    monkeypatch.setattr(vcr._files, 'read_json', lambda path, *limit: count.append(path.name) or read(path, *limit))
    assert len(list(vcr.read(path, metadata=folder))) == 4
    assert count == [f'{IMAGE}.json', 'other@0.json']
    (folder / 'lsmdc_1/other@0.json').write_text(json.dumps(metadata()) + ' ' * (16 << 20))
    with pytest.raises(ValueError, match=r'other@0\.json: is larger than 16,777,216 bytes'):
        list(vcr.read(path, metadata=folder))


def test_files(tmp_path):
    with pytest.raises(ValueError, match=r'a\.jsonl:3: train-0: this id was already at .*a\.jsonl:1'):
        list(vcr.read(lines(tmp_path / 'a.jsonl', official(0), official(1), official(0))))
    (tmp_path / 'a.jsonl').write_text(json.dumps(official(0)) + '\n\n{"annot_id": 1,\n')
    with pytest.raises(ValueError, match=r'a\.jsonl:3: not JSON: .* at column'):
        list(vcr.read(tmp_path / 'a.jsonl'))
    lines(tmp_path / 'a.jsonl', 5)
    with pytest.raises(ValueError, match=r'a\.jsonl:1 is 5, wanted object'):
        list(vcr.read(tmp_path / 'a.jsonl'))
    (tmp_path / 'a.jsonl').write_text('')
    assert list(vcr.read(tmp_path / 'a.jsonl')) == []


@pytest.mark.parametrize(
    ('tokens', 'sentence'),
    [
        (['Yes', ',', 'she', 'is', '.'], 'Yes, she is.'),
        (['He', 'does', "n't", '!'], "He doesn't!"),
        (['<|det1|>', "'s", 'and', '<|det2|>', '’s', 'dog', '?'], "<|det1|>'s and <|det2|>’s dog?"),
        (['I', "'m", 'sure', 'they', "'ll", 'go'], "I'm sure they'll go"),
        (['the', 'boys', "'", 'room'], "the boys' room"),
        (['a', 'well', '-', 'dressed', 'man', '/', 'boy'], 'a well-dressed man/boy'),
        (['it', '(', 'or', 'not', ')', ':', '"', 'Hi', ',', '"', 'he', 'said', '.'], 'it (or not): "Hi," he said.'),
        (['``', 'A', "''", 'and', '“', 'B', '”', '.'], '"A" and “B”.'),
        (['$', '5', '%', '...', '#', '1'], '$5%... #1'),
        ([' ', 'a', '', ' b '], 'a b'),
        ([], ''),
    ],
)
def test_sentence_from_tokens(tokens, sentence):
    assert detokenise.join(tokens) == sentence
