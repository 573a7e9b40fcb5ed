"""The built-in world: scenes, pictures, regions and what they answer."""

import collections
import itertools
import types

import numpy as np
import pytest
from PIL import ImageDraw

from evil_jax.data import shapes
from evil_jax.data.shapes import examples, language_ve, language_vqa
from evil_jax.data.shapes import scene as scenes


@pytest.fixture(scope='module')
def detected():
    """Features of some 1,800 regions and what they show."""
    features, things = [], []
    for i in range(420):
        rng = np.random.default_rng(i)
        scene = shapes.make_scene(rng)
        features.append(shapes.detect(scene, shapes.render(scene), rng).features)
        things += scene['things']
    return np.concatenate(features), things


def test_a_scene_is_unambiguous():
    for i in range(300):
        scene = shapes.make_scene(np.random.default_rng(i))
        things = scene['things']
        assert len(things) in (3, 4)
        assert len({t['cell'] for t in things}) == len(things)
        assert len({(t['shape'], t['colour']) for t in things}) == len(things)
        assert sum(t['shape'] == 'crate' for t in things) <= 1
        shadowed = [t['shape'] for t in things if t['colour'] == 'dark']
        assert len(shadowed) <= 1
        assert not shadowed or [t['shape'] for t in things].count(shadowed[0]) == 1


def test_things_stay_inside_their_cells_and_boxes():
    for i in range(100):
        rng = np.random.default_rng(i)
        scene = shapes.make_scene(rng)
        image = shapes.render(scene)
        found = shapes.detect(scene, image, rng)
        assert image.size == (144, 144)
        for thing, box in zip(scene['things'], found.boxes):
            row, column = divmod(thing['cell'], 3)
            assert column * 48 < (box[0] + box[2]) / 2 < (column + 1) * 48
            assert row * 48 < (box[1] + box[3]) / 2 < (row + 1) * 48
            assert box[0] < thing['x'] < box[2] and box[1] < thing['y'] < box[3]
            assert min(box) >= 0 and max(box) <= 144


def test_region_i_is_thing_i():
    rng = np.random.default_rng(3)
    scene = shapes.make_scene(rng)
    found = shapes.detect(scene, shapes.render(scene), rng)
    for thing, index, attribute in zip(scene['things'], found.class_ids, found.attribute_ids):
        assert shapes.CLASSES[index].split()[-1] == thing['shape']
        assert shapes.ATTRIBUTES[attribute] == thing['colour']
    assert found.features.shape == (len(scene['things']), 2048)
    assert found.features.dtype == np.float32 and found.class_ids.dtype == np.int64
    assert (np.diff(found.class_conf) <= 0).all()


def test_features_are_of_unit_order(detected):
    features, _ = detected
    assert 0.5 < features.std() < 2
    assert abs(features.mean()) < 0.2
    assert abs(features).max() < 100  # float16 keeps them


@pytest.mark.parametrize('name', ['shape', 'colour', 'size'])
def test_a_linear_probe_reads_what_a_thing_looks_like(detected, name):
    features, things = detected
    values = sorted({t[name] for t in things})
    kept = np.array([i for i, t in enumerate(things) if name != 'size' or t['shape'] != 'crate'])
    labels = np.array([values.index(things[i][name]) for i in kept])
    x = np.c_[features[kept], np.ones(len(kept))].astype(np.float64)
    cut = len(kept) * 2 // 3
    gram = x[:cut] @ x[:cut].T + 1.0 * np.eye(cut)  # ridge in its dual form
    weights = x[:cut].T @ np.linalg.solve(gram, np.eye(len(values))[labels[:cut]])
    accuracy = ((x[cut:] @ weights).argmax(1) == labels[cut:]).mean()
    assert accuracy >= 0.95


def test_editing_pixels_changes_the_features_of_that_box_only():
    rng = np.random.default_rng(5)
    scene = shapes.make_scene(rng)
    image = shapes.render(scene)
    found = shapes.detect(scene, image, rng)
    np.testing.assert_array_equal(shapes.box_features(image, found.boxes), found.features)
    x1, y1, x2, y2 = (float(v) for v in found.boxes[0])
    ImageDraw.Draw(image).rectangle((x1 + 5, y1 + 5, x2 - 5, y2 - 5), fill=(0, 255, 255))
    changed = np.abs(shapes.box_features(image, found.boxes) - found.features).max(axis=1)
    assert changed[0] > 0.1
    others = [i for i in range(1, len(found.boxes)) if _apart(found.boxes[0], found.boxes[i])]
    assert others and not changed[others].any()


def _apart(a, b):
    return a[2] < b[0] - 1 or b[2] < a[0] - 1 or a[3] < b[1] - 1 or b[3] < a[1] - 1


def test_boxes_at_the_edge_or_without_size_are_described_too():
    image = shapes.render(shapes.make_scene(np.random.default_rng(0)))
    boxes = [(-5, -5, 10, 10), (140, 140, 150, 150), (20, 20, 20, 20), (144, 144, 144, 144)]
    assert np.isfinite(shapes.box_features(image, boxes)).all()
    assert shapes.box_features(image, np.zeros((0, 4))).shape == (0, 2048)


def test_rendering_is_a_function_of_the_scene():
    scene = shapes.make_scene(np.random.default_rng(1))
    assert shapes.render(scene).tobytes() == shapes.render(scene).tobytes()


# What a scene answers: expectations written by hand.

PLAIN = [
    ('circle', 'red', 'small', 0),
    ('circle', 'green', 'large', 4),
    ('square', 'blue', 'large', 8),
    ('star', 'dark', 'small', 2),
]
CRATED = [('circle', 'red', 'small', 0), ('square', 'blue', 'large', 8), ('crate', 'wooden', 'large', 5)]


def hand_made(rows):
    """A scene of (shape, colour, size, cell)."""
    return {'things': [dict(zip(('shape', 'colour', 'size', 'cell'), row)) for row in rows]}


@pytest.mark.parametrize(
    'rows, text, label',
    [
        (PLAIN, 'There is a red circle.', 'entailment'),
        (PLAIN, 'There is a square that is red.', 'contradiction'),
        (PLAIN, 'There is a red star.', 'neutral'),
        (PLAIN, 'there is a red triangle', 'contradiction'),
        (CRATED, 'There is a red triangle.', 'neutral'),
        (CRATED, 'There is a red circle.', 'entailment'),
        (PLAIN, 'The square is blue.', 'entailment'),
        (PLAIN, 'The colour of the square is red.', 'contradiction'),
        (PLAIN, 'The star is red.', 'neutral'),
        (PLAIN, 'The circle is red.', None),
        (PLAIN, 'The star is small.', 'entailment'),
        (PLAIN, 'The square is small.', 'contradiction'),
        (CRATED, 'The star is small.', 'neutral'),
        (PLAIN, 'The red circle is left of the blue square.', 'entailment'),
        (PLAIN, 'The red circle is below the blue square.', 'contradiction'),
        (PLAIN, 'The red circle is above the pink square.', None),
        (CRATED, 'The red circle is above the pink square.', 'neutral'),
    ],
)
def test_labels(rows, text, label):
    assert shapes.judge(hand_made(rows), shapes.parse_query(text)).label == label


@pytest.mark.parametrize(
    'rows, text, answer',
    [
        (PLAIN, 'What colour is the square?', 'blue'),
        (PLAIN, 'What colour is the star?', None),
        (PLAIN, 'What shape is the green object?', 'circle'),
        (PLAIN, 'What size is the star?', 'small'),
        (PLAIN, 'How many circles can be seen?', '2'),
        (PLAIN, 'Is there a red circle?', 'yes'),
        (PLAIN, 'Is there a red square?', 'no'),
        (PLAIN, 'Is the red circle left of the blue square?', 'yes'),
        (PLAIN, 'Is the red circle right of the blue square?', 'no'),
        (PLAIN, 'What is left of the green circle?', 'red circle'),
        (PLAIN, 'What is above the blue square?', None),
        (CRATED, 'What is above the blue square?', None),
    ],
)
def test_answers(rows, text, answer):
    assert shapes.judge(hand_made(rows), shapes.parse_query(text)).answer == answer


def test_other_text_has_no_meaning():
    for text in ('', 'There is a dog.', 'There is a red circle. Yes.', 'Is there a red circle on the left?'):
        assert shapes.parse_query(text) is None


@pytest.mark.parametrize('kind', language_ve.SHARES)
@pytest.mark.parametrize('label', language_ve.LABELS)
def test_sampled_statements_have_the_wanted_label_and_survive_their_wording(kind, label):
    found = 0
    for i in range(150):
        rng = np.random.default_rng(i)
        scene = shapes.make_scene(rng)
        query = language_ve.sample(scene, kind, label, rng)
        if query is not None:
            found += 1
            assert shapes.judge(scene, query).label == label
            assert shapes.parse_query(language_ve.phrase(query, rng)) == query
    assert found >= 20


@pytest.mark.parametrize('kind, answer', language_vqa.SHARES)
def test_sampled_questions_have_the_wanted_answer_and_survive_their_wording(kind, answer):
    found = 0
    for i in range(300):
        rng = np.random.default_rng(i)
        scene = shapes.make_scene(rng)
        query = language_vqa.sample(scene, kind, answer, rng)
        if query is not None:
            found += 1
            given = shapes.judge(scene, query).answer
            assert given is not None and answer in (None, given)
            assert shapes.parse_query(language_vqa.phrase(query)) == query
    assert found >= 5


def test_words_do_not_tell_the_label():
    """A naive Bayes classifier on words and word pairs of 4,000 hypotheses stays near one third on 1,500 others."""
    train = _hypotheses('train', 4000)
    test = _hypotheses('test', 1500)
    by_label = {label: collections.Counter() for label in language_ve.LABELS}
    total = collections.Counter(label for _, label in train)
    for text, label in train:
        by_label[label].update(_grams(text))
    right = 0
    for text, label in test:
        scores = {
            name: sum(np.log((seen[g] + 1) / (total[name] + 2)) for g in _grams(text))
            for name, seen in by_label.items()
        }
        right += max(scores, key=scores.get) == label
    assert right / len(test) < 0.40
    majority = collections.Counter(label for _, label in test).most_common(1)[0][1]
    assert majority / len(test) < 0.36


def _hypotheses(split, count):
    return [
        (item.text, item.verdict.label)
        for _, items, _ in examples.generate('shapes_ve', split, count, [7])
        for item in items
    ]


def _grams(text):
    words = text.lower().rstrip('.').split()
    return {*words, *itertools.pairwise(words)}


def test_every_kind_of_statement_is_balanced():
    counts = collections.Counter()
    for _, items, _ in examples.generate('shapes_ve', 'train', 3000, [1]):
        counts.update((item.query.kind, item.verdict.label) for item in items)
    assert counts.total() == 3000
    for kind, share in language_ve.SHARES.items():
        for label in language_ve.LABELS:
            assert abs(counts[kind, label] / 3000 - share / 3) < 0.005


def test_decisive_things_and_words():
    scene = hand_made(CRATED)
    for text, things, words in (
        ('There is a red circle.', (0,), ['red', 'circle.']),
        ('The colour of the square is red.', (1,), ['square', 'red.']),
        ('The red circle is above the pink square.', (2,), ['pink', 'square.']),
        ('The pink square is above the red circle.', (2,), ['pink', 'square']),
        ('The red circle is above the blue square.', (0, 1), ['red', 'circle', 'above', 'blue', 'square.']),
        ('What colour is the circle?', (0,), ['colour', 'circle?']),
        ('How many circles can be seen?', (0,), ['many', 'circles']),
    ):
        query = shapes.parse_query(text)
        verdict = shapes.judge(scene, query)
        assert verdict.things == things, text
        assert [text.split()[i] for i in language_ve.decisive_words(text, query, verdict.missing)] == words


def test_ten_annotators_mostly_agree():
    rng = np.random.default_rng(0)
    shares = []
    for i in range(400):
        answer = ('red', '2', 'yes', 'red circle', 'star')[i % 5]
        said = language_vqa.annotate(answer, rng)
        (first, count), *_ = collections.Counter(said).most_common()
        assert len(said) == 10 and first == answer and count >= 6
        shares.append(count >= 7)
    assert 0.9 < np.mean(shares) < 1


def test_scenes_with_the_same_facts_have_the_same_key():
    scene = shapes.make_scene(np.random.default_rng(2))
    moved = {**scene, 'things': [{**t, 'x': t['x'] + 1, 'rgb': [0, 0, 0]} for t in scene['things'][::-1]]}
    other = {**scene, 'things': [{**t, 'cell': (t['cell'] + 1) % 9} for t in scene['things']]}
    assert scenes.key(scene) == scenes.key(moved) != scenes.key(other)


def test_a_foreign_text_is_an_error():
    example = types.SimpleNamespace(id='7', text='A dog runs.')
    with pytest.raises(ValueError, match=r"example 7 is not of the world shapes: 'A dog runs\.'"):
        shapes.explanation_is_true(hand_made(PLAIN), example, 'a dog is seen')
