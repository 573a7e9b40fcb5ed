"""The three steps of every transformer that answers: what it reads, its layers, what it says.

An attribution method runs the steps one by one, to look between them; everyone else calls the model. The steps:

    embed(batch, key) -> (x_KSD, length_K, spans)
    layers: blocks, each `block(x_KSD, length_K, key=..., tap_BNQK=...) -> (x_KSD, attention probabilities)`
    finish(x_KSD, length_K, spans, batch, key) -> (logits_BA, Context)

The class token stands first in a row. `length_K`: positions of a row that are keys, None = all. `spans`: name ('text',
'regions', 'patches') -> (start_K, length_K), where in a row that is.

Legend: B batch, K rows of the encoder (see `rows`), S positions, N heads, D width, A answers.
"""

from evil_jax.models import rows
from evil_jax.nn import ops, transformer


class Steps(ops.Op):
    """`(batch) -> (logits_BA in at least float32, Context)`: the composition of `embed`, `layers` and `finish`.

    A model has `layers` and `remat`, and `choices` where examples have choices of their own.
    """

    choices = 0

    def embed(self, batch, key=None):
        """(x_KSD, length_K, spans): what the first layer reads, see the module."""
        raise NotImplementedError

    def finish(self, x_KSD, length_K, spans, batch, key=None):
        """(logits_BA, Context) from what the last layer says and from what `embed` returned."""
        raise NotImplementedError

    def keys(self, key):
        """Keys of dropout of the three steps, from that of the call."""
        return tuple(ops.fold(key, number) for number in range(3))

    def __call__(self, batch, *, key=None, taps=None):
        """(logits_BA, Context), and with taps the attention maps.

        Args:
          key: of dropout; None is evaluation.
          taps: see `attention.attend`; one array BNSS a layer, or B,C+1,NSS where there are choices (the question alone
            stands last). The maps have the same shapes.
        """
        if taps is not None and self.choices:
            taps = [tap.reshape(-1, *tap.shape[2:]) for tap in taps]
        first, middle, last = self.keys(key)
        x_KSD, length_K, spans = self.embed(batch, first)
        x_KSD, maps = transformer.run(self.layers, x_KSD, length_K, remat=self.remat, key=middle, taps=taps)
        answer = self.finish(x_KSD, length_K, spans, batch, last)
        return answer if taps is None else (*answer, [rows.split(m, self.choices) for m in maps])
