"""Vision Transformer (Dosovitskiy et al., ICLR 2021, arXiv 2010.11929): an encoder over patches of a picture.

Pictures are normalised RGB; published nets want (x - 0.5) / 0.5 of values in [0, 1].

Legend: B batch, H, W rows and columns of pixels, P positions (the class token, then patches row by row), I numbers of a
patch, D width, A answers.
"""

import dataclasses

import jax.numpy as jnp
from flax import nnx

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


class Vit(ops.Op):
    """`(images [B, H, W, 3]) -> (hidden_BPD, head)`: hidden states behind the last norm, the class token's first.

    Args:
      answers: outputs of a linear head on the class token, float32; 0 = no head.
      pooler: a tanh layer on the class token instead, as in BERT.

    `head` is answer_logits_BA, the pooled class token [B, D], or None.
    """

    def __init__(
        self, size: Size, *, answers=0, pooler=False, dropout=0.0, attention_dropout=0.0, remat=False,
        dtype=jnp.float32, rngs: nnx.Rngs,
    ):  # fmt: skip
        inputs = size.patch * size.patch * CHANNELS
        self.patch = ops.Linear(inputs, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.token = ops.Embedding(1, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.position = ops.Embedding(size.positions, size.width, std=size.std, dtype=dtype, rngs=rngs)
        block = lambda: transformer.PreNormBlock(
            size.width, size.heads, size.hidden, activation='gelu', causal=False, eps=EPS, std=size.std,
            out_std=size.std, dropout=dropout, attention_dropout=attention_dropout, dtype=dtype, rngs=rngs,
        )  # fmt: skip
        self.layers = nnx.List([block() for _ in range(size.layers)])
        self.norm = ops.Norm(size.width, eps=EPS)
        if answers:
            self.answer = ops.Linear(size.width, answers, std=size.std, dtype=jnp.float32, rngs=rngs)
        elif pooler:
            self.pooler = ops.Linear(size.width, size.width, std=size.std, dtype=dtype, rngs=rngs)
        self.size, self.answers, self.pooled, self.dropout, self.remat = size, answers, pooler, dropout, remat

    @property
    def width(self) -> int:
        return self.size.width

    def embed(self, images_BHW3):
        """Patches as vectors behind the class token, with their positions: x_BPD.

        Raises:
          ValueError: pictures of another size than the positions are of.
        """
        side, wanted = self.size.patch, (self.size.pixels, self.size.pixels, CHANNELS)
        if images_BHW3.shape[1:] != wanted:
            raise ValueError(f'pictures have shape {images_BHW3.shape[1:]}, wanted {wanted}')
        batch, cells = len(images_BHW3), self.size.pixels // side
        x = images_BHW3.reshape(batch, cells, side, cells, side, CHANNELS).swapaxes(2, 3)
        x_BPD = self.patch(x.reshape(batch, cells * cells, -1))
        token_BPD = jnp.broadcast_to(self.token(jnp.zeros(1, int)), (batch, 1, self.width))
        return self.op.add(jnp.concatenate([token_BPD, x_BPD], axis=1), self.position(jnp.arange(self.size.positions)))

    def __call__(self, images_BHW3, *, key=None, taps=None):
        """(hidden_BPD, head), and with taps (arrays [B, N, P, P], one a layer) the attention maps.

        Args:
          key: of dropout; None is evaluation.
        """
        x_BPD = ops.dropout(self.embed(images_BHW3), self.dropout, ops.fold(key, 0))
        x_BPD, maps = transformer.run(self.layers, x_BPD, remat=self.remat, key=ops.fold(key, 1), taps=taps)
        x_BPD = self.norm(x_BPD)
        head = None
        if self.answers:
            head = self.answer(x_BPD[:, 0])
        elif self.pooled:
            head = self.op.tanh(self.pooler(x_BPD[:, 0]))
        return (x_BPD, head) if taps is None else (x_BPD, head, maps)


SIZES = {
    'base': Size(layers=12, width=768, heads=12, hidden=3072, patch=16, pixels=224),
    'large': Size(layers=24, width=1024, heads=16, hidden=4096, patch=16, pixels=224),
    'tiny': Size(layers=2, width=32, heads=4, hidden=64, patch=8, pixels=32, std=0.1),
}
