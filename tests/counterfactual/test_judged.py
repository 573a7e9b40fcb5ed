"""Answers judged against the right answers to the questions as they were: by hand, row by row."""

import json
import math

import numpy as np
import pytest

from evil_jax.counterfactual import exchange, judged, judging
from evil_jax.counterfactual.edits import Edit
from evil_jax.records import Example


def edit_of(example, family='sibling', serial='', **more):
    return Edit(
        f'{example.id}#{family}{serial}', example.id, example.image_id, family, example.text, example.text + '!',
        (0, 1), (0, 1), 'Dogs', 'Wolves', **more,
    )  # fmt: skip


def judge(folder, example, original, star, mode='official', **more):
    """One edit, answered: texts, or dictionaries with more than that."""
    asked = exchange.write(folder, [example], lambda e: [edit_of(e, **more)])
    said = [row if isinstance(row, dict) else {'answer': row} for row in (original, star)]
    rows = [{'id': row['id'], **given} for row, given in zip(asked.rows(), said)]
    (folder / 'a').write_text('\n'.join(map(json.dumps, rows)))
    return judging.judge(asked, exchange.read_answers(folder / 'a', asked), {example.id: example}, mode=mode)


def only(table, *columns):
    (row,) = range(len(table))
    value = lambda name: table.texts(name)[row] if name in table.names else getattr(table, name)[row].item()
    found = [value(name) for name in columns]
    return found[0] if len(found) == 1 else tuple(found)


def vqa(**answers):
    return Example('q', 'p', 'What?', annotations=[a for a, n in answers.items() for _ in range(n)])


SOFT = Example('q', 'p', 'x', answers={'dog': 1.0, 'on desk': 0.3})


@pytest.mark.parametrize(
    ('example', 'original', 'star', 'mode', 'right', 'right_star', 'transition'),
    [
        (vqa(red=8, blue=2), 'red', 'Red.', 'official', 1, 1, 'kept right'),
        (vqa(red=8, blue=2), 'red', 'blue', 'official', 1, 0.6, 'right->right'),
        (vqa(red=9, blue=1), 'red', 'blue', 'official', 1, 0.3, 'right->wrong'),
        (vqa(red=9, blue=1), 'green', 'red', 'official', 0, 1, 'wrong->right'),
        (vqa(red=9, blue=1), 'green', 'black', 'official', 0, 0, 'wrong->other'),
        (vqa(red=9, blue=1), 'green', 'a green', 'official', 0, 0, 'kept wrong'),
        # Unanimous annotators are compared letter by letter in the official code, and only there.
        (vqa(red=10), 'red', 'red.', 'official', 1, 0, 'kept right'),
        (vqa(red=10), 'red', 'red.', 'strict', 1, 1, 'kept right'),
        (vqa(none=9, hat=1), 'none', '0', 'official', 1, 1, 'kept right'),
        (vqa(none=9, hat=1), 'none', '0', 'strict', 1, 0, 'right->wrong'),
        (vqa(red=5, blue=4, tan=1), 'blue', 'red', 'exact', 0, 1, 'wrong->right'),
        (vqa(Green=1), 'green', 'the green.', 'official', 1, 1, 'kept right'),  # one annotator leaves nobody out
        (SOFT, 'dog', 'On the desk.', 'official', 1, 0.3, 'right->wrong'),
        (Example('q', 'p', 'x', label='neutral'), 'Neutral', 'entailment', 'official', 1, 0, 'right->wrong'),
        (Example('q', 'p', 'x'), 'dog', 'cat', 'official', math.nan, math.nan, 'changed'),
        (Example('q', 'p', 'x'), 'dog', 'a dog', 'official', math.nan, math.nan, 'kept'),
        (Example('q', 'p', 'x'), 'a', 'the', 'official', math.nan, math.nan, 'changed'),  # articles only
    ],
)  # fmt: skip
def test_accuracies_and_transitions(tmp_path, example, original, star, mode, right, right_star, transition):
    table = judge(tmp_path, example, original, star, mode)
    found = only(table, 'right', 'right_star')
    assert found == pytest.approx((right, right_star), nan_ok=True)
    assert only(table, 'transition') == transition
    assert only(table, 'kept') == transition.startswith('kept')


def test_what_an_edit_is(tmp_path):
    example = Example('q', 'p', 'Dogs?', answer_type='other', question_type='what')
    table = judge(
        tmp_path, example, 'a', 'b', family='colour_max_common', serial='.2', source_lemma='dog',
        source_synset='dog.n.01', sense_count=7, twin=True, quality=0.25, distance=3.5, asks='colour', role='head',
        negated=True,
    )  # fmt: skip
    assert only(table, 'family', 'example', 'image', 'source', 'target', 'source_synset', 'target_synset') == (
        'colour_max_common', 'q', 'p', 'dog', 'wolves', 'dog.n.01', ''
    )  # fmt: skip
    assert only(table, 'asks', 'role', 'answer_type', 'question_type') == ('colour', 'head', 'other', 'what')
    assert only(table, 'senses', 'twin', 'quality', 'distance', 'negated') == (7, True, 0.25, 3.5, True)
    assert math.isnan(only(table, 'similarity')) and table.id(0) == 'q#colour_max_common.2'
    assert only(table, 'offset') == 0 and table.families() == ['colour_max_common']


def test_answers_of_other_names_than_those_to_choose_from_are_told(tmp_path):
    example = Example('q', 'p', 'x', choices=['a dog', 'a cat'], label=1)
    with pytest.raises(ValueError, match=r"no answer .*that of 'q' is 'B', wanted one of 'a dog', 'a cat'"):
        judge(tmp_path, example, 'B', 'A')
    assert len(judge(tmp_path, example, {'answer': 'B', 'answer_index': 1}, 'A')) == 1
    with pytest.raises(ValueError, match=r"that of 'q' is 'yes', wanted one of 'contradiction', 'neutral'"):
        judge(tmp_path, Example('q', 'p', 'x', label='neutral'), 'yes', 'no')


def test_choices_are_compared_by_number(tmp_path):
    example = Example('q', 'p', 'x', choices=['a dog', 'a cat', 'a cat'], label=1)
    renamed = ['a wolf', 'a cat', 'a cat']
    table = judge(tmp_path, example, 'a dog', 'a wolf', choices=renamed)
    assert only(table, 'answer', 'answer_star', 'gold', 'kept', 'right') == ('0', '0', '1', True, 0)
    table = judge(tmp_path, example, {'answer': 'a cat', 'answer_index': 2}, 'a cat', choices=renamed)
    assert only(table, 'answer', 'answer_star', 'right', 'right_star') == ('2', '1', 0, 1)
    assert only(judge(tmp_path, example, 'a dog', 'other', expected=('a cat',)), 'answer_star') == 'other'
    assert only(judge(tmp_path, example, 'a dog', 'a cat', expected=('cat',)), 'expected_right') == 1


@pytest.mark.parametrize(('asks', 'answer', 'met'), [
    ('yes/no', 'no', 1), ('yes/no', 'yes', 0), ('yes/no', 'red', 0), ('what', 'no', 0),
])  # fmt: skip
def test_a_wrong_no_that_is_kept_is_right_where_yes_no_longer_is(tmp_path, asks, answer, met):
    table = judge(tmp_path, vqa(yes=10), answer, answer, expectation='CHANGE', asks=asks)
    assert only(table, 'kept', 'met', 'expected_right') == (True, met, -1)


@pytest.mark.parametrize(
    ('expectation', 'expected', 'star', 'met', 'right'),
    [
        ('INV', None, 'no', 1, -1),
        ('INV', None, 'yes', 0, -1),
        ('CHANGE', None, 'yes', 1, -1),
        ('CHANGE', None, 'no', 0, -1),
        ('FREE', None, 'no', -1, -1),
        ('', ('no',), 'No.', -1, 1),
        ('CHANGE', ('yes', '2'), 'two', 1, 1),
        ('CHANGE', ('yes',), 'maybe', 1, 0),  # it changed, but to what is not right either
        ('CHANGE', ('no',), 'no', 1, 1),  # it was wrong before and is right now, without a change
        ('INV', ('yes',), 'yes', 1, 1),
    ],
)
def test_expectations(tmp_path, expectation, expected, star, met, right):
    table = judge(tmp_path, vqa(yes=6, no=4), 'no', star, expectation=expectation, expected=expected)
    assert only(table, 'expectation', 'met', 'expected_right') == (expectation, met, right)


@pytest.mark.parametrize(
    ('said', 'asks', 'wanted'),
    [
        ('Unknown.', '', True), ("i don't know", '', True), ('I dont know', '', True), ('n/a', '', True),
        ('Not sure', '', True), ('nothing', 'what', True), ('none', 'what', True), ('nothing', 'count', False),
        ('none', 'count', False), ('no one', 'who', True), ('not in the picture', '', True), ("can't tell", '', True),
        ('no', 'yes/no', False), ('0', 'count', False), ('dog', '', False), ('N', '', False), ('', '', False),
    ],
)  # fmt: skip
def test_uncertain_answers(tmp_path, said, asks, wanted):
    assert only(judge(tmp_path, vqa(yes=6, no=4), 'yes', said, asks=asks), 'uncertain') == wanted
    assert only(judge(tmp_path, vqa(yes=6, no=4), said, 'yes', asks=asks), 'was_uncertain') == wanted


def test_how_far_probabilities_move(tmp_path):
    before = {'answer': 'red', 'answer_scores': {'red': 0.5, 'Blue.': 0.25}}
    after = {'answer': 'blue', 'answer_scores': {'blue': 0.5, 'green': 0.25, 'red': 0.125}}
    table = judge(tmp_path, vqa(red=9, blue=1), before, after)
    # |0.5 - 0.125| + |0.25 - 0.5| + |0 - 0.25| and, of what is not listed, |0.25 - 0.125|; half of it.
    assert only(table, 'shift', 'rank') == (0.5, 3)
    assert only(table, 'log_odds') == pytest.approx(0 - math.log(0.125 / 0.875))
    table = judge(tmp_path, vqa(red=9, blue=1), before, {'answer': 'tan', 'answer_scores': {'tan': 1.0}})
    assert only(table, 'shift', 'rank') == (1, 2) and math.isnan(only(table, 'log_odds'))
    table = judge(tmp_path, vqa(red=9, blue=1), before, before)
    assert only(table, 'shift', 'rank', 'log_odds') == (0, 1, 0)
    table = judge(tmp_path, vqa(red=9, blue=1), before, 'tan')
    assert math.isnan(only(table, 'shift')) and only(table, 'rank') == 0
    # Each answer has a probability of its own: (0.9, 0.9) and (0.6, 0) are (0.5, 0.5) and 0.6 with 0.4 for the others.
    each = [{'answer': 'red', 'answer_scores': scores} for scores in ({'red': 0.9, 'tan': 0.9}, {'red': 0.6})]
    table = judge(tmp_path, vqa(red=9, blue=1), *each)
    assert only(table, 'shift', 'log_odds') == pytest.approx((0.5, math.log(9) - math.log(1.5)))
    choices = Example('q', 'p', 'x', choices=['a dog', 'a cat'], label=0)
    said = lambda *names: {'answer': names[0], 'answer_scores': {names[0]: 0.75, names[1]: 0.25}}
    table = judge(tmp_path, choices, said('a dog', 'a cat'), said('a wolf', 'a cat'), choices=['a wolf', 'a cat'])
    assert only(table, 'shift', 'rank') == (0, 1)


def test_many_edits_baselines_and_what_is_left_out(tmp_path):
    examples = [Example(f'e{n}', f'p{n // 2}', 'What?', label=('entailment', 'neutral')[n % 2]) for n in range(4)]
    edits = lambda e: [edit_of(e), edit_of(e, 'delete'), edit_of(e, 'delete', '.1')]
    asked = exchange.write(tmp_path, examples, edits, lambda e, edits: [edit_of(e, 'noop')])
    rows = [{'id': row['id'], 'answer': f'new {row["id"]}'} for row in asked.rows()]
    rows = [row | {'answer': 'Neutral.'} if row['id'] == 'e3' else row for row in rows]
    left = [row for row in rows if row['id'] not in ('e0', 'e1#delete', 'e2#noop')]
    (tmp_path / 'a').write_text('\n'.join(map(json.dumps, left)))
    answers = exchange.read_answers(tmp_path / 'a', asked, allow=('missing',))
    table = judging.judge(asked, answers, {e.id: e for e in examples})
    assert [table.id(n) for n in range(len(table))] == [
        'e1#sibling', 'e1#delete.1', *(f'e{n}#{f}' for n in (2, 3) for f in ('sibling', 'delete', 'delete.1'))
    ]  # fmt: skip
    assert table.left_out == {'no answer': 4} and len(table.baselines) == 2
    assert table.baselines.texts('answer_star').tolist() == ['new e1#noop', 'new e3#noop']
    assert table.baselines.names['answer'] == table.names['answer'] and table.families() == ['sibling', 'delete']
    assert table.labels == ('contradiction', 'neutral', 'entailment')
    assert table.signature == 'accuracy:official|right:>=0.5|same:vqa_normalise'
    assert [asked.edit(offset).id for offset in table.offset] == [table.id(n) for n in range(len(table))]
    noop = asked.edit(table.baselines.offset[1], 'baselines')
    assert noop.id == 'e3#noop'
    rows = table.take(table.where(family='delete', image='p1'))
    assert [rows.id(n) for n in range(len(rows))] == ['e2#delete', 'e2#delete.1', 'e3#delete', 'e3#delete.1']
    with pytest.raises(ValueError, match="edit 'e1#sibling': there is no example 'e1'"):
        judging.judge(asked, answers, {'e0': examples[0]})
    with pytest.raises(ValueError, match="accuracy 'x', wanted one of official, strict, exact"):
        judging.judge(asked, answers, {}, mode='x')


def test_nothing_can_be_judged(tmp_path):
    asked = exchange.write(tmp_path, [vqa(yes=3)], lambda e: [edit_of(e)])
    (tmp_path / 'a').write_text('{"id": "q", "answer": "yes"}')
    answers = exchange.read_answers(tmp_path / 'a', asked, allow=('missing',))
    with pytest.raises(ValueError, match='no edit has an answer and an answer to its original question'):
        judging.judge(asked, answers, {'q': vqa(yes=3)})


def test_a_table_of_rows():
    table = judged.of_rows([dict(family='sibling', source='dog', target='cat', kept=False, transition='right->wrong')])
    assert table.code('target', 'dog') == table.source[0] and table.code('family', 'x') == -1
    assert not table.where(family='x').any() and table.kept.dtype == bool
    assert len(judged.of_rows([])) == 0 and judged.of_rows([]).texts('source').tolist() == []
    with pytest.raises(ValueError, match="transition is 'lost', wanted one of 'kept right'"):
        judged.of_rows([dict(transition='lost')])
    with pytest.raises(ValueError, match="no column 'colour' of Judged"):
        judged.of_rows([dict(colour='red')])


def test_a_row_takes_as_many_bytes_as_is_documented():
    table = judged.of_rows([{}] * 3)
    columns = [value for name in table.__slots__ if isinstance(value := getattr(table, name), np.ndarray)]
    assert sum(column.nbytes for column in columns) == 3 * 97 and all(len(column) == 3 for column in columns)
