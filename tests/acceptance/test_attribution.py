"""Heat maps of trained models against each other and against chance, by the commands that a user types. A quarter of an
hour: `bash launch/test.sh --acceptance tests/acceptance/test_attribution.py`.
"""

import json
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance
PUBLISHED = ('transformer_attribution', 'generic')  # have to beat chance


def run(*flags):
    subprocess.run([sys.executable, '-m', 'evil_jax.main', *map(str, flags)], cwd=ROOT, check=True)


def compare(folder, *flags):
    """The table of a protocol: {method: {metric: {'value', 'ci95', ...}}}; it is also printed."""
    protocol = next(flag.partition('=')[2] for flag in flags if 'attribute.evaluate' in flag)
    run('--mode=attribute', f'--workdir={folder}', *flags)
    print((folder / 'attribute' / protocol / 'faithfulness.md').read_text())
    document = json.loads((folder / 'attribute' / protocol / 'faithfulness.json').read_text())
    return {name: one['metrics'] for name, one in document['methods'].items()}


def beat_chance(measured, what, table, *metrics):
    """Rows: the nearest ends of two intervals, with the method's on the right side."""
    for metric in metrics:
        low, high = table['random'][metric]['ci95']
        for method in PUBLISHED:
            found = table[method][metric]
            if found['better'] == 'higher':
                measured(
                    f'{what}, {metric}: low end of {method}, above the high one of random', '>=', high, found['ci95'][0]
                )
            else:
                measured(
                    f'{what}, {metric}: high end of {method}, below the low one of random', '<=', low, found['ci95'][1]
                )


def test_digits(tmp_path, measured):
    flags = '--config=vit:digits', f'--config.data.dir={tmp_path}/data'
    start = time.monotonic()
    run(f'--workdir={tmp_path}/run', *flags)
    seconds = time.monotonic() - start
    scores = json.loads((tmp_path / 'run' / 'scores.json').read_text())
    measured('digits: test pictures', '==', 400, scores['evil']['all']['s_t']['n'])
    measured('digits: accuracy', '>=', 0.97, scores['evil']['all']['s_t']['value'])
    measured('digits: accuracy of the majority answer', '<=', 0.12, scores['majority']['all']['s_t']['value'])
    measured('digits, all default modes: seconds', '<=', 120, seconds)  # about a minute where nothing else runs
    table = compare(tmp_path / 'run', *flags, '--config.attribute.evaluate=perturbation', '--config.attribute.limit=0')
    measured('digits: methods compared', '==', 13, len(table))
    beat_chance(measured, 'digits', table, 'auc_author_positive', 'auc_author_negative')


def test_shapes(tmp_path, measured):
    flags = '--config=eug:shapes_ve', f'--config.data.dir={tmp_path}/data'
    run('--mode=build,train', f'--workdir={tmp_path}/run', *flags)
    flags = (*flags, '--config.attribute.limit=400')
    regions = compare(tmp_path / 'run', *flags, '--config.attribute.evaluate=perturbation')
    measured('shapes_ve: methods compared', '==', 13, len(regions))
    beat_chance(measured, 'shapes_ve, regions', regions, 'auc_positive', 'auc_negative', 'comprehensiveness')
    (tmp_path / 'run/attribute/perturbation').rename(tmp_path / 'regions')
    words = compare(
        tmp_path / 'run', *flags, '--config.attribute.evaluate=perturbation', '--config.attribute.unit=token'
    )
    beat_chance(measured, 'shapes_ve, words taken out', words, 'auc_positive', 'auc_negative', 'comprehensiveness')
    found = compare(tmp_path / 'run', *flags, '--config.attribute.evaluate=segmentation')
    beat_chance(measured, 'shapes_ve, decisive objects', found, 'pixel_accuracy', 'miou', 'map')
    words = compare(tmp_path / 'run', *flags, '--config.attribute.evaluate=rationale')
    beat_chance(measured, 'shapes_ve, decisive words', words, 'token_f1', 'auprc')
