"""ResNet (He et al., CVPR 2016, arXiv 1512.03385), frozen: features of a grid of cells, or of the whole picture.

Bottleneck blocks with the stride in the 3 x 3 convolution ("v1.5"), as in torchvision, timm and Hugging Face; the nets
of the paper have it in the first 1 x 1, with the same shapes of weights. Its normalisation is frozen.

Legend: B batch, H, W rows and columns, D channels.
"""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from evil_jax import lookup
from evil_jax.nn import conv, ops

# Of the RGB values in [0, 1] that all published weights have seen.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CELL = 32  # pixels a side that a cell of the last grid stands for


@dataclasses.dataclass(frozen=True)
class Size:
    """Blocks of each stage, channels behind the stem and behind each stage (the 3 x 3 has a quarter of them)."""

    depths: tuple[int, ...]
    stem: int = 64
    widths: tuple[int, ...] = (256, 512, 1024, 2048)


class Block(ops.Op):
    """relu(x + norm(1 x 1) of relu(norm(3 x 3)) of relu(norm(1 x 1)) of x).

    Where width or resolution change, x goes through a 1 x 1 convolution of the same stride with a norm of its own.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, *, dtype, rngs: nnx.Rngs):
        make = lambda i, o, size, stride=1: conv.Conv(i, o, size, stride=stride, dtype=dtype, rngs=rngs)
        inner = outputs // 4
        self.reduce, self.reduce_norm = make(inputs, inner, 1), conv.FrozenNorm(inner)
        self.middle, self.middle_norm = make(inner, inner, 3, stride), conv.FrozenNorm(inner)
        self.expand, self.expand_norm = make(inner, outputs, 1), conv.FrozenNorm(outputs)
        self.changes = inputs != outputs or stride != 1
        if self.changes:
            self.shortcut, self.shortcut_norm = make(inputs, outputs, 1, stride), conv.FrozenNorm(outputs)

    def __call__(self, x_BHWD):
        y = self.op.relu(self.reduce_norm(self.reduce(x_BHWD)))
        y = self.op.relu(self.middle_norm(self.middle(y)))
        y = self.expand_norm(self.expand(y))
        x = self.shortcut_norm(self.shortcut(x_BHWD)) if self.changes else x_BHWD
        return self.op.relu(self.op.add(y, x))


class ResNet(ops.Op):
    """`(images [B, H, W, 3], normalised RGB) -> (grid [B, ceil(H / 32), ceil(W / 32), D], its mean [B, D])`."""

    def __init__(self, size: Size, *, dtype=jnp.float32, rngs: nnx.Rngs):
        self.stem, self.stem_norm = (
            conv.Conv(3, size.stem, 7, stride=2, dtype=dtype, rngs=rngs),
            conv.FrozenNorm(size.stem),
        )
        stages, inputs = [], size.stem
        for s, (depth, width) in enumerate(zip(size.depths, size.widths)):
            blocks = [
                Block(width if b else inputs, width, 2 if s and not b else 1, dtype=dtype, rngs=rngs)
                for b in range(depth)
            ]
            stages.append(nnx.List(blocks))
            inputs = width
        self.stages = nnx.List(stages)
        self.size = size

    @property
    def width(self) -> int:
        return self.size.widths[-1]

    def steps(self, images_BHW3) -> list:
        """What stands behind the stem and behind each stage, [B, h, w, D] each."""
        x = self.op.max_pool(self.op.relu(self.stem_norm(self.stem(images_BHW3))), 3, 2, 1)
        found = [x]
        for blocks in self.stages:
            for block in blocks:
                x = block(x)
            found.append(x)
        return found

    def __call__(self, images_BHW3):
        grid_BHWD = self.steps(images_BHW3)[-1]
        return grid_BHWD, self.op.mean(grid_BHWD, (1, 2))


def normalised(bytes_BHW3):
    """Bytes of RGB pictures as the net wants them, float32."""
    return (bytes_BHW3.astype(jnp.float32) / 255 - jnp.array(MEAN)) / jnp.array(STD)


SIZES = {
    '50': Size((3, 4, 6, 3)),
    '101': Size((3, 4, 23, 3)),
    '152': Size((3, 8, 36, 3)),
    'tiny': Size((1, 1, 1, 1), stem=8, widths=(16, 32, 64, 2048)),  # a store is 2,048 wide
}


def build_backbone(size: str, *, rngs: nnx.Rngs) -> ResNet:
    """The net of a size of `SIZES`, in float32."""
    return ResNet(lookup.entry(SIZES, size, 'config.build.backbone_size'), rngs=rngs)
