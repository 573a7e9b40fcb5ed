"""The sources of e-SNLI-VE in the built-in world: captions are true, and what is planted is there."""

import collections
import csv
import json

import numpy as np
import pytest

from evil_jax.data import shapes
from evil_jax.data.shapes import captions, language_ve, queries, scene

COUNTS = {'train': 240, 'dev': 60, 'test': 60}


def test_what_follows_from_a_caption_holds_in_the_picture():
    decided = collections.Counter()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        world = scene.make_scene(rng)
        told = [captions.read(text) for text in captions.write(world, rng)]
        assert len(told) == 5
        for kind in language_ve.SHARES:
            for label in language_ve.LABELS:
                query = language_ve.sample(world, kind, label, rng)
                if query is None:
                    continue
                labels = [captions.follows(each, query) for each in told]
                assert set(labels) <= {'neutral', queries.judge(world, query).label}, (query, told)
                decided[label, sum(each != 'neutral' for each in labels)] += 1
    for label in ('entailment', 'contradiction'):
        often, seldom = (sum(decided[label, n] for n in numbers) for numbers in ((3, 4, 5), (0, 1)))
        assert min(often, seldom) > 2 * decided[label, 2], 'a fact is told by most captions or by few'


@pytest.mark.parametrize(
    ('caption', 'hypothesis', 'label'),
    [
        ('There is a small red circle .', 'There is a circle that is red.', 'entailment'),
        ('There is a red circle .', 'There is a blue circle.', 'neutral'),  # there may be two
        ('The only circle is red and there is a crate .', 'There is a blue circle.', 'contradiction'),
        ('There is a red circle.', 'The circle is blue.', 'contradiction'),
        ('there is a circle and there is a red star', 'The circle is red.', 'neutral'),
        ('A small circle is in shadow.', 'The circle is red.', 'neutral'),
        ('A small circle is in shadow.', 'The circle is large.', 'contradiction'),
        ('The only circle is red and small.', 'The circle is small.', 'entailment'),
        ('There is a red circle.', 'The red circle is above the pink star.', 'neutral'),
    ],
)
def test_what_follows_from_a_caption(caption, hypothesis, label):
    assert shapes.label_by_caption(caption, hypothesis) == label
    scores = shapes.oracle([(caption, hypothesis)], queries_order := ('contradiction', 'neutral', 'entailment'))
    assert queries_order[scores.argmax()] == label and scores.sum() == pytest.approx(1)


def test_other_texts_are_refused():
    for caption, hypothesis, hint in (
        ('A dog runs.', 'The star is small.', "no caption of the world shapes: 'A dog runs.'"),
        ('A red circle is at the top left.', 'The star is small.', 'no caption of the world'),
        ('A red circle is above a star.', 'The star is small.', 'no caption of the world'),
        ('There is a red object.', 'The star is small.', 'no caption of the world'),
        ('No red circle is seen.', 'The star is small.', 'no caption of the world'),
        ('There is a star.', 'A dog runs.', "no hypothesis of the world shapes: 'A dog runs.'"),
    ):
        with pytest.raises(ValueError, match=hint):
            shapes.label_by_caption(caption, hypothesis)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp('sources') / 'raw'
    assert shapes.write_world('shapes_nli', path, counts=COUNTS, seed=5)
    assert not shapes.write_world('shapes_nli', path, counts=COUNTS, seed=5)
    return path


def _json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]


def _tables(folder):
    for name in ('train_1', 'train_2', 'dev', 'test'):
        with open(folder / f'esnli_{name}.csv', encoding='utf-8', newline='') as file:
            yield name, list(csv.DictReader(file))


def test_the_truth_is_that_of_the_files(folder):
    texts = dict(line.split('\t') for line in (folder / 'results_20130124.token').read_text().splitlines())
    snli = {row['pairID']: row for split in COUNTS for row in _json_lines(folder / f'snli_1.0_{split}.jsonl')}
    truths = _json_lines(folder / 'truth.jsonl')
    assert collections.Counter(row['split'] for row in truths) == COUNTS
    lists = {name: (folder / f'flickr30k_{name}.lst').read_text().split() for name in ('train_val', 'test')}
    assert len(set(lists['train_val']) | set(lists['test'])) == len(texts) / 5
    dev = lists['train_val'][-shapes.dev_images(folder) :]
    for truth in truths:
        row, image = snli[truth['id']], truth['id'].partition('.jpg')[0]
        five = [texts[f'{image}.jpg#{n}'] for n in range(5)]
        own = five[int(row['captionID'][-1])]
        assert own.replace(' ,', ',').replace(' .', '.') == row['sentence1']
        labels = [shapes.label_by_caption(text, row['sentence2']) for text in five]
        assert shapes.label_by_caption(own, row['sentence2']) == row['gold_label'] == truth['by_premise']
        assert sum(label != 'neutral' for label in labels) == truth['decided_by']
        assert {*labels} <= {'neutral', truth['label']}
        planted = truth['by_premise'] == 'neutral' and truth['decided_by'] >= 3
        assert truth['false_neutral'] == planted and (truth['by_premise'], truth['decided_by']) != ('neutral', 2)
        assert truth['split'] == ('test' if image in lists['test'] else 'dev' if image in dev else 'train')
    kinds = collections.Counter((row['by_premise'], row['false_neutral']) for row in truths)
    assert kinds['neutral', True] > 15 and min(kinds['neutral', False], kinds['entailment', False]) > 60


def test_the_files_have_what_has_to_be_left_out(folder):
    truths = {row['id']: row for row in _json_lines(folder / 'truth.jsonl')}
    snli = {split: _json_lines(folder / f'snli_1.0_{split}.jsonl') for split in COUNTS}
    rows = [row for split in COUNTS for row in snli[split]]
    others = [row for row in rows if row['pairID'] not in truths]
    assert {row['gold_label'] == '-' or row['pairID'].startswith('vg_') for row in others} == {True}
    assert {row['gold_label'] == '-' for row in others} == {True, False}
    assert {truths[row['pairID']]['split'] for row in snli['train'] if row['pairID'] in truths} == set(COUNTS)
    explained = {}
    for name, table in _tables(folder):
        for row in table:
            explained[row['pairID']] = row
            assert ('Explanation_3' in row) == (name in ('dev', 'test'))
            for side in ('Sentence1', 'Sentence2'):
                assert row[f'{side}_marked_1'].replace('*', '') == row[side]
                words = [i for i, word in enumerate(row[f'{side}_marked_1'].split()) if word.startswith('*')]
                assert row[f'{side}_Highlighted_1'] == (','.join(map(str, words)) or '{}')
    assert explained.keys() == {row['pairID'] for row in rows if row['gold_label'] != '-'}
    about = [name for name, row in truths.items() if row['about_text']]
    assert about == [name for name in truths if 'way to say' in explained[name]['Explanation_1']] and about


def test_a_world_of_texts_has_settings_like_the_others(folder, tmp_path):
    other = tmp_path / 'other'
    shapes.write_sources(other, COUNTS, seed=5)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted([*(path.name for path in other.iterdir()), 'world.json'])
    assert all((other / name).read_bytes() == (folder / name).read_bytes() for name in names if name != 'world.json')
    with pytest.raises(ValueError, match='made with other settings: seed is 5, wanted 6'):
        shapes.write_world('shapes_nli', folder, counts=COUNTS, seed=6)
    with pytest.raises(ValueError, match="container of the regions is 'butd', but shapes_nli has no regions"):
        shapes.write_world('shapes_nli', tmp_path / 'none', counts=COUNTS, container='butd')
