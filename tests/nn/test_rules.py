"""Rule sets: by hand, what they conserve, one example at a time, and what they refuse."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evil_jax.models import bert
from evil_jax.nn import attention, ops

RULES = ('chefer2020', 'lrp', 'attnlrp', 'cplrp')
ACTIVATIONS = ('gelu', 'gelu_tanh', 'relu', 'tanh', 'sigmoid')
WORDS, Q, ANSWERS = 30, 6, 3
SMALL = bert.Size(layers=2, width=8, heads=2, hidden=16, positions=Q, std=0.4, word_std=1.0)


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def back(operation, *inputs, r, **options):
    return jax.jit(lambda inputs, r: jax.vjp(operation, *inputs)[1](r), **options)(inputs, r)


def make_bert(rules, dtype=jnp.float32):
    """Random weights, biases and norms among them: a bias of 0 in a norm would hide much. Nothing is compiled."""
    make = lambda: bert.Bert(SMALL, words=WORDS, answers=ANSWERS, dtype=dtype, rngs=nnx.Rngs(params=0))
    graph, state = nnx.split(nnx.eval_shape(make))
    r = np.random.default_rng(0)
    model = nnx.merge(graph, jax.tree.map(lambda x: jnp.asarray(r.normal(scale=0.4, size=x.shape), x.dtype), state))
    model.set_attributes(rules=rules)
    return model


def make_batch(rows=3, seed=0):
    r = np.random.default_rng(seed)
    length = r.permutation(np.arange(rows) + Q - rows + 1)
    return {'text': r.integers(0, WORDS, (rows, Q)), 'text_type': np.zeros((rows, Q), int), 'text_length': length}


def cotangents(model, batch):
    """Cotangents of the first logit at every attention map and at the input of the first layer."""
    return _cotangents(*nnx.split(model), batch)


@functools.partial(jax.jit, static_argnums=0)
def _cotangents(graph, state, batch):
    model = nnx.merge(graph, state)
    x_BSD, length, spans = model.embed(batch)
    taps = [jnp.zeros((len(x_BSD), model.size.heads, *[x_BSD.shape[1]] * 2), x_BSD.dtype)] * len(model.layers)

    def rest(taps, x):
        for block, tap in zip(model.layers, taps):
            x, _ = block(x, length, tap_BNQK=tap)
        return model.finish(x, length, spans, batch)[0]

    logits, pull = jax.vjp(rest, taps, x_BSD)
    return logits, *pull(jnp.zeros_like(logits).at[:, 0].set(1)), x_BSD


def test_both_factors_of_a_product_get_half():
    op = ops.OPS['chefer2020']
    a, v = jnp.abs(normal(2, 3, 4, 5)), normal(2, 5, 3, 6, seed=1)
    q, k = normal(2, 4, 3, 6, seed=2), normal(2, 5, 3, 6, seed=3)
    for f, inputs in (
        (op.mix, (a, v)),
        (op.scores, (q, k)),
        (op.product, (q, q + 1)),
        (op.pool, (a[:, 0], v[:, :, 0])),
    ):
        r = normal(*f(*inputs).shape, seed=4)
        for x in back(f, *inputs, r=r):
            np.testing.assert_allclose(x.sum(tuple(range(1, x.ndim))), r.reshape(2, -1).sum(1) / 2, rtol=2e-3)


def test_linear_maps_by_hand():
    x, w, b, r = normal(2, 6), normal(6, 3, seed=1), normal(3, seed=2), normal(2, 3, seed=3)
    parts = [np.einsum('PI,IO->PIO', f(x, 0), f(w, 0)) for f in (np.maximum, np.minimum)]
    share = lambda part, whole: (part / whole.sum(1, keepdims=True) * np.asarray(r)[:, None]).sum(-1)
    assert min(part.sum(1).min() for part in parts) > 0
    # As users compile it: the suite's emitters fuse multiply and add, which makes 2e-9 of a share of 0.
    usual = {'xla_cpu_use_fusion_emitters': True}
    rx, rw, rb = back(ops.OPS['chefer2020'].linear, x, w, b, r=r, compiler_options=usual)
    np.testing.assert_allclose(rx, share(sum(parts), sum(parts)), rtol=1e-5)
    np.testing.assert_allclose(rx.sum(-1), r.sum(-1), rtol=1e-5)
    assert not np.asarray(rw).any() and not np.asarray(rb).any()
    np.testing.assert_allclose(
        back(ops.OPS['lrp'].linear, x, w, b, r=r)[0], sum(share(part, part) for part in parts), rtol=1e-5
    )
    both = back(ops.OPS['chefer2020'].contrast, x, w[:, :2], b[:2], r=r[:, 0])[0]
    one = back(ops.OPS['chefer2020'].linear, x, w[:, 1:2] - w[:, :1], b[:1], r=r[:, :1])[0]
    np.testing.assert_allclose(both, one, rtol=1e-6)
    for rules in ('chefer2020', 'lrp'):  # the tied output of GPT-2: the same without a bias
        table = ops.OPS[rules]
        found = back(table.unembed, x, w.T, r=r)[0]
        np.testing.assert_allclose(found, back(table.linear, x, w, b, r=r)[0], rtol=1e-5)


def test_pixels_by_hand():
    x, w, b, r = normal(2, 3, 4), normal(4, 5, seed=1), normal(5, seed=2), normal(2, 3, 5, seed=3)
    found = back(ops.OPS['chefer2020'].patch, x, w, b, r=r)[0]
    for row in range(2):
        xs, low, high, w64 = (np.asarray(t, np.float64) for t in (x[row], x[row].min(), x[row].max(), w))
        z = xs[..., None] * w64 - low * np.maximum(w64, 0) - high * np.minimum(w64, 0)  # PIO, none is negative
        assert z.min() >= 0
        wanted = (z / z.sum(1, keepdims=True) * np.asarray(r[row])[:, None]).sum(-1)
        np.testing.assert_allclose(found[row], wanted, rtol=1e-4, atol=1e-5)


def test_sums_share_by_their_absolute_parts():
    a, b, r = normal(3, 4, 5), normal(3, 4, 5, seed=1), normal(3, 4, 5, seed=2)
    plain, shared = (back(ops.OPS[rules].add, a, b, r=r) for rules in ('lrp', 'chefer2020'))
    np.testing.assert_allclose(plain[0], a * r / (a + b), rtol=1e-4)
    sums, total = [np.asarray(x).sum((1, 2)) for x in plain], np.asarray(r).sum((1, 2))
    for x, before, own in zip(shared, plain, sums):
        wanted = np.abs(own) / (np.abs(sums[0]) + np.abs(sums[1])) * total
        np.testing.assert_allclose(x.sum((1, 2)), wanted, rtol=1e-4)
        np.testing.assert_allclose(x, before * (wanted / own)[:, None, None], rtol=1e-4)
    # A table of positions is broadcast first; what it gets is added up at the end.
    rows = b[0]
    ra, rb = back(ops.OPS['chefer2020'].add, a, rows, r=r)
    wide_a, wide_b = back(ops.OPS['chefer2020'].add, a, jnp.broadcast_to(rows, a.shape), r=r)
    np.testing.assert_array_equal(ra, wide_a)
    np.testing.assert_allclose(rb, wide_b.sum(0), rtol=1e-5)


def test_gradient_rules_by_hand():
    x, y, r = normal(4, 5) + 0.5, normal(4, 5, seed=1), normal(4, 5, seed=2)
    attnlrp, cplrp, plain = (ops.OPS[rules] for rules in ('attnlrp', 'cplrp', 'gradient'))
    norm = lambda table: lambda x: table.norm(x, jnp.full(5, 2.0), jnp.zeros(5), 1e-6)
    functions = {
        **{f'{name} {t}': getattr(ops.OPS[t], name) for name in ACTIVATIONS for t in ('attnlrp', 'cplrp', 'gradient')},
        'softmax': attnlrp.softmax, 'constant': cplrp.softmax, 'plain softmax': plain.softmax,
        'attnlrp norm': norm(attnlrp), 'cplrp norm': norm(cplrp), 'norm': norm(plain),
    }  # fmt: skip
    both = {'half': attnlrp.product, 'whole': plain.product, 'gated': cplrp.gate}
    backward = lambda f, *inputs: jax.vjp(f, *inputs)[1](r)
    found, pairs = jax.jit(
        lambda: (
            {name: (f(x), *backward(f, x)) for name, f in functions.items()},
            {name: backward(f, x, y) for name, f in both.items()},
        )
    )()
    for name in ACTIVATIONS:  # relevance x g passes unchanged
        value, g = found[f'{name} attnlrp']
        np.testing.assert_allclose(x * g, r * value, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[f'{name} cplrp'], found[f'{name} gradient'])
    np.testing.assert_array_equal(found['softmax'], found['plain softmax'])
    assert not np.asarray(found['constant'][1]).any() and not np.asarray(pairs['gated'][0]).any()
    np.testing.assert_allclose(pairs['gated'][1], x * r, rtol=1e-6)
    np.testing.assert_allclose(pairs['half'], np.asarray(pairs['whole']) / 2)
    for rules in ('attnlrp', 'cplrp'):  # of a norm without bias, x g adds up to what comes out
        value, g = found[f'{rules} norm']
        np.testing.assert_allclose(value, found['norm'][0], rtol=1e-6)
        np.testing.assert_allclose((x * g).sum(-1), (value * r).sum(-1), rtol=1e-4)


def test_relevance_of_a_net_without_biases_adds_up_to_its_logit():
    """Constant attention, constant deviations and ReLU make a homogeneous function: CP-LRP loses nothing."""
    model = make_bert('cplrp')
    for _, module in nnx.iter_modules(model):
        if isinstance(module, ops.Linear | ops.Norm):
            module.bias[...] *= 0
    for block in model.layers:
        block.mlp.activation = 'relu'
    model.size = dataclasses.replace(SMALL, pool='relu')
    logits, _, g_BSD, x_BSD = cotangents(model, make_batch())
    found = ops.relevance('cplrp', x_BSD, g_BSD).sum((1, 2))
    assert np.abs(logits[:, 0]).min() > 1e-3
    np.testing.assert_allclose(found, logits[:, 0], rtol=1e-4)


@pytest.mark.parametrize('rules', RULES)
def test_an_example_does_not_depend_on_its_batch(rules):
    model, batch = make_bert(rules), make_batch()
    _, taps, x_BSD, _ = cotangents(model, batch)
    for row, length in enumerate(batch['text_length']):
        _, alone_taps, alone_BSD, _ = cotangents(model, {name: x[[row] * 3] for name, x in batch.items()})
        for found, wanted in zip((*taps, x_BSD), (*alone_taps, alone_BSD)):
            scale = np.abs(wanted).max()
            assert scale > 0 and np.isfinite(scale)
            np.testing.assert_allclose(found[row] / scale, wanted[0] / scale, atol=1e-5)
        assert not np.asarray(x_BSD[row, length:]).any(), 'padding has relevance'
        assert not any(np.asarray(tap[row, :, :, length:]).any() for tap in taps if rules in RULES[:2])


def test_rule_sets_do_not_leak():
    """One model and one function: a program for each set, and the first again when its set is back."""
    model, batch, found = make_bert('gradient'), make_batch(), []
    for rules in ('gradient', 'chefer2020', 'lrp', 'gradient'):
        model.set_attributes(rules=rules)
        assert {m.rules for _, m in nnx.iter_modules(model) if isinstance(m, ops.Op)} == {rules}
        found.append(np.asarray(cotangents(model, batch)[2]))
        np.testing.assert_array_equal(found[-1], cotangents(make_bert(rules), batch)[2])
    np.testing.assert_array_equal(found[3], found[0])
    assert all(np.abs(found[i] - found[j]).max() > 1e-3 for i in range(3) for j in range(i))
    model.rules = 'chefer2021'
    with pytest.raises(ValueError, match=r"rules is 'chefer2021'. Did you mean 'chefer2020'\?"):
        _ = model.op


def test_the_gradient_and_lrp_share_their_forward_pass():
    """'shared' is the gradient, and beside it 'chefer2020' costs its own products alone: |x| |w| and two backward."""
    graphs = [nnx.split(make_bert(rules))[0] for rules in ('gradient', 'shared', 'chefer2020')]
    state, batch = nnx.state(make_bert('gradient')), make_batch()
    plain, shared = (_cotangents(graph, state, batch) for graph in graphs[:2])
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(shared)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    # Of a layer the widest products: up and down once in each pass, in LRP's also the product of absolute values.
    compiled = jax.jit(lambda s, b: [_cotangents(g, s, b) for g in graphs[1:]]).lower(state, batch).compile()
    up = compiled.as_text().count(f'f32[{3 * Q},{SMALL.hidden}]{{1,0}} dot(')
    # Forward 1, |x| |w| 1, back through `down` 1 and 2: for each of two layers. Without sharing there is one more.
    assert up == 2 * 5


def test_attention_is_never_fused_under_rules(monkeypatch):
    q, k, v, r = (normal(2, 5, 3, 4, seed=i) for i in range(4))
    call = lambda op, tap=None: lambda *x: attention.attend(op, *x, length_B=jnp.array([5, 3]), tap_BNQK=tap)[0]
    op = ops.OPS['chefer2020']
    for a, b in zip(back(call(op), q, k, v, r=r), back(call(op, jnp.zeros((2, 3, 5, 5))), q, k, v, r=r)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    fused = []
    monkeypatch.setattr(jax.nn, 'dot_product_attention', lambda q, *rest, **settings: fused.append(q.dtype) or q)
    for rules in ops.OPS:
        jax.eval_shape(call(ops.OPS[rules]), q, k, v)
    with jax.enable_x64(True):
        jax.eval_shape(call(ops.FORWARD), *(np.asarray(x, np.float64) for x in (q, k, v)))
    assert fused == [jnp.float32], 'rules gradient in float32 alone'


@pytest.mark.parametrize('rules', RULES)
def test_what_has_no_rule_is_refused(rules):
    missing = {name for name, f in vars(ops.OPS[rules]).items() if getattr(f, '__name__', '') == 'refuse'}
    assert missing == {'signed_root', 'unit', 'sketch', 'convolve', 'conv', 'affine', 'max_pool', 'mean'}
    with pytest.raises(ValueError, match=f"rules '{rules}' have none for the operation 'conv'"):
        ops.OPS[rules].conv(normal(1, 4, 4, 2), normal(3, 3, 2, 2), 1, 1)
    assert vars(ops.OPS[rules]).keys() == vars(ops.FORWARD).keys()


def test_gradients_at_taps_are_finite_differences():
    with jax.enable_x64(True):
        model, batch = make_bert('gradient', jnp.float64), make_batch()
        _, gradients, _, _ = cotangents(model, batch)
        zeros = [jnp.zeros((3, 2, Q, Q)) for _ in range(2)]
        logit = jax.jit(lambda taps: model(batch, taps=taps)[0][:, 0])
        assert logit(zeros).dtype == gradients[0].dtype == jnp.float64
        for layer, head, query, key in ((0, 0, 0, 0), (0, 1, 3, 1), (1, 1, 0, 2), (1, 0, 0, 1)):
            moved = lambda h, at=(layer, head, query, key): [
                tap.at[:, *at[1:]].add(h) if number == at[0] else tap for number, tap in enumerate(zeros)
            ]
            wanted = (logit(moved(1e-5)) - logit(moved(-1e-5))) / 2e-5
            assert np.abs(wanted).max() > 1e-3
            np.testing.assert_allclose(gradients[layer][:, head, query, key], wanted, rtol=1e-6, atol=1e-9)


def test_rules_in_bfloat16():
    """Relevance has the type of what it belongs to; rules and norms compute in float32."""
    inputs = [normal(*shape, seed=i).astype(jnp.bfloat16) for i, shape in enumerate(((2, 16), (16, 8), (8,), (2, 8)))]
    linear = lambda *x: back(ops.OPS['chefer2020'].linear, *x[:3], r=x[3])[0]
    norm = lambda x, *rest: ops.norm(x, jnp.ones(16), jnp.zeros(16), 1e-6)
    for f in (linear, norm):
        found, wanted = jax.jit(lambda f=f: (f(*inputs), f(*(x.astype(jnp.float32) for x in inputs))))()
        assert found.dtype == jnp.bfloat16 and wanted.dtype == jnp.float32
        np.testing.assert_array_equal(found, wanted.astype(jnp.bfloat16))
