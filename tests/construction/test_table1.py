import csv
import random
import statistics

import pytest
from judgements import pair

from evil_jax.construction import table1
from evil_jax.construction.pairs import Pair


def test_the_released_files_give_the_papers_table(shared):
    table = table1.Table1()
    for split in ('dev', 'test'):
        with open(shared / 'data' / 'esnlive' / f'esnlive_{split}.csv', encoding='utf-8', newline='') as file:
            for row in csv.DictReader(file):
                texts = '', row['hypothesis'], row['gold_label'], split, [row['explanation']]
                table.add(Pair(row['pairID'], row['Flickr30kID'], *texts))
    found = table.to_json()
    assert list(found) == ['dev', 'test']
    for split, row in found.items():
        paper = table1.PAPER[split]
        assert (row['instances'], row['images']) == (paper['instances'], paper['images'])
        assert {label: round(share, 1) for label, share in row['shares'].items()} == paper['shares']
        for text in ('hypothesis', 'explanation'):
            assert row[text][1] == paper[text][1]
    # 7.347 is printed as 7.4; explanations are a tenth of a word shorter than printed.
    assert [round(found[s]['hypothesis'][0], 3) for s in found] == [7.281, 7.347]
    assert [round(found[s]['explanation'][0], 3) for s in found] == [13.222, 13.167]


@pytest.mark.parametrize('n', [1, 2, 5, 8, 40])
def test_means_and_medians_are_those_of_the_lists(n):
    lengths = random.Random(n).choices(range(9), k=n)
    table = table1.Table1('all')
    for i, length in enumerate(lengths):
        table.add(pair(i, explanations=['x ' * length, 'y']))
    row = table.to_json()['train']
    every = [*lengths, *[1] * n]
    assert row['explanation'] == [pytest.approx(statistics.mean(every)), statistics.median(every)]
    assert row['hypothesis'] == [3, 3] and row['images'] == (n + 4) // 5
    assert row['shares'] == {'contradiction': 0, 'neutral': 100, 'entailment': 0}


def test_pairs_without_a_picture_are_about_none():
    table = table1.Table1()
    for name in ('', '', 'a'):
        table.add(Pair(name, name, '', 'x', 'neutral', 'dev', []))
    row = table.to_json()['dev']
    assert (row['instances'], row['images'], row['explanation']) == (3, 1, [None, None])
