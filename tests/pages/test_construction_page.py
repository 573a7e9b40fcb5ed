"""report.html and DATASHEET.md of a construction: what stands on them, parts that are missing, hostile texts."""

import math
import re

import built_pairs
import pytest
from page_parser import Page

from evil_jax.pages import _datasheet, _new_labels, _pair_filters, _value_bars, construction

ATTACK = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>{{ 777 * 3 }}<!--\u2028`|*a*['


def section(text, name):
    return text.partition(f'<section id="{name}"')[2].partition('</section>')[0]


def rows(html):
    return [Page('<tr' + row.partition('</tr>')[0]).text for row in html.split('<tr')[1:]]


def test_merged_pairs_stand_beside_published_ones_and_dropped_rows_have_reasons():
    text = construction.render(built_pairs.report())
    found = rows(section(text, 'merged'))
    assert found[1] == 'train 2,700 900 33.3 % 1,000 37.0 % 800 29.6 % 529,527 529,527 the same'
    assert found[2].endswith('17,000 17,858 −858')
    assert found[3:] == ['reason no split train dev together', 'no label 7 0 0 7', 'no explanation 0 2 1 3']
    assert '12 pairs are about pictures without captions' in text
    assert '/secret/place' not in text and rows(section(text, 'files'))[1] == 'pairs snli_1.0_dev.jsonl 10,000 abc123'


def test_new_labels_are_told_and_annotators_named_on_the_page_alone():
    report = built_pairs.report()
    text = section(construction.render(report), 'relabelled')
    said = Page(text).text
    assert 'changed 30, 35.0 % [25.0, 45.0] of the pairs with a majority' in said and 'not met 2' in said
    assert 'neutral (pairs 90, changed 30)' in said and 'mean 50.0 % [40.0, 60.0]' in said
    assert rows(text)[1] == 'w77 80 40.0 % –'
    assert _new_labels.text({'mean': [0.5, None, None], 'full': None}) == 'mean 0.5, full none'
    found = construction.render({'relevance': {'explanations': 1200, 'mean': [0.5, 0.4, 0.6]}})
    assert 'explanations 1,200 mean 50.0 % [40.0, 60.0]' in Page(section(found, 'relevance')).text
    sheet = construction.datasheet(report)
    assert '* raters: 1\n' in sheet and 'w77' not in sheet


def test_the_funnel_leads_from_merged_to_kept():
    report = built_pairs.report()
    text = section(construction.render(report), 'funnel')
    found = rows(text)
    assert found[1].startswith('merged 2,700 900 33.3 % 1,000')
    assert found[2].startswith('after false_neutral 2,450 900') and found[3].startswith('after keywords 2,436 899')
    assert sum(report['kept']['train'].values()) == 2436, 'the last step is what is kept'
    assert 'aria-label="contradiction 899, neutral 740, entailment 797"' in text
    widths = [float(w) for w in re.findall(r'class="k\d" x="[\d.]+" width="([\d.]+)"', text)]
    assert sum(widths[:3]) == pytest.approx(100, abs=0.1) and sum(widths[6:9]) == pytest.approx(90.2, abs=0.1)
    alone = [row for row in found if row.startswith('false_neutral')]
    assert alone == ['false_neutral train 1,000 250 25.0 % 0 250 25.0 % 0 240']
    # Without the steps in between, both ends are still there.
    bare = [{k: v for k, v in each.items() if k != 'first'} for each in report['filters']]
    found = rows(section(construction.render(report | {'filters': bare}), 'funnel'))
    assert found[1].startswith('merged 2,700') and found[2].startswith('kept 2,436')


def test_each_filter_shows_settings_values_and_how_right_it_is():
    text = construction.render(built_pairs.report())
    first, second = (section(text, f'filter-{n}') for n in (1, 2))
    said = Page(first).text
    assert 'Removed 250 of the 1,000 pairs that it looks at, 25.0 %. 5 could not be measured and stay.' in said
    assert 'source e-ViL 4.1 removes above 2 splits train classes neutral' in said
    assert '2 to 3: contradiction 0, neutral 1, entailment 0' in first and 'threshold 2' in said
    assert 'share of pairs kept, by threshold' in said and 'errors among the kept pairs' in said
    checked = [row for row in rows(first) if row.startswith(('wrong labels', 'neutral', 'bad'))]
    assert [row.split(' 80.0 %')[0] for row in checked] == ['wrong labels', 'neutral'], 'nothing of none'
    assert checked[1].endswith('30 20 with the error, 20 removed, 16 both')
    assert 'words synonym, sentence splits all splits' in Page(second).text and '<svg class="chart"' not in second
    assert 'This <mark>SENTENCE</mark> is a <mark>synonym</mark>.' in second and '<mark>' not in first
    assert [row for row in rows(first) if 'A dog runs' in row] == ['A dog runs. 0.01 0.04 0.95']
    assert 'A hound. – – –' in rows(first)
    errors = rows(section(text, 'errors'))
    assert errors[1:] == ['wrong labels 39.0 % [29.0, 49.0] 24.0 % [14.0, 34.0]', 'neutral 60.0 % [50.0, 70.0] –']
    assert '3 rows of the file are not filled in' in text and 'step=annotate' not in text
    unchecked = [each | {'checked': None} for each in built_pairs.report()['filters']]
    text = construction.render(built_pairs.report(filters=unchecked, errors=None, checked=None))
    assert 'construct.step=annotate' in section(text, 'errors')


def test_words_are_marked_once_where_they_overlap():
    assert _pair_filters.pieces('rephrasing', [(0, 7), (2, 10)]) == [('rephras', True), ('ing', True)]
    row = built_pairs.sample(explanation='')
    (shown,) = _pair_filters.section(1, built_pairs.condition('similarity', samples=[row]))['samples']
    assert [part for part, on in shown['hypothesis'] if on] == ['A', 'dog'] and shown['explanation'] == []


def test_a_histogram_stacks_classes_up_to_its_height():
    plot = _value_bars.histogram([0, 1, 2], {'neutral': [6, 0], 'entailment': [2, 1]}, 1.5)
    tall, short = (bar['parts'] for bar in plot['bars'])
    assert tall[-1]['y'] == plot['top'] and tall[0]['height'] == pytest.approx(3 * tall[1]['height'], abs=0.02)
    assert short[0]['place'] == 2 and short[0]['x'] > tall[0]['x'] and plot['limit_x'] > short[0]['x']
    assert _value_bars.histogram([0, 1], {'neutral': [0]}, 0.5) is None
    far = _value_bars.histogram([0, 1, 2], {'neutral': [10**6, 1]}, 5)
    assert far['limit_x'] is None and far['bars'][1]['parts'][0]['height'] == 1, 'one pair is seen too'


@pytest.mark.parametrize(
    'report', [{}, {'merged': {}, 'filters': []}, {'kept': {'dev': {}}}, {'filters': [{'name': 'a'}]}]
)
def test_nothing_but_what_is_there_is_shown(report):
    text = construction.render(report)
    links = re.findall(r'href="#([\w-]+)"', text)[1:]
    assert links == re.findall(r'<section id="([\w-]+)"', text) and 'None' not in Page(text).text
    sheet = construction.datasheet(report)
    assert 'None' not in sheet and sheet.count('## ') == 7


def test_the_datasheet_tells_counts_files_filters_and_leaves_blanks():
    sheet = construction.datasheet(built_pairs.report())
    assert '| train | 2,436 | 899 (36.9 %) | 740 (30.4 %) | 797 (32.7 %) |' in sheet
    assert '| train (published) | 401,717 | 29,783 |' in sheet and '| no explanation | 3 |' in sheet
    assert '| `pairs` | `snli_1.0_dev.jsonl` | 10,000 | `abc123` |' in sheet
    assert '| false\\_neutral | e-ViL 4.1 | removes above: 2; splits: train; classes: neutral | 250 (25.0 % of' in sheet
    assert '* wrong labels: 39.0 % [29.0, 49.0] before the filters, 24.0 % [14.0, 34.0] after' in sheet
    assert 'Command: `python -m evil_jax.main --mode=construct`' in sheet and '* evil\\_jax: 0.9' in sheet
    blanks = sheet.count(_datasheet.BLANK)
    assert blanks > 5 and f'{blanks} answers are for people to give' in sheet
    report = built_pairs.report()
    own = construction.datasheet(report | {'merged': report['merged'] | {'published': {}}})
    assert 'SNLI' in sheet and not re.search(r'(?<!e-)SNLI|Flickr', own) and own.count(_datasheet.BLANK) == blanks + 1


def test_untrusted_texts_stay_texts():
    hostile = lambda value: (
        ATTACK
        if isinstance(value, str)
        else [hostile(each) for each in value]
        if isinstance(value, list)
        else {name: hostile(each) for name, each in value.items()}
        if isinstance(value, dict)
        else value
    )
    report = hostile(built_pairs.report())
    report['filters'][0]['samples'][0]['value'] = math.nan
    report['merged']['dropped'][ATTACK] = {ATTACK: 3}
    report['merged']['counts'][ATTACK] = {'neutral': 1}
    report['relabelled'][ATTACK] = report['nli'][ATTACK] = report['versions'][ATTACK] = ATTACK
    page = construction.render(report)
    tags = {name for name, _ in Page(page).tags}
    assert (
        not tags & {'img', 'script', 'iframe'}
        and '2331' not in page
        and 'nan' not in Page(section(page, 'filter-1')).text
    )
    attributes = {name for _, attrs in Page(page).tags for name in attrs}
    assert not any(name == 'style' or name.startswith('on') for name in attributes)
    (policy,) = [attrs['content'] for _, attrs in Page(page).tags if 'http-equiv' in attrs]
    assert policy.startswith("default-src 'none'; img-src data:")
    sheet = construction.datasheet(report)
    assert '<script' not in re.sub('`[^`]*`', '', sheet) and '<img' not in sheet.replace('\\`', '')
    for line in sheet.splitlines():
        if line.startswith('| ') and 'pairs' not in line:
            assert re.sub(r'\\.', '', line).count('|') >= 3
