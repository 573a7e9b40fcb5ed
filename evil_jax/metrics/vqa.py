"""Accuracy of open answers: the official VQA accuracy (Antol et al., 2015) and LXMERT's soft score. Scale 0..1.

Official accuracy of an answer: for each annotator, min(1, matches among the *other* annotators / 3); then the mean
over annotators. Answers are normalised (`text.vqa_punctuation`, `text.vqa_words`) only if the annotators do not all
say the same; otherwise the answer must equal theirs letter by letter. It also turns 'none' into '0'. The strict
accuracy does neither: all answers are normalised, as they are meant to be, and 'none' stays a word.

The soft score, which e-ViL's s_t for VQA-X is the mean of, is looked up in the example's `answers`.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from evil_jax import text
from evil_jax.metrics import base
from evil_jax.records import Score


@functools.lru_cache(maxsize=1 << 16)
def _normalise(answer: str, strict: bool) -> str:
    return text.vqa_words(text.vqa_punctuation(answer), strict)


def accuracy(answer: str, annotations: Sequence[str], strict: bool = False) -> float:
    """Official or strict accuracy of one answer against the raw answers of (usually ten) annotators.

    Raises:
      ValueError: no annotators.
    """
    if not len(annotations):
        raise ValueError(f'VQA accuracy of {answer!r}: no annotations')
    answer = text.vqa_blanks(answer)
    given = [text.vqa_blanks(a) for a in annotations]
    if strict or len(set(given)) > 1:
        answer = _normalise(answer, strict)
        given = [_normalise(a, strict) for a in given]
    matches, n = given.count(answer), len(given)
    # Leaving out one of those who agree leaves matches - 1, leaving out another leaves all.
    return (matches * min(1.0, (matches - 1) / 3) + (n - matches) * min(1.0, matches / 3)) / n


def soft_score(answer: str, answers: Mapping[str, float]) -> float:
    """Soft score of one answer: exact look-up, 0 if absent."""
    return float(answers.get(answer, 0.0))


def accuracy_table(predictions: base.Predictions, references: base.References) -> base.Table:
    """One row an example: its official accuracy. References are the annotators' raw answers."""
    ids, answers, annotations = base.join(predictions, references)
    values = np.array([accuracy(a, given) for a, given in zip(answers, annotations)], np.float64)
    signature = base.signature(
        'vqa_accuracy', norm='official(unless unanimous)', annotators=base.nrefs(annotations), scale='0..1'
    )
    return base.mean_table(ids, 'vqa_accuracy', values, signature)


def score(predictions: base.Predictions, references: base.References) -> dict[str, Score]:
    """{'vqa_accuracy': Score} from raw annotator answers. Raises ValueError as `base.join` does."""
    return accuracy_table(predictions, references).scores()


def soft_table(predictions: base.Predictions, answers: Mapping[str, Mapping[str, float]]) -> base.Table:
    """One row an example: its soft score. An example may have no acceptable answer at all (then 0)."""
    base.same_ids(predictions, answers, 'prediction', 'answers')
    ids = sorted(predictions)
    values = np.array([soft_score(predictions[i], answers[i]) for i in ids], np.float64)
    return base.mean_table(ids, 'vqa_soft', values, base.signature('vqa_soft', norm='none', scale='0..1'))


def soft(predictions: base.Predictions, answers: Mapping[str, Mapping[str, float]]) -> dict[str, Score]:
    """{'vqa_soft': Score} from {id: {answer: soft score}}."""
    return soft_table(predictions, answers).scores()
