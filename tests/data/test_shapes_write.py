"""The world's raw files: formats, seeds, splits and restarts."""

import base64
import collections
import csv
import hashlib
import json

import numpy as np
import pytest
from PIL import Image

from evil_jax.data import shapes
from evil_jax.data.shapes import scene as scenes

COUNTS = {'train': 60, 'dev': 20, 'test': 20}


@pytest.fixture(scope='module')
def worlds(tmp_path_factory):
    """Folder of a small world of each form."""
    root = tmp_path_factory.mktemp('worlds')
    for form in shapes.FORMS:
        assert shapes.write_world(form, root / form, counts=COUNTS, seed=3)
    return root


def _hashes(folder):
    files = sorted(p for p in folder.rglob('*') if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def _lines(path):
    return [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]


def _table(path):
    with open(path, encoding='utf-8', newline='') as file:
        return list(csv.reader(file))


@pytest.mark.parametrize('form', shapes.FORMS)
def test_same_seed_same_bytes_and_another_seed_other_bytes(worlds, tmp_path, form):
    shapes.write_world(form, tmp_path / 'same', counts=COUNTS, seed=3)
    shapes.write_world(form, tmp_path / 'other', counts=COUNTS, seed=4)
    same, other = _hashes(tmp_path / 'same'), _hashes(tmp_path / 'other')
    assert _hashes(worlds / form) == same
    regions = 'feat_th0.2_max100_min10/data.mdb' if form == 'shapes_vcr' else 'regions.tsv'
    assert same[regions] != other[regions] and same['truth.jsonl'] != other['truth.jsonl']


def test_hypotheses_are_in_the_e_snli_ve_format(worlds):
    for split, count in COUNTS.items():
        path = worlds / 'shapes_ve' / f'esnlive_{split}.csv'
        assert b'\r' not in path.read_bytes()
        header, *rows = _table(path)
        assert header == [
            '', 'pairID', 'Flickr30kID', 'hypothesis', 'gold_label', 'explanation', 'explanation_2', 'explanation_3',
        ]  # fmt: skip
        assert len(rows) == count
        assert [row[0] for row in rows] == [str(i) for i in range(count)]
        for _, pair, picture, _, label, *explanations in rows:
            assert pair.startswith(f'{picture}#0r') and pair[-1] == label[0]
            assert len(picture) == len('4465359505.jpg')
            assert len(set(explanations)) == 3


def test_questions_are_in_the_vqa_and_vqa_x_formats(worlds):
    folder = worlds / 'shapes_vqa'
    for split, count in COUNTS.items():
        questions, annotations, explanations = (
            json.loads((folder / f'{name}_{split}.json').read_text())
            for name in ('questions', 'annotations', 'explanations')
        )
        assert {'info', 'task_type', 'data_type', 'license', 'data_subtype'} <= questions.keys() & annotations.keys()
        assert len(questions['questions']) == len(annotations['annotations']) == len(explanations) == count
        for question, annotation in zip(questions['questions'], annotations['annotations']):
            assert question.keys() == {'image_id', 'question_id', 'question'}
            assert question['question_id'] == annotation['question_id']
            assert question['image_id'] == annotation['image_id'] == question['question_id'] // 1000
            answers = [a['answer'] for a in annotation['answers']]
            assert [a['answer_id'] for a in annotation['answers']] == list(range(1, 11))
            assert collections.Counter(answers).most_common(1)[0][0] == annotation['multiple_choice_answer']
            assert annotation['answer_type'] in ('yes/no', 'number', 'other')
            assert len(set(explanations[str(question['question_id'])])) == 3


@pytest.mark.parametrize('form', ['shapes_ve', 'shapes_vqa'])
def test_regions_are_an_obj36_table(worlds, form):
    folder = worlds / form
    classes = (folder / 'objects_vocab.txt').read_text().split('\n')
    attributes = (folder / 'attributes_vocab.txt').read_text().split('\n')
    known = {row['image_id']: row['scene'] for row in _lines(folder / 'scenes.jsonl')}
    lines = (folder / 'regions.tsv').read_bytes().split(b'\r\n')
    assert lines.pop() == b'' and len(lines) == len(known)
    for line in lines:
        name, height, width, *columns = line.split(b'\t')
        scene, n = known[name.decode()], int(columns[4])
        assert (int(width), int(height)) == tuple(scene['size']) and n == len(scene['things'])
        kinds = (np.int64, np.float32, np.int64, np.float32)
        ids, conf, attribute_ids, _ = (np.frombuffer(base64.b64decode(c), k) for c, k in zip(columns, kinds))
        boxes = np.frombuffer(base64.b64decode(columns[5]), np.float32).reshape(n, 4)
        features = np.frombuffer(base64.b64decode(columns[6]), np.float32).reshape(n, 2048)
        for thing, index, attribute in zip(scene['things'], ids, attribute_ids):
            assert classes[index].split()[-1] == thing['shape']
            assert attributes[attribute] == thing['colour']
        assert conf.min() > 0 and conf.max() < 1
        with Image.open(folder / 'images' / f'{name.decode()}.png') as image:
            assert image.size == (144, 144)
            np.testing.assert_array_equal(shapes.box_features(image.convert('RGB'), boxes), features)


@pytest.mark.parametrize('form', shapes.FORMS)
def test_truth_names_things_and_words_of_every_example(worlds, form):
    folder = worlds / form
    truth = {row['id']: row for row in _lines(folder / 'truth.jsonl')}
    known = {row['image_id']: row['scene'] for row in _lines(folder / 'scenes.jsonl')}
    texts = _texts(folder, form)
    assert truth.keys() == texts.keys() and len(truth) == sum(COUNTS.values())
    for key, (image, text) in texts.items():
        objects, words = truth[key]['objects'], truth[key]['words']
        assert objects and max(objects) < len(known[image]['things'])
        assert words and max(words) < len(text.split())


def _texts(folder, form):
    """id: (image id, text)."""
    found = {}
    for split in COUNTS:
        if form == 'shapes_vcr':
            rows = _lines(folder / ('val.jsonl' if split == 'test' else 'train.jsonl'))
            found |= {row['annot_id']: (_stem(row), ' '.join(map(str, row['question']))) for row in rows}
        elif form == 'shapes_ve':
            rows = _table(folder / f'esnlive_{split}.csv')[1:]
            found |= {row[1]: (row[2].removesuffix('.jpg'), row[3]) for row in rows}
        else:
            rows = json.loads((folder / f'questions_{split}.json').read_text())['questions']
            found |= {str(r['question_id']): (f'COCO_shapes_{r["image_id"]:012d}', r['question']) for r in rows}
    return found


def _stem(row):
    return row['img_fn'].split('/')[-1].removesuffix('.jpg')


@pytest.mark.parametrize('form', shapes.FORMS)
def test_scenes_are_disjoint_over_the_splits_and_shared_within(worlds, form):
    folder = worlds / form
    known = {row['image_id']: row['scene'] for row in _lines(folder / 'scenes.jsonl')}
    texts = _texts(folder, form)
    keys, images = collections.defaultdict(set), collections.defaultdict(set)
    for row in _lines(folder / 'truth.jsonl'):
        image = texts[row['id']][0]
        keys[row['split']].add(scenes.key(known[image]))
        images[row['split']].add(image)
    for a, b in (('train', 'dev'), ('train', 'test'), ('dev', 'test')):
        assert not keys[a] & keys[b] and not images[a] & images[b]
    assert len(images['train']) <= 60 / 4 + 1
    # Whatever the counts: the key alone says which split a scene may be in.
    assert {k % 10 for k in keys['dev']} == {8} and {k % 10 for k in keys['test']} == {9}


def test_a_finished_world_is_left_alone(worlds):
    folder = worlds / 'shapes_ve'
    before = {p: p.stat().st_mtime_ns for p in folder.rglob('*')}
    assert not shapes.write_world('shapes_ve', folder, counts=COUNTS, seed=3)
    assert {p: p.stat().st_mtime_ns for p in folder.rglob('*')} == before


def test_other_settings_are_refused(worlds):
    folder = worlds / 'shapes_ve'
    with pytest.raises(ValueError, match=r'world\.json: .*seed is 3, wanted 4'):
        shapes.write_world('shapes_ve', folder, counts=COUNTS, seed=4)
    with pytest.raises(ValueError, match="form is 'shapes_ve', wanted 'shapes_vqa'"):
        shapes.write_world('shapes_vqa', folder, counts=COUNTS, seed=3)


def test_a_foreign_folder_is_refused_and_untouched(tmp_path):
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'thesis.txt').write_text('years of work')
    with pytest.raises(ValueError, match=r'mine: exists, and is no built-in world'):
        shapes.write_world('shapes_ve', tmp_path / 'mine', counts={'train': 5})
    assert (tmp_path / 'mine' / 'thesis.txt').read_text() == 'years of work'


@pytest.mark.parametrize(
    'form, counts', [('shapes', {'train': 1}), ('shapes_ve', {'val': 1}), ('shapes_ve', {'dev': -1})]
)
def test_bad_settings_are_refused(tmp_path, form, counts):
    with pytest.raises(ValueError, match='wanted'):
        shapes.write_world(form, tmp_path / 'raw', counts=counts)
    assert not (tmp_path / 'raw').exists()


def test_a_killed_run_leaves_nothing_and_can_be_repeated(worlds, tmp_path):
    class Killed(Exception):
        pass

    def kill(_):
        raise Killed

    with pytest.raises(Killed):
        shapes.write_world('shapes_ve', tmp_path / 'raw', counts=COUNTS, seed=3, progress=kill)
    assert not (tmp_path / 'raw').exists()
    done = []
    shapes.write_world('shapes_ve', tmp_path / 'raw', counts=COUNTS, seed=3, progress=done.append)
    assert sum(done) == sum(COUNTS.values())
    assert _hashes(tmp_path / 'raw') == _hashes(worlds / 'shapes_ve')
    assert [p.name for p in tmp_path.iterdir()] == ['raw']


def test_a_split_without_examples_has_no_files(tmp_path):
    shapes.write_world('shapes_ve', tmp_path / 'raw', counts={'test': 7}, seed=0)
    names = {p.name for p in (tmp_path / 'raw').iterdir()}
    assert 'esnlive_test.csv' in names and not {'esnlive_train.csv', 'esnlive_dev.csv'} & names
    assert len(_table(tmp_path / 'raw' / 'esnlive_test.csv')) == 8
