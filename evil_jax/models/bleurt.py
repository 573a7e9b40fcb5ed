"""BLEURT (Sellam et al., ACL 2020, arXiv 2004.04696): a number for how well one text says what another one says.

An encoder reads reference and candidate as one row of two segments; a linear map of what it pools is the score, with
nothing behind it that would bound it (section 3). The encoder is BERT, or since BLEURT-20 (Pu et al., EMNLP 2021)
RemBERT.

Legend: B pairs, Q tokens of a pair, E width of the words, D width of the layers.
"""

import jax.numpy as jnp
from flax import nnx

from evil_jax.models import bert, rembert
from evil_jax.nn import ops

ACTIVATIONS = ('gelu', 'gelu_tanh', 'relu')


class Bleurt(ops.Op):
    """`(ids_BQ, type_BQ, length_B) -> score_B`, float32.

    Args:
      words: of the vocabulary.
      inputs: E, where the encoder is RemBERT; 0: it is BERT.
      activation: of the feed-forward nets, one of `ACTIVATIONS`. BERT's code in TensorFlow calls 'gelu' what is
        'gelu_tanh' here.
      **encoder: see `bert.Encoder`.
    """

    def __init__(self, size: bert.Size, *, words: int, inputs: int = 0, activation: str, rngs: nnx.Rngs, **encoder):
        if inputs:
            self.encoder = rembert.RemBert(size, words=words, inputs=inputs, rngs=rngs, **encoder)
        else:
            self.encoder = bert.Encoder(size, words=words, rngs=rngs, **encoder)
        for block in self.encoder.layers:
            block.mlp.activation = activation
        self.head = ops.Linear(size.width, 1, std=size.std, dtype=jnp.float32, rngs=rngs)

    def __call__(self, ids_BQ, type_BQ, length_B):
        x_BQD, _ = self.encoder.encode(ids_BQ, type_BQ, length_B)
        return self.head(self.encoder.pool(x_BQD))[:, 0]
