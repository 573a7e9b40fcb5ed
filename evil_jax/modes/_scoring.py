"""What predictions score: the model's, and those of always giving the most frequent answer. Never imports JAX."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from evil_jax import compat
from evil_jax.data import shapes
from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.metrics import base as metrics_base
from evil_jax.metrics import evil, judging, vqa
from evil_jax.metrics import protocol as protocol_lib
from evil_jax.modes import _metrics
from evil_jax.records import Example, Prediction, Score

Scores = dict[str, dict[str, Score]]

MAIN = 'evil'  # the protocol of scores while training


def protocols(config) -> list[str]:
    """The names in `evaluate.protocols`, the first is the main one; under quirk 17 without 'coco'.

    Raises:
      ValueError: an unknown or a repeated name, or none.
    """
    names = [name.strip() for name in config.evaluate.protocols.split(',') if name.strip()]
    for name in names:
        protocol_lib.named(name)
    if len(set(names)) < len(names) or not names:
        raise ValueError(f'evaluate.protocols is {config.evaluate.protocols!r}, wanted different names')
    return [name for name in names if name != 'coco' or not compat.has(config, 17)] or names


def sheet(
    predictions: Sequence[Prediction],
    examples: Sequence[Example],
    task,
    config,
    protocol: str = MAIN,
    metrics: Mapping[str, _metrics.Scorer] | None = None,
    tokenise: Callable | None = None,
) -> evil.Sheet:
    """The statistics of predictions under a protocol.

    Args:
      predictions: one for each example, in any order.
      examples: the examples.
      task: has `judge(answer, example)` and `explanation_truth(prediction, example)`.
      config: `compat` is read, and `evaluate` where the next two are not given.
      protocol: a key of `protocol.PROTOCOLS`.
      metrics: instead of `_metrics.scorers(config)`.
      tokenise: instead of `_metrics.tokenise(config)`.
    """
    by_id = {e.id: e for e in examples}
    said = [p for p in predictions if p.id in by_id and p.explanation is not None]
    truth = {p.id: task.explanation_truth(p, by_id[p.id]) for p in said}
    return evil.sheet(
        predictions,
        examples,
        judge=task.judge,
        truth=truth if any(t is not None for t in truth.values()) else None,
        metrics=_metrics.scorers(config) if metrics is None else metrics,
        protocol=protocol,
        tokenise=_metrics.tokenise(config) if tokenise is None else tokenise,
        # What quirk 14 is: the published rule, also where a protocol has a better one.
        rule='nonzero' if protocol == 'coco' and _soft(examples) and compat.has(config, 14) else 'auto',
        tags='0-9' if compat.has(config, 12) else 'all',
    )


def _soft(examples):
    return any(e.answers is not None for e in examples)


def score_predictions(predictions, examples, task, config, metrics: Sequence[str] | None = None) -> Scores:
    """The e-ViL scores without intervals, under the protocol `MAIN`; used while training.

    Args:
      predictions, examples, task, config: as for `sheet`.
      metrics: names, instead of those of `evaluate.metrics` that need nothing but the texts.
    """
    names = [n for n in config.evaluate.metrics if n in _metrics.FAST] if metrics is None else metrics
    found = sheet(predictions, examples, task, config, metrics=_metrics.scorers(config, names))
    return evil.scores(found, bootstrap=0)


def accuracy_by_group(found: evil.Sheet) -> dict[str, list[dict]]:
    """{kind of group, such as 'class': rows of `evil.accuracy_table`}."""
    kinds = dict.fromkeys(name.partition('=')[0] for name in found.subsets if '=' in name)
    return {kind: rows for kind in kinds if (rows := evil.accuracy_table(found, kind))}


def main_scores(scores: Scores) -> dict[str, float]:
    """One number a metric, where it has a value.

    s_t, s_e_*, s_o_* and accuracies are those of all examples. Metrics of explanation texts are those of the correctly
    answered examples, as in the papers' tables.
    """
    rows = scores['all'] | scores.get('correct', {})
    rows |= {name: score for name, score in scores['all'].items() if name.startswith('s_')}
    return {name: score.value for name, score in rows.items() if score.value is not None}


def majority_scores(
    training: Iterable[Example] | None, examples, task, config, like: Scores, protocol: str = MAIN
) -> tuple[Scores, str]:
    """What the most frequent answer of the training split scores. It explains nothing, and its S_E say so.

    Where every example has choices of its own their words are no common answer: it is the position that is most often
    the right one, which scores about what guessing does.

    Args:
      training: None where there is no training split at hand.
      examples, task, config: as for `sheet`.
      like: scores of a model, whose S_E and S_O the baseline must have too.
      protocol: its rule decides which answers are correct.

    Returns:
      The scores, and what was predicted, for their signatures.
    """
    among_choices = all(e.choices is not None for e in examples)
    gold = (lambda e: e.label if e.choices is not None else None) if among_choices else gold_answer
    count = Counter(answer for answer in map(gold, training or ()) if answer not in (None, ''))
    which = 'most frequent training answer'
    unknown = judging.why_not([(Prediction(e.id, ''), e) for e in examples])
    if unknown or not count:
        why = unknown or (
            'there is no training split at hand' if training is None else 'the training split has no gold answers'
        )
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
        found = sheet(guesses, examples, task, config, protocol, metrics={})
        scores = evil.scores(found, config.evaluate.bootstrap, config.seed)['all']
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


def warn_of_twins(predictions, examples) -> None:
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


def check(
    predictions: Sequence[Prediction], examples: Sequence[Example], task, path, *, off_list: bool = False
) -> None:
    """Raises one ValueError that begins with `path` if predictions and examples do not belong together.

    Args:
      off_list: answers outside a closed set of them are wrong ones, not mistakes in the file.
    """
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
        if not off_list and allowed and prediction.answer is not None and prediction.answer not in allowed:
            raise ValueError(
                f'{path}: the answer of {prediction.id!r} is {prediction.answer!r}, '
                f'wanted one of {", ".join(map(repr, allowed))} (evaluate.allow=answers counts others as wrong)'
            )
        try:
            judging.check_index(prediction, example)
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
