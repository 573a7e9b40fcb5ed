"""Relevance of examples with choices, whose texts have lengths of their own, as the modes take it apart."""

import numpy as np

from evil_jax.attribution.base import Relevance
from evil_jax.modes import _explainer, _protocols


def test_each_target_has_its_own_length():
    values_BKS = np.arange(1.0, 21).reshape(2, 2, 5)
    start_BK, text_BK, region_BK = np.zeros((2, 2), int), np.array([[3, 1], [2, 3]]), np.array([[2, 2], [1, 1]])
    found = Relevance(values_BKS, {'text': (start_BK, text_BK), 'regions': (start_BK + 3, region_BK)})
    assert {n: v.tolist() for n, v in _explainer.spans(found, 0, 1).items()} == {'text': [6], 'regions': [9, 10]}
    assert {n: v.tolist() for n, v in _explainer.spans(found, 1, 1).items()} == {'text': [16, 17, 18], 'regions': [19]}
    assert _protocols.items(found, 'text', 4).tolist() == [[1, 2, 3, 0], [11, 12, 0, 0]]
    shared = Relevance(values_BKS, {'text': (start_BK[:, 0], text_BK[:, 0])})
    assert _explainer.spans(shared, 0, 1)['text'].tolist() == [6, 7, 8]
    assert _protocols.items(shared, 'text', 2).tolist() == [[1, 2], [11, 12]]
