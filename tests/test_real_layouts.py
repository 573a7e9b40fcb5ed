"""The configs of the three real data sets, end to end through the binary, on the world written in their real layout."""

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


@pytest.mark.parametrize(
    ('data', 'form', 'container', 'options'),
    [
        ('esnlive', 'shapes_ve', 'lmdb', []),
        ('vqax', 'shapes_vqa', 'lxmert', ['--config.data.answers_min_count=1']),
        ('vcr', 'shapes_vcr', 'lmdb', ['--config.data.dev_share=0.3']),
    ],
)
def test_a_real_layout_goes_from_raw_files_to_scores(data, form, container, options, tmp_path):
    """Build, two steps, decode, evaluate; the counts are those of the files."""
    raw = tmp_path / 'raw'
    shapes.write_world(form, raw, counts=COUNTS, seed=3, container=container)
    done = subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', f'--config=eug:{data},size=tiny,shrink', f'--workdir={tmp_path}/run',
         f'--config.data.dir={tmp_path}/data', f'--config.data.manual_dir={raw}', *options],
        cwd=tmp_path, env={**os.environ, 'PYTHONPATH': str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    build = json.loads((tmp_path / 'run/build.json').read_text())
    assert build['examples_test'] == COUNTS['test']
    assert build['examples_train'] + build['examples_dev'] == COUNTS['train'] + COUNTS['dev']
    if data != 'vcr':  # whose dev split is carved out of the training pictures
        assert build['examples_dev'] == COUNTS['dev']
    assert json.loads((tmp_path / 'run/train.json').read_text())['step'] == 2
    predictions = records.read_jsonl(tmp_path / 'run/predictions.jsonl', records.Prediction)
    assert len({p.id for p in predictions}) == COUNTS['test']
    scores = json.loads((tmp_path / 'run/scores.json').read_text())['evil']['all']
    assert scores['s_t']['n'] == COUNTS['test']
    assert np.isfinite(scores['s_t']['value'])
