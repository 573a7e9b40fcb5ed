"""Configuration of an exported evil_jax model."""

from transformers import PretrainedConfig


class EvilConfig(PretrainedConfig):
    """What the PyTorch files need to know; everything comes from `config.json`.

    Args:
      task: the answering half: 'name' of its class and the numbers that make it.
      expl: the explaining half, likewise; None for a model that only answers.
      encoding: how texts and regions become tensors (processing_evil.py).
      answers: output of the answer head -> text; empty where each question comes with choices of its own.
      probability: 'softmax' or 'sigmoid' of the answer logits.
      trained: settings of evil_jax that the model was trained with, by key; evil_jax reads them when it imports.
    """

    model_type = 'evil'

    def __init__(self, task=None, expl=None, encoding=None, answers=(), probability='softmax', trained=None, **kwargs):
        self.task, self.expl, self.encoding = task, expl, encoding
        self.answers, self.probability, self.trained = list(answers), probability, trained
        super().__init__(**kwargs)
