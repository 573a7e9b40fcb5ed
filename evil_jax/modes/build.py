"""`--mode=build`: raw files -> data set, feature store, vocabularies, all below `data.dir`.

    raw/            the built-in world writes its files here, unless data.manual_dir names a folder
    store/          region features of the pictures that examples are about (data/features/convert.py)
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
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator

import ml_collections
import numpy as np
import tensorflow_datasets as tfds
import tqdm
from absl import logging

from evil_jax import compat, lookup, records, text
from evil_jax.data import answers as answers_lib
from evil_jax.data import counts as counts_lib
from evil_jax.data import features, load, objects, tags, tokenizers, transforms
from evil_jax.data.builders import _base
from evil_jax.data.counts import Counts
from evil_jax.data.features import convert
from evil_jax.data.features.regions import writable
from evil_jax.modes import _cards, _sources, evaluate
from evil_jax.pages import build as page

_SHOWN = 20  # ids in a message; all of them go to a file
_CARDS = 24  # examples on the page


def run(config: ml_collections.ConfigDict, workdir) -> dict[str, float]:
    """Builds everything below `config.data.dir` and prints what is in it.

    Returns:
      Counts: examples, pictures, references of each split (`examples_train`, ...), answers, examples without features
      or with all answers outside the vocabulary, number of texts longer than the limits, mean lengths in tokens; of
      regions `mean_regions`, pictures with more than data.max_regions (`long_regions`) or than the store keeps
      (`cut_images`).

    Raises:
      ValueError: bad raw files, an empty split, missing features, a finished build with other settings, no permission,
        another process at work.
    """
    del workdir  # nothing of a build belongs to one run
    root = pathlib.Path(config.data.dir)
    builder = lookup.module('data/builders', config.data.builder).Builder
    if config.build.page:
        load.images(config)  # a folder that is not there is better told before the work than after it
    if (root / 'build.json').is_file():  # without the lock: a finished folder may be read-only
        return _tell(config, root, _check_finished(config, root, builder))
    with _locked(root), _sources.plain_warnings():
        if (root / 'build.json').is_file():  # finished by another process just now
            return _tell(config, root, _check_finished(config, root, builder))
        raw = _raw_folder(config, builder)
        files, readers = builder.files(raw, _base.Options.of(config)), _sources.open_features(config, raw)
        sources = _sources.provenance(config, raw, builder, readers)
        counts = _build(config, root, raw, builder, files, list(readers.values()))
        document = {
            'settings': load.settings(config),
            'sources': sources,
            'marks': {split: builder.marks(of, _base.Options.of(config)) for split, of in files.items()},
            'counts': dataclasses.asdict(counts),
        }
        records.write_json(root / 'build.json', document)
    return _tell(config, root, counts)


def _build(config, root, raw, builder, files, readers) -> Counts:
    for split in _base.SPLITS:
        used = [str(path) for path in _sources.paths(files.get(split, {}))]
        print(f'{split}: ' + (', '.join(used) if used else f'no files in {raw}, the split will be absent'))
    for line in builder.remarks(files, _base.Options.of(config)):
        print(f'warning: {line}')
    available = _Available(readers)
    missing, missing_shown, pictures = _check_features(config, root, builder, files, available)
    _sources.check_pictures(config, readers, pictures)
    class_names = _class_names(raw, readers)
    _check_names(config, class_names, readers, pictures)
    store = convert.convert(
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
    keep = (lambda example: available[example.image_id]) if config.data.missing_features == 'drop' else None
    _write_examples(config, root, raw, builder, keep)

    def examples(split):
        return builder(
            data_dir=root / 'tfds', limit=config.data.limit, options=_base.Options.of(config), keep=keep
        ).stream(files[split])

    training = lambda: examples('train') if 'train' in files else None
    assets = _write_assets(config, root, builder, training, class_names)
    reader = features.open_features(root / 'store')
    counts, outside = counts_lib.count(
        {split: _bar(examples(split), f'counting {split}') for split in files},
        assets,
        transforms.Encoding.of(config),
        reader.region_counts(),
        reader.__getitem__,
    )
    _list_outside(root, outside, counts.answers)
    return dataclasses.replace(counts, missing=missing, missing_shown=missing_shown, store=store)


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
    """The folder with the raw files; writes the world if it is the built-in one and not there yet."""
    raw = load.raw_folder(config)
    if config.data.manual_dir or builder.form is None:
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


# --- features of the pictures ---


class _Available(dict):
    """`available[image_id]`: does one of the readers have the picture? Remembers."""

    def __init__(self, readers):
        super().__init__()
        self._readers = readers

    def __missing__(self, image_id):
        self[image_id] = any(image_id in reader for reader in self._readers)
        return self[image_id]


def _check_features(config, root, builder, files, available):
    """Reads all examples once: bad records, empty splits and missing features are found before anything is written.

    Returns:
      split -> number of examples without features, (split, id, picture) of the first of them, and the pictures of the
      examples that stay.
    """
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
                here = available[example.image_id]
                if here:
                    pictures[example.image_id] = None
                else:
                    absent += 1
                    missing.append((split, example.id, example.image_id))
                kept += here or not drop
        counts[split] = absent
        if not kept:
            which = (
                f'all of its {absent} examples are without region features' if absent else 'its files hold no example'
            )
            _list_missing(root, missing)
            raise ValueError(f'the {split} split is empty: {which} ({", ".join(map(str, _sources.paths(paths)))})')
    if twice:
        shown = ', '.join(twice[:_SHOWN]) + (', ...' if len(twice) > _SHOWN else '')
        raise ValueError(f'{len(twice)} examples are in two splits: {shown}. Leave each in one of the files')
    _list_missing(root, missing)
    if missing:
        ids = list(dict.fromkeys(image_id for _, _, image_id in missing))
        message = (
            f'{len(missing)} examples are about {len(ids)} pictures without region features: '
            f'{", ".join(ids[:_SHOWN])}{", ..." if len(ids) > _SHOWN else ""} (all in {root / _MISSING})'
        )
        if not drop:
            raise ValueError(f"{message}. Give their features in data.features, or set data.missing_features='drop'")
        print(f'warning: left out: {message}')
    return counts, missing[:_SHOWN], list(pictures)


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


# --- vocabularies ---


def _write_assets(config, root, builder, training, class_names=()) -> tokenizers.Assets:
    """Makes or copies the vocabularies.

    Args:
      training: a function that gives the training examples, or None without such a split.
      class_names: of the regions; words of the vocabularies where they are read.
    """
    data, partial = config.data, root / '.assets.partial'
    shutil.rmtree(partial, ignore_errors=True)

    def texts(key, of):
        examples = training()
        if examples is None:
            raise ValueError(f"no train split to make a vocabulary from: data.{key} is 'build', name a file")
        return (t for example in examples for t in of(example))

    def read(key, of):
        """The same, and the names of objects that are read with them."""
        yield from texts(key, of)
        if data.objects == 'annotated':
            yield from texts(key, lambda example: objects.names(example, None, data.objects))
        elif data.objects:
            yield from class_names

    lowercase = compat.lowercase(config)
    if lowercase is False and compat.has(config, 5):
        logging.warning("config.data.lowercase is 'no': quirk 5 of config.compat, lower-casing, is off")
    if data.word_vocab == 'build':
        word = tokenizers.train_word(
            read('word_vocab', transforms.read_texts),
            partial / 'word',
            lowercase=lowercase is not False,
        )
    else:
        word = tokenizers.WordTokenizer.load(data.word_vocab, lowercase=lowercase)
    if data.expl_vocab == 'build':
        expl = tokenizers.train_expl(read('expl_vocab', _decoder_texts), partial / 'expl')
    else:
        expl = tokenizers.ExplTokenizer.load(data.expl_vocab)
    if data.choices:
        answers = ()
        if data.answers != 'build':
            raise ValueError(f'data.answers is {data.answers!r}: examples of {data.builder} have choices of their own')
    elif builder.classes is not None:
        answers = builder.classes
        if data.answers != 'build' and answers_lib.read(data.answers) != answers:
            raise ValueError(f'{data.answers}: the answers of {data.builder} are, in this order, {", ".join(answers)}')
    elif data.answers == 'build':
        examples = texts('answers', lambda e: [e])
        answers = answers_lib.build(examples, data.answers_min_count, text.vqa_normalise)
    else:
        answers = answers_lib.read(data.answers)
    assets = tokenizers.Assets(word, expl, answers)
    tokenizers.save_assets(partial, assets)
    shutil.rmtree(root / 'assets', ignore_errors=True)
    os.rename(partial, root / 'assets')
    return assets


def _decoder_texts(example):
    answers = [example.label] if isinstance(example.label, str) else list(example.answers or {})
    texts = [example.text, *answers, *(example.choices or []), *example.explanations]
    return [tags.written(text, example.objects) for text in texts]


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


def _tell(config, root, counts: Counts) -> dict[str, float]:
    """Prints what was counted, writes it for people, and returns it as numbers."""
    numbers = _summary(config, root, counts)
    if config.build.page:
        path = root / 'build.html'
        try:
            written = _write_page(config, path, counts)
        except OSError as error:  # a finished folder may be read-only, and its page is not what it is there for
            print(f'{path} was not written: {error}')
        else:
            print(f'{path}{"" if written else " is up to date"}')
    return numbers


def _write_page(config, path, counts) -> bool:
    """The page, from what is built; raw files are not needed, but for the pictures."""
    document = load.built(config)
    return page.write_page(
        path,
        title=' in '.join(dict.fromkeys((config.data.builder, path.absolute().parent.name))),
        counts=dataclasses.asdict(counts),
        limits={kind: config.data[key] for kind, key in _limits(config).items()},
        examples=_sample(config, list(counts.examples)),
        provenance=document['settings'] | document['sources'],
    )


def _limits(config) -> dict[str, str]:
    """Kind of text, or 'regions' -> the setting that cuts it, of what this model reads."""
    names = ('text_objects', 'objects') if config.data.objects else ()
    return {kind: transforms.limit(kind) for kind in ('text', *names, 'question', 'answer', 'explanation', 'regions')}


def _sample(config, splits) -> list[dict[str, object]]:
    """Some examples of each split; always the same ones, whatever the seed and the limit of the run."""
    reader, images = load.open_store(config), load.images(config)
    rows = []
    for split in splits:
        examples = load.Examples(load.folder(config), split)
        count = min(_CARDS // len(splits), len(examples))
        chosen = np.random.default_rng(0).choice(len(examples), count, replace=False)
        for example in (examples[int(i)] for i in sorted(chosen)):
            gold = evaluate.gold_answer(example)
            rows.append(
                _cards.picture(example, images, reader, reader.class_names)
                | {
                    'split': split,
                    'id': example.id,
                    'text': _cards.shown(example.text, example),
                    'choices': _cards.choices(example),
                    'gold': example.answers or ([] if gold is None else [gold]),
                    'references': [_cards.shown(reference, example) for reference in example.explanations],
                }
            )
    return rows


def _summary(config, root, counts: Counts) -> dict[str, float]:
    """Prints the counts and returns them as numbers."""
    numbers = {'answers': counts.answers, 'store_images': counts.store['images']}
    cut = counts.store['cut_images']
    numbers['cut_images'] = cut
    print(f'{root}: {counts.answers} answers, features of {counts.store["images"]} pictures')
    if cut:
        stayed = 'the first' if counts.store.get('without_conf') else 'the most confident'
        print(f'  warning: {cut:,} pictures have more regions than the store keeps; {stayed} ones stayed')
    for split in counts.examples:
        for name in ('examples', 'images', 'references', 'explained', 'unanswered', 'outside', 'missing'):
            numbers[f'{name}_{split}'] = getattr(counts, name)[split]
        line = (
            f'  {split:5} {counts.examples[split]:,} examples, {counts.images[split]:,} pictures, '
            f'{counts.references[split]:,} explanations of {counts.explained[split]:,} examples'
        )
        for name, meaning in (
            ('unanswered', 'without an answer'),
            ('outside', 'with no answer inside the vocabulary'),
            ('missing', 'left out for missing features'),
        ):
            if number := getattr(counts, name)[split]:
                line += f', {number:,} {meaning}'
        if tagged := counts.tags.get(split):
            line += f', {100 * counts.linked[split] / tagged:.0f} % of {tagged:,} object tags stand for a region'
        if labels := counts.labels.get(split):
            line += '; ' + ', '.join(f'{k} {100 * n / counts.examples[split]:.0f} %' for k, n in sorted(labels.items()))
            numbers[f'majority_{split}'] = max(labels.values()) / counts.examples[split]
        print(line)
        if shared := counts.shared.get(split):
            print(f'  warning: {shared:,} of the pictures of {split} are in train, too')
    limits = _limits(config)
    for kind, histogram in counts.lengths.items():
        if kind not in limits:  # names of objects, which another model reads
            continue
        sizes = {int(n): texts for n, texts in histogram.items()}
        limit, texts = config.data[limits[kind]], sum(sizes.values())
        mean, long = sum(n * k for n, k in sizes.items()) / texts, sum(k for n, k in sizes.items() if n > limit)
        numbers[f'mean_{kind}'], numbers[f'long_{kind}'] = mean, long
        unit, things = ('per picture', 'pictures') if kind == 'regions' else ('tokens', f'{kind} texts')
        print(f'  {kind}: {mean:.1f} {unit} on average, at most {max(sizes)} (limit data.{limits[kind]} {limit})')
        if long:
            print(f'  warning: {long:,} of {texts:,} {things} ({100 * long / texts:.1f} %) have more and get cut')
    return {name: float(value) for name, value in numbers.items()}
