"""Tables and plain lines: CSV of many hands, one explanation a line."""

import csv
import gc
import io
import time

import pytest

from evil_jax.data import outputs
from evil_jax.records import Example, Prediction

TEXTS = ('a dog, brown; "wet"', 'two\nlines\r\nthree', 'Zoë ||| 日本\t!', '', "it's", '  blanks  ')


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def table(rows, **kwargs):
    file = io.StringIO(newline='')
    csv.writer(file, **kwargs).writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize('delimiter', [',', ';', '\t'])
@pytest.mark.parametrize('end', ['\n', '\r\n'])
@pytest.mark.parametrize('mark', ['', '\ufeff'])
def test_csv_of_any_program(tmp_path, delimiter, end, mark):
    rows = [['id', 'answer', 'explanation'], *([n, f'yes {n}', text] for n, text in enumerate(TEXTS))]
    path = write(tmp_path / 'p q.csv', mark + table(rows, delimiter=delimiter, lineterminator=end))
    assert outputs.read(path, 'csv') == [
        Prediction(str(n), f'yes {n}', explanation=text) for n, text in enumerate(TEXTS)
    ]


@pytest.mark.parametrize(
    ('header', 'wanted'),
    [
        ('Question ID,Prediction,Generated_Explanation', ('1', 'a', 'b')),
        ('pairID,chosen answer,rationale', ('1', 'a', 'b')),
        ('image_id,caption,other', ('1', None, 'a')),
        ('image_id,id,answer', ('a', 'b', None)),
        (',id,explanation', ('a', None, 'b')),
        ('QID,gold,pred_answer', ('1', 'b', None)),
    ],
)
def test_names_of_columns(tmp_path, header, wanted):
    (found,) = outputs.read(write(tmp_path / 'p.csv', f'{header}\n1,a,b\n'), 'csv')
    assert (found.id, found.answer, found.explanation) == wanted


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('', 'holds no predictions'),
        ('id,answer\n', 'holds no predictions'),
        ('answer,explanation\na,b\n', r'p\.csv:1: has no column of ids \(id, .*it has: answer, explanation'),
        ('id,gold\n1,b\n', r'p\.csv:1: has neither a column answer nor a column explanation; it has: id, gold'),
        ('id,answer,prediction\n1,a,b\n', "which column is the answer, 'answer' and 'prediction'"),
        ('id,question_id,answer\n1,a,b\n', "which column is the id, 'id' and 'question_id'"),
        ('id,answer\n1,a\n2,b,c\n', r'p\.csv:3: has 3 cells, wanted 2'),
        ('id,answer\n"1\n",a\n\n2\n', r'p\.csv:5: has 1 cells'),
        ('id,answer\n ,a\n', r'p\.csv:2: the id is empty'),
        ('id,answer\n1,"a\n2,b\n', r'p\.csv:\d: not CSV'),
        (b'id,answer\n1,\xff\n', 'not UTF-8 text at byte 12'),
        ('id,answer\n1,' + 'x' * 140_000 + '\n', r'p\.csv:\d: not CSV: field larger'),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        outputs.read(write(tmp_path / 'p.csv', text), 'csv')


def examples(n):
    return [Example(f'e{i}', 'im', 'what?') for i in range(n)]


@pytest.mark.parametrize(
    ('text', 'wanted'),
    [
        ('one\ntwo\n', ['one', 'two']),
        ('one\r\ntwo', ['one', 'two']),
        ('\n\n', ['', '']),
        ('\ufeffZoë\u2028 ||| \x0b\n x ', ['Zoë\u2028 ||| \x0b', ' x ']),
        ('one\n', ['one']),
        ('\n', ['']),
    ],
)
def test_lines_are_explanations_in_the_order_of_the_references(tmp_path, text, wanted):
    found = outputs.read(write(tmp_path / 'p.txt', text), 'text', examples(len(wanted)))
    assert found == [Prediction(f'e{i}', None, explanation=line) for i, line in enumerate(wanted)]


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('one\ntwo\n\n', r'p\.txt: has 3 lines, wanted 2: one for each example'),
        ('', 'has 0 lines, wanted 2'),
        ('{"id": "e0", "answer": "a"}\n{"id": "e1", "answer": "a"}\n', "holds JSON.*looks like format 'jsonl'"),
        ('id,answer\n1,a\n2,b\n', "has 3 lines, wanted 2.*looks like format 'csv'"),
    ],
)
def test_lines_that_do_not_fit(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        outputs.read(write(tmp_path / 'p.txt', text), 'text', examples(2))


def test_many_rows(tmp_path):
    """Ten times the rows take about ten times as long, not a hundred times."""
    few, many = (_seconds(tmp_path, n) for n in (10_000, 100_000))
    for format in few:
        assert many[format] < 40 * few[format], format


def _seconds(tmp_path, n):
    rows = [['id', 'answer', 'explanation'], *([i, 'yes', f'it is {i} and "so", so'] for i in range(n))]
    gold = [Example(str(i), str(i // 4), '') for i in range(n)]
    files = {
        'csv': table(rows),
        'text': ''.join(f'it is {i}\n' for i in range(n)),
        'jsonl': ''.join(f'{{"id": {i}, "answer": "yes", "explanation": "it is {i}"}}\n' for i in range(n)),
        'coco': '[' + ', '.join(f'{{"image_id": {i}, "caption": "it is {i}"}}' for i in range(n)) + ']',
    }
    seconds = {}
    for format, content in files.items():
        path = write(tmp_path / format, content)
        gc.disable()  # it takes longer the more there is, whoever made it
        start = time.process_time()
        predictions, kept, counts = outputs.match(outputs.read(path, format, gold), gold)
        seconds[format] = time.process_time() - start
        gc.enable()
        assert len(predictions) == len(kept) == n and counts == outputs.Counts()
        assert predictions[-1].explanation.startswith(f'it is {n - 1}')
    return seconds
