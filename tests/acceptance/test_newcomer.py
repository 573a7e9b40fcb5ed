"""Somebody with predictions and references in two files gets the full report with the README's command, in a minute."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from evil_jax import records
from evil_jax.data.sources import esnlive
from evil_jax.records import Prediction

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance


def score(folder, *more):
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', '--mode=evaluate', '--config=score:esnlive', f'--workdir={folder}/out',
         f'--config.evaluate.predictions={folder}/predictions.jsonl',
         f'--config.evaluate.references={folder}/references.jsonl', *more],
        cwd=ROOT, env=os.environ | {'PYTHONPATH': str(ROOT), 'EVIL_JAX_CACHE': str(folder / 'cache')},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return time.monotonic() - start


def test_two_files_and_one_command(shared, tmp_path, measured):
    examples = list(esnlive.read(shared / 'data/esnlive/esnlive_test.csv'))
    records.write_jsonl(tmp_path / 'references.jsonl', examples)
    texts = [e.explanations[0] for e in examples]
    answers = [e.label for e in examples]
    predictions = [
        Prediction(e.id, answers[i - 1] if i % 4 == 0 else e.label, explanation=texts[i - 1])
        for i, e in enumerate(examples)
    ]
    records.write_jsonl(tmp_path / 'predictions.jsonl', predictions)
    measured('newcomer: rows', '==', 14740, len(predictions))
    # The first run makes METEOR's index as well.
    measured('newcomer, first run: seconds', '<=', 60, score(tmp_path))
    measured('newcomer, again: seconds', '<=', 60, score(tmp_path))
    scores = json.loads((tmp_path / 'out/scores.json').read_text())
    rows = scores['evil']['correct']
    wanted = ('bleu4', 'meteor', 'rouge_l', 'cider', 'chrf', 's_e_auto_without_spice_bertscore')
    measured(
        'newcomer: metrics with a value and an interval',
        '==',
        len(wanted),
        sum(bool(rows[n].get('ci95')) for n in wanted),
    )
    measured('newcomer: report of bytes', '>=', 50_000, (tmp_path / 'out/report.html').stat().st_size)


def test_a_hundred_thousand_rows(shared, tmp_path, measured):
    examples = list(esnlive.read(shared / 'data/esnlive/esnlive_test.csv'))
    many = [
        dict(id=f'{n}-{e.id}', image_id=e.image_id, text=e.text, label=e.label, explanations=e.explanations)
        for n in range(7)
        for e in examples
    ][:100_000]
    lines = lambda rows: ''.join(json.dumps(row) + '\n' for row in rows)
    (tmp_path / 'references.jsonl').write_text(lines(many))
    said = [dict(id=r['id'], answer=r['label'], explanation=many[i - 1]['explanations'][0]) for i, r in enumerate(many)]
    (tmp_path / 'predictions.jsonl').write_text(lines(said))
    seconds = score(tmp_path)
    row = json.loads((tmp_path / 'out/scores.json').read_text())['coco']['all']['meteor']
    measured('100,000 rows: scored', '==', 100_000, row['n'])
    measured('100,000 rows: seconds (no bound asked for)', '<=', 600, seconds)
