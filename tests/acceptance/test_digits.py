"""A small Vision Transformer learns handwritten digits, by the command that a user types."""

import json
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance


def test_digits(tmp_path, measured):
    start = time.monotonic()
    subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', '--config=vit:digits', f'--workdir={tmp_path}/run',
         f'--config.data.dir={tmp_path}/data'],
        cwd=ROOT, check=True,
    )  # fmt: skip
    seconds = time.monotonic() - start
    scores = json.loads((tmp_path / 'run' / 'scores.json').read_text())
    measured('digits: test pictures', '==', 400, scores['evil']['all']['s_t']['n'])
    measured('digits: accuracy', '>=', 0.97, scores['evil']['all']['s_t']['value'])
    measured('digits: accuracy of the majority answer', '<=', 0.12, scores['majority']['all']['s_t']['value'])
    measured('digits, all default modes: seconds', '<=', 120, seconds)  # about a minute where nothing else runs
