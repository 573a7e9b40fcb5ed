"""predictions.jsonl -> scores.json and report.html. The predictions may be any model's; JAX is never imported."""

import json
import pathlib
from collections.abc import Sequence

import numpy as np
import rich.markup
import rich.table

from evil_jax import compat, records
from evil_jax.data import features, load, shapes
from evil_jax.metrics import evil
from evil_jax.modes import _cards, _comparison, _terminal, _trials
from evil_jax.modes._scoring import (
    PROTOCOL,
    WORDS,
    FieldTask,
    accuracy_by_group,
    check,
    gold_answer,
    main_scores,
    majority_scores,
    rule,
    score_predictions,
    to_json,
    warn_of_twins,
    word_scores,
)
from evil_jax.pages import report, sweep
from evil_jax.records import Example, Prediction
from evil_jax.tasks import base as tasks

MAJORITY = 'majority'


def run(config, workdir) -> dict[str, float]:
    """Scores the predictions of one split.

    Reads `evaluate.predictions` (default `<workdir>/predictions.jsonl`) and the examples: of the built data set, or of
    the JSON lines `evaluate.references`, which then say by their own fields what a right answer is. Writes
    `<workdir>/scores.json`, prints the scores, and writes `<workdir>/report.html`. Explanations are scored in two ways:
    as the published code does, and (unless `compat` asks for the published way, 17) on word tokens.

    Returns:
      The numbers of `main_scores`.

    Raises:
      ValueError: missing, empty or malformed files; ids that do not agree; answers outside a closed set.
    """
    workdir = pathlib.Path(workdir)
    others = _comparison.read(config.evaluate.compare)
    path = pathlib.Path(config.evaluate.predictions or workdir / 'predictions.jsonl')
    predictions = _read(path, Prediction, 'run --mode=decode first, or name a file in evaluate.predictions')
    split = config.evaluate.split or config.decode.split or config.data.test
    if config.evaluate.references:
        source = pathlib.Path(config.evaluate.references)
        examples = _read(source, Example, 'evaluate.references names it')
        task, training, marks = FieldTask(examples), None, {}
    else:
        source = f'{split} split of {config.data.dir}'
        examples = load.load_examples(config, split)
        # A run that decoded the first few examples only is scored on those.
        some = config.decode.limit if not config.evaluate.predictions else 0
        examples = [examples[i] for i in range(min(some or len(examples), len(examples)))]
        task, training = tasks.make_task(config, None), _training_examples(config)
        marks = load.marks(config, split)
    check(predictions, examples, task, path)
    warn_of_twins(predictions, examples)

    scores = score_predictions(predictions, examples, task, config)
    majority, which = majority_scores(training, examples, task, config, like=scores)
    marks = [f'{name}:{value}' for name, value in marks.items()]
    mark = '|'.join((*marks, f'predictions:{records.file_hash(path)}'))
    document = {PROTOCOL: to_json(scores, mark)}
    if not compat.has(config, 17):
        document[WORDS] = to_json(word_scores(predictions, examples, task, config), mark)
    document[MAJORITY] = to_json(majority, '|'.join((*marks, f'predictions:{which}')))
    records.write_json(workdir / 'scores.json', {'schema': 1, **document})

    # With choices in each example the baseline has no answer in common, but a position.
    label = 'majority answer' if examples[0].choices is None else 'majority position'
    systems = {label: document[MAJORITY], **others.scores}
    words = {workdir.name: document.get(WORDS, {}), **others.words}
    groups = accuracy_by_group(predictions, examples, task, rule(config, examples))
    sweeps = list(sweep.summary(others.sweeps))
    _print(workdir.name, document[PROTOCOL], systems, groups, words)
    for table in sweeps:
        _terminal.show(*table)
    print(f'scores: {workdir / "scores.json"}')
    if config.evaluate.report:
        metrics = workdir / 'metrics.jsonl'
        report.write_report(
            workdir / 'report.html',
            title=workdir.name,
            scores=document[PROTOCOL],
            words=document.get(WORDS, {}),
            groups=groups,
            baselines=systems,
            sweeps=sweeps,
            curves=_read_curves(metrics) if metrics.is_file() else (),
            examples=_shown(predictions, examples, task, config),
            provenance={
                'predictions': path,
                'predictions, sha256': records.file_hash(path),
                'examples': source,
                'examples scored': len(examples),
                **_sidecar(path),
            },
            total=len(examples),
        )
        print(f'report: {workdir / "report.html"}')
    return main_scores(scores)


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
    _comparison.read(config.evaluate.compare, [folder / made[mode] for mode in earlier if mode in made])


def _read(path, cls, hint):
    if not path.is_file():
        raise ValueError(f'{path}: there is no such file; {hint}')
    rows = records.read_jsonl(path, cls)
    if not rows:
        raise ValueError(f'{path}: the file is empty, wanted one {cls.__name__} a line')
    return rows


def _training_examples(config):
    """The training split, or None where the data set was built without one."""
    try:
        examples = load.load_examples(config, config.data.train)
    except ValueError:
        # The split under evaluation has just been opened, so what is missing is this split only.
        return None
    return (examples[i] for i in range(len(examples)))


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


def _shown(predictions, examples, task, config):
    """Rows for the browser of examples: a seeded sample, in random order, since neighbours share their picture."""
    count = min(config.evaluate.report_examples, len(examples))
    chosen = np.random.default_rng(config.seed).permutation(len(examples))[:count]
    by_id = {p.id: p for p in predictions}
    images, reader, names = _pictures(config)
    rows = []
    for example in (examples[i] for i in chosen):
        prediction = by_id[example.id]
        tell = lambda words, example=example: _cards.shown(words, example)
        index = prediction.answer_index
        if index is None and example.choices is not None:
            index = example.choices.index(prediction.answer)
        rows.append(
            _cards.picture(example, images, reader, names)
            | {
                'id': example.id,
                'text': tell(example.text),
                'choices': _cards.choices(example, index),
                'gold': example.answers or [tell(a) for a in (gold_answer(example),) if a is not None],
                'answer': tell(prediction.answer),
                'answer_scores': {tell(a): p for a, p in prediction.answer_scores.items()},
                'correct': evil.judge_one(prediction, example, task.judge),
                'explanation': tell(prediction.explanation),
                'references': [tell(reference) for reference in example.explanations],
                'true': task.explanation_truth(prediction, example),
                'condition': prediction.condition,
            }
        )
    return rows


def _pictures(config):
    """(pictures by image id or None, region reader or None, names of the regions' classes).

    Of examples from a file only pictures and regions that the user names are shown: those of the configured data set
    may have the same ids and be others.
    """
    own = not config.evaluate.references
    images = load.images(config) if own or config.data.images else None
    if own and (pathlib.Path(config.data.dir) / 'store').is_dir():
        reader = load.open_store(config)
    else:
        reader = features.open_features(config.data.features[0]) if config.data.features else None
    return images, reader, shapes.CLASSES if own and config.data.builder.startswith('shapes_') else ()


def _print(title, scores, systems, groups, words):
    """The main scores beside other systems, then by group, at the terminal; `words`: those on word tokens."""
    console = _terminal.console()
    everything = {title: scores, **systems}
    explained = [name for name in scores.get('correct', {}) if not name.startswith('s_')]
    places = {name: 'correct' if name in explained else 'all' for name in (*scores['all'], *explained)}
    table = rich.table.Table(title='Scores with 95 % intervals; of explanation texts: where the answer is right')
    table.add_column('')
    for label in everything:
        table.add_column(rich.markup.escape(label), justify='right')
    for name, place in places.items():
        cells = [_interval(system.get(place, {}).get(name)) for system in everything.values()]
        if any(cells):
            table.add_row(name, *cells)
    table.add_section()
    for name in words[title].get('correct', {}):
        cells = [_interval(words.get(label, {}).get('correct', {}).get(name)) for label in everything]
        if any(cells):
            table.add_row(f'{name}, on words', *cells)
    console.print(table)
    for name, place in places.items():
        row = scores[place][name]
        if row['value'] is None and not name.startswith('s_o_'):
            console.print(f'{name}: {row["reason"]}', markup=False, highlight=False)
    for name, rows in groups.items():
        metrics = report.group_metrics(scores)
        table = rich.table.Table(title=f'By {name.replace("_", " ")}')
        for column in ('group', 'n', 'correct', 'accuracy', *metrics):
            table.add_column(column, justify='left' if column == 'group' else 'right')
        for row in rows:
            cells = [_interval(report.group_scores(scores, row).get(metric)) for metric in metrics]
            counts = [str(row['n']), str(row['correct'])] if row['group'] != 'macro' else ['', '']
            table.add_row(rich.markup.escape(row['group']), *counts, f'{row["accuracy"]:.3f}', *cells)
        console.print(table)


def _interval(row):
    if row is None or row['value'] is None:
        return ''
    ci = row.get('ci95')
    return f'{row["value"]:.3f}' + (f' ({ci[0]:.3f}-{ci[1]:.3f})' if ci else '')
