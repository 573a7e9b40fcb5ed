"""`--mode=build`: raw files -> data set, feature store, vocabularies, all below `data.dir`.

    raw/            what comes with the package or an installed one is written here, unless data.manual_dir is a folder
    store/          region features of the pictures that examples are about (data/features/convert.py); there is none
                    where a model reads the pictures themselves, which have to stay where they are, or texts alone
    tfds/           the examples (data/builders)
    assets/         word/, expl/, answers.json
    build.json      settings and fingerprints of the sources of a finished build, and what was counted
    build.html      the same for people, with some examples (pages/build.py)

Doing it again with the same settings and sources changes nothing; a build that was interrupted is finished (finished
shards of the store are kept, the rest is cheap and done again). Raw files may be deleted once all is built: only those
that are there are compared. One process at a time builds into a folder.
"""

import contextlib
import dataclasses
import io
import pathlib
import shutil
import sys
from collections.abc import Iterator

import ml_collections
import tensorflow_datasets as tfds
import tqdm

from evil_jax import lookup, records
from evil_jax.data import counts as counts_lib
from evil_jax.data import features, load, objects, transforms
from evil_jax.data.builders import _base
from evil_jax.data.counts import Counts
from evil_jax.data.features import convert
from evil_jax.data.features.regions import writable
from evil_jax.modes import _sources, _summary, _terminal, _vocabularies

_SHOWN = 20  # ids in a message; all of them go to a file


def run(config: ml_collections.ConfigDict, workdir) -> dict[str, float]:
    """Builds everything below `config.data.dir` and prints what is in it.

    Returns:
      Counts: examples, pictures, references of each split (`examples_train`, ...), answers, examples without features
      or with all answers outside the vocabulary, number of texts longer than the limits, mean lengths in tokens; of
      regions `mean_regions`, pictures with more than data.max_regions (`long_regions`) or than the store keeps
      (`cut_images`).

    Raises:
      ValueError: bad raw files, an empty split, missing features or pictures, a label outside the classes, a finished
        build with other settings, no permission, another process at work.
    """
    del workdir  # nothing of a build belongs to one run
    root = pathlib.Path(config.data.dir)
    builder = lookup.module('data/builders', config.data.builder).Builder
    if config.build.page:
        load.images(config)  # a folder that is not there is better told before the work than after it
    if (root / 'build.json').is_file():  # without the lock: a finished folder may be read-only
        return _summary.tell(config, root, _check_finished(config, root, builder))
    with _locked(root), _terminal.plain_warnings():
        if (root / 'build.json').is_file():  # finished by another process just now
            return _summary.tell(config, root, _check_finished(config, root, builder))
        raw = _raw_folder(config, builder)
        files = builder.files(raw, _base.Options.of(config))
        readers = _sources.open_inputs(config, raw, builder)
        sources = _sources.provenance(config, raw, builder, readers)
        counts = _build(config, root, raw, builder, files, list(readers.values()))
        document = {
            'settings': load.settings(config),
            'sources': sources,
            'marks': {split: builder.marks(of, _base.Options.of(config)) for split, of in files.items()},
            'counts': dataclasses.asdict(counts),
        }
        records.write_json(root / 'build.json', document)
    return _summary.tell(config, root, counts)


def _build(config, root, raw, builder, files, readers) -> Counts:
    for split in _base.SPLITS:
        used = [str(path) for path in _sources.paths(files.get(split, {}))]
        print(f'{split}: ' + (', '.join(used) if used else f'no files in {raw}, the split will be absent'))
    for line in builder.remarks(files, _base.Options.of(config)):
        print(f'warning: {line}')
    labels = builder.labels(files, _base.Options.of(config))
    available = _Available(readers) if builder.inputs != 'text' else None
    missing, missing_shown, pictures = _check_examples(config, root, builder, files, available, labels)
    class_names, store, reader = [], {'images': len(pictures)}, None
    if builder.inputs == 'regions':
        class_names, store = _convert(config, root, raw, readers, pictures)
        reader = features.open_features(root / 'store')
    elif builder.inputs == 'pictures':
        _sources.check_picture(config, readers[0], pictures[0])
    drop = available is not None and config.data.missing_features == 'drop'
    keep = (lambda example: available[example.image_id]) if drop else None
    _write_examples(config, root, raw, builder, keep)

    def examples(split):
        return builder(
            data_dir=root / 'tfds', limit=config.data.limit, options=_base.Options.of(config), keep=keep
        ).stream(files[split])

    training = lambda: examples('train') if 'train' in files else None
    assets = _vocabularies.write(config, root, builder, training, class_names, labels)
    counts, outside = counts_lib.count(
        {split: _bar(examples(split), f'counting {split}') for split in files},
        assets,
        transforms.Encoding.of(config),
        reader.region_counts() if reader else (),
        reader.__getitem__ if reader else None,
        builder.inputs,
    )
    _list_outside(root, outside, counts.answers)
    return dataclasses.replace(counts, missing=missing, missing_shown=missing_shown, store=store)


def _convert(config, root, raw, readers, pictures):
    """Makes the feature store: (names of the regions' classes, what the conversion counted)."""
    _sources.check_pictures(config, readers, pictures)
    class_names = _class_names(raw, readers)
    _check_names(config, class_names, readers, pictures)
    return class_names, convert.convert(
        readers,
        root / 'store',
        shard_mib=config.build.shard_mib,
        threshold=config.build.threshold,
        min_regions=config.build.min_regions,
        max_regions=config.build.max_regions,
        image_ids=pictures,
        class_names=class_names,
        replace=True,  # what an interrupted build with other settings left there is of no use
    )


# --- the folder ---


@contextlib.contextmanager
def _locked(root: pathlib.Path) -> Iterator[None]:
    """Makes the folder and locks it."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not writable(root):
            raise PermissionError('it has no write permission')
    except OSError as error:
        raise ValueError(f'data.dir {root}: cannot write there: {error}') from error
    message = f'data.dir {root}: another process builds there right now; wait for it to end'
    with records.locked(root / '.build.lock', message):
        yield


def _raw_folder(config, builder) -> pathlib.Path:
    """The folder with the raw files; those that the data set brings along are written if they are not there yet."""
    raw = load.raw_folder(config)
    if config.data.manual_dir:
        return raw
    if builder.form is None:
        builder.write_raw(raw)
        return raw
    counts = {split: config.data[f'world_{split}'] for split in _base.SPLITS}
    if config.data.limit:
        counts = {split: min(count, config.data.limit) for split, count in counts.items()}
    if min(counts.values()) < 0 or not any(counts.values()):
        raise ValueError(
            f'data.world_train, world_dev and world_test are {list(counts.values())}, wanted some examples'
        )
    # Imported here: real data sets do without.
    from evil_jax.data import shapes

    with tqdm.tqdm(total=sum(counts.values()), desc='the built-in world', unit='example', disable=None) as bar:
        settings = {'counts': counts, 'seed': config.data.seed, 'container': config.data.world_container}
        if not shapes.write_world(builder.form, raw, **settings, progress=bar.update):
            bar.update(bar.total)
    return raw


# --- sources ---


def _class_names(raw, readers) -> list[str]:
    """Names of the detector's classes, from a file in the raw folder or beside the features; [] where there is none."""
    return objects.class_names(_beside(raw, readers))


def _beside(raw, readers) -> list[pathlib.Path]:
    return [raw, *dict.fromkeys(reader.path.parent for reader in readers)]


def _check_names(config, class_names, readers, pictures) -> None:
    """Raises ValueError where names of detected objects are to be read, and are not known; before much is done."""
    if config.data.objects != 'detected':
        return
    for reader in readers:  # no names help where there are no classes, so these come first
        for image_id in (i for i in pictures if i in reader):
            if len(found := reader[image_id]):
                if class_names or (found.classes < 0).all():
                    _check_named(reader, image_id, dataclasses.replace(found, names=class_names))
                break
    if not class_names:
        folders = ', '.join(map(str, _beside(load.raw_folder(config), readers)))
        raise ValueError(
            "data.objects is 'detected', but it is not known what the classes of the regions are called: looked for "
            f'{" and ".join(objects.FILES)} in {folders}'
        )


def _check_named(reader, image_id, found) -> None:
    try:
        objects.detected(found, image_id)
    except ValueError as error:
        raise ValueError(f'{reader.path}: {error}') from error


def _check_finished(config, root, builder) -> Counts:
    """What a finished build counted, after checking that the settings, and the sources still there, are the same."""
    document = load.built(config)
    raw = load.raw_folder(config)
    built = document['sources']
    found = _sources.provenance_now(config, raw, builder, built)
    if changed := _sources.changes(built, found):
        raise ValueError(f'{root} was built from other files: {changed}. {load.WAY_OUT}')
    print(f'{root} is built already, with these settings and sources: nothing to do')
    if gone := sorted(built.keys() - found.keys()):
        print(f'  not found here, so not compared with what was built: {", ".join(gone)}')
    try:
        return Counts(**document['counts'])
    except (KeyError, TypeError) as error:
        raise ValueError(f'{root / "build.json"}: counts of another version: {error}. {load.WAY_OUT}') from error


# --- examples, and what they are about ---


class _Available(dict):
    """`available[image_id]`: does one of the readers have the picture? Remembers."""

    def __init__(self, readers):
        super().__init__()
        self._readers = readers

    def __missing__(self, image_id):
        self[image_id] = any(image_id in reader for reader in self._readers)
        return self[image_id]


def _check_examples(config, root, builder, files, available, labels):
    """Reads all examples once: bad records, empty splits, missing features or pictures are found before anything is
    written.

    Args:
      available: image id -> whether there are features or a picture; None where texts are all that is read.
      labels: of plain classifiers the closed set that each label has to be in, or None.

    Returns:
      split -> number of examples without them, (split, id, picture) of the first of them, and the pictures of the
      examples that stay.
    """
    what = 'region features' if builder.inputs == 'regions' else 'a picture'
    missing, counts, pictures = [], {}, {}
    split_of, twice = {}, []
    drop = config.data.missing_features == 'drop'
    for split, paths in files.items():
        kept = absent = 0
        with _bar(builder.read(paths, _base.Options.of(config)), f'reading {split}') as examples:
            for example in examples:
                if config.data.limit and kept >= config.data.limit:
                    break
                if (other := split_of.setdefault(example.id, split)) != split:
                    twice.append(f'{example.id} ({other} and {split})')
                if config.data.objects == 'annotated':
                    objects.names(example, None, 'annotated')
                if builder.inputs != 'regions':
                    _check_label(example, labels)
                here = available is None or available[example.image_id]
                if here:
                    pictures[example.image_id] = None
                else:
                    absent += 1
                    missing.append((split, example.id, example.image_id))
                kept += here or not drop
        counts[split] = absent
        if not kept:
            which = f'all of its {absent} examples are without {what}' if absent else 'its files hold no example'
            _list_missing(root, missing)
            raise ValueError(f'the {split} split is empty: {which} ({", ".join(map(str, _sources.paths(paths)))})')
    if twice:
        shown = ', '.join(twice[:_SHOWN]) + (', ...' if len(twice) > _SHOWN else '')
        raise ValueError(f'{len(twice)} examples are in two splits: {shown}. Leave each in one of the files')
    _list_missing(root, missing)
    if missing:
        ids = list(dict.fromkeys(image_id for _, _, image_id in missing))
        found = 'pictures without region features' if builder.inputs == 'regions' else 'pictures that are not there'
        message = (
            f'{len(missing)} examples are about {len(ids)} {found}: '
            f'{", ".join(ids[:_SHOWN])}{", ..." if len(ids) > _SHOWN else ""} (all in {root / _MISSING})'
        )
        if not drop:
            way_out = 'Give their features in data.features' if builder.inputs == 'regions' else 'Put them there'
            raise ValueError(f"{message}. {way_out}, or set data.missing_features='drop'")
        print(f'warning: left out: {message}')
    return counts, missing[:_SHOWN], list(pictures)


def _check_label(example, labels) -> None:
    if labels is not None and example.label is not None and example.label not in labels:
        shown = ', '.join(map(repr, labels[:_SHOWN])) + (', ...' if len(labels) > _SHOWN else '')
        raise ValueError(
            f'example {example.id!r} has label {example.label!r}, wanted one of the {len(labels)} classes {shown}'
        )


_MISSING, _OUTSIDE = 'missing_features.txt', 'outside_vocabulary.txt'


def _list_missing(root, rows) -> None:
    _write_list(root / _MISSING, ('split', 'example', 'picture'), rows)


def _write_list(path, header, rows) -> None:
    """A table with tabs; an empty one is no file."""
    if not rows:
        path.unlink(missing_ok=True)
        return
    records.atomic_write(path, ''.join('\t'.join(row) + '\n' for row in (header, *rows)))


# --- examples ---


def _write_examples(config, root, raw, builder, keep) -> None:
    folder = load.folder(config).parent
    shutil.rmtree(folder, ignore_errors=True)  # of an interrupted build
    writer = builder(data_dir=root / 'tfds', limit=config.data.limit, options=_base.Options.of(config), keep=keep)
    downloads = root / 'tfds' / '.downloads'
    if not sys.stderr.isatty():
        tfds.disable_progress_bar()
    # TFDS writes under a temporary name and renames. What it prints speaks of downloads; the progress bars stay.
    with contextlib.redirect_stdout(io.StringIO()):
        writer.download_and_prepare(
            download_dir=downloads, download_config=tfds.download.DownloadConfig(manual_dir=raw.absolute())
        )
    shutil.rmtree(downloads, ignore_errors=True)
    if pathlib.Path(writer.data_dir) != load.folder(config):
        raise AssertionError(f'TFDS wrote to {writer.data_dir}, load.py looks in {load.folder(config)}')


# --- what was counted ---


def _bar(rows, what):
    """A progress bar over examples, where there is a terminal to show it."""
    return tqdm.tqdm(rows, desc=what, unit='example', leave=False, disable=None)


def _list_outside(root, outside, answers) -> None:
    _write_list(root / _OUTSIDE, ('split', 'example', 'answers'), outside)
    if outside:
        shown = ', '.join(example_id for _, example_id, _ in outside[:_SHOWN])
        print(
            f'warning: {len(outside)} examples have no gold answer inside the vocabulary of {answers}: '
            f'{shown}{", ..." if len(outside) > _SHOWN else ""} (all in {root / _OUTSIDE})'
        )
