import csv
import json
import shutil
import time
import timeit

import pytest

from evil_jax.metrics import ptb, resources

# As the Java program writes them, punctuation of coco-caption's list dropped (run with CoreNLP 3.4.1).
CASES = {
    "Two women sit, and one can't stand!": "two women sit and one ca n't stand",
    'the men\'s dogs\' toys': "the men 's dogs toys",
    "I'm sure they're here; he'd've said it's OK": "i 'm sure they 're here he 'd 've said it 's ok",
    "isn't,it shouldn't've": "is n't it should n't 've",
    'cannot gonna wanna gotta lemme gimme': 'can not gon na wan na got ta lem me gim me',
    "'tis 'twas y'all o'clock O'Reilly": "'t is 't was y' all o'clock o'reilly",
    'The boy (in red) kicks -- hard...': 'the boy -lrb- in red -rrb- kicks hard',
    '[a] {b}': '-lsb- a -rsb- -lcb- b -rcb-',
    'A dog -LRB- black -RRB- -LSB- sic -RSB-': 'a dog -lrb- black -rrb- -lsb- sic -rsb-',
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
    'VQA ||| a | b': 'vqa | | | a | b',
    '“double” ‘single’ it’s "straight" \'hello\'': "double single it 's straight hello",
    'café naïve': 'café naïve',
    'double  space\tand\nline ': 'double space and line',
    'one\rtwo\r\nthree\u2028four\u2029five\vsix\fseven': 'one two three four five six seven',
    'half \ud83d a pair': 'half a pair',
    'two dogs \U0001f600': 'two dogs',
    '... ?': '',
    '\n': '',
    '': '',
}  # fmt: skip


@pytest.mark.parametrize('text', CASES)
def test_words(text):
    assert ptb.tokenise([text], 'python') == ([CASES[text]], ptb.PYTHON)
    assert ' '.join(ptb.words(text.replace('\ud83d', ''))) == CASES[text]


def test_the_java_program_gives_these_cases(java):
    found, name = ptb.tokenise(list(CASES), 'java')
    assert name == 'ptb-java-3.4.1'
    assert dict(zip(CASES, found, strict=True)) == CASES


@pytest.mark.parametrize('backend', ['python', 'java'])
@pytest.mark.parametrize('source', ['synthetic24', 'esnlive200_ref1', 'esnlive200_ref3'])
def test_both_equal_coco_caption(shared, request, source, backend):
    if backend == 'java':
        request.getfixturevalue('java')
    folder = shared / 'data' / 'metrics'
    golden = json.loads((folder / f'coco_{source}.json').read_text())['ptb_tokens']
    rows = json.loads((folder / f'inputs_{source}.json').read_text())
    texts = [text for row in rows for text in (row['cand'], *row['refs'])]
    wanted = [line for row in rows for line in (*golden['cand'][row['id']], *golden['refs'][row['id']])]
    assert ptb.tokenise(texts, backend)[0] == wanted


def test_no_text_depends_on_its_neighbours(java):
    # coco-caption gives 'no.' before a line that begins with a number, and 'u' before some that begin with a capital.
    texts = ['he said no.', '5 dogs', 'shaped like a U.', 'The end', '', 'a <b', 'c> d', 'x', '']
    assert ptb.tokenise(texts, 'java')[0] == [ptb.tokenise([text], 'java')[0][0] for text in texts]
    assert ptb.tokenise(texts[:2], 'java')[0] == ['he said no', '5 dogs']


def test_a_hundred_thousand_texts(java):
    texts = [f'Dog {n} is here, not there.' if n % 10 else '' for n in range(100_000)]
    found, _ = ptb.tokenise(texts, 'java')
    assert found[99_999] == 'dog 99999 is here not there'
    assert found == ptb.tokenise(texts, 'python')[0]


def test_letters_do_not_follow_the_users_language(java, monkeypatch):
    monkeypatch.setenv('JAVA_TOOL_OPTIONS', '-Duser.language=tr -Duser.country=TR -Dfile.encoding=ISO-8859-1')
    assert ptb.tokenise(['INSIDE É'], 'java')[0] == ['inside é']


def test_a_folder_with_a_blank_and_other_letters(java, tmp_path):
    folder = tmp_path / 'my tools é' / 'pycocoevalcap'
    (folder / 'meteor').mkdir(parents=True)
    (folder / 'tokenizer').mkdir()
    with pytest.raises(resources.Unavailable, match=r'stanford-corenlp-3\.4\.1\.jar'):
        ptb.tokenise(['A dog.'], 'java', folder=str(folder))
    shutil.copy(ptb.find()[1], folder / 'tokenizer')
    assert ptb.tokenise(['A dog.'], 'java', folder=str(folder)) == (['a dog'], ptb.JAVA)


def test_without_java_python_does_it_and_says_so(monkeypatch, tmp_path):
    monkeypatch.delenv('JAVA_HOME', raising=False)
    monkeypatch.setenv('PATH', str(tmp_path))
    found = ptb.tokenise(['A dog.', ''], 'auto')
    assert found == (['a dog', ''], ptb.PYTHON)
    assert 'residual' in found[1]
    with pytest.raises(resources.Unavailable, match='needs Java'):
        ptb.tokenise(['A dog.'], 'java')


def test_auto_is_java_where_it_runs(java):
    assert ptb.tokenise([], 'auto') == ([], ptb.JAVA)
    assert ptb.tokenise(['One dog.', 'One dog.'], 'auto') == (['one dog', 'one dog'], ptb.JAVA)


def test_another_backend_is_refused():
    with pytest.raises(ValueError, match=r"'jav': wanted one of auto, java, python"):
        ptb.tokenise(['a'], 'jav')


@pytest.mark.parametrize('unit', ['a', '1', "'", '.', '<a', '1.', 'a.', "a'", '1-', 'a-', "n't", '\ufffd'])
def test_odd_texts_take_time_by_their_length(unit):
    """Four times the text takes 4 times as long, where a pattern that tries again and again takes 16 times."""
    short, long = (
        min(timeit.repeat(lambda n=n: ptb.words(unit * n + 'x'), timer=time.process_time, number=1, repeat=3))
        for n in (5_000, 20_000)
    )
    assert long < 10 * short + 0.01


@pytest.mark.acceptance
def test_the_residual_is_as_the_signature_says(java, shared, measured):
    texts = set()
    for path in sorted((shared / 'data' / 'esnlive').glob('esnlive_*.csv')):
        with path.open(encoding='utf-8', newline='') as file:
            texts.update(text for row in csv.DictReader(file) for text in (row['hypothesis'], row['explanation']))
    for pattern in ('esnli_preproc1_expl_?.*', 'esnli_s?.*'):
        for path in (shared / 'data' / 'snli').glob(pattern):
            texts.update(path.read_text(encoding='utf-8').split('\n'))
    for path in (*(shared / 'data' / 'vqax').glob('scr_*.json'), shared / 'data' / 'vqax' / 'cocoEval_test.json'):
        texts.update(text for lines in json.loads(path.read_text()).values() for text in lines)
    with (shared / 'data' / 'nle' / 'cose_v1.0_dev.csv').open(encoding='utf-8', newline='') as file:
        texts.update(text for row in csv.DictReader(file) for text in (row['question'], row['human_exp']))
    texts = sorted(texts)
    ours, theirs = (ptb.tokenise(texts, backend)[0] for backend in ('python', 'java'))
    others = [text for text, a, b in zip(texts, ours, theirs) if a != b]
    print(*(text[:100] for text in others), sep='\n')
    measured('PTB tokeniser in Python: texts', '==', ptb.RESIDUAL[1], len(texts))
    measured('PTB tokeniser in Python: other than the Java program', '==', ptb.RESIDUAL[0], len(others))
