"""Several systems on the same examples: who is better, whether that is more than chance, and what was published."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from evil_jax import records
from evil_jax.metrics import evil, protocol, published, significance
from evil_jax.pages import leaderboard, tables

NAME = 'comparison.json'
Sheets = Mapping[str, Sequence[evil.Sheet]]  # system -> one sheet a run


def has_published(config) -> bool:
    """Whether papers report numbers on the data set."""
    return config.data.builder in published.DATA_SETS


def write(config, workdir, sheets: Mapping[str, Sheets], marks: Mapping[str, str], human: Mapping) -> dict:
    """Compares every system with the first one.

    Writes `<workdir>/comparison.json` and the boards of it as `leaderboard.csv`, `.md` and `.tex`.

    Args:
      config: `evaluate.bootstrap`, `evaluate.trials`, `seed` and `data.builder` are read.
      workdir: of the run.
      sheets: protocol -> system -> its runs; the main protocol and the baseline stand first.
      marks: system -> the end of its signatures.
      human: what `_ratings.write` returned, or {}.

    Returns:
      What `pages.leaderboard` shows.
    """
    options = dict(bootstrap=config.evaluate.bootstrap, trials=config.evaluate.trials, seed=config.seed)
    main = next(iter(sheets.values()))
    comparison = {
        'protocols': [
            {
                'name': name,
                'about': protocol.named(name).about,
                'rows': _rows(systems, options),
                'signatures': {
                    system: _signatures(config, one, marks[system]) for system, (one, *_) in systems.items()
                },
            }
            for name, systems in sheets.items()
        ],
        'published': [dataclasses.asdict(row) for row in published.read(config.data.builder)],
        'meanings': published.protocols(),
        'settings': options,
        'points': _points(main),
        'human': _human(human) if human else [],
    }
    folder = pathlib.Path(workdir)
    kept = {name: comparison[name] for name in ('settings', 'protocols')}
    records.write_json(folder / NAME, {'schema': 1, **kept})
    boards = leaderboard.boards(comparison)
    records.atomic_write(folder / 'leaderboard.csv', tables.csv(boards))
    for suffix, form in (('md', tables.markdown), ('tex', tables.latex)):
        records.atomic_write(folder / f'leaderboard.{suffix}', '\n\n'.join(form(board) for board in boards) + '\n')
    return comparison


def _signatures(config, sheet, mark):
    found = evil.signatures(sheet, config.evaluate.bootstrap, config.seed)
    return {name: f'{signature}|{mark}' for name, signature in found.items()}


def _rows(systems, options):
    """Rows over right answers, as papers report them, and over all of them."""
    found = []
    for subset in ('main', 'all'):
        rows = significance.compare(systems, subset=subset, **options)
        found += [dataclasses.asdict(row) for row in rows]
    return found


def _human(part):
    """How metrics agree with people: here, and in the paper."""
    here = [
        {k: row.get(k) for k in ('metric', 'rho', 'p', 'ci95', 'n')} | {'data_set': row['dataset'], 'source': ''}
        for row in part['correlation']
        if row['rho'] is not None
    ]
    names = [f.name for f in dataclasses.fields(published.Correlation) if f.name != 'significant']
    return here + [{name: getattr(row, name) for name in names} for row in published.correlations()]


def _points(systems):
    """Scores of single examples, right answers' and wrong ones', of the first run of each system."""
    first = next(iter(systems.values()))[0]
    values = {}
    for label, (sheet, *_) in systems.items():
        row = {i: n for n, i in enumerate(sheet.ids)}
        found = values.setdefault(label, {})
        for column in sheet.columns:
            if column.part in ('task', 'all'):
                for name, of in column.table.sentence.items():
                    places = found.setdefault(name, [None] * len(row))
                    for i, value in zip(column.table.ids, of):
                        places[row[i]] = float(value)
    return {'ids': list(first.ids), 'values': values}
