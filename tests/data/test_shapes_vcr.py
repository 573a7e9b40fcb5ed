"""The world's form with tagged objects and four choices: its language, its files, and what explains an answer."""

import collections
import itertools
import json
import re
import types

import numpy as np
import pytest
from PIL import Image

from evil_jax.data import features, shapes, tags
from evil_jax.data.builders import shapes_vcr, vcr
from evil_jax.data.shapes import examples, language_vcr

COUNTS = {'train': 120, 'dev': 40, 'test': 50}
# Things 1 to 4; the circles are told apart by their tags only.
THINGS = [('circle', 'red', 'small', 0), ('circle', 'blue', 'large', 4), ('star', 'dark', 'small', 2)]
SCENE = {'things': [dict(zip(('shape', 'colour', 'size', 'cell'), row)) for row in THINGS]}
SCENE['things'].append({'shape': 'crate', 'colour': 'wooden', 'size': 'large', 'cell': 8})


@pytest.fixture(scope='module')
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world') / 'raw'
    shapes.write_world('shapes_vcr', folder, counts=COUNTS, seed=3)
    return folder


@pytest.fixture(scope='module')
def read(raw):
    """Examples of each split, as the builder reads them."""
    return {split: list(shapes_vcr.Builder.read(f)) for split, f in shapes_vcr.Builder.files(raw).items()}


@pytest.fixture(scope='module')
def generated():
    return [(scene, item) for scene, items, _ in examples.generate('shapes_vcr', 'train', 4000, [7]) for item in items]


# The language.


@pytest.mark.parametrize(
    'text, answer, things',
    [
        ('What colour is <|det2|> ?', 'blue', (1,)),
        ('what colour is <|det2|>?', 'blue', (1,)),
        ('What colour is 2?', 'blue', (1,)),
        ('What colour is <|det3|> ?', None, ()),
        ('How does <|det1|> look ?', 'small and red', (0,)),
        ('How does <|det4|> look ?', None, ()),
        ('Where is <|det3|> ?', 'at the top right', (2,)),
        ('What is left of <|det2|> ?', '1', (0, 1)),
        ('What is below <|det3|> ?', '2 and 4', (1, 3, 2)),
        ('What is left of <|det1|> ?', None, ()),
        ('Where is <|det5|> ?', None, ()),
    ],
)
def test_answers(text, answer, things):
    verdict = shapes.judge(SCENE, shapes.parse_query(text))
    assert verdict.answer == answer and verdict.things == things


def test_other_text_has_no_meaning():
    for text in (
        'Where is <|det|> ?',
        'Where is <|det123|> ?',
        'Where is <|det1|> and <|det2|> ?',
        'Where is the circle?',
    ):
        assert shapes.parse_query(text) is None


def test_one_choice_is_right_and_all_are_of_its_kind(generated):
    for scene, item in generated:
        query = shapes.parse_query(item.text)
        assert query == item.query and len(item.choices) == 4
        holds = [_holds(scene, query, choice) for choice in item.choices]
        assert holds == [i == item.label for i in range(4)], (item.text, item.choices)


def _holds(scene, query, choice):
    """Whether a choice is the whole answer, worked out from its words."""
    things = scene['things']
    target = things[query.noun.tag - 1]
    if query.kind == 'beside':
        listed, number = re.fullmatch(r'(?:Only )?(.+) (?:is|are) .+ <\|det(\d)\|> \.', choice).groups()
        assert int(number) == query.noun.tag and query.value in choice
        row, column = divmod(target['cell'], 3)
        side = {
            'left of': lambda r, c: c < column,
            'right of': lambda r, c: c > column,
            'above': lambda r, c: r < row,
            'below': lambda r, c: r > row,
        }[query.value]
        found = {i + 1 for i, t in enumerate(things) if side(*divmod(t['cell'], 3))}
        return {int(n) for n in re.findall(r'det(\d)', listed)} == found
    said = re.fullmatch(rf'<\|det{query.noun.tag}\|> is (.+) \.', choice)[1]
    if query.kind == 'place':
        return shapes.PLACES.index(said) == target['cell']
    size, colour = said.split(' and ') if query.kind == 'look' else (target['size'], said)
    assert colour in shapes.COLOURS and size in shapes.SIZES
    return (size, colour) == (target['size'], target['colour'])


def test_wrong_choices_are_what_other_things_are(generated):
    """A model that does not know which thing is meant cannot answer: colours and places of the others are offered."""
    for scene, item in generated[:500]:
        if item.query.kind == 'place' and len(set(item.choices)) == 4:
            offered = {shapes.PLACES.index(c.split(' is ')[1].removesuffix(' .')) for c in item.choices}
            assert {t['cell'] for t in scene['things']} <= offered


def test_kinds_and_labels_are_balanced(generated):
    kinds = collections.Counter(item.query.kind for _, item in generated)
    shares = collections.Counter()
    for (kind, _), share in language_vcr.SHARES.items():
        shares[kind] += share
    assert sum(shares.values()) == pytest.approx(1)
    for kind, share in shares.items():
        assert abs(kinds[kind] / len(generated) - share) < 0.005
    for label, count in collections.Counter(item.label for _, item in generated).items():
        assert abs(count / len(generated) - 0.25) < 0.03, label
    repeated = [len(set(item.choices)) < 4 for _, item in generated]
    assert 0.02 < np.mean(repeated) < 0.07


def test_words_do_not_tell_the_answer(generated):
    """Naive Bayes on words, word pairs, question with choice, position and what choices have in common: a quarter."""
    counts = {True: collections.Counter(), False: collections.Counter()}
    total = collections.Counter()
    for _, item in generated:
        for i in range(4):
            counts[i == item.label].update(_grams(item, i))
            total[i == item.label] += 1
    right = collections.Counter()
    asked = collections.Counter()
    for _, items, _ in examples.generate('shapes_vcr', 'test', 2000, [7]):
        for item in items:
            scores = [
                sum(
                    np.log((counts[True][g] + 1) / (total[True] + 2))
                    - np.log((counts[False][g] + 1) / (total[False] + 2))
                    for g in _grams(item, i)
                )
                for i in range(4)
            ]
            asked[item.query.kind] += 1
            right[item.query.kind] += int(np.argmax(scores)) == item.label
    assert right.total() / asked.total() < 0.29
    for kind in asked:
        assert right[kind] / asked[kind] < 0.34, kind


def _grams(item, i):
    question, words = item.text.lower().split(), item.choices[i].lower().split()
    position = {('position', i), ('times', item.choices.count(item.choices[i]))}
    alike = {('alike', word, sum(word in other.lower().split() for other in item.choices)) for word in words}
    return {*words, *itertools.pairwise(words), *itertools.product(question, words), *alike, *position}


def test_decisive_words():
    for text, wanted in (
        ('What colour is <|det2|> ?', ['colour', '<|det2|>']),
        ('How does <|det2|> look ?', ['<|det2|>', 'look']),
        ('Where is <|det2|>?', ['Where', '<|det2|>?']),
        ('What is left of <|det1|> ?', ['left', '<|det1|>']),
    ):
        assert [text.split()[i] for i in language_vcr.decisive_words(text)] == wanted


# Explanations.


@pytest.mark.parametrize(
    'question, explanation, wanted',
    [
        ('What colour is <|det2|>?', '<|det2|> is a blue circle in the middle.', True),
        ('What colour is <|det2|>?', '2 is a blue circle in the middle .', True),
        ('What colour is <|det2|>?', '<|det2|> is in the middle and is blue', True),
        ('What colour is <|det2|>?', '2 in the middle is blue', True),
        ('What colour is <|det2|>?', '2 is the large blue circle in the middle, not red', True),
        ('What colour is <|det2|>?', '2 is blue and it is in the middle', True),
        ('How does <|det1|> look?', '1 is a small red circle at the top left', True),
        ('How does <|det1|> look?', '1 is at the top left and is small and red', True),
        ('Where is <|det3|>?', '3 is a dark star at the top right', True),
        ('Where is <|det1|>?', '1 is at the top left and is red', True),
        ('What is left of <|det2|>?', '1 is at the top left and 2 is in the middle', True),
        ('What is left of <|det2|>?', '2 is in the middle and 1 at the top left', True),
        ('What is below <|det3|>?', '2 is in the middle, 4 is at the bottom right and 3 is at the top right.', True),
        # circular, or too little
        ('What colour is <|det2|>?', '2 is blue', False),
        ('What colour is <|det2|>?', '2 is a blue circle', False),
        ('What colour is <|det2|>?', '2 is a circle in the middle', False),
        ('Where is <|det1|>?', '1 is at the top left', False),
        ('Where is <|det1|>?', '1 is a circle at the top left', False),
        ('How does <|det1|> look?', '1 is a red circle at the top left', False),
        ('How does <|det1|> look?', '1 is small and red', False),
        ('What is left of <|det2|>?', '1 is left of 2', False),
        ('What is left of <|det2|>?', '1 is at the top left', False),
        ('What is below <|det3|>?', '2 is in the middle and 3 is at the top right', False),
        # true, but not said of the tag
        ('What colour is <|det2|>?', 'a blue circle is in the middle', False),
        ('Where is <|det1|>?', 'the red circle is at the top left', False),
        # of another tag
        ('What colour is <|det2|>?', '1 is a red circle at the top left', False),
        ('What colour is <|det2|>?', '1 is a blue circle in the middle', False),
        ('Where is <|det1|>?', '3 is a dark star at the top right', False),
        ('What is left of <|det2|>?', '1 is at the top left and 3 is at the top right', False),
        # false
        ('What colour is <|det2|>?', '2 is a blue circle at the top left', False),
        ('What colour is <|det2|>?', '2 is a red circle in the middle', False),
        ('What colour is <|det2|>?', '2 is a blue square in the middle', False),
        ('What colour is <|det2|>?', '2 is a small blue circle in the middle', False),
        ('What colour is <|det2|>?', '2 is a blue circle in the middle and 1 is blue', False),
        ('What colour is <|det2|>?', '2 is not blue and is in the middle', False),
        ('Where is <|det3|>?', '3 is a red star at the top right', False),
        ('What is left of <|det2|>?', '1 is in the middle and 2 is at the top left', False),
        ('What colour is <|det2|>?', '5 is a blue circle in the middle', False),
        # not the language
        ('What colour is <|det2|>?', '', False),
        ('What colour is <|det2|>?', '2', False),
        ('What colour is <|det2|>?', '2 2 is a blue circle in the middle', False),
        ('What colour is <|det2|>?', '02 is a blue circle in the middle', False),
        ('What colour is <|det2|>?', '[2] is a blue circle in the middle', False),
        ('What colour is <|det2|>?', f'{"2" * 5000} is a blue circle in the middle', False),
        ('What colour is <|det2|>?', 'the 2 is a blue circle in the middle', False),
        ('What colour is <|det2|>?', '<|det2|> is a blue circle in the middle because of it', False),
    ],
)
def test_judgements_made_by_hand(question, explanation, wanted):
    assert shapes.explanation_is_true(SCENE, types.SimpleNamespace(text=question), explanation) is wanted


def test_where_nothing_is_tagged_a_number_means_nothing():
    example = types.SimpleNamespace(text='There is a blue circle.')
    assert shapes.explanation_is_true(SCENE, example, 'a blue circle is in the middle')
    assert not shapes.explanation_is_true(SCENE, example, '2 is a blue circle in the middle')


def test_golds_are_true_and_the_offered_other_rationales_are_not(generated):
    for scene, item in generated:
        (gold,) = item.explanations
        assert shapes.explanation_is_true(scene, item, gold), (item.text, gold)
        assert shapes.explanation_is_true(scene, item, language_vcr.bare(gold).replace(' .', ''))
        assert len(set(item.denied)) == 3
        for text in item.denied:
            assert not shapes.explanation_is_true(scene, item, text), (item.text, text)


def test_a_gold_with_another_tag_is_not_true(generated):
    for scene, item in generated[:1000]:
        (gold,) = item.explanations
        for i, j in itertools.permutations(range(1, len(scene['things']) + 1), 2):
            if f'<|det{i}|>' in gold:
                assert not shapes.explanation_is_true(scene, item, gold.replace(f'<|det{i}|>', f'<|det{j}|>'))


# Files.


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]


def test_files_are_in_the_official_format(raw):
    train, val = rows(raw / 'train.jsonl'), rows(raw / 'val.jsonl')
    assert [row['annot_id'] for row in train] == [f'train-{i}' for i in range(160)]
    assert [row['annot_id'] for row in val] == [f'val-{i}' for i in range(50)]
    scenes = {row['image_id']: row['scene'] for row in rows(raw / 'scenes.jsonl')}
    for row in train + val:
        movie, picture = row['img_fn'].split('/')
        assert movie == row['movie'] and picture.endswith('@0.jpg')
        assert row['metadata_fn'] == row['img_fn'].replace('.jpg', '.json')
        scene = scenes[picture.removesuffix('.jpg')]
        names = [thing['shape'] for thing in scene['things']]
        metadata = json.loads((raw / 'vcr1images' / row['metadata_fn']).read_text())
        assert row['objects'] == metadata['names'] == names
        with Image.open(raw / 'images' / row['img_fn'].replace('.jpg', '.png')) as image:
            assert image.size == (metadata['width'], metadata['height'])
        assert len(metadata['boxes']) == len(metadata['segms']) == len(names)
        for thing, (x1, y1, x2, y2, score), (polygon,) in zip(scene['things'], metadata['boxes'], metadata['segms']):
            assert 0 <= x1 < thing['x'] < x2 <= 144 and 0 <= y1 < thing['y'] < y2 <= 144 and 0 < score <= 1
            assert all(x1 - 0.01 <= x <= x2 + 0.01 and y1 - 0.01 <= y <= y2 + 0.01 for x, y in polygon)
        assert 0 <= row['answer_label'] < 4 and 0 <= row['rationale_label'] < 4
        assert len(row['answer_choices']) == len(row['rationale_choices']) == 4
        for kind, tokens in (
            ('question', row['question']),
            ('answer', row['answer_choices'][row['answer_label']]),
            ('rationale', row['rationale_choices'][row['rationale_label']]),
        ):
            # Strings count objects from 1, token lists from 0.
            shown = [' and '.join(str(i + 1) for i in t) if isinstance(t, list) else t for t in tokens]
            assert ' '.join(shown) == re.sub(r'([.,?])', r' \1', row[f'{kind}_orig'])
            assert all(0 <= i < len(names) for t in tokens if isinstance(t, list) for i in t)
    assert any(len(t) == 2 for row in train for c in row['answer_choices'] for t in c if isinstance(t, list))


def test_dev_is_the_world_s_own_part_of_the_training_file(raw, read, tmp_path):
    assert {split: len(found) for split, found in read.items()} == COUNTS
    assert all(example.extra['split'] == split for split, found in read.items() for example in found)
    assert raw / 'dev_ids.txt' in shapes_vcr.Builder.sources(raw)
    other = tmp_path / 'mine.txt'
    other.write_text(read['train'][0].image_id)
    options = shapes_vcr._base.Options(dev_ids=str(other))
    files = shapes_vcr.Builder.files(raw, options)
    dev = list(shapes_vcr.Builder.read(files['dev'], options))
    assert {example.image_id for example in dev} == {read['train'][0].image_id}
    shapes.write_world('shapes_vcr', tmp_path / 'raw', counts={'train': 9, 'test': 4})
    files = shapes_vcr.Builder.files(tmp_path / 'raw')
    assert {split: len(list(shapes_vcr.Builder.read(f))) for split, f in files.items()} == {'train': 9, 'test': 4}


def test_the_reader_of_the_real_data_set_reads_it_too(raw, read):
    options = vcr._base.Options(dev_share=0.3)
    found = {s: list(vcr.Builder.read(f, options)) for s, f in vcr.Builder.files(raw, options).items()}
    assert len(found['train']) + len(found['dev']) == 160 and len(found['test']) == 50
    assert 0 < len(found['dev']) < 100
    by_id = {example.id: example for examples in read.values() for example in examples}
    for example in found['train'] + found['dev'] + found['test']:
        mine = by_id[example.id]
        assert (example.text, example.choices, example.label) == (mine.text, mine.choices, mine.label)
        assert 'scene' not in example.extra


def test_examples_know_scene_truth_and_the_regions_of_their_tags(raw, read):
    reader = features.open_features(raw / 'feat_th0.2_max100_min10')
    moved = 0
    for example in itertools.chain(*read.values()):
        scene = example.extra['scene']
        query = shapes.parse_query(example.text)
        assert list(shapes.judge(scene, query).things) == example.extra['objects']
        assert example.extra['kind'] == query.kind and max(example.extra['words']) < len(example.text.split())
        assert shapes.explanation_is_true(scene, example, *example.explanations)
        regions = reader[example.image_id]
        found = tags.regions_of(example, regions)
        moved += found.tolist() != list(range(len(found)))
        for index, thing in zip(found, scene['things'], strict=True):
            name = shapes.CLASSES[regions.classes[index]]
            assert index >= 0 and name.split()[-1] == thing['shape']
            assert name == 'crate' or name.split()[0] == thing['colour']
    assert moved > 100  # regions are in another order than objects
