"""Visual entailment (e-SNLI-VE): does the picture contradict, leave open or entail the hypothesis?"""

from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.records import Example
from evil_jax.tasks import _softmax


class Task(_softmax.SoftmaxTask):
    """Three classes, softmax cross-entropy with weight 1 (facts 1.4)."""

    def answer_vocabulary(self, assets) -> tuple[str, ...]:
        if assets is not None and tuple(assets.answers) != CLASSES:
            raise ValueError(f'the answers of the data set are {list(assets.answers)[:5]}, wanted {list(CLASSES)}')
        return CLASSES

    def targets(self, example: Example) -> dict[int, float]:
        return {} if example.label is None else {self._class(example): 1.0}

    def judge(self, answer: str, example: Example) -> float:
        """1 for the gold class, else 0."""
        if example.label is None:
            raise ValueError(f'example {example.id!r} has no label to judge by')
        return float(answer == CLASSES[self._class(example)])

    def _class(self, example):
        label = example.label
        if isinstance(label, str) and label in CLASSES:
            return CLASSES.index(label)
        if isinstance(label, int) and 0 <= label < len(CLASSES):
            return label
        raise ValueError(f'example {example.id!r} has label {label!r}, wanted one of {", ".join(CLASSES)}')
