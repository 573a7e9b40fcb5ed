"""Steps of --mode=construct that make work for people: pairs to be checked by hand, and a study in which they label."""

import pathlib

from evil_jax import records
from evil_jax.construction import annotation, checked, relabel
from evil_jax.construction.pairs import CLASSES
from evil_jax.data import load
from evil_jax.human import labelling
from evil_jax.human.study import FILE
from evil_jax.modes import human

_TABLE = 'annotate.csv'


def annotate(config, folder: pathlib.Path, sources) -> None:
    """Draws pairs to be checked by hand into `<folder>/annotate.csv`.

    Args:
      folder: of the construction.
      sources: `_construction_sources.Sources`, which are merged here.
    """
    sources.merge()
    sources.load()
    drawn = annotation.draw(sources.merged_pairs(), config.construct.sample, config.seed)
    annotation.write(folder / _TABLE, drawn, sources.captions)
    print(
        f'{len(drawn):,} pairs: {folder / _TABLE}. Fill in label ({", ".join(CLASSES)}) and quality '
        f'({", ".join(checked.QUALITIES)}), then run with --config.construct.annotated=FILE'
    )


def study(config, folder: pathlib.Path, sources) -> None:
    """Makes a study of the neutral pairs of dev and test in <workdir>/human/.

    Args:
      folder: of the construction, in the work folder.
      sources: `_construction_sources.Sources`, which are merged here.

    Raises:
      ValueError: no such pair, none of their pictures, or another study is there.
    """
    images = load.images(config)
    if images.path is None:
        raise ValueError('data.images is empty: people label what a picture shows, so name the folder of pictures')
    sources.merge()
    sources.load()
    section, workdir = config.human, folder.parent
    verdicts = sources.checked.verdicts if sources.checked else {}
    right = {pair_id: verdict.label for pair_id, verdict in verdicts.items()}
    asked = lambda some: [labelling.Asked(p.id, p.image_id, p.hypothesis, p.label) for p in some]
    neutral = asked(relabel.select(sources.merged_pairs()))
    if not neutral:
        raise ValueError('construct.pairs: there is nothing to label: no pair of dev or test is neutral')
    if not any(images[one.image_id] for one in neutral):
        raise ValueError(f'{images.path}: has none of the pictures, such as {neutral[0].image_id!r}')
    place = workdir / human.FOLDER
    with records.locked(place / '.lock', 'another run makes a study here'):
        there = (place / FILE).is_file()
        made = labelling.make(
            neutral, place, images=images,
            trusted=asked(relabel.known(sources.merged_pairs(), right)),
            raters=section.raters, page_items=section.page_items, trusted_per_page=section.trusted_per_page,
            seed=config.seed, dataset=config.data.builder,
            made_from={file['path']: file['hash'] for file in sources.merged['files']},
        )  # fmt: skip
    if there:
        print(f'the study is there already, with the pictures that it got then: {place / FILE}')
    for line in made.settings['shortfalls']:
        print(f'warning: {line}')
    print(
        f'{len(made.items):,} items on {len(made.pages):,} pages, {made.raters} people each: {place}. Now '
        f'--mode=human --config=human:esnlive --workdir={workdir} --config.human.step=serve (export, score); then '
        f'--config.construct.relabelled={place / "labels.csv"} here'
    )
