"""Training numbers of all five models on the built-in world, by the command that a user types. About half an hour:
`bash launch/test.sh --acceptance tests/acceptance/test_zoo.py`.
"""

import json
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance
# What launch/zoo.sh writes last in each of its runs, in order.
ENDS = ('qa_gpt2/scores.json', 'rvt/scores.json', 'pjx/scores.json', 'fme/scores.json',
        'learning_instructions/best.json', 'eug/report.html')  # fmt: skip
NAMES = {'pjx': 'PJ-X', 'fme': 'FME', 'eug': 'e-UG', 'rvt': 'RVT', 'qa_gpt2': 'QA-only'}


def test_zoo_script_in_a_fresh_clone(tmp_path, measured):
    clone = tmp_path / 'clone'
    subprocess.run(['git', 'clone', '-q', ROOT, clone], check=True)
    # The clone must find nothing of this environment: neither its packages nor its compiled programs.
    env = {k: v for k, v in os.environ.items() if k not in ('VIRTUAL_ENV', 'PYTHONPATH', 'JAX_COMPILATION_CACHE_DIR')}
    start = time.time()
    done = subprocess.run(['bash', 'launch/zoo.sh'], cwd=clone, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    runs, found = clone / 'runs/zoo', {}
    for end in ENDS:  # the first run pays for the installation, the last one for the report
        ended = (runs / end).stat().st_mtime
        model = end.partition('/')[0]
        seconds, start = ended - start, ended
        if model == 'learning_instructions':
            measured('M_T alone and joint, three seeds each: seconds', '<=', 1200, seconds)
            continue
        scores = json.loads((runs / model / 'scores.json').read_text())['evil']['all']
        found[model] = {name: score['value'] for name, score in scores.items()}
        measured(f'{NAMES[model]} on shapes_ve, all modes: seconds', '<=', 600, seconds)

    for model in ('pjx', 'fme', 'eug'):
        measured(f'{NAMES[model]} on shapes_ve: s_t', '>=', 0.85, found[model]['s_t'])
        measured(f'{NAMES[model]} on shapes_ve: s_e_true', '>=', 0.7, found[model]['s_e_true'])
    without = found['qa_gpt2']['s_t']
    measured('QA-only on shapes_ve: s_t', '<=', 0.60, without)
    measured('RVT on shapes_ve: s_t, 0.10 above QA-only', '>=', without + 0.10, found['rvt']['s_t'])

    sweep = json.loads((runs / 'learning_instructions/sweep.json').read_text())
    scored = [point['scores']['s_t'] for point in sweep['points']]
    measured('runs of M_T alone and joint', '==', 6, len(scored))
    page = (runs / 'eug/report.html').read_text()
    assert all(name in page for model, name in NAMES.items() if model != 'eug')
    assert 'task only' in page
