import dataclasses
import json

import numpy as np
import pytest

from evil_jax.data import counts, tokenizers, transforms
from evil_jax.data.features.regions import Regions
from evil_jax.records import Example

ENCODING = transforms.Encoding(choices=4)


@pytest.fixture(scope='module')
def assets(tmp_path_factory):
    folder = tmp_path_factory.mktemp('assets')
    texts = ['is it red ?', 'yes', 'no', 'because it is red']
    word = tokenizers.train_word(texts, folder / 'word')
    return tokenizers.Assets(word, tokenizers.train_expl(texts, folder / 'expl', size=300), ('yes', 'no'))


def questions():
    answered = [{'yes': 1.0}, {'no': 0.6, 'maybe': 0.3}, {'maybe': 1.0}, {'maybe': 0.0}, None]
    return [
        Example(
            f'q{i}', f'p{i // 2}', 'is it ' * (i + 1) + 'blue ?', answers=answers, explanations=['it is red'] * i,
            answer_type='yes/no' if i else 'other',
        )
        for i, answers in enumerate(answered)
    ]  # fmt: skip


def test_questions(assets):
    splits = {'train': questions(), 'dev': questions()[:1]}
    found, outside = counts.count(splits, assets, transforms.Encoding(), [36, 36, 10])
    assert found.examples == {'train': 5, 'dev': 1} and found.images == {'train': 3, 'dev': 1}
    assert found.references == {'train': 10, 'dev': 0} and found.explained == {'train': 4, 'dev': 0}
    assert found.unanswered == {'train': 2, 'dev': 0}
    assert outside == [('train', 'q2', 'maybe')] and found.outside == {'train': 1, 'dev': 0}
    assert found.gold == {'inside': 3, 'outside': 2} and found.outside_answers == [('maybe', 2)]
    assert found.answer_types == {'train': {'other': 1, 'yes/no': 4}, 'dev': {'other': 1}} and found.labels == {}
    assert found.lengths['regions'] == {'10': 1, '36': 2}
    assert found.words['text'] == {'4': 2, '6': 1, '8': 1, '10': 1, '12': 1}
    assert found.words['explanation'] == {'3': 10} and sum(found.lengths['explanation'].values()) == 10
    assert sum(found.lengths['text'].values()) == sum(found.lengths['question'].values()) == 6
    longest = found.longest['text']
    assert [row['id'] for row in longest] == ['q4', 'q3', 'q2', 'q1', 'q0'], 'of equal lengths the first stays'
    assert longest[0] == {'tokens': longest[0]['tokens'], 'split': 'train', 'id': 'q4', 'text': questions()[4].text}
    assert [row['tokens'] for row in longest] == sorted((row['tokens'] for row in longest), reverse=True)
    # 'blue' is spelled with letters; a build counted once more from its file is the same.
    assert found.coverage['word']['most_split'] == [('blue', 6)]
    assert found.coverage['word']['split_distinct'] == 1 and found.coverage['word']['distinct'] == 3
    document = json.loads(json.dumps(dataclasses.asdict(found)))
    copy = counts.Counts(**document)
    assert copy.coverage['word']['occurrences'] == found.coverage['word']['occurrences'] == 16 * 2 + 6


def test_classes_and_choices(assets):
    classes = [Example(str(i), 'p', 'is it ?', label=label) for i, label in enumerate(['no', 'yes', 'no'])]
    found, outside = counts.count({'train': classes}, assets, transforms.Encoding(), [])
    assert found.labels == {'train': {'no': 2, 'yes': 1}} and outside == []
    choices = ['<|det1|> is red', 'it is', '<|det2|>', 'x']
    vcr = [
        Example(str(i), 'p', 'is <|det1|> red ?', choices=choices, label=label, objects=['person', 'dog'],
                explanations=['<|det1|> is red'])
        for i, label in enumerate([0, 3, None])
    ]  # fmt: skip
    none = dataclasses.replace(assets, answers=())
    found, outside = counts.count({'dev': vcr}, none, transforms.Encoding(choices=4), [])
    assert found.labels == {'dev': {'choice 1': 1, 'choice 4': 1}} and found.unanswered == {'dev': 1}
    assert found.answers == 0 and outside == [] and found.gold == {'inside': 0, 'outside': 0}
    assert sum(found.lengths['text'].values()) == 12, 'a pair each'
    assert sum(found.lengths['answer'].values()) == sum(found.words['answer'].values()) == 12
    words = dict(found.coverage['word']['most_split'])
    assert words['Casey'] == 3 + 3 and words['dog'] == 3, 'the encoder reads names'
    assert not {'det1', 'det2', '1'} & dict(found.coverage['expl']['most_split']).keys(), 'tags are tokens'
    assert found.longest['text'][0]['text'].startswith('is <|det1|> red ? | <|det1|> is red | it is')


def test_tags_and_the_regions_that_they_stand_for(assets):
    choices = ['<|det2|> is', 'no', '<|det1|><|det9|>', '<|det1|>']
    boxes = {'boxes': [[0, 0, 50, 50], [50, 50, 100, 100]], 'size': [100, 100]}
    examples = [
        Example(str(i), picture, 'is <|det1|> ?', choices=choices, label=0, objects=['person', 'dog'], extra=extra)
        for i, (picture, extra) in enumerate([('p', boxes), ('p', boxes), ('q', boxes), ('r', {})])
    ]
    read = []

    def regions_of(image_id):
        read.append(image_id)
        corner = {'p': 50, 'q': 10}[image_id]
        box = np.float32([[0, 0, corner, corner]])
        return Regions(np.zeros((1, 2048), np.float16), box, (100, 100), np.ones(1, np.float32), np.zeros(1, np.int32))

    none = dataclasses.replace(assets, answers=())
    found, _ = counts.count({'train': examples[:2], 'dev': examples[2:]}, none, ENCODING, [], regions_of)
    assert found.tags == {'train': 10, 'dev': 10}, 'of the question and the choices; not of explanations'
    assert found.linked == {'train': 6, 'dev': 0}, 'det1 is the region of p; det9 is no object'
    assert read == ['p', 'q'], 'once a picture, and only where boxes are known'
    found, _ = counts.count({'train': examples}, none, ENCODING, [])
    assert (found.tags, found.linked) == ({'train': 20}, {'train': 0})


def test_pictures_of_two_splits(assets):
    rows = lambda *pictures: [Example(p, p, 'is it ?', label='no') for p in pictures]
    splits = {'train': rows('a', 'b', 'c'), 'dev': rows('b', 'd', 'c'), 'test': rows('d')}
    found, _ = counts.count(splits, assets, transforms.Encoding(), [])
    assert found.shared == {'train': 0, 'dev': 2, 'test': 0}


def test_coverage():
    encode = lambda word: {'a': [1], 'bc': [2, 3], 'd': [0]}[word]
    found = counts.coverage({'a': 5, 'bc': 3, 'd': 2}, encode, unknown=0)
    assert found == {
        'occurrences': 10, 'distinct': 3, 'split_occurrences': 3, 'split_distinct': 1, 'most_split': [('bc', 3)],
        'unknown_occurrences': 2, 'unknown_distinct': 1, 'most_unknown': [('d', 2)],
    }  # fmt: skip
    assert counts.coverage({'d': 2}, encode)['unknown_distinct'] == 0
    many = counts.coverage({f'w{i:02}': 1 for i in range(50)}, lambda word: [1, 2])
    assert [word for word, _ in many['most_split']] == [f'w{i:02}' for i in range(20)]


def test_a_word_inside_a_text_is_looked_up_with_its_blank(assets):
    assert len(counts._inside(assets.expl, 'red')) == 1
    assert len(counts._inside(assets.expl, 'blue')) > 1
