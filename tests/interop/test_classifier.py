"""Scores of pairs of texts equal those of transformers; a folder with other labels or another head is refused."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import encoder_folders as folders
import numpy as np
import pytest
import torch
import transformers

from evil_jax.interop import classifier, weights

LABELS = {0: 'CONTRADICTION', 1: 'NEUTRAL', 2: 'ENTAILMENT'}
HEAD = {'id2label': LABELS, 'label2id': {label: n for n, label in LABELS.items()}}
LONG = 'the dog runs because two cats are red ' * 9
PAIRS = [
    ('the dog runs', 'a dog'), ('', 'the cat sits'), ('the cat sits', ''), ('', ''),
    (' two  dogs ', "it's a\nred cat!"), (LONG, 'a dog'), ('a dog', LONG), (LONG, LONG + 'undo'),
    ('undo the [SEP] dog', 'the </s> cat'),
    ('é', 'The DOGs'), ('the dog ' * 2, 'cat'),
]  # fmt: skip


def make(name, folder):
    """Transformers' model of a kind, with a head of three classes."""
    if name == 'distilbert':
        return folders.distilbert(folder, transformers.DistilBertForSequenceClassification, HEAD)
    if name == 'bert':
        return folders.bert(folder, transformers.BertForSequenceClassification, **HEAD)
    return folders.roberta(folder, transformers.RobertaForSequenceClassification, prefix=False, **HEAD)


@pytest.fixture(scope='module', params=['bert', 'distilbert', 'roberta'])
def made(request, tmp_path_factory):
    """(folder, transformers' model, its tokeniser)."""
    folder = tmp_path_factory.mktemp(request.param)
    model = make(request.param, folder)
    return folder, model, transformers.AutoTokenizer.from_pretrained(folder)


def theirs(model, tokenizer, pairs):
    """One pair at a time, which needs no padding; in lists, since it takes an empty text alone for none at all."""
    with torch.no_grad():
        rows = [model(**tokenizer([p], [h], truncation=True, return_tensors='pt')).logits for p, h in pairs]
    return torch.cat(rows).softmax(-1).numpy()


def test_scores_are_those_of_transformers(made):
    folder, model, tokenizer = made
    tell = classifier.open_classifier(folder, tokens=96)
    found, wanted = tell(PAIRS), theirs(model, tokenizer, PAIRS)
    assert found.dtype == np.float32 and found.shape == (len(PAIRS), 3) and np.ptp(wanted, axis=0).min() > 0.01
    np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=0)
    assert tell.truncated == 3
    turned = classifier.open_classifier(folder, labels=('entailment', 'contradiction', 'neutral'))
    np.testing.assert_allclose(turned(PAIRS[:2]), wanted[:2][:, [2, 0, 1]], atol=1e-5)
    assert turned.digest != tell.digest


def test_rows_of_tokens_and_types_are_those_of_transformers(made):
    tell, tokenizer = classifier.open_classifier(made[0]), made[2]
    ids, types, _ = tell._tokens.pairs(PAIRS)
    wanted = tokenizer(*map(list, zip(*PAIRS)), truncation=True)
    assert ids == wanted['input_ids']
    assert types == wanted.get('token_type_ids', types)


def test_equal_pairs_are_scored_once_and_company_changes_nothing(made, monkeypatch):
    tell = classifier.open_classifier(made[0], tokens=64)
    together, seen = tell(PAIRS), []
    run = classifier._Parts.__call__
    monkeypatch.setattr(
        classifier._Parts, '__call__', lambda self, *batch: (seen.append(batch[2]), run(self, *batch))[1]
    )
    repeated = tell([PAIRS[0]] * 40 + [PAIRS[4], PAIRS[0]])
    assert sum((length_B > 1).sum() for length_B in seen) == 2  # rows that are no padding
    np.testing.assert_allclose(repeated[[0, 41, 40]], together[[0, 0, 4]], atol=1e-6)
    assert tell([]).shape == (0, 3)


def test_bfloat16_is_near_and_another_signature(tmp_path):
    make('bert', tmp_path)
    exact, near = (classifier.open_classifier(tmp_path, dtype=dtype) for dtype in classifier.DTYPES)
    assert 0 < np.abs(exact(PAIRS) - near(PAIRS)).max() < 0.1
    assert exact.digest != near.digest and near.signature['dtype'] == 'bfloat16'
    with pytest.raises(ValueError, match="dtype is 'int8', wanted one of float32, bfloat16"):
        classifier.open_classifier(tmp_path, dtype='int8')


def test_the_digest_is_of_the_model_and_not_of_its_name(tmp_path):
    (tmp_path / 'one').mkdir()
    make('distilbert', tmp_path / 'one')
    for name in ('two', 'other'):
        shutil.copytree(tmp_path / 'one', tmp_path / name)
    path = tmp_path / 'other' / 'model.safetensors'
    there = dict(weights.read(path))
    weights.write(path, there | {'classifier.bias': there['classifier.bias'] + 1})
    one, two, other = (classifier.open_classifier(tmp_path / name) for name in ('one', 'two', 'other'))
    assert one.digest == two.digest != other.digest
    assert (one.signature['model'], two.signature['model']) == ('one', 'two')


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'id2label': {'0': 'entails', '1': ' Neutral', '2': 'contradict'}, 'label2id': None}, ''),
        ({'id2label': None, 'label2id': None}, 'no id2label says what the outputs mean. Write'),
        ({'id2label': {'0': 'LABEL_0', '1': 'LABEL_1', '2': 'LABEL_2'}}, '"0": "contradiction"'),
        ({'id2label': {'0': 'entailment', '1': 'not_entailment'}}, "'not_entailment', wanted the three classes"),
        ({'id2label': {'0': 'neutral', '1': 'neutral', '2': 'entailment'}}, "'neutral', 'neutral'"),
        ({'id2label': {'0': 'ENTAILMENT', '1': 'NEUTRAL', '2': 'CONTRADICTION'}}, 'label2id .* contradicts id2label'),
        ({'problem_type': 'multi_label_classification'}, 'problem_type is'),
        ({'hidden_act': 'relu'}, "hidden_act is 'relu', wanted 'gelu'"),
        ({'model_type': 'gpt2'}, "of a 'gpt2', wanted one of bert, distilbert, roberta"),
    ],
)
def test_what_outputs_mean_is_read_and_never_guessed(tmp_path, changes, message):
    make('bert', tmp_path)
    expected = classifier.open_classifier(tmp_path)(PAIRS[:3]) if not message else None
    folders.edit(tmp_path, **changes)
    if message:
        with pytest.raises(ValueError, match=message):
            classifier.open_classifier(tmp_path)
    else:
        np.testing.assert_allclose(classifier.open_classifier(tmp_path)(PAIRS[:3]), expected[:, ::-1], atol=1e-6)


@pytest.mark.parametrize(
    'classes, message', [(1, r'one output \(a regression\)'), (2, 'tells 2 classes, wanted three')]
)
def test_another_head_is_refused(tmp_path, classes, message):
    folders.bert(tmp_path, transformers.BertForSequenceClassification, num_labels=classes)
    with pytest.raises(ValueError, match=message):
        classifier.open_classifier(tmp_path)


def test_a_folder_without_what_it_takes_is_refused(tmp_path):
    with pytest.raises(ValueError, match='nowhere is no folder'):
        classifier.open_classifier(tmp_path / 'nowhere')
    folders.bert(tmp_path)
    with pytest.raises(ValueError, match='the weights have no classifier'):
        classifier.open_classifier(tmp_path)
    with pytest.raises(ValueError, match='labels are yes, no, wanted contradiction, neutral, entailment'):
        make('bert', tmp_path)
        classifier.open_classifier(tmp_path, labels=('yes', 'no'))


def test_two_devices_score_as_one(tmp_path):
    """Rows of odd batches, parameters replicated, and split over both."""
    make('roberta', tmp_path)
    one = classifier.open_classifier(tmp_path, tokens=50)(PAIRS)
    script = pathlib.Path(__file__).with_name('classifier_devices.py')
    (tmp_path / 'pairs.json').write_text(json.dumps(PAIRS))
    flags = f'{os.environ.get("XLA_FLAGS", "")} --xla_force_host_platform_device_count=2'
    env = os.environ | {'PYTHONPATH': str(script.parents[2]), 'XLA_FLAGS': flags}
    command = [sys.executable, str(script), *(str(tmp_path / name) for name in ('', 'pairs.json', 'found.npz'))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert not done.returncode, done.stderr
    with np.load(tmp_path / 'found.npz') as found:
        assert (found['devices'], found['replicated_parts'], found['split_parts']) == (2, 1, 2)
        for name in ('replicated', 'split'):
            np.testing.assert_allclose(found[name], one, atol=1e-6)
