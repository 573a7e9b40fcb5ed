"""SPICE (Anderson et al., 2016): how many of the things, attributes and relations of a text its references have too.

A parser makes tuples of texts, a scorer compares them up to synonyms (`_spice/score.py`); the score is the mean of the
examples' F. Native scale 0..1. Two ways to have it:

* The original, parser and scorer, where the user has pycocoevalcap, Java with its compiler (8 to 21) and CoreNLP 3.6.0
  (`_spice/official.py`). Parsing takes its time.
* The scorer in Python, equal to the original's, on a file of tuples (`_spice/files.py`). What the file lacks the
  original's parser adds to it where there is one, so that no text is parsed twice. Tuples of any other parser do, too:
  the number is as good as that parser is. The signature tells tuples apart.

Without either there is no SPICE; nothing else gets its name.
"""

import functools
import hashlib
import json
import os
import pathlib
import warnings
import zipfile

from evil_jax import records
from evil_jax.metrics import base, resources
from evil_jax.metrics._meteor.lexicon import Lexicon
from evil_jax.metrics._spice import files, official
from evil_jax.metrics._spice import score as scorer

NAMES = ('spice',)


def table(
    predictions: base.Predictions,
    references: base.References,
    *,
    tuples: str | os.PathLike = '',
    folder: str = '',
    corenlp: str = '',
    java: str = '',
) -> base.Table:
    """One row an example: its F.

    Args:
      predictions, references: texts; of a file that knows tuples by ids alone, only the ids count.
      tuples: file of tuples, which need not be there where the original parser is; '' = the original.
      folder: of pycocoevalcap, as in `resources.pycocoevalcap`.
      corenlp: as in `_spice/official.find`.
      java: as in `resources.java`.

    Raises:
      Unavailable: what is missing; so where the file lacks tuples and there is no parser.
      ValueError: ids that only one side has; a bad line of the file.
    """
    ids, candidates, reference_lists = base.join(predictions, references)
    if not ids:
        return _table(ids, reference_lists, [], 'none', 'none')
    if not tuples:
        program = official.find(folder, corenlp, java)
        values = official.score(program, ids, candidates, reference_lists)
        return _table(ids, reference_lists, values, program.name, _version(program.synonyms))
    jar = _jar(folder)
    version = _version(jar)
    find = functools.partial(official.find, folder, corenlp, java)
    found = _tuples(tuples, ids, candidates, reference_lists, find)
    synsets = Lexicon(jar).synsets
    values = [scorer.count(candidate, merged, synsets).f for candidate, merged in found]
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:8]
    return _table(ids, reference_lists, values, f'tuples({digest})', version)


def score(predictions: base.Predictions, references: base.References, **options) -> dict[str, records.Score]:
    """{'spice': Score}. Options and errors as those of `table`."""
    return table(predictions, references, **options).scores()


def check(*, tuples: str | os.PathLike = '', folder: str = '', corenlp: str = '', java: str = '') -> str:
    """What `table` would use; starts no parser.

    Raises:
      Unavailable, ValueError: as `table` does.
    """
    if tuples:
        _version(_jar(folder))
        if os.path.exists(tuples):
            found = _read(tuples)
            return f'tuples of {len(found.texts):,} texts and {len(found.examples):,} ids'
    try:
        program = official.find(folder, corenlp, java)
        official.compiled(program)
    except resources.Unavailable as error:
        if not tuples:
            raise
        raise _no_tuples(tuples, 'there is no such file', error) from error
    return program.name


def check_several(tuples: str | os.PathLike) -> None:
    """Raises ValueError for tuples by id: they are of one file of predictions, and there are several."""
    if os.path.exists(tuples) and _read(tuples).examples:
        raise ValueError(
            f'{tuples}: its tuples are by id, so of one file of predictions, and there are several: give them by text'
        )


def _tuples(path, ids, candidates, reference_lists, find) -> list[tuple[files.Tuples, files.Tuples]]:
    """Tuples of each candidate and of all its references. What the file lacks is parsed, and added to it."""
    kept = _read(path) if os.path.exists(path) else files.Kept()
    files.check_ids(path, kept, dict.fromkeys(ids))
    rows = list(zip(ids, candidates, reference_lists))
    lacking = list(dict.fromkeys(t for row in rows if kept.of(*row) is None for t in kept.lacking(*row[1:])))
    if lacking:
        try:
            program = find()
        except resources.Unavailable as error:
            what = f'it lacks {len(lacking):,} texts, such as {lacking[0][:80]!r} (as the protocol prepares them)'
            raise _no_tuples(path, what if os.path.exists(path) else 'there is no such file', error) from error
        new = dict(zip(lacking, official.parse(program, lacking)))
        kept.texts |= new
        try:
            files.append(path, new)
        except OSError as error:
            warnings.warn(f'{path}: the tuples are not kept: {error.strerror or error}', stacklevel=3)
    return [kept.of(*row) for row in rows]


def _read(path) -> files.Kept:
    try:
        return files.read(path)
    except OSError as error:
        raise resources.Unavailable(f'needs the tuples of {path}: {error.strerror or error}') from error


def _no_tuples(path, what: str, error) -> resources.Unavailable:
    return resources.Unavailable(f'needs the tuples of {path}: {what}. To add them: {error}')


def _table(ids, reference_lists, values, source: str, synonyms: str) -> base.Table:
    signature = base.signature(
        'spice', source=source, synonyms=synonyms, nrefs=base.nrefs(reference_lists), scale='0..1'
    )
    return base.mean_table(ids, 'spice', values, signature)


def _jar(folder) -> pathlib.Path:
    """METEOR's jar, which has the synonyms. SPICE's own folder has the same ones."""
    package = resources.pycocoevalcap(folder)
    jars = (package / 'spice' / 'lib' / 'Meteor-1.5.jar', package / 'meteor' / 'meteor-1.5.jar')
    for jar in jars:
        if jar.is_file():
            return jar
    raise resources.Unavailable(f'needs {jars[1].name}, which pip install pycocoevalcap brings')


def _version(jar: pathlib.Path) -> str:
    """'meteor-1.5(c77f2e9b)': of the table of synonyms, whichever jar it is in."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return f'meteor-1.5({archive.getinfo("synonym/english.synsets").CRC:08x})'
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise resources.Unavailable(f'needs the synonyms of METEOR, and {jar} cannot be read: {error}') from error
