"""Vision Transformer (Dosovitskiy et al., ICLR 2021, arXiv 2010.11929): an encoder over patches of a picture.

Pictures are normalised RGB; published nets want (x - 0.5) / 0.5 of values in [0, 1].

Legend: B batch, H, W rows and columns of pixels, P positions (the class token, then patches row by row), I numbers of a
patch, D width, A answers.
"""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from evil_jax import compat, lookup
from evil_jax.models import steps
from evil_jax.models.context import Context
from evil_jax.nn import ops, transformer

EPS = 1e-12  # as Hugging Face's
CHANNELS = 3


@dataclasses.dataclass(frozen=True)
class Size:
    """Numbers of an encoder: layers, width, heads, feed-forward width, pixels a side of a patch and of the picture.

    std: of the initial weights.
    """

    layers: int
    width: int
    heads: int
    hidden: int
    patch: int
    pixels: int
    std: float = 0.02

    @property
    def positions(self) -> int:
        return (self.pixels // self.patch) ** 2 + 1


class Vit(steps.Steps):
    """`(batch) -> (answer_logits_BA, Context)` of batch['images'] BHW3, in three steps.

    The context's memory are the vectors behind the last norm, the class token's first; `pooled` is the class token.

    Args:
      answers: outputs of a linear head on the class token, in at least float32; 0 = no head, logits are None.
      pooler: `pooled` is a tanh layer on the class token instead, as in BERT. Only without a head.
      eps: of the norms of the blocks.
      final_eps: of the last norm; None = eps.
    """

    def __init__(
        self, size: Size, *, answers=0, pooler=False, dropout=0.0, attention_dropout=0.0, remat=False,
        eps=EPS, final_eps=None, dtype=jnp.float32, rngs: nnx.Rngs,
    ):  # fmt: skip
        inputs = size.patch * size.patch * CHANNELS
        self.patch = ops.Pixels(inputs, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.token = ops.Embedding(1, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.position = ops.Embedding(size.positions, size.width, std=size.std, dtype=dtype, rngs=rngs)
        block = lambda: transformer.PreNormBlock(
            size.width, size.heads, size.hidden, activation='gelu', causal=False, eps=eps, std=size.std,
            out_std=size.std, dropout=dropout, attention_dropout=attention_dropout, dtype=dtype, rngs=rngs,
        )  # fmt: skip
        self.layers = nnx.List([block() for _ in range(size.layers)])
        self.norm = ops.Norm(size.width, eps=eps if final_eps is None else final_eps)
        if answers:
            self.answer = ops.Linear(size.width, answers, std=size.std, dtype=ops.wide_type(dtype), rngs=rngs)
        elif pooler:
            self.pooler = ops.Linear(size.width, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.size, self.answers, self.pooled, self.dropout, self.remat = size, answers, pooler, dropout, remat

    @property
    def width(self) -> int:
        return self.size.width

    def embed(self, batch, key=None):
        """Patches as vectors behind the class token, with their positions: (x_BPD, None, spans), None for all are keys.

        Raises:
          ValueError: pictures of another size than the positions are of.
        """
        images_BHW3 = batch['images']
        side, wanted = self.size.patch, (self.size.pixels, self.size.pixels, CHANNELS)
        if images_BHW3.shape[1:] != wanted:
            raise ValueError(f'pictures have shape {images_BHW3.shape[1:]}, wanted {wanted}')
        batch_size, cells = len(images_BHW3), self.size.pixels // side
        x = images_BHW3.reshape(batch_size, cells, side, cells, side, CHANNELS).swapaxes(2, 3)
        x_BPD = self.patch(x.reshape(batch_size, cells * cells, -1))
        token_BPD = jnp.broadcast_to(self.token(jnp.zeros(1, int)), (batch_size, 1, self.width))
        x_BPD = jnp.concatenate([token_BPD, x_BPD], axis=1)
        x_BPD = self.op.add(x_BPD, self.position(jnp.arange(self.size.positions)))
        spans = {'patches': (jnp.ones(batch_size, jnp.int32), jnp.full(batch_size, cells * cells, jnp.int32))}
        return ops.dropout(x_BPD, self.dropout, key), None, spans

    def finish(self, x_BPD, length_B, spans, batch, key=None):
        """(answer_logits_BA or None, Context) from what the last layer says; nothing is dropped here."""
        x_BPD = self.norm(x_BPD)
        pooled_BD = self.op.first(x_BPD)
        logits_BA = self.answer(pooled_BD) if self.answers else None
        if self.pooled:
            pooled_BD = self.op.tanh(self.pooler(pooled_BD))
        length_B = jnp.full(len(x_BPD), x_BPD.shape[1], jnp.int32)
        return logits_BA, Context(x_BPD, length_B, pooled_BD, spans)


SIZES = {
    'base': Size(layers=12, width=768, heads=12, hidden=3072, patch=16, pixels=224),
    'large': Size(layers=24, width=1024, heads=16, hidden=4096, patch=16, pixels=224),
    'tiny': Size(layers=2, width=32, heads=4, hidden=64, patch=8, pixels=32, std=0.1),
    # Ours, for handwritten digits of 8 x 8 pixels, scaled up: 6 x 6 patches of 4/3 pixels. A patch of one pixel has one
    # number to say, and a net of this size learns less from four times as many.
    'digits': Size(layers=2, width=64, heads=4, hidden=128, patch=4, pixels=24, std=0.1),
}
READS = ('model.remat',)


def build_task(config, assets, *, rngs: nnx.Rngs) -> Vit:
    """A classifier of pictures as M_T; `assets` gives its classes.

    Raises:
      ValueError: the pictures have another size than the model's, or the task gives none.
    """
    size = lookup.entry(SIZES, config.model.task.size, 'config.model.task.size')
    if config.data.task != 'classify':
        raise ValueError(
            f"model.task.name is 'vit', which reads pictures alone, but data.task is {config.data.task!r}, wanted "
            "'classify' with a data.builder of pictures"
        )
    if config.data.pixels != size.pixels:
        raise ValueError(
            f'data.pixels is {config.data.pixels}, but vit {config.model.task.size} reads pictures of {size.pixels} x '
            f'{size.pixels} pixels: set data.pixels={size.pixels}'
        )
    return Vit(
        size,
        answers=len(assets.answers),
        dropout=config.model.dropout,
        attention_dropout=compat.attention_dropout(config),
        remat=config.model.remat,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )
