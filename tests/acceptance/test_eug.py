"""Training numbers of e-UG, by the commands that a user types. Minutes each: `bash launch/test.sh --acceptance`."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance


def scores(workdir):
    """{protocol: {metric: value}} over all examples."""
    found = json.loads((pathlib.Path(workdir) / 'scores.json').read_text())
    return {
        protocol: {name: score['value'] for name, score in subsets['all'].items()}
        for protocol, subsets in found.items()
        if protocol != 'schema'
    }


def test_local_script_in_a_fresh_clone(tmp_path, measured):
    """From a bare clone to the report: time, scores, and the baselines that show that the picture is needed."""
    clone = tmp_path / 'clone'
    subprocess.run(['git', 'clone', '-q', ROOT, clone], check=True)
    start = time.monotonic()
    # The clone must find nothing of this environment: neither its packages nor its compiled programs.
    env = {k: v for k, v in os.environ.items() if k not in ('VIRTUAL_ENV', 'PYTHONPATH', 'JAX_COMPILATION_CACHE_DIR')}
    done = subprocess.run(['bash', 'launch/local.sh'], cwd=clone, env=env, capture_output=True, text=True)
    seconds = time.monotonic() - start
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    path = pathlib.Path(re.findall(r'report: (\S+report\.html)', done.stdout)[-1])  # the script's own last line
    assert path == clone / 'runs/shapes/report.html'
    page = path.read_text()
    assert 'text only' in page
    assert 'majority' in page.lower()

    runs = clone / 'runs'
    model, text_only = scores(runs / 'shapes'), scores(runs / 'shapes_text_only')['evil']
    examples = json.loads((runs / 'shapes/scores.json').read_text())['evil']['all']['s_t']['n']
    measured('local.sh in a fresh clone: seconds', '<=', 480, seconds)
    measured('shapes_ve: test examples', '>=', 1000, examples)
    measured('shapes_ve: s_t', '>=', 0.90, model['evil']['s_t'])
    measured('shapes_ve: s_e_true', '>=', 0.80, model['evil']['s_e_true'])
    measured('shapes_ve: s_o_true', '>=', 0.72, model['evil']['s_o_true'])
    measured('shapes_ve: s_t of the majority answer', '<=', 0.40, model['majority']['s_t'])
    measured('shapes_ve: s_t of text only', '<=', 0.60, text_only['s_t'])
    measured('shapes_ve: s_e_true of text only', '<=', 0.40, text_only['s_e_true'])


@pytest.mark.parametrize('data', ['shapes_vqa', 'shapes_vcr'])
def test_questions(data, tmp_path, measured):
    """`--config=configs/eug.py:<data>`, all default modes: open questions, and four choices about tagged objects."""
    start = time.monotonic()
    subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', f'--config=configs/eug.py:{data}', f'--workdir={tmp_path}/run',
         f'--config.data.dir={tmp_path}/data'],
        cwd=ROOT, check=True,
    )  # fmt: skip
    measured(f'{data}, all default modes: seconds', '<=', 480, time.monotonic() - start)
    got = scores(tmp_path / 'run')['evil']
    measured(f'{data}: s_t', '>=', 0.85, got['s_t'])
    measured(f'{data}: s_e_true', '>=', 0.70, got['s_e_true'])
