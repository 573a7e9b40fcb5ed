import csv
import math

import numpy as np
import pytest
from judgements import FILTERS, judged, pair

from evil_jax.construction import assessment, checked, curves


def made(n=2_000):
    """Values of which the larger half are errors with a chance that grows; every tenth pair is checked."""
    generator = np.random.default_rng(0)
    values = generator.uniform(0, 4, n)
    wrong = generator.uniform(size=n) < values / 4
    verdicts = {f'{i}.jpg#0r1n': checked.Verdict('entailment' if wrong[i] else 'neutral', '') for i in range(0, n, 10)}
    judgements = [judged(pair(i), meaning=math.nan if i % 100 == 7 else float(values[i])) for i in range(n)]
    found, gathered = curves.Curves(FILTERS), assessment.Assessment(FILTERS, checked.Checked(verdicts))
    for each in judgements:
        found.add(each)
        gathered.add(each)
    return found, gathered, judgements, wrong


def test_a_curve_is_what_each_threshold_would_have_left():
    found, gathered, judgements, wrong = made()
    parts = found.to_json(gathered)
    assert list(parts) == ['meaning']  # the other filter looked at nothing
    rows = parts['meaning']['curve']
    assert 50 <= len(rows) <= 61 and sum(row['in_use'] for row in rows) == 1
    assert [row['threshold'] for row in rows] == sorted({row['threshold'] for row in rows})
    for row in rows[:: len(rows) // 7] + [row for row in rows if row['in_use']]:
        kept = [not each.values['meaning'] > row['threshold'] for each in judgements]
        assert row['kept'] == pytest.approx(np.mean(kept))
        errors = [wrong[i] for i in range(0, 2_000, 10) if kept[i]]
        assert row['error'] == (pytest.approx(np.mean(errors)) if errors else None)
        assert row['bad'] is None
    assert rows[0]['kept'] < 0.02 and rows[-1]['kept'] == 1
    assert rows[len(rows) // 4]['error'] < rows[-1]['error']
    counts = parts['meaning']['histogram']
    assert sum(counts['counts']['neutral']) == 1_980 and len(counts['edges']) == 41


def test_the_threshold_in_use_is_on_the_curve_and_in_the_histogram_also_outside_of_the_values():
    found = curves.Curves(FILTERS)
    for i in range(5):
        found.add(judged(pair(i), meaning=i % 2 / 2))
    parts = found.to_json()['meaning']
    assert [(row['threshold'], row['kept']) for row in parts['curve']] == [(0, 0.6), (0.5, 1), (2.0, 1)]
    assert parts['histogram']['edges'][-1] == 2 and sum(parts['histogram']['counts']['neutral']) == 5


def test_nothing_measured_is_no_curve():
    found = curves.Curves(FILTERS)
    found.add(judged(pair(0), meaning=math.nan))
    assert found.to_json() == {}


def test_the_table_has_a_line_for_each_threshold():
    found, gathered, _, _ = made(200)
    parts = found.to_json(gathered)
    rows = list(csv.DictReader(curves.csv(parts).splitlines()))
    assert len(rows) == len(parts['meaning']['curve'])
    for row, wanted in zip(rows, parts['meaning']['curve']):
        assert row['filter'] == 'meaning' and float(row['threshold']) == wanted['threshold']
        assert row['error'] == ('' if wanted['error'] is None else str(wanted['error'])) and row['bad'] == ''
