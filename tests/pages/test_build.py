import base64
import hashlib
import html
import html.parser
import re
import subprocess

import numpy as np
import PIL.Image

from evil_jax.pages import build

ATTACK = '</script><script>document.title="x"</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"\'><!--'
LIMITS = {'text': 6, 'question': 20, 'answer': 20, 'explanation': 20, 'regions': 36}


def counts(word='blue', **more):
    values = dict(
        examples={'train': 1200, 'dev': 30},
        images={'train': 100, 'dev': 10},
        references={'train': 2400, 'dev': 0},
        explained={'train': 1200, 'dev': 0},
        unanswered={'train': 3, 'dev': 0},
        labels={'train': {word: 900, 'neutral': 300}, 'dev': {word: 10, 'neutral': 20}},
        missing={'train': 7, 'dev': 0},
        outside={'train': 4, 'dev': 0},
        answers=2,
        store={'images': 110, 'cut_images': 5},
        lengths={'text': {'4': 10, '6': 20, '7': 10}, 'explanation': {'9': 5}, 'regions': {'36': 100, '20': 10}},
        answer_types={'train': {word: 5}},
        words={'text': {'2': 40}},
        longest={'text': [{'tokens': 7, 'split': 'train', 'id': word, 'text': word}] * 2, 'explanation': []},
        coverage={
            key: {
                'occurrences': 200, 'distinct': 50, 'split_occurrences': 20, 'split_distinct': 10,
                'most_split': [(word, 11)], 'unknown_occurrences': 1, 'unknown_distinct': 1,
                'most_unknown': [(word, 1)],
            }
            for key in ('word', 'expl')
        },
        gold={'inside': 90, 'outside': 10},
        outside_answers=[(word, 10)],
        missing_shown=[('train', word, word)],
        shared={'train': 0, 'dev': 4},
        tags={'train': 40, 'dev': 0},
        linked={'train': 30, 'dev': 0},
    )  # fmt: skip
    return values | more


def example(word='blue', **more):
    return {'split': 'train', 'id': word, 'text': word, 'gold': [word], 'references': [word]} | more


def write(path, word='blue', examples=None, **more):
    build.write_page(
        path, title=word, counts=counts(word, **more), limits=LIMITS, provenance={word: {'bytes': 7, 'name': word}},
        examples=[example(word)] if examples is None else examples,
    )  # fmt: skip
    return path.read_text(encoding='utf-8')


def tags(text):
    found = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
    parser.feed(text)
    return found


def words(text):
    return ' '.join(html.unescape(re.sub(r'<style>.*?</style>|<[^>]+>', ' ', text, flags=re.S)).split())


def test_everything_that_was_counted_is_shown(tmp_path):
    text = words(write(tmp_path / 'b.html'))
    for wanted in (
        'train 1,200 examples about 100 pictures', '2,400 explanations of 1,200 examples', 'no explanations',
        'count train dev examples 1,200 30 pictures 100 10 explanations 2,400 0 explained examples 1,200 0',
        'without an answer 3 0 no answer in the vocabulary 4 0 without features 7 0 pictures that train has, too 0 4',
        'object tags for the encoder 40 0 of these, with a region 30 75.0 % 0 0.0 %',
        'blue 900 75.0 % 10 33.3 %', 'neutral 300 25.0 % 20 66.7 %',
        'blue 5 100.0 %', '5.8 on average, at most 7, limit data.max_text 6', '10 of 40 (25.0 %) are cut.',
        'blue 7 tokens, train blue', 'limit data.max_explanation 20. None is cut', '200 20 10.0 % 1 0.5 % 50 10 20.0 %',
        '2 answers. 90 of 100 gold answers (90.0 %) are among them; 4 examples have none',
        'Of 5 pictures the store keeps some regions only', '7 examples are without region features',
        'train blue: picture blue', '1 of 1,230, drawn at random', '{"bytes": 7, "name": "blue"}',
    ):  # fmt: skip
        assert wanted in text, (wanted, text)


def test_what_is_not_there_leaves_no_gap(tmp_path):
    empty = {'labels': {}, 'answer_types': {}, 'answers': 0, 'missing': {'train': 0}, 'gold': {}, 'words': {}}
    older = {'longest': {}, 'coverage': {}, 'outside_answers': [], 'missing_shown': []}
    text = words(write(tmp_path / 'b.html', **empty, **older, lengths={}))
    assert 'Every example has region features' in text and 'choices of its own' in text and 'In words' not in text
    assert 'explained examples 1,200 0' in text and 'object tags' in text
    text = words(
        write(tmp_path / 'b.html', **empty, shared={}, tags={}, linked={}, lengths={'regions': {'0': 3, '9': 5}})
    )
    assert 'Every example has' not in text and 'Of 3 pictures the store keeps no region at all' in text
    assert 'object tags' not in text and 'train has, too' not in text
    assert 'id="classes"' not in (tmp_path / 'b.html').read_text()
    text = words(write(tmp_path / 'b.html', answers=0, labels={'train': {'choice 1': 3, 'choice 2': 1}}))
    assert 'by position of the right choice' in text and 'choice 1 3 75.0 %' in text


def test_page_needs_no_network_and_runs_nothing(tmp_path):
    text = write(tmp_path / 'b.html')
    style = re.search(r'(?s)<style>(.*?)</style>', text)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(a['content'] for _, a in tags(text) if a.get('http-equiv') == 'Content-Security-Policy')
    assert f"style-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
    ids = [a['id'] for _, a in tags(text) if 'id' in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in tags(text):
        assert tag != 'script' and 'style' not in attributes and not any(name.startswith('on') for name in attributes)
        if tag == 'svg':
            assert attributes.get('aria-hidden') == 'true' or attributes['aria-label']
        for name in ('src', 'href'):
            assert re.match(r'#|data:|$', attributes.get(name, '')), attributes
    links = {a['href'][1:] for tag, a in tags(text) if tag == 'a'}
    assert links <= set(ids)


def test_untrusted_text_stays_text(tmp_path):
    plain, attacked = (
        write(
            tmp_path / f'{i}.html', word,
            [example(word, choices=[{'text': word, 'gold': True}], boxes=[[0, 0, 9, 9]], classes=[word], problem=word)],
        )
        for i, word in enumerate(('harmless', ATTACK))
    )  # fmt: skip
    assert [tag for tag, _ in tags(plain)] == [tag for tag, _ in tags(attacked)]
    assert attacked.count('&lt;img src=x') > 10 and '<img' not in attacked


def test_a_page_is_written_only_where_it_is_another(tmp_path):
    path = tmp_path / 'b.html'
    arguments = dict(title='a', limits=LIMITS, provenance={}, examples=[])
    assert build.write_page(path, counts=counts(), **arguments)
    before = path.stat().st_mtime_ns
    assert not build.write_page(path, counts=counts(), **arguments)
    assert path.stat().st_mtime_ns == before
    assert build.write_page(path, counts=counts(answers=3), **arguments)


def test_pictures_boxes_choices_and_gold(tmp_path):
    picture = tmp_path / 'secret_folder.png'
    PIL.Image.fromarray(np.zeros((60, 80, 3), np.uint8)).save(picture)
    broken = tmp_path / 'broken.png'
    broken.write_bytes(b'no')
    boxes = np.array([[0.5, 0.5, 1, 1]], np.float32)
    text = write(
        tmp_path / 'b.html',
        examples=[
            example(picture=picture, boxes=boxes, size=(1, 1), classes=['cat'], gold={'no': 0.3, 'yes': 1.0}),
            example(picture=broken, references=[]),
            example(choices=[{'text': 'a', 'gold': False}, {'text': 'b', 'gold': True}], boxes=[[1, 2, 30, 40]] * 13,
                    classes=['dog'] * 13, size=(100, 50)),
        ],
    )  # fmt: skip
    assert 'data:image/webp' in text and 'secret_folder' not in text and str(tmp_path) not in text
    assert 'viewBox="0 0 80 60"' in text and 'x="40.0" y="30.0" width="40.0" height="30.0"' in text, 'relative boxes'
    assert '>cat</text>' in text and '>dog</text>' not in text and text.count('<title>dog</title>') == 13
    assert 'yes, no (0.3)' in text and 'broken.png is not a readable picture' in text and 'no explanation' in text
    assert re.search(r'<li class="gold">b ', text) and '<li>a</li>' in text


def test_in_a_browser_nothing_overflows_a_phone_and_it_is_dark_where_wanted(browser, tmp_path):
    write(tmp_path / 'b.html', 'w' * 80, [example('w' * 80)] * 3)
    shot = tmp_path / 'shot.png'
    options = ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--force-device-scale-factor=1']
    pictures = {}
    for name, more in (('light', []), ('dark', ['--blink-settings=preferredColorScheme=0'])):
        command = [browser, *options, *more, '--window-size=500,1500', f'--screenshot={shot}']
        subprocess.run([*command, (tmp_path / 'b.html').as_uri()], capture_output=True, timeout=60, check=True)
        with PIL.Image.open(shot) as image:
            pictures[name] = np.asarray(image.convert('RGB'))
    assert pictures['light'].shape == (1500, 500, 3)
    paper = pictures['light'][5, 5]
    assert paper.min() > 240 and pictures['dark'][5, 5].max() < 40
    assert (pictures['light'][:, -10:] == paper).all(), 'the margin is empty: nothing is wider than the page'
    assert (pictures['light'][:, 20:480] != paper).any(-1).mean() > 0.05, 'something is drawn'
