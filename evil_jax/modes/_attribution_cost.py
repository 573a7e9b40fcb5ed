"""What attribution methods cost beside the model itself, in counted floating-point operations.

Programs are compiled and never run; arrays are shapes alone. XLA counts what is left after it has removed and merged
what it can. The plain forward pass of the same pictures is 1.

Legend: B pictures, K targets.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.attribution import methods, subjects
from evil_jax.models import vit

METHODS = (
    'raw_attention', 'rollout', 'gradcam', 'generic', 'transformer_attribution', 'attnlrp', 'input_x_gradient',
    'legrad',
)  # fmt: skip
BATCH, CLASSES = 32, 1000  # ImageNet's


def flops(size: vit.Size = vit.SIZES['base'], batch: int = BATCH, names=METHODS) -> dict[str, float]:
    """Operations of one heat map of each picture as a multiple of those of the plain forward pass, float32.

    Args:
      size: of the ViT; by default ViT-B/16.
      batch: pictures, each with one class.
      names: methods or presets of attribution/methods.py.
    """
    graph, state = nnx.split(nnx.eval_shape(lambda: vit.Vit(size, answers=CLASSES, rngs=nnx.Rngs(params=0))))
    pictures = {'images': jax.ShapeDtypeStruct((batch, size.pixels, size.pixels, vit.CHANNELS), jnp.float32)}
    targets_BK = jax.ShapeDtypeStruct((batch, 1), jnp.int32)
    plain = _count(lambda state, batch: nnx.merge(graph, state)(batch)[0], state, pictures)

    def attribute(name):
        subject = lambda state, batch: subjects.answer(nnx.merge(graph, state), batch)
        return lambda state, batch, targets_BK: methods.relevance(subject(state, batch), targets_BK, name).values_BKS

    return {name: _count(attribute(name), state, pictures, targets_BK) / plain for name in names}


def _count(function, *arguments) -> float:
    """Operations of a function of shapes, as compiled for the CPU: on others XLA counts no products of libraries."""
    # Code is generated as fast as may be, since it is not run. What is counted was settled before.
    options = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}
    with jax.default_device(jax.local_devices(backend='cpu')[0]):
        compiled = jax.jit(function).lower(*arguments).compile(compiler_options=options)
    return compiled.cost_analysis()['flops']
