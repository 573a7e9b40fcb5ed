"""METEOR equals the original program in all statistics and scores; what it makes of odd texts. Needs pycocoevalcap.

The first test here waits for the index of paraphrases where no run before made it: about ten seconds, once.
"""

import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import meteor_texts

from evil_jax.metrics import meteor, resources
from evil_jax.metrics._meteor import workers


def one(candidate, *references):
    return meteor.score({'x': candidate}, {'x': list(references)})['meteor'].per_example['x']


def test_golden(golden):
    wanted = golden.values['METEOR']
    table = meteor.table(golden.predictions, golden.references)
    rows = {i: n for n, i in enumerate(golden.ids)}
    order = [rows[i] for i in table.ids]
    assert len(order) == len(wanted['stats']) == len(golden.ids)
    theirs = np.array([[float(x) for x in wanted['stats'][n].split()] for n in order])
    np.testing.assert_array_equal(table.statistics[:, :23], theirs)
    np.testing.assert_array_equal(table.sentence['meteor'], np.array(wanted['sentence'])[order])
    assert table.scores()['meteor'].value == pytest.approx(wanted['corpus'], rel=0, abs=1e-15)


@pytest.mark.parametrize('case', meteor_texts.ODD)
def test_odd_texts(case):
    candidate, references, wanted = meteor_texts.ODD[case]
    assert one(candidate, *references) == wanted


def test_line_breaks_are_blanks_and_the_separator_is_nothing():
    whole = one('a dog runs fast', 'a quick dog runs')
    assert 0 < whole < 1
    assert one('a dog\nruns\r\nfast', 'a quick\rdog runs') == whole
    assert one('a dog ||| runs fast|||', 'a |||quick dog runs') == whole
    assert one('|||', 'a dog') == one('\n', 'a dog') == 0
    assert one('a \ud83d dog', 'a \ufffd dog') == 1  # half of a pair of surrogates


def test_the_best_reference_counts():
    references = ['nothing of it', 'the dogs are running', 'a dog']
    alone = [one('a dog runs', r) for r in references]
    assert one('a dog runs', *references) == one('a dog runs', *references[::-1]) == max(alone)
    predictions = dict.fromkeys('abc', 'a dog runs')
    uneven = {'a': references[:1], 'b': references[:2], 'c': references}
    values = meteor.score(predictions, uneven)['meteor'].per_example
    assert list(values.values()) == [alone[0], max(alone[:2]), max(alone)]


def texts(n):
    """n pairs, all different."""
    nouns, verbs = (
        ['dog', 'children', 'old man', 'women', 'U.S. flag'],
        ['runs', 'is running', 'ran', 'sits', "isn't here"],
    )
    rng = np.random.default_rng(0)
    lines = [
        f'The {rng.choice(nouns)} {rng.choice(verbs)}, {i} of the {rng.choice(nouns)} because {i}.'
        for i in range(2 * n)
    ]
    return dict(enumerate(lines[:n])), {i: [line] for i, line in enumerate(lines[n:])}


def test_any_number_of_processes_gives_the_same():
    predictions, references = texts(40)
    jar, table = meteor._files('')
    pairs = [(predictions[i], references[i][0]) for i in predictions]
    alone = workers.statistics(pairs, jar, table, processes=1)
    assert alone.shape == (40, 23) and len(np.unique(alone, axis=0)) > 10
    np.testing.assert_array_equal(workers.statistics(pairs, jar, table, processes=3), alone)
    with pytest.raises(resources.Unavailable, match=r'(?s)code 1: .*needs paraphrase-en\.gz'):
        with workers._helper() as child:
            workers._send(child, pairs, jar, table + '.no')
            workers._receive(child, len(pairs))


def test_corpus_of_subsets_and_resamples():
    predictions, references = texts(12)
    references[3] = [predictions[3]]  # perfect: its chunk is left out
    table = meteor.table(predictions, references)
    whole = table.scores()['meteor']
    assert table.sentence['meteor'][table.ids.index(3)] == 1 and 0 < whole.value < 1
    rows = np.array([0, 3, 5])
    ids = [table.ids[i] for i in rows]
    direct = meteor.score({i: predictions[i] for i in ids}, {i: references[i] for i in ids})['meteor']
    assert table.take(rows).scores()['meteor'].value == direct.value
    weights = np.random.default_rng(1).multinomial(12, np.full(12, 1 / 12), size=(4, 2))
    corpus = table.corpus(weights @ table.statistics, weights.sum(-1))['meteor']
    assert corpus.shape == (4, 2)
    again = table.take(np.repeat(np.arange(12), weights[2, 1]))
    assert corpus[2, 1] == again.corpus(again.statistics.sum(0), np.float64(12))['meteor']
    assert np.isnan(table.corpus(np.zeros(24), np.float64(0))['meteor'])
    # One perfect row alone: all words in one chunk, no penalty.
    assert table.take(np.array([table.ids.index(3)])).scores()['meteor'].value == 1


def test_no_examples_need_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, 'pycocoevalcap', None)
    found = meteor.score({}, {})['meteor']
    assert found.value is None and found.reason == 'no examples' and found.n == 0


def test_signature():
    found = meteor.score({'x': 'a'}, {'x': ['a', 'b']})['meteor'].signature
    for part in (
        'variant:1.5(en,rank)',
        'nrefs:2',
        'alpha:0.85',
        'stem=0.6',
        'backend:python',
        'stemmer:snowballstemmer-2.',
    ):
        assert part in found
    assert 'data:645ee4e4|' in found  # the files of pycocoevalcap 1.2


def test_errors(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="backend is 'java', wanted one of python, jar"):
        meteor.table({'x': 'a'}, {'x': ['a']}, backend='java')
    with pytest.raises(ValueError, match='no references for 1 id'):
        meteor.table({'x': 'a'}, {})
    with pytest.raises(resources.Unavailable, match='not the folder of pycocoevalcap'):
        meteor.table({'x': 'a'}, {'x': ['a']}, folder=tmp_path)
    (tmp_path / 'meteor').mkdir()
    with pytest.raises(resources.Unavailable, match=r'meteor-1\.5\.jar of pycocoevalcap 1\.2, which is not there'):
        meteor.table({'x': 'a'}, {'x': ['a']}, folder=tmp_path)
    monkeypatch.setattr(resources.importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(resources.Unavailable, match='pip install'):
        meteor.table({'x': 'a'}, {'x': ['a']})


def test_many_rows_are_remembered_within_bounds(monkeypatch):
    monkeypatch.setattr(meteor, '_KEPT', 10)
    predictions, references = texts(8)
    first = meteor.table(predictions, references)
    monkeypatch.setattr(workers, 'statistics', None)  # the same texts need no work
    np.testing.assert_array_equal(meteor.table(predictions, references).statistics, first.statistics)
    monkeypatch.undo()
    monkeypatch.setattr(meteor, '_KEPT', 10)
    more = {i: text + ' again' for i, text in predictions.items()}
    meteor.table(more, references)
    jar, table = meteor._files('')
    assert len(meteor._known(*meteor._stamp(jar), *meteor._stamp(table))) == 8
