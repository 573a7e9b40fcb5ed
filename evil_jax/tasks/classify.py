"""Plain classification: the class of a picture, of a text or of two texts, without a question or an explanation."""

import numpy as np

from evil_jax import lookup
from evil_jax.data import transforms
from evil_jax.records import Example
from evil_jax.tasks import _softmax

_READ_BY = {'pictures': ('vit',), 'text': ('bert',)}  # models, by what a builder gives


class Task(_softmax.SoftmaxTask):
    """Softmax cross-entropy over the classes of the data set.

    A batch holds images, or text, text_type and text_length (data/transforms.py), and the targets: nothing of regions
    or explanations. So the config has no explanation module.

    Attributes:
      inputs: 'pictures' or 'text', as the data set's builder says.

    Raises:
      ValueError: a data set of regions, a model that does not read what the data set gives, a config with an
        explanation module, other classes than those of the data set.
    """

    def __init__(self, config, assets=None):
        self._builder = lookup.module('data/builders', config.data.builder).Builder
        self.inputs, self.pairs = self._builder.inputs, self._builder.pairs
        _check(config, self.inputs, judging=assets is None)
        super().__init__(config, assets)

    def answer_vocabulary(self, assets) -> tuple[str, ...]:
        fixed = self._builder.classes
        if assets is None:
            return fixed or ()
        if fixed and tuple(assets.answers) != fixed:
            raise ValueError(f'the answers of the data set are {list(assets.answers)[:5]}, wanted {list(fixed)[:5]}')
        if not assets.answers:
            raise ValueError('the data set has no classes (answers.json is empty)')
        return tuple(assets.answers)

    def targets(self, example: Example) -> dict[int, float]:
        """The label's class; nothing where it is none of those that data.answers lists."""
        return {self._index[example.label]: 1.0} if example.label in self._index else {}

    def transform(self, example: Example, found, rng: np.random.Generator | None = None) -> dict[str, np.ndarray]:
        """Arrays of one row of a batch, all but mask and row.

        Args:
          found: the picture, uint8 [H, W, 3]; None where texts are read.
          rng: moves a training picture (data.shift).
        """
        if self.inputs == 'pictures':
            arrays = transforms.picture(found, self.encoding, rng)
        else:
            encode = transforms.pair if self.pairs else transforms.text
            arrays = encode(example.text, self.assets.word, self.encoding.max_text)
        return arrays | transforms.targets(self.targets(example))

    def judge(self, answer: str, example: Example) -> float:
        """1 for the gold class, else 0."""
        if example.label is None:
            raise ValueError(f'example {example.id!r} has no label to judge by')
        return float(answer == example.label)


def _check(config, inputs, judging):
    if inputs not in _READ_BY:
        raise ValueError(
            f"data.task is 'classify', but data.builder {config.data.builder!r} gives {inputs} to read, wanted "
            f'{" or ".join(_READ_BY)}'
        )
    if judging:
        return
    model, explains = config.model.task.name, config.model.expl.name
    if model not in _READ_BY[inputs]:
        raise ValueError(
            f'model.task.name is {model!r}, but data.builder {config.data.builder!r} gives {inputs} to read, wanted '
            f'{" or ".join(map(repr, _READ_BY[inputs]))}'
        )
    if explains:
        raise ValueError(
            f"data.task is 'classify', which has nothing for model.expl.name {explains!r} to learn: wanted ''"
        )
