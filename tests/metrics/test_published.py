import json

import pytest

from evil_jax.human import study
from evil_jax.metrics import protocol, published

EVERY = [row for name in published.DATA_SETS for row in published.read(name)]
# Ends of each score's range on our scale; a percentage that was forgotten falls outside.
RANGES = {'cider': (0.1, 1.4), 'bertscore': (0.75, 0.92), 'meteor': (0.1, 0.3), 'spice': (0.04, 0.4)}
METRICS = {'bleu1', 'bleu2', 'bleu3', 'bleu4', 'meteor', 'rouge_l', 'cider', 'spice', 'bertscore', 'accuracy', 's_t',
           's_e_human', 's_o_human'}  # fmt: skip


def one(system, data_set, set='correct', **wanted):
    (row,) = [
        r for r in published.read(data_set)
        if (r.system, r.set) == (system, set) and all(m in r.metrics for m in wanted) and r.protocol != 'unknown'
    ]  # fmt: skip
    assert {m: row.metrics[m] for m in wanted} == pytest.approx(wanted)
    return row


def test_every_row_has_a_source_a_protocol_and_numbers_in_range():
    document = json.loads(published.PATH.read_text(encoding='utf-8'))
    assert len(EVERY) == len(document['rows'])
    for row in EVERY:
        assert row.system and row.source and row.protocol in published.protocols()
        assert row.set in ('correct', 'all', 'unknown')
        assert row.protocol in (*protocol.PROTOCOLS, 'ofax', 'unknown')
        assert row.metrics.keys() <= METRICS and set(row.unverified) <= row.metrics.keys()
        for name, value in row.metrics.items():
            low, high = RANGES.get(name, (0.02, 0.95))
            assert low <= value <= high, (row.system, row.data_set, name, value)


def test_bleu_falls_with_its_order_in_every_row():
    """A slip between two columns would show."""
    rows = [[r.metrics[f'bleu{n}'] for n in (1, 2, 3, 4)] for r in EVERY if 'bleu2' in r.metrics]
    assert len(rows) == 21 and all(row == sorted(row, reverse=True) for row in rows)


def test_s_o_is_the_product_in_table_3():
    rows = [row.metrics for row in EVERY if 's_o_human' in row.metrics]
    assert len(rows) == 12
    for row in rows:
        # Both factors are rounded to 0.001, and so is the product.
        assert row['s_o_human'] == pytest.approx(row['s_t'] * row['s_e_human'], abs=0.0005 * (1 + 0.85 + 0.85))


def test_numbers_that_readers_will_look_for():
    assert one('e-UG', 'vqax', cider=0.741, bleu4=0.232).protocol == 'evil'
    assert one('NLX-GPT', 'vqax', cider=1.106, bleu4=0.285, rouge_l=0.515).protocol == 'nlxgpt'
    assert one('NLX-GPT', 'vqax', accuracy=0.8307).protocol == 'nlxgpt_any', 'by another rule than the scores'
    assert one('NLX-GPT', 'vqax', set='all', cider=0.972, bleu4=0.256, rouge_l=0.487).verified
    assert one('RAPPER', 'esnlive', cider=1.286).protocol == 'nlxgpt'
    assert one('OFA-X_MT', 'vcr', set='unknown', s_e_human=0.773).protocol == 'ofax'
    source = one('e-UG', 'esnlive', s_e_human=0.689).source
    assert source == 'Kayser et al., ICCV 2021, arXiv 2105.03761, Table 3'
    (old,) = [row for row in published.read('vqax') if row.system == 'CAPS']
    assert old.source == 'several, where they were read is not recorded'


def test_what_was_not_read_is_marked():
    assert not any(r.verified for r in published.read('vcr') if 'Table 11' in r.source)
    assert one('e-UG', 'vqax', cider=0.741).unverified == ('bertscore',)
    assert 'bleu1' not in one('NLX-GPT', 'vcr', bleu1=0.247).unverified
    assert 'cider' in one('NLX-GPT', 'vcr', bleu1=0.247).unverified


def test_a_data_set_without_published_numbers_has_none():
    assert published.read('shapes_vqa') == []


def test_correlations_are_those_of_table_6():
    rows = published.correlations()
    assert len(rows) == 40 and len(published.correlations('vqax')) == 10
    found = {(r.metric, r.data_set): r for r in rows}
    assert found['meteor', 'vqax'].rho == 0.438 and found['bleurt', 'esnlive'].rho == 0.208
    assert [m for (m, d), r in found.items() if not r.significant and d == 'vcr'] == [
        'bleu1', 'bleu2', 'bleu3', 'bleu4', 'rouge_l', 'cider',
    ]  # fmt: skip
    assert max(rows, key=lambda r: r.rho).metric == 'meteor' and all('Table 6' in r.source for r in rows)


def test_shares_are_those_of_tables_2_and_5():
    gold = {row.data_set: row.shares for row in published.ratings()}
    assert gold.keys() == set(published.DATA_SETS) and gold['vqax']['yes'] == 0.663
    for name, shares in gold.items():
        assert tuple(shares) == study.RATINGS and sum(shares.values()) == pytest.approx(1, abs=0.0011)
        # Table 3 rates the same explanations.
        mean = sum(share * worth / 3 for worth, share in enumerate(shares.values()))
        (row,) = [r for r in published.read(name) if (r.system, r.protocol) == ('ground truth', 'evil')]
        assert mean == pytest.approx(row.metrics['s_e_human'], abs=0.004)
    found = {row.system: row.shares for row in published.shortcomings()}
    assert len(found) == 4 and found['e-UG']['insufficient_justification'] == 0.25
    assert all(tuple(shares) == study.SHORTCOMINGS for shares in found.values())
