"""The parts of METEOR on small word lists of our own: normaliser, synonyms, the index of paraphrases, the search."""

import errno
import gzip
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from evil_jax import records
from evil_jax.metrics import meteor, resources
from evil_jax.metrics._meteor import align, formula, lexicon, normalise, paraphrases, workers
from evil_jax.metrics._meteor.block import EXACT, PARAPHRASE, STEM, SYNONYM, Block

PREFIXES = {'Dr': normalise.ANY, 'No': normalise.BEFORE_NUMBERS}
PAIRS = [
    ('in front of', 'before'),
    ('before', 'ahead of'),
    ('a lot of', 'many'),
    ('many', 'several'),
    ('bike', 'bicycle'),
]


def pack(pairs):
    return gzip.compress(''.join(f'0.5\n{source}\n{target}\n' for source, target in pairs).encode(), mtime=0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small pycocoevalcap, and an empty cache."""
    monkeypatch.setenv('EVIL_JAX_CACHE', str(tmp_path / 'cache'))
    for cached in (workers._index, workers._lexicon, meteor._known):
        cached.cache_clear()
    meteor_folder = tmp_path / 'small' / 'meteor'
    (meteor_folder / 'data').mkdir(parents=True)
    (meteor_folder / 'data' / 'paraphrase-en.gz').write_bytes(pack(PAIRS))
    with zipfile.ZipFile(meteor_folder / 'meteor-1.5.jar', 'w') as jar:
        jar.writestr('function/english.words', 'the\na\n.\nof\nin\n')
        jar.writestr('nonbreaking/english.prefixes', '# comment\n\nDr\nNo #NUMERIC_ONLY#\n')
        jar.writestr('synonym/english.exceptions', 'mouse\nmice\ngo\nwent gone\n')
        jar.writestr(
            'synonym/english.synsets',
            'mouse\n00000001\nrodent\n00000001\ngo\n00000002\nmove\n00000002 00000003\nbox\n00000004\ncase\n00000004\n',
        )
    yield tmp_path / 'small'
    for cached in (workers._index, workers._lexicon, meteor._known):
        cached.cache_clear()


def files(folder):
    return meteor._files(folder)


@pytest.mark.parametrize(
    ('text', 'wanted'),
    [
        ('', ''),
        ('  A Dog  ', 'a dog'),
        ('(yes)!', '( yes ) !'),
        ("isn't the man's", "isn 't the man 's"),
        ("the 90's 'quoted'", "the 90 's ' quoted '"),
        ('‘a’ “b” \'\'c\'\' `d`', '\' a \' " b " " c " \' d \''),
        ('1,000 and x,y and 3,z', '1,000 and x , y and 3 , z'),
        ('a,b,c', 'a , b,c'),
        ('well-known a-b-c -5 2–3 --', 'well known a b-c -5 2 - 3 -'),
        ('The U.S. Army. Dr. Who', 'the us army . dr. who'),
        ('end. Next etc. and No. 5 No. Five', 'end . next etc. and no. 5 no . five'),
        ('wait... what.. 3.5 x', 'wait ... what .. 3.5 x'),
        ('last.', 'last .'),
        ('a\tb\x0bc', 'a b\x0bc'),
        ('Straße\u00a0É', 'straße é'),
        ('日本 $5', '日 本 $ 5'),
    ],
)  # fmt: skip
def test_words(text, wanted):
    assert ' '.join(normalise.words(normalise.line(text), PREFIXES)) == wanted


def test_lexicon(folder):
    words = lexicon.Lexicon(files(folder)[0])
    assert words.function_words == {'the', 'a', '.', 'of', 'in'}
    assert words.prefixes == PREFIXES
    assert words.synsets('mice') == words.synsets('rodents') == {1}
    assert words.synsets('went') == {2} and words.synsets('moving') == {2, 3}
    assert words.synsets('boxes') == words.synsets('cases') == {4}
    assert words.synsets('') == words.synsets('s') == words.synsets('unknown') == set()
    assert words.stem('running') == words.stem('runs') == lexicon.java_hash('run')


def test_java_hash():
    assert lexicon.java_hash('') == 0
    assert lexicon.java_hash('hello') == 99162322
    assert lexicon.java_hash('an') == lexicon.java_hash('c0')
    assert lexicon.java_hash('é') == 233
    assert lexicon.java_hash('😀') == (31 * 0xD83D + 0xDE00) % 2**32


def test_another_stemmer_is_refused(monkeypatch):
    monkeypatch.setattr(lexicon, 'stemmer_version', lambda: '3.0.1')
    with pytest.raises(resources.Unavailable, match=r'needs snowballstemmer 2 \(rules of 3\.0\.1 differ'):
        lexicon.stemmer()


def test_a_broken_jar_is_named(folder):
    jar, _ = files(folder)
    with open(jar, 'wb') as file:
        file.write(b'no zip')
    with pytest.raises(resources.Unavailable, match=r'meteor-1\.5\.jar cannot be read'):
        lexicon.Lexicon(jar)


def modules(folder, candidate, reference):
    """(reference words, candidate words, module) of each match of the alignment, and the statistics."""
    jar, table = files(folder)
    block = Block([tuple(candidate.split()), tuple(reference.split())], lexicon.Lexicon(jar), paraphrases.opened(table))
    chosen = align._search(
        len(block.texts[1].words),
        *align._fixed(align._matches(*block.texts, block), *block.texts),
    )
    one, two = candidate.split(), reference.split()
    return [(' '.join(two[i : i + n]), ' '.join(one[j : j + m]), k) for i, n, j, m, k in chosen]


def test_each_kind_of_match(folder):
    assert modules(folder, 'the mice', 'the rodent') == [('the', 'the', EXACT), ('rodent', 'mice', SYNONYM)]
    assert modules(folder, 'he walks', 'they walked') == [('walked', 'walks', STEM)]
    # The table is read in both directions, and phrases count as one match.
    assert modules(folder, 'before it', 'in front of it') == [
        ('in front of', 'before', PARAPHRASE),
        ('it', 'it', EXACT),
    ]
    assert modules(folder, 'in front of it', 'before it') == [
        ('before', 'in front of', PARAPHRASE),
        ('it', 'it', EXACT),
    ]
    assert modules(folder, 'in front of', 'ahead of') == [('of', 'of', EXACT)]  # no paraphrase of a paraphrase
    assert modules(folder, 'bike', 'car') == []


def test_search_prefers_words_then_chunks_then_closeness(folder):
    assert modules(folder, 'x a b', 'a b a') == [('a', 'a', EXACT), ('b', 'b', EXACT)]
    # 'in front of' as a paraphrase counts (3 // 2 + 1 // 2), less than two exact words.
    assert modules(folder, 'before in front', 'in front of') == [('in', 'in', EXACT), ('front', 'front', EXACT)]


def test_statistics_by_hand(folder):
    jar, table = files(folder)
    rows = workers.statistics([('the mice went .', 'the rodent goes in front of .')], jar, table)
    # the, mice=rodent (synonym), went=goes (synonym), '.': content 2, function 2; chunks: [the mice went] [.].
    assert rows.tolist() == [[4, 7, 2, 4, 0, 0, 2, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 2, 4, 4]]
    p = (2 * 0.8 * 0.75 + 2 * 0.25) / (2 * 0.75 + 2 * 0.25)
    r = (2 * 0.8 * 0.75 + 2 * 0.25) / (3 * 0.75 + 4 * 0.25)
    wanted = 1 / (0.15 / p + 0.85 / r) * (1 - 0.6 * (2 / 4) ** 0.2)
    assert formula.score(rows)[0] == pytest.approx(wanted, rel=1e-14)
    assert formula.score(rows[0]) == formula.score(rows)[0]


def test_index_is_made_once_and_again_when_damaged(folder):
    _, table = files(folder)
    path = paraphrases.path(table)
    index = paraphrases.opened(table)
    assert (len(index.hashes), index.longest, len(index.targets)) == (8, 3, 5)
    whole, stamp = path.read_bytes(), path.stat().st_mtime_ns
    paraphrases.opened(table)
    assert path.stat().st_mtime_ns == stamp
    flipped = bytearray(whole)
    flipped[-100] ^= 1
    header = bytearray(whole)
    header[30] ^= 1
    for damaged in (b'', whole[:10], whole[:-1], bytes(flipped), bytes(header), b'something else' * 1000):
        path.write_bytes(damaged)
        with pytest.raises((paraphrases.Damaged, OSError)):
            paraphrases.Index(path)
        paraphrases.opened(table)
        assert path.read_bytes() == whole
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # no lock, no temporary file left


def test_another_table_has_another_index(folder):
    jar, table = files(folder)
    first = paraphrases.path(table)
    paraphrases.opened(table)
    with open(table, 'wb') as file:
        file.write(pack([*PAIRS[:-1], ('bike', 'cycle')]))
    assert paraphrases.path(table) != first
    assert workers.statistics([('bike', 'cycle')], jar, table)[0, 16] == 1


def test_two_processes_at_once(folder):
    _, table = files(folder)
    program = f'from evil_jax.metrics._meteor import paraphrases; print(len(paraphrases.opened({table!r}).hashes))'
    both = [
        subprocess.Popen(
            [sys.executable, '-c', program], stdout=subprocess.PIPE, cwd=records.__file__.split('/evil_jax/')[0]
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=60)[0] for process in both] == [b'8\n', b'8\n']


def test_waits_for_another_process_and_survives_a_dead_one(folder, monkeypatch):
    _, table = files(folder)
    path = paraphrases.path(table)
    path.parent.mkdir(parents=True)
    path.with_suffix('.lock').write_text('99999')  # of a process that was killed
    (path.parent / f'.{path.name}.abc').write_text('half')
    with records.locked(path.with_suffix('.lock'), 'busy'):
        waited = []

        def sleep(seconds):
            waited.append(seconds)
            path.write_bytes(paraphrases.build(table))  # the other one is done

        monkeypatch.setattr(paraphrases.time, 'sleep', sleep)
        assert len(paraphrases.opened(table).hashes) == 8
    assert len(waited) == 1


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_no_room_is_one_clear_error(folder, monkeypatch, number):
    def full(path, content):
        raise OSError(number, 'no way')

    monkeypatch.setattr(records, 'atomic_write', full)
    with pytest.raises(resources.Unavailable, match=r'needs 52 MB .*\(no way\).*EVIL_JAX_CACHE'):
        meteor.table({'x': 'a'}, {'x': ['a']}, folder=folder)


def test_a_cache_that_cannot_be_made(folder, monkeypatch, tmp_path):
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('EVIL_JAX_CACHE', str(tmp_path / 'file' / 'cache'))
    with pytest.raises(resources.Unavailable, match='EVIL_JAX_CACHE'):
        meteor.table({'x': 'a'}, {'x': ['a']}, folder=folder)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'no gzip', 'cannot be read'),
        (pack(PAIRS)[:-9], 'cannot be read'),
        (gzip.compress(b'0.5\none\n', mtime=0), 'groups of three lines'),
        (gzip.compress(b'', mtime=0), 'groups of three lines'),
        (pack([('a b', 'c'), ('a  b', 'd')]), 'single blanks'),
        (pack([('', 'c')]), 'single blanks'),
    ],
)
def test_no_table(folder, content, message):
    _, table = files(folder)
    with open(table, 'wb') as file:
        file.write(content)
    with pytest.raises(resources.Unavailable, match=message):
        paraphrases.opened(table)


def test_phrases_are_found_wherever_they_stand(folder):
    index = paraphrases.opened(files(folder)[1])
    found = index.find(np.array([], np.uint64))
    assert found.size == 0
    text = ('x', 'in', 'front', 'of', 'many')
    block = Block([text, ('before', 'several'), ()], lexicon.Lexicon(files(folder)[0]), index)
    spans = [[text[i : i + n] for i, n, _ in t.spans] for t in block.texts[:1]]
    assert spans == [[('in', 'front', 'of'), ('many',)]]
    assert block.texts[2].spans == [] and block.texts[2].words == []
