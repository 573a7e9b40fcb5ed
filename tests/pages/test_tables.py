import csv
import io
import re

import pytest

from evil_jax.pages import tables


def cell(value, **more):
    empty = dict(reason=None, runs=1, sd=None, n=80, total=100, ci95=None, delta=None, delta_ci95=None,
                 p_bootstrap=None, p_randomisation=None, p_holm=None, tested='', untested='')  # fmt: skip
    return empty | {'value': value} | more


def board(first='first', second='second', source='A, 2021', signature='metric:cider|tok:none|version:1'):
    cells = {
        first: {
            's_t': cell(0.8, n=100, ci95=(0.75, 0.85)),
            'cider': cell(0.9),
            'spice': cell(None, reason='needs Java'),
        },
        second: {
            's_t': cell(0.7, delta=-0.1, delta_ci95=(-0.2, 0.0), p_holm=0.2, tested='randomisation'),
            'cider': cell(
                1.1, delta=0.2, p_holm=0.004, p_randomisation=0.002, tested='randomisation', sd=0.0125, runs=3
            ),
        },
    }
    for system, row in cells.items():
        for metric, found in row.items():
            found.update(system=system, metric=metric, subset='main')
    return {
        'protocol': 'evil',
        'about': '',
        'subset': 'main',
        'title': 'explanations of right answers',
        'metrics': ['s_t', 'cider'],
        'ranked': 's_t',
        'baseline': first,
        'rows': [
            {'system': s, 'baseline': s == first, 'runs': 1, 'n': 80, 'total': 100, 'cells': row}
            for s, row in cells.items()
        ],
        'published': [
            {'system': 'PJ-X', 'protocol': 'evil', 'set': 'correct', 'metrics': {'cider': 0.827, 'bertscore': 0.846},
             'unverified': ['bertscore'], 'source': source, 'note': ''},
        ],
        'signatures': {
            s: {'s_t': f'metric:s_t|predictions:{i}', 'cider': f'{signature}|predictions:{i}'}
            for i, s in enumerate(cells)
        },
    }  # fmt: skip


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline='')))


def test_csv_has_a_line_for_every_number_in_full_precision():
    value = 0.1 + 0.2
    given = board()
    given['rows'][0]['cells']['s_t']['value'] = value
    rows = read(tables.csv([given]))
    assert len(rows) == 3 + 2 + 2 and tuple(rows[0]) == tables.COLUMNS
    first = rows[0]
    assert float(first['value']) == value and (first['system'], first['metric']) == ('first', 's_t')
    assert (first['ci95_low'], first['ci95_high'], first['n'], first['total']) == ('0.75', '0.85', '100', '100')
    assert (
        first['signature'] == 'metric:s_t|predictions:0' and first['protocol'] == 'evil' and first['kind'] == 'computed'
    )
    assert rows[3]['signature'] == 'metric:s_t|predictions:1', 'of its own system'
    absent = next(r for r in rows if r['metric'] == 'spice')
    assert absent['value'] == '' and absent['reason'] == 'needs Java'
    theirs = [r for r in rows if r['kind'].startswith('published')]
    assert [(r['metric'], r['value'], r['kind'], r['source']) for r in theirs] == [
        ('cider', '0.827', 'published', 'A, 2021'), ('bertscore', '0.846', 'published, unverified', 'A, 2021'),
    ]  # fmt: skip


@pytest.mark.parametrize('text', ['=1+1', '+cmd', '-2', '@SUM(A1)', '\t=1', '  =1', '-|x'])
def test_csv_text_is_no_formula_but_numbers_stay_numbers(text):
    rows = read(tables.csv([board(first=text, source=text)]))
    assert rows[0]['system'] == f"'{text}" and rows[-1]['source'] == f"'{text}"
    numbers = [r for r in rows if r['delta']]
    assert [float(r['delta']) for r in numbers] == [-0.1, 0.2] and numbers[0]['delta'] == '-0.1'


@pytest.mark.parametrize('text', ['a,b', 'say "hi"', 'two\nlines', 'Ünï', 'a\r\nb'])
def test_csv_text_comes_back(text):
    assert read(tables.csv([board(first=text)]))[0]['system'] == text


def test_no_boards_are_a_head_only():
    assert read(tables.csv([])) == [] and tables.csv([]).startswith('protocol,')


def test_markdown():
    text = tables.markdown(board(), bold=True)
    lines = text.splitlines()
    assert lines[0] == '| system | scored | S\\_T answers right | CIDEr-D |'
    assert lines[1] == '| --- | ---: | ---: | ---: |'
    assert lines[2] == '| first | 80/100 | **0.800** | 0.900 |'
    assert lines[3] == '| second | 80/100 | 0.700 | **1.100 ± 0.013**\\* |'.replace('0.013', f'{0.0125:.3f}')
    assert lines[4] == '| PJ-X (published) |  |  | 0.827 |'
    assert '\\* differs from first, p &lt; 0.05 by randomisation' in text and '± sample deviation' in text
    assert (
        'Protocol evil; explanations of right answers.' in text
        and 'Published under protocol evil, PJ-X: A, 2021' in text
    )
    assert 'scores of explanations: tok:none\\|version:1' in text and 'second: predictions:1' in text
    assert '**' not in tables.markdown(board())
    chosen = tables.markdown(board(), metrics=['bertscore'])
    assert '| PJ-X (published) |  | 0.846? |' in chosen and '? was not read in the source' in chosen
    assert '? was not read' not in text


@pytest.mark.parametrize(
    'attack', ['a|b', 'a\nb', '<script>', '**x**', '`x`', '[x](http://y)', 'a\\|b', '_x_', '~~x~~']
)
def test_markdown_text_stays_in_its_cell(attack):
    text = tables.markdown(board(first=attack, source=attack))
    table = text.split('\n\n')[0].splitlines()
    assert len(table) == 5
    for line in table:
        assert len(re.findall(r'(?<!\\)(?:\\\\)*\|', line)) == 5, line
    row = table[2].split(' | ')[0]
    assert not re.search(r'(?<!\\)[`*_\[\]~]', row) and '<' not in text


def test_latex():
    text = tables.latex(board(), bold=True)
    assert r'\begin{tabular}{lrr}' in text and text.count(r'\begin{') == text.count(r'\end{') == 2
    assert r'system & S\_T answers right & CIDEr-D \\' in text
    assert r'first & \textbf{0.800} & 0.900 \\' in text
    assert rf'second & 0.700 & \textbf{{1.100 $\pm$ {0.0125:.3f}}}$^{{*}}$ \\' in text
    assert r'PJ-X &  & 0.827 \\' in text and 'published under protocol evil, not computed here' in text
    assert r'\caption{Protocol evil; explanations of right answers. * differs from first' in text
    assert '% scores of explanations: tok:none|version:1\n% first: predictions:0\n' in text
    assert r'\toprule' in text and r'\bottomrule' in text and r'\textbf' not in tables.latex(board())


def test_latex_text_is_no_command():
    attack = 'a & b % c $ d # e _ f { g } h ~ i ^ j \\input{/etc/passwd} < > |'
    escaped = (
        r'a \& b \% c \$ d \# e \_ f \{ g \} h \textasciitilde{} i \textasciicircum{} j '
        r'\textbackslash{}input\{/etc/passwd\} \textless{} \textgreater{} \textbar{}'
    )
    text = tables.latex(board(first=attack, signature='x\n\\end{table} y'))
    assert text.count(escaped) == 2, 'in its row and in the caption'
    assert '\\input' not in '\n'.join(line for line in text.splitlines() if not line.startswith('%'))
    assert '% scores of explanations: x \\end{table} y' in text, 'a line end would end the comment'


def test_an_unknown_score_names_those_there_are():
    for write in (tables.markdown, tables.latex):
        with pytest.raises(ValueError, match=r"no score 'bleu9'; it has bertscore, cider, s_t"):
            write(board(), metrics=['bleu9'])


def test_systems_that_tie_are_all_best():
    given = board()
    given['rows'][1]['cells']['s_t']['value'] = 0.8
    assert tables.markdown(given, bold=True).count('**0.800**') == 2
