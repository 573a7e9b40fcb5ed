"""A small NLI model that is trained on captions of the built-in world finds the false neutrals that are planted in the
sources of another such world. Three minutes:
`bash launch/test.sh --acceptance tests/acceptance/test_construction_world.py`.
"""

import csv
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers

from evil_jax.data import shapes
from evil_jax.interop import classifier

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance
COUNTS = {'train': 6_000, 'dev': 300, 'test': 300}


def run(*arguments):
    subprocess.run([sys.executable, '-m', 'evil_jax.main', *arguments], cwd=ROOT, check=True)


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """(the exported NLI model, its scores): `--config=nli` with all default settings."""
    folder = tmp_path_factory.mktemp('nli')
    run('--config=nli', f'--workdir={folder}/run', f'--config.data.dir={folder}/data',
        '--mode=build,train,decode,evaluate,export')  # fmt: skip
    return folder / 'run/export/task', json.loads((folder / 'run/evaluate.json').read_text())


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """(folder of the sources, {pairID: row of truth.jsonl}); their seed is not the training data's."""
    folder = tmp_path_factory.mktemp('sources')
    shapes.write_sources(folder, COUNTS, seed=1)
    rows = map(json.loads, (folder / 'truth.jsonl').read_text().splitlines())
    return folder, {row['id']: row for row in rows}


def test_a_trained_model_is_read_by_transformers(model, sources, measured):
    folder, scores = model
    measured('NLI model of the world: share of right labels on its test split', '>=', 0.97, scores['s_t'])
    rows = map(json.loads, (sources[0] / 'snli_1.0_dev.jsonl').read_text().splitlines())
    pairs = [(row['sentence1'], row['sentence2']) for row in rows][:200]
    ours = classifier.open_classifier(folder)(pairs)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    batch = transformers.AutoTokenizer.from_pretrained(folder)(
        [list(pair) for pair in pairs], padding=True, truncation=True, return_tensors='pt'
    )
    with torch.no_grad():
        their_scores = theirs(**batch).logits.softmax(-1).numpy()
    order = [theirs.config.label2id[label] for label in ('contradiction', 'neutral', 'entailment')]
    measured('exported, read by transformers: largest difference', '<=', 1e-4, abs(ours - their_scores[:, order]).max())
    perfect = shapes.oracle(pairs, ('contradiction', 'neutral', 'entailment')).argmax(1)
    assert np.mean(ours.argmax(1) == perfect) > 0.9


def test_planted_false_neutrals_are_found(model, sources, tmp_path, measured):
    folder, truth = sources
    names = lambda form, splits: ','.join(str(folder / form.format(split)) for split in splits)
    lists = f'trainval={folder}/flickr30k_train_val.lst,test={folder}/flickr30k_test.lst'
    run(
        '--mode=construct', '--config=esnlive_construction', f'--workdir={tmp_path}',
        f'--config.construct.pairs={names("snli_1.0_{}.jsonl", COUNTS)}',
        f'--config.construct.explanations={names("esnli_{}.csv", ("train_1", "train_2", "dev", "test"))}',
        f'--config.construct.captions={folder}/results_20130124.token', f'--config.construct.splits={lists}',
        f'--config.construct.dev_images={shapes.dev_images(folder)}', f'--config.construct.nli.model={model[0]}',
    )  # fmt: skip
    done = tmp_path / 'construct/esnlive'
    removed = list(map(json.loads, (done / 'removed.jsonl').read_text().splitlines()))
    kept = {}
    for split in COUNTS:
        with open(done / f'esnlive_{split}.csv', encoding='utf-8', newline='') as file:
            kept |= {row['pairID']: split for row in csv.DictReader(file)}
    left = {row['id']: row['split'] for row in removed}
    assert kept | left == {key: row['split'] for key, row in truth.items()} and not kept.keys() & left.keys()
    for name, mark in (('false_neutral', 'false_neutral'), ('keywords', 'about_text')):
        looked = {k: row for k, row in truth.items() if name == 'keywords' or row['split'] == 'train'}
        wanted = {key for key, row in looked.items() if row[mark]}
        found = {row['id'] for row in removed if name in row['removing']}
        least = {'false_neutral': 0.9, 'keywords': 1.0}[name]
        measured(f'{name}: {len(wanted):,} planted, precision', '>=', least, len(wanted & found) / len(found))
        measured(f'{name}: {len(wanted):,} planted, recall', '>=', least, len(wanted & found) / len(wanted))
