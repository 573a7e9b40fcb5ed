"""A trained e-UG under edits of which the built-in world knows the right new answer. Ten minutes:
`bash launch/test.sh --acceptance tests/acceptance/test_counterfactual_world.py`.
"""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance
COLOURS = ('colour_max_common', 'colour_min_common')


def known(rows, families):
    """The edits of these families whose right new answer the world knows."""
    return [row for row in rows if row['family'] in families and row['expected_right'] is not None]


def share(rows, hit):
    return sum(map(hit, rows)) / len(rows)


@pytest.mark.parametrize('data', ['shapes_vqa', 'shapes_ve'])
def test_the_world_knows_the_right_new_answer(data, tmp_path, measured):
    """`--config=eug:<data>`, then `--mode=counterfactual`, with all default settings."""
    command = [
        sys.executable, '-m', 'evil_jax.main', f'--config=eug:{data}', f'--workdir={tmp_path}/run',
        f'--config.data.dir={tmp_path}/data',
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True)
    subprocess.run([*command, '--mode=counterfactual'], cwd=ROOT, check=True)
    folder = tmp_path / 'run/counterfactual'
    rows = [json.loads(line) for line in (folder / 'judged.jsonl').read_text().splitlines()]
    right = lambda row: row['expected_right']
    for name, families, least in (('colours', COLOURS, 0.9), ('siblings', ('sibling',), 0.75)):
        found = known(rows, families)
        # To 'how many' of what is not there the right answer is 0, which no question of the world's training has.
        sayable = [row for row in found if row['expected'][0] != '0']
        change, same = ([row for row in sayable if row['expectation'] == kind] for kind in ('CHANGE', 'INV'))
        measured(f'{data}, {name}: edits whose right new answer the world knows', '>=', 300, len(found))
        measured(f'{data}, {name}: the answer to them is right', '>=', least, share(sayable, right))
        measured(f'{data}, {name}: it changes where it must', '>=', least, share(change, lambda row: not row['kept']))
        measured(f'{data}, {name}: it stays where it must', '>=', least, share(same, lambda row: row['kept']))
    summary = json.loads((folder / 'rules.json').read_text())['summary']['families']
    told = {row['family']: row['expected_right'] for row in summary}
    for family in (*COLOURS, 'sibling'):
        found = known(rows, (family,))
        assert (told[family]['k'], told[family]['n']) == (sum(map(right, found)), len(found))
    page = (folder / 'report.html').read_text()
    assert 'Beside the truth' in page and 'the scene that the picture was drawn from' in page
