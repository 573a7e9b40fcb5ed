"""Object tags: what the encoder and the decoder read in their place, and which region an object is."""

import numpy as np
import pytest

from evil_jax.data import tags, tokenizers
from evil_jax.data.features.regions import Regions
from evil_jax.records import Example

OBJECTS = ['person', 'chair', 'person', 'wine glass']


@pytest.fixture(scope='module')
def word(tmp_path_factory):
    return tokenizers.train_word(['Riley sits on the chair .', 'a wine glass'], tmp_path_factory.mktemp('word'))


@pytest.mark.parametrize(
    ('text', 'names', 'det'),
    [
        ("<|det1|>'s <|det2|>", "Casey's chair", "<|det1|>'s <|det2|>"),
        ('<|det3|> and <|det4|>.', 'Riley and wine glass.', '<|det3|> and <|det4|>.'),
        ('why?', 'why?', 'why?'),
        ('<|det0|> or <|det5|>', '<|det0|> or <|det5|>', '<|det0|> or <|det5|>'),  # no such objects
        ('', '', ''),
    ],
)
def test_what_the_encoder_reads(text, names, det):
    assert tags.spoken(text, OBJECTS, 'names') == names
    assert tags.spoken(text, OBJECTS, 'det') == det
    assert tags.spoken(text, None, 'names') == det


def test_there_are_fifteen_names_of_which_one_comes_twice():
    persons = ['person'] * 17
    names = [tags.spoken(f'<|det{n}|>', persons, 'names') for n in range(1, 18)]
    assert names[:15] == list(tags.NAMES) and names[15:] == ['Casey', 'Riley'] and len(set(names)) == 14


def test_every_piece_of_a_name_stands_for_its_object(word):
    ids, numbers = tags.encode("<|det4|> of <|det3|>'s <|det1|>", OBJECTS, 'names', word)
    tokens = word.tokens(ids)
    assert ids == word.encode("wine glass of Riley's Casey") and len(ids) == len(numbers)
    assert [t for t, n in zip(tokens, numbers) if n == 4] == ['wine', 'glass']
    assert [t for t, n in zip(tokens, numbers) if n == 3] == ['riley']
    assert ''.join(t.removeprefix('##') for t, n in zip(tokens, numbers) if n == 1) == 'casey'
    assert [t for t, n in zip(tokens, numbers) if not n] == ['o', '##f', "'", 's']


@pytest.mark.parametrize('text', ["is <|det12|>'s", 'a<|det1|>b', '<|det1|><|det2|>', ' <|det3|> ? '])
def test_characters_of_a_tag_are_spelled_as_in_the_whole_text(word, text):
    assert tags.encode(text, OBJECTS, 'det', word)[0] == word.encode(text)


def test_what_the_decoder_reads():
    objects = ['person'] * 45 + ['dog']
    text = 'Is <|det44|> or <|det45|> the <|det46|>?'
    assert tags.written(text, objects) == 'Is <|det44|> or person the dog?'
    assert tags.written(text, objects[:45]) == 'Is <|det44|> or person the <|det46|>?'
    assert tags.written(text, None) == text and tags.written('no tag', objects) == 'no tag'


def regions(*boxes, size=(100, 50)):
    n = len(boxes)
    zeros = np.zeros(n, np.float32)
    return Regions(np.zeros((n, 8)), np.array(boxes, np.float32).reshape(n, 4), size, zeros, zeros.astype(np.int32))


def example(*boxes, size=(200, 100), objects=None):
    boxes = [list(box) for box in boxes]
    return Example(
        'e', 'p', 't', objects=objects or ['person'] * len(boxes), extra={'boxes': boxes, 'size': list(size)}
    )


def test_an_object_is_the_region_that_overlaps_it_most():
    found = regions([0, 0, 50, 50], [0, 0, 40, 50], [50, 0, 100, 24.9])
    # Twice the resolution: the picture's halves are [0, 0, 100, 100] and [100, 0, 200, 100].
    asked = example([0, 0, 100, 100], [0, 0, 82, 100], [100, 0, 200, 100], [0, 0, 100, 49])
    assert tags.regions_of(asked, found).tolist() == [0, 1, -1, -1]
    assert tags.regions_of(asked, found.take(slice(1))).tolist() == [0, 0, -1, -1]  # the second region is cut off
    assert tags.regions_of(example([100, 0, 200, 50]), found).tolist() == [2]


def test_half_of_the_union_is_enough():
    assert tags.regions_of(example([0, 0, 100, 100]), regions([0, 0, 25, 50])).tolist() == [0]
    assert tags.regions_of(example([0, 0, 100, 100]), regions([0, 0, 24.9, 50])).tolist() == [-1]


def test_where_boxes_do_not_say_no_tag_is_linked():
    box, found = [0, 0, 100, 100], regions([0, 0, 50, 50])
    nothing = Example('e', 'p', 't', objects=['person', 'dog'])
    assert tags.regions_of(nothing, found).tolist() == [-1, -1]
    assert tags.regions_of(example(box), None).tolist() == [-1]
    assert tags.regions_of(example(box), regions()).tolist() == [-1]
    assert tags.regions_of(example([5, 5, 5, 5]), regions([2.5, 2.5, 2.5, 2.5])).tolist() == [-1]
    with pytest.raises(ValueError, match=r"example 'e' has boxes of shape \(1, 3\)"):
        tags.regions_of(example([0, 0, 1]), found)


@pytest.mark.parametrize('extra', [
    {}, {'boxes': [[0, 0, 1, 1]], 'size': [4, 4]}, {'boxes': 'x', 'size': [4, 4]}, {'boxes': [[0] * 4] * 4, 'size': 3},
    {'boxes': [[0, 0, float('nan'), 1]] * 4, 'size': [4, 4]}, {'boxes': [[[]]] + [[0] * 4] * 3, 'size': [4, 4]},
])  # fmt: skip
def test_boxes_that_make_no_sense_are_none(extra):
    assert tags.located(Example('e', 'm', '', objects=OBJECTS, extra=extra)) is None


def test_boxes_have_the_names_of_the_texts():
    extra = {'boxes': [[0, 1, 2, 3]] * 4, 'size': [4, 5]}
    found = tags.located(Example('e', 'm', '', objects=OBJECTS, extra=extra))
    assert found['classes'] == ['person 1', 'chair 2', 'person 3', 'wine glass 4'] and found['size'] == (4, 5)
