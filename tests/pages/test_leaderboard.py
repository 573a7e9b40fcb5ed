import base64
import hashlib
import json
import re

import page_reader
import pytest
from page_parser import Page

from evil_jax.pages import leaderboard, metric_names, report

ATTACKS = ('</script><script>document.title="broken"</script>', '<img src=x onerror=alert(1)>', '{{ 7 * 7 }}')
FIRST, SECOND = 'first', 'second'


def row(system, metric, value, subset='main', **more):
    empty = dict(reason=None, runs=1, sd=None, n=80, total=100, ci95=None, delta=None, delta_ci95=None,
                 p_bootstrap=None, p_randomisation=None, p_holm=None, tested='', untested='')  # fmt: skip
    return empty | dict(system=system, metric=metric, subset=subset, value=value) | more


def published(system, metrics, protocol='evil', verified=True, **more):
    return dict(system=system, data_set='vqax', protocol=protocol, set='correct', metrics=metrics, source='A, 2021',
                verified=verified, unverified=(), note='') | more  # fmt: skip


def comparison(**more):
    rows = [
        row(FIRST, 's_t', 0.8, n=100, ci95=(0.75, 0.85)),
        row(FIRST, 'cider', 0.9),
        row(FIRST, 'spice', None, reason='needs <CoreNLP>'),
        row(FIRST, 's_o_fast', 0.4),
        row(SECOND, 's_t', 0.7, n=100, delta=-0.1, p_holm=0.2, tested='randomisation'),
        row(SECOND, 'cider', 1.1, n=70, delta=0.2, delta_ci95=(0.1, 0.3), p_bootstrap=0.001, p_randomisation=0.0002,
            p_holm=0.0004, tested='randomisation', sd=0.012, runs=3),
        row(SECOND, 'spice', None, reason='needs <CoreNLP>'),
        row(SECOND, 's_o_fast', 0.5, runs=3),
        row(FIRST, 'cider', 0.85, subset='all'),
        row(FIRST, 'cider', 0.1, subset='class=neutral'),
    ]  # fmt: skip
    made = {
        'protocols': [
            {
                'name': 'evil',
                'about': 'raw texts',
                'rows': rows,
                'signatures': {s: {'cider': f'metric:cider|tok:none|predictions:{s}s'} for s in (FIRST, SECOND)},
            }
        ],
        'published': [
            published('PJ-X', {'s_t': 0.764, 's_e_human': 0.654}),
            published(
                'PJ-X', {'cider': 0.827, 'bertscore': 0.846}, unverified=('bertscore',), source='A, 2021, Table 11'
            ),
            published('Later', {'cider': 1.106}, protocol='nlxgpt', note='other rules'),
            published('Doubtful', {'cider': 0.5}, verified=False),
        ],
        'meanings': {'nlxgpt': 'lower case, no full stops'},
        'settings': {'bootstrap': 1000, 'trials': 10_000, 'seed': 0},
    }
    return made | more


def example(**more):
    return {'id': 'q1', 'text': 'Is it red?', 'answer': 'yes', 'gold': {'yes': 1.0}, 'correct': 1.0} | more


def two(i=0, **more):
    other = {'system': SECOND, 'answer': 'no', 'explanation': 'it is a Blue, round ball', 'correct': 0.0}
    return example(id=f'q{i}', system=FIRST, explanation='it is a red ball', others=[other | more])


def write(path, **more):
    score = {'value': 0.8, 'n': 100, 'signature': 'metric:s_t'}
    values = dict(title='run', scores={'all': {'s_t': score}}, baselines={}, curves=(), examples=[two()], provenance={},
                  comparison=comparison())  # fmt: skip
    report.write_report(path, **(values | more))
    return path.read_text(encoding='utf-8')


def data(text):
    return json.loads(Page(text).inside['script'][0])


def test_a_board_for_each_protocol_and_set():
    given = comparison()
    given['protocols'].append(given['protocols'][0] | {'name': 'coco'})
    boards = leaderboard.boards(given)
    assert [(b['protocol'], b['subset']) for b in boards] == [
        ('evil', 'main'),
        ('evil', 'all'),
        ('coco', 'main'),
        ('coco', 'all'),
    ]
    assert boards[1]['metrics'] == ['cider'] and boards[1]['published'] == []
    assert boards[2]['published'] == [], 'published rows stand under their own protocol'


def test_systems_are_ranked_by_s_o_and_published_rows_are_no_part_of_it():
    board = leaderboard.boards(comparison())[0]
    assert board['ranked'] == 's_o_fast' and [r['system'] for r in board['rows']] == [SECOND, FIRST]
    assert [r['baseline'] for r in board['rows']] == [False, True] and board['baseline'] == FIRST
    assert board['metrics'] == ['s_t', 'cider', 's_o_fast'], 'spice has no value anywhere'
    assert board['signatures'][SECOND] == {
        's_t': '',
        'cider': 'metric:cider|tok:none|predictions:seconds',
        's_o_fast': '',
    }
    assert [(r['n'], r['total']) for r in board['rows']] == [(70, 100), (80, 100)]
    assert [r['system'] for r in board['published']] == ['PJ-X', 'Doubtful']


@pytest.mark.parametrize('names,wanted', [
    (['s_t', 's_o_fast', 's_o_auto', 'cider'], 's_o_auto'),
    (['s_o_fast', 's_o_auto_without_spice_bertscore'], 's_o_auto_without_spice_bertscore'),
    (['s_o_auto', 's_o_human', 's_o_true'], 's_o_human'),
    (['cider', 's_t'], 's_t'),
])  # fmt: skip
def test_the_best_evidence_ranks(names, wanted):
    rows = [row(FIRST, name, 0.5) for name in names]
    (board,) = leaderboard.boards({'protocols': [{'name': 'evil', 'rows': rows}]})
    assert board['ranked'] == wanted


def test_a_system_without_the_ranking_score_comes_last():
    rows = [row(FIRST, 's_t', None, reason='r'), row(SECOND, 's_t', -0.5)]
    (board,) = leaderboard.boards({'protocols': [{'name': 'evil', 'rows': rows}]})
    assert [r['system'] for r in board['rows']] == [SECOND, FIRST]


def test_published_rows_of_one_system_are_put_together_unless_they_contradict():
    rows = leaderboard.merged(comparison()['published'])
    assert [r['system'] for r in rows] == ['PJ-X', 'Later', 'Doubtful']
    assert rows[0]['metrics'] == {'s_t': 0.764, 's_e_human': 0.654, 'cider': 0.827, 'bertscore': 0.846}
    assert rows[0]['unverified'] == ['bertscore'] and rows[0]['source'] == 'A, 2021; A, 2021, Table 11'
    assert rows[2]['unverified'] == ['cider']
    twice = [published('X', {'cider': 1.0}), published('X', {'cider': 1.2}, source='B, 2022')]
    assert [r['metrics']['cider'] for r in leaderboard.merged(twice)] == [1.0, 1.2]
    assert leaderboard.sources(rows)[1] == ('A, 2021 (other rules)', 'Later')


def test_what_readers_look_for_stands_first_and_then_the_score_that_ranks():
    names = ['s_t', 's_e_auto', 's_o_auto', 's_o_fast', 'accuracy', 'bleu1', 'bleu4', 'cider', 'meteor', 'own']
    given = {'protocols': [{'name': 'evil', 'rows': [row(FIRST, name, 0.5) for name in names]}]}
    given['published'] = [published('X', {'spice': 0.2, 's_o_human': 0.5}), published('rated', {'s_e_human': 0.8})]
    (shown,) = leaderboard.section(given)['boards']
    assert [name for name, _ in shown['columns']][:7] == [
        metric_names.name(m) for m in ('s_t', 'bleu4', 'meteor', 'cider', 'spice', 's_e_auto', 's_o_auto')
    ]
    assert [p for p, ranks in enumerate(r for _, r in shown['columns']) if ranks] == [6]
    assert len(shown['columns']) == len(names) + 2
    assert [r['system'] for r in shown['published']] == ['X'], 'a row without a number in sight'
    assert [r['system'] for r in leaderboard.section(given)['elsewhere']['rows']] == ['rated']


def test_the_test_that_was_made_is_the_one_that_the_page_names(tmp_path):
    rows = [row(FIRST, 's_t', 0.5), row(SECOND, 's_t', 0.4, delta=-0.1, p_holm=0.2, tested='bootstrap')]
    given = {'protocols': [{'name': 'evil', 'rows': rows}], 'settings': {'bootstrap': 10, 'trials': 10}}
    text = Page(write(tmp_path / 'r.html', comparison=given)).text
    assert 'by paired bootstrap, corrected' in text and 'randomisation' not in text


def test_signatures_of_all_answers_are_their_own():
    given = comparison()
    given['protocols'][0]['signatures_all'] = {FIRST: {'cider': 'metric:cider|set:all'}}
    main, everything = leaderboard.boards(given)
    assert main['signatures'][FIRST]['cider'] == 'metric:cider|tok:none|predictions:firsts'
    assert everything['signatures'][FIRST] == {'cider': 'metric:cider|set:all'}


def test_the_page_shows_intervals_differences_p_values_and_marks_published_numbers(tmp_path):
    text = write(tmp_path / 'r.html')
    page = Page(text)
    for wanted in ('0.750 to 0.850', '+0.200, p <0.001', '-0.100, p 0.200', '± 0.012', '70 of 100',
                   '3 runs', 'all scores tok:none', 'second predictions:seconds', 'published, protocol nlxgpt',
                   'unverified', 'A, 2021, Table 11', 'lower case, no full stops', 'baseline',
                   'by approximate randomisation (10,000 trials), corrected',
    ):  # fmt: skip
        assert wanted in page.text, wanted
    assert 'not computed' not in page.text.replace('not computed here', '')
    board = text.partition('<table class="board">')[2].partition('</table>')[0]
    bodies = board.split('<tbody')[1:]
    assert 'published' not in bodies[0] and FIRST in bodies[0] and bodies[1].count('>published</span>') == 2
    assert 'Later' not in board
    assert 'p by bootstrap 0.001, p by randomisation &lt;0.001' not in board
    assert 'p by randomisation &lt;0.001, not corrected' in board and 'difference +0.100 to +0.300' in board


def test_a_report_of_one_system_has_no_comparison(tmp_path):
    page = Page(write(tmp_path / 'r.html', comparison=None, examples=[example()]))
    assert 'Systems compared' not in page.text and not any(a.get('id') == 'scatter-plot' for _, a in page.tags)
    assert 'scatter' not in json.loads(page.inside['script'][0])


def test_policy_ids_and_names(tmp_path):
    text = write(tmp_path / 'r.html')
    page = Page(text)
    policy = next(a['content'] for _, a in page.tags if a.get('http-equiv') == 'Content-Security-Policy')
    assert len(page.inside['script']) == 2 and 'innerHTML' not in text
    digest = base64.b64encode(hashlib.sha256(page.inside['script'][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy and 'unsafe' not in policy
    ids = [a['id'] for _, a in page.tags if 'id' in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert 'style' not in attributes and not any(name.startswith('on') for name in attributes)
        assert re.match(r'#|data:|$', attributes.get('href', '')), attributes
        if tag == 'svg':
            assert attributes.get('aria-hidden') == 'true' or attributes.get('aria-label')
    for control in re.findall(r'<(?:select|input)[^>]*>', text):
        before = text[: text.index(control)]
        assert before.rfind('<label') > before.rfind('</label>'), control


def attacked(attack):
    rows = [row(attack, 's_t', 0.5), row(attack, attack, 0.5), row('b', 's_t', None, reason=attack)]
    return dict(
        comparison={
            'protocols': [{'name': attack, 'about': attack, 'rows': rows, 'signatures': {attack: {'s_t': attack}}}],
            'published': [
                published(attack, {'s_t': 0.5}, protocol=p, source=attack, note=attack) for p in (attack, 'x')
            ],
            'meanings': {'x': attack},
            'points': {'ids': [attack], 'values': {attack: {attack: [0.5]}}},
            'human': [{'metric': attack, 'data_set': attack, 'rho': 0.1, 'source': attack}],
        },
        examples=[two(system=attack, answer=attack, explanation=attack)],
    )


@pytest.mark.parametrize('attack', ATTACKS)
def test_untrusted_text_stays_text(tmp_path, attack):
    plain = Page(write(tmp_path / 'plain.html', **attacked('harmless')))
    page = Page(write(tmp_path / 'r.html', **attacked(attack)))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags], 'the text made or broke an element'
    assert page.inside['script'][1] == plain.inside['script'][1]
    assert attack in page.text and '49' not in page.text


def test_scatter_has_systems_and_a_capped_number_of_examples():
    n = 14_740
    points = {
        'ids': [f'id{i}' for i in range(n)],
        'values': {FIRST: {'cider': [0.123456] * n, 'meteor': [float('nan')] * n}},
    }
    found = leaderboard.data(comparison(points=points))
    systems, _, examples = found['clouds']
    assert systems['name'] == 'systems, protocol evil, explanations of right answers'
    assert systems['labels'] == [SECOND, FIRST] and systems['values']['cider'] == [1.1, 0.9]
    assert examples['name'] == 'examples of first' and examples['labels'][1] == 'id8'
    assert len(examples['labels']) == len(examples['values']['cider']) == 1843 <= leaderboard.MOST_POINTS
    assert examples['values']['cider'][0] == 0.1235 and examples['values']['meteor'][0] is None
    assert found['note'] == '1,843 of 14,740 examples are drawn.'
    assert found['names'] == {'s_t': 'S_T answers right', 's_o_fast': 'S_O both (ROUGE-L and CIDEr)',
                              'meteor': 'METEOR', 'cider': 'CIDEr-D'}  # fmt: skip
    with pytest.raises(ValueError, match="'first': 1 values of cider for 2 ids"):
        leaderboard.data(comparison(points={'ids': ['a', 'b'], 'values': {FIRST: {'cider': [1.0]}}}))


def test_agreement_with_people_beside_the_published_one(tmp_path):
    human = [
        {
            'metric': 'cider',
            'data_set': 'vqax',
            'rho': 0.25,
            'ci95': (0.1, 0.4),
            'p': 0.0001,
            'n': 1234,
            'source': None,
        },
        {'metric': 'cider', 'data_set': 'vqax', 'rho': 0.404, 'ci95': None, 'p': None, 'n': None, 'source': 'Table 6'},
        {'metric': 'cider', 'data_set': 'vcr', 'rho': 0.093, 'source': 'Table 6', 'significant': False},
        {'metric': 'meteor', 'data_set': 'pooled', 'rho': None, 'source': None},
    ]
    text = write(tmp_path / 'r.html', comparison=comparison(human=human)).partition('id="agreement"')[2]
    rows = [Page(r).text for r in re.findall(r'(?s)<tr>.*?</tr>', text.partition('</table>')[0])]
    assert rows[1].startswith('METEOR') and rows[1].endswith('– – –')
    assert rows[2] == 'CIDEr-D 0.250 0.100 to 0.400, p <0.001, n = 1,234 – –'
    assert rows[3] == 'CIDEr-D published 0.404 0.093 n.s. –'


def test_examples_carry_what_every_system_said(tmp_path):
    (row,) = data(write(tmp_path / 'r.html'))['examples']
    assert row['system'] == FIRST and row['others'] == [
        {'system': SECOND, 'answer': 'no', 'explanation': 'it is a Blue, round ball', 'correct': 0.0, 'true': None}
    ]
    (row,) = data(write(tmp_path / 'r.html', examples=[two(answer=None, explanation=None, correct=None)]))['examples']
    assert row['others'][0]['answer'] == '' and row['others'][0]['correct'] is None


def test_a_large_comparison_stays_a_small_page(tmp_path):
    ids = [f'id{i}' for i in range(14_740)]
    points = {'ids': ids, 'values': {s: {m: [0.1234] * 14_740 for m in 'abcdefgh'} for s in (FIRST, SECOND, 'third')}}
    text = write(
        tmp_path / 'r.html', comparison=comparison(points=points), examples=[two(i) for i in range(300)], total=14_740
    )
    assert len(text) < 1_000_000 and '300 of the 14,740' in Page(text).text


# Stands in for a reader: presses a key in the scatter, sorts a board, filters the examples.
READER = """
const press = new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true});
document.getElementById('scatter-plot').dispatchEvent(press);
document.querySelectorAll('.board thead button')[0].click();
const differ = document.getElementById('differ');
differ.value = 'correct';
differ.dispatchEvent(new Event('input', {bubbles: true}));
"""


def test_in_a_browser_boards_sort_points_speak_and_differences_are_marked(browser, tmp_path):
    path = tmp_path / 'r.html'
    agree = two(1, answer='yes', correct=1.0)
    write(path, examples=[two(0), agree, *attacked(ATTACKS[1])['examples']])
    shown = page_reader.read(browser, path, READER)
    page = Page(shown)
    assert sum(tag == 'circle' for tag, _ in page.tags) == 2
    assert 'second: S_T answers right 0.7, CIDEr-D 1.1 (1 of 2)' in page.text
    board = shown.partition('<table class="board">')[2].partition('</table>')[0]
    order = re.findall(r'<tr data-row=""[^>]*><th scope="row">([\w-]+)', board)
    assert order == [FIRST, SECOND, 'PJ-X', 'Doubtful'], 'by S_T, ours apart from published ones'
    assert board.count('aria-sort="descending"') == 1
    articles = shown.split('<article')[1:]
    assert '1–2 of 2' in page.text and len(articles) == 2 and 'id q1' not in page.text
    assert '<p>it is a <mark>Blue, round</mark> ball</p>' in articles[0]
    assert '<mark>&lt;img src=x onerror=alert(1)&gt;</mark>' in articles[1]
    assert not any(tag == 'img' for tag, _ in page.tags)
