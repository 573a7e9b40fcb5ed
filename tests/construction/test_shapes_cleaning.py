"""Sources of the built-in world, merged and cleaned with an NLI model that never errs: what is planted is found."""

import functools
import json

import pytest

from evil_jax import config as config_lib
from evil_jax.construction import cleaning, filters, merge, pairs
from evil_jax.data import shapes


@pytest.fixture(scope='module')
def judged(tmp_path_factory):
    """(truth by id, judged pairs by id) of sources that are merged and cleaned."""
    folder, out = tmp_path_factory.mktemp('sources'), tmp_path_factory.mktemp('merged')
    shapes.write_sources(folder, {'train': 400, 'dev': 60, 'test': 60}, seed=2)
    truth = {row['id']: row for row in map(json.loads, (folder / 'truth.jsonl').read_text().splitlines())}
    sources = merge.Sources(
        pairs=sorted(folder.glob('snli_1.0_*.jsonl')),
        explanations=sorted(folder.glob('esnli_*.csv')),
        captions=str(folder / 'results_20130124.token'),
        splits={'trainval': folder / 'flickr30k_train_val.lst', 'test': folder / 'flickr30k_test.lst'},
    )
    merge.merge(sources, out, dev_images=shapes.dev_images(folder), tell=lambda line: None)
    made = filters.make(config_lib.base().construct)
    scored = functools.partial(shapes.oracle, classes=pairs.CLASSES)
    merged, captions = pairs.read(out / 'merged.jsonl'), merge.captions(sources, out)
    return truth, {each.pair.id: each for each in cleaning.clean(merged, made, captions, scored, chunk=500)}


def test_the_pairs_are_those_that_the_world_made(judged):
    truth, said = judged
    assert {key: each.pair.split for key, each in said.items()} == {key: row['split'] for key, row in truth.items()}
    assert {key: each.pair.label for key, each in said.items()} == {k: row['by_premise'] for k, row in truth.items()}


@pytest.mark.parametrize(('name', 'mark'), [('false_neutral', 'false_neutral'), ('keywords', 'about_text')])
def test_what_is_planted_is_found(judged, name, mark):
    truth, said = judged
    looked = ('train',) if name == 'false_neutral' else ('train', 'dev', 'test')
    wanted = {key for key, row in truth.items() if row[mark] and row['split'] in looked}
    removed = {key for key, each in said.items() if name in each.removing}
    assert len(wanted) > 10 and removed == wanted


def test_the_model_is_asked_with_the_captions_of_the_picture(judged):
    truth, said = judged
    for key, each in said.items():
        assert sum(row.argmax() != pairs.CLASSES.index('neutral') for row in each.scores_C3) == truth[key]['decided_by']
