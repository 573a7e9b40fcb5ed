"""counterfactual.html in a browser: maps and matrices lead to questions, filters work, nothing untrusted runs."""

import re

import edited_questions
import page_reader

from evil_jax.pages import counterfactual

ATTACK = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>{{ 777 * 3 }}<!--\u2028'

# Stands in for a reader: looks for two colours in the map, then for two answers, then turns the page by key.
READER = """
const texts = (node, selector) => [...node.querySelectorAll(selector)].map((n) => n.textContent);
const cards = () => [...document.querySelectorAll('#cards .edited')].map((card) => texts(card, 'del, ins, .answer b'));
const click = (selector) => document.querySelector(selector).dispatchEvent(new MouseEvent('click', {bubbles: true}));
note('first', [dom.by('count').textContent, document.querySelectorAll('.cases img, #cards img').length]);
document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
note('second', dom.by('count').textContent);
click('svg.colours [data-source="SOURCE"][data-target="TARGET"]');
note('colours', [dom.by('pair').textContent, cards()]);
click('.matrix [data-answer="yes"][data-star="no"]');
note('answers', [dom.by('pair').textContent, cards()]);
dom.by('pair').click();
dom.by('verdict').value = 'stable';
dom.by('filters').dispatchEvent(new Event('input'));
note('stable', [dom.by('pair').hidden, texts(document, '#cards .verdict')]);
document.querySelectorAll('details').forEach((n) => { n.open = true; });
document.querySelectorAll('#summary .sort')[0].click();
if (document.documentElement.scrollWidth > innerWidth) document.title = 'too wide';
"""


def test_the_map_finds_questions_and_nothing_untrusted_runs(browser, tmp_path):
    path = tmp_path / 'c.html'
    document = edited_questions.document(tmp_path, examples=200, title='w' * 80)
    colour = next(r for r in document['records'] if r['family'].startswith('colour') and r['source'] != 'grey')
    hostile = dict(id=ATTACK, source=ATTACK, answer=ATTACK, compared=[ATTACK, ATTACK], why=ATTACK)
    evil = edited_questions.record(edited_questions.table(), 0, **hostile)
    counterfactual.write_counterfactual(path, document | {'records': [evil, *document['records']]})
    reader = READER.replace('SOURCE', colour['source']).replace('TARGET', colour['target'])
    shown = page_reader.read(browser, path, page_reader.NOTE + reader)
    note = lambda name: page_reader.noted(shown, name)
    # Nothing else ran, and a phone is wide enough.
    assert f'<title>{"w" * 80}: counterfactual questions</title>' in shown
    count, images = note('first')
    assert count == '1–6 of 201' and images > 6 and note('second') == '7–12 of 201'
    chip, found = note('colours')
    assert chip == f'{colour["source"]} → {colour["target"]} ✕' and found
    assert all((c[0], c[2]) == (colour['source'], colour['target']) for c in found)
    chip, found = note('answers')
    assert chip == 'yes → no ✕' and found and all([w for w in c if w in ('Yes', 'No')] == ['Yes', 'No'] for c in found)
    gone, verdicts = note('stable')
    assert gone and len(verdicts) == 6 and all(v.endswith('✗ unwarranted stability') for v in verdicts)
    summary = shown.partition('<section id="summary"')[2].partition('</section>')[0]
    numbers = re.findall(r'<tr data-row="">.*?data-value="(\d+)"', summary)
    assert numbers == sorted(numbers, key=int, reverse=True) and sum(map(int, numbers)) == 3000
