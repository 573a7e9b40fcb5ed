"""BLEU-1..4, ROUGE-L and CIDEr equal coco-caption's, corpus and every sentence, to 1e-9 (pycocoevalcap 1.2)."""

import json

import pytest

from evil_jax.metrics import bleu, cider, rouge

NAMES = {
    'bleu1': 'Bleu_1', 'bleu2': 'Bleu_2', 'bleu3': 'Bleu_3', 'bleu4': 'Bleu_4', 'rouge_l': 'ROUGE_L', 'cider': 'CIDEr',
}  # fmt: skip


@pytest.mark.parametrize('variant', ['raw', 'ptb'])
@pytest.mark.parametrize('source', ['synthetic24', 'esnlive200_ref1', 'esnlive200_ref3'])
def test_golden(shared, source, variant):
    folder = shared / 'data' / 'metrics'
    golden = json.loads((folder / f'coco_{source}.json').read_text())
    inputs = json.loads((folder / f'inputs_{source}.json').read_text())
    if variant == 'raw':
        predictions = {row['id']: row['cand'] for row in inputs}
        references = {row['id']: row['refs'] for row in inputs}
    else:
        predictions = {i: tokens[0] for i, tokens in golden['ptb_tokens']['cand'].items()}
        references = golden['ptb_tokens']['refs']
    scores = {}
    for metric in (bleu, rouge, cider):
        scores |= metric.score(predictions, references)
    assert set(scores) == set(NAMES)
    for name, theirs in NAMES.items():
        wanted = golden[variant][theirs]
        assert scores[name].value == pytest.approx(wanted['corpus'], rel=0, abs=1e-9), name
        assert len(wanted['sentence']) == scores[name].n == len(inputs)
        for row, value in zip(inputs, wanted['sentence']):
            assert scores[name].per_example[row['id']] == pytest.approx(value, rel=0, abs=1e-9), (name, row['id'])
