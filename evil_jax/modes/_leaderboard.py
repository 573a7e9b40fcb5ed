"""Several systems on the same examples: who is better, whether that is more than chance, and what was published."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from evil_jax import records
from evil_jax.metrics import evil, protocol, published, significance
from evil_jax.pages import leaderboard, tables

NAME = 'comparison.json'
COLUMNS = ('s_t', 'accuracy', 'bleu4', 'meteor', 'rouge_l', 'cider', 'spice', 'bertscore')
SUBSETS = (significance.MAIN, 'all')  # right answers' explanations, as papers report them, and all of them
Sheets = Mapping[str, Sequence[evil.Sheet]]  # system -> one sheet a run


def has_published(config) -> bool:
    """Whether papers report numbers on the data set."""
    return config.data.builder in published.DATA_SETS


def remove(workdir) -> None:
    """Takes away what an earlier evaluation in this folder wrote: beside other scores it would mislead."""
    for name in (NAME, *(f'leaderboard.{suffix}' for suffix in ('csv', 'md', 'tex'))):
        (pathlib.Path(workdir) / name).unlink(missing_ok=True)


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
                'signatures': _signatures(config, systems, marks, significance.MAIN),
                'signatures_all': _signatures(config, systems, marks, 'all'),
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
        text = '\n\n'.join(form(board, metrics=_columns(board)) for board in boards) + '\n'
        records.atomic_write(folder / f'leaderboard.{suffix}', text)
    return comparison


def _columns(board):
    """The scores that a table on paper has room for; the CSV has all."""
    known = {*board['metrics'], *[m for row in board['published'] for m in row['metrics']]}
    ranked = board['ranked']
    wanted = dict.fromkeys((*COLUMNS, ranked.replace('s_o_', 's_e_'), ranked))
    return [name for name in wanted if name in known]


def _signatures(config, systems, marks, subset):
    """{system: {score name: signature}}; of several runs those of the first, with the hashes of all."""
    options = config.evaluate.bootstrap, config.seed
    return {
        system: {name: f'{line}|{marks[system]}' for name, line in evil.signatures(runs[0], subset, *options).items()}
        for system, runs in systems.items()
    }


def _rows(systems, options):
    found = []
    for subset in SUBSETS:
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
    return here + [dataclasses.asdict(row) for row in published.correlations()]


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
