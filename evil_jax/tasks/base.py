"""What a data set means: its answers, how an example is encoded, the loss, and how an answer is judged."""

import abc

import numpy as np

from evil_jax import lookup
from evil_jax.data import objects, transforms
from evil_jax.records import Example


def make_task(config, assets=None) -> 'Task':
    """The task of `config.data.task`: evil_jax/tasks/<task>.py."""
    return lookup.module('tasks', config.data.task).Task(config, assets)


class Task(abc.ABC):
    """Base of all tasks. Picklable: worker processes of the input pipeline carry copies.

    Args:
      config: the whole configuration; `config.data` and `config.train.choice_loss` are read.
      assets: tokenisers and answers. None is enough to judge answers and explanations of predictions from a file.

    Attributes:
      answers: answer texts, index = output of the answer head; empty where every example has choices of its own.
      pairs: whether an example's text is two texts (data/words.py, `joined`).
      answer_table: (tokens int32 [A, max_answer], lengths int32 [A]) of the decoder pieces `<|b_ans|> a <|e_ans|>`.
    """

    pairs = False

    def __init__(self, config, assets=None):
        self.assets, self.encoding = assets, transforms.Encoding.of(config)
        self.answers = self.answer_vocabulary(assets)
        self._index = {answer: n for n, answer in enumerate(self.answers)}
        if assets is not None:
            pieces = [
                transforms.piece('a', 'ans', a, assets.expl, self.encoding.max_answer) for a in (*self.answers, '')
            ]
            # One row more than there are answers: the empty answer, for examples without one.
            self._tokens = np.stack([p['a'] for p in pieces])
            self._lengths = np.stack([p['a_length'] for p in pieces])
            self.answer_table = self._tokens[:-1], self._lengths[:-1]

    @abc.abstractmethod
    def answer_vocabulary(self, assets) -> tuple[str, ...]:
        """The answers; checks that `assets`, if given, are this task's."""

    @abc.abstractmethod
    def targets(self, example: Example) -> dict[int, float]:
        """Gold answers: index -> score in [0, 1]; empty if unknown."""

    @abc.abstractmethod
    def loss(self, answer_logits_BA, batch):
        """Loss of each row, loss_B, float32; padding rows are for the caller to leave out."""

    @abc.abstractmethod
    def predict(self, answer_logits_BA):
        """(index_B of the best answer, probabilities_BA)."""

    @abc.abstractmethod
    def judge(self, answer: str, example: Example) -> float:
        """How right an answer is, in [0, 1]. Raises ValueError where the example has no gold answer."""

    def transform(self, example: Example, regions, rng: np.random.Generator | None = None) -> dict[str, np.ndarray]:
        """Arrays of one row of a batch (data/pipeline.py), all but mask and row.

        Args:
          regions: the picture's Regions, or None for none.
          rng: chooses the reference that trains; None takes the first.
        """
        assets, encoding = self.assets, self.encoding
        names = objects.names(example, regions, encoding.objects)
        return {
            **transforms.text(example.text, assets.word, encoding.max_text, names),
            **transforms.regions(regions, encoding, example.image_id),
            **(transforms.objects(names, assets.expl, encoding.max_objects) if encoding.objects else {}),
            **transforms.piece('question', 'qn', example.text, assets.expl, encoding.max_question),
            **transforms.explanation(example, assets.expl, encoding, rng),
            **transforms.targets(self.targets(example)),
        }

    def condition(self, batch, answer_index_B):
        """The answers to explain, for M_E: a gather on the device. Index -1 is an empty answer.

        Args:
          batch: not used here; a task with choices of its own in each example finds them there.
          answer_index_B: int32.
        """
        # Imported here, as in every method that computes on the device: scoring a file of predictions needs no JAX.
        import jax.numpy as jnp

        from evil_jax.models.context import Condition

        row_B = jnp.where(answer_index_B < 0, len(self.answers), answer_index_B)
        return Condition(
            answer_index_B=answer_index_B,
            tokens_BT=jnp.take(jnp.asarray(self._tokens), row_B, axis=0),
            length_B=jnp.take(jnp.asarray(self._lengths), row_B, axis=0),
        )

    def answer_text(self, index: int, example: Example) -> str:
        """Words of an answer; '' for index -1."""
        return self.answers[index] if index >= 0 else ''

    def answer_index(self, answer: str, example: Example) -> int:
        """Index of an answer given in words. Raises ValueError naming the nearest one."""
        if answer not in self._index:
            nearest = lookup.nearest(answer, self.answers)
            raise ValueError(f'{answer!r} is not one of the {len(self.answers)} answers.{nearest}')
        return self._index[answer]

    def explanation_truth(self, prediction, example: Example) -> bool | None:
        """Whether a generated explanation is true; None where nothing but people could tell."""
        return None
