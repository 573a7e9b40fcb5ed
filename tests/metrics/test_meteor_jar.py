"""METEOR in Python against the Java program itself, and the program as a backend. Needs pycocoevalcap and Java."""

import csv
import os
import pathlib
import re
import shutil
import sys
import time

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import meteor_texts

from evil_jax.metrics import _java, meteor, resources
from evil_jax.metrics._meteor import normalise, workers

PREDICTIONS = {case: candidate for case, (candidate, _, _) in meteor_texts.ODD.items()} | {
    'a': "The man isn't holding an umbrella...", 'b': 'Ünïcode 😀 — “quoted”, 1,000', 'c': 'tabs\tand \x0b others',
}  # fmt: skip
REFERENCES = {case: references for case, (_, references, _) in meteor_texts.ODD.items()} | {
    'a': ['A man carries an umbrella.', 'He is not holding his umbrella', ''],
    'b': ['unicode "quoted" – ünïcode 1,000 😀'],
    'c': ['tabs and others'],
}


def test_equal_from_a_folder_with_a_blank_on_a_machine_with_other_customs(java, tmp_path, monkeypatch):
    monkeypatch.setenv('JAVA_TOOL_OPTIONS', '-Duser.language=tr -Duser.country=TR -Dfile.encoding=ISO-8859-9')
    monkeypatch.setenv('LC_ALL', 'de_DE.UTF-8')
    folder = tmp_path / 'a blank and ü'
    shutil.copytree(resources.pycocoevalcap() / 'meteor', folder / 'meteor', copy_function=os.symlink)
    theirs = meteor.table(PREDICTIONS, REFERENCES, backend='jar', folder=folder, java=java)
    ours = meteor.table(PREDICTIONS, REFERENCES)
    np.testing.assert_array_equal(ours.statistics, theirs.statistics)
    np.testing.assert_array_equal(ours.sentence['meteor'], theirs.sentence['meteor'])
    values = theirs.scores()['meteor'].per_example
    assert {case: values[case] for case in meteor_texts.ODD} == {case: row[2] for case, row in meteor_texts.ODD.items()}
    assert ours.scores()['meteor'].value == theirs.scores()['meteor'].value
    assert f'backend:jar(java-{_java.version(java)})' in theirs.signatures['meteor']


def stub(tmp_path, script):
    """A program in Java's place."""
    path = tmp_path / 'java'
    path.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "17"\'; exit; fi\n{script}\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ('script', 'message'),
    [
        ('echo "no memory" >&2; exit 3', r'code 3.*no memory'),
        ('echo 1 2 3', r"answered '1 2 3' to 'SCORE \|\|\| b \|\|\| a', wanted 23 numbers"),
        ('exit 0', r'answered 0 lines to 1'),
    ],
)
def test_a_failing_program_says_why(tmp_path, script, message):
    with pytest.raises(resources.Unavailable, match=message):
        meteor.table({'x': 'a'}, {'x': ['b']}, backend='jar', java=stub(tmp_path, script))


def test_without_java():
    with pytest.raises(resources.Unavailable, match='needs Java'):
        meteor.table({'x': 'a'}, {'x': ['b']}, backend='jar', java='no-such-java')


def test_a_hundred_thousand_rows_pass_the_pipes(tmp_path):
    # Answers while it reads, and fills standard error: either would stop a careless caller.
    answer = ' '.join(['1.0'] * 23)
    script = f'awk \'{{ print "{answer}"; if (NR % 10 == 0) print "warning" > "/dev/stderr" }}\''
    predictions = {i: f'a dog number {i}' for i in range(100_000)}
    references = {i: ['a dog'] for i in predictions}
    table = meteor.table(predictions, references, backend='jar', java=stub(tmp_path, script))
    assert table.statistics.shape == (100_000, 24)


@pytest.mark.acceptance
def test_development_set(shared, java, measured):
    """Each explanation of e-SNLI-VE's development set against the next one: equal to the jar, and faster."""
    with open(shared / 'data' / 'esnlive' / 'esnlive_dev.csv', encoding='utf-8', newline='') as file:
        texts = [row['explanation'] for row in csv.DictReader(file)]
    predictions = dict(enumerate(texts[1:] + texts[:1]))
    references = {i: [text] for i, text in enumerate(texts)}
    meteor.table({0: 'a'}, {0: ['a']})  # the index is there
    for cached in (workers._index, workers._lexicon, meteor._known):
        cached.cache_clear()
    start = time.perf_counter()
    ours = meteor.table(predictions, references)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    theirs = meteor.table(predictions, references, backend='jar', java=java)
    jar_seconds = time.perf_counter() - start
    assert ours.ids == theirs.ids and len(texts) == 14339
    equal = (ours.statistics == theirs.statistics).all(1)
    measured('METEOR: rows of e-SNLI-VE dev with all 23 statistics of the jar', '==', 14339, int(equal.sum()))
    # Scores by the jar itself: EVAL answers each row's, then the corpus's.
    jar, table = meteor._files('')
    rows = [' '.join(str(float(x)) for x in row[:23]) for row in theirs.statistics]
    program = ['-jar', jar, '-', '-', '-stdio', '-l', 'en', '-norm', '-a', table]
    scores = [float(x) for x in _java.run(java, program, ['EVAL ||| ' + ' ||| '.join(rows)], options=['-Xmx2G'])]
    same = sum(a == b for a, b in zip(ours.sentence['meteor'], scores))
    measured("METEOR: rows with the jar's score, to the last bit", '==', 14339, same)
    measured(
        "METEOR: corpus score, difference from the jar's", '<=', 1e-15, abs(ours.scores()['meteor'].value - scores[-1])
    )
    measured("METEOR: the jar's seconds over ours, index warm", '>=', 2, jar_seconds / seconds)


@pytest.mark.acceptance
def test_hard_texts(java, measured):
    """Long texts, which the beam does not search completely, and odd characters: equal to the jar."""
    rng = np.random.default_rng(0)
    words = (
        'the the the a a of of in to man men woman women dog dogs is are was running runs ran quick quickly fast happy '
        'glad child children kid kids big large buy bought purchase a lot of many in front of before , . ... \' " U.S. '
        "isn't can't well-known 1,000 90's Mr. No. 5 é ß ΑΣ İ 😀 “ ” ’ – -- | ( ) an c0 \u00a0 \x0b \x1f 日本 etc. e.g."
    )
    words = np.array(re.split(' ', words))
    lines = [' '.join(rng.choice(words, rng.integers(0, 60))) for _ in range(4000)]
    predictions, references = dict(enumerate(lines[:2000])), {i: [line] for i, line in enumerate(lines[2000:])}
    ours = meteor.table(predictions, references)
    theirs = meteor.table(predictions, references, backend='jar', java=java)
    measured(
        'METEOR: rows of hard texts equal to the jar',
        '==',
        2000,
        int((ours.statistics == theirs.statistics).all(1).sum()),
    )
    assert normalise.line(lines[0]) == lines[0]
