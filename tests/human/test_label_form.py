"""The labelling form: what it can have sent, and what a page that is taken keeps to."""

import dataclasses

import labelling_study
import pytest

from evil_jax.human import label_form
from evil_jax.human.study import Item, Page, Study

ITEM = Item('i', 'x', '', "The man's dogs are - running fast", ('Entailment', 'Neutral', 'Contradiction'), 1, ())
PAGE = Page('p', ('i',))
STUDY = Study('esnlive', 'statement', {'i': ITEM}, (PAGE,), 3, 0, 0, {}, {}, {}, 'labels')
GOOD = {'c1': ['0'], '1-w': ['2', '5', '6'], '1-x': ['A dog that runs  with its tongue out']}


def _rules(fields):
    return [(p.field, p.rule) for p in label_form.check(STUDY, PAGE, label_form.parse(fields, STUDY, PAGE))]


def test_answers_come_back_from_their_fields():
    answers = label_form.parse(GOOD | {'commentbox': ' well '}, STUDY, PAGE)
    assert answers.tasks == (label_form.Labelled(0, (2, 5, 6), 'A dog that runs with its tongue out'),)
    assert label_form.parse(answers.fields(), STUDY, PAGE) == answers
    assert label_form.parse({}, STUDY, PAGE).fields() == {}


@pytest.mark.parametrize(
    ('changes', 'wanted'),
    [
        ({}, []),
        ({'c1': []}, [('c1', 'filled')]),
        ({'1-w': []}, [('1-w', 'filled')]),
        ({'1-x': ['the dogs']}, [('1-x', 'filled')]),
        ({'1-x': ['only one dog is there']}, [('1-x', 'half')]),  # one of three: two are needed
        ({'1-w': ['2'], '1-x': ['only one dog is there']}, []),
        ({'1-w': ['1', '2'], '1-x': ['this man is alone']}, []),  # of "man's" the longer piece
        ({'1-x': ["the mans' dogs; are running fast!"]}, []),
        ({'1-x': ["THE man's dogs are running fast."]}, [('1-x', 'again')]),
    ],
)
def test_rules(changes, wanted):
    assert _rules(GOOD | changes) == wanted


def test_a_statement_without_words_can_be_labelled():
    study = dataclasses.replace(STUDY, items={'i': dataclasses.replace(ITEM, text='? - ...')})
    said = label_form.parse({'c1': '1', '1-x': 'nothing is said here'}, study, PAGE)
    assert label_form.check(study, PAGE, said) == []


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'c2': '0'}, "'c2': the form has no such field"),
        ({'c1': '3'}, "c1: '3', wanted one of 0, 1, 2"),
        ({'1-w': ['4']}, "1-w: '4', wanted some of 0, 1, 2, 3, 5, 6"),  # the dash is no word
        ({'1-w': ['7']}, "1-w: '7', wanted"),
        ({'1-w': ['1', '1']}, 'a value is there twice'),
        ({'1-x': 'x' * 601}, '601 characters, wanted at most 600'),
        ({'1-x': ['a', 'b']}, '2 values, wanted one'),
        ({'1-x': '\ud800'}, 'characters that are no text'),
    ],
)
def test_what_the_form_cannot_have_sent(fields, message):
    with pytest.raises(ValueError, match=message):
        label_form.parse(fields, STUDY, PAGE)


def test_rows_say_what_was_chosen_and_whether_a_check_was_failed(tmp_path):
    study = labelling_study.make(tmp_path)
    page = study.pages[0]
    for fail in (False, True):
        answers = label_form.parse(labelling_study.fields(study, page, 0, fail), study, page)
        rows = label_form.rows(study, page, answers, rater='r', assignment='a', seconds=3.0)
        for row, item in zip(rows, study.of(page), strict=True):
            assert (row.item, row.given, row.trusted) == (item.example, item.choices[item.gold].lower(), item.trusted)
            assert row.reason == (('failed check' if fail else 'trusted item') if item.trusted else '')
            assert item.trusted or (
                row.label == 'entailment' and len(row.words) == 2 and row.words[0] in row.explanation
            )
    empty = label_form.rows(study, page, label_form.parse({}, study, page), rater='r', assignment='a')
    assert {row.label for row in empty} == {''} and dataclasses.asdict(empty[0])['words'] == ()
