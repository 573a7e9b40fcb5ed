"""Agreement and scores of ratings that others have computed too. Seconds:
`bash launch/test.sh --acceptance tests/acceptance/test_human_golden.py`.
"""

import csv
import json
from collections import defaultdict

import pytest

from evil_jax.human import agreement, formats, responses, scores

pytestmark = pytest.mark.acceptance
IRRCAC = {'krippendorff': 'krippendorff', 'fleiss': 'fleiss', 'gwet': 'gwet_ac', 'brennan_prediger': 'bp'}


def test_agreement_of_published_packages(shared, measured):
    """krippendorff 0.9 tells all digits, irrCAC 0.4.4 five."""
    folder = shared / 'data' / 'metrics'
    golden = json.loads((folder / 'agreement_synth.json').read_text())
    units = defaultdict(list)
    with open(folder / 'human_ratings_synth.csv', newline='') as file:
        for row in csv.DictReader(file):
            units[row['item'], row['model']].append(int(row['rating']))
    compared = 0
    for found in agreement.table(units.values(), range(1, 5)):
        kind, weights = agreement.COEFFICIENTS[found.name]
        if found.name in golden:
            compared += 1
            distance = abs(found.value - golden[found.name])
            measured(f'{found.name} beside krippendorff', '<=', 1e-6, distance)
        if weights != agreement.OWN:
            compared += 1
            theirs = golden[f'irrCAC_{IRRCAC[kind]}_{weights}']
            distance = max(abs(round(found.value, 5) - theirs['value']), abs(round(found.se, 5) - theirs['se']))
            measured(f'{found.name} and its error beside irrCAC, to its 5 digits', '<=', 1e-6, distance)
    measured('coefficients compared, of those published', '==', len(golden), compared)


@pytest.mark.parametrize('name, n, own, gold', [('esnlive', 1104, 0.8572, 0.8502), ('vqax', 1462, 0.8953, 0.8985)])
def test_scores_of_ofax(shared, measured, name, n, own, gold):
    rows = responses.mark(responses.read(shared / 'data' / 'human_eval' / f'ofax_large_{name}.csv', 'ofax'))
    for row, wanted in zip(scores.summary(rows, resamples=0)['scores'], (own, gold), strict=True):
        what = f'OFA-X large, {name}, {row["system"]}'
        measured(f'{what}: ratings that count', '==', n, row['ratings'])
        measured(f'{what}: S_E over ratings, distance', '<=', 5e-5, abs(row['s_e_ratings'] - wanted))


def test_a_batch_of_mturk(shared, measured):
    """Counted in the file's columns: nine assignments of ten tasks with two explanations; one assignment was rejected,
    and two tasks were answered wrongly."""
    rows = responses.mark(formats.read([shared / 'data' / 'metrics' / 'mturk_batch_synth.csv'], 'mturk'))
    counts = responses.counts(rows)
    measured('MTurk batch: ratings', '==', 180, counts['ratings'])
    measured('MTurk batch: of rejected work', '==', 20, counts['left_out'][responses.REJECTED])
    measured('MTurk batch: task answered otherwise', '==', 4, counts['left_out'][responses.WRONG])
    scored = {row['system']: row['s_e'] for row in scores.summary(rows, resamples=0)['scores']}
    # Of the same columns: the mean over 30 questions of the mean of their (2 or 3) ratings.
    measured('MTurk batch: S_E of the generated, distance', '<=', 1e-9, abs(scored['model'] - 137 / 270))
    measured('MTurk batch: S_E of the gold, distance', '<=', 1e-9, abs(scored['gt'] - 49 / 90))
