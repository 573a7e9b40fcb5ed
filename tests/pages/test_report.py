import base64
import hashlib
import json
import re
import subprocess

import numpy as np
import PIL.Image
import pytest
from page_parser import Page

from evil_jax.pages import report, sweep

ATTACKS = (
    '</script><script>document.title="broken"</script>',
    '<img src=x onerror="document.title=\'broken\'">',
    '--><svg onload=alert(1)>',
    '\u2028"; alert(1); //',
    '<!--<script>',
    '{{ 7 * 7 }}',
)


def score(value, n=100, **more):
    return {'value': value, 'n': n, 'signature': f'metric:m|n:{n}', **more}


SCORES = {
    'all': {'s_t': score(0.9, ci95=[0.85, 0.94]), 's_e_true': score(0.8, n=90), 's_o_true': score(0.72)},
    'correct': {'bleu4': score(0.25, n=90), 'cider': score(1.5, n=90), 'chrf': score(None, reason='no <sacrebleu>')},
    'class=neutral': {'s_t': score(0.7, n=33), 's_e_true': score(0.6, n=23)},
}
ROW = {'n': 33, 'correct': 23, 'accuracy': 0.7, 'mean': 0.7}
GROUPS = {'class': [{'group': 'class=neutral'} | ROW, {'group': 'all'} | ROW, {'group': 'macro'} | ROW]}
CURVES = [{'step': s, 'split': 'train', 'loss': 1 / (s + 1), 'lr': 0.1} for s in range(20)] + [
    {'step': 10, 'split': 'dev', 's_t': 0.5, 's_o_true': None}
]


def example(**more):
    return {'id': 'q1', 'text': 'Is it red?', 'answer': 'yes', 'gold': {'yes': 1.0}, 'correct': 1.0} | more


def write(path, **more):
    values = dict(
        title='tiny',
        scores=SCORES,
        baselines={},
        curves=CURVES,
        examples=[example()],
        groups=GROUPS,
        provenance={'predictions': 'p'},
    )
    report.write_report(path, **(values | more))
    return path.read_text(encoding='utf-8')


def data(text):
    return json.loads(Page(text).inside['script'][0])


def test_shows_scores_intervals_groups_signatures_and_curves(tmp_path):
    baselines = {'majority': {'all': {'s_t': score(0.36), 's_e_true': score(None, reason='explains nothing')}}}
    page = Page(write(tmp_path / 'r.html', baselines=baselines, total=1234))
    for wanted in ('0.900', '0.850 to 0.940', 'n = 90', '0.720', 'majority', '0.360', 'explains nothing', 'neutral',
                   '0.700', 'metric:m|n:33', 'no <sacrebleu>', '1.500', 'train loss', '1 of the 1,234'):  # fmt: skip
        assert wanted in page.text, wanted
    assert 'how often the answer is right' in page.text
    assert sum(tag == 'polyline' for tag, _ in page.tags) == 2
    assert 'lr' not in page.text.split()


def test_protocols_have_columns_of_their_own(tmp_path):
    more = {'coco': {'correct': {'bleu4': score(0.31, n=91)}}}
    page = Page(write(tmp_path / 'r.html', protocol='evil', protocols=more))
    assert 'right answers only, coco' in page.text and '0.310' in page.text and 'metric:m|n:91' in page.text
    assert 'right answers only, evil' in page.text and 'numbers of evil, coco do not compare' in page.text
    assert 'do not compare' not in Page(write(tmp_path / 'r.html')).text


def test_scores_without_any_value_stand_last(tmp_path):
    scores = {'all': {'s_e_auto': score(None, reason='r'), 's_t': score(0.9), 's_e_fast': score(0.5)}}
    table = write(tmp_path / 'r.html', scores=scores).partition('id="scores"')[2].partition('</table>')[0]
    names = re.findall(r'<th scope="row">([^<]*)', table)
    assert [n.split()[0] for n in names] == ['S_T', 'S_E', 'S_E'] and names[2] == 'S_E explanations, automatic'


def test_five_systems_stand_side_by_side_with_every_metric_and_sweeps(tmp_path):
    more = {'correct': {'meteor': score(0.21)}, 'class=neutral': {'s_t': score(0.123)}}
    baselines = {name: {'all': {'s_t': score(i / 10)}} | more for i, name in enumerate(('PJ-X', 'FME', 'RVT', 'QA'))}
    table = sweep.Table('task only against joint', ['model', 'task only'], [['FME', '0.600 ± 0.010 (n 3)']])
    text = write(tmp_path / 'r.html', baselines=baselines, sweeps=[table])
    details = text.partition('Every metric of every system')[2].partition('</table>')[0]
    assert re.findall(r'<th scope="col">(.*?)</th>', details) == ['metric', 'tiny', 'PJ-X', 'FME', 'RVT', 'QA']
    rows = {row.split('</th>')[0]: row.count('<td>') for row in details.split('<tr><th scope="row">')[1:]}
    assert set(rows.values()) == {5} and {'METEOR', 'BLEU-4', 'S_T answers right'} <= rows.keys()
    assert '0.210' in details and '0.123' not in details
    repeated = Page(text.partition('id="sweeps"')[2].partition('</section>')[0]).text
    assert 'Repeated runs' in repeated and 'task only against joint' in repeated
    assert 'FME 0.600\xa0±\xa00.010 (n 3)'.replace('\xa0', ' ') in repeated
    alone = write(tmp_path / 'r.html')
    assert 'Every metric of every system' not in alone and 'id="sweeps"' not in alone


def test_groups_are_counted_beside_their_scores(tmp_path):
    rows = re.findall(r'(?s)<tr>.*?</tr>', write(tmp_path / 'r.html').partition('id="groups"')[2])
    cells = [re.sub(r'\s+', ' ', re.sub(r'<[^>]+>', ' ', row)).strip() for row in rows[1:4]]
    assert cells[0].startswith('neutral 33 23 0.700 0.700') and '0.600' in cells[0]
    assert cells[1].startswith('all examples 33 23 0.700 0.900')
    assert cells[2].startswith('average of the groups 0.700 0.700')


def test_page_needs_no_network_and_its_policy_allows_only_its_own_script_and_style(tmp_path):
    text = write(tmp_path / 'r.html')
    page = Page(text)
    policy = next(a['content'] for _, a in page.tags if a.get('http-equiv') == 'Content-Security-Policy')
    for name, source in (('script', page.inside['script'][1]), ('style', page.inside['style'][0])):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and 'unsafe' not in policy
    for _tag, attributes in page.tags:
        assert 'style' not in attributes, 'the policy forbids style attributes'
        assert not any(name.startswith('on') for name in attributes)
        for name in ('src', 'href'):
            assert re.match(r'#|data:|$', attributes.get(name, '')), attributes
    assert 'http' not in page.inside['style'][0]
    assert page.inside['script'][1].count('http') == 1  # the name of the SVG name space
    assert 'innerHTML' not in text


def test_every_control_and_picture_has_a_name_and_ids_are_unique(tmp_path):
    page = Page(write(tmp_path / 'r.html'))
    ids = [a['id'] for _, a in page.tags if 'id' in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        if tag == 'svg':
            assert attributes.get('aria-hidden') == 'true' or attributes.get('aria-label')
    text = write(tmp_path / 'r.html')
    for control in re.findall(r'<(?:select|input)[^>]*>', text):
        before = text[: text.index(control)]
        assert before.rfind('<label') > before.rfind('</label>'), control


def attacked(attack):
    return dict(
        title=attack,
        groups={attack: [{'group': f'class={attack}'} | ROW]},
        scores={'all': {'s_t': score(0.5), attack: score(0.5)}, f'class={attack}': {'s_t': score(None, reason=attack)}},
        baselines={attack: {'all': {'s_t': score(0.1)}}},
        provenance={attack: attack},
        examples=[
            example(id=attack, text=attack, answer=attack, gold={attack: 0.3}, answer_scores={attack: 0.9})
            | {'classes': [attack], 'boxes': [[0, 0, 9, 9]], 'explanation': attack, 'references': [attack]}
            | {'choices': [{'text': attack, 'gold': i == 0, 'predicted': i == 1} for i in range(4)]}
        ],
    )


@pytest.mark.parametrize('attack', ATTACKS)
def test_untrusted_text_stays_text(tmp_path, attack):
    plain = Page(write(tmp_path / 'plain.html', **attacked('harmless')))
    text = write(tmp_path / 'r.html', **attacked(attack))
    page = Page(text)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags], 'the text made or broke an element'
    assert page.inside['script'][1] == plain.inside['script'][1]
    row = data(text)['examples'][0]
    assert row['explanation'] == row['text'] == row['answer'] == row['references'][0] == attack
    assert ' '.join(attack.split()) in page.text


def test_picture_is_embedded_once_and_its_path_is_not_told(tmp_path):
    picture = tmp_path / 'secret_folder_name.png'
    PIL.Image.fromarray(np.random.default_rng(0).integers(0, 255, (600, 800, 3), np.uint8)).save(picture)
    rows = [example(id=str(i), picture=picture, boxes=np.array([[1, 2, 30, 40]], np.float32)) for i in range(3)]
    text = write(tmp_path / 'r.html', examples=rows)
    found = data(text)
    assert list(found['pictures']) == ['0'] and found['pictures']['0'].startswith('data:image/webp;base64,')
    assert [r['picture'] for r in found['examples']] == ['0'] * 3
    assert found['examples'][0]['size'] == [800, 600] and found['examples'][0]['boxes'] == [[1, 2, 30, 40]]
    assert 'secret_folder_name' not in text


def test_missing_and_broken_pictures_are_said(tmp_path):
    broken = tmp_path / 'broken.png'
    broken.write_bytes(b'not a picture')
    rows = [example(id='a', boxes=[[1, 2, 30, 40]]), example(id='b', picture=broken), example(id='c')]
    a, b, c = data(write(tmp_path / 'r.html', examples=rows))['examples']
    assert a['picture'] is None and 'no picture' in a['problem'] and a['size'] == [30, 40]
    assert b['picture'] is None and 'not a readable picture' in b['problem']
    assert str(tmp_path) not in b['problem']
    assert c['boxes'] == [] and c['size'] == [4, 3]
    (told,) = data(write(tmp_path / 'r.html', examples=[example(problem='it could be either')]))['examples']
    assert told['problem'] == 'it could be either'


def test_few_facts_are_enough(tmp_path):
    text = write(
        tmp_path / 'r.html', scores={'all': {'s_t': score(None, n=0, reason='no examples')}}, curves=(), examples=[]
    )
    assert 'no examples' in Page(text).text and 'id="training"' not in text
    row = data(write(tmp_path / 'r.html', examples=[{'id': 'x', 'text': 't', 'answer': ''}]))['examples'][0]
    assert row['correct'] is None and row['true'] is None and row['gold'] == []


def test_an_interrupted_write_leaves_the_old_page(tmp_path):
    path = tmp_path / 'r.html'
    old = write(path)
    with pytest.raises(ValueError):
        write(path, examples=[example(correct=float('nan'))])
    assert path.read_text(encoding='utf-8') == old and [p.name for p in tmp_path.iterdir()] == ['r.html']


@pytest.mark.parametrize('scores,kind', [
    ({'s_e_fast': score(0.3), 's_e_true': score(0.5)}, 'true'),
    ({'s_e_fast': score(0.3), 's_e_true': score(None, reason='r'), 's_e_auto': score(None, reason='r')}, 'fast'),
    ({'s_e_human': score(0.5), 's_e_true': score(0.5)}, 'human'),
    ({'s_t': score(0.5)}, None),
])  # fmt: skip
def test_best_evidence_makes_the_headline(scores, kind):
    assert report.kind_of_explanation_score({'all': scores}) == kind


def dom(browser, path):
    """The document after its script ran."""
    command = [browser, '--headless', '--no-sandbox', '--disable-gpu', '--dump-dom', path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_in_a_browser_the_examples_appear_and_nothing_untrusted_runs(browser, tmp_path):
    rows = [attacked(a)['examples'][0] | {'id': f'id-{i}'} for i, a in enumerate(ATTACKS)]
    write(tmp_path / 'r.html', examples=rows)
    shown = dom(browser, tmp_path / 'r.html')
    assert '<title>tiny: scores and explanations</title>' in shown
    page = Page(shown)
    assert sum(tag == 'article' for tag, _ in page.tags) == len(ATTACKS)
    assert not any(tag == 'img' or any(n.startswith('on') for n in a) for tag, a in page.tags)
    assert len(page.inside['script']) == 2
    assert f'1–{len(ATTACKS)} of {len(ATTACKS)}' in page.text
    choices = re.findall(r'(?s)<ol class="choices">.*?</ol>', shown)
    assert len(choices) == len(ATTACKS)
    for html_of_choices in choices:
        items = html_of_choices.split('<li')[1:]
        assert [('>gold<' in i, '>predicted<' in i) for i in items] == [(True, False), (False, True)] + [
            (False, False)
        ] * 2
    for i, attack in enumerate(ATTACKS):
        assert f'id id-{i}' in page.text and ' '.join(attack.split()) in page.text
