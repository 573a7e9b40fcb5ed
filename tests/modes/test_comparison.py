"""What `evaluate.compare` may name: models, sweeps, folders of them."""

import json

import pytest

from evil_jax.modes import _comparison, _trials

SCORES = {'schema': 1, 'evil': {'all': {'s_t': {'value': 0.5, 'n': 4, 'signature': 'x'}}}}


def sweep(model='updown + lstm_decoder', shift=0.0):
    """A sweep.json of two regimes with three seeds."""
    points = [
        {
            'name': f'{regime},seed-{seed}', 'overrides': {'train.regime': regime, 'seed': seed}, 'status': 'done',
            'scores': {'s_t': 0.6 + 0.1 * (regime == 'joint') + 0.01 * seed + shift}, 'seconds': 60.0, 'steps': 500,
            'data_dir': 'd',
        }
        for regime in ('task', 'joint')
        for seed in (0, 1, 2)
    ]  # fmt: skip
    return {
        'schema': 1, 'kind': 'sweep', 'model': model, 'split': 'test', 'select': 's_t', 'data_dir': 'd',
        'grid': {'train.regime': ['task', 'joint'], 'seed': [0, 1, 2]}, 'over': ['seed'], 'config': {},
        'points': points,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'scores.json').write_text(json.dumps(SCORES))
    (tmp_path / 'sweep.json').write_text(json.dumps(sweep()))
    (tmp_path / 'renamed.json').write_text(json.dumps(sweep()))
    return tmp_path


def test_models_sweeps_and_folders(folder):
    entries = (f'a={folder}/scores.json', f'b = {folder}/sweep.json', f'c={folder}', f'd={folder}/renamed.json')
    others = _comparison.read(entries, ('evil', 'coco'))
    assert list(others.scores) == ['a', 'c'] and others.scores['a']['evil']['all']['s_t']['value'] == 0.5
    assert list(others.sweeps) == ['b', 'c', 'd'] and list(others.scores['a']) == ['evil'], (
        'the protocols that are there'
    )
    with pytest.raises(ValueError, match=r"wanted scores under 'coco' or 'nlxgpt', found evil"):
        _comparison.read(entries, ('coco', 'nlxgpt'))
    cells = others.sweeps['b']['contrasts'][0]['rows'][0]['scores']['s_t']
    assert cells['difference'] == {'mean': pytest.approx(0.1), 'sd': pytest.approx(0, abs=1e-9), 'n': 3}
    assert others.sweeps['b']['groups'][1]['scores']['s_t']['sd'] == pytest.approx(0.01)


@pytest.mark.parametrize('entry,message', [
    ('sweep.json', "evaluate.compare has 'sweep.json', wanted 'label=path/to/scores.json' \\(or a sweep.json\\)"),
    ('x={}/nowhere/sweep.json', 'nowhere/sweep.json: there is no such file'),
    ('x={}/nowhere', 'nowhere: there is no such file'),
    ('x={}/empty', 'empty \\(evaluate.compare, x\\) has neither scores.json nor sweep.json'),
    ('x={}/other/sweep.json', "sweep.json: not a sweep.json: wanted an object with 'schema': 1 and 'kind': 'sweep'"),
    ('x={}/other', "sweep.json: not a sweep.json"),
])  # fmt: skip
def test_wrong_entries_get_one_message(folder, entry, message):
    (folder / 'empty').mkdir()
    (folder / 'other').mkdir()
    (folder / 'other/sweep.json').write_text(json.dumps({'schema': 2, 'kind': 'sweep'}))
    with pytest.raises(ValueError, match=message):
        _comparison.read((entry.format(folder),), ('evil',))


def test_a_label_stands_for_one_model(folder):
    with pytest.raises(ValueError, match="the label 'a' twice"):
        _comparison.read((f'a={folder}/scores.json', f'a={folder}'), ('evil',))


def test_files_that_this_run_will_write_may_be_missing(tmp_path):
    expected = [tmp_path / 'scores.json', tmp_path / 'sweep.json']
    entries = (f'a={tmp_path}/scores.json', f'b={tmp_path}/sweep.json', f'c={tmp_path}')
    assert _comparison.read(entries, ('evil',), expected) == ({}, {})
    with pytest.raises(ValueError, match='there is no such file'):
        _comparison.read(entries, ('evil',), expected[:1])


def test_a_sweep_that_was_read_says_the_same_as_when_it_was_written(tmp_path):
    document = _trials.summarise(sweep())
    _trials.write(tmp_path / 'sweep.json', document)
    assert _trials.read(tmp_path / 'sweep.json') == document
