"""Ids: what does not agree is counted, listed and refused, unless it is allowed."""

import pytest

from evil_jax.data import outputs, references
from evil_jax.data.outputs import Counts, match
from evil_jax.records import Example, Prediction


def gold(*ids):
    return [Example(i, 'im', 'what?') for i in ids]


def said(*ids):
    return [Prediction(i, 'yes', explanation=f'{n}') for n, i in enumerate(ids)]


def test_predictions_in_the_order_of_the_examples():
    examples = gold('b', 'a', 'c')
    predictions, kept, counts = match(said('a', 'b', 'c'), examples)
    assert [p.id for p in predictions] == ['b', 'a', 'c'] and kept == examples and counts == Counts()
    assert str(counts) == ''


def test_everything_that_does_not_agree_stands_in_one_message():
    predictions = said('a', 'b', 'a', 'x', 'x', 'a')
    with pytest.raises(ValueError) as caught:
        match(predictions, gold('a', 'b', 'c', 'd'), path='p.csv')
    assert str(caught.value) == (
        "p.csv: 3 predictions repeat 2 ids: 'a', 'x', 2 of them with another answer or explanation; "
        "no prediction for 2 ids: 'c', 'd'; no example for 1 id: 'x' (of 6 predictions and 4 examples). "
        'To leave them out, allow duplicates,missing,extra'
    )
    with pytest.raises(ValueError) as caught:
        match(predictions, gold('a', 'b', 'c', 'd'), {'duplicates', 'extra'}, 'p.csv')
    message = str(caught.value)
    assert message.startswith("p.csv: no prediction for 2 ids: 'c', 'd' (of") and message.endswith('allow missing')


def test_what_is_allowed_is_left_out_and_counted():
    predictions, kept, counts = match(said('a', 'b', 'a', 'x', 'x', 'a'), gold('a', 'b', 'c', 'd'), set(outputs.ALLOW))
    assert [p.explanation for p in predictions] == ['0', '1'], 'the first counts'
    assert [e.id for e in kept] == ['a', 'b']
    assert counts == Counts(duplicates=3, missing=2, extra=1)
    assert str(counts) == 'duplicates:3,missing:2,extra:1'


def test_duplicates_of_one_text_are_duplicates():
    with pytest.raises(ValueError, match="1 prediction repeats 1 id: 'a', always with the same texts"):
        match([Prediction('a', 'x')] * 2, gold('a'))
    assert match([Prediction('a', 'x')] * 2, gold('a'), ['duplicates'])[2] == Counts(duplicates=1)


def test_ten_ids_are_shown():
    with pytest.raises(ValueError, match=r"no prediction for 1,000 ids: '0', .*'9', \.\.\. \(of 1 predictions"):
        match(said('1000'), gold(*map(str, range(1001))))


def test_nothing_in_common_is_never_allowed():
    with pytest.raises(ValueError) as caught:
        match(said('COCO_val2014_000000262284'), gold('262284001'), path='p.json')
    assert 'no id in common; for example prediction ' in str(caught.value)
    assert "'COCO_val2014_000000262284', example '262284001'" in str(caught.value)
    with pytest.raises(ValueError, match=r'nothing in common .*no id in common.*The predictions are numbered'):
        match(said('1', '0'), gold('44.jpg#1r1c', '44.jpg#1r1e'), outputs.ALLOW)
    with pytest.raises(ValueError, match='nothing in common'):
        match([], gold('a'), outputs.ALLOW)
    with pytest.raises(ValueError, match='nothing in common'):
        match(said('a'), [], outputs.ALLOW)


def test_examples_may_not_repeat():
    with pytest.raises(ValueError, match="repeated among the examples: 1 id: 'a'"):
        match(said('a'), gold('a', 'a'), outputs.ALLOW)


def test_words_of_allow():
    with pytest.raises(ValueError, match=r"unknown word 'mising' in allow\. Did you mean 'missing'"):
        match(said('a'), gold('a'), ['mising'])


def test_published_predictions_of_another_split(shared):
    folder = shared / 'data'
    predictions = outputs.read(folder / 'generated' / 'nlxgpt_vqaX_p_exp_unfiltered.json', 'coco')
    with pytest.raises(ValueError, match=r'no prediction for 1,459 ids.*no example for 1,968 ids.*no id in common'):
        match(predictions, references.read([folder / 'vqax' / 'vqaX_val.json'], 'vqax'))
