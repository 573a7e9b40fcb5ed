import numpy as np
import pytest

from evil_jax.metrics import rouge


def plain(candidate, reference):
    """Longest common subsequence by the table of the textbook."""
    table = np.zeros((len(candidate) + 1, len(reference) + 1), int)
    for i, a in enumerate(candidate):
        for j, b in enumerate(reference):
            table[i + 1, j + 1] = table[i, j] + 1 if a == b else max(table[i, j + 1], table[i + 1, j])
    return table[-1, -1]


def test_equals_the_textbook_table():
    generator = np.random.default_rng(0)
    for _ in range(300):
        candidate, *references = [
            [str(t) for t in generator.integers(0, 6, generator.integers(1, 90))] for _ in range(3)
        ]
        common = [plain(candidate, r) for r in references]
        p = max(c / len(candidate) for c in common)
        r = max(c / len(other) for c, other in zip(common, references))
        wanted = (1 + 1.2**2) * p * r / (r + 1.2**2 * p) if p and r else 0
        assert rouge.rouge_l(' '.join(candidate), [' '.join(x) for x in references]) == pytest.approx(wanted)


def test_precision_and_recall_come_from_different_references():
    # Precision 1 from the long reference, recall 1 from the short one: together a perfect score.
    assert rouge.rouge_l('a b', ['a', 'a x b x x x']) == pytest.approx(1)


def test_single_blanks_and_empty_texts():
    assert rouge.rouge_l('', ['']) == pytest.approx(1)
    assert rouge.rouge_l('', ['a']) == 0
    assert rouge.rouge_l('a  b', ['x  y']) == pytest.approx(1 / 3)  # the empty token between two blanks matches


def test_corpus_is_the_mean():
    scores = rouge.score({'a': 'x', 'b': 'x'}, {'a': ['x'], 'b': ['y']})
    assert scores['rouge_l'].value == 0.5
    assert scores['rouge_l'].per_example == {'a': 1.0, 'b': 0.0}
