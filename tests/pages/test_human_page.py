"""report.html of a human study: every section says what the document has; parts that are missing; hostile texts."""

import json
import re

import page_reader
import pytest
import rated_explanations
from page_parser import Page

from evil_jax.pages import _disputes, _forest, _mixed_models, _rating_bars, human

ATTACK = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>{{ 777 * 3 }}<!--\u2028'


def page(**more):
    return human.page(rated_explanations.document(**more))


def section(text, name, part=None):
    found = text.partition(f'<section id="{name}"')[2].partition('</section>')[0]
    return found if part is None else found.partition(f'<h3>{part}</h3>')[2].partition('<h3>')[0]


def words(html):
    return Page(html).text


def rows(html):
    return [words('<tr' + row.partition('</tr>')[0]) for row in html.split('<tr')[1:]]


def test_scores_stand_beside_metrics_and_published_numbers():
    text = page()
    assert '3,391 of 3,600 ratings count. Raters: 61 ; from: the server .' in words(text)
    found = rows(section(text, 'scores', 'VQA-X'))
    counts = '298 explanations, 871 ratings, 2 lost all ratings'
    assert found[:4] == [
        'system S_T S_E S_O CIDEr-D BERTScore F1',
        f'A {counts} 0.800 0.660 0.630 to 0.690 0.528 0.508 to 0.548 0.800 0.870',
        f'B {counts} 0.800 0.560 0.530 to 0.590 0.448 0.428 to 0.468 0.750 –',
        f'gold explanations {counts} – 0.760 0.730 to 0.790 – – –',
    ]
    assert 'e-UG published 0.805 0.715 0.576 0.741 0.870 ? unverified' in found
    assert 'OFA-X large published 0.895' in found[found.index('Published: a study of another design; not rated here') :]
    assert 'A 0.660 0.661 0.670 0.680 61.0 % [57.0, 65.0] 15.0 % 46.0 % 39.0 %' in found, 'other ways to count'
    assert 'arXiv 2105.03761, Table 3' in section(text, 'scores', 'VQA-X')
    # The paper's last column is the mean over its data sets.
    every = rows(section(text, 'scores', 'all data sets'))
    assert [r for r in every if r.startswith('e-UG')] == ['e-UG published 0.766 0.685 0.526']
    assert every[1].startswith('A 3 data sets 0.800 0.670')


def test_one_set_without_task_scores_or_metrics():
    scores = rated_explanations.scores(sets=('mine',), systems=('A',))
    scores['scores'] = [
        row | {'s_t': None, 's_o': None, 's_o_ci95': None, 's_e_ci95': None} for row in scores['scores']
    ]
    scores['scores'].append(scores['scores'][0] | {'dataset': 'all', 'datasets': 1})
    text = human.page({'scores': scores})
    assert rows(section(text, 'scores'))[1].endswith('2 lost all ratings – 0.660 –'), 'its mean is not shown again'
    assert 'published' not in words(section(text, 'scores')).partition('gold')[2] and 'all data sets' not in text
    ids = re.findall(r'<section id="([\w-]+)"', text)
    assert ids == ['scores', 'ratings', 'shortcomings', 'agreement', 'raters', 'left-out']
    assert re.findall(r'href="#([\w-]+)"', text)[1:] == ids and 'Human judgement' in words(text)


def test_what_raters_said_stands_as_bars_and_numbers():
    text = page()
    found = rows(section(text, 'ratings', 'e-SNLI-VE'))
    assert found[1].startswith('A 871 ratings ') and found[1].endswith(' 10.0 % 7.0 % 28.0 % 55.0 %')
    assert found[-1].startswith('gold explanations published ') and found[-1].endswith(' 10.3 % 6.9 % 27.7 % 55.1 %')
    (label, *_) = re.findall(r'role="img" aria-label="(.*?)"', section(text, 'ratings'))
    assert label == 'no 10.0 %, weak no 7.0 %, weak yes 28.0 %, yes 55.0 %'
    parts = _rating_bars.row('A', {'no': 1 / 3, 'weak_no': 1 / 3, 'weak_yes': 1 / 3})['parts']
    assert [p['x'] for p in parts] == [0, 33.33, 66.66, 99.99] and parts[-1]['width'] == 0
    with pytest.raises(ValueError, match="A: share of the rating 'yes' is 55, wanted 0 to 1"):
        _rating_bars.row('A', {'yes': 55})
    wanting = rows(section(text, 'shortcomings', 'all data sets'))
    assert wanting[1] == 'A 16.0 % 25.0 % 7.0 %' and 'e-UG published 15.9 % 25.0 % 7.4 %' in wanting
    few = page(scores=rated_explanations.scores(sets=('vqax', 'vcr')))
    assert 'e-UG' not in section(few, 'shortcomings'), 'Table 5 is of three sets together'


def test_models_tell_what_differs():
    text = section(page(), 'statistics')
    assert '3,391 ratings; 3 systems, 890 items, 61 raters. Systems differ: χ²(2) = 100, p < 0.001' in words(text)
    found = rows(text)
    assert found[1] == 'A − B −0.3 [−0.7, 0.1] 0.019 0.001 *' and found[3].endswith('0.019 0.081')
    assert 'A − gold explanations −0.77 0.21 [−1.18, −0.36] <0.001' in found
    assert 'dataset vqax 0.31 0.1 [0.11, 0.51] 0.02' in found, 'no difference of systems'
    assert 'threshold no|weak_no −2.51 0.25' in ' '.join(found) and 'log-likelihood −1125.1' in words(text)
    nothing = dict(contrasts=[], coefficients=[], thresholds=[], sd={}, likelihood_ratio=None, log_likelihood=None)
    failed = rated_explanations.model(reason='one rater only', **nothing)
    text = section(page(statistics=[failed, rated_explanations.model(name='lmm')]), 'statistics')
    assert 'Not fitted: one rater only' in words(text) and text.count('<figure>') == 1
    vague = _mixed_models.section(rated_explanations.model(likelihood_ratio={'chi2': 1.0, 'df': 2, 'p': 0.6}))
    assert vague['systems'].startswith('Systems are not shown to differ: χ²(2) = 1, p = 0.6')


def test_a_forest_spans_all_intervals_and_zero():
    given = [('a', 2.0, [1.0, 3.0]), ('b' * 90, 4.0, [3.5, 4.5]), ('c', None, None), ('d', float('nan'), [0, 1])]
    plot = _forest.forest([dict(name=n, value=v, ci95=ci) for n, v, ci in given], 'title', 'points')
    a, b = plot['rows']
    assert plot['zero'] < a['low'] < a['x'] < a['high'] < b['low'] < b['high'] <= plot['width']
    assert a['x'] - a['low'] == pytest.approx(a['high'] - a['x'], abs=0.2) and a['sure']
    assert len(b['short']) == 50 and b['name'] == 'b' * 90 and plot['ticks'][0][1] == '0'
    many = [dict(name='m', value=1.0, ci95=[0.5, 2.0])] * 41
    assert _forest.forest(many, 'all', '')['title'] == 'all (the first 40 of 41)'
    assert _forest.forest([dict(name='c', value=None, ci95=None)], '', '') is None
    assert not _forest.forest([dict(name='c', value=0.0, ci95=[0.0, 0.0])], '', '')['rows'][0]['sure']


def test_agreement_raters_and_what_is_left_out():
    text = page()
    assert rows(section(text, 'agreement'))[1].startswith(
        'Krippendorff’s α, ordinal (his own metric) 0.310 [0.100, 0.400]'
    )
    undefined = {'dataset': 'vqax', 'name': 'fleiss', 'value': None, 'reason': 'no unit has two ratings'}
    alone = page(scores=rated_explanations.scores(agreement=[undefined]))
    assert 'none ? : no unit has two ratings' in words(section(alone, 'agreement'))
    assert 'r000000000001 VCR 4 74 6 0.71 −0.02 0.84 5 % 1 of 4 6.9' in rows(section(text, 'raters'))
    assert '3 raters.' in words(section(text, 'raters'))
    lonely = dict(dataset='vqax', rater='', pages=1, ratings=2, left_out=0, mean=0.5, bias=None, agreement=None,
                  wrong=None, checks=0, checks_failed=0, seconds=None)  # fmt: skip
    text = page(scores=rated_explanations.scores(raters=[lonely]))
    assert rows(section(text, 'raters')) == [
        'rater pages ratings left out mean bias agreement task answers wrong',
        'not known 1 2 0 0.50',
    ]
    assert [r.split()[:2] for r in rows(section(text, 'left-out'))[1:]] == [
        ['answered', 'otherwise'],
        ['failed', 'check'],
    ]
    assert 'n = 590' in section(text, 'metrics') and 'SPICE published' in words(section(text, 'metrics'))
    assert 'Cost: paid 412.50 , currency USD .' in words(text)


def test_pictures_are_numbered_and_a_bad_one_costs_its_card_alone(tmp_path):
    document = rated_explanations.document(tmp_path)
    broken = tmp_path / 'secret' / 'broken.jpg'
    broken.parent.mkdir()
    broken.write_text('no picture')
    document['disagreements'][3]['picture'] = str(broken)
    human.write_human(tmp_path / 'r.html', document)
    text = (tmp_path / 'r.html').read_text(encoding='utf-8')
    data = json.loads(Page(text).inside['script'][0])
    assert list(data['pictures']) == ['0', '1'] and str(tmp_path) not in text
    first, third = data['records'][0], data['records'][3]
    assert first['picture'] == '0' and first['boxes'] == [['person1', 0.25, 0.1, 0.75, 0.9]]
    assert third['picture'] is None and third['problem'] == 'broken.jpg is not a readable picture'
    assert first['ratings'][0]['said'] == ['no', 'yes'] and first['ratings'][0]['wanting'][0]
    nan = rated_explanations.disagreement(mean=float('nan'), boxes=[('a', -1, 0, 7, 1)])
    (row,) = _disputes.browser([nan])['records']
    assert row['means'][0] is None and row['boxes'] == [['a', 0, 0, 1, 1]]


READER = """
const texts = (selector) => [...document.querySelectorAll(selector)].map((n) => n.textContent);
const number = (selector) => document.querySelectorAll(selector).length;
note('first', [dom.by('count').textContent, number('#cards img'), number('#cards .places rect')]);
document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
note('second', dom.by('count').textContent);
dom.by('why').value = 'better';
dom.by('filters').dispatchEvent(new Event('input'));
note('better', texts('#cards .verdict span:first-child'));
dom.by('filters').reset();
dom.by('search').value = 'number 7 man';
dom.by('filters').dispatchEvent(new Event('input'));
note('searched', texts('#cards tbody tr'));
document.querySelectorAll('details').forEach((n) => { n.open = true; });
const head = document.querySelectorAll('.board .sort')[1];
head.click();
head.click();
note('sorted', texts('.board tbody:first-of-type tr th').slice(0, 2));
if (document.documentElement.scrollWidth > innerWidth) document.title = 'too wide';
document.body.style.width = '320px'; // a browser without a head is never so narrow
note('narrow', [...document.body.querySelectorAll('*')].filter((n) => !n.closest('.scroll, .skip, .hidden, svg, pre')
  && n.getBoundingClientRect().right > 321).map((n) => n.outerHTML.slice(0, 80)));
"""


def test_disagreements_are_found_and_nothing_untrusted_runs(browser, tmp_path):
    document = rated_explanations.document(tmp_path, title='w' * 80)
    said = {'rater': ATTACK, 'rating': ATTACK, 'shortcomings': [ATTACK], 'gold_rating': 'yes', 'gold_shortcomings': []}
    keys = ('item', 'system', 'dataset', 'explanation', 'gold_explanation', 'question', 'answer')
    evil = rated_explanations.disagreement(**dict.fromkeys(keys, ATTACK), ratings=[said])
    document['disagreements'].append(evil)
    document['statistics'].append(
        rated_explanations.model(name=ATTACK, title=ATTACK, formula=ATTACK, reason=ATTACK, notes=[ATTACK], unit=ATTACK)
    )
    document['scores']['raters'][0]['rater'] = ATTACK
    document['scores']['scores'].append(rated_explanations.row(ATTACK, ATTACK))
    document |= {'left_out': {ATTACK: 3}, 'cost': {ATTACK: ATTACK}, 'settings': {ATTACK: ATTACK}}
    path = tmp_path / 'r.html'
    human.write_human(path, document)
    text = path.read_text(encoding='utf-8')
    assert '2331' not in text and '<img src=x' not in text
    shown = page_reader.read(browser, path, page_reader.NOTE + READER)
    note = lambda name: page_reader.noted(shown, name)
    assert f'<title>{"w" * 80}</title>' in shown, 'nothing else ran, and a phone is wide enough'
    assert note('narrow') == []
    assert note('first') == ['1–6 of 10', 2, 2] and note('second') == '7–10 of 10'
    assert note('better') == ['liked better than gold'] * 4
    assert len(note('searched')) == 3 and note('searched')[2].startswith('r000000000002')
    assert [name[0] for name in note('sorted')] == ['B', 'A'], 'lowest S_E first'
