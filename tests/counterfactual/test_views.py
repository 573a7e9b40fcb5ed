"""What the report draws of tables of judged edits."""

import json

import numpy as np
import pytest

from evil_jax.counterfactual import judged, rates, views


def row(n, family, source, target, kept, **more):
    transition = 'kept right' if kept else 'right->wrong'
    return dict(
        family=family, example=f'q{n}', image=f'image{n % 50}', source=source, target=target, kept=kept, right=1.0,
        answer='yes', answer_star='yes' if kept else 'no', transition=transition,
    ) | more  # fmt: skip


def colour(n, source, target, kept, distance, family='colour_max_common'):
    return row(n, family, source, target, kept, distance=distance)


def table(rows):
    return judged.of_rows(rows)


def test_a_rate_has_wider_intervals_where_rows_of_an_image_agree():
    hits = np.array([True, False] * 20)
    single, double = rates.of(hits, np.arange(40)), rates.of(np.repeat([True, False], 20), np.arange(40) // 4)
    assert single['value'] == double['value'] == 0.5 and (single['k'], single['n'], single['images']) == (20, 40, 40)
    width = lambda r: r['ci95'][1] - r['ci95'][0]
    assert width(double) > 1.5 * width(single)
    none, all_ = rates.by_group([True, True], [1, 1], [0, 1], 2)
    assert none == {'k': 0, 'n': 0, 'images': 0, 'value': None, 'ci95': None}
    assert all_['value'] == 1 and all_['ci95'][0] < 1 == all_['ci95'][1]


def test_colours_are_paired_and_ordered_by_hue():
    rows = [colour(i, 'grey', 'black', i < 9, 50.0) for i in range(10)]
    rows += [colour(i, 'red', 'deep sky blue', False, 70.0) for i in range(4)]
    rows += [colour(i, 'red', 'grey', True, 60.0) for i in range(2)]
    rows += [row(i, 'sibling', 'dog', 'cat', True) for i in range(3)]
    found = views.colour_map(table(rows), support=3)
    assert list(found['colours']) == ['black', 'grey', 'red', 'deep sky blue']
    assert found['colours']['deep sky blue'] == '#00bfff' and found['support'] == 3
    cells = {(c['source'], c['target']): (c['k'], c['n'], c['distance']) for c in found['cells']}
    assert cells == {('grey', 'black'): (1, 10, 50), ('red', 'deep sky blue'): (4, 4, 70), ('red', 'grey'): (0, 2, 60)}
    assert {(r['source'], r['k'], r['n']) for r in found['rows']} == {('grey', 1, 10), ('red', 4, 6)}
    json.dumps(found, allow_nan=False)
    assert views.colour_map(table(rows[-3:])) is None
    # A class of the user's own may hold words that are no colours of the table.
    assert views.colour_map(table([colour(0, 'greenish', 'red', True, 1.0)]))['cells'] == []


def test_changes_against_distance():
    rows = [colour(i, 'red', 'blue', i % 10 >= d // 10, float(d)) for d in range(10, 90, 10) for i in range(50)]
    found = views.by_distance(table(rows), resamples=200)
    assert [b['x'] for b in found['bins']] == [10, 20, 30, 40, 50, 60, 70, 80] and found['falls'] == 'never'
    assert [b['value'] for b in found['bins']] == pytest.approx([d / 100 for d in range(10, 90, 10)])
    assert found['far_minus_near']['value'] == pytest.approx(0.7)
    low, high = found['far_minus_near']['ci95']
    assert 0.5 < low < 0.7 < high < 0.9
    falls = [colour(i, 'red', 'blue', d > 20, float(d)) for d in (10, 20, 30) for i in range(20)]
    assert views.by_distance(table(falls))['falls'] == 'clearly'
    noise = [colour(i, 'red', 'blue', i % 5 < kept, d) for d, kept in ((10.0, 2), (20.0, 3)) for i in range(20)]
    assert views.by_distance(table(noise))['falls'] == 'within'
    same = [dict(one, image='i') for one in noise]
    assert [views.by_distance(table(rows), resamples=n)['far_minus_near']['ci95'] for rows, n in (
        (noise, 0), (same, 10))] == [None, None]  # fmt: skip
    assert views.by_distance(table(rows[:50])) is None, 'one distance is no curve'
    assert views.by_distance(table([row(0, 'sibling', 'dog', 'cat', True)])) is None


def test_nouns_count_for_all_that_they_are_a_kind_of(lexicon):
    nouns = [('dog.n.01', 30, 3), ('cat.n.01', 30, 6), ('horse.n.01', 25, 0), ('bus.n.01', 40, 40)]
    rows = [
        row(i, 'sibling', synset.split('.')[0], 'x', i >= changed, source_synset=synset)
        for synset, n, changed in nouns
        for i in range(n)
    ]
    rows += [row(i, 'hypernym', 'dog', 'x', True, source_synset='dog.n.01') for i in range(9)]
    rows += [row(0, 'sibling', 'thing', 'x', True)]
    found = {r['synset']: r for r in views.tree(table(rows), lexicon, 'sibling')}
    counts = {synset: (r['k'], r['n'], r['parent']) for synset, r in found.items()}
    # First hypernyms alone, and of a chain of equal counts the lowest: the carnivores are dogs and cats.
    assert counts['dog.n.01'] == (3, 30, 'carnivore.n.01') and counts['carnivore.n.01'] == (9, 60, 'placental.n.01')
    assert counts['placental.n.01'] == (9, 85, 'whole.n.02') and counts['bus.n.01'] == (40, 40, 'whole.n.02')
    assert counts['whole.n.02'] == (49, 125, '') and len(found) == 7
    assert found['placental.n.01']['name'] == 'placental'
    assert views.trees(table(rows), lexicon).keys() == {'sibling'}


def test_answers_that_become_others():
    said = [('yes', 'yes')] * 5 + [('yes', 'no')] * 3 + [('no', 'no')] * 2 + [('red', 'blue'), ('7', '7')]
    rows = [row(i, 'delete', 'a', '', a == b, answer=a, answer_star=b) for i, (a, b) in enumerate(said)]
    found = views.transitions(table(rows), most=2)
    assert found['answers'] == ['yes', 'no'] and found['counts'] == [[5, 3, 0], [0, 2, 0], [0, 0, 2]]
    assert [r['k'] for r in found['changed']] == [3, 0, 1]
    assert views.transitions(table([])) is None


def test_a_sample_has_all_families_and_changes_and_what_was_asked_for():
    rows = [row(i, 'sibling', 'a', 'b', True) for i in range(500)]
    rows += [row(i, 'delete', 'a', '', i > 2) for i in range(6)]
    rows += [row(7, 'sibling', 'a', 'b', False, serial=1)]
    found = judged.of_rows(rows)
    chosen = views.sample(found, 12, seed=3, first=['q499#sibling', 'nobody#sibling', 'q7#sibling.1'])
    ids = [found.id(r) for r in chosen]
    assert ids[:2] == ['q499#sibling', 'q7#sibling.1'] and len(ids) == len(set(ids)) == 12
    assert {f'q{i}#delete' for i in range(3)} <= set(ids), 'rare ones come first'
    assert chosen == views.sample(found, 12, seed=3, first=['q499#sibling', 'nobody#sibling', 'q7#sibling.1'])
    assert sorted(views.sample(found, 10_000)) == list(range(len(rows)))
    assert views.sample(judged.of_rows([]), 5) == []
