"""e-SNLI's own lines beside the released e-SNLI-VE: which rows are the same, and what our filters say of them.

Released rows have no premise and e-SNLI's lines no pairID, so they are joined by hypothesis and first explanation. The
lines are tokenised, and since lower-cased explanations of several sentences are joined by ' ; ', letters and digits
are what both have in common.
"""

import collections
import csv
import re

import pytest

from evil_jax import config as config_lib
from evil_jax.construction import filters
from evil_jax.construction.pairs import Pair

SPLITS = ('dev', 'test')


def letters(text):
    return re.sub('[^a-z0-9]', '', text.lower())


@pytest.fixture(scope='module')
def released(shared):
    """{(hypothesis, explanation) in letters: (split, class)} of each released row."""
    found = {}
    for split in SPLITS:
        with open(shared / 'data' / 'esnlive' / f'esnlive_{split}.csv', encoding='utf-8', newline='') as file:
            for row in csv.DictReader(file):
                found[letters(row['hypothesis']), letters(row['explanation'])] = split, row['gold_label']
    return found


@pytest.fixture(scope='module')
def lines(shared):
    """(split, premise, hypothesis, class, first explanation) of each line."""
    rows = []
    for split in SPLITS:
        parts = [
            (shared / 'data' / 'snli' / f'{name}.{split}').read_text(encoding='utf-8').removesuffix('\n').split('\n')
            for name in ('esnli_s1', 'esnli_s2', 'esnli_labels', 'esnli_preproc1_expl_1')
        ]
        rows += [(split, *map(str.strip, row)) for row in zip(*parts, strict=True)]
    return rows


def test_334_and_340_released_rows_are_among_the_lines(released, lines):
    assert collections.Counter(row[0] for row in lines) == {'dev': 9_842, 'test': 9_824}
    joined = collections.defaultdict(list)
    for _, _, hypothesis, label, explanation in lines:
        if key := released.get((letters(hypothesis), letters(explanation))):
            joined[letters(hypothesis), letters(explanation)].append((key, label))
    # SNLI-VE pools SNLI's files and splits them anew by picture, so both files have rows of both.
    assert collections.Counter(rows[0][0][0] for rows in joined.values()) == {'dev': 334, 'test': 340}
    # None of them has another label than in SNLI: neutral rows, which people labelled again, have new explanations.
    assert all(gold == label for rows in joined.values() for (_, gold), label in rows)


def test_what_keyword_and_rouge_filters_remove(released, lines):
    """The released rows went through filters like these, so next to none should be removed. That holds of the keywords:
    3 of 674 rows against 5.2 % of all lines. Of ROUGE-1 it holds of entailments: 20 % of the lines are above .57, no
    released row is above .59. Of contradictions 16 of 348 released rows are, up to .98, against 6.6 % of the lines: it
    does not look as if they had been filtered.
    """
    counts = {
        'lines': collections.defaultdict(collections.Counter),
        'released': collections.defaultdict(collections.Counter),
    }
    largest, seen = collections.Counter(), set()
    construct = config_lib.base().construct
    construct.filters = ('keywords', 'similarity')
    keywords, similarity = filters.make(construct)
    for split, premise, hypothesis, label, explanation in lines:
        pair = Pair('', '', premise, hypothesis, label, split, [explanation])
        rouge = similarity.measure(pair)
        talks, alike = keywords.removes(keywords.measure(pair)), similarity.removes(rouge)
        key = letters(hypothesis), letters(explanation)
        of = [('lines', (split, label))]
        if key in released and key not in seen:
            seen.add(key)
            of.append(('released', released[key]))
            largest[label] = max(largest[label], rouge)
        for group, place in of:
            counts[group][place].update(n=1, keywords=talks, similarity=alike, either=talks or alike)
    columns = ('n', 'keywords', 'similarity', 'either')
    for group, table in counts.items():
        for place in sorted(table):
            print(group, *place, *[f'{name} {table[place][name]:,}' for name in columns])
    found = {group: {p: tuple(c[name] for name in columns) for p, c in t.items()} for group, t in counts.items()}
    assert found['lines'] == {
        ('dev', 'contradiction'): (3_278, 70, 213, 278),
        ('dev', 'neutral'): (3_235, 84, 350, 421),
        ('dev', 'entailment'): (3_329, 355, 657, 901),
        ('test', 'contradiction'): (3_237, 67, 220, 282),
        ('test', 'neutral'): (3_219, 85, 326, 402),
        ('test', 'entailment'): (3_368, 367, 709, 979),
    }
    assert found['released'] == {
        ('dev', 'contradiction'): (179, 0, 8, 8),
        ('dev', 'entailment'): (155, 1, 7, 8),
        ('test', 'contradiction'): (169, 1, 8, 9),
        ('test', 'neutral'): (13, 1, 1, 2),
        ('test', 'entailment'): (158, 0, 5, 5),
    }
    assert largest['entailment'] < 0.59 < 0.97 < largest['contradiction']
