"""Edited questions out, answers in: streams, whole files, and what is wrong is named."""

import csv
import json
import pathlib
import re
import subprocess
import sys

import pytest

from evil_jax.counterfactual import exchange
from evil_jax.counterfactual.edits import Edit
from evil_jax.records import Example

EXAMPLES = [
    Example('1', 'p1', 'Is the dog wet?'),
    Example('2', 'p1', '   '),
    Example('3.jpg#0r1c', 'p3', '=1+1, "ü"\nA dog?', choices=['a', 'b'], objects=['person', 'dog']),
]


def edit_of(example, family='sibling', serial='', text=None, **more):
    return Edit(
        f'{example.id}#{family}{serial}', example.id, example.image_id, family, example.text,
        text or example.text.replace('dog', 'wolf'), (7, 10), (7, 11), 'dog', 'wolf', **more,
    )  # fmt: skip


def edit(example):
    if 'dog' not in example.text:
        return []
    return [edit_of(example), edit_of(example, 'delete', '.1', example.text.replace(' dog', ''))]


def baseline(example, edits):
    return [edit_of(example, family, text=example.text) for family in ('noop', 'blank', 'repeat')]


@pytest.fixture
def asked(tmp_path):
    return exchange.write(tmp_path / 'cf', iter(EXAMPLES), edit, baseline, about={'seed': 3})


def answers(path, rows):
    path.write_text(''.join((row if isinstance(row, str) else json.dumps(row)) + '\n' for row in rows))
    return path


def all_answers(asked, **more):
    return [{'id': row['id'], 'answer': f'A {n}', **more} for n, row in enumerate(asked.rows())]


def test_what_is_asked(asked):
    rows = list(asked.rows())
    suffixes = ('', '#sibling', '#delete.1', '#noop', '#blank', '#repeat')
    assert [row['id'] for row in rows] == [f'{i}{s}' for i in ('1', '3.jpg#0r1c') for s in suffixes]
    assert rows[0] == {'id': '1', 'image_id': 'p1', 'text': 'Is the dog wet?'}
    assert rows[1]['text'] == 'Is the wolf wet?' and rows[3]['text'] == rows[0]['text']
    assert rows[4] == rows[0] | {'id': '1#blank', 'image': 'blank'}
    assert rows[5] == rows[0] | {'id': '1#repeat', 'repeat': 1}
    assert rows[7]['choices'] == ['a', 'b'] and rows[7]['objects'] == ['person', 'dog']
    assert asked.counts == {'edits': 4, 'baselines': 6, 'asked': 12, 'table': 12}


def test_the_table_is_the_same_and_no_formula(asked):
    with open(asked.path('table'), newline='', encoding='utf-8') as file:
        table = list(csv.DictReader(file))
    assert [row['id'] for row in table] == [row['id'] for row in asked.rows()]
    assert table[0]['text'] == 'Is the dog wet?' and table[0]['choices'] == '' and table[5]['repeat'] == '1'
    assert table[6]['text'] == '\'=1+1, "ü"\nA dog?' and json.loads(table[6]['choices']) == ['a', 'b']


def test_renamed_choices_are_asked(tmp_path):
    renamed = lambda example: [edit_of(example, choices=['c', 'd'], objects=['person', 'wolf'])]
    *_, last = exchange.write(tmp_path, EXAMPLES[2:], renamed).rows()
    assert last['choices'] == ['c', 'd'] and last['objects'] == ['person', 'wolf']


def test_edits_come_back_by_offset(asked):
    found = list(asked.edits())
    assert [e.id for _, e in found] == ['1#sibling', '1#delete.1', '3.jpg#0r1c#sibling', '3.jpg#0r1c#delete.1']
    assert found[2][1] == edit(EXAMPLES[2])[0]
    assert all(asked.edit(offset) == e for offset, e in found)
    offset, noop = next(asked.edits('baselines'))
    assert asked.edit(offset, 'baselines') == noop and noop.family == 'noop'
    assert exchange.Asked.open(asked.folder) == asked and asked.about == {'seed': 3}


def test_a_folder_that_changed_is_refused(asked):
    with asked.path('edits').open('a') as file:
        file.write('\n')
    with pytest.raises(
        ValueError, match=r'edits\.jsonl: has changed since .*Remove .*exchange\.json, and all of it is'
    ):
        exchange.Asked.open(asked.folder)
    asked.path('edits').unlink()
    with pytest.raises(ValueError, match='no file'):
        exchange.Asked.open(asked.folder)
    (asked.folder / 'exchange.json').write_text('{"counts": {}}')
    with pytest.raises(ValueError, match=r"exchange\.json: has no 'hashes', only counts"):
        exchange.Asked.open(asked.folder)
    (asked.folder / 'exchange.json').write_text('null')
    with pytest.raises(ValueError, match=r'exchange\.json: the document is None, wanted object'):
        exchange.Asked.open(asked.folder)
    with pytest.raises(ValueError, match=r'has no exchange\.json: no edited questions were written there'):
        exchange.Asked.open(asked.folder / 'other')


def test_nothing_to_ask_and_asked_twice(tmp_path):
    with pytest.raises(ValueError, match='none of 1 examples has an edit'):
        exchange.write(tmp_path, EXAMPLES[1:2], edit)
    with pytest.raises(ValueError, match=r"asked twice: 3 ids: '1', '1#sibling', '1#delete\.1'"):
        exchange.write(tmp_path, [*EXAMPLES, EXAMPLES[0]], edit)
    with pytest.raises(ValueError, match=r"twice: 1 id: '1#sibling'; .* none may be another's with # and a family"):
        exchange.write(tmp_path, [EXAMPLES[0], Example('1#sibling', 'p', 'A dog?')], edit)
    assert not list(tmp_path.iterdir())


def test_an_interruption_leaves_what_was_there(asked):
    before = {path.name: path.read_bytes() for path in asked.folder.iterdir()}

    def interrupted():
        yield EXAMPLES[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exchange.write(asked.folder, interrupted(), edit)
    assert {path.name: path.read_bytes() for path in asked.folder.iterdir()} == before


def test_a_full_disk_leaves_nothing(tmp_path):
    code = (
        'import resource, signal, sys\n'
        f'sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n'
        'from test_exchange import Example, edit_of, exchange\n'
        'resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n'
        'examples = (Example(str(n), "p", "Is the dog wet?") for n in range(10_000))\n'
        'exchange.write(sys.argv[1], examples, lambda e: [edit_of(e)])\n'
    )
    run = subprocess.run([sys.executable, '-c', code, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 1 and 'edits.jsonl' in run.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_answers_in_any_order(asked, tmp_path):
    rows = all_answers(asked)
    rows[1] |= {'answer_scores': {'no': 0.75, 'yes': 0.125}, 'explanation': 'ü\nit is', 'answer_index': 1}
    given = exchange.read_answers(answers(tmp_path / 'a', rows[::-1]), asked, explanations=True)
    for n, row in enumerate(asked.rows()):
        assert given.get(row['id']).answer == f'A {n}'
    assert given.get('1#sibling') == ('A 1', 1, {'no': 0.75, 'yes': 0.125}, 'ü\nit is')
    assert given.get('1') == ('A 0', None, {}, '') and given.get('x') is None
    far = exchange.read_answers(answers(tmp_path / 'a', [row | {'answer_index': 10**9} for row in rows]), asked)
    assert far.get('1#sibling')[:2] == ('A 1', None)  # the index of no choice
    assert given.scored and given.explained == 1 and not str(given.counts)
    assert given.explanation('1#sibling') == 'ü\nit is' and given.explanation('x') is None
    without = exchange.read_answers(answers(tmp_path / 'a', rows), asked)
    assert without.explained == 0 and without.get('1#sibling').explanation is None


def test_only_the_likeliest_answers_are_kept(asked, tmp_path):
    rows = all_answers(asked, answer_scores={str(n): n / 50 for n in range(1, 10)})
    given = exchange.read_answers(answers(tmp_path / 'a', rows), asked)
    assert list(given.get('1').scores) == ['9', '8', '7', '6', '5']
    assert given.get('1').scores['9'] == pytest.approx(0.18)


def test_rows_with_the_answer_added(asked, tmp_path):
    rows = [row | {'answer': 'yes'} for row in asked.rows()]
    assert exchange.read_answers(answers(tmp_path / 'a', rows), asked).get('1#noop').answer == 'yes'


def test_answers_in_several_files_and_formats(asked, tmp_path):
    rows = all_answers(asked)
    halves = [answers(tmp_path / 'a', rows[:5]), answers(tmp_path / 'b', rows[5:])]
    assert exchange.read_answers(halves, asked).get('3.jpg#0r1c#repeat').answer == 'A 11'
    captions = [{'image_id': row['id'], 'caption': f'{row["answer"]} because it is'} for row in rows]
    (tmp_path / 'c').write_text(json.dumps(captions))
    given = exchange.read_answers(tmp_path / 'c', asked, 'nlxgpt_full', explanations=True)
    assert given.get('1#delete.1') == ('A 2', None, {}, 'it is')
    lists = {name: [row[name] for row in rows] for name in ('id', 'answer')} | {'explanation': [''] * len(rows)}
    (tmp_path / 'd').write_text(json.dumps(lists | {'answer': ['maybe'] * len(rows)}))
    labelled = {'1': Example('1', 'p1', 'x', label='neutral')}
    given = exchange.read_answers(tmp_path / 'd', asked, 'ofax', examples=labelled)
    assert given.get('1#sibling').answer == 'neutral' and given.get('3.jpg#0r1c').answer == 'maybe'


def test_the_table_with_a_column_added(tmp_path):
    examples = Example('=x', 'p', "'Tis a dog?"), Example('y', 'p', '\tA wet dog?')
    asked = exchange.write(tmp_path, examples, lambda e: [edit_of(e)])
    lines = asked.path('table').read_text().splitlines()
    lines = [lines[0] + ',answer', *(f'{line},yes' for line in lines[1:])]
    (tmp_path / 'a.csv').write_text('\n'.join(lines))
    given = exchange.read_answers(tmp_path / 'a.csv', asked, 'csv')
    assert all(given.get(row['id']).answer == 'yes' for row in asked.rows())
    (tmp_path / 'a.csv').write_text('\n'.join(lines).replace('Tis', 'Was'))
    with pytest.raises(ValueError, match=r"""'=x" is "'Was a dog\?" here and "'Tis a dog\?" there"""):
        exchange.read_answers(tmp_path / 'a.csv', asked, 'csv')


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda rows: [*rows[:2], '{"id": "1"', *rows[2:]], r'/a:3: not JSON'),
        (lambda rows: [*rows[:2], {'id': '1#noop'}], r"/a:3: missing field 'answer'"),
        (lambda rows: [*rows, {'id': '1', 'answer': 'b', 'colour': 'red'}], r"/a:13: unknown field 'colour'"),
        (lambda rows: [], r'/a: holds no predictions'),
        (lambda rows: rows[1:], r"/a: no answer to 1 id: '1' \(of 11 answers and 12 questions\)\. To .* allow missing"),
        (lambda rows: [*rows, rows[0]], r"answered again: 1 id: '1', always with the same answer .*allow duplicates"),
        (lambda rows: [*rows, rows[0] | {'answer': 'x'}], r"again: 1 id: '1', 1 of them with another answer"),
        (
            lambda rows: [*rows[:-1], {'id': 'y', 'answer': 'x'}, {'id': 'z', 'answer': 'x'}],
            r"no answer to 1 id: '3\.jpg#0r1c#repeat'; never asked: 2 ids: 'y', 'z' .*Are these the answers to ",
        ),
        (
            lambda rows: [{'id': f'x{n}', 'answer': 'b'} for n in range(30)],
            r"never asked: 30 ids: 'x0', .*'x9', \.\.\. .*No id in common: these are not the answers to .*asked\.jsonl",
        ),
        (
            lambda rows: [rows[0], rows[1] | {'text': 'Is the cat wet?'}],
            r"answers to other questions .*'1#sibling' is 'Is the cat wet\?' here and 'Is the wolf wet\?'",
        ),
        (lambda rows: [rows[0] | {'answer': None}], r"/a: '1' has no answer, wanted answers"),
        (lambda rows: [rows[0] | {'answer_scores': {'a': 3.5}}], r"answer_scores of '1' are {'a': 3\.5}, wanted prob"),
        (lambda rows: [rows[0] | {'answer_scores': {'a': -0.5}}], r'wanted probabilities'),
        (lambda rows: [rows[0] | {'answer_scores': {'a': '0.5'}}], r"of '1' are {'a': '0\.5'}, wanted probabilities"),
        (lambda rows: [rows[0] | {'answer_scores': {'a': True}}], r"are {'a': True}, wanted probabilities"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_answers_is_named(asked, tmp_path, change, message):
    path = answers(tmp_path / 'a', change(all_answers(asked)))
    with pytest.raises(ValueError, match=message):
        exchange.read_answers(path, asked)


def test_what_is_allowed_is_counted(asked, tmp_path):
    rows = all_answers(asked)
    path = answers(tmp_path / 'a', [*rows[1:], rows[3] | {'answer': 'other'}, {'id': 'x', 'answer': 'b'}])
    given = exchange.read_answers(path, asked, allow=('missing', 'extra', 'duplicates'))
    assert str(given.counts) == 'duplicates:1,missing:1,extra:1'
    assert given.get('1') is None and given.get(rows[3]['id']).answer == 'A 3'
    with pytest.raises(ValueError, match=r'never asked') as told:
        exchange.read_answers(path, asked, allow=('missing', 'duplicates'))
    assert 'no answer' not in str(told.value) and 'again' not in str(told.value)
    with pytest.raises(ValueError, match=r"unknown word 'mising' in allow\. Did you mean 'missing'"):
        exchange.read_answers(path, asked, allow=('mising',))
    with pytest.raises(ValueError, match='No id in common'):
        only = answers(tmp_path / 'a', [{'id': 'x', 'answer': 'b'}])
        exchange.read_answers(only, asked, allow=('missing', 'extra'))


def test_a_wrong_format_is_told(asked, tmp_path):
    path = answers(tmp_path / 'a', all_answers(asked))
    with pytest.raises(ValueError, match=re.escape("(the file looks like format 'jsonl', not 'csv')")):
        exchange.read_answers(path, asked, 'csv')


@pytest.mark.acceptance
def test_a_million_edits_are_a_stream(tmp_path, measured):
    used = {}
    for count in (100_000, 1_000_000):
        script = pathlib.Path(__file__).with_name('streamed.py')
        command = [sys.executable, str(script), str(tmp_path / str(count)), str(count)]
        used[count] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    more = {step: used[1_000_000][step] - used[100_000][step] for step in used[100_000]}
    edit = 1e6 / 2**20 * 0.9  # MB of one byte for each of 900,000 edits
    measured('MB more for writing 1 M edits than for 100 k', '<=', 50, more['write'])
    measured('bytes an edit of reading answers', '<=', 100, more['read'] / edit)
    measured('bytes an edit of judging, answers and table', '<=', 200, more['judge'] / edit)
    measured('bytes an edit of all, scores too', '<=', 400, more['score'] / edit)
