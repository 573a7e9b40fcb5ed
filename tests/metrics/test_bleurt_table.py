"""BLEURT as a metric: pairs, the best reference, the signature. The numbers are in tests/interop/test_bleurt.py."""

import numpy as np
import pytest

from evil_jax.metrics import bleurt


def regress(references, candidates):
    """Words in common less words in all; -1 where one side is empty."""
    pairs = [(set(r.split()), set(c.split())) for r, c in zip(references, candidates)]
    return np.array([len(r & c) - len(r | c) if r and c else -1.5 for r, c in pairs], np.float32)


def test_best_reference_and_mean():
    predictions = {'b': 'a dog runs', 'a': '', 'c': 'x ||| y\nz'}
    references = {'a': ['a cat'], 'b': ['a cat', 'a dog', 'the bird'], 'c': ['x y', 'x ||| y\nz']}
    found = bleurt.score(predictions, references, regress=regress)['bleurt']
    assert found.per_example == {'a': -1.5, 'b': -1.0, 'c': 0.0} and found.n == 3
    assert found.value == pytest.approx(-2.5 / 3, abs=1e-12)
    assert 'metric:bleurt|model:unnamed|nrefs:1-3|refs:max|order:reference-candidate' in found.signature
    backwards = dict(reversed(predictions.items()))
    assert bleurt.score(backwards, references, regress=regress)['bleurt'] == found


def test_table_of_some_rows_is_that_of_the_whole():
    predictions = {str(n): 'a dog' if n % 3 else 'a cat runs' for n in range(20)}
    references = {i: ['a dog', 'the cat'] for i in predictions}
    table = bleurt.table(predictions, references, regress=regress)
    rows = np.arange(0, 20, 2)
    some = {table.ids[i]: predictions[table.ids[i]] for i in rows}
    again = bleurt.score(some, {i: references[i] for i in some}, regress=regress)['bleurt']
    assert table.take(rows).scores()['bleurt'].value == again.value


def test_names_and_calls():
    seen = []

    def spy(references, candidates):
        seen.append((references, candidates))
        return regress(references, candidates)

    spy.name = 'toy(1234)'
    signature = bleurt.score({'a': 'x'}, {'a': ['y', 'z']}, regress=spy)['bleurt'].signature
    assert seen == [(['y', 'z'], ['x', 'x'])] and '|model:toy(1234)|' in signature
    assert '|model:other|' in bleurt.score({'a': 'x'}, {'a': ['y']}, regress=spy, name='other')['bleurt'].signature
    seen.clear()
    nothing = bleurt.score({}, {}, regress=spy)['bleurt']
    assert nothing.value is None and nothing.reason == 'no examples' and not seen


def test_errors():
    with pytest.raises(ValueError, match='no reference at all for 1 id'):
        bleurt.table({'a': 'x'}, {'a': []}, regress=regress)
    with pytest.raises(ValueError, match='no prediction for 1 id'):
        bleurt.table({}, {'a': ['x']}, regress=regress)
    with pytest.raises(ValueError, match=r'scores of shape \(3,\) for 2 pairs'):
        bleurt.table({'a': 'x'}, {'a': ['x', 'y']}, regress=lambda r, c: np.zeros(3))
    with pytest.raises(ValueError, match="NaN or infinite for 1 id: 'b'"):
        bleurt.table({'a': 'x', 'b': 'y'}, {'a': ['x'], 'b': ['z']}, regress=lambda r, c: np.array([1, np.nan]))
