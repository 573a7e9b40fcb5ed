"""The benchmark of the metrics: same texts, same scores, a row for each; what is missing is told."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'interop'))

import encoder_folders as folders

from evil_jax import config as config_lib
from evil_jax.metrics import resources
from evil_jax.modes import _contests, benchmark

PURE = ('bleu', 'rouge_l', 'cider', 'bootstrap')  # neither Java nor an encoder


@pytest.fixture
def config():
    found = config_lib.base()
    found.benchmark.rows = 40
    return found


def only(monkeypatch, *names, **more):
    monkeypatch.setattr(_contests, 'ALL', {name: _contests.ALL[name] for name in names} | more)


def test_generated_texts_get_equal_scores_from_both(config, shown, monkeypatch, tmp_path):
    only(monkeypatch, *PURE)
    ratios = benchmark.run(config, tmp_path)
    assert tuple(ratios) == PURE and all(ratio > 0 for ratio in ratios.values())
    assert [row[0] for row in shown] == ['BLEU-1 to 4', 'ROUGE-L', 'CIDEr', 'paired bootstrap of BLEU-4, 1,000']
    assert [row[1] for row in shown] == ['pycocoevalcap'] * 3 + ['sacrebleu']
    for row, ratio in zip(shown, ratios.values()):
        assert row[2] == '40' and float(row[6].split(';')[0]) < 1e-9
        assert float(row[5]) == pytest.approx(ratio, abs=0.006)


def test_bertscore_is_compared_with_the_configured_encoder(config, shown, monkeypatch, tmp_path):
    folders.distilbert(tmp_path)
    config.evaluate.bertscore.encoder, config.evaluate.bertscore.layer = str(tmp_path), 2
    only(monkeypatch, 'bertscore')
    assert benchmark.run(config, tmp_path)['bertscore'] > 0
    [row] = shown
    assert row[:2] == (f'BERTScore, {tmp_path.name}', 'bert-score') and float(row[6]) < 1e-5


def test_what_is_not_installed_or_fails_is_told_and_the_rest_goes_on(config, shown, monkeypatch, tmp_path):
    def absent(options):
        import a_program_that_nobody_has

        return a_program_that_nobody_has

    def without_java(options):
        raise resources.Unavailable('needs Java')

    def broken(options):
        return _contests.Contest('x', 'theirs', len, lambda texts: 1 / 0, lambda a, b: (0.0, ''))

    only(monkeypatch, absent=absent, without_java=without_java, broken=broken, **{'rouge_l': _contests.rouge_contest})
    assert list(benchmark.run(config, tmp_path)) == ['rouge_l']
    assert [row[1] for row in shown] == [
        'not installed: a_program_that_nobody_has', 'cannot run: needs Java',
        'cannot run: theirs failed with ZeroDivisionError: division by zero', 'pycocoevalcap',
    ]  # fmt: skip
    assert {len(row) for row in shown} == {len(benchmark._COLUMNS)}


def test_a_fault_of_ours_is_no_row_of_the_table(config, monkeypatch, tmp_path):
    ours = lambda texts: 1 / 0
    only(monkeypatch, broken=lambda options: _contests.Contest('x', 'theirs', ours, len, lambda a, b: (0.0, '')))
    with pytest.raises(ZeroDivisionError):
        benchmark.run(config, tmp_path)


def test_texts_of_files(config, shown, monkeypatch, tmp_path):
    rows = [{'id': str(n), 'explanations': [f'a dog\nruns ||| {n}', f'{n} dogs']} for n in range(9)]
    predictions = [{'id': str(n), 'answer': 'yes', 'explanation': f'the dog runs {n}'} for n in range(9)]
    for name, lines in (('r.jsonl', rows), ('p.jsonl', predictions)):
        (tmp_path / name).write_text('\n'.join(map(json.dumps, lines)) + '\n')
    config.evaluate.references = str(tmp_path / 'r.jsonl')
    with pytest.raises(ValueError, match='go together'):
        benchmark.run(config, tmp_path)
    config.evaluate.predictions = str(tmp_path / 'p.jsonl')
    only(monkeypatch, 'rouge_l')
    benchmark.run(config, tmp_path)
    assert shown[0][2] == '9'
    texts = benchmark._texts(config)
    assert texts.references['3'] == ['a dog runs 3', '3 dogs'] and texts.predictions['3'] == 'the dog runs 3'
    assert texts.others == texts.predictions | {'0': 'the dog runs 1'}


@pytest.mark.acceptance
def test_ours_is_faster_in_every_row(tmp_path, measured):
    try:
        resources.java()
    except resources.Unavailable as error:
        pytest.skip(str(error))
    # The suite has XLA compile without optimisation, which is no way to measure.
    env = {key: value for key, value in os.environ.items() if key != 'XLA_FLAGS'} | {'EVIL_JAX_CACHE': str(tmp_path)}
    command = [sys.executable, '-m', 'evil_jax.main', '--mode=benchmark', '--config=score:vqax']
    done = subprocess.run(
        [*command, f'--workdir={tmp_path}'], env=env, capture_output=True, text=True, timeout=1_800, check=False
    )
    assert not done.returncode, done.stderr
    ratios = json.loads((tmp_path / 'benchmark.json').read_text())
    print(done.stdout)
    assert ratios.keys() == _contests.ALL.keys(), done.stdout
    for name, ratio in ratios.items():
        wanted = 2 if name == 'meteor' else 1
        measured(f'benchmark of {name}, 14,000 examples: seconds of the other / ours', '>=', wanted, ratio)
