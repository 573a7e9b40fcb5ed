"""Judging by what an example itself says, where no data set says it. Never imports JAX."""

from collections.abc import Iterable

from evil_jax.data import shapes
from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.metrics import vqa
from evil_jax.records import Example, Prediction


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
