import pytest
from rouge_score import rouge_scorer

from evil_jax.metrics.rouge_n import rouge_1


@pytest.fixture(scope='module')
def scorer():
    return rouge_scorer.RougeScorer(['rouge1'], use_stemmer=False)


def test_equals_rouge_score_on_all_real_pairs(shared, scorer):
    largest = n = 0
    for split in ('dev', 'test'):
        texts = [
            (shared / 'data' / 'snli' / f'esnli_s{i}.{split}').read_text(encoding='utf-8').splitlines() for i in (1, 2)
        ]
        for premise, hypothesis in zip(*texts, strict=True):
            wanted = scorer.score(premise, hypothesis)['rouge1'].fmeasure
            largest, n = max(largest, abs(rouge_1(premise, hypothesis) - wanted)), n + 1
    assert n == 9_842 + 9_824
    assert largest <= 1e-9


@pytest.mark.parametrize(
    ('text', 'other', 'wanted'),
    [
        ('', '', 0),
        ('...', '...', 0),  # no words
        ('a a a b', 'a a c', 4 / 7),  # as often as both have it
        ("It's GREEN_1", 'it s green 1!', 1),
        ('caf\u00e9 \u0130x', 'caf ix', 2 / 5),  # other letters part words, and a capital i with a dot becomes two
    ],
)
def test_words(scorer, text, other, wanted):
    assert rouge_1(text, other) == pytest.approx(wanted)
    assert rouge_1(text, other) == pytest.approx(scorer.score(text, other)['rouge1'].fmeasure)
