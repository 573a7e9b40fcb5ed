"""Pairs of texts a second of the NLI model beside transformers with PyTorch, RoBERTa-base, in one run."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.acceptance
def test_roberta_base_is_no_slower_than_transformers(tmp_path, measured):
    # The suite has XLA compile without optimisation, which is no way to measure.
    env = {key: value for key, value in os.environ.items() if key != 'XLA_FLAGS'}
    command = [sys.executable, '-m', 'evil_jax.main', '--mode=benchmark', '--config=esnlive_construction']
    done = subprocess.run(
        [*command, f'--workdir={tmp_path}', '--config.benchmark.of=nli'],
        env=env, capture_output=True, text=True, timeout=1_800, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    print(done.stdout)
    found = json.loads((tmp_path / 'benchmark.json').read_text())
    pairs = f'NLI pairs/s of RoBERTa-base, float32: ours ({found["pairs_per_second"]:.1f}) / transformers'
    measured(f'{pairs}, batches sorted by length', '>=', 1, found['ratio'])
    measured(f'{pairs}, batches in the order of the file', '>=', 1, found['ratio_file_order'])
    measured('NLI probabilities of RoBERTa-base, largest difference', '<=', 1e-4, found['difference'])
