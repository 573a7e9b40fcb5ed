import base64
import csv
import hashlib
import io
import re
import xml.etree.ElementTree

import page_reader
import pytest
from page_parser import Page

from evil_jax.pages import chart, faithfulness

ATTACK = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&_%'


def metric(value, low=None, high=None, better='lower', **more):
    return {'value': value, 'better': better} | ({'ci95': [low, high]} if low is not None else {}) | more


def document(**more):
    line = lambda last: [[0, 0.9], [0.5, (0.9 + last) / 2], [0.9, last]]
    both = lambda a, b: {'positive': line(a), 'negative': line(b)}
    methods = {
        'generic': {
            'metrics': {'auc_positive': metric(16.041, 15, 17, n=90), 'auc_negative': metric(55, 53, 57, 'higher')}
        },
        'rollout': {'metrics': {'auc_positive': metric(20.05, 19, 23), 'auc_negative': metric(53.1, 50, 56, 'higher')}},
        'full_lrp': {'metrics': {'auc_positive': metric(None, reason='no rules for this model')}},
        'random': {'metrics': {'auc_positive': metric(24, 22, 26), 'auc_negative': metric(50, 47, 52, 'higher')}},
    }
    for i, name in enumerate(('generic', 'rollout', 'random')):
        methods[name]['curves'] = both(0.1 * i, 0.8 - 0.1 * i)
    return {
        'title': 'digits', 'model': 'vit', 'data': 'test', 'protocol': 'chefer2020', 'n': 100, 'methods': methods,
        'settings': {'fill': 'black'}, 'axes': {'x': 'share removed', 'y': 'accuracy'}, 'signature': 'metric:auc|v:1',
    } | more  # fmt: skip


def write(folder, found=None):
    files = faithfulness.write_faithfulness(folder / 'p.html', document() if found is None else found)
    return (folder / 'p.html').read_text(encoding='utf-8'), files


def rows(text):
    return [
        re.sub(r'\s+', ' ', re.sub(r'<[^>]+>', ' ', row)).strip()
        for row in re.findall(r'(?s)<tr data-row.*?</tr>', text)
    ]


def test_a_table_of_methods_with_intervals_the_best_and_what_is_not_above_chance(tmp_path):
    text, files = write(tmp_path)
    assert [file.name for file in files] == ['p.html', 'p.csv', 'p.md', 'p.tex', 'p.svg']
    assert rows(text) == [
        'generic 16.04 [15.00, 17.00] n 90 best 55.00 [53.00, 57.00] best',
        'rollout 20.05 ° [19.00, 23.00] 53.10 ° [50.00, 56.00]',
        'full_lrp none ? : no rules for this model –',
        'random 24.00 [22.00, 26.00] 50.00 [47.00, 52.00]',
    ]
    page = Page(text)
    for wanted in (
        'model vit , data test , protocol chefer2020 , 100 examples, 4 methods.', 'metric:auc|v:1', 'fill black',
        'auc positive ↓ lower is better', 'auc negative ↑ higher is better', 'positive, accuracy',
    ):  # fmt: skip
        assert wanted in page.text, wanted
    # Bars begin at zero and end at the largest end of an interval.
    assert re.findall(r'width="([\d.]+)" height="8"/><rect class="interval"', text)[:3:2] == ['61.7', '77.12']


def test_curves_have_a_panel_each_and_a_method_looks_the_same_in_all(tmp_path):
    text, _ = write(tmp_path)
    panels = text.split('<figure>')[1:]
    assert len(panels) == 2
    for panel in panels:
        found = re.findall(r'data-method="(\w+)"><polyline class="line (c\d d\d)"', panel)
        assert found == [('generic', 'c0 d0'), ('rollout', 'c1 d0'), ('random', 'c5 d1')]
    assert '<title>rollout: 0.5 at 0.5</title>' in panels[0] and '<title>rollout: 0.7 at 0.9</title>' in panels[1]
    drawn = faithfulness.panels(document())[0]
    y = {float(p.split(',')[1]) for line in drawn['lines'] for p in line['points'].split()[:1]}
    assert len(y) == 1, 'all begin at the unperturbed accuracy'
    assert drawn['lines'][0]['points'].endswith(f',{chart.HEIGHT - chart.BOTTOM:.1f}'), 'zero lies on the axis'
    many = {str(i): {'curves': {'f1': [[5, 0.1], [80, 0.2 + i / 100]]}} for i in range(13)} | {'random': {}}
    styles = faithfulness.styles({'methods': many})
    assert len({(s['colour'], s['dash']) for s in styles.values()}) == 13 and 'random' not in styles


def test_a_drawing_of_its_own_is_svg_with_every_method(tmp_path):
    write(tmp_path)
    root = xml.etree.ElementTree.fromstring((tmp_path / 'p.svg').read_text(encoding='utf-8'))
    name = '{http://www.w3.org/2000/svg}'
    assert root.tag == f'{name}svg' and float(root.get('width')) == 920
    lines = list(root.iter(f'{name}polyline'))
    assert len(lines) == 6 and all(line.get('stroke').startswith('#') and line.get('fill') == 'none' for line in lines)
    texts = [node.text for node in root.iter(f'{name}text')]
    assert {'generic', 'rollout', 'random', 'positive, accuracy', 'negative, accuracy', 'share removed'} <= set(texts)
    for node in root.iter():
        assert not any('href' in key or key.startswith('on') for key in node.attrib)
    assert all(float(n.get('y')) <= float(root.get('height')) for n in root.iter(f'{name}text'))


def test_csv_has_every_number_in_full_precision():
    found = list(csv.DictReader(io.StringIO(faithfulness.csv(document()))))
    assert len(found) == 7 + 18
    first = found[0]
    assert (first['method'], first['kind'], first['name'], first['value']) == (
        'generic',
        'metric',
        'auc_positive',
        '16.041',
    )
    assert (first['ci95_low'], first['ci95_high'], first['n'], first['better']) == ('15', '17', '90', 'lower')
    assert [r['reason'] for r in found if r['method'] == 'full_lrp'] == ['no rules for this model']
    curve = [
        (r['x'], r['value']) for r in found if (r['method'], r['kind'], r['name']) == ('rollout', 'curve', 'positive')
    ]
    assert curve == [('0.0', '0.9'), ('0.5', '0.5'), ('0.9', '0.1')]
    attacked = {'methods': {'=1+1': {'metrics': {'@a': metric(-0.5)}}}, 'signature': '-x'}
    row = next(csv.DictReader(io.StringIO(faithfulness.csv(attacked))))
    assert (row['method'], row['name'], row['signature'], row['value']) == ("'=1+1", "'@a", "'-x", '-0.5')


def test_tables_for_readmes_and_papers():
    lines = faithfulness.markdown(document()).splitlines()
    assert lines[0] == '| method | auc positive ↓ | auc negative ↑ |' and lines[1] == '| --- | ---: | ---: |'
    assert lines[2] == r'| generic | **16.04** \[15.00, 17.00\] | **55.00** \[53.00, 57.00\] |'
    assert lines[3].count('°') == 2 and lines[4] == r'| full\_lrp | none |  |' and '**' not in lines[5]
    assert r'full\_lrp: no rules for this model' in '\n'.join(lines[6:])
    tex = faithfulness.latex(document())
    assert r'generic & \textbf{16.04} {\scriptsize [15.00, 17.00]} & \textbf{55.00}' in tex
    assert r'auc positive~$\downarrow$ & auc negative~$\uparrow$ \\' in tex and r'full\_lrp & -- & -- \\' in tex
    assert tex.count('{') == tex.count('}') and tex.isascii()
    attacked = faithfulness.latex({'methods': {r'\input{x} & % $_^': {'metrics': {'a_#': metric(1.0)}}}})
    assert r'\textbackslash{}input\{x\} \& \% \$\_\textasciicircum{} & 1.000' in attacked
    named = faithfulness.markdown(document(names={'auc_positive': 'AUC | <most first>'}))
    assert r'| method | AUC \| &lt;most first&gt; ↓ |' in named


def test_equal_looking_values_are_best_together_and_a_lonely_one_is_not():
    same = {m: {'metrics': {'f1': metric(v, better='higher')}} for m, v in (('a', 0.12341), ('b', 0.12339), ('c', 0.1))}
    best = lambda methods: [cells[0]['best'] for _, cells in faithfulness.table({'methods': methods}).rows]
    assert best(same) == [True, True, False]
    assert best({'a': same['a']}) == [False]
    neither = {m: {'metrics': {'f1': {'value': v}}} for m, v in (('a', 1.0), ('b', 2.0))}
    assert best(neither) == [False, False]


def test_few_facts_are_enough(tmp_path):
    text, files = write(tmp_path, {'methods': {}})
    assert 'No method was scored.' in Page(text).text and '0 methods' in Page(text).text and len(files) == 4
    only = {'methods': {'a': {'metrics': {'gap': metric(-0.5, -1, 0.25)}, 'curves': {}}, 'b': {'curves': {'f1': []}}}}
    text, files = write(tmp_path, only)
    assert rows(text) == ['a -0.500 [-1.000, 0.250]', 'b –'] and 'class="bar"' not in text
    assert len(files) == 4 and 'id="curves"' not in text, 'no curve has a point'
    one, files = write(tmp_path, {'methods': {'a': {'curves': {'f1': [[5, 0.1]]}}}})
    assert len(files) == 5 and '<title>a: 0.1 at 5</title>' in one


@pytest.mark.parametrize('content,message', [
    ({'metrics': {'f1': metric(float('nan'))}}, r'a: f1 is \[nan\], wanted finite'),
    ({'metrics': {'f1': metric(0.5, float('-inf'), 1)}}, r'a: f1 is \[0.5, -inf, 1\]'),
    ({'metrics': {'f1': metric(None)}}, 'a: f1 has neither a value nor a reason'),
    ({'metrics': {'f1': metric(0.5, better='higher')}}, r"metric 'f1' is better \['higher', 'lower'\]"),
    ({'metrics': {'g': metric(0.5, better='up')}}, r"metric 'g' is better \['up'\]: wanted 'lower' or 'higher'"),
    ({'curves': {'positive': [[0, 1], [0.1, float('nan')]]}}, "a: a point of the curve 'positive' is not finite"),
])  # fmt: skip
def test_bad_documents_are_refused_and_leave_what_was_there(tmp_path, content, message):
    old, _ = write(tmp_path)
    with pytest.raises(ValueError, match=message):
        write(tmp_path, {'methods': {'a': content, 'b': {'metrics': {'f1': metric(0.1)}}}})
    assert (tmp_path / 'p.html').read_text(encoding='utf-8') == old


def attacked(attack):
    content = {
        'metrics': {attack: metric(0.5, 0.4, 0.6), 'f1': metric(None, reason=attack)},
        'curves': {attack: [[0, 1]]},
    }
    facts = dict.fromkeys(('title', 'model', 'data', 'protocol', 'signature', 'note'), attack)
    return facts | {'methods': {attack: content}, 'settings': {attack: attack}, 'axes': {'x': attack, 'y': attack}}


def test_untrusted_text_stays_text_and_nothing_comes_from_outside(tmp_path):
    plain = Page(write(tmp_path, attacked('plain'))[0])
    text, _ = write(tmp_path, attacked(ATTACK))
    page = Page(text)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags], 'the text made or broke an element'
    assert page.inside['script'] == plain.inside['script']
    assert ATTACK in page.text and '49' not in page.text
    policy = next(a['content'] for _, a in page.tags if a.get('http-equiv') == 'Content-Security-Policy')
    for name in ('script', 'style'):
        digest = base64.b64encode(hashlib.sha256(page.inside[name][0].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    for tag, attributes in page.tags:
        assert 'style' not in attributes and not any(name.startswith('on') for name in attributes)
        assert tag != 'svg' or attributes.get('aria-hidden') == 'true' or attributes.get('aria-label')
        for name in ('src', 'href'):
            assert re.match(r'#|data:|$', attributes.get(name) or ''), attributes
    drawing = xml.etree.ElementTree.fromstring((tmp_path / 'p.svg').read_text(encoding='utf-8'))
    assert not [node for node in drawing.iter() if node.tag.endswith(('script', 'img'))]
    assert ATTACK in [node.text for node in drawing.iter()]


READER = """
document.querySelectorAll('.board thead button')[0].click();
document.querySelectorAll('.methods button')[1].dispatchEvent(new PointerEvent('pointerenter'));
document.querySelectorAll('.methods button')[2].click();
if (document.documentElement.scrollWidth > innerWidth) document.title = 'too wide';
"""


def test_in_a_browser_the_table_sorts_and_methods_stand_out(browser, tmp_path):
    write(tmp_path, document(title='w' * 80, signature='s' * 200))
    shown = page_reader.read(browser, tmp_path / 'p.html', READER)
    assert [row.split()[0] for row in rows(shown)] == ['random', 'rollout', 'generic', 'full_lrp']
    on = [a['data-method'] for tag, a in Page(shown).tags if tag == 'g' and a.get('class') == 'on']
    assert on == ['random', 'random'], 'the pressed one, in both panels; the pointer went on to it'
    assert 'too wide' not in shown.partition('<style>')[0], 'a phone shows it without scrolling sideways'
    assert shown.partition('<main>')[2].count('aria-pressed="true"') == 1 and '<body class="chosen">' in shown
