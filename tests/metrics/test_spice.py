import json
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import spice_stub

from evil_jax.metrics import _java, resources, spice
from evil_jax.metrics._meteor import lexicon
from evil_jax.metrics._spice import files, official, score

TEXTS = (
    {'a': 'young man ride horse', 'b': ' \n', 'c': 'big élégant dog', 'd': 'cat ||| hat'},
    {'a': ['person ride brown horse', 'man wear hat'], 'b': ['dog'], 'c': ['large hound'], 'd': ['', ' ']},
)
# Of 'a': objects man and horse and the relation of 5; of 'c': dog ~ hound; 'b' has no candidate tuples, 'd' no others.
WANTED = {'a': 4 / 11, 'b': 0.0, 'c': 0.4, 'd': 0.0}


@pytest.fixture(scope='module')
def synsets():
    return lexicon.Lexicon(resources.pycocoevalcap() / 'meteor' / 'meteor-1.5.jar').synsets


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Skips where there is no Java compiler."""
    try:
        spice_stub.compiler()
    except resources.Unavailable as error:
        pytest.skip(f'original SPICE: {error}')
    return tmp_path_factory.mktemp('spice')


@pytest.fixture(scope='module')
def corenlp(folder):
    return spice_stub.corenlp(folder / 'stubbed', stub=True)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    path = tmp_path_factory.getbasetemp() / 'cache of SPICE é'
    monkeypatch.setenv('EVIL_JAX_CACHE', str(path))
    monkeypatch.delenv('CORENLP_HOME', raising=False)
    return path


def test_two_hundred_sets_of_tuples_score_as_the_original_does(shared, synsets):
    folder = shared / 'data' / 'metrics'
    rows = json.loads((folder / 'spice_tuples_inputs.json').read_text())
    golden = {row['id']: row for row in json.loads((folder / 'spice_tuples_scores.json').read_text())}
    equal = 0
    for row in rows:
        found = score.count(row['cand'], row['ref'], synsets)
        wanted = golden[row['id']]
        assert (*found, found.precision, found.recall, found.f) == tuple(
            wanted[key] for key in ('tp', 'fp', 'fn', 'pr', 're', 'f')
        ), row
        equal += 1
    assert equal == len(golden) == 200


def test_random_tuples_score_as_the_original_does(folder, synsets):
    draw = random.Random(5)
    objects = ['man', 'men', 'guy', 'person', 'people', 'dog', 'hound', 'car', 'auto', 'TV', 'television', 'ice cream',
               'fire hydrant', 'xqzt', 'é', '', 'be', 'play', 'glasses', 'glass', ' bus ',
               'bank', 'cant', 'depository financial institution']  # fmt: skip
    attributes = ['red', 'crimson', 'two', 'big', 'large', 'young', 'small', 'little', 'stone-gray', 'wooden', 'play']
    relations = ['on', 'be on', 'be behind', 'behind', 'ride', 'drive', 'play with', 'next to', 'be', 'beside', 'in']

    def tuples():
        for _ in range(draw.randrange(9)):
            kinds = draw.choice([(objects,), (objects, attributes), (objects, objects, relations)])
            yield [draw.choice(kind) for kind in kinds]

    pairs = [(list(tuples()), list(tuples())) for _ in range(3000)]
    pairs.append(([['cant'], ['depository financial institution']], [['bank']]))
    classes = spice_stub.build(folder / 'oracle', {'Oracle.java': spice_stub.ORACLE})
    lines = [json.dumps(pair) for pair in pairs]
    wanted = [
        json.loads(line)
        for line in _java.run(resources.java(), ['Oracle'], lines, classpath=[classes, *spice_stub.classpath()])
    ]
    found = [score.count(*pair, synsets) for pair in pairs]
    found = [[*counts, counts.precision, counts.recall, counts.f] for counts in found]
    assert min(counts[2] for counts in wanted) < 0 < sum(counts[5] > 0 for counts in wanted)
    assert [pair for pair, a, b in zip(pairs, wanted, found) if a != b] == []


@pytest.mark.parametrize(
    ('candidate', 'references', 'counts', 'f'),
    [
        ([], [], (0, 0, 0), 0.0),
        ([['dog']], [], (0, 1, 0), 0.0),
        ([], [['dog']], (0, 0, 1), 0.0),
        ([['dog']], [['dog']], (1, 0, 0), 1.0),
        ([['dog', 'big']], [['dog', 'big'], ['cat']], (2, 0, 1), 0.8),
        # Two candidate tuples are similar to the same one: fn is negative, F is above 1.
        ([['a'], ['b']], [['c']], (2, 0, -1), 4 / 3),
        ([['a', 'b', 'on']], [['b', 'a', 'on']], (2, 1, 1), 2 / 3),
    ],
)
def test_counts(candidate, references, counts, f):
    synonyms = {'a': {1}, 'b': {2}, 'c': {1, 2}} if ['c'] in references else {}
    found = score.count(candidate, references, lambda word: frozenset(synonyms.get(word, ())))
    assert (found, found.f) == (counts, pytest.approx(f))


def test_tuples_of_any_parser(tmp_path, synsets):
    path = tmp_path / 'my tuples.jsonl'
    rows = [
        {'id': '1', 'candidate': [['dog']], 'references': [[['hound'], ['hound', 'big']], [['dog']]]},
        {'id': 2, 'candidate': [['犬|||'], ['dog', 'two']], 'references': [['dog'], ['dog', 'two']], 'parser': 'x'},
        {'id': '3', 'candidate': [], 'references': [[], []]},
    ]
    path.write_text('\n\n'.join(json.dumps(row) for row in rows), encoding='utf-8')
    predictions, references = {'1': 'x', '2': '', '3': 'z'}, {'1': ['u', 'v'], '2': ['w'], '3': ['']}
    found = spice.score(predictions, references, tuples=path)['spice']
    assert found.per_example == {'1': pytest.approx(2 / 3), '2': 0.8, '3': 0.0}
    assert found.value == pytest.approx((2 / 3 + 0.8) / 3)
    assert found.signature.startswith('metric:spice|source:tuples(')
    assert '|synonyms:meteor-1.5(6c990708)|nrefs:1-2|scale:0..1|version:' in found.signature
    assert spice.check(tuples=path) == 'tuples of 0 texts and 3 ids'
    path.write_text(path.read_text().replace('"two"', '"deux"'))
    assert spice.score(predictions, references, tuples=path)['spice'].signature != found.signature
    one = spice.table(predictions, references, tuples=path).take([1]).scores()['spice']
    assert (one.value, one.n) == (0.8, 1)


def test_a_file_serves_several_forms_of_the_texts(tmp_path, synsets):
    path = tmp_path / 'tuples.jsonl'
    dog, hound = [['dog']], [['hound'], ['hound', 'big']]
    rows = [
        {'id': '1', 'candidate': dog, 'references': [hound], 'texts': ['A dog.', ['Big hound!']]},
        {'id': '1', 'candidate': dog, 'references': [hound], 'texts': ['a dog', ['big hound']]},
        {'text': 'a cat', 'tuples': [['cat']]},
        {'id': '2', 'candidate': dog, 'references': [dog, [['cat']]]},
    ]
    path.write_text('\n'.join(map(json.dumps, rows)), encoding='utf-8')
    two = 'texts', ['are', 'unknown']
    of = lambda text, *texts: spice.score({'1': text, '2': two[0]}, {'1': texts, '2': two[1]}, tuples=path)['spice']
    evil, coco = of('A dog.', 'Big hound!'), of('a dog', 'big hound')
    assert evil.per_example == coco.per_example == {'1': pytest.approx(2 / 3), '2': pytest.approx(2 / 3)}
    assert evil.signature == coco.signature, 'the same tuples'
    assert of('a cat', 'a dog', 'a cat', 'A dog.').per_example['1'] == pytest.approx(2 / 3)
    assert spice.score({'9': 'a cat'}, {'9': ['a cat']}, tuples=path)['spice'].value == 1, 'whatever the id'
    assert spice.check(tuples=path) == 'tuples of 5 texts and 1 ids'


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        ('{"id": 1', ':2: '),
        ('[]', ':2: wanted an object with id, candidate and references'),
        ('{"id": true, "candidate": [], "references": []}', ':2: id is True'),
        ('{"id": 1, "candidate": [], "references": []}', ":2: id '1' was there before"),
        ('{"id": 2, "candidate": ["dog"], "references": []}', ':2: candidate: found "dog", wanted a list of one, two'),
        ('{"id": 2, "candidate": [["a", "b", "c", "d"]], "references": []}', ':2: candidate: found'),
        ('{"id": 2, "candidate": [[]], "references": []}', ':2: candidate: found'),
        ('{"id": 2, "candidate": [], "references": [[["a"]], ["b"]]}', ':2: references: found'),
        ('{"id": 2, "candidate": [], "references": {}}', ':2: references: found'),
        ('{"id": 2, "candidate": [], "references": [], "texts": "a"}', ':2: texts: found'),
        (
            '{"id": 2, "candidate": [], "references": [], "texts": ["a", ["b"]]}',
            ':2: references: found 0 lists of tuples',
        ),
        (
            '{"id": 2, "candidate": [], "references": [[["a"]]], "texts": ["a", ["a"]]}',
            ":2: 'a' had other tuples before",
        ),
        ('{"text": 2, "tuples": []}', ':2: text: found 2'),
        ('{"text": "a", "tuples": [[2]]}', ':2: tuples: found [2], wanted a list of one, two or three words'),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / 'tuples.jsonl'
    path.write_text('{"id": "1", "candidate": [["dog"]], "references": [[["dog"]]]}\n' + line)
    with pytest.raises(ValueError, match=r'tuples\.jsonl') as caught:
        spice.score({'1': 'a'}, {'1': ['a']}, tuples=path)
    assert message in str(caught.value)


def test_ids_and_texts_must_be_those_of_the_file(tmp_path):
    path = tmp_path / 'tuples.jsonl'
    path.write_text('{"id": "1", "candidate": [], "references": []}\n{"id": "2", "candidate": [], "references": []}')
    with pytest.raises(ValueError, match=r"tuples\.jsonl: no tuples for 1 id: '3'; no prediction for 2 ids: '1', '2'"):
        spice.score({'3': 'a'}, {'3': ['a']}, tuples=path)
    files.append(path, {'A dog.': [['dog']], '\ud83d': []})
    assert files.read(path) == files.Kept({'A dog.': [['dog']], '\ud83d': []}, {'1': ([], []), '2': ([], [])})
    assert spice.score({'1': 'a', '3': 'A dog.'}, {'1': ['b'], '3': ['\ud83d']}, tuples=path)['spice'].value == 0
    with pytest.raises(
        resources.Unavailable,
        match=r"(?s)tuples\.jsonl: it lacks 2 texts, such as 'a' .*To add them: needs CoreNLP.*or give tuples",
    ):
        spice.score({'3': 'a'}, {'3': ['A dog.', 'b']}, tuples=path)
    for call in (lambda p: spice.check(tuples=p), lambda p: spice.score({'1': 'a'}, {'1': ['a']}, tuples=p)):
        with pytest.raises(
            resources.Unavailable, match=r'none.jsonl: there is no such file. To add them: needs CoreNLP'
        ):
            call(tmp_path / 'none.jsonl')
        with pytest.raises(resources.Unavailable, match='Is a directory'):
            call(tmp_path)


def test_the_original_from_texts_to_scores(corenlp, tmp_path, monkeypatch):
    monkeypatch.setenv('JAVA_TOOL_OPTIONS', '-Duser.language=de -Duser.country=DE')
    monkeypatch.setenv('CORENLP_HOME', str(corenlp))
    found = spice.score(*TEXTS)['spice']
    assert found.per_example == pytest.approx(WANTED, abs=1e-12)
    assert found.value == pytest.approx(sum(WANTED.values()) / 4, abs=1e-12)
    assert 'source:spice-1.0+corenlp-3.6.0(java ' in found.signature
    # The tuples it finds give the same scores in Python; they are kept.
    path = tmp_path / 'kept.jsonl'
    assert spice.check(tuples=path).startswith('spice-1.0+corenlp-3.6.0(java ')
    kept = spice.score(*TEXTS, tuples=path)['spice']
    assert (kept.value, kept.per_example) == (found.value, found.per_example)
    texts = files.read(path).texts
    assert texts.keys() == {*TEXTS[0].values(), *(text for texts in TEXTS[1].values() for text in texts)}
    assert sorted(texts['young man ride horse']) == [['horse'], ['man'], ['man', 'horse', 'ride'], ['man', 'young']]
    assert sorted(texts['big élégant dog']) == [['dog'], ['dog', 'big'], ['dog', 'élégant']]
    assert texts[' \n'] == texts[''] == []


def test_no_text_is_parsed_twice(corenlp, tmp_path, monkeypatch):
    asked, parse = [], official.parse
    monkeypatch.setattr(official, 'parse', lambda program, texts: asked.append(texts) or parse(program, texts))
    path = tmp_path / 'kept.jsonl'
    options = {'tuples': path, 'corenlp': str(corenlp)}
    one = spice.score({'1': 'big dog'}, {'1': ['dog', 'big dog']}, **options)['spice']
    before = path.read_bytes()
    assert spice.score({'1': 'big dog'}, {'1': ['dog', 'big dog']}, **options)['spice'] == one
    assert path.read_bytes() == before
    two = spice.score({'1': 'big dog', '2': 'cat'}, {'1': ['dog', 'big dog'], '2': ['dog']}, **options)['spice']
    assert asked == [['big dog', 'dog'], ['cat']]
    assert (one.value, two.per_example) == (1, {'1': 1, '2': 0})
    assert path.read_bytes().startswith(before) and list(tmp_path.iterdir()) == [path]
    # Without the parser what is there still serves.
    assert spice.score({'1': 'big dog'}, {'1': ['dog', 'big dog']}, tuples=path)['spice'] == one
    # Where the file cannot be written, the score is there nevertheless.
    with pytest.warns(UserWarning, match='the tuples are not kept'):
        found = spice.score({'1': 'dog'}, {'1': ['dog']}, tuples=path / 'below', corenlp=str(corenlp))
    assert found['spice'].value == 1


def test_the_driver_is_compiled_once_and_one_example_is_enough(corenlp, cache):
    assert spice.score({'x': 'dog'}, {'x': ['dog']}, corenlp=str(corenlp))['spice'].value == 1.0
    (folder,) = [p for p in (cache / 'spice').iterdir() if (p / 'SpiceDriver.class').stat()]
    made = folder.stat().st_mtime_ns
    assert official.compiled(official.find(corenlp=str(corenlp))) == folder
    assert (folder.stat().st_mtime_ns, list((cache / 'spice').iterdir())) == (made, [folder])
    assert spice.check(corenlp=str(corenlp)).startswith('spice-1.0+corenlp-3.6.0(java ')


def test_without_models_it_says_what_the_parser_lacks(folder):
    home = spice_stub.corenlp(folder / 'bare', stub=False)
    with pytest.raises(
        _java.Failed, match=r'Unable to resolve "edu/stanford/nlp/models/lexparser/englishPCFG'
    ) as caught:
        spice.score({'x': 'dog'}, {'x': ['dog']}, corenlp=str(home))
    assert 'Loading parser from serialized file' in str(caught.value)


def test_what_is_missing_is_named(tmp_path, folder, monkeypatch):
    pair = {'x': 'dog'}, {'x': ['dog']}
    with pytest.raises(
        resources.Unavailable, match=r'3\.6\.0\.jar and no stanford-corenlp-3\.6\.0-models\.jar; unpack'
    ):
        spice.score(*pair)
    for name in official.CORENLP:
        (tmp_path / name).write_bytes(b'')
    (tmp_path / 'meteor').mkdir()
    with pytest.raises(resources.Unavailable, match=r'spice-1\.0\.jar'):
        spice.score(*pair, folder=str(tmp_path), corenlp=str(tmp_path))
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.delenv('JAVA_HOME', raising=False)
    with pytest.raises(resources.Unavailable, match='needs Java'):
        spice.score(*pair, corenlp=str(tmp_path))
    with pytest.raises(resources.Unavailable, match='needs Java'):
        spice.check(corenlp=str(tmp_path))


def test_a_java_without_compiler_says_so(corenlp, tmp_path, monkeypatch):
    java = tmp_path / 'java'
    java.write_text(f'#!/bin/sh\nexec "{resources.java()}" "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv('PATH', '')
    monkeypatch.setenv('EVIL_JAX_CACHE', str(tmp_path / 'cache'))
    with pytest.raises(resources.Unavailable, match=r'needs a Java compiler once.*install a JDK'):
        spice.score({'x': 'dog'}, {'x': ['dog']}, corenlp=str(corenlp), java=str(java))


def test_a_driver_that_does_not_compile(corenlp, tmp_path, monkeypatch):
    source = tmp_path / 'SpiceDriver.java'
    source.write_text('class SpiceDriver { nothing }')
    monkeypatch.setattr(official, 'DRIVER', source)
    with pytest.raises(resources.Unavailable, match=r'(?s)javac refuses the driver of SPICE: .*SpiceDriver\.java'):
        spice.check(corenlp=str(corenlp))


def test_nothing_to_score_needs_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', '')
    for table in (spice.table({}, {}), spice.table({}, {}, tuples=tmp_path / 'none')):
        found = table.scores()['spice']
        assert (found.value, found.n, found.reason) == (None, 0, 'no examples')
    assert list(tmp_path.iterdir()) == []


def test_the_driver_travels_with_the_package():
    assert official.DRIVER.is_file()
    assert 'SpiceParser' in official.DRIVER.read_text()
