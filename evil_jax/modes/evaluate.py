"""predictions.jsonl -> scores.json and report.html. The predictions may be any model's; JAX is never imported."""

import json
import pathlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import rich.console
import rich.markup
import rich.table

from evil_jax import compat, records
from evil_jax.data import features, load, shapes
from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.metrics import base as metrics_base
from evil_jax.metrics import evil, vqa
from evil_jax.modes import _cards
from evil_jax.pages import report
from evil_jax.records import Example, Prediction, Score
from evil_jax.tasks import base as tasks

Scores = dict[str, dict[str, Score]]

PROTOCOL = 'evil'
WORDS = 'coco'  # the second protocol, for what depends on how texts are split
MAJORITY = 'majority'


def run(config, workdir) -> dict[str, float]:
    """Scores the predictions of one split.

    Reads `evaluate.predictions` (default `<workdir>/predictions.jsonl`) and the examples: of the built data set, or of
    the JSON lines `evaluate.examples`, which then say by their own fields what a right answer is. Writes
    `<workdir>/scores.json`, prints the scores, and writes `<workdir>/report.html`. Explanations are scored in two ways:
    as the published code does, and (unless `compat` asks for the published way, 17) on word tokens.

    Returns:
      The numbers of `main_scores`.

    Raises:
      ValueError: missing, empty or malformed files; ids that do not agree; answers outside a closed set.
    """
    workdir = pathlib.Path(workdir)
    compared = list(_compared(config.evaluate.compare))
    others, others_words = ({label: read_scores(path, p) for label, path in compared} for p in (PROTOCOL, WORDS))
    path = pathlib.Path(config.evaluate.predictions or workdir / 'predictions.jsonl')
    predictions = _read(path, Prediction, 'run --mode=decode first, or name a file in evaluate.predictions')
    split = config.evaluate.split or config.decode.split or config.data.test
    if config.evaluate.examples:
        source = pathlib.Path(config.evaluate.examples)
        examples = _read(source, Example, 'evaluate.examples names it')
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
    _warn_of_twins(predictions, examples)

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
    systems = {label: document[MAJORITY], **others}
    words = {workdir.name: document.get(WORDS, {}), **others_words}
    groups = accuracy_by_group(predictions, examples, task, rule(config, examples))
    _print(workdir.name, document[PROTOCOL], systems, groups, words)
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
      ValueError: as `read_scores` does, or an entry that is not 'label=path'.
    """
    for _, path in _compared(config.evaluate.compare):
        made = 'evaluate' in earlier and pathlib.Path(path).absolute() == (workdir / 'scores.json').absolute()
        if not made:
            read_scores(path)


def score_predictions(
    predictions: Sequence[Prediction],
    examples: Sequence[Example],
    task,
    config,
    bootstrap: int | None = None,
    protocol: str = PROTOCOL,
    metrics: Sequence[str] | None = None,
) -> Scores:
    """The e-ViL scores, `{subset: {metric: Score}}` (metrics/evil.py); also used while training.

    Args:
      predictions: one for each example, in any order.
      examples: the examples.
      task: has `judge(answer, example)` and `explanation_truth(prediction, example)`.
      config: `evaluate.metrics`, `evaluate.bootstrap`, `compat` and `seed` are read.
      bootstrap: instead of `evaluate.bootstrap`; 0 saves the time of the intervals.
      protocol: how texts are split.
      metrics: instead of `evaluate.metrics`.
    """
    by_id = {e.id: e for e in examples}
    truth = {p.id: task.explanation_truth(p, by_id[p.id]) for p in predictions if p.id in by_id}
    return evil.evaluate(
        predictions,
        examples,
        judge=task.judge,
        truth=truth if any(t is not None for t in truth.values()) else None,
        metrics=tuple(config.evaluate.metrics if metrics is None else metrics),
        bootstrap=config.evaluate.bootstrap if bootstrap is None else bootstrap,
        seed=config.seed,
        protocol=protocol,
        rule=rule(config, examples),
        tags='0-9' if compat.has(config, 12) else 'all',
    )


def rule(config, examples: Sequence[Example]) -> str:
    """When an answer is correct (`evil.RULES`): soft answers have a rule of the published code, and a better one."""
    soft = any(e.answers is not None for e in examples)
    return 'nonzero' if soft and compat.has(config, 14) else 'auto'


def word_scores(predictions, examples, task, config) -> Scores:
    """The scores that depend on how explanations are split, on word tokens."""
    metrics = [name for name in config.evaluate.metrics if name in evil.SPLIT_AT_BLANKS]
    scores = score_predictions(predictions, examples, task, config, protocol=WORDS, metrics=metrics)
    same = ('s_t', 'accuracy', 'vqa_accuracy', 'vqa_soft', 's_e_true', 's_o_true')
    return {subset: {n: score for n, score in row.items() if n not in same} for subset, row in scores.items()}


def accuracy_by_group(predictions, examples, task, rule: str = 'auto') -> dict[str, list[dict]]:
    """{kind of group, such as 'class': rows of `evil.accuracy_table`}."""
    kinds = dict.fromkeys(group.partition('=')[0] for e in examples for group in evil.groups_of(e))
    return {
        kind: evil.accuracy_table(
            predictions,
            examples,
            judge=task.judge,
            rule=rule,
            groups=lambda e, kind=kind: [g for g in evil.groups_of(e) if g.partition('=')[0] == kind],
        )
        for kind in kinds
    }


def main_scores(scores: Scores) -> dict[str, float]:
    """One number a metric, where it has a value.

    s_t, s_e_*, s_o_* and accuracies are those of all examples. Metrics of explanation texts are those of the correctly
    answered examples, as in the papers' tables.
    """
    rows = scores['all'] | scores.get('correct', {})
    rows |= {name: score for name, score in scores['all'].items() if name.startswith('s_')}
    return {name: score.value for name, score in rows.items() if score.value is not None}


def majority_scores(training: Iterable[Example] | None, examples, task, config, like: Scores) -> tuple[Scores, str]:
    """What the most frequent answer of the training split scores. It explains nothing, and its S_E say so.

    Where every example has choices of its own their words are no common answer: it is the position that is most often
    the right one, which scores about what guessing does.

    Args:
      training: None where there is no training split at hand.
      examples, task, config: as for `score_predictions`.
      like: scores of a model, whose S_E and S_O the baseline must have too.

    Returns:
      The scores, and what was predicted, for their signatures.
    """
    among_choices = all(e.choices is not None for e in examples)
    gold = (lambda e: e.label if e.choices is not None else None) if among_choices else gold_answer
    count = Counter(answer for answer in map(gold, training or ()) if answer not in (None, ''))
    which = 'most frequent training answer'
    if not count:
        why = 'there is no training split at hand' if training is None else 'the training split has no gold answers'
        scores = {'s_t': Score(None, reason=why, signature=like['all']['s_t'].signature)}
    else:
        answer = min(count, key=lambda a: (-count[a], a))  # a tie must not depend on the order of the examples
        if among_choices:
            which = f'always choice {answer + 1} (most often right in training)'
            # Some example may have fewer choices.
            at = [min(answer, len(e.choices) - 1) for e in examples]
            guesses = [Prediction(e.id, e.choices[i], answer_index=i) for e, i in zip(examples, at)]
        else:
            guesses = [Prediction(e.id, answer) for e in examples]
        scores = evil.evaluate(
            guesses,
            examples,
            judge=task.judge,
            metrics=(),
            bootstrap=config.evaluate.bootstrap,
            seed=config.seed,
            protocol=PROTOCOL,
            rule=rule(config, examples),
        )['all']
        scores = {name: score for name, score in scores.items() if not name.startswith(('s_e_', 's_o_', 'ngram'))}
    for name, score in like['all'].items():
        if name.startswith(('s_e_', 's_o_')):
            scores[name] = Score(None, reason='a majority answer comes without explanations', signature=score.signature)
    return {'all': scores}, which


def gold_answer(example: Example) -> str | None:
    """The gold answer in words: the class, the right choice, or the answer with the highest soft score."""
    if example.choices is not None and isinstance(example.label, int):
        return example.choices[example.label] if 0 <= example.label < len(example.choices) else None
    if example.label is not None:
        return str(example.label)
    return max(example.answers, key=example.answers.get) if example.answers else None


class FieldTask:
    """Judges by what an example itself says, without a data set: the right choice, the class, or soft scores.

    Args:
      examples: their classes are the only answers allowed; the three of visual entailment belong together.
    """

    def __init__(self, examples: Iterable[Example]):
        classes = {e.label for e in examples if e.choices is None and isinstance(e.label, str)}
        self.answers = CLASSES if classes and classes <= set(CLASSES) else tuple(sorted(classes))

    def judge(self, answer: str, example: Example) -> float:
        """In [0, 1]. Raises ValueError naming an example without a gold answer."""
        if example.choices is None and isinstance(example.label, int):
            raise ValueError(f'example {example.id!r} has label {example.label} and no choices: name the class instead')
        if isinstance(example.label, int) and not 0 <= example.label < len(example.choices):
            raise ValueError(f'example {example.id!r} has label {example.label} and {len(example.choices)} choices')
        if example.label is not None:
            return float(answer == gold_answer(example))
        if example.answers is not None:
            return vqa.soft_score(answer, example.answers)
        raise ValueError(f'example {example.id!r} has neither label nor answers: its prediction cannot be judged')

    def explanation_truth(self, prediction: Prediction, example: Example) -> bool | None:
        """Of examples of the built-in world, which carry their scene."""
        scene = example.extra.get('scene')
        return None if scene is None else bool(shapes.explanation_is_true(scene, example, prediction.explanation))


def _warn_of_twins(predictions, examples) -> None:
    """Tells where words do not say which choice was meant."""
    indexed = {p.id for p in predictions if p.answer_index is not None}
    twins = [
        e.id for e in examples
        if e.id not in indexed and e.choices is not None and e.choices.count(gold_answer(e)) > 1
    ]  # fmt: skip
    if twins:
        print(
            f'warning: {metrics_base.some(twins, 3)}: the right choice and a wrong one read the same, and predictions '
            'without answer_index do not say which is meant: both count as right'
        )


def check(predictions: Sequence[Prediction], examples: Sequence[Example], task, path) -> None:
    """Raises one ValueError that begins with `path` if predictions and examples do not belong together."""
    by_id = {e.id: e for e in examples}
    if len(by_id) != len(examples):
        repeated = [i for i, n in Counter(e.id for e in examples).items() if n > 1]
        raise ValueError(f'repeated among the examples: {metrics_base.some(repeated)}')
    try:
        metrics_base.same_ids({p.id: p for p in predictions}, by_id, 'prediction', 'example')
    except ValueError as error:
        raise ValueError(f'{path}: {error} (of {len(predictions)} predictions and {len(examples)} examples)') from error
    for prediction in predictions:
        example = by_id[prediction.id]
        allowed = example.choices if example.choices is not None else task.answers if example.label is not None else ()
        if allowed and prediction.answer not in allowed:
            raise ValueError(
                f'{path}: the answer of {prediction.id!r} is {prediction.answer!r}, '
                f'wanted one of {", ".join(map(repr, allowed))}'
            )
        try:
            evil.check_index(prediction, example)
        except ValueError as error:
            raise ValueError(f'{path}: {error}') from error


def to_json(scores: Scores, mark: str) -> dict[str, dict[str, dict]]:
    """The form of scores.json; `mark`, which says what is right and whose predictions they are, ends each signature."""
    document = {}
    for subset, row in scores.items():
        document[subset] = {name: score.to_json() for name, score in row.items()}
        for score in document[subset].values():
            score['signature'] = '|'.join(filter(None, (score['signature'], mark)))
    return document


def read_scores(path, protocol: str = PROTOCOL) -> dict[str, dict[str, dict]]:
    """The scores of a model from a scores.json; {} where it lacks a protocol other than the main one.

    Raises:
      ValueError: names the file and what is wrong in it.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f'{path}: there is no such file')
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    if not isinstance(document, Mapping) or document.get('schema') != 1 or PROTOCOL not in document:
        raise ValueError(f"{path}: not a scores.json: wanted an object with 'schema': 1 and {PROTOCOL!r}")
    scores = document.get(protocol, {})
    rows = scores.values() if isinstance(scores, Mapping) else [None]
    if not all(isinstance(r, Mapping) and all(_is_score(score) for score in r.values()) for r in rows):
        raise ValueError(f"{path}: wanted {{subset: {{metric: {{'value': number or null, ...}}}}}} under {protocol!r}")
    return scores


def _is_score(row):
    if not isinstance(row, Mapping) or 'value' not in row:
        return False
    value, ci = row['value'], row.get('ci95')
    return (value is None or isinstance(value, int | float)) and (
        ci is None or (isinstance(ci, list) and len(ci) == 2 and all(isinstance(v, int | float) for v in ci))
    )


def _compared(entries):
    """(label, path) of each 'label=path'."""
    for entry in entries:
        label, equals, path = entry.partition('=')
        if not equals or not label.strip() or not path.strip():
            raise ValueError(f"evaluate.compare has {entry!r}, wanted 'label=path/to/scores.json'")
        yield label.strip(), path.strip()


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
    own = not config.evaluate.examples
    images = load.images(config) if own or config.data.images else None
    if own and (pathlib.Path(config.data.dir) / 'store').is_dir():
        reader = load.open_store(config)
    else:
        reader = features.open_features(config.data.features[0]) if config.data.features else None
    return images, reader, shapes.CLASSES if own and config.data.builder.startswith('shapes_') else ()


def _print(title, scores, systems, groups, words):
    """The main scores beside other systems, then by group, at the terminal; `words`: those on word tokens."""
    console = rich.console.Console()
    if not console.is_terminal:
        console.width = 160  # a log has no edge to fold at
    everything = {title: scores, **systems}
    explained = [name for name in scores.get('correct', {}) if not name.startswith('s_')]
    places = {name: 'correct' if name in explained else 'all' for name in (*scores['all'], *explained)}
    table = rich.table.Table(title='Scores with 95 % intervals; of explanation texts: where the answer is right')
    table.add_column('')
    for label in everything:
        table.add_column(rich.markup.escape(label), justify='right')
    for name, place in places.items():
        cells = [_terminal(system.get(place, {}).get(name)) for system in everything.values()]
        if any(cells):
            table.add_row(name, *cells)
    table.add_section()
    for name in words[title].get('correct', {}):
        cells = [_terminal(words.get(label, {}).get('correct', {}).get(name)) for label in everything]
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
            cells = [_terminal(report.group_scores(scores, row).get(metric)) for metric in metrics]
            counts = [str(row['n']), str(row['correct'])] if row['group'] != 'macro' else ['', '']
            table.add_row(rich.markup.escape(row['group']), *counts, f'{row["accuracy"]:.3f}', *cells)
        console.print(table)


def _terminal(row):
    if row is None or row['value'] is None:
        return ''
    ci = row.get('ci95')
    return f'{row["value"]:.3f}' + (f' ({ci[0]:.3f}-{ci[1]:.3f})' if ci else '')
