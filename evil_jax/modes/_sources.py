"""The raw files and region features that a data set is built from: where they are, and how to tell them apart."""

import pathlib

from evil_jax import records
from evil_jax.data import features
from evil_jax.data.builders import _base
from evil_jax.data.features.regions import fingerprint


def paths(files: _base.Files) -> list[pathlib.Path]:
    return [path for value in files.values() for path in _base.paths(value)]


def open_features(config, raw) -> dict[str, features.RegionReader]:
    paths = feature_paths(config, raw)
    if not paths:
        raise ValueError(
            f'no region features: data.features is empty and {raw} has no .tsv file, no folder with data.mdb and no '
            'folder regions_npz'
        )
    return {name: features.open_features(path) for name, path in paths.items()}


def feature_paths(config, raw) -> dict[str, str | pathlib.Path]:
    """The region features by their names in build.json: those in the raw folder, or those that the user lists."""
    if isinstance(config.data.features, str):
        raise ValueError(f'data.features is {config.data.features!r}, wanted a tuple of paths: ("...",)')
    listed = {f'data.features[{number}]': path for number, path in enumerate(config.data.features)}
    return listed or {f'features/{path.relative_to(raw).as_posix()}': path for path in _containers(raw)}


def _containers(raw) -> list[pathlib.Path]:
    """Region containers in the raw folder: .tsv files, UNITER's image databases, also in its img_db/, regions_npz/."""
    found = set(raw.glob('*.tsv'))
    for pattern in ('*/data.mdb', '*/feat_*/data.mdb', 'img_db/*/*/data.mdb'):
        found |= {path.parent for path in raw.glob(pattern)}
    if (raw / 'regions_npz').is_dir():
        found.add(raw / 'regions_npz')
    return sorted(path for path in found if path.suffix != '.db')  # UNITER's databases of texts


def provenance(config, raw, builder, readers) -> dict[str, object]:
    """What tells the sources apart from others: role and name -> provenance. Paths are free to change.

    Of a file that is size and hash of its two ends: finished builds are checked on every run, and raw files are large.
    """
    found = {_name(raw, path): fingerprint(path) for path in builder.sources(raw, _base.Options.of(config))}
    for name, reader in readers.items():
        found[name] = reader.provenance()
    for key, names in _VOCABULARY_FILES.items():
        source = _vocabulary_source(config, key)
        if not source:
            wanted = f'a file or a folder with {" or ".join(names)}' if names else 'a JSON file'
            raise ValueError(f"data.{key} is {config.data[key]!r}, wanted 'build' or {wanted}")
        found[f'data.{key}'] = source
    return found


def _name(raw, path) -> str:
    """Name of a raw file in build.json. Files outside the raw folder, such as a list of ids, go by their own name."""
    return f'raw/{path.relative_to(raw).as_posix()}' if path.is_relative_to(raw) else f'other/{path.name}'


def _vocabulary_source(config, key) -> str | list[str]:
    """'build', or the hashes of the files that data.<key> names; [] where nothing is there."""
    if config.data[key] == 'build':
        return 'build'
    path = pathlib.Path(config.data[key])
    paths = [path / name for name in _VOCABULARY_FILES[key]] if path.is_dir() else [path]
    return [records.file_hash(path) for path in paths if path.is_file()]


_VOCABULARY_FILES = {
    'word_vocab': ('vocab.txt',),
    'expl_vocab': ('vocab.json', 'merges.txt', 'encoder.json', 'vocab.bpe'),
    'answers': (),
}


def provenance_now(config, raw, builder, built) -> dict[str, object]:
    """What `_sources` says of those sources that are there now; nothing is opened, and nothing missing is an error."""
    found = {}
    files = [raw / name.removeprefix('raw/') for name in built if name.startswith('raw/')]
    if all(path.is_file() for path in files):
        files = builder.sources(raw, _base.Options.of(config))  # finds files that came later, too
    for path in files:
        if path.is_file():
            found[_name(raw, path)] = fingerprint(path)
    for name, path in feature_paths(config, raw).items():
        if pathlib.Path(path).exists():
            found[name] = features.provenance(path)
    for key in _VOCABULARY_FILES:
        if source := _vocabulary_source(config, key):
            found[f'data.{key}'] = source
    return found
