"""BLEU-1..4, ROUGE-L and CIDEr equal coco-caption's, corpus and every sentence, to 1e-9 (pycocoevalcap 1.2)."""

import pytest

from evil_jax.metrics import bleu, cider, rouge

NAMES = {
    'bleu1': 'Bleu_1', 'bleu2': 'Bleu_2', 'bleu3': 'Bleu_3', 'bleu4': 'Bleu_4', 'rouge_l': 'ROUGE_L', 'cider': 'CIDEr',
}  # fmt: skip


def test_golden(golden):
    scores = {}
    for metric in (bleu, rouge, cider):
        scores |= metric.score(golden.predictions, golden.references)
    assert set(scores) == set(NAMES)
    for name, theirs in NAMES.items():
        wanted = golden.values[theirs]
        assert scores[name].value == pytest.approx(wanted['corpus'], rel=0, abs=1e-9), name
        assert len(wanted['sentence']) == scores[name].n == len(golden.ids)
        for i, value in zip(golden.ids, wanted['sentence']):
            assert scores[name].per_example[i] == pytest.approx(value, rel=0, abs=1e-9), (name, i)
