"""What the task module M_T hands to the explanation module M_E, and what the explanation is conditioned on.

Legend: B batch, S memory positions, D width, T tokens.
"""

import dataclasses

import jax


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Context:
    """Output of M_T for M_E.

    Attributes:
      memory_BSD: contextual vectors of words and regions; the valid ones come first in each row, the rest is zero.
      length_B: number of valid ones.
      pooled_BD: one vector a row.
      spans: name ('text', 'regions') -> (start_B, length_B) in memory, for attributions.
    """

    memory_BSD: jax.Array
    length_B: jax.Array
    pooled_BD: jax.Array
    spans: dict[str, tuple[jax.Array, jax.Array]]


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Condition:
    """The answer that is to be explained.

    Attributes:
      answer_index_B: index into the answer table (or the choices); -1 = none.
      tokens_BT: decoder tokens `<|b_ans|> answer <|e_ans|>`, padded.
      length_B: number of valid tokens.
    """

    answer_index_B: jax.Array
    tokens_BT: jax.Array
    length_B: jax.Array
