"""The table of labels: it comes back from its files, and what counts in it."""

import dataclasses

import pytest

from evil_jax.human import labels
from evil_jax.human.labels import Label

CODES = {'e': 'entailment', 'n': 'neutral', 'c': 'contradiction', '': ''}


def _rows(said: dict[str, str], **values):
    """{item: one letter for each rater, in their order}."""
    return [
        Label(item, f'r{i}', CODES[letter], given='neutral', assignment=f'a{i}', **values)
        for item, letters in said.items()
        for i, letter in enumerate(letters)
    ]


@pytest.mark.parametrize('name', ['labels.csv', 'labels.jsonl'])
def test_rows_come_back_from_both_files(tmp_path, name):
    rows = [
        Label('1.jpg#0r1n', 'r1', 'entailment', ('=dogs,', "'run"), '=1+1\n"x"', 'neutral', '@x', '1', 'd', 1.5, 'a1'),
        Label('k', 'r1', '', reason=labels.CHECK, trusted=True, status='rejected', explanation="'=x", source='s'),
    ]
    labels.write(tmp_path / 'labels.csv', tmp_path / 'labels.jsonl', rows)
    assert labels.read(tmp_path / name) == rows
    assert "'=1+1" in (tmp_path / 'labels.csv').read_text()  # no formula for spreadsheets


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('item,', 'thing,', ":2: no column 'item'"),
        ('entailment', 'yes', ":2: label is 'yes', wanted one of entailment, neutral, contradiction"),
        ('submitted', 'x', ":2: status is 'x'"),
        ('1.5', 'soon', ":2: seconds is 'soon', wanted a number"),
    ],
)
def test_a_broken_table_is_named(tmp_path, old, new, message):
    labels.write(tmp_path / 'a.csv', tmp_path / 'a.jsonl', [Label('i', 'r', 'entailment', seconds=1.5)])
    (tmp_path / 'a.csv').write_text((tmp_path / 'a.csv').read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        labels.read(tmp_path / 'a.csv')
    lines = (tmp_path / 'a.jsonl').read_text()
    for name, other in (('"explanation": ""', '"explanation": 5'), ('"words": []', '"words": [5]')):
        (tmp_path / 'a.jsonl').write_text(lines.replace(name, other))
        with pytest.raises(ValueError, match=r'a\.jsonl:1: (explanation|words) is 5, wanted text'):
            labels.read(tmp_path / 'a.jsonl')


def test_what_counts():
    rows = _rows({'x': 'een', 'y': 'nc'})
    rows += [Label('k', f'r{i}', 'neutral', given=g, assignment=f'a{i}', trusted=True, reason=r)
             for i, (g, r) in enumerate((('neutral', labels.KNOWN), ('entailment', labels.CHECK)))]  # fmt: skip
    rows += [Label('x', 'r0', 'neutral', given='neutral', assignment='later')]
    rows += [Label('y', 'r3', ''), Label('y', 'r4', 'neutral', status='rejected')]
    reasons = [row.reason for row in labels.mark(rows)]
    failed = 'failed check'
    assert reasons == ['', failed, '', '', failed, 'trusted item', failed, 'labelled before', 'no label', 'rejected']
    kept = [row.reason for row in labels.mark(rows, trusted_failures='keep')]
    assert kept == ['', '', '', '', '', 'trusted item', failed, 'labelled before', 'no label', 'rejected']
    again = [dataclasses.replace(row, reason=reason) for row, reason in zip(rows, reasons, strict=True)]
    assert [row.reason for row in labels.mark(again)] == reasons
    with pytest.raises(ValueError, match='wanted one of exclude, keep'):
        labels.mark(rows, trusted_failures='x')


def test_summary():
    found = labels.summary(labels.mark(_rows({'x': 'eee', 'y': 'nnc', 'z': 'enc', 'one': 'e', 'two': 'en', 'no': ''})))
    assert found['table'] == {'neutral': {'entailment': 1, 'neutral': 1, '': 3}}  # of 'no' there is no row
    assert (found['items'], found['changed'], found['no_majority']) == (5, 1, 3)
    by_rater = {row['rater']: row for row in found['raters']}
    assert by_rater['r2']['with_majority'] == 0.5 and by_rater['r0']['labels'] == 5
    # Fleiss' kappa by hand: items with two labels or more agree by 1, 1/3, 0, 0; shares are means over all five.
    shares = [(1 + 1 / 3 + 1 + 1 / 2) / 5, (2 / 3 + 1 / 3 + 1 / 2) / 5, 2 / 3 / 5]
    chance = sum(share**2 for share in shares)
    assert found['agreement'][0]['value'] == pytest.approx((1 / 3 - chance) / (1 - chance))
