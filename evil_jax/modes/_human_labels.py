"""What people labelled in a study of --mode=human that asks for labels: the table, majorities, agreement."""

import pathlib

from evil_jax import records
from evil_jax.human import collected, formats, forms, labels
from evil_jax.human.study import FILE, Study
from evil_jax.modes import _terminal

RESULTS = 'results.json'


def wanted(folder: pathlib.Path) -> bool:
    """Whether the study of a folder asks for labels."""
    return (folder / FILE).is_file() and Study.open(folder).asks == 'labels'


def score(config, folder: pathlib.Path) -> dict[str, float]:
    """Writes labels.csv, labels.jsonl and results.json (`labels.summary`) and prints what people say.

    Raises:
      ValueError: no labels, malformed ones, or those of another study.
    """
    study, section = Study.open(folder), config.human
    if section.ratings:
        paths = [pathlib.Path(part.strip()) for part in section.ratings.split(',') if part.strip()]
        rows = formats.read_labels(paths, study, rater=collected.rater_ids(folder))
        if {item.example for item in study.items.values()}.isdisjoint(row.item for row in rows):
            raise ValueError(
                f'human.ratings: {section.ratings}: nothing of what {folder / FILE} asks is labelled there'
            )
    else:
        rows = collected.read(folder)
    rows = labels.mark(rows, trusted_failures=section.trusted_failures)
    found = labels.summary(rows, resamples=config.evaluate.bootstrap, seed=config.seed)
    names = forms.of(study).files
    labels.write(*(folder / name for name in names), rows)
    records.write_json(folder / RESULTS, {'schema': 1, 'made_from': dict(study.made_from), **found})
    _tell(found)
    print(f'labels: {folder / names[0]}')
    print(f'now --mode=construct with --config.construct.relabelled={folder / names[0]} takes them')
    numbers = {name: found[name] for name in ('items', 'changed', 'no_majority')}
    numbers |= {row['name']: row['value'] for row in found['agreement'] if row['value'] is not None}
    return {name: float(value) for name, value in numbers.items()}


def _tell(found) -> None:
    counts = found['labels']
    why = ', '.join(f'{number:,} {reason}' for reason, number in counts['left_out'].items())
    print(f'{counts["counted"]:,} of {counts["rows"]:,} labels count; left out: {why or "none"}')
    _terminal.show(
        'what the majority says',
        ('the data say', *labels.CLASSES, 'no majority'),
        [
            (given, *(f'{table.get(label, 0):,}' for label in (*labels.CLASSES, '')))
            for given, table in found['table'].items()
        ],
    )
    print(f'{found["changed"]:,} of {found["items"]:,} items get another label')
    for row in found['agreement']:
        value = row['reason'] if row['value'] is None else f'{row["value"]:.3f}'
        print(f'{row["name"]}: {value} ({row["units"]:,} items with two labels or more)')
    _terminal.show(
        'raters',
        ('rater', 'labels', 'left out', 'as the majority', 'checks', 'failed'),
        [
            (row['rater'], str(row['labels']), str(row['left_out']), _percent(row['with_majority']),
             str(row['checks']), str(row['checks_failed']))
            for row in found['raters']
        ],
    )  # fmt: skip


def _percent(share: float | None) -> str:
    return '-' if share is None else f'{100 * share:.1f} %'
