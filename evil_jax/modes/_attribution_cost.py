"""What attribution methods cost beside the model itself: operations as the compiler counts them, and time.

Programs that are counted are never run; arrays are shapes alone. XLA counts what is left after it has removed and
merged what it can. The plain forward pass of the same pictures is 1. On an accelerator all are run as well.

Legend: B pictures, K targets.
"""

import time

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax.attribution import methods, subjects
from evil_jax.models import vit
from evil_jax.modes import _terminal

METHODS = (
    'raw_attention', 'rollout', 'gradcam', 'generic', 'transformer_attribution', 'attnlrp', 'input_x_gradient',
    'legrad',
)  # fmt: skip
BATCH, CLASSES = 32, 1000  # ImageNet's
FORWARD, _MANY = 'forward', 256  # pictures at a time where throughput is measured


def run() -> dict[str, float]:
    """Prints the table of ViT-B/16. Returns {method: operations as a multiple of a forward pass}."""
    counted, title = flops(), 'ViT-B/16, float32, one class a picture'
    columns = ['method', f'operations / forward, batch {BATCH}']
    rows = [[name, f'{count:.2f}'] for name, count in counted.items()]
    accelerated = jax.default_backend() != 'cpu'
    if accelerated:
        few, many = seconds(batch=BATCH), seconds(batch=_MANY)
        title += f', {jax.devices()[0].device_kind}'
        columns += [f'time / forward, batch {BATCH}', f'heat maps/s, batch {_MANY}']
        for row, name in zip(rows, counted):
            row += [f'{few[name] / few[FORWARD]:.2f}', f'{_MANY / many[name]:.0f}']
    _terminal.show(title, columns, rows)
    if not accelerated:
        print('no accelerator here: operations are counted, nothing is timed')
    return counted


def seconds(
    size: vit.Size = vit.SIZES['base'], batch: int = BATCH, names=METHODS, repeats: int = 5
) -> dict[str, float]:
    """Shortest time of a batch of heat maps, by method, and of the fused forward pass under `FORWARD`."""
    key = jax.random.key(0)
    graph, state = nnx.split(vit.Vit(size, answers=CLASSES, rngs=nnx.Rngs(params=0)))
    pictures = {'images': jax.random.normal(key, (batch, size.pixels, size.pixels, vit.CHANNELS), jnp.float32)}
    targets_BK = jnp.zeros((batch, 1), jnp.int32)
    plain = lambda state, batch, targets_BK: nnx.merge(graph, state)(batch)[0]
    found = {}
    for name, function in {FORWARD: plain, **{name: _attribute(graph, name) for name in names}}.items():
        compiled = jax.jit(function).lower(state, pictures, targets_BK).compile()
        times = []
        for _ in range(repeats + 1):  # the first one pays for what is made once
            start = time.perf_counter()
            jax.block_until_ready(compiled(state, pictures, targets_BK))
            times.append(time.perf_counter() - start)
        found[name] = min(times[1:])
    return found


def _attribute(graph, name):
    subject = lambda state, batch: subjects.answer(nnx.merge(graph, state), batch)
    return lambda state, batch, targets_BK: methods.relevance(subject(state, batch), targets_BK, name).values_BKS


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
    return {name: _count(_attribute(graph, name), state, pictures, targets_BK) / plain for name in names}


def _count(function, *arguments) -> float:
    """Operations of a function of shapes, as compiled for the CPU: on others XLA counts no products of libraries."""
    # Code is generated as fast as may be, since it is not run. What is counted was settled before.
    options = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}
    with jax.default_device(jax.local_devices(backend='cpu')[0]):
        compiled = jax.jit(function).lower(*arguments).compile(compiler_options=options)
    return compiled.cost_analysis()['flops']
