"""launch/zoo.sh with a stand-in for the interpreter: what is run in which order, and what happens when it stops."""

import ast
import pathlib
import shutil
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / 'launch' / 'zoo.sh'
STAND_IN = """#!/usr/bin/env bash
echo "$*" >>calls
for word; do case $word in --workdir=*) folder=${word#*=} ;; esac; done
case $folder in *"${STOP:-nowhere}") exit 0 ;; esac
mkdir -p "$folder"
touch "$folder"/{scores.json,sweep.json,best.json,report.html}
"""


@pytest.fixture
def play(tmp_path):
    (tmp_path / 'launch').mkdir()
    shutil.copy(SCRIPT, tmp_path / 'launch')
    (tmp_path / 'python').write_text(STAND_IN)
    (tmp_path / 'python').chmod(0o755)
    (tmp_path / 'launch/environment.sh').write_text(f'PY={tmp_path}/python\n')

    def run(*arguments, **env):
        command = ['bash', tmp_path / 'launch/zoo.sh', *arguments]
        done = subprocess.run(command, env={'PATH': '/usr/bin:/bin', **env}, capture_output=True, text=True, timeout=60)
        return done, (tmp_path / 'calls').read_text().splitlines()

    return run


def test_all_models_and_the_sweep_stand_beside_the_last(play, tmp_path):
    done, calls = play('--config.train.steps=7')
    assert done.returncode == 0, done.stderr
    assert f'report: {tmp_path}/runs/zoo/eug/report.html' in done.stdout
    configs = [next(w for w in call.split() if w.startswith('--config=')) for call in calls]
    assert configs == [
        *(f'--config=configs/{model}.py:shapes_ve' for model in ('qa_gpt2', 'rvt', 'pjx', 'fme')),
        '--config=configs/learning_instructions.py:shapes_ve,model=fme', '--config=configs/eug.py:shapes_ve',
    ]  # fmt: skip
    assert all(call.endswith('--config.train.steps=7') for call in calls)
    assert '--mode=sweep' in calls[4] and '--mode' not in ''.join(calls[:4] + calls[5:])
    compare = calls[5].partition('--config.evaluate.compare=')[2].partition(') ')[0] + ')'
    assert dict(entry.split('=') for entry in ast.literal_eval(compare)[:4]) == {
        'QA-only': 'runs/zoo/qa_gpt2/scores.json', 'RVT': 'runs/zoo/rvt/scores.json',
        'PJ-X': 'runs/zoo/pjx/scores.json', 'FME': 'runs/zoo/fme/scores.json',
    }  # fmt: skip
    assert ast.literal_eval(compare)[4] == 'FME=runs/zoo/learning_instructions/sweep.json'


@pytest.mark.parametrize('where', ['rvt', 'learning_instructions', 'eug'])
def test_stopped_in_the_middle_it_says_so_and_goes_on(play, where):
    done, calls = play(STOP=where)
    assert done.returncode == 1 and f'stopped before runs/zoo/{where}/' in done.stderr
    assert f'--workdir=runs/zoo/{where}' in calls[-1] and 'report: ' not in done.stdout
    assert play()[0].returncode == 0
