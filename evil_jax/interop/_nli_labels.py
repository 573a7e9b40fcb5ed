"""Which output of a classifier means which class of natural-language inference, as its config.json says."""

import pathlib
from collections.abc import Mapping, Sequence

from evil_jax.construction.pairs import CLASSES
from evil_jax.interop import bert

_HEADS = ('classifier.out_proj.weight', 'classifier.weight')
# What models are seen to call them, in any case.
_WORDS = {
    'contradiction': 'contradiction', 'contradict': 'contradiction', 'contradicts': 'contradiction',
    'contradictory': 'contradiction', 'neutral': 'neutral', 'entailment': 'entailment', 'entail': 'entailment',
    'entails': 'entailment',
}  # fmt: skip
_ADVICE = (
    'Write what its outputs mean into config.json, for example "id2label": {"0": "contradiction", "1": "neutral", '
    '"2": "entailment"}; the order is what the model was trained with and its model card tells it'
)


def check_head(folder: pathlib.Path, config: Mapping, there: Mapping) -> None:
    """Raises ValueError unless the weights have a head that chooses one of three classes.

    Args:
      config: config.json.
      there: {their name: array}.
    """
    head = next((there[name] for name in _HEADS if name in there), None)
    if head is None or head.ndim != 2:
        raise ValueError(f'{folder}: the weights have no classifier, wanted a model for sequence classification')
    if len(head) == 1:
        raise ValueError(f'{folder}: its head has one output (a regression), wanted three classes')
    if len(head) != len(CLASSES):
        raise ValueError(f'{folder}: its head tells {len(head)} classes, wanted three: {", ".join(CLASSES)}')
    problem = config.get('problem_type')
    if problem not in (None, 'single_label_classification'):
        raise ValueError(f'{folder}: config.json: problem_type is {problem!r}, wanted single_label_classification')


def order(folder: pathlib.Path, config: Mapping, labels: Sequence[str]) -> tuple[int, ...]:
    """For each of the labels the number of its output.

    Args:
      config: config.json.

    Raises:
      ValueError: id2label is absent, unclear, or contradicts label2id; or `labels` are not the three classes.
    """
    if sorted(labels) != sorted(CLASSES):
        raise ValueError(f'labels are {", ".join(labels)}, wanted {", ".join(CLASSES)} in any order')
    path, stated = folder / 'config.json', bert.config_labels(folder)
    if stated is None:
        raise ValueError(f'{path}: no id2label says what the outputs mean. {_ADVICE}')
    meant = [_WORDS.get(label.strip().lower()) for label in stated]
    if sorted(map(str, meant)) != sorted(CLASSES):
        raise ValueError(f'{path}: id2label is {", ".join(map(repr, stated))}, wanted the three classes. {_ADVICE}')
    other = config.get('label2id') or {}
    if set(other) == set(stated) and any(other[label] != n for n, label in enumerate(stated)):
        raise ValueError(f'{path}: label2id {other} contradicts id2label {dict(enumerate(stated))}')
    return tuple(meant.index(label) for label in labels)
