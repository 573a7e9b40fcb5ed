"""From ratings to the tidy table, scores, statistics and the report of --mode=human; how many people a study takes."""

import pathlib
from collections.abc import Sequence

from evil_jax import lookup, records
from evil_jax.data import load
from evil_jax.human import collected, correlation, formats, presets, ratings, responses, scores, tables
from evil_jax.human import power as power_lib
from evil_jax.human.responses import Response
from evil_jax.human.study import FILE, IMAGES, Study
from evil_jax.modes import _human_labels, _rated_texts, _terminal
from evil_jax.pages import human as page

TIDY = ('ratings.csv', 'ratings.jsonl')
RESULTS, TABLE, LATEX, REPORT, PLAN = 'results.json', 'table.csv', 'table.tex', 'report.html', 'power.json'
_SHOWN = 40  # disagreements of each kind


def score(config, folder: pathlib.Path) -> dict[str, float]:
    """Everything that follows from ratings, as the head of modes/human.py tells.

    Raises:
      ValueError: no ratings, malformed ones, none that counts, an unknown model.
    """
    section = config.human
    if _human_labels.wanted(folder):
        return _human_labels.score(config, folder)
    names = [name.strip() for name in section.model.split(',') if name.strip()]
    for name in names:
        lookup.entry(presets.PRESETS, name, 'model of ratings')
    rows, studies = _read(config, folder)
    rows = responses.mark(rows, trusted_failures=section.trusted_failures)
    options = dict(resamples=config.evaluate.bootstrap, seed=config.seed)
    s_t = {(study.dataset, system): value for study in studies for system, value in study.s_t.items()}
    found = scores.summary(rows, s_t=s_t, **options)
    items = ratings.aggregate(responses.to_ratings(rows))
    metrics = _rated_texts.by_item(config, items)
    document = {
        'schema': 1,
        'title': 'Human judgement: ' + ', '.join(found['datasets']),
        'facts': {'systems': found['systems'], 'ratings': section.ratings or 'collected by the server'},
        'scores': found,
        'statistics': [presets.run(name, rows) for name in names],
        'automatic': _rated_texts.by_system(config, items) if metrics else {},
        'correlation': [row.to_json() for row in correlation.table(metrics, items, **options)] if metrics else None,
        'cost': scores.paid(rows, section.reward, section.fee),
        'settings': {
            'trusted_failures': section.trusted_failures, 'bootstrap': config.evaluate.bootstrap, 'seed': config.seed,
            **{f'study of {study.dataset}, {k}': v for study in studies for k, v in study.made_from.items()},
        },
        'files': {
            TIDY[0]: 'every rating, also those that do not count, with the reason',
            RESULTS: 'these numbers', TABLE: 'the same as one table', LATEX: 'for papers',
        },
    }  # fmt: skip
    responses.write(*(folder / name for name in TIDY), rows)
    records.write_json(folder / RESULTS, document)
    records.atomic_write(folder / TABLE, tables.csv(document))
    records.atomic_write(folder / LATEX, tables.latex(document))
    _tell(document)
    if section.report:
        shown = [_found(row, config, studies, folder) for row in scores.disagreements(rows, _SHOWN)]
        page.write_human(folder / REPORT, document | {'disagreements': shown})
        print(f'report: {folder / REPORT}')
    return _numbers(found)


def power(config, folder: pathlib.Path) -> None:
    """How many items and raters tell two systems apart, by the variances of ratings at hand or of OFA-X's.

    Prints it and writes `<folder>/power.json` (`power.plan`); the numbers of `score` stay in the mode's own file.

    Raises:
      ValueError: malformed ratings, or too few to tell variances; a study that asks for labels.
    """
    if _human_labels.wanted(folder):
        raise ValueError(f'{folder / FILE} asks for labels; human.step=power is about ratings: take another --workdir')
    section = config.human
    if section.ratings or collected.there(folder):
        rows = responses.mark(_read(config, folder)[0], trusted_failures=section.trusted_failures)
        parts = power_lib.components(rows)
    else:
        parts = power_lib.DEFAULTS.get(config.data.builder, power_lib.OTHER)
    plan = power_lib.plan(section.difference, parts, wanted=section.power, alpha=section.alpha)
    records.write_json(folder / PLAN, {'schema': 1, **plan})
    print(f'variances of ratings: {parts.source}')
    _terminal.show(
        f'to tell two systems apart whose S_E differ by {section.difference:g} (power {section.power:g}, two-sided '
        f'p < {section.alpha:g}, the same examples)',
        ('raters', 'examples', 'ratings'),
        [(str(r['raters']), _count(r['items']), _count(r['ratings'])) for r in plan['needed']],
    )
    numbers = sorted({row['raters'] for row in plan['table']})
    cells = {(row['items'], row['raters']): f'{row["power"]:.2f}, {row["detectable"]:.3f}' for row in plan['table']}
    _terminal.show(
        f'power, and the least difference that is found with power {section.power:g}',
        ('examples', *(f'{n} rater{"s" * (n > 1)}' for n in numbers)),
        [(_count(i), *(cells[i, n] for n in numbers)) for i in sorted({row['items'] for row in plan['table']})],
    )
    print(f'power: {folder / PLAN}')


def _read(config, folder) -> tuple[list[Response], list[Study]]:
    """(rows, the studies that they are of as far as these are at hand)."""
    section = config.human
    own = [Study.open(folder)] if (folder / FILE).is_file() else []
    if not section.ratings:
        return collected.read(folder), own
    paths = [pathlib.Path(part.strip()) for part in section.ratings.split(',') if part.strip()]
    for path in paths:
        if not path.exists():
            raise ValueError(f'human.ratings: {path}: there is no such file')
    options = {'rater': collected.rater_ids(folder)} if own else {}
    rows = formats.read(paths, section.ratings_format, *own, system=section.system or None, **options)
    asked = {item.example for study in own for item in study.items.values()}
    if own and asked.isdisjoint(row.item for row in rows):
        raise ValueError(
            f'human.ratings: {section.ratings}: nothing of what {folder / FILE} asks is rated there: ratings of '
            'another study want a --workdir of their own'
        )
    beside = {path.parent.resolve() for path in paths if (path.parent / FILE).is_file()} - {folder.resolve()}
    return rows, own + [Study.open(place) for place in sorted(beside)]


def _found(row, config, studies: Sequence[Study], folder) -> dict:
    """A row of disagreements, with the question, its answer and the picture where they are known."""
    for study in studies:
        for item in study.items.values():
            if (study.dataset, item.example) == (row['dataset'], row['item']) and not item.trusted:
                picture = folder / IMAGES / item.image
                return row | {
                    'question': item.text,
                    'answer': item.choices[item.gold],
                    'boxes': item.boxes,
                    'picture': picture if item.image and picture.is_file() else None,
                }
    images = load.images(config) if config.data.images else None
    return row | {'picture': images[row['image_id']] if images and row.get('image_id') else None}


def _tell(document) -> None:
    found = document['scores']
    counts = found['counts']
    why = ', '.join(f'{number:,} {reason}' for reason, number in counts['left_out'].items())
    print(f'{counts["counted"]:,} of {counts["ratings"]:,} ratings count; left out: {why or "none"}')
    _terminal.show(
        'what people say (95 % interval over pictures and raters)',
        ('data set', 'system', 'S_T', 'S_E', 'S_O', 'yes', 'weak yes', 'weak no', 'no', 'items', 'ratings'),
        [_line(row) for row in found['scores']],
    )
    for model in document['statistics']:
        if model['reason'] is not None:
            print(f'{model["name"]}: {model["reason"]}')
            continue
        _terminal.show(
            f'{model["name"]}: {model["formula"]}, n = {model["n"]:,} ({model["unit"]}; p corrected by Holm)',
            ('a', 'b', 'a - b', '95 % interval', 'p'),
            [
                (c['a'], c['b'], f'{c["estimate"]:.3f}', '{:.3f} to {:.3f}'.format(*c['ci95']), f'{c["p_holm"]:.2g}')
                for c in model['contrasts']
            ],
        )  # fmt: skip


def _line(row) -> tuple[str, ...]:
    share = lambda name: f'{100 * row["shares"][name]:.1f}'
    return (
        row['dataset'], row['system'], _percent(row['s_t']), _percent(row['s_e'], row['s_e_ci95']),
        _percent(row['s_o'], row['s_o_ci95']), *map(share, ('yes', 'weak_yes', 'weak_no', 'no')),
        _count(row['items']), _count(row['ratings']),
    )  # fmt: skip


def _percent(value, ci=None) -> str:
    if value is None:
        return ''
    return f'{100 * value:.1f}' + (f' ({100 * ci[0]:.1f}-{100 * ci[1]:.1f})' if ci else '')


def _count(number) -> str:
    return 'more than a million' if number is None else f'{number:,}'


def _numbers(found) -> dict[str, float]:
    return {
        f'{row["dataset"]} {row["system"]} {name}': row[key]
        for row in found['scores']
        for name, key in (('s_e_human', 's_e'), ('s_t', 's_t'), ('s_o_human', 's_o'))
        if row[key] is not None
    }
