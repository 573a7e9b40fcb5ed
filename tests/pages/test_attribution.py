import base64
import hashlib
import io
import json
import re

import numpy as np
import page_reader
import PIL.Image
import pytest
from page_parser import Page

from evil_jax.pages import attribution, heat
from evil_jax.pages.attribution import Item, Target

ATTACK = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>{{ 7 * 7 }}'
QUESTION, SAID = ['is', 'it', 'red'], ['it', 'is', 'warm']
BOXES = [[0, 0, 30, 40], [20, 10, 60, 30]]


def photo(width=60, height=40):
    return np.random.default_rng(0).integers(0, 255, (height, width, 3), np.uint8)


def told(**more):
    """A visual question with two regions, and a word of the explanation that looked elsewhere than the answer."""
    answer = Target('yes', regions=[0.1, 0.3], words={'question': [0.1, 0.0, 0.1]}, probability=0.75)
    word = Target('warm', regions=[0.4, 0.0], words={'question': [0, 0.2, 0], 'explanation': [0.2, 0.2, 0]})
    values = dict(
        id='q1',
        targets=[answer, Target('warm', word.regions, words=word.words, at=('explanation', 2))],
        words={'question': QUESTION, 'explanation': SAID},
        picture=photo(),
        boxes=BOXES,
        names=['ball', 'floor'],
        answer='yes',
        gold=['yes', 'maybe'],
    )
    return Item(**(values | more))


def write(path, items, **more):
    attribution.write_attributions(path, items, **(dict(title='tiny') | more))
    return path.read_text(encoding='utf-8')


def data(text):
    return json.loads(Page(text).inside['script'][0])


def png(uri):
    assert uri.startswith('data:image/png;base64,')
    return PIL.Image.open(io.BytesIO(base64.b64decode(uri.partition(',')[2])))


def heats(text):
    """The picture of each heat map."""
    return [a.get('href') for tag, a in Page(text).tags if tag == 'image' and a.get('class') == 'heat']


def test_the_first_target_stands_in_the_page_without_any_script(tmp_path):
    text = write(tmp_path / 'a.html', [told(probability=0.75, correct=0.6)], method='generic', total=20)
    page = Page(text)
    for wanted in (
        'by generic', '1 of 20 examples', 'yes 75 %', '✓ right (0.6 of 1)', 'Gold yes, maybe', 'ball: 0.1',
        '“yes” (75 %): regions 67 %, question 33 %; most: floor 0.3, ball 0.1, is 0.1, red 0.1',
    ):  # fmt: skip
        assert wanted in page.text, wanted
    words = re.findall(r'<span class="w"( data-h="10")? title="([\d.]+)">(\w+)</span>', text)
    assert [(bool(h), v, w) for h, v, w in words] == [(True, '0.1', 'is'), (False, '0', 'it'), (True, '0.1', 'red')]
    # The answer's own words have no relevance for it; one is a target.
    assert re.findall(r'<button type="button" class="w" data-target="1" aria-pressed="false">(\w+)', text) == ['warm']
    image = png(heats(text)[0]).convert('RGBA')
    field = heat.of_boxes([0.0, 1.0], np.array(BOXES) * 320 / 60, (213, 320))
    np.testing.assert_array_equal(np.asarray(image), heat.table()[heat.levels(field)])
    regions = re.findall(r'<g class="region( top)?" data-region="(\d)"( data-h="10")?>', text)
    assert regions == [('', '0', ''), (' top', '1', ' data-h="10"')], 'large ones first; the least is not named'


def test_patches_lie_over_all_of_their_picture(tmp_path):
    maps = [np.arange(6.0).reshape(2, 3), -np.ones((2, 3))]
    item = Item('p', [Target(f'class {i}', patches=m, probability=i / 4) for i, m in enumerate(maps)], picture=photo())
    text = write(tmp_path / 'a.html', [item])
    field = heat.scaled(heat.upsample(maps[0], (213, 320)), signed=True)
    wanted = heat.table(True)[heat.levels(field, True)]
    np.testing.assert_array_equal(np.asarray(png(heats(text)[0]).convert('RGBA')), wanted)
    assert re.findall(r'aria-pressed="(\w+)">(class \d)', text) == [('true', 'class 0'), ('false', 'class 1')]
    assert 'picture: against' in Page(text).text and 'picture: least' not in Page(text).text
    assert '“class 0” (0 %): 0 to 5' in Page(text).text
    assert data(text)['items'][0]['targets'][1]['patches'] == [-1] * 6


def test_long_texts_show_what_was_read_and_what_people_marked(tmp_path):
    words = [f'w{i}' for i in range(400)]
    values = np.linspace(0, 1, 400) * (np.arange(400) < 300)
    item = Item(
        't',
        [Target('POS', words={'text': values})],
        words={'text': words},
        evidence={'text': [2, 350]},
        read={'text': 300},
    )
    text = write(tmp_path / 'a.html', [item])
    assert Page(text).text.count('cut here: the model did not read the last 100 words') == 1
    assert re.search(r'>w299</span> <span class="cut">[^<]*</span> <span class="w unread" title="0">w300</span>', text)
    assert re.findall(r'class="w gold( unread)?"[^>]*title[^>]*>(\w+)<', text) == [('', 'w2'), (' unread', 'w350')]
    assert text.count('class="w unread"') == 99 and 'class="words long" data-row="0" tabindex="0"' in text
    assert '<figure>' not in text and 'evidence marked by people' in Page(text).text


def test_tokens_stand_where_their_spaces_say(tmp_path):
    item = told(words={'question': ['is', ' it', 'self'], 'explanation': ['it', ' is', ' warm']})
    text = write(tmp_path / 'a.html', [item])
    assert re.sub('<[^>]+>', '', re.search('(?s)data-row="0">(.*?)</p>', text)[1]) == 'is itself'
    assert '“warm”' in data(text)['items'][0]['targets'][1]['told']


def test_numbers_are_short(tmp_path):
    small = Target('a', words={'question': [1.23456789e-7, 0.4e-7, 0]})
    large = Target('b', words={'question': [123456.789, -1.5, 3]})
    (row,) = data(write(tmp_path / 'a.html', [told(targets=[small, large])]))['items']
    assert row['targets'][0]['words'] == [[1.235e-07, 4e-08, 0], None]
    assert row['targets'][1]['words'][0] == [123500, 0, 0] and row['signed'] == 1


def test_few_facts_are_enough(tmp_path):
    page = Page(write(tmp_path / 'a.html', []))
    assert 'No example.' in page.text and not any(tag == 'article' for tag, _ in page.tags)
    text = write(tmp_path / 'a.html', [Item('bare', []), Item('n', [Target('x')], boxes=BOXES)])
    page = Page(text)
    assert sum(tag == 'article' for tag, _ in page.tags) == 2 and heats(text) == [None]
    assert '“x”: no relevance is known' in page.text and 'region 2' in page.text
    zero = told(targets=[Target('y', regions=[0, 0], words={'question': [0, 0, 0]})])
    body = write(tmp_path / 'a.html', [zero]).partition('<main>')[2]
    assert 'nothing has any relevance' in body and 'data-h=' not in body


def test_pictures_may_be_files_bytes_or_arrays_and_bad_ones_are_said(tmp_path):
    path = tmp_path / 'secret_folder' / 'p.png'
    path.parent.mkdir()
    PIL.Image.fromarray(photo()).save(path)
    items = [told(id=str(i), picture=p) for i, p in enumerate((path, str(path), path.read_bytes(), photo()))]
    uris = re.findall(r'class="photo" href="([^"]+)"', write(tmp_path / 'a.html', items))
    assert len(uris) == 4 and len(set(uris)) == 1
    np.testing.assert_array_equal(np.asarray(png(uris[0])), photo())  # tiny ones are exact
    large = write(tmp_path / 'a.html', [told(picture=photo(1200, 900), boxes=None, names=(), targets=[])])
    (uri,) = re.findall(r'class="photo" href="([^"]+)"', large)
    assert len(uri) < 40_000 and uri.startswith('data:image/webp')
    path.write_bytes(b'no picture')
    text = write(
        tmp_path / 'a.html', [told(picture=path), told(picture=b'none'), told(picture=None, problem='it is lost')]
    )
    for wanted in ('p.png is not a readable picture', 'the file is not a readable picture', 'it is lost'):
        assert f'The picture is not shown: {wanted}.' in Page(text).text
    assert 'secret_folder' not in text and str(tmp_path) not in text
    assert len([h for h in heats(text) if h]) == 3, 'the boxes are drawn all the same'


@pytest.mark.parametrize('item,message', [
    (told(targets=[Target('yes', regions=[0.1, np.nan])]), "item 'q1', target 'yes', regions: 1 of 2 values are not"),
    (told(targets=[Target('yes', words={'question': [0, np.inf, 0]})]), "'yes', question: 1 of 3 values are not"),
    (Item('p', [Target('c', patches=np.full((2, 2), np.nan))]), "item 'p', target 'c', patches: 4 of 4 values are not"),
    (told(targets=[Target('yes', regions=[0.1])]), r'relevance of regions has shape \(1,\), wanted \(2,\)'),
    (told(targets=[Target('yes', patches=np.ones((2, 2)))]), 'wanted .h, w., and no boxes'),
    (Item('p', [Target('c', patches=np.ones(4))]), r'relevance of patches has shape \(4,\)'),
    (told(targets=[Target('yes', words={'question': [0, 1]})]), r"of 'question' has shape \(2,\) for 3 words"),
    (told(targets=[Target('yes', words={'answer': [1]})]), "of 'answer'; the item has words for question, explan"),
    (told(targets=[Target('yes', at=('explanation', 3))]), r"stands at \('explanation', 3\), where .* no word"),
    (told(names=['ball']), "item 'q1': 1 names of regions for 2 boxes"),
    (told(boxes=[1, 2]), r"item 'q1': boxes of shape \(2,\), wanted .R, 4."),
    (told(boxes=[[0, 0, 1, np.nan], [0, 0, 1, 1]]), "item 'q1', boxes: 1 of 8 values are not finite"),
])  # fmt: skip
def test_bad_input_is_refused_by_name_and_leaves_the_old_page(tmp_path, item, message):
    old = write(tmp_path / 'a.html', [])
    with pytest.raises(ValueError, match=message):
        write(tmp_path / 'a.html', [item])
    assert (tmp_path / 'a.html').read_text(encoding='utf-8') == old


def attacked(attack):
    targets = [Target(attack, words={attack: [0.1] * 3})]
    targets.append(Target(attack, regions=[0.1, 0.3], words={attack: [0.2] * 3}, at=(attack, 1)))
    return [
        Item(attack, targets, words={attack: [attack] * 3}, boxes=BOXES, evidence={attack: [0]}, read={attack: 2}),
        Item(attack, [], names=[attack] * 2, boxes=BOXES, answer=attack, gold=[attack], problem=attack),
    ]


def test_untrusted_text_stays_text_and_nothing_comes_from_outside(tmp_path):
    more = lambda text: dict(title=text, method=text, settings={text: text})
    plain = Page(write(tmp_path / 'plain.html', attacked('plain'), **more('plain')))
    text = write(tmp_path / 'a.html', attacked(ATTACK), **more(ATTACK))
    page = Page(text)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags], 'the text made or broke an element'
    assert page.inside['script'][1] == plain.inside['script'][1]
    assert ATTACK in page.text and '49' not in page.text
    policy = next(a['content'] for _, a in page.tags if a.get('http-equiv') == 'Content-Security-Policy')
    for name, source in (('script', page.inside['script'][1]), ('style', page.inside['style'][0])):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and 'url(' not in page.inside['style'][0]
    ids = [a['id'] for _, a in page.tags if 'id' in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert 'style' not in attributes and not any(name.startswith('on') for name in attributes)
        assert tag != 'svg' or attributes.get('aria-hidden') == 'true' or attributes.get('aria-label')
        for name in ('src', 'href'):
            assert re.match(r'#|data:|$', attributes.get(name) or ''), attributes


def test_fifty_examples_are_a_small_page(tmp_path):
    rng = np.random.default_rng(0)
    pixels = np.asarray(PIL.Image.fromarray(photo(60, 40)).resize((640, 480)))
    said, question = [f'said{i}' for i in range(20)], [f'asked{i}' for i in range(15)]
    names, review = [f'object {i}' for i in range(36)], [f'word{i}' for i in range(800)]
    corners = rng.uniform(0, 300, (36, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 300, (36, 2))], axis=1)
    words = lambda: {'question': rng.random(15), 'explanation': rng.random(20)}
    targets = [Target('w', regions=rng.random(36), words=words(), at=('explanation', i)) for i in range(20)]
    asked = told(
        targets=targets, words={'question': question, 'explanation': said}, picture=pixels, boxes=boxes, names=names
    )
    seen = Item('p', [Target(str(i), patches=rng.random((14, 14))) for i in range(10)], picture=pixels)
    read = Item('t', [Target(c, words={'text': rng.normal(size=800)}) for c in 'ab'], words={'text': review})
    for item in (asked, seen, read):
        assert len(write(tmp_path / 'a.html', [item])) - len(write(tmp_path / 'a.html', [])) < 110_000, item.id


# Stands in for a reader: points at the word that is a target, goes away, then taps the second class of a picture.
READER = """
const at = (selector) => document.querySelectorAll(selector);
const act = (node, type) => node.dispatchEvent(new PointerEvent(type, {bubbles: type !== 'pointerleave'}));
const tell = (name) => {
  const [card] = at('[data-item]');
  const one = (selector) => card.querySelector(selector);
  const all = (selector, f) => [...card.querySelectorAll(selector)].map((n) => [n.dataset.h || '0', ...f(n)]);
  note(name, {told: one('.told').textContent, heat: one('image.heat').getAttribute('href'),
    words: all('.w', (w) => [w.title, w.classList.contains('now')]),
    regions: all('.region', (g) => [g.classList.contains('top'), g.firstChild.textContent])});
};
const [word] = at('button.w');
act(word, 'pointerover');
tell('pointed');
act(at('[data-item]')[0], 'pointerleave');
tell('left');
word.focus();
if (!document.hasFocus()) word.dispatchEvent(new FocusEvent('focusin', {bubbles: true})); // a browser in no hurry
tell('focused');
at('[data-target="1"]')[1].click();
const wide = (node) => node.clientWidth && node.scrollWidth > node.clientWidth + 1;
if ([...at('html, header *, main p, main dd, main button')].some(wide)) document.title = 'too wide';
"""


def test_in_a_browser_pointing_at_a_word_shows_its_map(browser, tmp_path):
    path = tmp_path / 'a.html'
    maps = [np.arange(6.0).reshape(2, 3), np.array([[1.0, -2.0], [0.5, 0.0]])]
    item = Item('p', [Target(str(i), patches=m) for i, m in enumerate(maps)], picture=photo())
    long = told(words={'question': ['w' * 80] * 3, 'explanation': ['e' * 80, '', 'e' * 80]}, answer='a' * 80)
    text = write(path, [told(), item, *attacked(ATTACK), long], title='tiny' * 30)
    shown = page_reader.read(browser, path, page_reader.NOTE + READER)
    pointed, left, focused = (page_reader.noted(shown, name) for name in ('pointed', 'left', 'focused'))
    assert pointed['told'].startswith('“warm”: regions 40 %, question 20 %, explanation 40 %; most: ball 0.4')
    assert [w[:2] for w in pointed['words']] == [
        ['0', '0'], ['10', '0.2'], ['0', '0'], ['10', '0.2'], ['10', '0.2'], ['0', '0'],
    ]  # fmt: skip
    assert [w[2] for w in pointed['words']] == [False] * 5 + [True]
    assert pointed['regions'] == [['10', True, 'ball: 0.4'], ['0', False, 'floor: 0']]
    assert focused == pointed and left['heat'] == heats(text)[0] != pointed['heat']
    assert left['told'].startswith('“yes” (75 %)') and left['regions'][1] == ['10', True, 'floor: 0.3']
    fields = [
        (pointed['heat'], heat.of_boxes([1.0, 0.0], np.array(BOXES) * 320 / 60, (213, 320)), False),
        (heats(shown)[1], heat.scaled(heat.upsample(maps[1], (213, 320)), signed=True), True),
    ]
    for uri, field, signed in fields:
        found = np.asarray(png(uri).convert('RGBA')).astype(int)
        wanted = heat.table(signed)[heat.levels(field, signed)].astype(int)
        assert np.abs(found[..., 3] - wanted[..., 3]).max() <= 2, 'the script paints what Python paints'
        strong = wanted[..., 3] > 50  # a canvas multiplies by opacity: where there is little, colours lose digits
        assert np.abs(found - wanted)[strong].max() <= 4
    page = Page(shown)
    assert '“1”: -2 to 1' in page.text and not any(tag == 'img' for tag, _ in page.tags)
    assert f'<title>{"tiny" * 30}: where it looks</title>' in shown, 'nothing else ran, and a phone is wide enough'
