"""GPT-2 against Hugging Face's GPT2LMHeadModel on the same rows; e-UG's rows; the cache against full recomputation."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import parity
import pytest
import torch
import transformers
from flax import nnx

from evil_jax import config as config_lib
from evil_jax.decoding import generate
from evil_jax.models import gpt2
from evil_jax.models.context import Condition, Context

ROWS = 150  # the last four are the type rows
MARKERS = gpt2.Markers(b_img=140, e_img=141, b_rtnl=142, types=(146, 147, 148, 149))
SMALL = gpt2.Size(layers=2, width=32, heads=4, positions=96, std=0.1)
S, Q, A, T = 8, 6, 5, 7


def make(size, rows=ROWS, markers=MARKERS, late=False, image='memory'):
    model = gpt2.Gpt2(size, rows=rows, markers=markers, late=late, image=image, rngs=nnx.Rngs(params=0))
    return parity.randomise(model)


def make_inputs(width, rows=3, seed=0):
    r = np.random.default_rng(seed)
    length = r.integers(3, S + 1, rows)
    memory = r.normal(size=(rows, S, width)).astype(np.float32) * (np.arange(S) < length[:, None])[..., None]
    context = Context(jnp.asarray(memory), jnp.asarray(length), jnp.zeros((rows, width)), {})
    batch = {'question': r.integers(0, 140, (rows, Q)), 'question_length': r.integers(2, Q + 1, rows)}
    condition = Condition(
        jnp.zeros(rows, int), jnp.asarray(r.integers(0, 140, (rows, A))), jnp.asarray(r.integers(2, A + 1, rows))
    )
    tokens = r.integers(0, 140, (rows, T))
    tokens[:, 0] = MARKERS.b_rtnl
    return batch, context, condition, tokens


def reference(model, size):
    config = transformers.GPT2Config(
        vocab_size=ROWS, n_positions=size.positions, n_embd=size.width, n_layer=size.layers, n_head=size.heads,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation='eager',
    )  # fmt: skip
    theirs = transformers.GPT2LMHeadModel(config)
    p = parity
    tensors = p.named({'wte': p.table(model.wte, ROWS), 'wpe': p.table(model.wpe), 'ln_f': p.norm(model.norm)})
    for l, block in enumerate(model.layers):
        tensors |= p.prefixed(f'h.{l}.', p.gpt2_block(block))
    p.put(theirs.transformer, tensors)
    return theirs.eval()


WORDS = dataclasses.replace(MARKERS, types=(0, 1, 2, 3))
QUIRKS = {
    '1': dict(late=True),
    '2': dict(rows=ROWS - 4, markers=WORDS),
    '1,2': dict(late=True, rows=ROWS - 4, markers=WORDS),
}


def quirky_row(theirs, inputs, row, late, type_rows):
    """Logits [T, V] of one row, made as e-UG's code makes it: token ids first, then the memory is written over them."""
    batch, context, condition, tokens = inputs
    n, q, a = int(context.length_B[row]), int(batch['question_length'][row]), int(condition.length_B[row])
    filler = 7
    image = [MARKERS.b_img, *[filler] * (n - 2 if late else n), MARKERS.e_img]
    pieces = image, batch['question'][row, :q], condition.tokens_BT[row, :a], tokens[row]
    ids = torch.from_numpy(np.concatenate([np.asarray(p) for p in pieces]))
    kinds = np.repeat(np.arange(4), [len(p) for p in pieces])
    with torch.no_grad():
        x = theirs.transformer.wte(ids)
        x[1 : n + 1] = torch.from_numpy(np.array(context.memory_BSD[row, :n]))
        return theirs(inputs_embeds=x[None], token_type_ids=torch.tensor(type_rows)[kinds][None]).logits[0, -T:]


def their_row(theirs, inputs, row):
    """Logits [T, V] of one row through inputs_embeds and token_type_ids, without padding."""
    batch, context, condition, tokens = inputs
    n, q, a = int(context.length_B[row]), int(batch['question_length'][row]), int(condition.length_B[row])
    wte = theirs.transformer.wte
    ids = lambda x: wte(torch.from_numpy(np.array(x)))
    pieces = [
        ids([MARKERS.b_img]), torch.from_numpy(np.array(context.memory_BSD[row, :n])), ids([MARKERS.e_img]),
        ids(batch['question'][row, :q]), ids(condition.tokens_BT[row, :a]), ids(tokens[row]),
    ]  # fmt: skip
    types = [0] * (n + 2) + [1] * q + [2] * a + [3] * T
    types = torch.tensor([[MARKERS.types[t] for t in types]])
    out = theirs(inputs_embeds=torch.cat(pieces)[None], token_type_ids=types, output_hidden_states=True)
    return out.logits[0, -T:], [h[0] for h in out.hidden_states]


SIZES = [
    pytest.param(SMALL, id='small'),
    pytest.param(gpt2.SIZES['tiny'], id='tiny'),
    pytest.param(gpt2.SIZES['base'], id='base', marks=pytest.mark.acceptance),  # half a minute
]


@pytest.mark.parametrize('size', SIZES)
def test_equals_gpt2_lm_head_model(size):
    """Each layer <= 1e-5 relative, logits <= 1e-4, gradients <= 1e-3 relative, in float32; ragged rows in one batch."""
    model = make(size)
    inputs = make_inputs(size.width)
    batch, context, condition, tokens = inputs
    theirs = reference(model, size)
    graph, params = nnx.split(model, nnx.Param)

    def run(params):
        model = nnx.merge(graph, params)
        logits = model(batch, context, condition, tokens)
        x, _, _ = model.embed(batch, context, condition, jnp.asarray(tokens), jnp.full(3, T))
        states = [x]
        for block in model.layers:
            states.append(block(states[-1])[0])
        return (logits[..., :ROWS] ** 2).mean(), (logits, states)

    with jax.default_matmul_precision('highest'):
        (_, (logits, states)), gradient = jax.jit(jax.value_and_grad(run, has_aux=True))(params)
    assert logits.shape == (3, T, 256)
    assert (np.asarray(logits[..., ROWS:]) == -1e9).all()
    loss = 0.0
    for row in range(3):
        want, hidden = their_row(theirs, inputs, row)
        loss = loss + (want**2).mean() / 3
        np.testing.assert_allclose(logits[row, :, :ROWS], want.detach(), atol=1e-4, rtol=0)
        for layer, (ours, h) in enumerate(zip(states, hidden[:-1])):  # theirs ends with the final norm
            assert parity.relative(ours[row, : len(h)], h.detach()) <= 1e-5, f'layer {layer}'
    loss.backward()
    g, t = nnx.merge(graph, gradient), theirs.transformer
    width = size.width
    pairs = [
        (g.wte.embedding[...][:ROWS], t.wte.weight.grad),
        (g.wpe.embedding[...], t.wpe.weight.grad),
        (g.layers[0].attention.key.kernel[...], t.h[0].attn.c_attn.weight.grad[:, width : 2 * width]),
        (g.layers[1].mlp.down.kernel[...], t.h[1].mlp.c_proj.weight.grad),
        (g.norm.scale[...], t.ln_f.weight.grad),
    ]
    for ours, want in pairs:
        assert parity.relative(ours, want.numpy()) <= 1e-3


def test_cache_equals_full_recomputation():
    """Prefill and extend give, token for token, what the full rows give; prompts of different lengths in a batch."""
    model = make(SMALL)
    batch, context, condition, tokens = make_inputs(SMALL.width)
    full = model(batch, context, condition, tokens)
    logits, cache = model.prefill(batch, context, condition, T)
    lengths = 2 + context.length_B + batch['question_length'] + condition.length_B + 1
    np.testing.assert_array_equal(cache['length'], lengths)
    assert len({int(n) for n in lengths}) > 1
    assert all(leaf.shape[0] == 3 for leaf in jax.tree.leaves(cache))
    for t in range(T):
        np.testing.assert_allclose(logits, full[:, t], atol=2e-5, rtol=1e-5)
        if t + 1 < T:
            logits, cache = model.extend(cache, jnp.asarray(tokens[:, t + 1]), cache['length'] + t)


@pytest.mark.parametrize('quirks', QUIRKS)
def test_quirk_1_and_quirk_2_rows_of_the_published_code(quirks):
    """Quirks 1 and 2, alone and together, in teacher forcing and token by token; each changes the logits."""
    settings = QUIRKS[quirks]
    model, inputs = make(SMALL, **settings), make_inputs(SMALL.width)
    batch, context, condition, tokens = inputs
    theirs, rows = reference(model, SMALL), model.rows
    want = np.stack([quirky_row(theirs, inputs, row, model.late, model.markers.types) for row in range(3)])
    full = model(*inputs)
    np.testing.assert_allclose(full[..., :rows], want[..., :rows], atol=1e-5)
    assert (np.asarray(full[..., rows:]) == -1e9).all()
    logits, cache = model.prefill(batch, context, condition, T)
    for t in range(T):
        np.testing.assert_allclose(logits[:, :rows], want[:, t, :rows], atol=2e-5)
        logits, cache = model.extend(cache, jnp.asarray(tokens[:, min(t + 1, T - 1)]), cache['length'] + t)
    for other in ({}, *(s for q, s in QUIRKS.items() if q != quirks)):
        changed = make(SMALL, **other)(*inputs)[..., : ROWS - 4] - full[..., : ROWS - 4]
        assert np.abs(np.asarray(changed)).max() > 1e-3


def test_the_row_lost_its_two_markers():
    """Quirk 1: a row is one marker, the memory and the question without its first token."""
    model, inputs = make(SMALL, late=True), make_inputs(SMALL.width)
    batch, context, condition, tokens = inputs
    _, cache = model.prefill(batch, context, condition, T)
    np.testing.assert_array_equal(cache['length'], context.length_B + batch['question_length'] + condition.length_B + 1)
    changed = {**batch, 'question': np.concatenate([batch['question'][:, :1] + 1, batch['question'][:, 1:]], axis=1)}
    np.testing.assert_array_equal(model(changed, context, condition, tokens), model(*inputs))


@pytest.mark.parametrize(('image', 'late'), [('memory', False), ('memory', True), ('tags', False), ('none', False)])
def test_spans_are_where_the_pieces_are(image, late):
    """Positions of each span, without their position and type rows, are the vectors that were put there."""
    model = make(SMALL, image=image, late=late)
    batch, context, condition, tokens = make_inputs(SMALL.width)
    batch |= {'objects': tokens[:, ::-1], 'objects_length': np.array([3, T, 2])}
    length = np.array([T, 2, 4])
    x, _, end = model.embed(batch, context, condition, tokens, length)
    spans = model.spans(batch, context, condition, tokens, length)
    word = np.asarray(model.wte.embedding[...])
    free = np.asarray(x) - np.asarray(model.wpe.embedding[...])[: x.shape[1]]
    wanted = {'memory': (context.memory_BSD, context.length_B), 'objects': (word[batch['objects']], [3, T, 2])}
    wanted = {name: wanted[name] for name in {'memory': ['memory'], 'tags': ['objects'], 'none': []}[image]} | {
        'question': (word[batch['question']][:, int(late) :], batch['question_length'] - int(late)),
        'answer': (word[condition.tokens_BT], condition.length_B),
        'explanation': (word[tokens], length),
    }
    assert list(spans) == list(wanted)
    for kind, (name, (vectors, lengths)) in zip((([] if image == 'none' else [0]) + [1, 2, 3]), wanted.items()):
        start, number = (np.asarray(a) for a in spans[name])
        np.testing.assert_array_equal(number, lengths)
        for row in range(3):
            there = free[row, start[row] : start[row] + number[row]] - word[MARKERS.types[kind]]
            if name == 'memory' and late:  # its last vector has the question's type
                there[-1] += word[MARKERS.types[0]] - word[MARKERS.types[1]]
            np.testing.assert_allclose(there, np.asarray(vectors)[row, : number[row]], atol=1e-5)
    np.testing.assert_array_equal(sum(spans['explanation']), end)


@pytest.mark.parametrize('quirks', ['fixed', '1', '2', 'original'])
def test_quirks_of_a_config(quirks):
    config = config_lib.shrink(config_lib.base())
    config.compat, config.data.max_regions = quirks, 20
    expl = types.SimpleNamespace(size=46, rows=50, type_ids=(46, 47, 48, 49), id=lambda token: 1)
    build = lambda: gpt2.build_expl(config, types.SimpleNamespace(expl=expl), memory_width=128, rngs=nnx.Rngs(params=0))
    model = nnx.eval_shape(build)
    assert model.late == (quirks in ('1', 'original'))
    words = quirks in ('2', 'original')
    assert (model.rows, model.markers.types) == ((46, (0, 1, 2, 3)) if words else (50, (46, 47, 48, 49)))
    # max_text + max_regions + max_question + max_answer + 1 + max_explanation, and the two markers where they are read
    config.data.max_regions = 256 - 20 - 19 - 23 - 52 - (0 if model.late else 2)
    nnx.eval_shape(build)
    config.data.max_regions += 1
    with pytest.raises(ValueError, match='rows of up to 257 positions'):
        nnx.eval_shape(build)


def test_padding_changes_nothing():
    """Junk behind a question, an answer or in unused memory slots does not reach the logits."""
    model = make(SMALL)
    batch, context, condition, tokens = make_inputs(SMALL.width)
    before = model(batch, context, condition, tokens)
    past = np.arange(Q) >= batch['question_length'][:, None]
    batch = {**batch, 'question': np.where(past, 3, batch['question'])}
    memory = jnp.where((jnp.arange(S) < context.length_B[:, None])[..., None], context.memory_BSD, 5.0)
    context = Context(memory, context.length_B, context.pooled_BD, {})
    np.testing.assert_allclose(model(batch, context, condition, tokens), before, atol=1e-6)


O = 6


def named(inputs, width):
    """The same with names of objects, and a context without vectors, as BERT's; one row without names."""
    batch, _, condition, tokens = inputs
    r = np.random.default_rng(1)
    objects, length = r.integers(0, 140, (3, O)), np.array([2, O, 4])
    objects[:, 0] = MARKERS.b_img
    objects[np.arange(3), length - 1] = MARKERS.e_img
    context = Context(jnp.zeros((3, 0, width)), jnp.zeros(3, int), jnp.zeros((3, width)), {})
    return {**batch, 'objects': objects, 'objects_length': length}, context, condition, tokens


@pytest.mark.parametrize('image', ['tags', 'none', 'memory'])
def test_rows_without_vectors_of_the_picture(image):
    """Names as text, nothing, or an empty memory: GPT2LMHeadModel(input_ids, token_type_ids); then token by token."""
    model = make(SMALL, image=image)
    batch, _, condition, tokens = inputs = named(make_inputs(SMALL.width), 48 if image != 'memory' else 32)
    theirs = reference(model, SMALL)
    full = jax.jit(lambda *inputs: model(*inputs))(*inputs)
    lengths = []
    for row in range(3):
        n, q, a = (int(x[row]) for x in (batch['objects_length'], batch['question_length'], condition.length_B))
        piece = {'tags': batch['objects'][row, :n], 'none': [], 'memory': [MARKERS.b_img, MARKERS.e_img]}[image]
        pieces = [piece, batch['question'][row, :q], condition.tokens_BT[row, :a], tokens[row]]
        ids = np.concatenate([np.asarray(p, int) for p in pieces])
        kinds = np.repeat(MARKERS.types, [len(p) for p in pieces])
        with torch.no_grad():
            want = theirs(torch.from_numpy(ids)[None], token_type_ids=torch.from_numpy(kinds)[None]).logits[0, -T:]
        np.testing.assert_allclose(full[row, :, :ROWS], want, atol=1e-4, rtol=0)
        lengths.append(len(ids) - T + 1)
    logits, cache = model.prefill(*inputs[:3], T)
    assert cache['length'].tolist() == lengths
    for t in range(T):
        np.testing.assert_allclose(logits, full[:, t], atol=2e-5, rtol=1e-5)
        logits, cache = model.extend(cache, jnp.asarray(tokens[:, min(t + 1, T - 1)]), cache['length'] + t)


@pytest.mark.parametrize('method', ['greedy', 'beam'])
def test_decoding_without_memory(method):
    """Rows of a context without vectors, as BERT's, are decoded as any; padding behind the names changes nothing."""
    model = make(SMALL, image='tags')
    batch, context, condition, _ = named(make_inputs(SMALL.width), 32)
    batch['mask'] = np.array([True, True, False])
    limits = dict(method=method, max_tokens=5, end_id=143, pad_id=0, vocabulary=146, beams=2)
    run = jax.jit(lambda batch: generate.generate(model, batch, context, condition, **limits))
    tokens, length, score = run(batch)
    assert (length[:2] > 0).all() and length[2] == 0
    batch['objects'] = np.where(np.arange(O) < batch['objects_length'][:, None], batch['objects'], 5)
    for ours, again in zip((tokens, length, score), run(batch)):
        np.testing.assert_allclose(ours, again, atol=1e-5)
    batch['objects'] = np.where(batch['objects'] == MARKERS.b_img, 7, batch['objects'])
    assert np.abs(np.asarray(run(batch)[2] - score)).max() > 1e-3


def test_image_of_a_config():
    config = config_lib.shrink(config_lib.base())
    expl = types.SimpleNamespace(size=46, rows=50, type_ids=(46, 47, 48, 49), id=lambda token: 1)

    def build(image, width=77, **changes):
        with config.unlocked():
            config.update({'compat': 'fixed'} | changes)
        config.model.expl.image = image
        make = lambda: gpt2.build_expl(
            config, types.SimpleNamespace(expl=expl), memory_width=width, rngs=nnx.Rngs(params=0)
        )
        return nnx.eval_shape(make)

    with pytest.raises(ValueError, match=r"image is 'tags', but config\.data\.objects is '': set it to 'detected' or"):
        build('tags')
    config.data.objects = 'detected'
    for image in ('tags', 'none'):
        assert build(image).image == image, 'whatever the width of M_T'
        assert build(image, compat='2,5').markers.types == (0, 1, 2, 3)
        for quirks in ('original', '1,2'):
            with pytest.raises(ValueError, match=f"quirk 1, of rows with image='memory', but .* is '{image}'"):
                build(image, compat=quirks)
    with pytest.raises(ValueError, match='77 wide, GPT-2 128'):
        build('memory')
    config.data.update(max_regions=9999, max_text=9999)  # neither is part of the row
    config.data.max_objects = 256 - 19 - 23 - 52
    build('tags')
    config.data.max_objects += 1
    build('none')
    with pytest.raises(ValueError, match='rows of up to 257 positions'):
        build('tags')


def test_width_of_the_context_is_checked():
    model = make(SMALL)
    batch, context, condition, tokens = make_inputs(16)
    with pytest.raises(ValueError, match='16 wide, GPT-2 32'):
        model(batch, context, condition, tokens)
