"""Task modules M_T as the first part of a subject: transformers, and nets that look at a picture (PJ-X, FME).

A part has

    inputs, baselines  tuples of arrays: what the net reads, and the same of nothing
    run(inputs, taps, rules) -> (logits_BA, Context, attention maps)
    size               S
    taps               shapes of the taps, one an attention layer
    place(parts_KRS, targets_KB) -> values_KBS   relevance of each position of its inputs, in the order of `spans`
    from_memory(r_KBM) -> parts_KRS              relevance of the context's vectors, as that of its inputs
    spans(targets_KB)  name -> (start_B, length_B) into S; [B, K] each where there are choices
    outputs            A, or C
    patches            whether it reads those of a picture

Legend: B batch, C choices, R rows of the encoder (B, or B (C + 1); B alone for an explanation), K targets, M memory, S
positions, Q words, G regions, N heads, D width.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.models import rows
from evil_jax.nn import transformer


def under(module, rules: str):
    """The module in rule set `rules`; itself where it is in that already."""
    if module.rules == rules:
        return module
    copy = nnx.merge(*nnx.split(module))
    copy.set_attributes(rules=rules)
    return copy


def wordless(module, table: str, keep=()):
    """The module with zero vectors for all words of an embedding but `keep`; `table` is the path to it.

    Nothing is written to: the module may be one over which a function that is traced has closed."""
    graph, state = nnx.split(module)
    flat, path = dict(nnx.to_flat_state(state)), (*table.split('/'), 'embedding')
    vectors_VD = flat[path].get_value()
    kept_V1 = jnp.isin(jnp.arange(len(vectors_VD)), jnp.asarray(keep, int))[:, None]
    flat[path] = flat[path].replace(jnp.where(kept_V1, vectors_VD, 0))
    return nnx.merge(graph, nnx.from_flat_state(flat))


class Encoder:
    """UNITER, BERT, DistilBERT, RoBERTa, ViT.

    Args:
      alone: only rows without a choice are read: those that an explanation sees.
    """

    def __init__(self, task, batch, alone: bool):
        self.task, self.batch, self.alone = task, batch, alone and bool(task.choices)
        self.x_all, self.length_all, self.spans_all = x, length, spans = task.embed(batch)
        if self.alone:
            x, length, spans = jax.tree.map(lambda a: rows.alone(a, task.choices), (x, length, spans))
        self.choices = 0 if alone else task.choices
        self.inputs, self.length_R, self.spans_R = (x,), length, spans
        if 'regions' in spans:  # e-UG's quirk 3 reads more regions than there are
            start, number = spans['regions']
            real_R = rows.repeat(batch['region_length'], self.choices)
            self.spans_R = spans | {'regions': (start, jnp.minimum(number, real_R))}
        self.baselines = (self._nothing(),)
        heads, dtype = task.layers[0].attention.heads, task.layers[0].attention.query.dtype
        shape = (len(x), heads, x.shape[1], x.shape[1])
        self.taps = [jax.ShapeDtypeStruct(shape, dtype)] * len(task.layers)

    def _nothing(self):
        """What the first layer reads of a black picture; of a text without words, and of regions without features:
        positions, types and places stay. (Zero vectors would not do: behind a norm only their direction is seen.)"""
        if 'images' in self.batch and self.patches:
            return self.picture(jnp.full_like(self.batch['images'], -1.0), self.task.rules)
        without = {name: jnp.zeros_like(self.batch[name]) for name in ('features',) if name in self.batch}
        x = wordless(self.task, 'text/word').embed(self.batch | without)[0]
        return rows.alone(x, self.task.choices) if self.alone else x

    def picture(self, images_BHW3, rules):
        """What the first layer reads of pictures."""
        return under(self.task, rules).embed(self.batch | {'images': images_BHW3})[0]

    def run(self, inputs, taps, rules):
        task = under(self.task, rules)
        x_RSD, maps = transformer.run(task.layers, inputs[0], self.length_R, remat=task.remat, taps=taps)
        return *self.finish(task, x_RSD), maps

    def finish(self, task, x_RSD):
        """(logits_BA, Context) from what a layer says."""
        if self.alone:
            x_RSD = rows.repeat(x_RSD, task.choices)
        return task.finish(x_RSD, self.length_all, self.spans_all, self.batch)

    def blocks(self, task):
        """The layers, each `(x, tap) -> (x, map)`."""
        return [lambda x, tap, b=b: b(x, self.length_R, tap_BNQK=tap) for b in task.layers]

    def readout(self, targets_KB):
        """Rows and positions that the answer of each target is read from: one-hot [K, R, S]. It is the class token."""
        row_KR = jnp.ones((len(targets_KB), len(self.inputs[0])), jnp.float32)
        if self.choices:
            choice_KBC = jax.nn.one_hot(targets_KB, self.choices)
            row_KR = jnp.pad(choice_KBC, ((0, 0), (0, 0), (0, 1))).reshape(len(targets_KB), -1)
        return row_KR[..., None] * jax.nn.one_hot(0, self.inputs[0].shape[1])

    @property
    def valid(self):
        """Positions of each input that are no padding."""
        position_S = jnp.arange(self.inputs[0].shape[1])
        valid_RS = jnp.broadcast_to(position_S == 0, self.inputs[0].shape[:2])
        for start_R, length_R in self.spans_R.values():
            valid_RS |= (position_S >= start_R[:, None]) & (position_S < (start_R + length_R)[:, None])
        return (valid_RS,)

    def place(self, parts, targets_KB):
        values_KRS = jnp.where(self.valid[0], parts[0], 0)
        if not self.choices:
            return values_KRS
        # Of each target the row of its choice. Choices have different lengths, so words and regions get fixed places.
        targets_KB = jnp.clip(targets_KB, 0, self.choices - 1)
        split_KBCS = values_KRS.reshape(len(values_KRS), -1, self.choices + 1, values_KRS.shape[-1])
        values_KBS = jnp.take_along_axis(split_KBCS, targets_KB[..., None, None], axis=2)[:, :, 0]
        rows_KB = jnp.arange(targets_KB.shape[1]) * (self.choices + 1) + targets_KB
        pieces = []
        for name, (start_R, length_R) in self.spans_R.items():
            place_P = jnp.arange(self._capacity(name))
            index_KBP = start_R[rows_KB][..., None] + place_P
            piece_KBP = jnp.take_along_axis(values_KBS, jnp.minimum(index_KBP, values_KBS.shape[-1] - 1), axis=-1)
            pieces.append(jnp.where(place_P < length_R[rows_KB][..., None], piece_KBP, 0))
        return jnp.concatenate(pieces, axis=-1)

    def _capacity(self, name):
        return self.batch['choices'].shape[-1] if name == 'text' else self.batch['features'].shape[1]

    @property
    def size(self) -> int:
        return sum(map(self._capacity, self.spans_R)) if self.choices else self.inputs[0].shape[1]

    def context(self):
        """Context whose lengths and spans are M_T's; its vectors are of no layer."""
        return self.finish(self.task, self.inputs[0])[1]

    @property
    def outputs(self) -> int:
        return jax.eval_shape(lambda: self.finish(self.task, self.inputs[0])[0]).shape[-1]

    @property
    def patches(self) -> bool:
        return 'patches' in self.spans_R

    def spans(self, targets_KB):
        """With choices words begin at 0, regions behind the places that a batch has for words."""
        if not self.choices:
            return self.spans_R
        choice_BK = jnp.clip(targets_KB.T, 0, self.choices - 1)
        found, start = {}, 0
        for name, (_, length_R) in self.spans_R.items():
            length_BK = jnp.take_along_axis(rows.split(length_R, self.choices), choice_BK, axis=1)
            found[name] = (jnp.full_like(length_BK, start), length_BK)
            start += self._capacity(name)
        return found

    def from_memory(self, context, r_KBM):
        """Where memory stands in another order than the encoder's rows (e-UG's quirk 4), it is put back."""
        size = self.inputs[0].shape[1]
        if not r_KBM.shape[-1]:
            return (jnp.zeros((*r_KBM.shape[:2], size), r_KBM.dtype),)
        if 'regions' not in self.spans_R:
            return (r_KBM,)
        (_, text_B), (first_B, region_B) = (context.spans[name] for name in ('text', 'regions'))
        place_S, text_B1, region_B1, first_B1 = jnp.arange(size), text_B[:, None], region_B[:, None], first_B[:, None]
        words, behind = place_S < text_B1, place_S >= text_B1 + region_B1
        # Behind the regions stands padding of the text, where the memory has it: before the regions.
        index_BS = jnp.where(words, place_S, jnp.where(behind, place_S - region_B1, place_S - text_B1 + first_B1))
        inside_BS = index_BS < jnp.where(behind, first_B1, context.length_B[:, None])
        r_KBS = jnp.take_along_axis(r_KBM, jnp.minimum(index_BS, size - 1)[None], axis=-1)
        return (jnp.where(inside_BS, r_KBS, 0),)
