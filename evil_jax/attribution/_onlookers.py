"""PJ-X and FME as the first part of a subject (see _encoders.py): a question's vector and attention over a picture.

Their inputs are the features of regions and the vectors of words. Their own attention is all that methods of attention
have of them.

Legend: B batch, C choices, R rows of text (B, or B (C + 1); B alone for an explanation), K targets, Q words, G regions.
"""

import jax
import jax.numpy as jnp

from evil_jax.models import rows
from evil_jax.nn import ops


class Onlooker:
    """Args: see `_encoders.Encoder`."""

    taps, patches = (), False

    def __init__(self, task, batch, alone: bool):
        self.task, self.batch, self.alone = task, batch, alone and bool(task.choices)
        self.choices = 0 if alone else task.choices
        features_BGF, self.words_all = map(ops.wide, task.inputs(batch))
        words = rows.alone(self.words_all, task.choices) if self.alone else self.words_all
        self.inputs = (features_BGF, words)
        self.baselines = (jnp.zeros_like(features_BGF), jnp.zeros_like(words))
        self.region_B = batch['region_length']
        self.text_R = rows.join(batch, 'length', self.choices)

    def _run(self, inputs):
        features_BGF, words = inputs
        if self.alone:
            split = rows.split(self.words_all, self.task.choices)
            words = split.at[:, -1].set(words).reshape(self.words_all.shape)
        return self.task.answer(self.batch, inputs=(features_BGF, words))

    def run(self, inputs, taps, rules):
        """There are no rules of relevance for these nets, only gradients."""
        return *self._run(inputs)[:2], []

    def look(self, targets_KB):
        """Attention over regions, mean over glimpses: parts_KRS."""
        weights_BNG = self._run(self.inputs)[2].mean(-2)
        index_KB = jnp.clip(targets_KB, 0, self.choices - 1) if self.choices else jnp.zeros_like(targets_KB)
        picked_KBG = jnp.take_along_axis(weights_BNG[None], index_KB[..., None, None], axis=2)[:, :, 0]
        return picked_KBG, jnp.zeros((len(targets_KB), *self.inputs[1].shape[:2]), picked_KBG.dtype)

    @property
    def valid(self):
        """Positions of each input that are no padding."""
        inside = lambda x, length: jnp.arange(x.shape[1]) < length[:, None]
        return inside(self.inputs[0], self.region_B), inside(self.inputs[1], self.text_R)

    def place(self, parts, targets_KB):
        regions_KBG, words_KRQ = (jnp.where(valid, part, 0) for valid, part in zip(self.valid, parts))
        if self.choices:
            index_KB11 = jnp.clip(targets_KB, 0, self.choices - 1)[..., None, None]
            words_KBCQ = words_KRQ.reshape(len(words_KRQ), -1, self.choices + 1, words_KRQ.shape[-1])
            words_KRQ = jnp.take_along_axis(words_KBCQ, index_KB11, axis=2)[:, :, 0]
        return jnp.concatenate([words_KRQ, regions_KBG], axis=-1)

    @property
    def size(self) -> int:
        return self.inputs[0].shape[1] + self.inputs[1].shape[1]

    def context(self):
        """Context whose lengths and spans are M_T's."""
        return self._run(self.inputs)[1]

    @property
    def outputs(self) -> int:
        return jax.eval_shape(lambda: self._run(self.inputs)[0]).shape[-1]

    def spans(self, targets_KB):
        text, region = self.text_R, self.region_B
        if self.choices:
            choice_BK = jnp.clip(targets_KB.T, 0, self.choices - 1)
            text = jnp.take_along_axis(rows.split(text, self.choices), choice_BK, axis=1)
            region = jnp.broadcast_to(region[:, None], text.shape)
        start = jnp.zeros_like(region)
        return {'text': (start, text), 'regions': (start + self.inputs[1].shape[1], region)}

    def from_memory(self, context, r_KBM):
        """The memory are the regions."""
        return r_KBM, jnp.zeros((*r_KBM.shape[:2], self.inputs[1].shape[1]), r_KBM.dtype)
