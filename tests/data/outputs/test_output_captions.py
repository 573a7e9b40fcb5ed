"""COCO-caption results and what NLX-GPT makes of them."""

import json

import pytest
from written import write

from evil_jax.data import outputs
from evil_jax.records import Prediction


def captions(*texts):
    return [{'image_id': n, 'caption': text} for n, text in enumerate(texts)]


def test_published_full_and_exp_files_agree(shared):
    folder = shared / 'data' / 'generated'
    full = outputs.read(folder / 'nlxgpt_vqaX_p_full_unfiltered.json', 'nlxgpt_full')
    exp = outputs.read(folder / 'nlxgpt_vqaX_p_exp_unfiltered.json', 'nlxgpt_exp')
    assert len(full) == len(exp) == 1_968 == len({p.id for p in full})
    assert [(p.id, p.explanation) for p in full] == [(p.id, p.explanation) for p in exp]
    assert full[0] == Prediction('262284001', 'shower', explanation='it is a shower stall')
    assert exp[0] == Prediction('262284001', None, explanation='it is a shower stall')
    raw = json.loads((folder / 'nlxgpt_vqaX_p_full_unfiltered.json').read_text())
    assert [p.answer for p in full] == [row['caption'].split('because')[0].strip() for row in raw]
    retrained = folder / 'nlxgpt_retrained_unf_captions_exp_11_val.json'
    for format in ('coco', 'nlxgpt_exp'):
        found = outputs.read(retrained, format)
        assert len(found) == 1_459 and {p.answer for p in found} == {None} and all(p.explanation for p in found)


def test_the_two_published_files_are_not_taken_for_each_other(shared):
    folder = shared / 'data' / 'generated'
    with pytest.raises(ValueError, match=r"none of 1968 captions has a 'because'.*looks like format 'coco'"):
        outputs.read(folder / 'nlxgpt_vqaX_p_exp_unfiltered.json', 'nlxgpt_full')
    with pytest.raises(ValueError, match=r"each of 1968 captions has a 'because'.*looks like format 'nlxgpt_full'"):
        outputs.read(folder / 'nlxgpt_vqaX_p_full_unfiltered.json', 'nlxgpt_exp')


@pytest.mark.parametrize(
    ('caption', 'answer', 'explanation'),
    [
        ('yes because it is so', 'yes', 'it is so'),
        (' two  because  it is because of rain ', 'two', 'it is because of rain'),  # NLX-GPT, VQA-X: 'of rain'
        ('yes it is raining', 'yes it is raining', ''),  # NLX-GPT: 'is raining'
        ('because it is', '', 'it is'),
        ('no because', 'no', ''),
        ('', '', ''),
        ('ja|||nein because Zoë\nsitzt ||| da', 'ja|||nein', 'Zoë\nsitzt ||| da'),
        (None, None, None),
    ],
)
def test_split_at_the_first_because(tmp_path, caption, answer, explanation):
    path = write(tmp_path / 'a b.json', captions(caption))
    assert outputs.read(path, 'nlxgpt_full') == [Prediction('0', answer, explanation=explanation)]
    assert outputs.read(path, 'coco') == [Prediction('0', None, explanation=caption)]


def test_a_few_captions_prove_nothing(tmp_path):
    few = write(tmp_path / 'few.json', captions(*['it rains'] * 19))
    assert len(outputs.read(few, 'nlxgpt_full')) == 19
    with pytest.raises(ValueError, match='none of 20'):
        outputs.read(write(tmp_path / 'many.json', captions(*['it rains'] * 20)), 'nlxgpt_full')
    some = captions('it rains', *['this is because it rains'] * 40)
    assert len(outputs.read(write(tmp_path / 'some.json', some), 'nlxgpt_exp')) == 41


def test_ids_are_numbers_or_texts_and_may_repeat(tmp_path):
    rows = [
        {'image_id': 3, 'caption': 'a', 'id': 0},
        {'image_id': '3', 'caption': 'b'},
        {'image_id': 'v-1', 'caption': ''},
    ]
    found = outputs.read(write(tmp_path / 'c.json', '\ufeff' + json.dumps(rows)), 'coco')
    assert [(p.id, p.explanation) for p in found] == [('3', 'a'), ('3', 'b'), ('v-1', '')]


@pytest.mark.parametrize(
    ('document', 'message'),
    [
        ({'a': 1}, 'the document is {.*wanted list'),
        ([3], 'record 1 is 3, wanted object'),
        ([{'image_id': 1, 'caption': 'a'}, {'image_id': 2}], "record 2: has no 'caption', only image_id"),
        ([{'caption': 'a'}], "record 1: has no 'image_id'"),
        ([{'image_id': 1.5, 'caption': 'a'}], r'record 1: image_id is 1\.5, wanted text or int'),
        ([{'image_id': True, 'caption': 'a'}], 'image_id is True'),
        ([{'image_id': ' ', 'caption': 'a'}], 'record 1: image_id is empty'),
        ([{'image_id': 1, 'caption': ['a']}], 'record 1: caption is .*wanted text'),
        ([{'image_id': 1, 'caption': 'a\ud800'}], 'surrogate'),
        ('[{"image_id": 1, "image_id": 2, "caption": "a"}]', "the key 'image_id' appears twice"),
        ('[{"image_id": 1, "caption": "a"', r'c\.json:1: not JSON'),
        ([], 'holds no predictions'),
        ('', r'c\.json:1: not JSON'),
    ],
)
@pytest.mark.parametrize('format', ['coco', 'nlxgpt_exp', 'nlxgpt_full'])
def test_what_is_wrong_is_named(tmp_path, document, message, format):
    with pytest.raises(ValueError, match=f'c\\.json.*{message}' if 'c\\' not in message else message):
        outputs.read(write(tmp_path / 'c.json', document), format)
