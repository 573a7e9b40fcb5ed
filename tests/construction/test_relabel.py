"""What people said becomes the labels of pairs: majorities, ties, whose explanations are kept, what was changed."""

import json

import pytest

from evil_jax.construction import relabel
from evil_jax.construction.pairs import Pair

HEAD = 'item,rater,label,words,explanation,given,reason,trusted\n'


def _pair(name, label='neutral', split='dev', **values):
    return Pair(name, '1', 'p', 'h', label, split, ['old'], (['a'], ['b']), **values)


def _read(tmp_path, rows, name='labels.csv'):
    (tmp_path / name).write_text(HEAD + ''.join(f'{row}\n' for row in rows))
    return relabel.read(tmp_path / name)


def _row(item, rater, label, text='', reason='', trusted='no'):
    return f'{item},{rater},{label},w,{text},neutral,{reason},{trusted}'


def test_majorities_ties_and_explanations(tmp_path):
    rows = [
        _row('changed', 'a', 'entailment', 'short'),
        _row('changed', 'b', 'neutral', 'other'),
        _row('changed', 'c', 'entailment', "'=the wet dogs"),
        _row('same', 'a', 'neutral', 'mine'),
        _row('same', 'b', 'neutral', 'mine'),
        _row('bare', 'a', 'neutral'),
        _row('bare', 'b', 'neutral'),
        _row('tie', 'a', 'entailment', 'x'),
        _row('tie', 'b', 'neutral', 'x'),
        _row('tie', 'c', 'contradiction', 'x'),
        _row('one', 'a', 'entailment', 'x'),
        _row('one', 'b', 'entailment', 'x', 'rejected'),
        _row('nobody', 'a', '', '', ''),
        _row('k', 'a', 'entailment', '', 'failed check', 'yes'),
        _row('gone', 'a', 'neutral', 'x'),
    ]
    labels = _read(tmp_path, rows)
    assert 'k' not in labels.votes and labels.left_out == {'rejected': 1, 'no label': 1, 'failed check': 1}
    dropped = []
    names = ('changed', 'same', 'bare', 'tie', 'one', 'nobody', 'k', 'not asked')
    attributes = {'changed': ((frozenset({'dog'}),),)}
    work = relabel.Relabelling(labels, attributes)
    found = {pair.id: pair for pair in work.merge(map(_pair, names), lambda *what: dropped.append(what))}
    assert set(found) == {'changed', 'same', 'bare', 'k', 'not asked'}
    changed, same, bare = found['changed'], found['same'], found['bare']
    assert (changed.label, changed.original, changed.explanations) == (
        'entailment',
        'neutral',
        ['=the wet dogs', 'short'],
    )
    assert changed.marked == ((), ())
    assert (same.label, same.original, same.explanations) == ('neutral', '', ['mine'])
    (back,) = relabel.Relabelling(labels).merge([_pair('changed', original='entailment')], print)
    assert (back.label, back.original) == ('entailment', '')
    assert bare == _pair('bare') and found['not asked'] == _pair('not asked') and found['k'] == _pair('k')
    assert [(pair.id, reason) for pair, reason, _ in dropped] == [
        ('tie', 'no_majority'), ('one', 'no_majority'), ('nobody', 'no_majority'),
    ]  # fmt: skip
    assert dropped[0][2].endswith('1 contradiction, 1 entailment, 1 neutral') and dropped[2][2].endswith(': none')
    summary = work.summary()
    assert (summary['pairs'], summary['changed'], summary['no_majority'], summary['unanimous']) == (6, 1, 3, 2)
    assert summary['share'][0] == pytest.approx(1 / 3) and summary['changed_to'] == {'entailment': 1}
    assert summary['by_class'] == {'neutral': {'pairs': 6, 'no_majority': 3, 'changed': 1, 'share': 1 / 3}}
    assert summary['raters'][0] == {'rater': 'a', 'labels': 5, 'changed': 3 / 5, 'with_majority': 1.0}
    assert summary['raters'][1]['with_majority'] == pytest.approx(2 / 3)
    assert summary['not_met'] == ['gone'] and summary['relevance']['mean'][0] == 0.5
    json.dumps(summary)


def test_who_is_asked_and_who_is_known():
    pairs = [_pair('a'), _pair('b', split='train'), _pair('c', 'entailment'), _pair('d', split='test')]
    assert [pair.id for pair in relabel.select(pairs)] == ['a', 'd']
    known = list(relabel.known(pairs, {'b': 'contradiction', 'c': ''}))
    assert [(pair.id, pair.label) for pair in known] == [('b', 'contradiction')]


def test_json_lines_and_own_tables(tmp_path):
    rows = [{'pairID': 'x', 'label': 'Neutral'}, {'pairID': 'x', 'label': 'neutral', 'rater': 'r'}]
    (tmp_path / 'a.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows))
    assert [vote.label for vote in relabel.read(tmp_path / 'a.jsonl').votes['x']] == ['neutral'] * 2


@pytest.mark.parametrize(
    ('rows', 'message'),
    [
        ([_row('x', 'a', 'maybe')], ":2: label is 'maybe', wanted one of contradiction"),
        ([_row('x', 'a', 'neutral'), _row('x', 'a', 'entailment')], ":3: 'a' labels 'x' again"),
        ([_row('', 'a', 'neutral')], ':2: item is empty'),
        ([], 'nobody labelled anything there'),
    ],
)
def test_what_is_wrong_is_named(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        _read(tmp_path, rows)


def test_empty_studies_have_a_summary(tmp_path):
    summary = relabel.Relabelling(_read(tmp_path, [_row('x', 'a', 'neutral')])).summary()
    assert (summary['pairs'], summary['share'], summary['not_met'], summary['relevance']) == (0, None, ['x'], None)
