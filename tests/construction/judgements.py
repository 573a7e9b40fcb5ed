"""Pairs and what filters said of them, as `cleaning.clean` yields them, for the tests of what is counted."""

import types

import numpy as np

from evil_jax.construction.pairs import Pair

FILTERS = [
    types.SimpleNamespace(name=name, threshold=threshold, detail=lambda pair, value: f'{pair.id} has {value:g}')
    for name, threshold in (('meaning', 2.0), ('words', 0.5))
]


def pair(number, label='neutral', split='train', **fields):
    given = {'premise': 'A dog.', 'hypothesis': 'A dog runs.', 'explanations': ['It need not run.']} | fields
    return Pair(f'{number}.jpg#0r1n', str(number // 5), label=label, split=split, **given)


def judged(of, meaning=None, words=None, scores=None):
    """None: the filter does not look at this pair."""
    said = {'meaning': meaning, 'words': words}
    values = {name: value for name, value in said.items() if value is not None}
    removing = [each.name for each in FILTERS if values.get(each.name, 0) > each.threshold]
    scores = None if scores is None else np.array(scores, np.float32)
    removed_by = removing[0] if removing else ''
    return types.SimpleNamespace(pair=of, values=values, removing=removing, removed_by=removed_by, scores_C3=scores)
