"""Filters on the built-in world's pairs, with an NLI model that makes no mistakes: what is planted is found."""

import csv
import functools
import json

import pytest

from evil_jax import config as config_lib
from evil_jax.construction import cleaning, filters, pairs
from evil_jax.data import shapes


@pytest.fixture(scope='module')
def judged(tmp_path_factory):
    """(truth by id, judged pairs by id), all of one split: filters look at train alone."""
    folder = tmp_path_factory.mktemp('sources')
    shapes.write_sources(folder, {'train': 400}, seed=2)
    truth = {row['id']: row for row in map(json.loads, (folder / 'truth.jsonl').read_text().splitlines())}
    captions = {}
    for line in (folder / 'results_20130124.token').read_text().splitlines():
        captions.setdefault(line.partition('.jpg')[0], []).append(line.partition('\t')[2])
    explained = {}
    for name in ('train_1', 'train_2'):
        with open(folder / f'esnli_{name}.csv', encoding='utf-8', newline='') as file:
            explained |= {row['pairID']: row['Explanation_1'] for row in csv.DictReader(file)}
    rows = map(json.loads, (folder / 'snli_1.0_train.jsonl').read_text().splitlines())
    found = [
        pairs.Pair(
            id=row['pairID'], image_id=row['pairID'].partition('.jpg')[0], premise=row['sentence1'],
            hypothesis=row['sentence2'], label=row['gold_label'], split='train',
            explanations=[explained[row['pairID']]],
        )
        for row in rows
        if row['pairID'] in truth
    ]  # fmt: skip
    made = filters.make(config_lib.base().construct)
    scored = functools.partial(shapes.oracle, classes=pairs.CLASSES)
    return truth, {each.pair.id: each for each in cleaning.clean(found, made, captions, scored, chunk=500)}


@pytest.mark.parametrize(('name', 'mark'), [('false_neutral', 'false_neutral'), ('keywords', 'about_text')])
def test_what_is_planted_is_found(judged, name, mark):
    truth, said = judged
    wanted = {key for key, row in truth.items() if row[mark]}
    removed = {key for key, each in said.items() if name in each.removing}
    assert len(wanted) > 10 and removed == wanted


def test_the_model_is_asked_with_the_captions_of_the_picture(judged):
    truth, said = judged
    for key, each in said.items():
        assert sum(row.argmax() != pairs.CLASSES.index('neutral') for row in each.scores_C3) == truth[key]['decided_by']
