"""How many questions have edits, and why the others have none."""

import json

import pytest

from evil_jax.counterfactual import coverage


def counted():
    found = coverage.Coverage(('hypernym', 'delete'))
    for edits, reason in ((1, ''), (3, ''), (0, 'no noun'), (0, 'no hypernym'), (0, 'no noun')):
        found.add('hypernym', edits, reason)
    found.add('delete', 2)
    return found


def test_table():
    hypernym, delete = counted().table()
    assert (hypernym['family'], hypernym['asked'], hypernym['edited'], hypernym['edits']) == ('hypernym', 5, 2, 4)
    assert hypernym['share'] == pytest.approx(0.4)
    assert [(row['reason'], row['questions']) for row in hypernym['reasons']] == [('no noun', 2), ('no hypernym', 1)]
    assert hypernym['reasons'][0]['meaning'] == 'none was found'
    assert delete['share'] == 1 and delete['reasons'] == []


def test_json():
    found = json.loads(json.dumps(counted().to_json()))
    assert found['hypernym'] == {'asked': 5, 'edited': 2, 'edits': 4, 'reasons': {'no noun': 2, 'no hypernym': 1}}


def test_too_little_coverage_is_refused_with_the_commonest_reason():
    coverage.require(counted().table(), 0.4)
    with pytest.raises(
        ValueError, match=r'hypernym edits 2 of 5 questions \(40.0%\), wanted 50.0%.*no noun.*2 questions'
    ):
        coverage.require(counted().table(), 0.5)


def test_no_edit_at_all_is_refused_with_all_reasons():
    found = coverage.Coverage(('hypernym', 'synonym_verb'))
    for family, reason in (('hypernym', 'no noun'), ('synonym_verb', 'no verb')):
        found.add(family, 0, reason)
        found.add(family, 0, 'not English')
    with pytest.raises(ValueError, match=r'none of 2 questions can be edited: no noun, not English, no verb$'):
        coverage.require(found.table(), 0)
    with pytest.raises(ValueError, match='none of 0 questions can be edited'):
        coverage.require(coverage.Coverage(('delete',)).table(), 0.1)


def test_a_text_counts_for_the_reason_nearest_to_an_edit():
    assert coverage.nearest(['not in WordNet', 'no sibling', 'protected']) == 'no sibling'
    assert coverage.nearest(['does not fit', 'no hypernym']) == 'does not fit'
    assert coverage.nearest(['empty']) == 'empty'
