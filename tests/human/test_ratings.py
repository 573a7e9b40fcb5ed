from fractions import Fraction

import pytest

from evil_jax.human import _files, ratings

LONG = 'item,system,annotator,dataset,rating\n'


def write(tmp_path, text, name='ratings.csv'):
    path = tmp_path / name
    path.write_text(text, encoding='utf-8', newline='')
    return path


@pytest.mark.parametrize(
    'value, score',
    [
        ('yes', 3), ('Weak_Yes', 2), ('weak no', 1), (' weak-no ', 1), ('no', 0), ('1', 3), (1, 3), ('1.0', 3),
        ('2/3', 2), ('0.333333333333333', 1), ('.667', 2), (0.6666666666666666, 2), ('0,67', 2), ('0', 0), (0.33, 1),
    ],
)  # fmt: skip
def test_thirds_are_exact(value, score):
    assert _files.rating(value) == (score, 3)


@pytest.mark.parametrize(
    'value', ['0.5', '0.444444444', '2', '-1', '3/3/3', 'maybe', '', None, True, 'nan', 'inf', '1/0']
)
def test_what_is_no_third_is_refused(value):
    with pytest.raises(ValueError, match=r'rating is .*wanted yes, weak_yes'):
        _files.rating(value)


def test_integers_on_a_scale():
    assert _files.rating('4', '1-4') == (3, 3)
    assert _files.rating(1, (1, 5)) == (0, 4)
    assert _files.rating('-2', '-2 to 2') == (0, 4)
    assert _files.rating('3.0', [0, 3]) == (3, 3)
    for value in ('5', '0', '2.5', 'x'):
        with pytest.raises(ValueError, match=r'wanted an integer from 1 to 4'):
            _files.rating(value, '1-4')
    for scale in ('4', '4-1', 'a-b', (1,), (1, 'x'), 7, ''):
        with pytest.raises(ValueError, match='scale is'):
            _files.rating('1', scale)


def test_csv_as_people_write_it(tmp_path):
    comma = LONG + '1,A,x,vqax,yes\n1,A,y,vqax,0.333\n\n"2,5",A,x,vqax,no\n'
    wanted = ratings.read(write(tmp_path, comma))
    assert [(r.item, r.score, r.annotator, r.system, r.dataset) for r in wanted] == [
        ('1', 3, 'x', 'A', 'vqax'), ('1', 1, 'y', 'A', 'vqax'), ('2,5', 0, 'x', 'A', 'vqax')
    ]  # fmt: skip
    # A byte order mark, Windows line ends, semicolons and decimal commas: the same ratings.
    other = '\ufeffitem;system;annotator;dataset;rating\r\n1;A;x;vqax;yes\r\n1;A;y;vqax;0,333\r\n"2,5";A;x;vqax;0\r\n'
    found = ratings.read(write(tmp_path, other, 'b.csv'))
    assert [(r.item, r.score, r.annotator) for r in found] == [(r.item, r.score, r.annotator) for r in wanted]


def test_json_lines_with_texts(tmp_path):
    rows = (
        '{"id": 7, "rating": "weak_yes", "model": "A", "explanation": "a\\n||| b\u00e9", "references": ["r", "s"]}\n\n'
        '{"id": 7, "rating": 0.6667, "model": "A", "flags": ["confusing"], "image": 3}\n'
        '{"id": 8, "rating": 2, "scale": "0-4", "model": "gt", "explanation": "r", "reference": "r"}\n'
    )
    path = write(tmp_path, rows, 'my vqax study.jsonl')
    items = ratings.aggregate(ratings.read(path))
    assert [(i.key, i.scores, i.out_of, i.image) for i in items] == [
        ('vqax | A | 7', (8, 8), 12, '3'),
        ('vqax | gt | 8', (6,), 12, None),
    ]
    assert items[0].flags == {'confusing': 1}
    assert items[0].mean == Fraction(2, 3) and items[1].mean == Fraction(1, 2)
    assert ratings.texts(items) == {'vqax': ({'vqax | A | 7': 'a\n||| b\u00e9'}, {'vqax | A | 7': ['r', 's']})}


def test_references_in_csv_columns_and_empty_explanations(tmp_path):
    text = 'item,rating,explanation,reference_1,reference_2\n1,yes,,r,\n2,no,e,r,"s\nt"\n'
    items = ratings.aggregate(ratings.read(write(tmp_path, text)))
    predictions, references = ratings.texts(items)['ratings']
    assert predictions == {'ratings | 1': '', 'ratings | 2': 'e'}
    assert references == {'ratings | 1': ['r'], 'ratings | 2': ['r', 's\nt']}


def test_what_does_not_count(tmp_path):
    text = (
        'item,rating,status,chosen_answer,gold_answer\n1,yes,Approved,a,a\n1,no,Rejected,a,a\n1,no,Submitted,b,a\n'
        '1,,Approved,a,a\n1,no,,a,a\n'
    )
    found, left_out = ratings.read_counted(write(tmp_path, text))
    assert [r.score for r in found] == [3, 0]
    assert left_out == {'rejected': 1, 'answered otherwise': 1, 'no rating': 1}
    both, twice = ratings.read_files([tmp_path / 'ratings.csv'] * 2)
    assert both == found * 2 and twice['rejected'] == 2


@pytest.mark.parametrize(
    'text, message',
    [
        ('item,score\n1,yes\n2,4\n', r'r\.csv:3: rating is .4.*column scale'),
        ('item,score\n1,"yes\n', r'r\.csv:2: not CSV'),
        ('item,score\n"a\nb",yes\nc,5\n', r'r\.csv:4: rating'),
        ('item,score\n1,yes\n"a\nb",5\n', r'r\.csv:3: rating'),
        ('item,score\n1,yes,no\n', r'r\.csv:2: has 3 cells, wanted 2'),
        ('item,item\n1,yes\n', r'r\.csv:1: a column name twice'),
        ('question,score\n1,yes\n', r"r\.csv:2: no field 'item' or 'item_id' or 'id' among 'question', 'score'"),
        ('item,grade\n1,yes\n', r"r\.csv:2: no field 'rating' or 'score'"),
        ('item,score\n,yes\n', r'r\.csv:2: item is empty'),
        ('item,score\n', r'r\.csv: no ratings'),
        ('', r'r\.csv: no ratings'),
        ('{"item": 1, "rating": "yes"}\n{"item"\n', r'r\.csv:2: not JSON'),
        ('{"item": 1, "rating": "yes"}\n[1]\n', r'r\.csv:2 is \[1\], wanted object'),
        ('{"item": [1], "rating": "yes"}\n', r'r\.csv:1: item is \[1\], wanted text'),
        ('{"item": 1, "rating": "yes", "explanation": ["x"]}\n', r'r\.csv:1: explanation is'),
        ('{"item": 1, "rating": "yes", "references": [3]}\n', r'r\.csv:1: references are'),
        ('{"item": 1, "rating": "yes", "flags": 3}\n', r'r\.csv:1: found 3, wanted a list'),
        ('item,rating,annotator\n1,yes,w\n2,yes,w\n1,no,w\n', r"r\.csv:4: annotator 'w' rates '1' again .*r\.csv:2"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        ratings.read(write(tmp_path, text, 'r.csv'))


def test_other_errors(tmp_path):
    with pytest.raises(ValueError, match='wanted one of long, ofax'):
        ratings.read('x.csv', 'wide')
    with pytest.raises(ValueError, match=r'none\.csv: cannot be read: .*No such file'):
        ratings.read(tmp_path / 'none.csv')
    (tmp_path / 'latin.csv').write_bytes('item,rating\né,yes\n'.encode('latin-1'))
    with pytest.raises(ValueError, match=r'latin\.csv: not UTF-8'):
        ratings.read(tmp_path / 'latin.csv')
    with pytest.raises(ValueError, match="no column 'worker'"):
        ratings.read(write(tmp_path, 'item_id\n1\n'), 'ofax')
    rows = ratings.read(write(tmp_path, 'item,rating,explanation\n1,yes,a\n1,no,b\n'))
    with pytest.raises(ValueError, match=r"ratings\.csv:3: explanation of '1' is 'b', but 'a' at .*ratings\.csv:2"):
        ratings.aggregate(rows)
    twins = [ratings.Rating('d', 's | t', 'i', 1), ratings.Rating('d', 's', 't | i', 1)]
    with pytest.raises(ValueError, match='is two things'):
        ratings.aggregate(twins)


def test_means_of_unequal_numbers_stay_ties():
    # Two thirds of three, of five and of six ratings; as floats of summed thirds they differ.
    scores = {'a': (3, 0, 3), 'b': (2, 2, 2, 2, 2), 'c': (3, 3, 2, 2, 1, 1), 'd': (2, 2, 1)}
    items = ratings.aggregate(ratings.Rating('d', 's', i, s) for i, several in scores.items() for s in several)
    assert [i.mean for i in items] == [Fraction(2, 3)] * 3 + [Fraction(5, 9)]
    assert len({float(i.mean) for i in items}) == 2


def test_order_of_the_ratings_does_not_matter():
    rows = [ratings.Rating(d, s, i, n) for d in 'yx' for s in 'ba' for i in '21' for n in (3, 0)]
    assert ratings.aggregate(rows) == ratings.aggregate(rows[::-1])
    assert ratings.aggregate([]) == []


def test_values_by_example_id_find_their_items():
    rows = [ratings.Rating('d', s, i, 1) for s in ('A', 'B', 'GT') for i in ('1', '2')]
    items = ratings.aggregate(rows)
    values = {'m': {'1': 0.5, '9': 0.1}}
    assert ratings.keyed(values, items, system='B') == {'m': {'d | B | 1': 0.5}}
    with pytest.raises(ValueError, match='several systems, say which one the predictions are: A, B'):
        ratings.keyed(values, items)
    with pytest.raises(ValueError, match="no ratings of system 'C'; there are: A, B"):
        ratings.keyed(values, items, system='C')
    one = [i for i in items if i.system != 'A']
    assert ratings.keyed(values, one) == {'m': {'d | B | 1': 0.5}}


OFAX = (
    'item_id,worker,status,gold_answer,chosen_answer,explanation_generated,explanation_gt,rating_generated,rating_gt,'
    'confusing_sentence_generated,incorrect_description_generated,insufficient_justification_gt\n'
)


def test_ofax_form(tmp_path):
    rows = (
        '12345001,w1,Submitted,red,red,it is red,the ball is red,yes,weak_no,1,0,1\n'
        '12345001,w2,Approved,red,red,it is red,the ball is red,no,yes,0,1,0\n'
        '12345001,w3,Rejected,red,red,it is red,the ball is red,no,yes,0,1,0\n'
        '12345001,w4,Submitted,red,blue,it is red,the ball is red,no,yes,0,1,0\n'
        '12345001,w5,Submitted,red,red,it is red,the ball is red,no,,0,1,0\n'
        '12345001,w6,Submitted,red,red,it is red,the ball is red,,no,0,1,0\n'
    )
    found, left_out = ratings.read_counted(write(tmp_path, OFAX + rows, 'some_VQAX.csv'), 'ofax')
    assert left_out == {'rejected': 2, 'answered otherwise': 2, 'no rating': 4}
    assert found[0] == ratings.Rating(
        'vqax', 'ofax', '12345001', 3, annotator='w1', image='12345', explanation='it is red',
        references=('the ball is red',), flags=('confusing_sentence',), source=found[0].source,
    )  # fmt: skip
    assert [(r.system, r.score, r.flags) for r in found[1:]] == [
        ('gt', 1, ('insufficient_justification',)), ('ofax', 0, ('incorrect_description',)), ('gt', 3, ())
    ]  # fmt: skip
    assert found[1].explanation == 'the ball is red' and found[1].references == ()
    assert _files.picture('160541986.jpg#3r1e') == '160541986.jpg'
    bad = write(tmp_path, OFAX + rows.replace('weak_no', 'rather'), 'bad.csv')
    with pytest.raises(ValueError, match=r"bad\.csv:2: rating is 'rather'"):
        ratings.read(bad, 'ofax')


@pytest.mark.parametrize(
    'name, n, generated, gold', [('esnlive', 1104, 0.8572, 0.8502), ('vqax', 1462, 0.8953, 0.8985)]
)
def test_human_scores_of_ofax(shared, name, n, generated, gold):
    found, left_out = ratings.read_counted(shared / 'data' / 'human_eval' / f'ofax_large_{name}.csv', 'ofax')
    assert len(found) == 2 * n and sum(left_out.values()) == 2 * (1500 - n)
    assert {r.dataset for r in found} == {name}
    for system, wanted in (('ofax', generated), ('gt', gold)):
        scores = [r.score for r in found if r.system == system]
        assert len(scores) == n
        assert sum(scores) / (3 * n) == pytest.approx(wanted, abs=5e-5)
    items = ratings.aggregate(found)
    predictions, references = ratings.texts(items)[name]
    assert len(predictions) == len(references) == sum(not i.gold for i in items)
    first = next(i for i in items if not i.gold)
    assert first.item.startswith(first.image)
