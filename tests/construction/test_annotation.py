import collections
import csv
import random

import pytest
from judgements import pair

from evil_jax.construction import annotation, checked
from evil_jax.construction.pairs import CLASSES

CAPTIONS = {str(i): ['A dog.', '=Two dogs.'] for i in range(100)}


def test_classes_are_drawn_equally_whatever_the_order():
    pairs = [pair(i, CLASSES[min(i % 10, 2)]) for i in range(300)]  # 30 contradictions, 30 neutral, 240 entailments
    drawn = annotation.draw(pairs, 50)
    assert collections.Counter(each.label for each in drawn) == dict(zip(CLASSES, (17, 17, 16)))
    random.Random(0).shuffle(pairs)
    assert annotation.draw(iter(pairs), 50) == drawn != annotation.draw(pairs, 50, seed=1)
    assert {each.id for each in drawn} < {each.id for each in annotation.draw(pairs, 80)}
    assert len(annotation.draw(pairs, 300)) == 30 + 30 + 100
    assert len({each.label for each in drawn[:10]}) == 3  # mixed
    with pytest.raises(ValueError, match='no pairs to draw 50 from'):
        annotation.draw([], 50)


def test_a_table_filled_in_is_read_and_never_written_over(tmp_path):
    path = tmp_path / 'annotate.csv'
    drawn = [pair(i) for i in range(4)]
    drawn[3].id = '-3'
    annotation.write(path, drawn, CAPTIONS)
    with pytest.raises(ValueError, match=r'no label or quality is filled in \(4 blank rows'):
        checked.read(path)
    with open(path, newline='') as file:
        rows = list(csv.DictReader(file))
    assert rows[0]['captions'] == 'A dog.\n=Two dogs.' and rows[3]['pairID'] == "'-3"
    rows[0]['label'], rows[3]['quality'] = 'entailment', 'low'
    with open(path, 'w', newline='') as file:
        table = csv.DictWriter(file, annotation.COLUMNS)
        table.writeheader()
        table.writerows(rows)
    found = checked.read(path)
    assert found.verdicts == {
        '0.jpg#0r1n': checked.Verdict('entailment', ''),
        '-3': checked.Verdict('', 'low'),
    }
    assert found.blank == 2
    with pytest.raises(ValueError, match=r'annotate\.csv is there already, perhaps filled in'):
        annotation.write(path, drawn, CAPTIONS)
