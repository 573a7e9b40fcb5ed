"""counterfactual.html: every section says what the document has; bad and hostile documents."""

import base64
import hashlib
import json
import re

import edited_questions
import pytest
from page_parser import Page

from evil_jax.pages import _colour_grid, _edited_records, _rates, _transitions, _word_tree, counterfactual

ATTACK = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>{{ 777 * 3 }}<!--\u2028'
RATE = {'k': 3, 'n': 10, 'images': 9, 'value': 0.3, 'ci95': [0.1, 0.6]}


def write(path, **more):
    counterfactual.write_counterfactual(path, edited_questions.document(**more))
    return path.read_text(encoding='utf-8')


def data(text):
    return json.loads(Page(text).inside['script'][0])


def section(text, name):
    return text.partition(f'<section id="{name}"')[2].partition('</section>')[0]


def words(html):
    return Page(html).text


def test_families_are_summed_up_with_intervals_and_baselines(tmp_path):
    document = edited_questions.document()
    text = write(tmp_path / 'c.html')
    assert (
        '3,000 edits of 3,000 questions' in Page(text).text and 'Model: vilt ; data: vqa v2, dev .' in Page(text).text
    )
    summary = section(text, 'summary')
    rows = [words(row) for row in summary.split('<tr data-row')[1:]]
    assert len(rows) == 6 and rows[0].startswith('> noun → more general ') and 'all edits' in rows[-1]
    sibling = next(r for r in document['summary']['families'] if r['family'] == 'sibling')
    (row,) = (r for r in rows if 'another of its kind' in r)
    share = sibling['flips']
    low, high = (f'{100 * end:.1f}' for end in share['ci95'])
    assert f'{100 * share["value"]:.1f} % [{low}, {high}]' in row
    assert f'{100 * sibling["difference"]["value"]:.1f} %'.replace('-', '−') in row and '90.0 %' in row
    assert re.search(r'kind \w+ → \w+ 619 457 pictures', row), 'an edit in words'
    assert 'asked again 0.0 %' in words(summary) and '1,000 of 3,000' in words(summary)


def test_rules_stand_in_words_with_what_they_rest_on(tmp_path):
    rules = section(write(tmp_path / 'c.html', folder=tmp_path), 'rules')
    assert 'Where grey is replaced by distant colours on average, the answer is kept.' in words(rules)
    card = rules.partition('<article')[2].partition('</article>')[0]
    assert rules.partition('<article')[0].count('4 rules, from 97 hypotheses') == 1
    first = edited_questions.document()['rules']['rules'][0]
    share = f'96.7 % 88 of 91, [{100 * first["low"]:.1f}, {100 * first["high"]:.1f}]'
    for wanted in (
        share,
        '84 pictures',
        'q 0.0053',
        'half that confirms 44 of 46',
        'worth 88 independent',
        'answer kept',
    ):
        assert wanted in words(card), wanted
    assert card.count('<li') == 3 and card.count('<del>grey</del>') == 3 and 'data-picture="0"' in card
    assert rules.count('unwarranted') == 1
    nothing = edited_questions.document()['rules'] | {'rules': [], 'unconfirmed': []}
    alone = section(write(tmp_path / 'c.html', rules=nothing), 'rules')
    assert 'No rule was found among 97 hypotheses. A rule needs 20 questions about 10 pictures' in words(alone)
    many = edited_questions.document()['rules']
    many = many | {'rules': many['rules'] * 40}
    assert section(write(tmp_path / 'c.html', rules=many), 'rules').count('<article') == 60
    assert '100 further ones stand in the file' in words(section(write(tmp_path / 'c.html', rules=many), 'rules'))


def test_the_truth_is_beside_what_the_model_does(tmp_path):
    found = words(section(write(tmp_path / 'c.html'), 'expectations'))
    assert 'What is right is known from the scene graph of the picture.' in found
    assert re.search(r'noun → more general 20.7 % \[[\d., ]+\] 117 of 566 – –', found)
    assert re.search(r'noun → another of its kind – 50.6 % \[[\d., ]+\] 313 of 619 50.2 %', found)
    summary = edited_questions.document()['summary']
    labels = {'labels': ['entailment', 'neutral'], 'counts': [[7, 3], [0, 5]], 'outside': 0}
    classes = summary | {'all': summary['all'] | {'labels': labels}}
    text = write(tmp_path / 'c.html', summary=classes)
    assert 'entailment 7 3 30.0 % 3 of 10 neutral 5 0.0 % 0 of 5' in words(section(text, 'expectations'))
    assert not section(text, 'transitions'), 'classes have a matrix already'


def test_colours_are_a_map_and_a_table(tmp_path):
    colours = section(write(tmp_path / 'c.html'), 'colours')
    assert 'grey → crimson: ' in colours and 'fill="#dc143c"' in colours and 'distances are ciede2000' in words(colours)
    assert re.findall(r'text-anchor="end">(\w+)<', colours) == [
        'black', 'grey', 'white', 'red', 'yellow', 'green', 'blue',
    ]  # fmt: skip
    table = colours.partition('<tbody>')[2]
    assert table.count('<tr>') == 35 and 'data-source="grey" data-target="gold"' in table


def test_cells_of_the_map_say_how_sure_they_are():
    cell = lambda source, target, n, low, high: dict(
        source=source, target=target, k=n, n=n, value=1.0, ci95=[low, high], distance=3.0
    )
    cells = [cell('red', 'blue', 50, 0.9, 1.0), cell('red', 'lime', 9, 0.5, 1.0), cell('blue', 'red', 2, 0.1, 1.0)]
    names = {'red': '#ff0000', 'lime': '#00ff00', 'blue': '#0000ff'}
    rows = [cell('red', '', 59, 0.9, 1) | {'target': None}]
    grid = _colour_grid.grid({'colours': names, 'cells': cells, 'rows': rows, 'support': 5})
    kinds = {(c['source'], c['target']): c['kind'] for c in grid['cells']}
    assert kinds == {('red', 'blue'): 'sure', ('red', 'lime'): 'wide', ('blue', 'red'): 'few'}
    assert [r['name'] for r in grid['rows']] == ['red', 'blue'] and len(grid['margin']) == 1
    assert [c['name'] for c in grid['columns']] == list(names) and grid['left_out'] == 0
    at = {c['target']: (c['x'], c['y']) for c in grid['cells']}
    assert at['lime'][0] < at['blue'][0] and at['lime'][1] == at['blue'][1] < at['red'][1]
    assert all(
        c['x'] + grid['size'] <= grid['width'] and c['y'] + grid['size'] <= grid['height'] for c in grid['cells']
    )
    many = {f'c{i}': '#000000' for i in range(148)}
    cells = [cell(a, b, 148 - i, 0, 1) for i, a in enumerate(many) for b in many if a != b]
    grid = _colour_grid.grid({'colours': many, 'cells': cells, 'support': 5})
    assert len(grid['rows']) == 40 and len(grid['columns']) == 70 and len(grid['table']) == 400
    assert grid['rows'][0]['name'] == 'c0' and grid['left_out'] == len(cells) - len(grid['cells']) > 10_000
    with pytest.raises(ValueError, match="the colour of 'red' is 'red;', wanted #rrggbb"):
        _colour_grid.grid({'colours': {'red': 'red;'}, 'cells': cells[:1], 'support': 5})
    assert _colour_grid.grid(None) is None


def test_near_and_far_colours_are_a_curve(tmp_path):
    found = edited_questions.document()['distance']
    drawn = section(write(tmp_path / 'c.html'), 'distance')
    assert drawn.count('<circle') == len(found['bins']) == drawn.count('class="line stroke') and '<polyline' in drawn
    gap = f'the share changes by +{100 * found["far_minus_near"]["value"]:.1f} points, 95 % interval [+'
    assert gap in words(drawn) and 'only as far as the intervals allow' in words(drawn)
    falls = section(write(tmp_path / 'c.html', distance=found | {'falls': 'clearly'}), 'distance')
    assert 'far colours do not simply change more answers' in words(falls)


def test_kinds_of_things_are_nested_and_few(tmp_path):
    tree = section(write(tmp_path / 'c.html'), 'words')
    assert re.search(r'whole 49.4 % .* animal 40.7 % .* carnivore 42.4 % .* room 96.2 %', words(tree))
    assert tree.index('animal.n.01') < tree.index('carnivore.n.01')
    assert 'class="heated differs" data-h="10" title="room.n.01"' in tree
    node = lambda name, parent, n: dict(synset=name, parent=parent, name=name, k=1, n=n, value=1 / n, ci95=[0, 1])
    nodes = [node('leaf', 'root', 5), node('root', '', 9), node('lost', 'nowhere', 2)]
    forest = _word_tree.forest(nodes)
    assert [r['name'] for r in forest['roots']] == ['root', 'lost'] and forest['roots'][0]['children'][0][
        'name'
    ] == 'leaf'
    assert not forest['roots'][0]['open'] and not forest['roots'][0]['children'][0]['differs']
    nodes = [node('root', '', 9), node('middle', 'root', 8), node('leaf', 'middle', 5) | {'ci95': [0.5, 0.9]}]
    (root,) = _word_tree.forest(nodes)['roots']
    assert root['open'] and root['children'][0]['open'] and root['children'][0]['children'][0]['differs']
    assert _word_tree.forest([node(str(i), '', 9 + i) for i in range(200)])['left_out'] == 50
    assert _word_tree.forest([]) is None


def test_answers_become_others(tmp_path):
    found = section(write(tmp_path / 'c.html'), 'transitions')
    assert 'data-answer="yes" data-star="no"' in found and 'all others' not in found
    rest = {'answers': ['', 'b'], 'counts': [[5, 0, 5], [0, 0, 0], [1, 0, 3]], 'changed': [RATE] * 3}
    table = _transitions.matrix(rest)
    assert table['columns'] == ['(empty)', 'b', 'all others'] and [r['answer'] for r in table['rows']] == [
        '(empty)', 'all others',
    ]  # fmt: skip
    assert [c['find'] for c in table['rows'][0]['cells']] == [('', ''), ('', 'b'), None]
    assert [c['heat'] for c in table['rows'][1]['cells']] == [2, 0, 8] and table['rows'][0]['changed'][
        'text'
    ] == '30.0 %'
    assert not table['rows'][1]['cells'][2]['same'], 'other answers may be different ones'
    assert _transitions.matrix({'answers': ['a'], 'counts': [[0]]}) is None


def test_explanations_are_held_against_chance_and_people(tmp_path):
    found = words(section(write(tmp_path / 'c.html'), 'explanations'))
    assert re.search(r'noun → another of its kind 619 64.4 % \[[\d., ]+\] 197 of 306 0.0 %', found)
    coupling = edited_questions.document()['explanations']['coupling']['value']
    assert f'Coupling: explanations move with answers with a correlation of {coupling:.2f} [0.' in found
    assert 'nouns in 65 to 66 %' in found
    own = {'noun': {'all': {'k': 1, 'n': 2, 'value': 0.5}, 'neutral': {'k': 0, 'n': 1, 'value': 0.0}}}
    text = words(section(write(tmp_path / 'c.html', human=own), 'explanations'))
    assert (
        'in the explanations of this data set, repeat words of the text: nouns in 50.0 % of 2 (neutral 0.0 %)' in text
    )


def test_what_could_not_be_edited_has_reasons(tmp_path):
    found = words(section(write(tmp_path / 'c.html'), 'coverage'))
    assert 'noun deleted 100 75.0 % protected 25' in found and 'another of its kind 100 90.0 % no noun 10' in found


def test_records_have_what_an_audit_needs(tmp_path):
    text = write(tmp_path / 'c.html', folder=tmp_path, examples=25)
    found = data(text)
    assert len(found['records']) == 25 and '25 of the 3,000 edits' in Page(text).text
    assert len(found['pictures']) == 3 and 'secret' not in text and str(tmp_path) not in text
    told = [name for rule in edited_questions.document()['rules']['rules'] for name in rule['examples']]
    assert {r['id'] for r in found['records'][-len(told) :]} == set(told), 'what rules show comes last'
    row = next(r for r in found['records'] if r['family'] == 'sibling')
    assert row['before'] == ['Is the ', row['source'], ' old?'] and row['after'][1] == row['target']
    assert ['sense count', '4'] in row['audit'] and row['said'][0]['scores'][0][1] == 0.8
    assert row['expectation'] == 'CHANGE' and row['met'] in (True, False) and row['why'] == 'the scene says so'


def test_pictures_stay_within_their_budget(tmp_path, monkeypatch):
    files = edited_questions.pictures(tmp_path)
    (tmp_path / 'broken.png').write_bytes(b'no picture')
    record = edited_questions.record(edited_questions.table(), 0)
    rows = [record | {'picture': file} for file in [*files, tmp_path / 'broken.png', files[0], None]]
    monkeypatch.setattr(_edited_records, '_PICTURES', 1)
    found = _edited_records.browser(rows)
    shown = [(r['picture'], r['problem']) for r in found['records']]
    small = (None, 'left out to keep the page small')
    assert shown == [('0', ''), small, small, small, ('0', ''), (None, 'no picture file for this question')]
    monkeypatch.setattr(_edited_records, '_PICTURES', 100_000)
    assert 'broken.png is not a readable picture' in [r['problem'] for r in _edited_records.browser(rows)['records']]
    assert len(_edited_records.browser(rows * 300)['records']) == 1000


def test_few_facts_are_enough(tmp_path):
    one = edited_questions.judged.of_rows([dict(family='delete', example='q', image='i', source='dog', kept=False)])
    summary = edited_questions.score.summary(one, resamples=10)
    counterfactual.write_counterfactual(tmp_path / 'c.html', {'summary': summary})
    text = (tmp_path / 'c.html').read_text(encoding='utf-8')
    assert '1 edit of 1 question about 1 picture.' in Page(text).text and 'noun deleted' in Page(text).text
    assert re.findall(r'<section id="(\w+)"', text) == ['summary', 'browser'] and 'acc*' not in text
    assert data(text) == {'records': [], 'pictures': {}}
    record = edited_questions.record(edited_questions.table(), 0)
    few = {
        name: record[name] for name in ('id', 'family', 'original', 'text', 'span', 'target_span', 'source', 'target')
    }
    counterfactual.write_counterfactual(tmp_path / 'c.html', {'summary': summary, 'records': [few]})
    assert data((tmp_path / 'c.html').read_text(encoding='utf-8'))['records'][0]['kept'] is None


def test_shares_as_texts():
    assert _rates.cell({'value': -0.05, 'ci95': [-0.1, 0.01]}, signed=True)['text'] == '−5.0 %'
    assert _rates.cell({'value': -0.05, 'ci95': [-0.1, 0.01]}, signed=True)['ci'] == '[−10.0, +1.0]'
    cell = _rates.cell(RATE)
    assert (cell['text'], cell['ci'], cell['counts'], cell['mark']) == ('30.0 %', '[10.0, 60.0]', '3 of 10', 30)
    assert (cell['low'], cell['span']) == (10, 50)
    assert _rates.cell(None) == _rates.cell({'value': None, 'n': 0, 'ci95': None}) == _rates.NOTHING
    assert [_rates.p_value(p) for p in (None, float('nan'), 0.0001, 0.0123)] == ['', '', '<0.001', '0.012']


@pytest.mark.parametrize('change,message', [
    ({'span': (7, 99)}, r'q\w+#\w+, original: span \[7, 99\] is not in a text of'),
    ({'target_span': (8, 2)}, r', text: span \[8, 2\]'),
    ({'scores': {'yes': float('nan')}}, 'not JSON compliant'),
])  # fmt: skip
def test_bad_records_are_refused_and_leave_the_old_page(tmp_path, change, message):
    old = write(tmp_path / 'c.html')
    record = edited_questions.record(edited_questions.table(), 0, **change)
    with pytest.raises(ValueError, match=message):
        write(tmp_path / 'c.html', records=[record])
    assert (tmp_path / 'c.html').read_text(encoding='utf-8') == old


def replaced(value, text):
    """A document with another text wherever anybody's text stands."""
    known = {'family', 'kind', 'outcome', 'expectation', 'level', 'falls'}
    if isinstance(value, dict):
        return {
            k: v if k in known else {text: v['red']} if k == 'colours' and 'red' in v else replaced(v, text)
            for k, v in value.items()
        }
    if isinstance(value, list | tuple):
        return [replaced(v, text) for v in value]
    return text if isinstance(value, str) else value


def attacked(text):
    document = replaced(edited_questions.document(examples=3), text)
    record = edited_questions.record(edited_questions.table(), 0)
    record |= dict.fromkeys(('id', 'source', 'target', 'answer', 'answer_star', 'why', 'explanation', 'problem'), text)
    record |= dict(original=text, text=text, span=(3, 9), target_span=(3, 9), gold=[text], scores={text: 0.5})
    rules = document['rules']
    return document | {
        'facts': {text: text}, 'settings': {text: text}, 'files': {text: text},
        'trees': {text: document['trees']['sibling']},
        'human': {text: {'all': {'k': 1, 'n': 1, 'value': 1.0}, text: {'k': 1, 'n': 1, 'value': 1.0}}},
        'records': [record], 'rules': rules | {'tested': {text: 3}},
    }  # fmt: skip


def test_untrusted_text_stays_text_and_nothing_comes_from_outside(tmp_path):
    texts = [counterfactual.page(attacked(text)) for text in ('plain and long enough for its spans', ATTACK)]
    plain, page = map(Page, texts)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags], 'the text made or broke an element'
    assert page.inside['script'][1] == plain.inside['script'][1]
    assert ' '.join(ATTACK.split()) in page.text and '2331' not in page.text
    assert data(texts[1])['records'][0]['said'][0]['answer'] == ATTACK
    policy = next(a['content'] for _, a in page.tags if a.get('http-equiv') == 'Content-Security-Policy')
    for name, source in (('script', page.inside['script'][1]), ('style', page.inside['style'][0])):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and 'unsafe' not in policy and 'innerHTML' not in texts[1]
    ids = [a['id'] for _, a in page.tags if 'id' in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert 'style' not in attributes and not any(name.startswith('on') for name in attributes)
        assert tag != 'svg' or attributes.get('aria-hidden') == 'true' or attributes.get('aria-label')
        for name in ('src', 'href'):
            assert re.match(r'#|data:|$', attributes.get(name) or ''), attributes
    for control in re.findall(r'<(?:select|input)[^>]*>', texts[0]):
        before = texts[0][: texts[0].index(control)]
        assert before.rfind('<label') > before.rfind('</label>'), control


def test_a_page_of_a_million_edits_is_small():
    document = edited_questions.document(examples=1000)
    document['summary'] = document['summary'] | {'all': document['summary']['all'] | {'n': 1_000_000}}
    text = counterfactual.page(document)
    assert '1,000 of the 1,000,000 edits' in Page(text).text and len(text) < 1_500_000
