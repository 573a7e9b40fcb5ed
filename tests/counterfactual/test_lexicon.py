"""WordNet as a lexicon: what it answers, its compiled file, and threads and processes that use it at once."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest
import tiny_wordnet as tiny  # beside this file

from evil_jax import records
from evil_jax.counterfactual import lexicon as lexicons
from evil_jax.counterfactual import wordnet

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty folder for the compiled file; `open_lexicon` of a folder reads it anew each time."""
    monkeypatch.setenv('EVIL_JAX_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setattr(lexicons, '_opened', lexicons._opened.__wrapped__)
    return tmp_path / 'cache'


@pytest.fixture
def compiled(cache, monkeypatch):
    """Numbers of synsets that were compiled, one for each time that it was done."""
    done = []
    original = wordnet.tables

    def tables(files):
        result = original(files)
        done.append(len(result['names']))
        return result

    monkeypatch.setattr(wordnet, 'tables', tables)
    return done


# What WordNet says.


def test_senses_are_in_order_of_rank(lexicon):
    assert lexicon.senses('dog', 'n')[:3] == ('dog.n.01', 'frump.n.01', 'dog.n.03')
    assert lexicon.senses('bike', 'n') == ('motorcycle.n.01', 'bicycle.n.01')
    assert lexicon.senses('small', 'a')[5] == 'little.s.07'  # lower-case letters
    assert lexicon.senses('swiftly', 'r') == ('swiftly.r.01',)
    assert lexicon.senses('nosuchword', 'n') == ()
    assert lexicon.senses('', 'n') == ()


def test_lemmas_are_found_however_they_are_written(lexicon):
    assert lexicon.senses('fire_hydrant', 'n') == lexicon.senses('Fire Hydrant', 'n') == ('fireplug.n.01',)
    assert lexicon.parts('Dog') == 'nv' and lexicon.parts('traffic light') == 'n' and lexicon.parts('qqq') == ''
    assert lexicon.parts('fast') == 'nvar'


def test_lemmas_of_synsets_are_as_written_without_markers(lexicon):
    assert lexicon.lemmas('dog.n.01') == ('dog', 'domestic dog', 'Canis familiaris')
    assert lexicon.lemmas('galore.s.01') == ('galore',)  # galore(ip) in the file


def test_relations_are_in_the_order_of_the_file(lexicon):
    assert lexicon.hypernyms('dog.n.01') == ('canine.n.02', 'domestic_animal.n.01')  # NLTK sorts them
    assert lexicon.hyponyms('canine.n.02')[:3] == ('bitch.n.04', 'dog.n.01', 'wolf.n.01')
    assert lexicon.siblings('dog.n.01') == (
        *('bitch.n.04', 'wolf.n.01', 'jackal.n.01', 'wild_dog.n.01', 'hyena.n.01', 'fox.n.01'),
        *('feeder.n.01', 'stocker.n.01', 'head.n.02', 'domestic_cat.n.01', 'stray.n.01'),
    )
    assert 'fast.a.01' in lexicon.similar('rapid.s.01') and 'rapid.s.01' in lexicon.similar('fast.a.01')
    assert lexicon.antonyms('small.a.01') == ('large.a.01',)
    assert lexicon.siblings('entity.n.01') == ()


def test_instances_are_no_kinds(lexicon):
    assert 'danube.n.01' in lexicon.senses('Danube', 'n')
    assert lexicon.hypernyms('danube.n.01') == ()
    assert 'danube.n.01' not in lexicon.hyponyms('river.n.01')
    assert lexicon.is_proper('Danube', 'danube.n.01')


@pytest.mark.parametrize(
    'lemma, synset, proper',
    [
        ('street', 'street.n.01', False),
        ('wall street', 'wall_street.n.01', True),
        ('labrador retriever', 'labrador_retriever.n.01', True),
        ('t-shirt', 'jersey.n.03', False),
        ('TV', 'television.n.01', False),
        ('domestic dog', 'dog.n.01', False),
        ('canis familiaris', 'dog.n.01', True),
        ('grey', 'grey.n.02', True),  # Lady Jane
        ('grey', 'grey.n.06', False),
    ],
)
def test_names(lexicon, lemma, synset, proper):
    assert lexicon.is_proper(lemma, synset) == proper


def test_what_is_above(lexicon):
    above = dict(lexicon.ancestors('dog.n.01'))
    assert list(above)[:3] == ['canine.n.02', 'domestic_animal.n.01', 'carnivore.n.01']
    assert above['carnivore.n.01'] == 2 and above['animal.n.01'] == 2 and above['entity.n.01'] == 8
    assert 'dog.n.01' not in above
    assert lexicon.ancestors('entity.n.01') == ()


@pytest.mark.parametrize(
    'a, b, similarity',  # as NLTK 3.8.1 gives them
    [
        ('dog.n.01', 'dog.n.01', 1.0),
        ('dog.n.01', 'cat.n.01', 0.2),
        ('dog.n.01', 'canine.n.02', 0.5),
        ('horse.n.01', 'zebra.n.01', 1 / 3),
        ('danube.n.01', 'rhine.n.01', 1 / 12),
        ('dog.n.01', 'freedom.n.01', 1 / 13),
        ('walk.v.01', 'eat.v.01', 0.2),
        ('be.v.01', 'eat.v.01', 0.25),
    ],
)
def test_similarity_of_paths(lexicon, a, b, similarity):
    assert lexicon.path_similarity(a, b) == lexicon.path_similarity(b, a) == pytest.approx(similarity, abs=1e-15)


def test_nothing_relates_other_parts_of_speech(lexicon):
    assert lexicon.path_similarity('large.a.01', 'small.a.01') == 0
    assert lexicon.path_similarity('dog.n.01', 'walk.v.01') == 0


def test_counts_of_semcor(lexicon):
    assert lexicon.count('dog', 'dog.n.01') == 42 and lexicon.count('Domestic_dog', 'dog.n.01') == 0
    assert lexicon.count('cat', 'dog.n.01') == 0
    assert lexicon.count('huge', 'huge.s.01') == 23
    assert lexicon.frequency('windows', 'n') == 0 < lexicon.frequency('window', 'n') == 82
    assert lexicon.frequency('nosuchword', 'n') == 0


def test_irregular_forms(lexicon):
    assert lexicon.exceptions('children', 'n') == ('child',)
    assert lexicon.exceptions('Axes', 'n') == ('ax', 'axis')
    assert lexicon.exceptions('dogs', 'n') == ()


def test_names_that_are_no_synset_are_told(lexicon):
    with pytest.raises(ValueError, match=r"no synset is called 'dog\.n\.99': wanted a name of WordNet 3\.0's"):
        lexicon.lemmas('dog.n.99')


def test_it_says_what_was_read(lexicon):
    assert lexicon.version == '3.0'
    assert lexicon.source == str(wordnet.find().resolve())
    assert lexicon.signature.startswith('wordnet:3.0|files:')


@pytest.mark.acceptance
def test_all_of_it_is_as_nltk_reads_it(lexicon):
    """Checksums of what NLTK 3.8.1 says of the same files, line ends repaired, related synsets sorted."""
    names = sorted(lexicon._names)
    lines = {
        'lemmas': (f'{name} {"|".join(lexicon.lemmas(name)).replace(" ", "_")}' for name in names),
        'hypernyms': (f'{name} {" ".join(sorted(lexicon.hypernyms(name)))}' for name in names),
        'hyponyms': (f'{name} {" ".join(sorted(lexicon.hyponyms(name)))}' for name in names),
        'similar': (f'{name} {" ".join(sorted(lexicon.similar(name)))}' for name in names),
        'antonyms': (f'{name} {" ".join(sorted(lexicon.antonyms(name)))}' for name in names),
    }
    assert len(names) == 117659
    assert {what: zlib.crc32('\n'.join(text).encode()) for what, text in lines.items()} == {
        'lemmas': 3874377800,
        'hypernyms': 3230472421,
        'hyponyms': 42206594,
        'similar': 868771742,
        'antonyms': 3405882305,
    }


# The compiled file.


def test_a_damaged_file_is_named_with_its_folder(cache, tmp_path):
    folder = tiny.write(tmp_path / 'wordnet', data_verb='00000010 38 v 01\n')
    with pytest.raises(ValueError, match=rf"{folder} has damaged files of WordNet's: data\.verb:1: wanted a synset"):
        lexicons.open_lexicon(folder)
    assert not cache.exists() or not list(cache.iterdir())


def test_it_is_compiled_once(cache, compiled, tmp_path):
    folder = tiny.write(tmp_path / 'wordnet')
    first = lexicons.open_lexicon(folder)
    second = lexicons.open_lexicon(folder)
    assert len(compiled) == 1 and [path.suffix for path in cache.iterdir()] == ['.npz']
    for lexicon in (first, second):
        assert lexicon.senses('dog', 'n') == ('pet.n.01', 'dog.n.02')
        assert lexicon.count('dog', 'dog.n.02') == 1


def test_other_files_make_another_one(cache, compiled, tmp_path):
    folder = tiny.write(tmp_path / 'wordnet')
    assert lexicons.open_lexicon(folder).lemmas('fast.r.01') == ('fast',)
    changed = tiny.FILES['data.adv'].replace('01 fast 0', '02 fast 0 quickly 0')
    tiny.write(folder, data_adv=changed)
    assert lexicons.open_lexicon(folder).lemmas('fast.r.01') == ('fast', 'quickly')
    assert len(compiled) == 2 and len(list(cache.iterdir())) == 2


def _without_arrays(path):
    np.savez(path, names=np.zeros(3))


DAMAGES = {
    'empty': lambda path: path.write_bytes(b''),
    'cut': lambda path: path.write_bytes(path.read_bytes()[:2000]),
    'a byte': lambda path: path.write_bytes(bytes(b ^ (i == 400) for i, b in enumerate(path.read_bytes()))),
    'a text': lambda path: path.write_text('not an archive'),
    'other arrays': _without_arrays,
    'a folder': lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize('damage', DAMAGES)
def test_a_damaged_one_is_made_anew(cache, compiled, tmp_path, damage):
    folder = tiny.write(tmp_path / 'wordnet')
    lexicons.open_lexicon(folder)
    (path,) = cache.iterdir()
    DAMAGES[damage](path)
    assert lexicons.open_lexicon(folder).senses('dog', 'n') == ('pet.n.01', 'dog.n.02')
    assert len(compiled) == 2
    if damage != 'a folder':  # which is left alone
        lexicons.open_lexicon(folder)
        assert len(compiled) == 2


def test_a_cache_that_cannot_be_written_is_done_without(cache, compiled, tmp_path, monkeypatch):
    folder = tiny.write(tmp_path / 'wordnet')

    def full(path, content):
        raise OSError(28, 'No space left on device', str(path))

    with monkeypatch.context() as patch:
        patch.setattr(records, 'atomic_write', full)
        assert lexicons.open_lexicon(folder).parts('dog') == 'nv'
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('EVIL_JAX_CACHE', str(tmp_path / 'file' / 'cache'))
    assert lexicons.open_lexicon(folder).parts('dog') == 'nv'
    assert len(compiled) == 2


def test_processes_that_make_it_at_once(cache, tmp_path):
    folder = tiny.write(tmp_path / 'wordnet')
    program = (
        'import sys\nfrom evil_jax.counterfactual import lexicon\n'
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "print(lexicon.open_lexicon(sys.argv[1]).senses('dog', 'n'))"
    )
    command = [sys.executable, '-c', program, str(folder)]
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == 'ready\n'
    for process in processes:
        process.stdin.write('\n')
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["('pet.n.01', 'dog.n.02')\n"] * 2
    (path,) = cache.iterdir()  # no temporary file is left
    with np.load(path, allow_pickle=False) as file:
        assert set(file.files) == set(wordnet.TABLES)


# Threads.


def test_threads_get_the_same_lexicon(monkeypatch, tmp_path, cache):
    folder = tiny.write(tmp_path / 'wordnet')
    monkeypatch.undo()
    monkeypatch.setenv('EVIL_JAX_CACHE', str(cache))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: lexicons.open_lexicon(folder), range(32)))
    assert len(set(map(id, opened))) == 1


def test_threads_get_the_same_answers(lexicon):
    words = ['dog', 'street', 'bike', 'table', 'man', 'wear', 'run', 'small', 'red', 'fire hydrant', 'people', 'talk']

    def ask(seed):
        answers = {}
        for i in np.random.default_rng(seed).permutation(len(words)):
            for pos in lexicon.parts(words[i]):
                for synset in lexicon.senses(words[i], pos):
                    answers[words[i], synset] = (
                        lexicon.lemmas(synset),
                        lexicon.siblings(synset),
                        lexicon.ancestors(synset),
                        lexicon.count(words[i], synset),
                        lexicon.path_similarity(synset, 'entity.n.01'),
                    )
        return answers

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(24)))
    finally:
        sys.setswitchinterval(switch)
    assert len(answers[0]) > 100 and all(answer == answers[0] for answer in answers)


@pytest.mark.acceptance
def test_it_loads_in_a_second(lexicon, measured):
    program = (
        'import time, numpy\nfrom evil_jax.counterfactual import lexicon\n'
        "pages = lambda: int(open('/proc/self/statm').read().split()[1])\n"
        'before, start = pages(), time.perf_counter()\n'
        'kept = lexicon.open_lexicon()\nprint(time.perf_counter() - start, (pages() - before) * 4096 / 1e6)'
    )
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    runs = [subprocess.check_output([sys.executable, '-c', program], env=environment, text=True) for _ in range(3)]
    seconds, memory = zip(*(map(float, run.split()) for run in runs))
    measured('WordNet compiled: seconds to load', '<=', 1.0, min(seconds))
    measured('WordNet compiled: MB in memory', '<=', 150, max(memory))
    start = time.perf_counter()
    for _ in range(200):
        for word in ('dog', 'street', 'man', 'table', 'window'):
            synset = lexicon.senses(word, 'n')[0]
            lexicon.hypernyms(synset), lexicon.hyponyms(synset), lexicon.siblings(synset)
    measured(
        'sense, hypernyms, hyponyms, siblings of a word, microseconds', '<=', 60, (time.perf_counter() - start) * 1e3
    )


def test_standing_of_a_lemma(lexicon):
    talk = lexicon.standing('Talk', 'talk.v.02')
    assert (talk.rank, talk.senses, talk.parts) == (2, 6, 2)
    assert talk.count == lexicon.count('talk', 'talk.v.02')
    assert talk.uses == lexicon.frequency('talk', 'v') and talk.everywhere == talk.uses + lexicon.frequency('talk', 'n')
    familiar = [lexicon.standing(animal, f'{animal}.n.01').glosses for animal in ('horse', 'zebra', 'quagga')]
    assert familiar[0] > 50 > familiar[1] > familiar[2] == 0
    assert lexicon.standing('delightful', 'delightful.s.01').rank == 1
    with pytest.raises(ValueError, match=r"'cat' is no lemma of dog\.n\.01: wanted one of dog, domestic dog"):
        lexicon.standing('cat', 'dog.n.01')


def test_usage(lexicon):
    assert lexicon.usage('water.n.03') == ('archaism.n.01',) and lexicon.usage('dog.n.01') == ()
