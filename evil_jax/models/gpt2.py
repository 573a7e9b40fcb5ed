"""GPT-2 (Radford et al. 2019) as explanation module M_E: reads the context as a visual prefix, writes the explanation.

A row is compacted, so causal attention needs no mask, and padding comes last:

    <|b_img|> memory <|e_img|>              type 0
    <|b_qn|> question <|e_qn|>              type 1
    <|b_ans|> answer <|e_ans|>              type 2
    <|b_rtnl|> explanation <|e_rtnl|>       type 3

Where M_E sees no vectors of the picture (RVT: Marasovic et al. 2020) the image piece holds names of its objects as
text, `<|b_img|> names <|e_img|>`, of type 0 (image='tags'), or is absent (image='none'): the row then starts with the
question, and a model that reads a text only is a plain language model.

Every position adds its type row and its position row. The four type rows stand behind the tokenizer's tokens in the
word table, so that `GPT2LMHeadModel(token_type_ids=...)` computes the same.

The published e-UG code does two things otherwise (compat.py). Quirk 1: its rows begin with an image piece of as many
tokens as the memory has vectors, and the memory is written over it one position late. `<|e_img|>` and `<|b_qn|>` are
lost, and the last vector has the question's type:

    <|b_img|> memory                        type 0, the last one 1
    question <|e_qn|>                       type 1, and on as above

Quirk 2: the type rows are the first four rows of the word table, '!', '"', '#' and '$' in GPT-2's own vocabulary.

Legend: B batch, S memory, P row positions, T explanation tokens, M cache length, D width, V vocabulary rows.
"""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from evil_jax import compat, lookup
from evil_jax.nn import embed, ops, transformer

EPS = 1e-5
VOCABULARY_MULTIPLE = 128  # rows are padded to a multiple of this: the matrix unit's tile, and divisible by a mesh axis
IMAGE, QUESTION, ANSWER, EXPLANATION = range(4)


@dataclasses.dataclass(frozen=True)
class Size:
    """layers, width, heads, positions, std of the initial weights. The feed-forward width is 4 times the width."""

    layers: int
    width: int
    heads: int
    positions: int
    std: float


@dataclasses.dataclass(frozen=True)
class Markers:
    """Ids that the row layout needs: image markers, start of the explanation, the four type rows."""

    b_img: int
    e_img: int
    b_rtnl: int
    types: tuple[int, int, int, int]


class Gpt2(ops.Op):
    """M_E: teacher forcing by `__call__`, generation by `prefill` and `extend`.

    Args:
      rows: of the vocabulary, type rows included; the table has padding beyond.
      image: 'memory' of the context; 'tags', the piece `batch['objects']`; 'none'.
      late: the memory starts one position late (quirk 1).
    """

    def __init__(
        self, size: Size, *, rows, markers: Markers, image='memory', late=False, dropout=0.0, attention_dropout=0.0,
        remat=False, dtype=jnp.float32, rngs: nnx.Rngs,
    ):  # fmt: skip
        self.rows = rows
        padded = -(-rows // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
        self.wte = ops.Embedding(padded, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.wpe = ops.Embedding(size.positions, size.width, std=size.std / 2, dtype=dtype, rngs=rngs)
        block = lambda: transformer.PreNormBlock(
            size.width, size.heads, 4 * size.width, eps=EPS, std=size.std, out_std=size.std * (2 * size.layers) ** -0.5,
            dropout=dropout, attention_dropout=attention_dropout, dtype=dtype, rngs=rngs,
        )  # fmt: skip
        self.layers = nnx.List([block() for _ in range(size.layers)])
        self.norm = ops.Norm(size.width, eps=EPS)
        self.size, self.markers, self.dropout, self.remat = size, markers, dropout, remat
        self.image, self.late = image, late

    def embed(self, batch, context, condition, tokens_BT, length_B):
        """Compacted rows up to and with the given explanation tokens: (x_BPD, start_B of the explanation, length_B)."""
        _, pieces, lengths = self._pieces(batch, context, condition, tokens_BT, length_B)
        capacities = [p.shape[1] for p in pieces]
        index_BP, valid_BP, starts = embed.layout(lengths, capacities, sum(capacities))
        x_BPD = self.op.select(jnp.concatenate(pieces, axis=1), index_BP)
        x_BPD = self.op.add(x_BPD, self.wpe(jnp.arange(x_BPD.shape[1])))
        return jnp.where(valid_BP[..., None], x_BPD, 0), starts[-2], starts[-1]

    def spans(self, batch, context, condition, tokens_BT, length_B):
        """Where each piece of the rows of `embed` is: name -> (start_B, length_B).

        'question', 'answer' and 'explanation' hold their markers, token by token as in the batch, in `condition` and in
        `tokens_BT` (where memory starts late, a question without its first token). 'memory' has the context's vectors
        without the markers around them; or 'objects' has the names with them.
        """
        names, pieces, lengths = self._pieces(batch, context, condition, tokens_BT, length_B)
        starts = embed.layout(lengths, [p.shape[1] for p in pieces], 0)[2]
        found = zip(names, starts, lengths)
        return {name: (start_B, jnp.broadcast_to(n, start_B.shape)) for name, start_B, n in found if name}

    def _pieces(self, batch, context, condition, tokens_BT, length_B):
        """(names, vectors BPD, their numbers) of what a row is made of; a marker alone has no name."""
        lost = int(self.late)  # tokens that the memory overwrites, of each of the two pieces behind it
        of = lambda ids, kind: self._typed(self.wte(ids), kind)
        return zip(
            *self._picture(batch, context, lost),
            ('question', of(batch['question'], QUESTION)[:, lost:], batch['question_length'] - lost),
            ('answer', of(condition.tokens_BT, ANSWER), condition.length_B),
            ('explanation', of(tokens_BT, EXPLANATION), length_B),
        )

    def _picture(self, batch, context, lost):
        """What stands for the picture: (name, vectors BPD, their number) of each piece."""
        if self.image == 'none':
            return ()
        if self.image == 'tags':
            return (('objects', self._typed(self.wte(batch['objects']), IMAGE), batch['objects_length']),)
        rows, capacity, width = context.memory_BSD.shape
        if width != self.size.width:
            raise ValueError(f'the context is {width} wide, GPT-2 {self.size.width}: they must be equal')
        marker = lambda i: self._typed(self.wte(jnp.full((rows, 1), i)), IMAGE)
        kind = IMAGE
        if self.late:
            kind = jnp.where(jnp.arange(capacity) == context.length_B[:, None] - 1, QUESTION, IMAGE)
        return (
            ('', marker(self.markers.b_img), 1),
            ('memory', self._typed(context.memory_BSD.astype(self.wte.dtype), kind), context.length_B),
            ('', marker(self.markers.e_img)[:, lost:], 1 - lost),
        )

    def _typed(self, x, kind):
        """Vectors with the row of their type added; `kind` is one number, or as many as there are vectors."""
        return self.op.add(x, self.wte(jnp.asarray(self.markers.types)[kind]))

    def logits(self, x):
        """Tied output layer, [..., V] in at least float32. Padding rows of the table can never be chosen."""
        table_VD = self.wte.embedding[...].astype(x.dtype)
        logits = self.op.unembed(self.norm(x), table_VD)
        return jnp.where(jnp.arange(len(table_VD)) < self.rows, logits, -1e9)

    def __call__(self, batch, context, condition, tokens_BT, *, key=None, taps=None):
        """Logits_BTV: [:, t] predicts tokens[:, t + 1]. Computed at the explanation's positions only."""
        length_B = jnp.full(len(tokens_BT), tokens_BT.shape[1])  # padding tokens stand last: they change nothing before
        x_BPD, start_B, _ = self.embed(batch, context, condition, tokens_BT, length_B)
        x_BPD = ops.dropout(x_BPD, self.dropout, ops.fold(key, 0))
        x_BPD, maps = transformer.run(self.layers, x_BPD, remat=self.remat, key=ops.fold(key, 1), taps=taps)
        x_BTD = self.op.select(x_BPD, start_B[:, None] + jnp.arange(tokens_BT.shape[1]))
        logits_BTV = self.logits(x_BTD)
        return logits_BTV if taps is None else (logits_BTV, maps)

    def prefill(self, batch, context, condition, max_tokens: int):
        """Reads everything up to and with `<|b_rtnl|>`.

        Args:
          max_tokens: how many tokens `extend` may add to a row.

        Returns:
          (logits_BV of the first token, cache). cache['length'] int32 B is the position that the first token takes.
        """
        rows = len(context.length_B)
        tokens_B1 = jnp.full((rows, 1), self.markers.b_rtnl)
        x_BPD, _, length_B = self.embed(batch, context, condition, tokens_B1, jnp.ones(rows, jnp.int32))
        longest = x_BPD.shape[1] + max_tokens
        if longest > self.size.positions:  # a look-up beyond the table would not fail
            raise ValueError(
                f'{max_tokens} new tokens after a prefix of up to {x_BPD.shape[1]} need {longest} positions, '
                f'GPT-2 has {self.size.positions}: set a smaller decode.max_tokens'
            )
        keys, values = [], []
        for block in self.layers:
            x_BPD, k, v = block.prefill(x_BPD, longest)
            keys.append(k)
            values.append(v)
        last_BD = self.op.select(x_BPD, length_B[:, None] - 1)[:, 0]
        return self.logits(last_BD), {'keys': keys, 'values': values, 'length': length_B}

    def extend(self, cache, token_B, position_B):
        """Adds one token a row at its absolute position: (logits_BV of the next token, cache)."""
        x_BD = self.op.add(self._typed(self.wte(token_B), EXPLANATION), self.wpe(position_B))
        keys, values = [], []
        for block, k, v in zip(self.layers, cache['keys'], cache['values']):
            x_BD, k, v = block.extend(x_BD, k, v, position_B)
            keys.append(k)
            values.append(v)
        return self.logits(x_BD), {'keys': keys, 'values': values, 'length': cache['length']}


SIZES = {
    'base': Size(layers=12, width=768, heads=12, positions=1024, std=0.02),  # the 117M model, table 2 of the paper
    'medium': Size(layers=24, width=1024, heads=16, positions=1024, std=0.02),  # 345M; M_T has to be as wide, or tags
    'distil': Size(layers=6, width=768, heads=12, positions=1024, std=0.02),  # DistilGPT-2 (Sanh et al. 2019)
    'tiny': Size(layers=2, width=128, heads=8, positions=256, std=0.09),  # ours, for laptops, from scratch: 128 ** -0.5
}
READS, QUIRKS = ('model.expl.image', 'model.remat'), (1, 2)


def build_expl(config, assets, *, memory_width: int, rngs: nnx.Rngs) -> Gpt2:
    """M_E of a config; `assets` gives the decoder's vocabulary and marker ids."""
    size, data = lookup.entry(SIZES, config.model.expl.size, 'config.model.expl.size'), config.data
    image, late = config.model.expl.image, compat.has(config, 1)
    if image == 'memory' and memory_width != size.width:
        raise ValueError(f'the task module is {memory_width} wide, GPT-2 {size.width}: choose sizes of equal width')
    if image == 'tags' and not data.objects:
        raise ValueError(
            "config.model.expl.image is 'tags', but config.data.objects is '': set it to 'detected' or 'annotated'"
        )
    if image != 'memory' and late:
        raise ValueError(
            f"config.compat={config.compat} has quirk 1, of rows with image='memory', but config.model.expl.image is "
            f'{image!r}: name the other quirks one by one'
        )
    # Training reads explanations of up to max_explanation tokens, decoding writes as many after `<|b_rtnl|>`. A larger
    # decode.max_tokens is checked where it is used (`prefill`).
    pieces = {'memory': data.max_text + data.max_regions + (0 if late else 2), 'tags': data.max_objects, 'none': 0}
    first_words = compat.has(config, 2)
    longest = pieces[image] + data.max_question + data.max_answer + 1 + data.max_explanation
    if longest > size.positions:
        raise ValueError(
            f'rows of up to {longest} positions (sum of the data.max_* limits), GPT-2 has {size.positions}'
        )
    expl = assets.expl
    types = (0, 1, 2, 3) if first_words else tuple(expl.type_ids)
    markers = Markers(expl.id('<|b_img|>'), expl.id('<|e_img|>'), expl.id('<|b_rtnl|>'), types)
    return Gpt2(
        size,
        rows=expl.size if first_words else expl.rows,  # what is no word takes no part in the softmax
        markers=markers,
        image=image,
        late=late,
        dropout=config.model.dropout,
        attention_dropout=compat.attention_dropout(config),
        remat=config.model.remat,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )


def reads_memory(config) -> bool:
    """Whether M_E of a config reads M_T's vectors. If not, it may be paired with any M_T."""
    return config.model.expl.image == 'memory'
