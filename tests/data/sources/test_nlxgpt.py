import pytest
from written import write

from evil_jax.data.sources import nlxgpt


def esnlive(**changes):
    row = {'hypothesis': 'A man.', 'answers': 'neutral', 'image_name': '4465359505.jpg', 'explanation': 'he may be'}
    return row | changes


def vcr(**changes):
    row = {'question': 'why is person0 here', 'answers': 'person0 waits', 'explanation': 'there is a clock near',
           'annot_id': 'val-7', 'img_name': 'film/a_1@0.jpg', 'boxes_data': [[0, 1, 2, 3, 0.9]], 'image_w': 9,
           'image_h': 8, 'objects': ['person']}  # fmt: skip
    return row | changes


def test_esnlive(tmp_path):
    rows = {'0': esnlive(), '1': esnlive(explanation=['a', '', 'b']), '12': esnlive(explanation=' ')}
    found = list(nlxgpt.read_esnlive(write(tmp_path / 'e.json', rows)))
    assert [(e.id, e.image_id, e.text, e.label) for e in found] == [
        (i, '4465359505', 'A man.', 'neutral') for i in ('0', '1', '12')
    ]
    assert [e.explanations for e in found] == [['he may be'], ['a', 'b'], []]


def test_vcr_answers_are_words(tmp_path):
    (found,) = nlxgpt.read_vcr(write(tmp_path / 'v.json', {'7': vcr()}))
    assert (found.id, found.image_id, found.text) == ('7', 'a_1@0', 'why is person0 here')
    assert found.answers == {'person0 waits': 1.0} and found.label is found.choices is None
    assert found.explanations == ['there is a clock near'] and found.extra == {'annot_id': 'val-7'}


@pytest.mark.parametrize(
    ('read', 'document', 'message'),
    [
        (nlxgpt.read_esnlive, {'3': esnlive(answers='maybe')}, "entry '3': answers is 'maybe', wanted one of contra"),
        (nlxgpt.read_esnlive, {'3': esnlive(hypothesis='')}, "entry '3': hypothesis is empty"),
        (nlxgpt.read_esnlive, {'3': esnlive(explanation=3)}, "entry '3': explanation is 3"),
        (nlxgpt.read_esnlive, {'3': []}, r"entry '3' is \[\], wanted object"),
        (nlxgpt.read_esnlive, {' ': esnlive()}, 'a key is empty'),
        (nlxgpt.read_esnlive, [], 'the document is .*wanted object'),
        (nlxgpt.read_vcr, {'3': vcr(answers=None)}, "entry '3': answers is None"),
        (nlxgpt.read_vcr, {'3': vcr(img_name='.jpg')}, "entry '3': img_name is '.jpg', which names no picture"),
        (nlxgpt.read_vcr, {'3': vcr(annot_id=3)}, "entry '3': annot_id is 3"),
    ],
)
def test_malformed_records_are_named(tmp_path, read, document, message):
    path = write(tmp_path / 'n.json', document)
    with pytest.raises(ValueError, match=rf'n\.json: {message}'):
        list(read(path))
