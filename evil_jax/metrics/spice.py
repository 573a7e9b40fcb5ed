"""SPICE (Anderson et al., 2016): how many of the things, attributes and relations of a text its references have too.

A parser makes tuples of texts, a scorer compares them up to synonyms (`_spice/score.py`); the score is the mean of the
examples' F. Native scale 0..1. Two ways to have it:

* The original, parser and scorer, where the user has pycocoevalcap, Java with its compiler (8 to 21) and CoreNLP 3.6.0
  (`_spice/official.py`). Parsing takes its time: `parse` keeps the tuples.
* The scorer in Python, equal to the original's, on a file of tuples (`_spice/files.py`) that `parse` kept or that any
  other parser made. Then the number is as good as that parser is, and the signature names the file.

Without either there is no SPICE; nothing else gets its name.
"""

import os
import pathlib
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
      predictions, references: texts. With `tuples` only their ids count, and the texts where the file has them too.
      tuples: file of tuples; '' = the original parser.
      folder: of pycocoevalcap, as in `resources.pycocoevalcap`.
      corenlp: as in `_spice/official.find`.
      java: as in `resources.java`.

    Raises:
      Unavailable: what is missing; or the file's tuples are of other texts.
      ValueError: ids that only one side has; a bad line of the file.
    """
    ids, candidates, reference_lists = base.join(predictions, references)
    if not ids:
        return _table(ids, reference_lists, [], 'none', 'none')
    if not tuples:
        program = official.find(folder, corenlp, java)
        results = official.run(program, ids, candidates, reference_lists)
        return _table(ids, reference_lists, [results[i].f for i in ids], program.name, _version(program.synonyms))
    found, digest = files.read(tuples)
    files.match(tuples, found, predictions, references)
    jar = _jar(folder)
    synsets = Lexicon(jar).synsets
    values = [scorer.count(found[i].candidate, found[i].merged, synsets).f for i in ids]
    return _table(ids, reference_lists, values, f'tuples({digest})', _version(jar))


def score(predictions: base.Predictions, references: base.References, **options) -> dict[str, records.Score]:
    """{'spice': Score}. Options and errors as those of `table`."""
    return table(predictions, references, **options).scores()


def parse(
    predictions: base.Predictions,
    references: base.References,
    path: str | os.PathLike,
    *,
    folder: str = '',
    corenlp: str = '',
    java: str = '',
) -> base.Table:
    """Scores with the original and writes the tuples it found to `path`, for `table(..., tuples=path)`."""
    ids, candidates, reference_lists = base.join(predictions, references)
    if not ids:
        files.write(path, ())
        return _table(ids, reference_lists, [], 'none', 'none')
    program = official.find(folder, corenlp, java)
    results = official.run(program, ids, candidates, reference_lists)
    files.write(path, ((i, results[i].tuples) for i in ids))
    return _table(ids, reference_lists, [results[i].f for i in ids], program.name, _version(program.synonyms))


def check(*, tuples: str | os.PathLike = '', folder: str = '', corenlp: str = '', java: str = '') -> str:
    """What `table` would use, as its signature names it; starts no parser.

    Raises:
      Unavailable, ValueError: as `table` does.
    """
    if not tuples:
        program = official.find(folder, corenlp, java)
        official.compiled(program)
        return program.name
    _version(_jar(folder))
    return f'tuples({files.read(tuples)[1]})'


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
    raise resources.Unavailable(f'needs {jars[1]}, which pip install pycocoevalcap brings')


def _version(jar: pathlib.Path) -> str:
    """'meteor-1.5(c77f2e9b)': of the table of synonyms, whichever jar it is in."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return f'meteor-1.5({archive.getinfo("synonym/english.synsets").CRC:08x})'
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise resources.Unavailable(f'needs the synonyms of METEOR, and {jar} cannot be read: {error}') from error
