"""WordNet as a lexicon: lemmas, senses in order of rank, and relations of synsets in the order of WordNet's files.

WordNet's files are compiled once, to a file in `metrics.resources.cache()` that loads in a fraction of a second. A
Lexicon never changes after it is made: any number of threads may ask it at once.
"""

import contextlib
import functools
import io
import os
import pathlib
import threading
from typing import NamedTuple

import numpy as np

from evil_jax import records
from evil_jax.counterfactual import wordnet
from evil_jax.metrics import resources

Unavailable = wordnet.Unavailable

_LAYOUT = 3  # of the compiled file; another one makes a new file
_LOCK = threading.Lock()


def open_lexicon(folder: str | os.PathLike = '') -> 'Lexicon':
    """The lexicon of a folder with WordNet's files; every call of this process gets the same one.

    Args:
      folder: where WordNet's files are; '' = the first place that has them, see `wordnet.find`.

    Raises:
      Unavailable: WordNet's files are not there. The message lists where it was looked for and what to install.
      ValueError: a file is not in WordNet's format.
    """
    with _LOCK:
        return _opened(wordnet.find(folder).resolve())


@functools.lru_cache(maxsize=2)
def _opened(folder: pathlib.Path) -> 'Lexicon':
    files = wordnet.contents(folder)
    digest = wordnet.digest(files)
    name = f'wordnet-{_LAYOUT}-{digest}.npz'
    tables = _cached(name)
    if tables is None:
        try:
            tables = wordnet.tables(files)
        except ValueError as error:
            raise ValueError(f"{folder} has damaged files of WordNet's: {error}") from error
        _keep(name, tables)
    return Lexicon(tables, source=str(folder), digest=digest)


def _cached(name):
    try:
        with np.load(io.BytesIO((resources.cache() / name).read_bytes()), allow_pickle=False) as file:
            return {key: file[key] for key in wordnet.TABLES}
    except Exception:  # not there or damaged, in any of the ways zipfile and NumPy have to say so: it is made anew
        return None


def _keep(name, tables):
    content = io.BytesIO()
    np.savez(content, **tables)
    with contextlib.suppress(OSError):  # no room or no right: the next process compiles again
        records.atomic_write(resources.cache() / name, content.getvalue())


class Standing(NamedTuple):
    """How common a lemma is.

    Attributes:
      rank: of the sense among the entry's senses of that part of speech, from 1.
      senses: how many these are.
      count: how often SemCor has the lemma in this sense.
      uses: as this part of speech, in all senses.
      everywhere: as any part of speech.
      parts: in how many parts of speech it is an entry.
      glosses: in how many definitions and examples of WordNet's it occurs; 0 for three words and more.
    """

    rank: int
    senses: int
    count: int
    uses: int
    everywhere: int
    parts: int
    glosses: int


class Lexicon:
    """Entries and synsets of WordNet. Synsets go by their names: 'dog.n.01' is the first sense of the noun dog.

    pos is 'n', 'v', 'a' or 'r'; satellite adjectives count as 'a', and keep the 's' in their names. Lemmas are looked
    up whatever their case, with blanks or underscores. What is not in WordNet has no senses; a name that is no synset's
    raises ValueError.

    Attributes:
      source: folder of WordNet's files.
      version: of WordNet, '3.0'.
      signature: one word for reports, which says what was read: version and digest of the files.
    """

    def __init__(self, tables: dict[str, np.ndarray], source: str, digest: str):
        self.source = source
        self.version = _text(tables['version'])
        self.signature = f'wordnet:{self.version}|files:{digest[:8]}'
        self._names = tuple(_text(tables['names']).split('\n'))
        self._number = {name: number for number, name in enumerate(self._names)}
        self._words = tuple(_text(tables['words']).split('\n'))
        self._row, self._senses, self._counts, self._glosses, self._exceptions = {}, {}, {}, {}, {}
        for pos in wordnet.POS:
            self._row[pos] = {lemma: row for row, lemma in enumerate(_text(tables[f'entries_{pos}']).split('\n'))}
            self._senses[pos] = _Lists(tables[f'first_{pos}'], tables[f'senses_{pos}'])
            self._counts[pos] = _Lists(tables[f'first_{pos}'], tables[f'counts_{pos}'])
            self._glosses[pos] = memoryview(tables[f'glosses_{pos}']).toreadonly()
            forms = (line.split() for line in _text(tables[f'exceptions_{pos}']).split('\n'))
            self._exceptions[pos] = {_key(form): tuple(map(_key, bases)) for form, *bases in forms}
        self._related = {name: _Lists(tables[f'first_{name}'], tables[name]) for name in wordnet.RELATIONS}
        self._above = functools.lru_cache(maxsize=1 << 14)(self._climb)

    def senses(self, lemma: str, pos: str) -> tuple[str, ...]:
        """Synsets of an entry, the first sense first; empty where there is no such entry."""
        row = self._row[pos].get(_key(lemma))
        return () if row is None else self._called(self._senses[pos][row])

    def parts(self, lemma: str) -> str:
        """Every pos in which a lemma is an entry, in the order 'nvar': 'nv' for dog, '' for no entry."""
        key = _key(lemma)
        return ''.join(pos for pos, rows in self._row.items() if key in rows)

    def exceptions(self, form: str, pos: str) -> tuple[str, ...]:
        """Base forms of an irregular form: ('child',) for children. Not every one of them is an entry."""
        return self._exceptions[pos].get(_key(form), ())

    def lemmas(self, synset: str) -> tuple[str, ...]:
        """Lemmas of a synset as they are written, with blanks, in the order of the file."""
        return tuple(self._words[self._at(synset)].split('|'))

    def hypernyms(self, synset: str) -> tuple[str, ...]:
        """Synsets of which this one is a kind, in the order of the file; those it is an instance of are left out."""
        return self._called(self._related['hypernyms'][self._at(synset)])

    def hyponyms(self, synset: str) -> tuple[str, ...]:
        """Kinds of this synset, in the order of the file, without instances."""
        return self._called(self._related['hyponyms'][self._at(synset)])

    def similar(self, synset: str) -> tuple[str, ...]:
        """Satellites of an adjective, or the adjective of a satellite, in the order of the file."""
        return self._called(self._related['similar'][self._at(synset)])

    def antonyms(self, synset: str) -> tuple[str, ...]:
        """Synsets with a lemma that is opposite to one of this synset's, each once, in the order of the file."""
        return tuple(dict.fromkeys(self._called(self._related['antonyms'][self._at(synset)])))

    def usage(self, synset: str) -> tuple[str, ...]:
        """How a synset's lemmas are used, as synsets: trademark.n.02, slang.n.02, ethnic_slur.n.01, ..."""
        return self._called(self._related['usage'][self._at(synset)])

    def siblings(self, synset: str) -> tuple[str, ...]:
        """Other hyponyms of this synset's hypernyms, each once, in the order of the file."""
        itself = self._at(synset)
        hyponyms = self._related['hyponyms']
        found = dict.fromkeys(s for h in self._related['hypernyms'][itself] for s in hyponyms[h] if s != itself)
        return self._called(found)

    def ancestors(self, synset: str) -> tuple[tuple[str, int], ...]:
        """(hypernym, steps up to it) of everything above a synset, each once, the nearest first. Itself is left out."""
        depths = self._above(self._at(synset), ('hypernyms',))
        return tuple((self._names[number], depth) for number, depth in depths.items() if depth)

    def path_similarity(self, a: str, b: str) -> float:
        """1 / (1 + length of the shortest path over hypernyms), as NLTK computes it; 0 where there is no path.

        Verbs have many roots, which count as hyponyms of one more; adjectives and adverbs have no hypernyms.
        """
        relations = ('hypernyms', 'instance_of')
        up_a, up_b = self._above(self._at(a), relations), self._above(self._at(b), relations)
        lengths = [up_a[number] + up_b[number] for number in up_a.keys() & up_b.keys()]
        if {_kind(a), _kind(b)} == {'v'}:
            lengths.append(max(up_a.values()) + max(up_b.values()) + 2)
        return 1 / (1 + min(lengths)) if lengths else 0.0

    def count(self, lemma: str, synset: str) -> int:
        """How often SemCor has a lemma in the sense of a synset; 0 as well where it is no lemma of the synset."""
        number, pos = self._at(synset), 'a' if _kind(synset) == 's' else _kind(synset)
        row = self._row[pos].get(_key(lemma))
        senses = () if row is None else self._senses[pos][row].tolist()
        return self._counts[pos][row][senses.index(number)] if number in senses else 0

    def frequency(self, lemma: str, pos: str) -> int:
        """How often SemCor has an entry, in all of its senses."""
        row = self._row[pos].get(_key(lemma))
        return 0 if row is None else sum(self._counts[pos][row])

    def standing(self, lemma: str, synset: str) -> Standing:
        """How common a lemma is, and in the sense of a synset that it is a lemma of."""
        number, kind, key = self._at(synset), _kind(synset), _key(lemma)
        pos = 'a' if kind == 's' else kind
        row, everywhere, parts = None, 0, 0
        for part, rows in self._row.items():
            if (found := rows.get(key)) is not None:
                parts += 1
                uses = sum(self._counts[part][found])
                everywhere += uses
                if part == pos:
                    row, own = found, uses
        senses = [] if row is None else self._senses[pos][row].tolist()
        if number not in senses:
            raise ValueError(f'{lemma!r} is no lemma of {synset}: wanted one of {", ".join(self.lemmas(synset))}')
        at = senses.index(number)
        count, glosses = self._counts[pos][row][at], self._glosses[pos][row]
        return Standing(at + 1, len(senses), count, own, everywhere, parts, glosses)

    def is_proper(self, lemma: str, synset: str) -> bool:
        """Whether a synset is an instance (Wall Street), or writes this lemma as a name ('Labrador retriever').

        A name has a word that begins with one capital letter and goes on in small ones; T-shirt and TV are none.
        """
        number = self._at(synset)
        if self._related['instance_of'][number]:
            return True
        key = _key(lemma)
        return any(_key(word) == key and _is_name(word) for word in self._words[number].split('|'))

    def _at(self, synset):
        number = self._number.get(synset)
        if number is None:
            raise ValueError(
                f"no synset is called {synset!r}: wanted a name of WordNet {self.version}'s, like 'dog.n.01'"
            )
        return number

    def _called(self, numbers):
        return tuple([self._names[number] for number in numbers])

    def _climb(self, number, relations):
        """Synset -> steps up to it, itself included, in order of the steps."""
        depths, level = {number: 0}, [number]
        while level:
            above = [up for low in level for relation in relations for up in self._related[relation][low]]
            level = [up for up in dict.fromkeys(above) if up not in depths]
            depths.update(dict.fromkeys(level, depths[next(reversed(depths))] + 1))
        return depths


class _Lists:
    """Lists of integers of different lengths in two arrays. A memoryview gives Python's own integers, and fast."""

    def __init__(self, first: np.ndarray, values: np.ndarray):
        self._first, self._values = (memoryview(array).toreadonly() for array in (first, values))

    def __getitem__(self, row: int) -> memoryview:
        return self._values[self._first[row] : self._first[row + 1]]


def _text(array):
    return array.tobytes().decode()


def _key(lemma):
    return lemma.lower().replace('_', ' ')


def _kind(synset):
    return synset.rsplit('.', 2)[1]


def _is_name(lemma):
    return any(word[:1].isupper() and word[1:].islower() and word[1:2].isalpha() for word in lemma.split(' '))
