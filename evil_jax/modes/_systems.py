"""The systems that an evaluation scores: whose predictions, from which files, on which examples."""

import dataclasses
import pathlib
from collections.abc import Sequence

from evil_jax import lookup, records
from evil_jax.data import outputs
from evil_jax.metrics import judging
from evil_jax.records import Example, Prediction

ANSWERS = 'answers'
ALLOWED = (*outputs.ALLOW, ANSWERS)


@dataclasses.dataclass(frozen=True)
class Run:
    """One file of predictions.

    Attributes:
      system: its label. Runs of one label are repetitions, of several seeds.
      path: of the file.
      predictions: one an example, in the order of the examples.
      hash: of the file.
      left_out: numbers of ids that were, 'missing:3,extra:1'; '' = none.
    """

    system: str
    path: pathlib.Path
    predictions: list[Prediction]
    hash: str
    left_out: str = ''


def paths(value: str) -> list[pathlib.Path]:
    """'a.json,b.json' -> two paths; a file whose own name has a comma is one. Raises ValueError for a missing file."""
    found = (
        [pathlib.Path(value)]
        if pathlib.Path(value).is_file()
        else [pathlib.Path(part.strip()) for part in value.split(',') if part.strip()]
    )
    for path in found:
        if not path.is_file():
            raise ValueError(f'{path}: there is no such file')
    return found


def any_given(config, workdir) -> bool:
    """Whether there are predictions: named ones, or those that decode wrote."""
    options = config.evaluate
    return bool(options.predictions or options.systems) or (workdir / 'predictions.jsonl').is_file()


def listed(config, workdir) -> list[tuple[str, str, pathlib.Path]]:
    """(label, format, path) of every file of predictions; the first one is the evaluation's own.

    Raises:
      ValueError: an entry of another form or an unknown format; the file is missing.
    """
    options = config.evaluate
    found, decoded = [], workdir / 'predictions.jsonl'
    if options.predictions:
        found.append((workdir.name, options.predictions_format, pathlib.Path(options.predictions)))
    elif decoded.is_file() or not options.systems:  # what decode wrote, whoever stands beside it
        found.append((workdir.name, 'jsonl', decoded))
    own = workdir.name if found else ''
    formats = lookup.names(outputs.FOLDER)
    for entry in [options.systems] if isinstance(options.systems, str) else options.systems:
        label, equals, rest = (part.strip() for part in entry.partition('='))
        kind, colon, path = rest.partition(':')
        if not colon or kind not in formats:
            near = lookup.nearest(kind, formats) if colon and not pathlib.Path(rest).is_file() else ''
            if near:
                raise ValueError(f'evaluate.systems: {kind!r} is no format.{near} There are: {", ".join(formats)}')
            kind, path = options.predictions_format, rest
        if not equals or not label or not path:
            raise ValueError(f"evaluate.systems has {entry!r}, wanted 'label=path' or 'label=format:path'")
        if label == own:
            raise ValueError(f'evaluate.systems has the label {label!r}, which is that of {found[0][2]}: take another')
        found.append((label, kind, pathlib.Path(path)))
    for _, kind, path in found:
        if kind not in formats:
            near = lookup.nearest(kind, formats)
            raise ValueError(f'evaluate.predictions_format is {kind!r}.{near} There are: {", ".join(formats)}')
        if not path.is_file():
            raise ValueError(
                f'{path}: there is no such file; run --mode=decode first, or name a file in evaluate.predictions'
            )
    return found


def allowed(config) -> tuple[frozenset[str], bool]:
    """What `evaluate.allow` says: (of ids, whether answers outside a closed set count as wrong)."""
    words = [word.strip() for word in config.evaluate.allow.split(',') if word.strip()]
    for word in words:
        if word not in ALLOWED:
            raise ValueError(
                f'evaluate.allow has {word!r}.{lookup.nearest(word, ALLOWED)} There are: {", ".join(ALLOWED)}'
            )
    return frozenset(words) - {ANSWERS}, ANSWERS in words


def read(config, files, examples: Sequence[Example], task) -> tuple[list[Run], list[Example]]:
    """Every system's predictions, and the examples that all of them have.

    Args:
      config: `evaluate.allow` is read.
      files: what `listed` returned.
      examples: of the references.
      task: judges; its closed set of answers is checked.

    Raises:
      ValueError: a file that is missing, empty or malformed; ids that do not agree and are not allowed to; answers
        outside a closed set.
    """
    ids, off_list = allowed(config)
    runs, common = [], list(examples)
    for label, kind, path in files:
        predictions = outputs.read(path, kind, examples)
        predictions, kept, counts = outputs.match(predictions, examples, ids, path)
        predictions = [_worded(p, e) for p, e in zip(predictions, kept)]
        _check(predictions, kept, task, path, off_list)
        runs.append(Run(label, path, predictions, records.file_hash(path), str(counts)))
        there = {e.id for e in kept}
        common = [e for e in common if e.id in there]
    if not common:
        raise ValueError(
            f'no example has a prediction of every system: {", ".join(dict.fromkeys(r.system for r in runs))}'
        )
    there = {e.id for e in common}
    if len(common) < len(examples):
        print(f'scored: {len(common):,} of {len(examples):,} examples, those that every system has')
    for run in runs:
        if run.left_out:
            print(f'{run.path}: left out as evaluate.allow says: {run.left_out}')
    return [dataclasses.replace(r, predictions=[p for p in r.predictions if p.id in there]) for r in runs], common


def _worded(prediction: Prediction, example: Example) -> Prediction:
    """With the words of the choice, where a file gives its number alone."""
    index, choices = prediction.answer_index, example.choices
    if prediction.answer is None and index is not None and choices is not None and 0 <= index < len(choices):
        return dataclasses.replace(prediction, answer=choices[index])
    return prediction


def _check(predictions, examples, task, path, off_list) -> None:
    """Raises ValueError that begins with `path` for answers that cannot be judged.

    Args:
      predictions, examples: one for one.
      off_list: answers outside a closed set of them are wrong ones, not mistakes in the file.
    """
    try:
        judging.why_not(list(zip(predictions, examples)))
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from error
    for prediction, example in zip(predictions, examples):
        allowed = example.choices if example.choices is not None else task.answers if example.label is not None else ()
        if not off_list and allowed and prediction.answer is not None and prediction.answer not in allowed:
            raise ValueError(
                f'{path}: the answer of {prediction.id!r} is {prediction.answer!r}, '
                f'wanted one of {", ".join(map(repr, allowed))} (evaluate.allow=answers counts others as wrong)'
            )
        try:
            judging.check_index(prediction, example)
        except ValueError as error:
            raise ValueError(f'{path}: {error}') from error
