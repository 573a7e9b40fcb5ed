import pytest
from sacrebleu.metrics import CHRF

from evil_jax.metrics import chrf

PREDICTIONS = {'a': 'the dog runs', 'b': 'it is red.', 'c': '', 'd': 'nothing', 'e': 'x'}
REFERENCES = {
    'a': ['a dog is running', 'the dog ran', 'dogs'], 'b': ['it is red', '', 'It is a red one'], 'c': ['a', 'b', 'c'],
    'd': ['', '', ''], 'e': ['xyz', 'x', 'x'],
}  # fmt: skip


def test_equals_sacrebleu():
    scores = chrf.score(PREDICTIONS, REFERENCES)['chrf']
    columns = [[REFERENCES[i][k] for i in PREDICTIONS] for k in range(3)]
    wanted = CHRF().corpus_score(list(PREDICTIONS.values()), columns).score / 100
    assert 0.2 < scores.value < 0.9
    assert scores.value == pytest.approx(wanted, rel=0, abs=1e-12)
    for i, text in PREDICTIONS.items():
        wanted = CHRF().sentence_score(text, REFERENCES[i]).score / 100
        assert scores.per_example[i] == pytest.approx(wanted, rel=0, abs=1e-12)


def test_empty_texts_are_zero():
    scores = chrf.score(PREDICTIONS, REFERENCES)['chrf'].per_example
    assert scores['c'] == scores['d'] == 0
    assert chrf.score({'a': ''}, {'a': ['']})['chrf'].value == 0
