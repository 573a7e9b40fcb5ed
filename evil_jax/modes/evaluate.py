"""predictions -> scores.json and report.html. The predictions may be any model's; JAX is imported for encoders only."""

import json
import pathlib
from collections.abc import Sequence

from evil_jax import records
from evil_jax.metrics import evil
from evil_jax.modes import (
    _browser,
    _comparison,
    _examples,
    _leaderboard,
    _metrics,
    _prints,
    _ratings,
    _systems,
    _terminal,
    _trials,
)
from evil_jax.modes._scoring import (
    accuracy_by_group,
    main_scores,
    majority_scores,
    protocols,
    rule,
    sheet,
    to_json,
    warn_of_twins,
)
from evil_jax.pages import report, sweep

MAJORITY = 'majority'


@_terminal.plain_warnings()
def run(config, workdir) -> dict[str, float] | None:
    """Scores predictions of one split, of one system or several, under each of `evaluate.protocols`.

    Reads `evaluate.predictions` (default `<workdir>/predictions.jsonl`; `evaluate.systems` names more files) and the
    examples: of the built data set, or of the files `evaluate.references`, which then say by their own fields what a
    right answer is. Prints the scores and writes `<workdir>/scores.json` and `report.html`; of several systems, and on
    data sets with published numbers, `comparison.json` and `leaderboard.csv`, `.md`, `.tex`; of human ratings
    `correlation.json`.

    Returns:
      The numbers of `main_scores` under the first protocol; of ratings alone rho of each metric. With `evaluate.check`
      nothing is scored, and there are no numbers.

    Raises:
      ValueError: missing, empty or malformed files; ids that do not agree; answers outside a closed set.
    """
    workdir = pathlib.Path(workdir)
    if config.evaluate.check:
        rows = _metrics.preflight(config)
        _terminal.show('Metrics that can run here', ('metric', '', 'how, or what is lacking'), rows, numbers=False)
        return None
    names = protocols(config)
    others = _comparison.read(config.evaluate.compare, names)
    if config.evaluate.ratings and not _systems.any_given(config, workdir):
        return _ratings.numbers(_ratings.write(config, workdir, _ratings.read(config, ()), {}))
    files = _systems.listed(config, workdir)
    rated = _ratings.read(config, files)
    _metrics.check(config, len(files))
    source, examples, task, training, marks = _examples.read(config, workdir)
    total = len(examples)
    runs, examples = _systems.read(config, files, examples, task)
    own = runs[0]
    warn_of_twins(own.predictions, examples)

    sheets = _sheets(runs, examples, total, task, config, names)
    marks = [f'{name}:{value}' for name, value in marks.items()]
    mark = _mark(marks, [own])
    scores = {
        name: evil.scores(systems[own.system][0], config.evaluate.bootstrap, config.seed)
        for name, systems in sheets.items()
    }
    document = {name: to_json(found, mark) for name, found in scores.items()}
    majority, which = majority_scores(training, examples, task, config, scores[names[0]], names[0])
    document[MAJORITY] = to_json(majority, '|'.join((*marks, f'predictions:{which}')))
    records.write_json(workdir / 'scores.json', {'schema': 1, **document})

    # With choices in each example the baseline has no answer in common, but a position.
    label = 'majority answer' if examples[0].choices is None else 'majority position'
    groups = accuracy_by_group(sheets[names[0]][own.system][0])
    repeated = sum(run.system == own.system for run in runs)
    title = own.system + (f' (run 1 of {repeated})' if repeated > 1 else '')
    columns = {f'{title}, {name}': document[name] for name in names}
    beside = {label: document[MAJORITY]}
    beside |= {f'{other}, {name}': rows for other, found in others.scores.items() for name, rows in found.items()}
    _prints.show(columns | beside, list(columns), groups)
    sweeps = list(sweep.summary(others.sweeps))
    for table in sweeps:
        _terminal.show(*table)
    print(f'scores: {workdir / "scores.json"}')
    human = _ratings.write(config, workdir, rated, sheets[names[0]]) if rated else {}
    comparison = None
    _leaderboard.remove(workdir)
    if len(runs) > 1 or human or _leaderboard.has_published(config):
        told = {system: _mark(marks, [r for r in runs if r.system == system]) for system in sheets[names[0]]}
        comparison = _leaderboard.write(config, workdir, sheets, told, human)
        if len(runs) > 1:
            _prints.show_leaderboard(comparison)
    if config.evaluate.report:
        _write_report(
            config, workdir,
            title=title, runs=runs, examples=examples, task=task, source=source, document=document, names=names,
            groups=groups,
            systems={label: document[MAJORITY]} | _beside(others, names[0]),
            sweeps=sweeps, comparison=comparison,
        )  # fmt: skip
    return main_scores(scores[names[0]])


def check_files(config, workdir, earlier: Sequence[str]) -> None:
    """Reads what `evaluate.compare` names, before anything is computed.

    Args:
      config: of the run.
      workdir: of the run.
      earlier: modes of this run before this one; a file that they are going to write may be missing.

    Raises:
      ValueError: as `_comparison.read` does.
    """
    made = {'evaluate': _comparison.SCORES, 'sweep': _trials.NAME}
    folder = pathlib.Path(workdir).absolute()
    names = protocols(config)
    _comparison.read(config.evaluate.compare, names, [folder / made[mode] for mode in earlier if mode in made])


def _read_curves(path):
    rows = []
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise ValueError(f'{path}:{number}: not JSON: {error}') from error
    return [row for row in rows if isinstance(row, dict)]


def _sidecar(path):
    """What decode wrote about the predictions, without the configuration: for the report's provenance."""
    meta = path.with_name('predictions.meta.json')
    if path.name != 'predictions.jsonl' or not meta.is_file():
        return {}
    try:
        content = json.loads(meta.read_text(encoding='utf-8'))
    except ValueError as error:
        raise ValueError(f'{meta}: not JSON: {error}') from error
    shown = {k: v for k, v in content.items() if k not in ('config', 'schema')} if isinstance(content, dict) else {}
    return {
        f'decoded, {name}': ', '.join(f'{k} {v}' for k, v in value.items()) if isinstance(value, dict) else value
        for name, value in shown.items()
    }


def _sheets(runs, examples, total, task, config, names):
    """{protocol: {system: [sheet of each run]}}."""
    scorers, tokenise = _metrics.scorers(config), _metrics.tokenise(config)
    sheets = {name: {} for name in names}
    for run in runs:
        for name in names:
            correct = rule(config, name)
            found = sheet(run.predictions, examples, task, config, name, scorers, tokenise, total, correct)
            sheets[name].setdefault(run.system, []).append(found)
    return sheets


def _beside(others, main) -> dict[str, dict]:
    """Scores of other systems for the report: under the main protocol, or where they lack that under theirs, named."""
    found = {}
    for label, scores in others.scores.items():
        for name, rows in ({main: scores[main]} if main in scores else scores).items():
            found[label if name == main else f'{label}, {name}'] = rows
    return found


def _mark(marks, runs) -> str:
    """End of the signatures of a system: what decides what is right, whose predictions they are, what was left out."""
    left_out = '+'.join(run.left_out.replace(':', '=') for run in runs if run.left_out)
    predictions = '+'.join(run.hash for run in runs)
    return '|'.join([*marks, f'predictions:{predictions}', *[f'left_out:{left_out}'] * bool(left_out)])


def _write_report(
    config, workdir, *, title, runs, examples, task, source, document, names, groups, systems, sweeps, comparison
):  # fmt: skip
    own, metrics = runs[0], workdir / 'metrics.jsonl'
    report.write_report(
        workdir / 'report.html',
        title=title,
        scores=document[names[0]],
        protocol=names[0],
        protocols={name: document[name] for name in names[1:]},
        comparison=comparison,
        groups=groups,
        baselines=systems,
        sweeps=sweeps,
        curves=_read_curves(metrics) if metrics.is_file() else (),
        examples=_browser.rows(runs, examples, task, config),
        provenance={
            'predictions': own.path,
            'predictions, sha256': own.hash,
            **{f'predictions of {run.system}': run.path for run in runs[1:]},
            'examples': source,
            'examples scored': len(examples),
            **_sidecar(own.path),
        },
        total=len(examples),
    )
    print(f'report: {workdir / "report.html"}')
