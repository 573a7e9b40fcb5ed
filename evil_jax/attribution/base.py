"""What every attribution method gives and what it may be told.

Legend: B examples, K targets, S positions.
"""

import dataclasses

import jax


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Relevance:
    """How much each position of an input speaks for each target.

    Attributes:
      values_BKS: float; larger speaks more for the target. What is no input (padding) is exactly 0. Nothing is
        normalised: numbers of two methods have different units, ranks within an example mean the same.
      spans: name ('text', 'regions', 'patches', 'question', 'answer', 'explanation', 'objects') -> (first position
        int32 B, number of positions int32 B); both int32 BK where examples have choices, whose texts differ in length.
        A position of no span (a class token, markers around a picture) may have a value too.
    """

    values_BKS: jax.Array
    spans: dict[str, tuple[jax.Array, jax.Array]]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Numbers of the methods; each reads those that its `Method.reads` names. '' and None mean the method's own.

    Attributes:
      rules: rule set of nn/ops.py by which relevance passes back ('chefer2020', 'lrp', 'attnlrp', 'cplrp').
      start_layer: first attention layer that takes part; negative numbers count from the end. Layers count through: an
        encoder's, then its decoder's.
      row_norm: whether the rows of (attention + identity) are scaled to sum to 1.
      steps: points of the path of integrated gradients.
      samples: noisy copies of SmoothGrad.
      noise: standard deviation of their noise, as a share of (largest - smallest) input of the example.
      chunk: copies of the batch (points, noisy copies) that are computed at once: memory against speed.
      seed: of everything random.
    """

    rules: str = ''
    start_layer: int | None = None
    row_norm: bool | None = None
    steps: int = 20
    samples: int = 25
    noise: float = 0.15
    chunk: int = 5
    seed: int = 0

    def __post_init__(self):
        for name in ('steps', 'samples', 'chunk'):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f'{name} is {value}, wanted at least 1')
        if self.noise < 0:
            raise ValueError(f'noise is {self.noise}, wanted at least 0')
