"""Up-Down VQA against a PyTorch twin; padding, choices, sizes and what a config builds."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import parity
import pytest
import torch
from flax import nnx

from evil_jax import config as config_lib
from evil_jax.models import updown

WORDS, ANSWERS, C = 40, 5, 2
B, Q, R, F = 3, 6, 4, 2048
SMALL = updown.Size(embedding=6, width=8, hidden=10)
OURS = updown.Size(embedding=6, width=8, hidden=10, glimpses=2, locations=True, norms=True)
WIDE = updown.Size(embedding=6, width=24, hidden=30)  # some of its ReLUs are open
CASES = {'published-tanh': (SMALL, 'tanh'), 'published-relu': (WIDE, 'relu'), 'ours': (OURS, 'tanh')}


@functools.cache
def make(size=OURS, gate='tanh', choices=0, dropout=0.0):
    build = lambda: updown.UpDown(
        size, words=WORDS, answers=ANSWERS, choices=choices, gate=gate, dropout=dropout, rngs=nnx.Rngs(params=0)
    )
    graph, shapes = nnx.split(nnx.eval_shape(build))
    r = np.random.default_rng(0)
    # Biases and norms away from 0 and 1, so that a test sees whether each one is used.
    size_of = lambda x: x.shape[0] ** -0.5 if x.ndim == 2 else 0.3
    fill = lambda x: jnp.asarray(r.normal(x.ndim == 0, size_of(x), x.shape), x.dtype)
    params = jax.tree.map(fill, shapes)
    params['word']['embedding'][...] *= len(params['word']['embedding'][...]) ** 0.5
    return nnx.merge(graph, params)


@functools.cache
def make_batch(choices=0, seed=0):
    r = np.random.default_rng(seed)
    lengths = np.array([4, 2, 3])
    inside = (np.arange(R) < lengths[:, None])[..., None]
    batch = {
        'text': r.integers(0, WORDS, (B, Q)),
        'text_length': np.array([6, 3, 4]),
        'features': (r.normal(size=(B, R, F)) * inside).astype(np.float16),
        'locations': (r.random((B, R, 7)) * inside).astype(np.float32),
        'region_length': lengths,
    }
    if choices:
        batch['choices'] = r.integers(0, WORDS, (B, choices, Q))
        batch['choices_length'] = r.integers(2, Q + 1, (B, choices))
        batch['text_tags'] = np.where(r.random((B, Q)) < 0.3, 1, -1)
        batch['choices_tags'] = np.where(r.random((B, choices, Q)) < 0.3, 0, -1)
    return {name: jnp.asarray(value) for name, value in batch.items()}


@functools.cache
def forward(*args, **kwargs):
    """`(batch, key=None) -> (logits, context, weights)`, compiled once for all tests."""
    model = make(*args, **kwargs)

    def run(batch, key=None):
        logits, context = model(batch, key=key)
        return logits, context, model.attend(context.memory_BSD, context.length_B, context.pooled_BD)[1]

    return jax.jit(run)


def tensor(x):
    return torch.from_numpy(np.array(x, np.float32))


def linear(module):
    """A linear map of ours, weight-normalised or not, as a function on tensors."""
    kernel, scale = tensor(module.kernel[...]), getattr(module, 'scale', None)
    theirs = torch.nn.Linear(*kernel.shape)
    parity.put(theirs, parity.linear(module))
    if scale is not None:
        theirs = torch.nn.utils.parametrizations.weight_norm(theirs, dim=None)
        theirs.parametrizations.weight.original0.data = tensor(scale[...])
    return theirs


def layer(module):
    if module.gate == 'relu':
        return lambda x: torch.relu(linear(module.up)(x))
    return lambda x: torch.tanh(linear(module.up)(x)) * torch.sigmoid(linear(module.open)(x))


def attention(module, v, q):
    score = linear(module.score)
    if module.gate == 'tanh':
        joint = layer(module.both)(torch.cat([v, q.expand(len(v), -1)], dim=-1))
    else:
        joint = layer(module.region)(v) * layer(module.question)(q)
    return torch.softmax(score(joint)[:, 0], dim=0)


def gru(module):
    theirs = torch.nn.GRU(len(module.input.kernel[...]), module.width, batch_first=True)
    parts = {'ih': parity.linear(module.input), 'hh': parity.linear(module.recurrent)}
    parity.put(theirs, {f'{kind}_{name}_l0': v for name, leaves in parts.items() for kind, v in leaves.items()})
    return theirs


def norm(model, name):
    if not model.size.norms:
        return lambda x: x
    ours = getattr(model, name)
    return lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], tensor(ours.scale[...]), tensor(ours.bias[...]))


def regions(model, batch, row, features=None):
    n = int(batch['region_length'][row])
    features = tensor(batch['features'][row]) if features is None else features
    v = norm(model, 'image_norm')(linear(model.image)(features[:n]))
    if not model.size.locations:
        return v
    return v + norm(model, 'location_norm')(linear(model.location)(tensor(batch['locations'][row, :n])))


def twin(model, v, ids, tags=None, table=None):
    """(logit of each answer, question vector, weights) of one text about one picture's regions."""
    table = tensor(model.word.embedding[...]) if table is None else table
    x = table[torch.from_numpy(np.array(ids)).long()]
    if tags is not None:
        linked = linear(model.tag)(v)
        x = torch.stack([w + linked[t] if t >= 0 else w for w, t in zip(x, tags)])
    q = norm(model, 'question_norm')(gru(model.question)(x[None])[1][0, 0])
    weights = torch.stack([attention(glimpse, v, q) for glimpse in model.glimpses])
    joint = layer(model.question_net)(q) * layer(model.image_net)((weights @ v).reshape(-1))
    joint = norm(model, 'joint_norm')(joint)
    head = model.head_vcr if tags is not None else model.head
    return linear(head.answer)(layer(head.up)(joint)), q, weights


@pytest.mark.parametrize(('size', 'gate'), CASES.values(), ids=CASES)
def test_equals_the_twin(size, gate):
    """Question and attention <= 1e-5, logits <= 1e-4, float32; ragged rows in one batch."""
    model, batch = make(size, gate), make_batch()
    with jax.default_matmul_precision('highest'):
        logits, context, weights = forward(size, gate)(batch)
    for row in range(B):
        v, n = regions(model, batch, row), int(batch['region_length'][row])
        with torch.no_grad():
            want, q, want_weights = twin(model, v, batch['text'][row, : int(batch['text_length'][row])])
        np.testing.assert_allclose(context.memory_BSD[row, :n], v.detach(), atol=1e-5)
        assert not np.asarray(context.memory_BSD[row, n:]).any()
        np.testing.assert_allclose(context.pooled_BD[row], q, atol=1e-5)
        np.testing.assert_allclose(weights[row, :, :n], want_weights, atol=1e-5)
        np.testing.assert_allclose(logits[row], want, atol=1e-4)
    start_B, length_B = context.spans['regions']
    assert start_B.tolist() == [0, 0, 0] and length_B.tolist() == context.length_B.tolist() == [4, 2, 3]


@pytest.mark.parametrize(('size', 'gate'), CASES.values(), ids=CASES)
def test_gradients_equal_the_twin(size, gate):
    """Of the words through the GRU and of the features through attention and head: <= 1e-3 relative."""
    model, batch = make(size, gate), make_batch()
    graph, params = nnx.split(model)

    def loss(params, features):
        return (nnx.merge(graph, params)(batch | {'features': features})[0] ** 2).sum()

    with jax.default_matmul_precision('highest'):
        grads, features = jax.jit(jax.grad(loss, argnums=(0, 1)))(params, batch['features'].astype(jnp.float32))

    table = tensor(model.word.embedding[...]).requires_grad_()
    pictures = tensor(batch['features']).requires_grad_()
    for row in range(B):
        ids = batch['text'][row, : int(batch['text_length'][row])]
        logits, _, _ = twin(model, regions(model, batch, row, pictures[row]), ids, table=table)
        (logits**2).sum().backward()
    for got, want in ((grads['word']['embedding'][...], table.grad), (features, pictures.grad)):
        assert float(want.abs().max()) > 0
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-3, atol=1e-3 * float(want.abs().max()))


def test_choices_equal_the_twin_on_each_pair():
    """Words that stand for a region carry it; the context is that of the question alone."""
    model, batch = make(choices=C), make_batch(C)
    logits, context, _ = forward(choices=C)(batch)
    assert logits.shape == (B, C)
    for row in range(B):
        v = regions(model, batch, row)
        for c in range(C):
            n = int(batch['choices_length'][row, c])
            with torch.no_grad():
                want, _, _ = twin(model, v, batch['choices'][row, c, :n], batch['choices_tags'][row, c, :n].tolist())
            np.testing.assert_allclose(logits[row, c], want[0], atol=1e-4)
        n = int(batch['text_length'][row])
        with torch.no_grad():
            _, q, _ = twin(model, v, batch['text'][row, :n], batch['text_tags'][row, :n].tolist())
        np.testing.assert_allclose(context.pooled_BD[row], q, atol=1e-5)
    assert context.memory_BSD.shape == (B, R, SMALL.width)


@pytest.mark.parametrize('choices', [0, C])
def test_padding_and_other_rows_change_nothing(choices):
    run, batch = forward(choices=choices), make_batch(choices)
    want = run(batch)
    dirty = dict(batch)
    outside = ~(np.arange(R) < np.asarray(batch['region_length'])[:, None])[..., None]
    dirty |= {name: jnp.where(outside, 3, batch[name]) for name in ('features', 'locations')}
    for name in ('text', 'choices') if choices else ('text',):
        outside = np.arange(Q) >= np.asarray(batch[f'{name}_length'])[..., None]
        dirty[name] = jnp.where(outside, 9, batch[name])
    for got, wanted in zip(jax.tree.leaves(run(dirty)), jax.tree.leaves(want)):
        np.testing.assert_array_equal(got, wanted)
    turned = run({name: x[::-1] for name, x in batch.items()})
    for got, wanted in zip(jax.tree.leaves(turned), jax.tree.leaves(want)):
        np.testing.assert_allclose(got, wanted[::-1], atol=1e-5)


def test_pictures_without_regions_and_dropout():
    batch = make_batch()
    logits, context, weights = forward()(batch | {'region_length': jnp.zeros(B, int)})
    assert np.isfinite(logits).all() and not np.asarray(context.memory_BSD).any() and not np.asarray(weights).any()
    noisy = forward(dropout=0.5)
    a, b, c = (np.asarray(noisy(batch, jax.random.key(i))[0]) for i in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 1e-3


def test_built_from_a_config():
    config = config_lib.base()
    config.model.task.update(name='updown', size='base')
    config_lib.validate(config)
    assets = types.SimpleNamespace(word=range(WORDS), answers=('a', 'b', 'c'))
    build = lambda: nnx.eval_shape(lambda: updown.build_task(config, assets, rngs=nnx.Rngs(params=0)))
    base = build()
    assert (base.width, base.dtype, base.dropout, len(base.glimpses)) == (1024, jnp.bfloat16, 0.1, 1)
    assert base.head.answer.kernel.shape == (2048, 3) and not hasattr(base, 'location')
    assert base.glimpses[0].gate == 'tanh'
    config.model.task.update(size='tiny', gate='relu')
    config.data.choices = 4
    tiny = build()
    assert tiny.head_vcr.answer.kernel.shape == (updown.SIZES['tiny'].hidden, 1) and hasattr(tiny, 'tag')
    assert tiny.glimpses[0].gate == 'relu' and not hasattr(tiny, 'head')
    config.model.task.size = 'tny'
    with pytest.raises(ValueError, match=r"config\.model\.task\.size is 'tny'. Did you mean 'tiny'"):
        build()
