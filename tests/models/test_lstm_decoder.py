"""Both LSTM decoders against PyTorch twins; the decode loop against teacher forcing; padding, beams, errors."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import parity
import pytest
import torch
from flax import nnx

from evil_jax import config as config_lib
from evil_jax.decoding import generate
from evil_jax.models import lstm_decoder
from evil_jax.models.context import Condition, Context

ROWS, BEGIN, END = 150, 140, 141
SMALL = lstm_decoder.Size(embedding=6, width=10, hidden=7, fused=12, beside=True)
B, S, A, T, M = 3, 5, 4, 6, 9
STYLES = list(lstm_decoder.STYLES)
CASES = [*((style, SMALL) for style in STYLES), ('answer', dataclasses.replace(SMALL, beside=False))]  # last: published


@functools.cache
def make(style, dropout=0.0, size=SMALL):
    build = lambda: lstm_decoder.STYLES[style](
        size, M, rows=ROWS, begin=BEGIN, dropout=dropout, rngs=nnx.Rngs(params=0)
    )  # fmt: skip
    graph, shapes = nnx.split(nnx.eval_shape(build))
    r = np.random.default_rng(0)
    # Biases and norms away from 0 and 1, so that a test sees whether each one is used.
    size_of = lambda x: x.shape[0] ** -0.5 if x.ndim == 2 else 0.3
    fill = lambda x: jnp.asarray(r.normal(x.ndim == 0, size_of(x), x.shape), x.dtype)
    params = jax.tree.map(fill, shapes)
    params['word']['embedding'][...] *= len(params['word']['embedding'][...]) ** 0.5
    return nnx.merge(graph, params)


@functools.cache
def forward(style, dropout=0.0):
    """`(context, condition, tokens, key=None) -> logits`, compiled once for all tests."""
    net = make(style, dropout)
    return jax.jit(lambda *inputs, key=None: net(None, *inputs, key=key))


def make_inputs(seed=0, lengths=(5, 2, 3), memory=M):
    r = np.random.default_rng(seed)
    x = r.normal(size=(len(lengths), S, memory)).astype(np.float32)
    x *= (np.arange(S) < np.array(lengths)[:, None])[..., None]
    pooled = r.normal(size=(len(lengths), memory)).astype(np.float32)
    context = Context(jnp.asarray(x), jnp.asarray(lengths), jnp.asarray(pooled), {})
    condition = Condition(
        jnp.zeros(len(lengths), int), jnp.asarray(r.integers(0, 140, (len(lengths), A))), jnp.asarray([4, 2, 3])
    )
    tokens = r.integers(0, 140, (len(lengths), T))
    tokens[:, 0] = BEGIN
    return context, condition, jnp.asarray(tokens)


def linear(module):
    theirs = torch.nn.Linear(*module.kernel[...].shape)
    parity.put(theirs, parity.linear(module))
    return theirs


def cell(module):
    theirs = torch.nn.LSTMCell(len(module.input.kernel[...]), module.width)
    ours = {'ih': parity.linear(module.input), 'hh': parity.linear(module.recurrent)}
    parity.put(theirs, {f'{kind}_{name}': v for name, leaves in ours.items() for kind, v in leaves.items()})
    return theirs


def tensor(x):
    return torch.from_numpy(np.array(x))


def fused(*factors):
    """PJ-X's: product, signed square root, L2 norm, times the root of the width."""
    x = torch.stack([f.expand_as(factors[0]) for f in factors]).prod(0)
    return torch.nn.functional.normalize(torch.sign(x) * x.abs().sqrt(), dim=-1) * x.shape[-1] ** 0.5


def joined(net, *factors):
    return fused(*factors) + (sum(factors) if net.size.beside else 0)


def twin_word(net, row, words, answer):
    """FME's decoder for one example: (attention over its memory and logits after each word)."""
    memory, question = row
    lower, upper, key, query, score = cell(net.lower), cell(net.upper), *map(linear, (net.key, net.query, net.score))
    h1 = c1 = h2 = c2 = torch.zeros(1, net.size.width)
    states, maps = [], []
    for word in words:
        x = torch.cat([memory.mean(0), question, answer, word, h2[0]])
        h1, c1 = lower(x[None], (h1, c1))
        weights = torch.softmax(score(torch.tanh(key(memory) + query(h1)))[:, 0], dim=0)
        h2, c2 = upper(torch.cat([weights @ memory, h1[0]])[None], (h2, c2))
        states.append(h2[0])
        maps.append(weights)
    return torch.stack(states), torch.stack(maps)


def twin_answer(net, row, words, answer):
    """PJ-X's decoder for one example."""
    memory, question = row
    lower, upper = cell(net.lower), cell(net.upper)
    image, asks, answers, found, hidden, score, attended, asked, visual = map(
        linear,
        (net.image, net.question, net.answer, net.found, net.hidden, net.score, net.attended, net.asked, net.visual),
    )
    e = answers(torch.tanh(answer))
    found_here = fused(image(memory), asks(question))
    weights = torch.softmax(score(torch.relu(hidden(fused(found(found_here), e))))[:, 0], dim=0)
    v = visual(joined(net, attended(weights @ memory), asked(question), e))
    h1 = c1 = h2 = c2 = torch.zeros(1, net.size.width)
    states = []
    for word in words:
        h1, c1 = lower(torch.tanh(word)[None], (h1, c1))
        h2, c2 = upper(joined(net, h1, v), (h2, c2))
        states.append(h2[0])
    return torch.stack(states), weights


def twin(style, net, context, condition, tokens, row):
    table, n = tensor(net.word.embedding[...]), int(context.length_B[row])
    answer = table[tensor(condition.tokens_BT[row, : int(condition.length_B[row])]).long()].mean(0)
    words = table[tensor(tokens[row]).long()]
    both = tensor(context.memory_BSD[row, :n]), tensor(context.pooled_BD[row])
    with torch.no_grad():
        states, weights = {'word': twin_word, 'answer': twin_answer}[style](net, both, words, answer)
        return states, weights, linear(net.out)(states)[:, :ROWS]


@pytest.mark.parametrize(('style', 'size'), CASES)
def test_equals_the_twin(style, size):
    """States and attention <= 1e-5, logits <= 1e-4, float32; rows of different lengths in one batch."""
    net, inputs = make(style, size=size), make_inputs()
    context = inputs[0]

    @jax.jit
    def run(context, condition, tokens):
        seen = net.begin_with(context, condition)
        answer = net.word(condition.tokens_BT)
        mean = jnp.stack([answer[b, :n].mean(0) for b, n in enumerate((4, 2, 3))])
        if style == 'word':
            weights = net.attend(seen, net.step(seen, net.word(tokens[:, 0]), net.start(B))[0][0])[1]
        else:
            weights = net.attend(context, net.answer(jnp.tanh(mean)))[1]
        return net.run(seen, net.word(tokens)), weights, net(None, context, condition, tokens)

    with jax.default_matmul_precision('highest'):
        states, weights, logits = run(*inputs)
    for row in range(B):
        n = int(context.length_B[row])
        want_states, want_weights, want = twin(style, net, *inputs, row)
        np.testing.assert_allclose(states[row], want_states, atol=1e-5)
        want_weights = want_weights[0] if style == 'word' else want_weights
        np.testing.assert_allclose(weights[row, :n], want_weights, atol=1e-5)
        np.testing.assert_allclose(logits[row, :, :ROWS], want, atol=1e-4)


def stepwise(net, context, condition, tokens):
    """Logits of every position from the decode loop's two functions."""
    logits, cache = net.prefill(None, context, condition, T)
    steps = [logits]
    for t in range(1, tokens.shape[1]):
        logits, cache = net.extend(cache, tokens[:, t], cache['length'] + t - 1)
        steps.append(logits)
    return jnp.stack(steps, axis=1), cache


@pytest.mark.parametrize('style', STYLES)
def test_decoding_equals_teacher_forcing(style):
    net, inputs = make(style), make_inputs()
    got, cache = jax.jit(lambda *a: stepwise(net, *a))(*inputs)
    np.testing.assert_allclose(got, forward(style)(*inputs), atol=1e-5)
    assert got.shape == (B, T, 256)
    assert (np.asarray(got)[..., ROWS:] < -1e8).all(), 'rows of the table that are no words'
    assert cache['length'].tolist() == [1] * B
    assert {leaf.shape[0] for leaf in jax.tree.leaves(cache)} == {B}, 'every cache leaf has the batch first'


@pytest.mark.parametrize('style', STYLES)
def test_padding_and_other_rows_change_nothing(style):
    run, (context, condition, tokens) = forward(style), make_inputs()
    want = np.asarray(run(context, condition, tokens))
    inside = (np.arange(S) < np.asarray(context.length_B)[:, None])[..., None]
    dirty = Context(jnp.where(inside, context.memory_BSD, 7.0), context.length_B, context.pooled_BD, {})
    answers = jnp.where(jnp.arange(A) < condition.length_B[:, None], condition.tokens_BT, 99)
    other = Condition(condition.answer_index_B, answers, condition.length_B)
    np.testing.assert_array_equal(run(dirty, other, tokens), want)
    changed = tokens.at[:, 4:].set(3)  # words read later
    np.testing.assert_array_equal(run(context, condition, changed)[:, :4], want[:, :4])
    turned = jax.tree.map(lambda x: x[::-1], (context, condition, tokens))
    np.testing.assert_allclose(run(*turned), want[::-1], atol=1e-6)


@pytest.mark.parametrize('style', STYLES)
def test_picture_question_answer_and_words_all_matter(style):
    run, (context, condition, tokens) = forward(style), make_inputs()
    want = run(context, condition, tokens)
    again = make_inputs(seed=1)
    for changed in (
        (Context(again[0].memory_BSD, context.length_B, context.pooled_BD, {}), condition, tokens),
        (Context(context.memory_BSD, context.length_B, again[0].pooled_BD, {}), condition, tokens),
        (context, again[1], tokens),
        (context, condition, again[2]),
    ):
        assert np.abs(np.asarray(run(*changed)) - want)[..., :ROWS].max() > 1e-3


@pytest.mark.parametrize('style', STYLES)
def test_beams_keep_their_own_states(style):
    """The score of what beam search finds is that of teacher forcing."""
    context, condition, _ = make_inputs()
    graph, params = nnx.split(make(style))
    params['out']['kernel'][...] *= 6  # less even than fresh parameters
    net = nnx.merge(graph, params)
    batch = {'mask': jnp.array([True, True, False]), 'row': jnp.arange(B)}
    limits = dict(max_tokens=T, end_id=END, pad_id=0, vocabulary=ROWS, beams=3, length_penalty=0.0)

    @jax.jit
    def run(batch, context, condition):
        tokens, lengths, scores = generate.generate(net, batch, context, condition, method='beam', **limits)
        row = jnp.concatenate([jnp.full((B, 1), BEGIN), tokens[:, :-1]], axis=1)
        log_p = jax.nn.log_softmax(net(None, context, condition, row)[..., :ROWS])
        picked = jnp.take_along_axis(log_p, tokens[..., None], axis=-1)[..., 0]
        return tokens, lengths, scores, jnp.where(jnp.arange(T) < lengths[:, None], picked, 0).sum(1)

    tokens, lengths, scores, want = run(batch, context, condition)
    np.testing.assert_allclose(scores[:2], want[:2], rtol=1e-4, atol=1e-4)
    assert len(set(np.asarray(tokens[0]).tolist())) > 1, 'a row of one word would not see whose state it continues'
    assert lengths[2] == 0


@pytest.mark.parametrize('style', STYLES)
def test_a_picture_without_regions_and_a_memory_without_places(style):
    run, (context, condition, tokens) = forward(style), make_inputs()
    none = Context(jnp.zeros((B, 0, M)), jnp.zeros(B, int), context.pooled_BD, {})
    empty = Context(jnp.zeros((B, S, M)), jnp.zeros(B, int), context.pooled_BD, {})
    logits = run(none, condition, tokens)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits, run(empty, condition, tokens), atol=1e-6)
    graph, params = nnx.split(make(style))
    total = lambda params, context: (nnx.merge(graph, params)(None, context, condition, tokens)[..., :ROWS] ** 2).mean()
    norm = jax.jit(lambda params, context: optax.tree.norm(jax.grad(total)(params, context)))
    assert norm(params, empty) < 10 * norm(params, context), 'one picture of nothing must not drown the others'
    fresh = jax.tree_util.tree_map_with_path(lambda path, x: 0 * x if 'bias' in str(path) else x, params)
    assert norm(fresh, empty) < 10 * norm(fresh, context)


@pytest.mark.parametrize('style', STYLES)
def test_dropout_needs_a_key(style):
    inputs, noisy = make_inputs(), forward(style, 0.5)
    a, b, c = (noisy(*inputs, key=jax.random.key(i)) for i in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 1e-2
    np.testing.assert_allclose(noisy(*inputs), forward(style)(*inputs), atol=1e-6)


@pytest.mark.parametrize('style', STYLES)
def test_every_dropout_has_a_key_of_its_own(style, monkeypatch):
    """The stages of a decoder: three of FME's, six of PJ-X's."""
    keys = []
    mask = lambda key, keep, shape: keys.append(jax.random.key_data(key).tolist()) or jnp.ones(shape, bool)
    monkeypatch.setattr(jax.random, 'bernoulli', mask)
    make(style, 0.5)(None, *make_inputs(), key=jax.random.key(0))
    assert len(keys) == len(set(map(tuple, keys))) == {'word': 3, 'answer': 6}[style]


def test_built_from_a_config():
    expl = types.SimpleNamespace(size=ROWS, rows=ROWS + 4, id={'<|b_rtnl|>': BEGIN}.__getitem__)
    assets, config = types.SimpleNamespace(expl=expl), config_lib.base()
    config.model.expl.update(name='lstm_decoder', size='tiny')
    for style, kind in lstm_decoder.STYLES.items():
        config.model.expl.attend = style
        config_lib.validate(config)
        build = lambda: lstm_decoder.build_expl(config, assets, memory_width=M, rngs=nnx.Rngs(params=0))
        net = nnx.eval_shape(build)
        assert type(net) is kind
        assert (net.rows, net.begin, net.dtype, net.dropout) == (ROWS, BEGIN, jnp.bfloat16, 0.1)
        logits = jax.eval_shape(lambda *inputs, build=build: build()(None, *inputs), *make_inputs())
        assert (logits.shape, logits.dtype) == ((B, T, 256), jnp.float32)
        with pytest.raises(
            ValueError, match=f'the memory of the context is {M - 1} wide, the decoder was made for {M}'
        ):
            jax.eval_shape(lambda *inputs, build=build: build()(None, *inputs), *make_inputs(memory=M - 1))
