"""Classes of words by WordNet, and how far up a rule is told."""

import numpy as np

from evil_jax.counterfactual import classes

SYNSETS = ['', 'bedroom.n.01', 'kitchen.n.01', 'bathroom.n.01', 'dog.n.01', 'canine.n.02', 'bridge.n.01']


def test_hierarchy_tells_sets_apart_and_names_each_by_its_most_specific_class(lexicon):
    hierarchy = classes.Hierarchy(lexicon, SYNSETS, np.array([0, 1, 2, 3, 4, 5, 5]))
    below = {name: sorted(hierarchy.below(name).tolist()) for name in hierarchy.names}
    assert below['room.n.01'] == [1, 2, 3]
    assert below['canine.n.02'] == [4, 5]  # itself is among them
    assert below['dog.n.01'] == [4]
    assert len(set(map(tuple, below.values()))) == len(below)
    # area and structure have the rooms only: there is no bridge in use. carnivore has what canine has.
    assert not {'area.n.05', 'structure.n.01', 'artifact.n.01', 'carnivore.n.01'} & set(below)
    with_bridge = classes.Hierarchy(lexicon, SYNSETS, np.array([1, 2, 3, 6]))
    assert sorted(with_bridge.below('structure.n.01').tolist()) == [1, 2, 3, 6]


def test_totals_and_rows_of_classes(lexicon):
    hierarchy = classes.Hierarchy(lexicon, SYNSETS, np.arange(6))
    row_synsets = np.array([1, 4, 0, 2, 1, 5, 5])
    total = dict(zip(hierarchy.names, hierarchy.total(np.bincount(row_synsets, minlength=len(SYNSETS)))))
    assert (total['room.n.01'], total['canine.n.02'], total['dog.n.01'], total['bathroom.n.01']) == (3, 3, 1, 0)
    chosen = np.array([name in ('room.n.01', 'canine.n.02', 'dog.n.01') for name in hierarchy.names])
    rows, class_of = hierarchy.expand(row_synsets, chosen)
    found = {}
    for row, number in zip(rows.tolist(), class_of.tolist()):
        found.setdefault(hierarchy.names[number], set()).add(row)
    assert found == {'room.n.01': {0, 3, 4}, 'canine.n.02': {1, 5, 6}, 'dog.n.01': {1}}
    assert len(rows) == 7


def test_no_synsets_no_classes(lexicon):
    hierarchy = classes.Hierarchy(lexicon, [''], np.zeros(4, int))
    assert hierarchy.names == []
    assert hierarchy.total(np.zeros(1)).shape == (0,)


# Items: bedroom, kitchen, bathroom, closet, dog, cat. Nodes: room, structure (with dog, say), bedroom, kitchen, dog.
INSIDE = np.array(
    [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0], [1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]], bool
)
IS_CLASS = np.array([True, True, False, False, False])
ROOM, STRUCTURE, BEDROOM, KITCHEN, DOG = range(5)


def climb(k, n, nodes):
    items = classes.Items(np.array(k, float), np.array(n, float), np.ones(len(k)), 0.8)
    return {nodes[i] for i in classes.climb(INSIDE[nodes], IS_CLASS[nodes], items)}


def test_the_most_general_homogeneous_class_is_told_and_nothing_inside():
    n = [40, 40, 30, 3, 20, 300]
    # Rooms alike, dogs not.
    assert climb([39, 40, 28, 3, 4, 30], n, [ROOM, BEDROOM, KITCHEN]) == {ROOM}
    # Dogs as well.
    assert climb([39, 40, 28, 3, 20, 30], n, [ROOM, STRUCTURE, BEDROOM, KITCHEN, DOG]) == {STRUCTURE}
    # Dogs are few, and the whole is above tau in spite of them.
    assert climb([40, 40, 30, 3, 0, 30], [40, 40, 30, 3, 6, 300], [ROOM, STRUCTURE, BEDROOM]) == {ROOM}


def test_a_class_with_a_member_that_contradicts_is_not_told():
    assert climb([60, 60, 6, 3, 4, 30], [60, 60, 20, 3, 20, 300], [ROOM, BEDROOM, KITCHEN]) == {BEDROOM, KITCHEN}


def test_one_word_does_not_make_a_class():
    # Two kitchens, one bathroom and no closet beside a hundred bedrooms.
    assert climb([99, 2, 1, 0, 4, 30], [100, 2, 1, 0, 20, 300], [ROOM, BEDROOM]) == {BEDROOM}


def test_dependence_within_pictures_weakens_what_a_class_adds():
    inside, lower = INSIDE[ROOM], INSIDE[BEDROOM]
    k, n, once = np.array([30, 6, 0, 0, 100, 0.0]), np.array([30, 6, 0, 0, 200, 0.0]), np.ones(6)
    assert not classes.Items(k, n, once, 0.8).adds(inside, lower)  # six kitchens: p = .017
    k[1] = n[1] = 12
    assert classes.Items(k, n, once, 0.8).adds(inside, lower)
    assert not classes.Items(k, n, 4 * once, 0.8).adds(inside, lower)
