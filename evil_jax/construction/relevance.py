"""The relevance of an explanation: the share of what it has to name that it does name (Kayser et al., 2021, B.2).

For a pair somebody lists its required attributes: words or phrases without which no explanation says why the label is
right. The file is CSV or JSON lines with `pairID` and `attributes`: 'umbrella|parasol;wet street' is two attributes, of
which the first can be said in two ways (in JSON lines also a list, one attribute an entry). A phrase is named where all
its words are in the explanation, in any order and with anything between them; words agree by their stems (Snowball's
English stemmer, as in METEOR), so that 'umbrellas' names 'umbrella'. How phrases are found is ours: the paper says what
is counted, not how.
"""

import functools
import re
from collections.abc import Sequence

import numpy as np
from snowballstemmer.english_stemmer import EnglishStemmer

from evil_jax import stats
from evil_jax.construction import _table
from evil_jax.data.sources import _files

Attribute = tuple[frozenset[str], ...]  # the ways to say it, each the stems of its words
_STEMMER = EnglishStemmer()  # its own, not what the package prefers, which may be a compiled one of other rules
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def read(path) -> dict[str, tuple[Attribute, ...]]:
    """{pairID: its attributes}.

    Raises:
      ValueError: a column is missing, a pairID twice, or nothing that an explanation could name; file and line are
        named.
    """
    found, places = {}, {}
    for where, row in _table.rows(path, ('pairID', 'attributes')):
        pair_id = _files.filled(row, 'pairID', where)
        if pair_id in found:
            raise ValueError(f'{where}: pairID {pair_id!r} again (first at {places[pair_id]})')
        found[pair_id] = _attributes(_files.field(row, 'attributes', (str, list), where), where)
        places[pair_id] = where
    if not found:
        raise ValueError(f'{path}: no attributes of any pair')
    return found


def _attributes(value, where) -> tuple[Attribute, ...]:
    parts = value.split(';') if isinstance(value, str) else value
    texts = [_files.checked(part, str, f'{where}: attributes') for part in parts]
    found = []
    for text in filter(str.strip, texts):
        ways = tuple(stems for way in text.split('|') if (stems := _stems(way)))
        if not ways:
            raise ValueError(f'{where}: attribute {text!r} has no word in it')
        found.append(ways)
    if not found:
        raise ValueError(f'{where}: no attributes: leave out pairs whose explanations need not name anything')
    return tuple(found)


def score(explanation: str, attributes: Sequence[Attribute]) -> float:
    """Share of the attributes that the explanation names, 0 to 1."""
    there = _stems(explanation)
    return sum(any(way <= there for way in ways) for ways in attributes) / len(attributes)


def summary(scores: Sequence[float], *, resamples: int = 1_000, seed: int = 0) -> dict:
    """Of scores of explanations, for JSON.

    Returns:
      `explanations`, their number; `mean` [value, low, high] with a bootstrap interval; `full` [share that names
      everything, low, high] with Wilson's; both are None without scores, all at 95 %.
    """
    values = np.asarray(scores, float)
    if not len(values):
        return {'explanations': 0, 'mean': None, 'full': None}
    mean, full = float(values.mean()), int((values == 1).sum())
    around = stats.mean_interval(values, resamples=resamples, seed=seed) or (None, None)
    return {
        'explanations': len(values),
        'mean': [mean, *around],
        'full': [full / len(values), *map(float, stats.wilson(full, len(values)))],
    }


def _stems(text: str) -> frozenset[str]:
    words = _WORD.findall(text.lower().replace('’', "'"))
    return frozenset(map(_stem, words))


@functools.lru_cache(100_000)
def _stem(word: str) -> str:
    return _STEMMER.stemWord(word)
