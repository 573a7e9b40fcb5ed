"""Rule sets: how the relevance of an operation's output becomes relevance of its inputs.

Under 'chefer2020' and 'lrp' the backward pass of `jax.vjp` carries relevance itself: seeded with 1 at the class, the
cotangent of any intermediate array is its relevance. Under 'attnlrp' and 'cplrp' it carries a changed gradient, and
relevance is that times the array. `relevance` makes relevance of either.

    'chefer2020'  Chefer et al., CVPR 2021 (arXiv 2012.09838), sections 3.1 and 3.2: z+ rule with one denominator, sums
                  whose branches share by their absolute parts (eq. 9), products that halve (eq. 8)
    'lrp'         what their code compares with: two denominators a linear map, sums without sharing; not conservative
    'attnlrp'     AttnLRP (Achtibat et al., ICML 2024) in gradient form (Arras et al. 2025): activations are secants,
                  deviations of norms constants, products halve
    'cplrp'       Ali et al., ICML 2022: attention probabilities and deviations of norms are constants
    'shared'      the gradient, for a program that has one of the first two beside it

The last is there for XLA to compute the forward pass once. It merges what is the same in both; but a norm's derivative
keeps intermediate results, around which the norm itself comes out otherwise (jax 0.10.2). Here norms keep their input.

The batch is axis 0: every sum, minimum and maximum runs over one example. Biases take no part in the first two. Only
the operations of transformers have rules; a set refuses any other, since its gradient would pass for relevance.

Legend: B batch, P positions, D width, I inputs, O outputs.
"""

import types

import jax
import jax.numpy as jnp

from evil_jax.nn import forward
from evil_jax.nn.forward import FORWARD, wide

ACTIVATIONS = ('gelu', 'gelu_tanh', 'relu', 'tanh', 'sigmoid')
_ROUTES = {'select': FORWARD.select, 'embed': FORWARD.embed}  # whose gradient carries relevance where it belongs


def relevance(rules: str, x, cotangent):
    """Relevance of an array x, elementwise, from its cotangent under a rule set."""
    return cotangent if rules in ('chefer2020', 'lrp') else x * cotangent


def _ruled(operation, rule):
    """An operation whose backward pass is `rule(inputs, relevance of the output) -> relevance of each input`."""
    ruled = jax.custom_vjp(operation)

    def back(inputs, r):
        found = rule(tuple(map(wide, inputs)), jax.tree.map(wide, r))
        return tuple(x.astype(like.dtype) for x, like in zip(found, inputs, strict=True))

    ruled.defvjp(lambda *inputs: (operation(*inputs), inputs), back)
    return ruled


def _safe_div(a, b):
    """a / b with b moved off zero by 1e-9, and 0 where b is exactly 0: the convention of Chefer et al.'s code."""
    moved = b + 1e-9
    return a / (moved + (moved == 0) * 1e-9) * (b != 0)


def _passes(inputs, r):
    """Everything to the first input, unchanged."""
    return r, *map(jnp.zeros_like, inputs[1:])


def _positive(product):
    """z+ rule (eq. 5): by the positive contributions x+ w+ + x- w-, which add up to (x w + |x| |w|) / 2.

    In this form the rule shares x w with the forward pass, and |x| |w| is the same for all classes.
    """

    def rule(inputs, r):
        x, w, *rest = inputs
        size = jnp.abs(x)
        z, back = jax.vjp(lambda t: product(t, w), x)
        sizes, back_size = jax.vjp(lambda t: product(t, jnp.abs(w)), size)
        s = _safe_div(r, 0.5 * (z + sizes))
        return 0.5 * (x * back(s)[0] + size * back_size(s)[0]), *map(jnp.zeros_like, (w, *rest))

    return rule


def _separate(product):
    """The same with a denominator for each of x+ w+ and x- w-: up to twice the relevance arrives."""

    def rule(inputs, r):
        x, w, *rest = inputs
        parts = []
        for half in (jnp.maximum, jnp.minimum):
            x_half, w_half = half(x, 0), half(w, 0)
            z, back = jax.vjp(lambda t, w_half=w_half: product(t, w_half), x_half)
            parts.append(x_half * back(_safe_div(r, z))[0])
        return sum(parts), *map(jnp.zeros_like, (w, *rest))

    return rule


def _contrasted(rule):
    """The rule of a linear map for the difference of its two outputs: that of one map with the weights' difference."""

    def contrasted(inputs, r):
        x, w_I2, b_2 = inputs
        found = rule((x, w_I2[:, 1:] - w_I2[:, :1]), r[..., None])
        return found[0], jnp.zeros_like(w_I2), jnp.zeros_like(b_2)

    return contrasted


def _bounded(inputs, r):
    """z^B rule of pixels x_BPI (Montavon et al. 2017) between the least and the largest value of each picture."""
    x_BPI, w_IO, b_O = inputs
    low_B11, high_B11 = x_BPI.min((1, 2), keepdims=True), x_BPI.max((1, 2), keepdims=True)
    plus_IO, minus_IO = jnp.maximum(w_IO, 0), jnp.minimum(w_IO, 0)
    z_BPO = x_BPI @ w_IO - low_B11 * plus_IO.sum(0) - high_B11 * minus_IO.sum(0) + 1e-9
    s_BPO = r / z_BPO
    found = x_BPI * (s_BPO @ w_IO.T) - low_B11 * (s_BPO @ plus_IO.T) - high_B11 * (s_BPO @ minus_IO.T)
    return found, jnp.zeros_like(w_IO), jnp.zeros_like(b_O)


def _narrow(x, like):
    """Sums over what was broadcast from the shape of `like`."""
    lead = x.ndim - like.ndim
    axes = tuple(i for i, n in enumerate(x.shape) if i < lead or like.shape[i - lead] != n)
    return x.sum(axes).reshape(like.shape)


def _parts(inputs, r):
    """The two parts of a sum's relevance, by their shares in each element: both as large as the sum."""
    s = _safe_div(r, inputs[0] + inputs[1])
    return [jnp.broadcast_to(x, s.shape) * s for x in inputs]


def _plain_sum(inputs, r):
    return tuple(map(_narrow, _parts(inputs, r), inputs))


def _shared_sum(inputs, r):
    """The same, each part scaled so that the two share the example's relevance by their absolute sums (eq. 9)."""
    parts, total = _parts(inputs, r), lambda x: x.sum(tuple(range(1, x.ndim)), keepdims=True)
    sums = [total(part) for part in parts]
    both, whole = jnp.abs(sums[0]) + jnp.abs(sums[1]), total(r)
    scaled = [p * _safe_div(_safe_div(jnp.abs(own), both) * whole, own) for p, own in zip(parts, sums)]
    return tuple(map(_narrow, scaled, inputs))


def _halved(product):
    """Both factors get half, by their shares in each term (eq. 8). A constant behind the product changes nothing."""

    def rule(inputs, r):
        z, back = jax.vjp(product, *inputs)
        return tuple(x * g / 2 for x, g in zip(inputs, back(_safe_div(r, z))))

    return rule


def _copies(inputs, r):
    """Relevance of x that has two users: both, up to the 1e-9 of `_safe_div`, which golden values show."""
    (x,) = inputs
    return (x * (_safe_div(r[0], x) + _safe_div(r[1], x)),)


def _first(inputs, r):
    (x_BPD,) = inputs
    return (jnp.zeros_like(x_BPD).at[:, 0].set(x_BPD[:, 0] * _safe_div(r, x_BPD[:, 0])),)


def _half_gradient(product):
    return lambda inputs, r: tuple(g / 2 for g in jax.vjp(product, *inputs)[1](r))


def _secant(activation):
    """f(x) / x for the derivative: relevance passes unchanged."""
    return lambda inputs, r: (r * activation(inputs[0]) / (inputs[0] + 1e-10),)


def _norm_passes(x, scale_D, bias_D, eps):
    return _ruled(lambda *inputs: forward.norm(*inputs, eps), _passes)(x, scale_D, bias_D)


def _norm_again(x, scale_D, bias_D, eps):
    """The norm; its backward pass begins with its input."""
    norm = lambda *inputs: forward.norm(*inputs, eps)
    return _ruled(norm, lambda inputs, r: jax.vjp(norm, *inputs)[1](r))(x, scale_D, bias_D)


def _norm_of_constant_deviation(x, scale_D, bias_D, eps):
    return forward.norm(x, scale_D, bias_D, eps, jax.lax.stop_gradient)


def _relevances(weights, sums) -> dict:
    """'chefer2020' and 'lrp' differ in the rules of linear maps and of sums."""
    return dict(
        _ROUTES,
        linear=_ruled(FORWARD.linear, weights(jnp.matmul)),
        contrast=_ruled(FORWARD.contrast, _contrasted(weights(jnp.matmul))),
        unembed=_ruled(FORWARD.unembed, weights(FORWARD.unembed)),
        patch=_ruled(FORWARD.patch, _bounded),
        add=_ruled(FORWARD.add, sums),
        scores=_ruled(FORWARD.scores, _halved(forward.inner)),
        **{name: _ruled(f, _halved(f)) for name, f in _of('mix', 'pool', 'product', 'gate').items()},
        **{name: _ruled(f, _passes) for name, f in _of('softmax', *ACTIVATIONS).items()},
        norm=_norm_passes,
        copy=_ruled(FORWARD.copy, _copies),
        first=_ruled(FORWARD.first, _first),
    )


def _of(*names: str) -> dict:
    return {name: getattr(FORWARD, name) for name in names}


def _gradients() -> dict:
    """What 'attnlrp' and 'cplrp' have in common: linear operations keep their gradient."""
    linear = _of('linear', 'contrast', 'unembed', 'patch', 'add', 'copy', 'first')
    halved = {name: _ruled(f, _half_gradient(f)) for name, f in _of('product').items()}
    return dict(_ROUTES, **linear, **halved, norm=_norm_of_constant_deviation)


def _attnlrp() -> dict:
    halved = {name: _ruled(f, _half_gradient(f)) for name, f in _of('scores', 'mix', 'pool', 'gate').items()}
    secants = {name: _ruled(f, _secant(f)) for name, f in _of(*ACTIVATIONS).items()}
    return dict(_gradients(), **halved, **secants, softmax=FORWARD.softmax)


def _cplrp() -> dict:
    constant = jax.lax.stop_gradient
    return dict(
        _gradients(),
        **_of('scores', 'mix', *ACTIVATIONS),
        softmax=lambda x: constant(FORWARD.softmax(x)),
        gate=lambda gate, x: FORWARD.gate(constant(gate), x),
        pool=lambda a_BR, x_BRD: FORWARD.pool(constant(a_BR), x_BRD),
    )


def _refusal(rules: str, operation: str):
    def refuse(*inputs, **settings):
        raise ValueError(
            f'rules {rules!r} have none for the operation {operation!r}, only for those of transformers: use an '
            "attribution method of gradients or of attention (rules 'gradient')"
        )

    return refuse


def _table(rules: str, operations: dict) -> types.SimpleNamespace:
    refused = {name: _refusal(rules, name) for name in vars(FORWARD) if name not in operations}
    return types.SimpleNamespace(**refused | operations | {'fused': False})  # a fused attention's backward is not ours


TABLES = {
    name: _table(name, operations)
    for name, operations in {
        'chefer2020': _relevances(_positive, _shared_sum),
        'lrp': _relevances(_separate, _plain_sum),
        'attnlrp': _attnlrp(),
        'cplrp': _cplrp(),
        'shared': vars(FORWARD) | {'norm': _norm_again},
    }.items()
}
