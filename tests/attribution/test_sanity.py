"""Sanity checks, on methods that pass them and on methods that do not."""

import numpy as np
import pytest

from evil_jax.attribution import sanity

PATHS = (
    'text/word/embedding', 'layers/0/mlp/up/kernel', 'layers/1/mlp/up/kernel', 'layers/10/mlp/up/kernel',
    'pooler/kernel', 'head/up/kernel',
)  # fmt: skip


def parameters(seed):
    r = np.random.default_rng(seed)
    return {path: r.normal(size=8) for path in PATHS}


def test_a_cascade_goes_from_the_head_down_and_ends_with_everything_redrawn():
    trained, fresh = parameters(0), parameters(1)
    steps = dict(sanity.cascade(trained, fresh, sanity.head_down(trained)))
    assert list(steps) == ['head', 'layers/10', 'layers/1', 'layers/0', 'input']
    redrawn = [[path for path in PATHS if step[path] is fresh[path]] for step in steps.values()]
    assert redrawn[0] == ['pooler/kernel', 'head/up/kernel'] and redrawn[1] == [PATHS[3], *redrawn[0]]
    assert [len(paths) for paths in redrawn] == [2, 3, 4, 5, 6]
    assert all(
        step[path] is trained[path] for step in steps.values() for path in PATHS if step[path] is not fresh[path]
    )
    ((name, step),) = sanity.cascade(trained, fresh, sanity.ALL_AT_ONCE)
    assert name == 'all' and step == steps['input']
    assert 'layers/3' in dict(sanity.head_down(['task/layers/3/mlp/up/kernel', 'task/head/answer/kernel']))


def test_maps_that_ignore_the_model_or_a_part_of_it_are_found_out():
    inputs = np.random.default_rng(2).normal(size=(30, 8))
    edges = lambda p: inputs
    first = lambda p: inputs * p['text/word/embedding']
    whole = lambda p: inputs * np.prod(list(p.values()), axis=0)
    trained, fresh = parameters(0), parameters(1)
    groups = sanity.head_down(trained)
    value = lambda maps: {
        name: sanity.summarise(found, resamples=0)['spearman']['value']
        for name, found in sanity.randomise(maps, trained, fresh, groups)
    }
    assert value(edges) == pytest.approx(dict.fromkeys(('head', 'layers/10', 'layers/1', 'layers/0', 'input'), 1))
    found = value(first)
    assert found['layers/0'] == pytest.approx(1) and found['input'] < 0.7
    assert all(v < 0.7 for v in value(whole).values())


def test_similarity_by_hand():
    a = [[4, 3, 2, 1, 0], [1, 2, 3, 4, 9], [1, 1, 1, 1, 9], [-4, 3, 2, 1, 0]]
    b = [[0, 1, 2, 3, 4], [1, 2, 3, 4, -9], [1, 2, 3, 4, -9], [4, 3, 2, 1, 0]]
    valid = [[True] * 5, [True] * 4 + [False], [True] * 4 + [False], [True] * 5]
    found = sanity.similarity(a, b, valid, top=0.5)
    np.testing.assert_allclose(found['spearman'], [-1, 1, np.nan, 0], atol=1e-12)
    np.testing.assert_allclose(found['absolute'], [-1, 1, np.nan, 1])
    np.testing.assert_allclose(found['overlap'], [0, 1, np.nan, 0.5])
    rows = sanity.summarise(found, resamples=20)
    assert rows['spearman']['value'] == pytest.approx(0) and rows['spearman']['n'] == 3
    assert rows['absolute']['ci95'][0] < rows['absolute']['value'] < rows['absolute']['ci95'][1]
    chance = sanity.similarity(*np.random.default_rng(0).normal(size=(2, 500, 40)), top=0.25)
    assert chance['overlap'].mean() == pytest.approx(0.25, abs=0.02)
    assert chance['spearman'].mean() == pytest.approx(0, abs=0.03)


def test_a_map_of_the_class_is_told_from_one_that_is_not():
    r = np.random.default_rng(0)
    logits, maps = r.normal(size=(50, 4)), r.normal(size=(50, 4, 20))
    targets = sanity.extremes(logits)
    assert (logits[np.arange(50), targets[:, 0]] == logits.max(1)).all()
    assert (logits[np.arange(50), targets[:, 1]] == logits.min(1)).all()
    of = lambda k: maps[np.arange(50), targets[:, k]]
    low, high = sanity.summarise(sanity.similarity(of(0), of(1)))['spearman']['ci95']
    assert low < 0 < high
    blind = sanity.summarise(sanity.similarity(of(0), of(0)))
    assert blind['spearman']['value'] == pytest.approx(1) and blind['overlap']['ci95'] == [1, 1]


def test_what_does_not_fit_is_told():
    trained, fresh = parameters(0), parameters(1)
    with pytest.raises(ValueError, match='trained or the fresh model only: head/up/kernel'):
        list(sanity.cascade(trained, {p: x for p, x in fresh.items() if p != 'head/up/kernel'}, sanity.ALL_AT_ONCE))
    with pytest.raises(ValueError, match=r'pooler/kernel has shape \(8,\), the fresh one \(3,\)'):
        list(sanity.cascade(trained, fresh | {'pooler/kernel': np.zeros(3)}, sanity.ALL_AT_ONCE))
    with pytest.raises(ValueError, match='no group of the cascade takes text/word/embedding'):
        list(sanity.cascade(trained, fresh, (('layers', 'layers/'), ('head', 'head|pooler'))))
    with pytest.raises(ValueError, match=r'maps have shapes \(2, 3\) and \(2, 4\)'):
        sanity.similarity(np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(ValueError, match='top 0: wanted a share'):
        sanity.similarity(np.zeros((2, 3)), np.zeros((2, 3)), top=0)
