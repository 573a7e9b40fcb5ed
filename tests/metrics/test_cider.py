import json
import math
import warnings
from collections import Counter

import numpy as np
import pytest

from evil_jax.metrics import cider
from evil_jax.metrics.cider import DocumentFrequency


def plain(predictions, references, df=None):
    """The definition, written out with dictionaries."""

    def counts(text):
        tokens = text.split()
        return Counter(tuple(tokens[i : i + n]) for n in range(1, 5) for i in range(len(tokens) - n + 1))

    if df is None:
        df = Counter(g for texts in references.values() for g in set().union(*[counts(t) for t in texts]))
        documents = len(references)
    else:
        documents, df = df.documents, {tuple(g.split()): c for g, c in df.counts.items()}

    def vector(text, n):
        idf = lambda g: math.log(documents) - math.log(max(1, df.get(g, 0)))
        return {g: c * idf(g) for g, c in counts(text).items() if len(g) == n}

    values = {}
    for i, text in predictions.items():
        total = 0
        for reference in references[i]:
            delta = max(len(text.split()) - 1, 0) - max(len(reference.split()) - 1, 0)
            for n in range(1, 5):
                h, r = vector(text, n), vector(reference, n)
                norm = math.hypot(*h.values()) * math.hypot(*r.values())
                dot = sum(min(h[g], r[g]) * r[g] for g in h if g in r)
                total += (dot / norm if norm else 0) * math.exp(-(delta**2) / 72) / 4
        values[i] = 10 * total / len(references[i])
    return values


def texts(n, seed):
    words = ['the', 'dog', 'cat', 'runs', 'sits', 'on', 'mat', 'beach', 'because', 'it']
    generator = np.random.default_rng(seed)
    line = lambda: ' '.join(generator.choice(words, generator.integers(0, 12)))
    predictions = {f'q{i}': line() for i in range(n)}
    return predictions, {i: [line() for _ in range(generator.integers(1, 4))] for i in predictions}


@pytest.mark.parametrize('n', [2, 5, 40])
def test_equals_the_definition(n):
    predictions, references = texts(n, seed=n)
    score = cider.score(predictions, references)['cider']
    assert score.per_example == pytest.approx(plain(predictions, references), abs=1e-12)
    assert score.value == pytest.approx(np.mean(list(score.per_example.values())))
    assert score.value > 0.1


def test_one_example_is_zero_and_warns():
    with pytest.warns(UserWarning, match='single example'):
        score = cider.score({'a': 'the dog'}, {'a': ['the dog']})['cider']
    assert score.value == 0


def test_stored_document_frequency(tmp_path):
    predictions, references = texts(30, seed=0)
    df = cider.document_frequency(references)
    df.save(tmp_path / 'df.json')
    df = DocumentFrequency.load(tmp_path / 'df.json')
    whole = cider.score(predictions, references)['cider']
    given = cider.score(predictions, references, df)['cider']
    assert given.per_example == pytest.approx(whole.per_example, abs=1e-12)
    assert 'df:references(30)' in whole.signature
    assert f'df:given(30,{df.digest()})' in given.signature
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        alone = cider.score({'q3': predictions['q3']}, {'q3': references['q3']}, df)['cider']
    assert alone.value == pytest.approx(whole.per_example['q3'], abs=1e-12)
    other, other_references = texts(9, seed=5)
    score = cider.score(other, other_references, df)['cider']
    assert score.per_example == pytest.approx(plain(other, other_references, df), abs=1e-12)


def test_bad_document_frequency(tmp_path):
    with pytest.raises(ValueError, match='3 examples have an n-gram, but there are 2'):
        DocumentFrequency(2, {'the': 3})
    path = tmp_path / 'df.json'
    path.write_text(json.dumps({'counts': {}}))
    with pytest.raises(ValueError, match=r'df\.json: wanted'):
        DocumentFrequency.load(path)


def test_empty_texts():
    scores = cider.score({'a': '', 'b': 'x y', 'c': 'z'}, {'a': [''], 'b': ['', 'x y'], 'c': ['z']})['cider']
    assert scores.per_example['a'] == 0
    assert scores.per_example['b'] == pytest.approx(10 * (2 / 4) / 2)  # one of two references, two of four orders
