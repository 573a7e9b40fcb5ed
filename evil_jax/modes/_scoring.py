"""What predictions score: the model's, and those of always giving the most frequent answer. Never imports JAX."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from evil_jax import compat
from evil_jax.metrics import base as metrics_base
from evil_jax.metrics import evil, judging
from evil_jax.metrics import protocol as protocol_lib
from evil_jax.modes import _metrics
from evil_jax.records import Example, Prediction, Score
from evil_jax.tasks._fields import gold_answer

Scores = dict[str, dict[str, Score]]

OPEN = ('vqax', 'vqav2', 'shapes_vqa')  # builders of data sets with open answers
MAIN = 'evil'  # the protocol of scores while training


def protocols(config) -> list[str]:
    """The names in `evaluate.protocols`, the main one first; '' = 'evil,coco', under quirk 17 'evil'.

    Raises:
      ValueError: an unknown or a repeated name.
    """
    default = MAIN if compat.has(config, 17) else f'{MAIN},coco'
    names = [name.strip() for name in (config.evaluate.protocols or default).split(',') if name.strip()]
    for name in names:
        protocol_lib.named(name)
    if len(set(names)) < len(names) or not names:
        raise ValueError(f'evaluate.protocols is {config.evaluate.protocols!r}, wanted different names')
    return names


def sheet(
    predictions: Sequence[Prediction],
    examples: Sequence[Example],
    task,
    config,
    protocol: str = MAIN,
    metrics: Mapping[str, _metrics.Scorer] | None = None,
    tokenise: Callable | None = None,
    total: int = 0,
    rule: str = '',
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
      total: number of examples of the references, where these are some of them.
      rule: when an open answer is correct, instead of the protocol's rule.
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
        total=total,
        open_answers=config.data.builder in OPEN,
        rule=(rule or 'auto') if any(e.answers is not None for e in examples) else 'auto',
        tags='0-9' if compat.has(config, 12) else 'all',
    )


def rule(config, protocol: str) -> str:
    """When an open answer is correct under a protocol, '' = as it says: quirk 14 is the published rule in its place."""
    return 'nonzero' if protocol == 'coco' and compat.has(config, 14) else ''


def score_predictions(predictions, examples, task, config, metrics: Sequence[str] | None = None) -> Scores:
    """The e-ViL scores without intervals, under the protocol `MAIN`; used while training.

    An open answer is correct if no answer has a higher soft score, or under quirk 14 by the published rule.

    Args:
      predictions, examples, task, config: as for `sheet`.
      metrics: names, instead of those of `evaluate.metrics` that need nothing but the texts.
    """
    names = [n for n in config.evaluate.metrics if n in _metrics.FAST] if metrics is None else metrics
    correct = 'nonzero' if compat.has(config, 14) else 'top'
    found = sheet(predictions, examples, task, config, metrics=_metrics.scorers(config, names), rule=correct)
    return evil.scores(found, bootstrap=0)


def accuracy_by_group(found: evil.Sheet) -> dict[str, list[dict]]:
    """{kind of group, such as 'class': rows of `evil.accuracy_table`}."""
    kinds = dict.fromkeys(name.partition('=')[0] for name in found.subsets if '=' in name)
    return {kind: rows for kind in kinds if (rows := evil.accuracy_table(found, kind))}


def main_scores(scores: Scores) -> dict[str, float]:
    """One number a metric, where it has a value.

    s_t, s_e_*, s_o_* and accuracies are those of all examples. Metrics of explanation texts are those of the correctly
    answered examples, as in the papers' tables; where it is not known which these are, of all.
    """
    right = {n: s for n, s in scores.get('correct', {}).items() if not n.startswith('s_')}
    known = any(score.value is not None for score in right.values())
    rows = scores['all'] | (right if known else {})
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
        found = sheet(guesses, examples, task, config, protocol, metrics={}, rule=rule(config, protocol))
        scores = evil.scores(found, config.evaluate.bootstrap, config.seed)['all']
        scores = {name: score for name, score in scores.items() if not name.startswith(('s_e_', 's_o_', 'ngram'))}
    for name, score in like['all'].items():
        if name.startswith(('s_e_', 's_o_')):
            scores[name] = Score(None, reason='a majority answer comes without explanations', signature=score.signature)
    return {'all': scores}, which


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


def to_json(scores: Scores, mark: str) -> dict[str, dict[str, dict]]:
    """The form of scores.json; `mark`, which says what is right and whose predictions they are, ends each signature."""
    document = {}
    for subset, row in scores.items():
        document[subset] = {name: score.to_json() for name, score in row.items()}
        for score in document[subset].values():
            score['signature'] = '|'.join(filter(None, (score['signature'], mark)))
    return document
