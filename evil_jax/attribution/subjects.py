"""What attribution methods see of a model and a batch: an answer, or the tokens of an explanation.

    subject = subjects.answer(model.task, batch)
    subject = subjects.explanation(model, batch, condition, tokens_BT, length_B)

Make it where it is used, inside of `jax.jit`: it holds arrays, and functions of them. The function `forward` of its
`inputs` is the model, in any rule set, with a tap at each attention layer; what a method needs to know beside that is
where an output is read from, and where relevance goes on when it arrives at the memory that M_T hands to M_E.

Legend: B batch, K targets, R rows of the encoder (B, or B (C + 1) with C choices), S positions, P positions of the
decoder, M memory, O outputs (answers, or tokens of the explanation), T explanation tokens.
"""

import jax
import jax.numpy as jnp
import numpy as np

from evil_jax.attribution import chance
from evil_jax.attribution._decoders import Prefix, Words
from evil_jax.attribution._encoders import Encoder
from evil_jax.attribution._onlookers import Onlooker
from evil_jax.attribution.base import Relevance

WHOLE = -1  # target: the whole explanation


class Subject:
    """An answer or an explanation; made by `answer` and `explanation`.

    Attributes:
      first: part of M_T, see _encoders.py.
      last: part of M_E, see _decoders.py; None for an answer.
      inputs, baselines: tuples of arrays [rows, positions, width], see there.
      taps: shapes of the taps, in the order of layers, the encoder's first.
    """

    def __init__(self, first, last=None, context=None, length_B=None):
        self.first, self.last, self._context, self.length_B = first, last, context, length_B
        parts = (first,) if last is None else (first, last)
        self.inputs = tuple(x for part in parts for x in part.inputs)
        self.baselines = tuple(x for part in parts for x in part.baselines)
        self.taps = [tap for part in parts for tap in part.taps]

    @property
    def picture(self):
        """Pictures BHW3 and the function `(pictures, rules) -> x` of a model that answers about them; else None."""
        batch = self.first.batch
        if self.last is not None or not self.first.patches:
            return None
        return batch['images'], self.first.picture

    @property
    def valid(self):
        """Positions of each input that are no padding: a tuple of [rows, positions]."""
        return self.first.valid + (() if self.last is None else self.last.valid)

    @property
    def digest_B(self):
        """A number that tells examples apart."""
        return chance.digest(self.first.batch)

    @property
    def has_layers(self) -> bool:
        """Whether what answers, or explains, is a transformer; else it has but one attention, its own."""
        return bool((self.first if self.last is None else self.last).taps)

    @property
    def first_layer(self) -> int:
        """Number of the first layer of the transformer that answers or explains."""
        return 0 if self.last is None else len(self.first.taps)

    def forward(self, inputs, taps=None, rules='gradient'):
        """(outputs_BO, attention maps [rows, N, Q, S] of every layer).

        Args:
          inputs: as `self.inputs`.
          taps: arrays of zeros, or None, an attention layer; None: of none.
        """
        split, layers = len(self.first.inputs), len(self.first.taps)
        taps = [None] * len(self.taps) if taps is None else taps
        logits, context, maps = self.first.run(inputs[:split], taps[:layers], rules)
        if self.last is None:
            return logits, maps
        outputs, more = self.last.run(inputs[split:], context, taps[layers:], rules)
        return outputs, [*maps, *more]

    def weights(self, targets_BK, outputs: int):
        """How much of each output a target is: one-hot, or 1 for all tokens, [K, B, O]."""
        targets_KB = targets_BK.T
        weights_KBO = jax.nn.one_hot(targets_KB, outputs)
        if self.last is None:
            return weights_KBO
        place_T = jnp.arange(outputs)
        tokens_BT = (place_T > 0) & (place_T < self.length_B[:, None])
        return jnp.where((targets_KB == WHOLE)[..., None], 1.0, weights_KBO) * tokens_BT

    def spans(self, targets_BK):
        """See `base.Relevance`."""
        found = dict(self.first.spans(targets_BK.T))
        if self.last is not None:
            found |= {name: (start + self.first.size, length) for name, (start, length) in self.last.spans.items()}
        return found

    def readout(self, targets_BK):
        """Rows and positions of the last transformer that a target is read from: [K, rows, positions]."""
        if self.last is None:
            return self.first.readout(targets_BK.T)
        return self.last.readout(self.weights(targets_BK, self.last.tokens_BT.shape[1]))

    def last_layers(self):
        """The transformer that answers or explains, layer by layer: (what the first one reads, blocks `(x, tap) ->
        (x, map)`, function of what a layer says to outputs_BO)."""
        if self.last is None:
            task = self.first.task
            return self.inputs[0], self.first.blocks(task), lambda x: self.first.finish(task, x)[0]
        split, expl = len(self.first.inputs), self.last.expl
        _, context, _ = self.first.run(self.inputs[:split], [None] * len(self.first.taps), 'gradient')
        x_BPD = self.last.enter(expl, context, self.inputs[split:])
        return x_BPD, self.last.blocks(expl), lambda x: self.last.finish(expl, x)

    def hand_over(self, r_KBP):
        """Relevance of M_E's positions that are M_T's vectors, as that of M_T's inputs: a tuple of [K, rows, S]."""
        memory = self._context.memory_BSD.shape[1]
        return self.first.from_memory(self._context, self.last.memory_of(r_KBP, memory))

    def own_attention(self, targets_BK):
        """Attention of a net without layers, as relevance of its inputs: a tuple of [K, rows, S]."""
        if self.last is None:
            return self.first.look(targets_BK.T)
        weights_KBT = self.weights(targets_BK, self.last.tokens_BT.shape[1])
        _, context, _ = self.first.run(self.first.inputs, [None] * len(self.first.taps), 'gradient')
        parts = self.first.from_memory(context, self.last.look(context, weights_KBT))
        return *parts, *(jnp.zeros((len(weights_KBT), *x.shape[:2])) for x in self.last.inputs)

    def relevance(self, parts, targets_BK) -> Relevance:
        """Relevance of each position of the inputs, put in order; none of it for targets that are out of range.

        Args:
          parts: arrays [K, rows, positions], one an input; what stands at padding does not count.
        """
        outputs = self.first.outputs if self.last is None else self.last.tokens_BT.shape[1]
        exists_KB1 = self.weights(targets_BK, outputs).any(-1, keepdims=True)
        split = len(self.first.inputs)
        values = self.first.place(parts[:split], targets_BK.T)
        if self.last is not None:
            values = jnp.concatenate([values, self.last.place(parts[split:])], axis=-1)
        values_KBS = jnp.where(exists_KB1, values, 0)
        return Relevance(jnp.moveaxis(values_KBS, 0, 1), self.spans(targets_BK))


def answer(task, batch) -> Subject:
    """What an answer depends on.

    Args:
      task: M_T, or a classifier.
      batch: what it reads.

    Targets are indices of its answers, or of an example's choices.
    """
    return Subject(_first(task, batch, alone=False))


def explanation(vlnle, batch, condition, tokens_BT, length_B) -> Subject:
    """What the tokens of an explanation depend on: as M_E writes them, each one given those before it.

    Targets are positions in `tokens_BT` of tokens that were generated, 1 and on; -1 is all of them, the sum of their
    logits. Values are over [positions of M_T | positions of M_E]; M_T's vectors in M_E's rows have theirs at M_T's.

    Args:
      vlnle: the pair.
      batch: what they read.
      condition: `models.context.Condition`, the answer that is explained.
      tokens_BT: `<|b_rtnl|>` and the explanation, int32.
      length_B: number of tokens that count.

    Raises:
      ValueError: a model that does not explain, no token to explain.
    """
    if vlnle.expl is None:
        raise ValueError('the model only answers: it has no explanation whose tokens could be looked at')
    if tokens_BT.shape[1] < 2:
        raise ValueError(f'tokens have shape {tokens_BT.shape}: wanted <|b_rtnl|> and at least one token behind it')
    first = _first(vlnle.task, batch, alone=True)
    # Where memory is and how much of it, is known before M_T's layers have run.
    context = first.context()
    part = Prefix if hasattr(vlnle.expl, 'layers') else Words
    return Subject(first, part(vlnle.expl, batch, context, condition, tokens_BT, length_B), context, length_B)


def check_targets(targets_BK, *, answers: int | None = None, length_B=None) -> None:
    """Raises ValueError for targets that do not exist: a traced function cannot.

    Args:
      targets_BK: numbers, not traced.
      answers: A (or C), for an answer.
      length_B: tokens of each explanation, for tokens.
    """
    targets_BK = np.asarray(targets_BK)
    if targets_BK.ndim != 2 or targets_BK.dtype.kind not in 'iu':
        raise ValueError(f'targets have shape {targets_BK.shape} of {targets_BK.dtype}, wanted whole numbers [B, K]')
    if answers is not None:
        wrong, wanted = (targets_BK < 0) | (targets_BK >= answers), f'0 to {answers - 1}'
    else:
        length_B1 = np.asarray(length_B)[:, None]
        wrong = (targets_BK != WHOLE) & ((targets_BK < 1) | (targets_BK >= length_B1))
        wanted = f'{WHOLE}, or 1 up to the last token of the explanation'
    if wrong.any():
        row, k = map(int, np.argwhere(wrong)[0])
        more = '' if length_B is None else f' of {int(np.asarray(length_B)[row])} tokens'
        raise ValueError(f'target {int(targets_BK[row, k])} of example {row}{more}: wanted {wanted}')


def _first(task, batch, alone):
    if hasattr(task, 'layers'):
        return Encoder(task, batch, alone)
    return Onlooker(task, batch, alone)
