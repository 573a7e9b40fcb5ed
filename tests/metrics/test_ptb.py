import json
import time

import pytest

from evil_jax.metrics import ptb

# As the Java program writes them, punctuation of coco-caption's list dropped (run with CoreNLP 3.4.1).
CASES = {
    "Two women sit, and one can't stand!": "two women sit and one ca n't stand",
    'the men\'s dogs\' toys': "the men 's dogs toys",
    "I'm sure they're here; he'd've said it's OK": "i 'm sure they 're here he 'd 've said it 's ok",
    "isn't,it shouldn't've": "is n't it should n't 've",
    'cannot gonna wanna gotta lemme gimme': 'can not gon na wan na got ta lem me gim me',
    "'tis 'twas y'all o'clock O'Reilly": "'t is 't was y all o'clock o'reilly",
    'The boy (in red) kicks -- hard...': 'the boy -lrb- in red -rrb- kicks hard',
    '[a] {b}': '-lsb- a -rsb- -lcb- b -rcb-',
    'The U.S. flag costs $5.50 at 10 a.m.': 'the u.s. flag costs $ 5.50 at 10 a.m.',
    'Mr. Smith of Mt. Doom vs. John F. Kennedy etc.': 'mr. smith of mt. doom vs. john f. kennedy etc.',
    '1,000 of 3. and 2.5. and 1/2': '1,000 of 3 and 2.5 and 1/2',
    'No. 5 and no.': 'no. 5 and no',
    'a 5-year-old in a t-shirt and/or e-mail at 12:30': 'a 5-year-old in a t-shirt and/or e-mail at 12:30',
    'fish.The dog..and': 'fish.the dog and',
    'what?? ok?! hm?': 'what ?? ok ?! hm',
    "the 90's and '90s": "the 90 's and '90s",
    '50% of #1 & @home #tag': '50 % of # 1 & @home #tag',
    'tall buildings / towers a*b = c': 'tall buildings / towers a * b = c',
    '“double” ‘single’ it’s "straight" \'hello\'': "double single it 's straight hello",
    'café naïve': 'café naïve',
    'double  space\tand\nline ': 'double space and line',
    '... ?': '',
    '': '',
}  # fmt: skip


@pytest.mark.parametrize('text', CASES)
def test_words(text):
    assert ' '.join(ptb.words(text)) == CASES[text]


@pytest.mark.parametrize('source', ['synthetic24', 'esnlive200_ref1', 'esnlive200_ref3'])
def test_the_java_program_says_the_same(shared, source):
    folder = shared / 'data' / 'metrics'
    golden = json.loads((folder / f'coco_{source}.json').read_text())['ptb_tokens']
    for row in json.loads((folder / f'inputs_{source}.json').read_text()):
        assert ' '.join(ptb.words(row['cand'])) == golden['cand'][row['id']][0]
        assert [' '.join(ptb.words(text)) for text in row['refs']] == golden['refs'][row['id']]


@pytest.mark.parametrize('unit', ['a', '1', "'", '.', '<a', '1.', 'a.', "a'", '1-', 'a-', "n't", '\ufffd'])
def test_odd_texts_take_no_time(unit):
    start = time.perf_counter()
    ptb.words(unit * 20_000 + 'x')
    assert time.perf_counter() - start < 2
