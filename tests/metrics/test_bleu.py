import json

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from evil_jax.metrics import bleu


@pytest.mark.parametrize('source', ['synthetic24', 'esnlive200_ref1', 'esnlive200_ref3'])
def test_equals_sacrebleu_where_every_order_matches(shared, source):
    inputs = json.loads((shared / 'data' / 'metrics' / f'inputs_{source}.json').read_text())
    most = max(len(row['refs']) for row in inputs)
    columns = [[row['refs'][k] if k < len(row['refs']) else None for row in inputs] for k in range(most)]
    scores = bleu.score({r['id']: r['cand'] for r in inputs}, {r['id']: r['refs'] for r in inputs})
    for n in range(1, 5):
        theirs = BLEU(max_ngram_order=n, tokenize='none', smooth_method='none', force=True)
        wanted = theirs.corpus_score([row['cand'] for row in inputs], columns).score / 100
        assert scores[f'bleu{n}'].value == pytest.approx(wanted, rel=0, abs=1e-9)


def test_by_hand_with_cocos_constants():
    # 3 of 4 words match, 1 of 3 pairs, no longer n-gram; the reference is one word longer.
    score = bleu.score({'a': 'the dog sat here'}, {'a': ['the dog was here today']})
    brevity = np.exp(1 - 5 / 4)
    assert score['bleu1'].value == pytest.approx(3 / 4 * brevity, abs=1e-8)
    assert score['bleu2'].value == pytest.approx(np.sqrt(3 / 4 / 3) * brevity, abs=1e-8)
    assert score['bleu4'].value == pytest.approx((3 / 4 / 3 * 1e-15 / 2 * 1e-15) ** (1 / 4) * brevity, rel=1e-6)
    assert score['bleu4'].value > 0  # sacrebleu's would be 0


def test_closest_reference_length_and_clipping():
    # Lengths 3 and 5 are equally far from 4: the shorter counts, so no brevity penalty. 'the' is clipped to 2.
    score = bleu.score({'a': 'the the the the'}, {'a': ['the the x', 'a b c d e']})
    assert score['bleu1'].value == pytest.approx(0.5, abs=1e-8)


def test_empty_texts():
    scores = bleu.score({'a': '', 'b': 'x', 'c': ''}, {'a': ['x y'], 'b': [''], 'c': ['']})
    assert [scores['bleu1'].per_example[i] for i in 'abc'] == [0.0, pytest.approx(0.0, abs=1e-12), 0.0]
    assert scores['bleu1'].value == pytest.approx(0.0, abs=1e-12)


def test_blanks_only_separate():
    padded = bleu.score({'a': '  a  b\tc '}, {'a': ['a b c']})
    assert padded['bleu3'].value == pytest.approx(1, abs=1e-8)
    assert bleu.score({'a': 'A b.'}, {'a': ['a b']})['bleu1'].value < 1e-9
