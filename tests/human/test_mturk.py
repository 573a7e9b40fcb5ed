"""MTurk: what is exported comes back in each of the forms that its results have; other people's layouts are read."""

import csv
import dataclasses
import html
import io
import json
import re

import platform_study
import pytest

from evil_jax.human import mturk, responses
from evil_jax.human.study import TRUSTED

STANDARD = {'HITId': 'H', 'AssignmentId': 'A1', 'WorkerId': 'W1', 'AssignmentStatus': 'Approved'}


def _write(tmp_path, rows, name='results.csv', columns=()):
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval='', quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    path = tmp_path / name
    path.write_text(out.getvalue(), encoding='utf-8', newline='')
    return path


def _batches(tmp_path, study):
    """{page: its inputs} of all batches, as MTurk reads them."""
    found = {}
    for path in mturk.export(study, tmp_path / 'mturk', 'https://host/pictures'):
        if path.suffix == '.csv':
            with open(path, encoding='utf-8', newline='') as file:
                found |= {row['page']: row for row in csv.DictReader(file)}
    return found


def _plain(fields):
    return {f'Answer.{name}': '|'.join(values) for name, values in fields.items()} | {
        'Answer.q1': 'x',
        'Answer.age': '9',
    }


def _crowd(fields):
    found = {'Answer.commentbox': 'x' * 9000}
    for name, values in fields.items():
        wanted = 'yes w_yes w_no no' if '-e' in name else '0 1 2 3'
        found |= {f'Answer.{name}.{value}': str(value in values).lower() for value in wanted.split()}
    return found


def _boxes(fields):
    """Lists say their value, boxes have names of their own."""
    found = {}
    for name, values in fields.items():
        if '-f' in name:
            found |= {f'Answer.{name}-{value}.on': str(value in values).lower() for value in '0123'}
        else:
            found[f'Answer.{name}.{"label" if "-e" in name else "value"}'] = values[0]
    return found


def _document(fields):
    answers = {
        name: {value: value in values for value in {*values, '1'}} for name, values in fields.items() if '-f' in name
    }
    answers |= {name: values[0] for name, values in fields.items() if '-e' in name}
    answers |= {name: int(values[0]) for name, values in fields.items() if name[0] == 'c'}
    return {'Answer.taskAnswers': json.dumps([answers])}


@pytest.mark.parametrize('form', [_plain, _crowd, _boxes, _document])
def test_what_is_exported_comes_back(tmp_path, form):
    study = platform_study.study()
    batches = _batches(tmp_path, study)
    results, wanted = [], []
    for page in study.pages:
        for rater in range(2):
            fields = platform_study.said(study, page, rater)
            more = {'AssignmentId': f'{page.id}{rater}', 'WorkerId': f'W{rater}', 'WorkTimeInSeconds': '61'}
            answers = {f'Input.{name}': value for name, value in batches[page.id].items()} | form(fields)
            results.append(STANDARD | more | answers)
            wanted += platform_study.rows(study, page, fields, f'worker W{rater}', f'{page.id}{rater}', 61.0)
    rows = mturk.read(_write(tmp_path, results), study, rater='worker {}'.format)
    assert platform_study.bare(rows) == [dataclasses.replace(row, status='approved') for row in wanted]
    assert {r.reason for r in responses.mark(rows)} == {'', 'trusted item', 'failed check', 'answered otherwise'}


def test_inputs_are_safe_in_pages_and_in_tables(tmp_path):
    study = platform_study.study()
    content = (tmp_path / 'mturk' / 'batch-003.csv', tmp_path / 'mturk' / 'layout-003.html')
    batches = _batches(tmp_path, study)
    inputs, layout = batches['p001'], content[1].read_text()
    assert max(map(ord, content[0].read_text(encoding='utf-8'))) <= 0xFFFF  # MTurk refuses others
    assert not any(value.startswith(('=', '+', '-', '@')) for row in batches.values() for value in row.values())
    assert inputs['impath_1'] == 'https://host/pictures/p%200.png'
    for k, item in enumerate(study.of(study.pages[0]), 1):
        for letter, shown in zip('ij', item.explanations, strict=True):
            assert html.unescape(inputs[f'explanation_{k}_{letter}']) == ' '.join(shown.text.split())
        assert item.explanations[int(inputs[f'{k}_gt_idx'])].system == 'gt'
    assert html.unescape(batches['p002']['explanation_2_i']) == '(no explanation)'
    variables = set(re.findall(r'\$\{(.+?)\}', layout))
    assert variables <= set(inputs) and {'question_3', 'explanation_2_j', 'gt_1'} <= variables
    for name in variables:  # as MTurk does it, once for each
        layout = layout.replace(f'${{{name}}}', inputs[name])
    assert '${' not in layout and '<script>alert' not in layout
    assert TRUSTED not in layout and 'ex1' not in layout


def test_published_layout(shared):
    folder = shared / 'data' / 'metrics'
    if not folder.is_dir():
        pytest.skip(f'no golden values in {folder}')
    path = folder / 'mturk_batch_synth.csv'
    rows = responses.mark(mturk.read(path, system='e-UG'))
    assert len(rows) == 9 * 10 * 2 and responses.counts(rows)['left_out']['rejected'] == 20
    cell = {(r.assignment, r.item, r.system): r for r in rows}
    # Cells of the file: 2-e1 w_yes, 2-e2 no, 2-f2 1, and 2_gt_idx 0: the first explanation of task 2 is the gold one.
    gold, model = cell['A00', 'q02', 'gt'], cell['A00', 'q02', 'e-UG']
    assert (gold.rating, gold.shortcomings, gold.beside) == ('weak_yes', (), 'e-UG')
    assert (model.rating, model.shortcomings) == ('no', ('insufficient_justification',))
    # 1_gt_idx 1, 1-e1 w_yes, 1-f1 1, 1-e2 no, 1-f2 0|1, c1 1 and gt_1 1.
    gold, model = cell['A02', 'q01', 'gt'], cell['A02', 'q01', 'e-UG']
    assert gold.shortcomings == ('incorrect_description', 'insufficient_justification')
    assert (gold.rating, model.rating, gold.task_answer, gold.gold_answer) == ('no', 'weak_yes', 'Neutral', 'Neutral')
    assert (gold.dataset, gold.seconds, gold.image_id, gold.source) == ('esnlive', 1126.0, 'img01', f'{path}:4')
    assert cell['A22', 'q21', 'gt'].reason == 'rejected'
    with open(path, newline='') as file:
        wrong = {
            (cells['AssignmentId'], cells[f'Input.{k}_ques_id'])
            for cells in csv.DictReader(file) if cells['AssignmentStatus'] != 'Rejected'
            for k in range(1, 11) if cells[f'Answer.c{k}'] != cells[f'Input.gt_{k}']
        }  # fmt: skip
    assert {(r.assignment, r.item) for r in rows if r.reason == 'answered otherwise'} == wrong and wrong
    assert len({r.rater for r in rows}) == 4 and not any('W' in r.rater for r in rows)


def _question(**changes):
    row = STANDARD | {
        'Input.impath_1': 'https://host/a/COCO_1.jpg?x=1', 'Input.question_1': 'What?', 'Input.explanation_1_i': 'G',
        'Input.explanation_1_j': 'M', 'Input.gt_1': '2', 'Input.1_gt_idx': '0', 'Input.1_ques_id': '17',
        'Input.answer_1_a': 'cat', 'Input.answer_1_b': 'dog', 'Input.answer_1_c': 'cow', 'Input.2_gt_idx': 'BUGFIX',
        'Input.2_ques_id': 'BUGFIX', 'Answer.c1': '2.0', 'Answer.1-e1': 'yes', 'Answer.1-f1': '3', 'Answer.1-e2': '',
        'Answer.c2': '', 'Answer.2-e1': 'BUGFIX', 'Answer.ex1': 'yes', 'Answer.example3': '0',
    }  # fmt: skip
    return {name: value for name, value in (row | changes).items() if value is not None}


def test_questions_fillers_and_missing_columns(tmp_path):
    rows = mturk.read(_write(tmp_path, [_question()]))
    assert [(r.system, r.rating, r.task_answer, r.correct) for r in rows] == [
        ('gt', 'yes', 'cow', True), ('model', '', 'cow', True)
    ]  # fmt: skip
    assert (rows[0].dataset, rows[0].image_id, rows[0].seconds, rows[0].item) == ('vqax', 'COCO_1', None, '17')
    assert mturk.read(_write(tmp_path, [_question(Reject='spam')]))[0].status == 'rejected'
    (row, _) = mturk.read(_write(tmp_path, [_question(**{'Answer.c1': None})]))
    assert (row.task_answer, row.correct) == ('', False)


def _survey(**changes):
    answers = {
        'task1_image_statement_relationship': {'entailment': False, 'neutral': True, 'contradiction': False},
        'task1_explanation1_explanation_justifies_answer': dict(no=False, weak_no=True, weak_yes=False, yes=False),
        'task1_explanation2_explanation_justifies_answer': dict(no=False, weak_no=False, weak_yes=False, yes=True),
        'task1_image_id': '1.jpg#0r1n',
        'task1_preference': {'expl_1': False, 'expl_2': True, 'no_preference': False},
    }  # fmt: skip
    for e, ticked in ((1, 'confusing_sentence'), (2, '')):
        for name in ('confusing_sentence', 'incorrect_description', 'insufficient_justification'):
            answers[f'task1_explanation{e}_shortcomings_{name}'] = {'selected': name == ticked}
    return STANDARD | {
        'Input.id_0': '1.jpg#0r1n', 'Input.statement_0': 'S', 'Input.answer_0': 'neutral',
        'Input.output_explanation_0': 'M', 'Input.explanation_0': 'G', 'Input.other_answer1_0': 'entailment',
        'Input.other_answer2_0': 'contradiction', 'Input.img_name_0': '1.jpg%230r1n.jpg',
        'Answer.taskAnswers': json.dumps([answers | changes]),
    }  # fmt: skip


def test_survey_of_ofax(tmp_path):
    model, gold = mturk.read(_write(tmp_path, [_survey()]))
    assert (model.system, model.rating, model.shortcomings, model.preference) == (
        'ofax', 'weak_no', ('confusing_sentence',), 'other'
    )  # fmt: skip
    assert (gold.system, gold.rating, gold.shortcomings, gold.preference) == ('gt', 'yes', (), 'this')
    assert (gold.dataset, gold.item, gold.image_id, gold.correct) == ('esnlive', '1.jpg#0r1n', '1.jpg', True)
    no = dict.fromkeys(('expl_1', 'expl_2'), False)
    assert mturk.read(_write(tmp_path, [_survey(task1_preference=no)]))[0].preference == ''
    none = no | {'no_preference': True}
    assert mturk.read(_write(tmp_path, [_survey(task1_preference=none)]))[1].preference == 'none'
    # VCR names its answers, whose texts are in columns of their own.
    vcr = _survey(task1_answer={f'answer{i}': i == 1 for i in range(4)}, task1_image_statement_relationship={})
    vcr |= {f'Input.answer{i}_0': f'text {i}' for i in range(4)} | {'Input.answer_0': 'answer2', 'Input.id_0': 'val-7'}
    del vcr['Input.statement_0'], vcr['Input.other_answer1_0'], vcr['Input.other_answer2_0']
    row = mturk.read(_write(tmp_path, [vcr | {'Input.question_0': 'Q', 'Input.img_name_0': 'val-7.jpg'}]))[0]
    assert (row.dataset, row.task_answer, row.gold_answer, row.image_id) == ('vcr', 'text 1', 'text 2', 'val-7')
    with pytest.raises(ValueError, match=r"results\.csv:2: task1_answer is 'horse', wanted one of neutral, entailment"):
        mturk.read(_write(tmp_path, [_survey(task1_answer={'horse': True})]))


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'AssignmentStatus': 'Lost'}, "AssignmentStatus is 'Lost'"),
        ({'WorkerId': ' '}, 'WorkerId is empty'),
        ({'WorkTimeInSeconds': '-1'}, "WorkTimeInSeconds is '-1'"),
        ({'Input.1_gt_idx': '2'}, "1_gt_idx is '2', wanted 0 or 1"),
        ({'Input.gt_1': 'cow'}, "gt_1 is 'cow', wanted a number from 0 to 2"),
        ({'Input.explanation_1_j': None}, 'no column Input.explanation_1_j'),
        ({'Answer.1-e1': 'yes|no'}, '1-e1: 2 values, wanted one'),
        ({'Answer.1-e1': 'maybe'}, "1-e1: 'maybe', wanted one of yes"),
        ({'Answer.1-f1': '4'}, "1-f1: '4'"),
        ({'Answer.c1.1': 'perhaps'}, "c1.1 is 'perhaps', wanted true or false"),
        ({'Answer.taskAnswers': '[{}, {}]'}, 'taskAnswers is .*, wanted object'),
        ({'Answer.taskAnswers': '{"q1": "x"}'}, 'taskAnswers has q1, wanted c1'),
        ({'Answer.taskAnswers': '{'}, 'taskAnswers: not JSON'),
        ({'Input.page': 'p001'}, 'the inputs were made from a study'),
        ({'Input.1_ques_id': None}, r'inputs are impath_1, .*, wanted page \(ours\)'),
    ],
)
def test_what_is_wrong_is_named(tmp_path, changes, message):
    with pytest.raises(ValueError, match=rf'results\.csv:2: {message}'):
        mturk.read(_write(tmp_path, [_question(**changes)]))


def test_pages_of_other_studies_and_repeated_work(tmp_path):
    study = platform_study.study()
    inputs = {f'Input.{name}': value for name, value in _batches(tmp_path, study)['p001'].items()}
    row = STANDARD | inputs | _plain(platform_study.said(study, study.pages[0]))
    with pytest.raises(ValueError, match=r"csv:2: page 'p9' is not in the study, which has 2"):
        mturk.read(_write(tmp_path, [row | {'Input.page': 'p9'}]), study)
    with pytest.raises(ValueError, match=r'csv:2: page p001 has items i0f00, other, i2f00, in the study'):
        mturk.read(_write(tmp_path, [row | {'Input.2_ques_id': 'other'}]), study)
    with pytest.raises(ValueError, match=r"csv:3: assignment 'A1' again \(first at .*csv:2\)"):
        mturk.read(_write(tmp_path, [row, row]), study)
    with pytest.raises(ValueError, match='no results in it'):
        mturk.read(_write(tmp_path, [], 'empty.csv', list(row)), study)
    with pytest.raises(ValueError, match=r'human\.image_url is .*, wanted the address'):
        mturk.export(study, tmp_path, '/images')
