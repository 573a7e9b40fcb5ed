"""Explanation modules M_E as the last part of a subject: GPT-2, and the LSTMs of PJ-X and FME.

A part has

    inputs, baselines  tuples of arrays: its own vectors, at positions that are not M_T's memory, and those of nothing
    run(inputs, context, taps, rules) -> (outputs_BT, attention maps)   T: logit of each token, 0 for the first
    taps               shapes of the taps, one an attention layer
    place(parts_KBS) -> values_KBP               relevance of each position of its inputs, in the order of `spans`
    spans              name -> (start_B, length_B) into P

Legend: B batch, K targets, P positions, M memory, T explanation tokens, A answer tokens, D width.
"""

import jax
import jax.numpy as jnp

from evil_jax.attribution._encoders import under, wordless
from evil_jax.nn import ops, transformer


class Prefix:
    """GPT-2: the memory is a prefix of its rows, and all else are its own vectors.

    Args:
      expl: the module.
      batch, context, condition, tokens_BT, length_B: see `Gpt2.embed`.
    """

    def __init__(self, expl, batch, context, condition, tokens_BT, length_B):
        self.expl, self.tokens_BT = expl, tokens_BT
        self.rest = (condition, tokens_BT, length_B)
        self.batch = batch
        x_BPD, self.start_B, self.end_B = expl.embed(batch, context, *self.rest)
        spans = expl.spans(batch, context, *self.rest)
        nothing_B = jnp.zeros_like(self.start_B)
        self.memory = spans.pop('memory', (nothing_B, nothing_B))
        self.spans = spans
        place_P, (start_B, number_B) = jnp.arange(x_BPD.shape[1]), self.memory
        self.is_memory_BP = (place_P >= start_B[:, None]) & (place_P < (start_B + number_B)[:, None])
        self.valid = ((place_P < self.end_B[:, None]) & ~self.is_memory_BP,)
        bare = wordless(expl, 'wte', keep=expl.markers.types)
        nothing_BPD, _, _ = bare.embed(batch, context, *self.rest)
        own = lambda x_BPD: jnp.where(self.is_memory_BP[..., None], 0, x_BPD)
        self.inputs, self.baselines = (own(x_BPD),), (own(nothing_BPD),)
        heads, dtype = expl.layers[0].attention.heads, expl.layers[0].attention.query.dtype
        shape = (len(x_BPD), heads, x_BPD.shape[1], x_BPD.shape[1])
        self.taps = [jax.ShapeDtypeStruct(shape, dtype)] * len(expl.layers)

    def enter(self, expl, context, inputs):
        """What the first layer reads."""
        x_BPD, _, _ = expl.embed(self.batch, context, *self.rest)
        return jnp.where(self.is_memory_BP[..., None], x_BPD, inputs[0])

    def run(self, inputs, context, taps, rules):
        expl = under(self.expl, rules)
        x_BPD, maps = transformer.run(expl.layers, self.enter(expl, context, inputs), remat=expl.remat, taps=taps)
        return self.finish(expl, x_BPD), maps

    def blocks(self, expl):
        """The layers, each `(x, tap) -> (x, map)`."""
        return [lambda x, tap, b=b: b(x, tap_BNQK=tap) for b in expl.layers]

    def finish(self, expl, x_BPD):
        """Logit of each token, at the position before it: those of all other words are not computed."""
        before = jnp.arange(self.tokens_BT.shape[1] - 1)
        x_BTD = expl.norm(expl.op.select(x_BPD, self.start_B[:, None] + before))
        x_BTD, rows_BTD = (ops.wide(x) for x in (x_BTD, expl.wte(self.tokens_BT[:, 1:])))
        # A linear map of one output, another one at each position: the rule set says how relevance passes through it.
        chosen = lambda x_D, w_D: expl.op.linear(x_D[None], w_D[:, None], jnp.zeros(1, x_D.dtype))[0, 0]
        return jnp.pad(jax.vmap(jax.vmap(chosen))(x_BTD, rows_BTD), ((0, 0), (1, 0)))

    def readout(self, weights_KBT):
        """Positions that the tokens are read from: [K, B, P]."""
        before_BT = self.start_B[:, None] + jnp.arange(self.tokens_BT.shape[1]) - 1
        at_BTP = before_BT[..., None] == jnp.arange(self.inputs[0].shape[1])
        return jnp.einsum('KBT,BTP->KBP', weights_KBT, at_BTP.astype(weights_KBT.dtype))

    def memory_of(self, r_KBP, size: int):
        """Relevance of the context's vectors [K, B, size]."""
        start_B, number_B = self.memory
        place_M = jnp.arange(size)
        index_BM = jnp.minimum(start_B[:, None] + place_M, r_KBP.shape[-1] - 1)
        return jnp.where(place_M < number_B[:, None], jnp.take_along_axis(r_KBP, index_BM[None], axis=-1), 0)

    def place(self, parts):
        return jnp.where(self.valid[0], parts[0], 0)


class Words:
    """The LSTMs: their own vectors are those of the answer's words and of the explanation's.

    Args: see `Prefix`.
    """

    taps = ()

    def __init__(self, expl, batch, context, condition, tokens_BT, length_B):
        self.expl, self.batch, self.condition, self.tokens_BT = expl, batch, condition, tokens_BT
        self.length_B = length_B
        self.inputs = expl.inputs(condition, tokens_BT)
        self.baselines = tuple(map(jnp.zeros_like, self.inputs))

    def run(self, inputs, context, taps, rules):
        expl = under(self.expl, rules)
        states_BTD = expl.read(context, self.condition, self.tokens_BT, inputs=inputs)
        outputs_BT = expl.chosen(states_BTD[:, :-1], self.tokens_BT[:, 1:])
        return jnp.pad(outputs_BT, ((0, 0), (1, 0))), []

    def look(self, context, weights_KBT):
        """Attention over the memory at the words that the targets are made of: [K, B, M]."""
        attention_BTM = self.expl.gaze(context, self.condition, self.tokens_BT)
        return jnp.einsum('KBT,BTM->KBM', weights_KBT[..., 1:], attention_BTM[:, :-1].astype(weights_KBT.dtype))

    @property
    def valid(self):
        """Positions of each input that are no padding."""
        lengths = (self.condition.length_B, self.length_B)
        return tuple(jnp.arange(x.shape[1]) < n[:, None] for x, n in zip(self.inputs, lengths))

    @property
    def spans(self):
        start_B = jnp.zeros_like(self.length_B)
        places = self.inputs[0].shape[1]
        return {'answer': (start_B, self.condition.length_B), 'explanation': (start_B + places, self.length_B)}

    def place(self, parts):
        return jnp.concatenate([jnp.where(inside, part, 0) for inside, part in zip(self.valid, parts)], axis=-1)
