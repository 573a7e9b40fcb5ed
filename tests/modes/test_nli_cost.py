"""The benchmark of the NLI model: the same folder and pairs for both, the same probabilities, a row for each."""

import json

import numpy as np
import pytest

from evil_jax import config as config_lib
from evil_jax.interop import classifier
from evil_jax.modes import _nli_cost, benchmark


@pytest.fixture
def config():
    found = config_lib.shrink(config_lib.base())
    found.benchmark.update(of='nli', rows=40)
    return found


def test_both_score_a_folder_that_is_made_alike(config, shown, monkeypatch, tmp_path):
    monkeypatch.setattr(_nli_cost, '_TURNS', 1)
    found = benchmark.run(config, tmp_path)
    assert found['difference'] <= 1e-5 and 0 < found['ratio'] <= found['ratio_file_order']
    assert [row[1] for row in shown] == ['sorted, equal tokens', 'file order, 32 pairs', 'sorted, 32 pairs']
    assert float(shown[2][3]) >= round(found['ratio'], 2)
    scores = classifier.open_classifier(tmp_path / 'nli')(_nli_cost.texts(40, config.seed))
    assert np.ptp(scores, axis=0).min() > 0.01  # not the same for whatever pair

    # A folder of one's own, whose outputs stand in another order and have names of their own.
    path = tmp_path / 'nli' / 'config.json'
    stated = json.loads(path.read_text())
    stated['id2label'] = {'0': 'ENTAILMENT', '1': 'NEUTRAL', '2': 'contradicts'}
    stated['label2id'] = {label: int(n) for n, label in stated['id2label'].items()}
    path.write_text(json.dumps(stated))
    config.construct.nli.model = str(tmp_path / 'nli')
    assert benchmark.run(config, tmp_path / 'elsewhere')['difference'] <= 1e-5
    assert not (tmp_path / 'elsewhere').exists()


def test_without_transformers_ours_runs_alone(config, shown, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_nli_cost.importlib.util, 'find_spec', lambda name: None)
    monkeypatch.setattr(_nli_cost, '_TURNS', 1)
    assert list(benchmark.run(config, tmp_path)) == ['pairs_per_second']
    assert 'not installed, so ours runs alone: torch, transformers' in capsys.readouterr().out and len(shown) == 1
