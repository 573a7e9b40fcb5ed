"""The raw files and region features that a data set is built from: where they are, and how to tell them apart."""

import contextlib
import pathlib
from collections.abc import Iterable, Sequence

from evil_jax import records
from evil_jax.data import features, load, transforms
from evil_jax.data.builders import _base
from evil_jax.data.differences import different
from evil_jax.data.features.regions import fingerprint

_CHANGES = 3  # sources of a message
_COMPUTED = 'computed'  # name of the reader of pictures
_PICTURES = 'pictures'  # the same, where a model reads them itself


def paths(files: _base.Files) -> list[pathlib.Path]:
    return [path for value in files.values() for path in _base.paths(value)]


def open_inputs(config, raw, builder) -> dict:
    """What examples are looked up in, by its name in build.json: region features, or the pictures, or nothing."""
    if builder.inputs == 'regions':
        return open_features(config, raw)
    return {} if builder.inputs == 'text' else {_PICTURES: load.open_inputs(config)}


def open_features(config, raw) -> dict[str, features.RegionReader]:
    if config.build.backbone:
        from evil_jax.modes import _extract  # JAX, of which other builds have no need

        return {_COMPUTED: _extract.reader(config)}
    paths = feature_paths(config, raw)
    left_out = [] if config.data.features else [f'{path}: {why}' for path, why in _containers(raw).items() if why]
    if not paths:
        raise ValueError(
            f'no region features: data.features is empty and {raw} has no .tsv file, no folder with data.mdb and no '
            f'folder regions_npz or grid_npz{"".join(f" (not {line})" for line in left_out)}. Set data.features, for '
            'example --config.data.features=\'("path/to/regions.tsv",)\''
        )
    for line in left_out:
        print(f'not read: {line}')
    return {name: features.open_features(path) for name, path in paths.items()}


def feature_paths(config, raw) -> dict[str, str | pathlib.Path]:
    """The region features by their names in build.json: those in the raw folder, or those that the user lists."""
    if config.build.backbone:
        return {}
    if isinstance(config.data.features, str):
        raise ValueError(f'data.features is {config.data.features!r}, wanted a tuple of paths: ("...",)')
    listed = {f'data.features[{number}]': path for number, path in enumerate(config.data.features)}
    return listed or {
        f'features/{path.relative_to(raw).as_posix()}': path for path, why in _containers(raw).items() if not why
    }


def _containers(raw) -> dict[pathlib.Path, str]:
    """Region containers in the raw folder: .tsv files, UNITER's image databases, also in its img_db/, regions_npz/,
    grid_npz/; and why they are not to be read, or ''.
    """
    found = set(raw.glob('*.tsv'))
    for pattern in ('*/data.mdb', '*/feat_*/data.mdb', 'img_db/*/*/data.mdb'):
        found |= {path.parent for path in raw.glob(pattern)}
    found |= {path for name in ('regions_npz', 'grid_npz') if (path := raw / name).is_dir()}
    return {path: _left_out(raw, path, found) for path in sorted(found) if path.suffix != '.db'}  # .db: texts


def _left_out(raw, path, found) -> str:
    if any(part.startswith('vcr_gt_') for part in path.relative_to(raw).parts):
        return 'regions that annotators drew; list it in data.features to read them in place of the detected ones'
    plain = path.with_name(path.name.removesuffix('_compressed'))
    return f'{plain} has the same regions' if plain != path and plain in found else ''


def check_pictures(config, readers: Sequence[features.RegionReader], image_ids: Iterable[str]) -> None:
    """Encodes one picture of each reader as training will, so that what does not fit is told before anything is done.

    Raises:
      ValueError: a grid is larger than build.max_regions or data.max_regions; data.locations wants pixels, and boxes
        are relative.
    """
    encoding = transforms.Encoding.of(config)
    for reader in readers:
        if (image_id := next((i for i in image_ids if i in reader), None)) is not None:
            found = reader.outline(image_id)
            try:
                found.best(config.build.max_regions, f'image {image_id!r}')
                transforms.regions(found, encoding, image_id)
            except ValueError as error:
                raise ValueError(f'{reader.path}: {error}') from error


def check_picture(config, reader, image_id: str) -> None:
    """Encodes one picture as training will. Raises ValueError naming it where it cannot be read."""
    transforms.picture(reader[image_id], transforms.Encoding.of(config))


def provenance(config, raw, builder, readers) -> dict[str, object]:
    """What tells the sources apart from others: role and name -> provenance. Paths are free to change.

    Of a file that is size and hash of its two ends: finished builds are checked on every run, and raw files are large.
    """
    found = {_name(raw, path): fingerprint(path) for path in builder.sources(raw, _base.Options.of(config))}
    for name, reader in readers.items():
        if name != _COMPUTED:  # what a network makes of the pictures is a matter of settings
            found[name] = reader.provenance()
    for key, names in _VOCABULARY_FILES.items():
        source = _vocabulary_source(config, key)
        if not source:
            wanted = f'a file or a folder with {" or ".join(names)}' if names else 'a JSON file'
            raise ValueError(f"data.{key} is {config.data[key]!r}, wanted 'build' or {wanted}")
        found[f'data.{key}'] = source
    return found


def _name(raw, path) -> str:
    """Name of a raw file in build.json. Files outside the raw folder go by their own name."""
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
    """What `provenance` says of those sources that are there now; nothing is opened, and nothing missing is an error.

    Region features that were there at the build have their name of then: listed or found, in whatever order.
    """
    found = {}
    files = [raw / name.removeprefix('raw/') for name in built if name.startswith('raw/')]
    if all(path.is_file() for path in files):
        files = builder.sources(raw, _base.Options.of(config))  # finds files that came later, too
    for path in files:
        if path.is_file():
            found[_name(raw, path)] = fingerprint(path)
    if builder.inputs == 'regions':
        now = {
            name: features.provenance(path)
            for name, path in feature_paths(config, raw).items()
            if pathlib.Path(path).exists()
        }
        found |= _with_names_of_then({n: built[n] for n in built if n.startswith(('features/', 'data.features['))}, now)
    elif builder.inputs == 'pictures':
        with contextlib.suppress(ValueError, OSError):  # they are not here
            found[_PICTURES] = load.open_inputs(config).provenance()
    for key in _VOCABULARY_FILES:
        if source := _vocabulary_source(config, key):
            found[f'data.{key}'] = source
    return found


def _with_names_of_then(built, now) -> dict[str, object]:
    """Region features of now; their names are those of equal ones of the build, else of one that has gone."""
    free, named, others = dict(built), {}, {}
    for name, found in now.items():
        same = next((then for then, old in free.items() if not different(old, found)), None)
        if same is None:
            others[name] = found
        else:
            named[same] = free.pop(same)
    for name, found in others.items():
        then = name if name in free else next(iter(free), name)
        free.pop(then, None)
        named[f'{then} (new)' if then in named else then] = found
    return named


def changes(built, found) -> str:
    """In what sources that are there now differ from those of a build, in some words; '' if they do not."""
    texts = []
    for name, now in found.items():
        if name not in built:
            texts.append(f'{name} was not there')
        elif differing := different({name: built[name]}, {name: now}):
            texts.append(differing[0])
    more = f'; and {len(texts) - _CHANGES} more' if len(texts) > _CHANGES else ''
    return '; '.join(texts[:_CHANGES]) + more
