"""Configs end to end through the binary: build, two steps, decode, evaluate. Those of the real data sets read the world
written in their real layout.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from evil_jax import records
from evil_jax.data import shapes

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = {'train': 40, 'dev': 16, 'test': 20}
MODELS = ('pjx', 'fme', 'rvt', 'eug', 'qa_gpt2')
# Data set -> form of the world in its layout, container of its regions, options.
REAL = {
    'esnlive': ('shapes_ve', 'lmdb', []),
    'vqax': ('shapes_vqa', 'lxmert', ['--config.data.answers_min_count=1']),
    'vcr': ('shapes_vcr', 'lmdb', ['--config.data.dev_share=0.3']),
}
WORLD = ('shapes_ve', 'shapes_vqa', 'shapes_vcr')
# Each real data set, choices, a grid, word-by-word attention; the rest takes `--acceptance`.
OFTEN = {('eug', 'vcr'), ('pjx', 'vqax'), ('fme', 'esnlive')}


# Programs run a few times only: compiled in a third of the time.
ENV = {
    **os.environ,
    'PYTHONPATH': str(ROOT),
    'XLA_FLAGS': '--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false',
}


def run(tmp_path, config, *flags):
    done = subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', f'--config={config}', f'--workdir={tmp_path}/run',
         f'--config.data.dir={tmp_path}/data', *flags],
        cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize(
    ('model', 'data'),
    [
        pytest.param(model, data, marks=() if (model, data) in OFTEN else pytest.mark.acceptance)
        for model in MODELS
        for data in (*REAL, *WORLD)
    ],
)
def test_a_config_goes_from_raw_files_to_scores(model, data, tmp_path):
    """The counts are those of the files, every example has an answer and an explanation."""
    config = f'{model}:{data},size=tiny,shrink'
    if data in REAL:
        form, container, options = REAL[data]
        raw = tmp_path / 'raw'
        shapes.write_world(form, raw, counts=COUNTS, seed=3, container='grid' if model == 'pjx' else container)
        run(tmp_path, config, f'--config.data.manual_dir={raw}', *options)
    else:
        run(tmp_path, config, *(f'--config.data.world_{split}={count}' for split, count in COUNTS.items()))

    build = json.loads((tmp_path / 'run/build.json').read_text())
    assert build['examples_test'] == COUNTS['test']
    assert build['examples_train'] + build['examples_dev'] == COUNTS['train'] + COUNTS['dev']
    if data != 'vcr':  # whose dev split is carved out of the training pictures
        assert build['examples_dev'] == COUNTS['dev']
    assert json.loads((tmp_path / 'run/train.json').read_text())['step'] == 2
    predictions = records.read_jsonl(tmp_path / 'run/predictions.jsonl', records.Prediction)
    assert len({p.id for p in predictions}) == COUNTS['test']
    assert all(p.answer and p.explanation_ids is not None for p in predictions)
    scores = json.loads((tmp_path / 'run/scores.json').read_text())['evil']['all']
    assert scores['s_t']['n'] == COUNTS['test']
    assert np.isfinite(scores['s_t']['value'])
