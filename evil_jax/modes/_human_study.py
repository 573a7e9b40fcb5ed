"""The study of --mode=human until people are asked: its sample and pictures, its server, its files for others."""

import functools
import json
import pathlib

from evil_jax.data import load
from evil_jax.human import formats, known, pictures, sampling, scores, server
from evil_jax.human.study import FILE, IMAGES, Study
from evil_jax.metrics import judging
from evil_jax.modes import _examples, _systems

_SETTINGS = ('limit', 'raters', 'page_items', 'choices', 'trusted_per_page', 'wrong_limit')


def sample(config, folder: pathlib.Path) -> None:
    """Draws the sample of a study and writes `<folder>/study.json` and `<folder>/images/`.

    A study that is there stays: people may have been asked about it already.

    Raises:
      ValueError: missing or malformed predictions or examples, no right answer, another study in the folder.
    """
    workdir, section = folder.parent, config.human
    source, examples, task, _, marks = _examples.read(config, workdir)
    runs, examples = _systems.read(config, _systems.listed(config, workdir), examples, task)
    by_id = {example.id: example for example in examples}
    predictions, right = {}, {}
    for run in runs:
        if run.system in predictions:
            print(f'{run.system}: people are asked about its first file; {run.path} is left out')
            continue
        predictions[run.system] = {prediction.id: prediction for prediction in run.predictions}
        right[run.system] = {p.id: judging.judge_one(p, by_id[p.id], task.judge) for p in run.predictions}
    images = load.images(config) if config.data.images or not config.evaluate.references else None
    study = sampling.sample(
        examples, predictions, right,
        dataset=config.data.builder,
        trusted=section.trusted if section.trusted in ('', 'auto') else known.read(section.trusted),
        seed=config.seed,
        has_picture=None if images is None else lambda name: images[name],
        made_from={'examples': source, **marks} | {f'predictions of {run.system}': run.hash for run in runs},
        **{name: section[name] for name in _SETTINGS},
    )  # fmt: skip
    if (folder / FILE).is_file():
        _keep(folder, study)
        return
    study = pictures.add(study, images, folder)
    study.write(folder)
    _tell(study, folder, section)


def _keep(folder, study: Study) -> None:
    """Raises ValueError unless the study that is there is this one."""
    before, now = _decided(Study.open(folder)), _decided(study)
    if changed := [key for key in {**before, **now} if before.get(key) != now.get(key)]:
        raise ValueError(
            f'{folder / FILE} is another study ({", ".join(changed)}), and people may have been asked about it. '
            'Take another --workdir, or delete that folder'
        )
    print(f'the study is there already: {folder / FILE}')


def _decided(study: Study) -> dict:
    """What tells a study from others, as JSON has it; not what follows from it, nor which pictures were there."""
    asked = {name: value for name, value in study.settings.items() if name not in ('systems', 'shortfalls')}
    limits = {'raters': study.raters, 'wrong_limit': study.wrong_limit}
    return json.loads(json.dumps({**study.made_from, **asked, **limits}))


def _tell(study: Study, folder, section) -> None:
    asked = [item for item in study.items.values() if not item.trusted]
    print(
        f'{len(asked):,} items of {", ".join(study.systems)}, {len(study.items) - len(asked):,} trusted ones; '
        f'{len(study.pages):,} pages, {study.raters} raters each'
    )
    bill = scores.cost(len(study.pages), study.raters, section.reward, section.fee)
    print(f"{bill['assignments']:,} pages to pay, {section.reward:g} each: {bill['total']:,.2f} with a platform's fee")
    for line in study.settings['shortfalls']:
        print(f'warning: {line}')
    if without := sum(not item.image for item in study.items.values()):
        print(f'warning: {without:,} of {len(study.items):,} items have no picture: raters see that there is none')
    print(f'study: {folder / FILE}')
    print('now --config.human.step=serve asks people, or --config.human.step=export makes files for others to do so')


def serve(config, folder: pathlib.Path) -> None:
    """Serves the study of a folder until it is interrupted. Raises ValueError as `server.serve` does."""
    section = config.human
    options = server.Options(
        intro=_text(section.intro), behind=section.behind, max_pages=section.max_pages, timeout=section.timeout
    )
    server.serve(
        folder, host=section.host, port=section.port, options=options, tell=functools.partial(print, flush=True)
    )


def export(config, folder: pathlib.Path) -> None:
    """Writes what `human.to` needs into `<folder>/<human.to>/`. Raises ValueError as `formats.export` does."""
    study, section = Study.open(folder), config.human
    target = folder / section.to
    for path in formats.export(study, section.to, target, section.image_url, folder / IMAGES):
        print(path)
    print('what comes back: --config.human.step=score --config.human.ratings=FILE,...')


def _text(path: str) -> str:
    if not path:
        return ''
    if not pathlib.Path(path).is_file():
        raise ValueError(f'human.intro is {path!r}, which is no file')
    try:
        return pathlib.Path(path).read_text(encoding='utf-8')
    except (UnicodeDecodeError, OSError) as error:
        raise ValueError(f'human.intro: {path}: wanted text in UTF-8: {error}') from error
