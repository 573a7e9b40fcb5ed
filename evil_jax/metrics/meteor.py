"""METEOR 1.5 (Denkowski and Lavie, 2014) for English, as coco-caption runs it (`-l en -norm`). Scale 0..1.

In Python, with all statistics and scores equal to the original program's; or that program itself (`backend='jar'`).
Both read the user's pycocoevalcap: word lists, WordNet and 5.27 million paraphrases, of which the Python one makes an
index once (in `resources.cache`). Texts go through METEOR's own normaliser, whatever the protocol's tokeniser did
before: it lower-cases, sets punctuation apart and keeps it.

An example's score is that of its best reference. The corpus score is that of the summed statistics of best references,
without the chunks of examples that match in every word and in one chunk; it is no mean. Other METEORs (nltk's is an
earlier version, on another WordNet) give other numbers, up to twice as high.

A line break in a text is a blank and '|||', the program's separator, is nothing, in both backends. An empty text scores
0, against an empty one too.
"""

import functools
import os
import pathlib
import zipfile
import zlib

import numpy as np

from evil_jax.metrics import _java, base, resources
from evil_jax.metrics._meteor import formula, jar, lexicon, normalise, paraphrases, workers
from evil_jax.records import Score

NAMES = ('meteor',)
BACKENDS = ('python', 'jar')
_POOLED = 23  # the column of an example's part in the corpus's chunks
_KEPT = 200_000  # pairs whose statistics are remembered: protocols and systems have texts in common


def table(
    predictions: base.Predictions,
    references: base.References,
    *,
    backend: str = 'python',
    folder: str | os.PathLike = '',
    java: str = '',
    processes: int = 0,
) -> base.Table:
    """Statistics per example [N, 24]: the program's 23 (see `statistics`), then the example's part in the chunks.

    Args:
      predictions, references: texts by id.
      backend: 'python', or 'jar' for the Java program.
      folder: pycocoevalcap; '' = the installed one.
      java: path or name of Java, for the jar; '' = see `resources.java`.
      processes: of the Python backend; 0 = what pays. The result does not depend on it.

    Raises:
      ValueError: as `base.join` does, or another backend.
      Unavailable: pycocoevalcap, the stemmer or (for the jar) Java is missing; or the index cannot be written.
    """
    if backend not in BACKENDS:
        raise ValueError(f'METEOR: backend is {backend!r}, wanted one of {", ".join(BACKENDS)}')
    ids, candidates, reference_lists = base.join(predictions, references)
    rows = statistics(candidates, reference_lists, backend=backend, folder=folder, java=java, processes=processes)
    pooled = np.where(formula.perfect(rows), 0.0, rows[:, formula.CHUNKS])
    options = _options(backend, folder, java) if ids else {'backend': backend}
    weights = zip(('exact', 'stem', 'synonym', 'paraphrase'), formula.WEIGHTS)
    signature = base.signature(
        'meteor', variant='1.5(en,rank)', tok='meteor(-norm,keeps-punctuation)', case='lower',
        nrefs=base.nrefs(reference_lists), multiref='best', corpus='pooled', alpha=formula.ALPHA, beta=formula.BETA,
        gamma=formula.GAMMA, delta=formula.DELTA, weights=','.join(f'{name}={w:g}' for name, w in weights),
        **options, scale='0..1',
    )  # fmt: skip
    return base.Table(
        ids=tuple(ids),
        statistics=np.concatenate([rows, pooled[:, None]], 1),
        sentence={'meteor': formula.score(rows)},
        corpus=_corpus,
        signatures={'meteor': signature},
    )


def score(predictions: base.Predictions, references: base.References, **options) -> dict[str, Score]:
    """{'meteor': Score}; `options` and errors as in `table`."""
    return table(predictions, references, **options).scores()


def statistics(
    candidates: list[str],
    reference_lists: list[list[str]],
    *,
    backend: str = 'python',
    folder: str | os.PathLike = '',
    java: str = '',
    processes: int = 0,
) -> np.ndarray:
    """The 23 statistics [N, 23] of each candidate against the best of its references; arguments as in `table`.

    Words of candidate and reference; function words of both; for each module (exact, stem, synonym, paraphrase) matched
    content words of both and matched function words of both; chunks; matched words of both.
    """
    if not candidates:
        return np.zeros((0, 23))
    rows = [
        (normalise.line(candidate), tuple(map(normalise.line, references)))
        for candidate, references in zip(candidates, reference_lists)
    ]
    jar_file, table_file = _files(folder)
    if backend == 'jar':
        unique = list(dict.fromkeys(rows))
        found = jar.statistics(unique, jar_file, table_file, resources.java(java))
        known = dict(zip(unique, found.astype(np.float64)))
        return np.array([known[row] for row in rows])
    known = _known(*_stamp(jar_file), *_stamp(table_file))
    pairs = [(candidate, reference) for candidate, references in rows for reference in references]
    if missing := [pair for pair in dict.fromkeys(pairs) if pair not in known]:
        if len(known) + len(missing) > _KEPT:
            needed = {pair: known[pair] for pair in pairs if pair in known}
            known.clear()
            known.update(needed)
        known.update(zip(missing, workers.statistics(missing, jar_file, table_file, processes)))
    found = np.array([known[pair] for pair in pairs], np.float64)
    scores = formula.score(found)
    ends = np.cumsum([len(references) for _, references in rows])
    best = [a + int(np.argmax(scores[a:b])) for a, b in zip([0, *ends[:-1]], ends)]  # the first of equals
    return found[best]


def _corpus(sums: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    sums = np.array(sums, np.float64)
    sums[..., formula.CHUNKS] = sums[..., _POOLED]
    return {'meteor': np.where(np.asarray(counts) > 0, formula.score(sums[..., :_POOLED]), np.nan)}


def _files(folder) -> tuple[str, str]:
    """Paths of the jar and of the table of paraphrases."""
    meteor = pathlib.Path(os.path.abspath(resources.pycocoevalcap(folder))) / 'meteor'
    files = [meteor / 'meteor-1.5.jar', meteor / 'data' / 'paraphrase-en.gz']
    for file in files:
        if not file.is_file():
            raise resources.Unavailable(f'needs {file.name} of pycocoevalcap 1.2, which is not there')
    return str(files[0]), str(files[1])


def _stamp(file: str) -> tuple[str, int, int]:
    stat = os.stat(file)
    return file, stat.st_size, stat.st_mtime_ns


@functools.lru_cache(1)
def _known(*stamps) -> dict[tuple[str, str], np.ndarray]:
    """Statistics of the pairs scored so far with these files."""
    return {}


def _options(backend: str, folder, java: str) -> dict[str, str]:
    """What the number depends on beside the variant, for the signature."""
    jar_file, table_file = _files(folder)
    with zipfile.ZipFile(jar_file) as archive:
        sums = [archive.getinfo(name).CRC for name in lexicon.MEMBERS.values()]
    data = f'{zlib.crc32(repr((sums, paraphrases.identity(table_file))).encode()):08x}'
    if backend == 'jar':
        return {'backend': f'jar(java-{_java.version(resources.java(java))})', 'data': data}
    return {'backend': 'python', 'stemmer': f'snowballstemmer-{lexicon.stemmer_version()}', 'data': data}
