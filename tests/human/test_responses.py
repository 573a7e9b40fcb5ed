import csv
import dataclasses

import pytest

from evil_jax.human import ratings, responses
from evil_jax.human.responses import Response

R = Response('vqax', 'A', '1', 'A', 'r1', 'yes', assignment='a1', correct=True)
change = dataclasses.replace

AWKWARD = [
    change(
        R, explanation='=1+1', references=("'-x", "''@y", 'a;b\n"c",\t'), shortcomings=('confusing_sentence',),
        task_answer=' +red', gold_answer='+red', correct=False, seconds=12.25, reason='answered otherwise',
        preference='this', image_id='@7.jpg', source='b.csv:2',
    ),
    change(R, system='gt', item='-2', rating='', correct=None, status='rejected', explanation="don't", seconds=3.0),
    change(R, rater='', rating='weak_no', explanation='\u00e9\r\nx', references=('one',)),
]  # fmt: skip


@pytest.mark.parametrize('name', ['t.csv', 't.jsonl'])
def test_what_is_written_is_read(tmp_path, name):
    responses.write(tmp_path / 't.csv', tmp_path / 't.jsonl', AWKWARD)
    found = responses.read(tmp_path / name)
    places = [
        row.source or f'{tmp_path / name}:{line}'
        for row, line in zip(AWKWARD, (2, 4, 5) if 'csv' in name else (1, 2, 3))
    ]
    assert found == [change(row, source=place) for row, place in zip(AWKWARD, places)]
    if name == 't.csv':
        with open(tmp_path / name, newline='') as file:
            assert not [cell for row in csv.reader(file) for cell in row if cell.lstrip(' ').startswith(tuple('=+-@'))]


def test_tables_of_other_makers(tmp_path):
    path = tmp_path / 'my vqax.csv'
    path.write_text('id;model;worker;score;scale;flags\n1;A;w;4;1-4;incorrect_description\n1;GT;w;2;1-4;\n')
    own, gold = responses.read(path)
    assert own.unit == ('vqax', 'A', '1', 'A') and (own.rater, own.rating, own.correct) == ('w', 'yes', None)
    assert own.shortcomings == ('incorrect_description',)
    assert gold.unit == ('vqax', 'gt', '1', 'gt') and gold.rating == 'weak_no' and gold.counts
    path.write_text('item,rating,task_answer,gold_answer\n1,2/3,a,a\n1,0,b,a\n1,,,a\n')
    assert [row.correct for row in responses.read(path, dataset='d', system='S')] == [True, False, None]


@pytest.mark.parametrize(
    'cells, message',
    [
        ('1,x,maybe,,,,,', 'rating is .maybe'),
        ('1,x,yes,ugly,,,,', "shortcoming is 'ugly', wanted incorrect_description, insuff"),
        ('1,x,yes,,perhaps,,,', "correct is 'perhaps', wanted yes or no"),
        ('1,x,yes,,,-3,,', "seconds is '-3', wanted a number"),
        ('1,x,yes,,,nan,,', "seconds is 'nan', wanted a number"),
        ('1,x,yes,,,,done,', "status is 'done', wanted submitted, approved, rejected"),
        ('1,x,yes,,,,,both', "preference is 'both', wanted this, other, none"),
        (',x,yes,,,,,', 'item is empty'),
    ],
)
def test_errors_name_file_and_line(tmp_path, cells, message):
    path = tmp_path / 't.csv'
    path.write_text(f'item,rater,rating,shortcomings,correct,seconds,status,preference\n1,x,no,,,,,\n{cells}\n')
    with pytest.raises(ValueError, match=rf't\.csv:3: {message}'):
        responses.read(path)
    with pytest.raises(ValueError, match='ofax'):
        responses.read(path, 'wide')


def _reasons(rows, **options):
    return [row.reason for row in responses.mark(rows, **options)]


def test_each_rating_that_does_not_count_says_why():
    gold = change(R, system='gt')
    rows = [
        R, gold,
        change(R, assignment='a2', rater='r2', status='rejected', correct=False),
        change(R, assignment='a3', rater='r3', correct=False, rating=''),
        change(R, assignment='a4', rater='r4', rating=''), change(gold, assignment='a4', rater='r4'),
        change(R, assignment='a5', rater='r5', correct=None), change(R, assignment='a6', rater='r5'),
        change(R, assignment='a7', rater='', rating=''), change(gold, rater='', assignment=''),
        change(gold, beside='B'),
        change(R, rater='r9', reason='surplus'),
    ]  # fmt: skip
    wanted = [
        '', '', 'rejected', 'answered otherwise', 'no rating', 'no rating', '', 'rated before', 'no rating', '', '',
        'surplus',
    ]  # fmt: skip
    assert _reasons(rows) == wanted
    assert _reasons(responses.mark(rows)) == wanted
    assert responses.counts(responses.mark(rows)) == {
        'ratings': 12, 'counted': 5,
        'left_out': {'no rating': 3, 'rejected': 1, 'answered otherwise': 1, 'rated before': 1, 'surplus': 1},
    }  # fmt: skip


def test_a_failed_check_takes_its_page_along():
    known = change(R, item='k', system='trusted', beside='trusted', reason=responses.KNOWN)
    failed = change(known, system='gt', reason=responses.CHECK)
    rows = [R, known, failed, change(R, assignment='a2', item='2'), change(R, rater='r2'), change(R, dataset='vcr')]
    assert _reasons(rows) == ['failed check', 'trusted item', 'failed check', '', '', '']
    # Also when the table was marked otherwise before.
    assert _reasons(responses.mark(rows), trusted_failures='keep') == ['', 'trusted item', 'failed check', '', '', '']
    assert _reasons(responses.mark(rows, trusted_failures='keep')) == _reasons(rows)
    with pytest.raises(ValueError, match="trusted_failures is 'drop', wanted one of exclude, keep"):
        responses.mark(rows, trusted_failures='drop')


def test_evaluate_reads_the_tidy_table(tmp_path):
    gold = change(R, system='gt', explanation='-g')
    rows = responses.mark(
        [
            change(R, references=('-g', "'r"), shortcomings=('confusing_sentence',), image_id='7', explanation='e'),
            gold, change(gold, beside='B', explanation='other'), change(R, rater='r2', correct=False),
            change(R, rater='r3', system='trusted', beside='trusted', reason=responses.KNOWN),
            # Not asked for its task answer, which is no wrong one.
            change(R, rater='r4', rating='no', gold_answer='red', correct=None),
        ]
    )  # fmt: skip
    responses.write(tmp_path / 'r.csv', tmp_path / 'r.jsonl', rows)
    wanted = responses.to_ratings(rows)
    assert [(r.system, r.beside, r.score) for r in wanted] == [
        ('A', '', 3),
        ('gt', 'A', 3),
        ('gt', 'B', 3),
        ('A', '', 0),
    ]
    for name in ('r.csv', 'r.jsonl'):
        found, left_out = ratings.read_counted(tmp_path / name)
        assert [change(r, source='') for r in found] == [change(r, source='') for r in wanted]
        assert left_out == {'answered otherwise': 1, 'trusted item': 1}
    assert [item.key for item in ratings.aggregate(found)] == ['vqax | A | 1', 'vqax | gt | 1 | A', 'vqax | gt | 1 | B']
    unmarked = tmp_path / 'u.csv'
    unmarked.write_text('item,system,beside,rater,rating\n1,trusted,trusted,r,yes\n1,gt,trusted,r,yes\n1,A,A,r,yes\n')
    found, left_out = ratings.read_counted(unmarked)
    assert len(found) == 1 and left_out == {'trusted item': 2}


def test_ofax_gives_two_rows(shared):
    rows = responses.mark(responses.read(shared / 'data' / 'human_eval' / 'ofax_large_esnlive.csv', 'ofax'))
    own, gold = rows[:2]
    assert (own.system, gold.system, own.beside, gold.beside) == ('ofax', 'gt', 'ofax', 'ofax')
    assert (own.rater, own.rating, gold.rating) == ('esnlive-w001', 'yes', 'weak_yes')
    assert (own.preference, gold.preference, own.seconds) == ('this', 'other', 113.0)
    assert gold.shortcomings == ('confusing_sentence',) and own.references == (gold.explanation,)
    assert responses.counts(rows)['counted'] == 2 * 1104
