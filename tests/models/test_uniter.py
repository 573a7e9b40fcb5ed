"""UNITER against Hugging Face's BertModel, which gets the region embeddings added here, in PyTorch."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import parity
import pytest
import torch
import transformers
from flax import nnx

from evil_jax import config as configs
from evil_jax.models import uniter

WORDS, ANSWERS, CHOICES = 120, 7, 4
SMALL = uniter.Size(layers=2, width=32, heads=4, hidden=64, positions=24, std=0.1, word_std=0.1)


def make(size, **kwargs):
    kwargs = {'answers': ANSWERS} | kwargs
    return parity.randomise(uniter.Uniter(size, words=WORDS, **kwargs, rngs=nnx.Rngs(params=0)))


def make_batch(rows, regions=5, tokens=9, seed=0):
    r = np.random.default_rng(seed)
    return {
        'text': r.integers(0, WORDS, (rows, tokens)),
        'text_type': np.zeros((rows, tokens), np.int32),
        'text_length': r.integers(2, tokens + 1, rows),
        'features': r.normal(size=(rows, regions, 2048)).astype(np.float32),
        'locations': r.random((rows, regions, 7), np.float32),
        'region_length': r.integers(1, regions + 1, rows),
    }


def make_choices(rows, regions=5, tokens=9, seed=0):
    """A batch with choices: pairs with an inner [SEP], and words that stand for a region."""
    r = np.random.default_rng(seed)
    batch = make_batch(rows, regions, tokens, seed)
    length = r.integers(4, tokens + 1, (rows, CHOICES))
    inner = r.integers(1, length - 1)
    place = np.arange(tokens)
    tags = lambda shape: r.integers(-1, batch['region_length'].reshape(-1, *[1] * (len(shape) - 1)), shape)
    return batch | {
        'text_tags': tags((rows, tokens)),
        'choices': r.integers(0, WORDS, (rows, CHOICES, tokens)),
        'choices_type': np.where((place > inner[..., None]) & (place < length[..., None]), 2, 0),
        'choices_length': length,
        'choices_tags': tags((rows, CHOICES, tokens)),
    }


class Reference(torch.nn.Module):
    """BertModel plus region embeddings and answer head, one row at a time: no padding anywhere."""

    def __init__(self, size, answers=ANSWERS, types=2, activation=torch.nn.GELU):
        super().__init__()
        config = transformers.BertConfig(
            vocab_size=WORDS, type_vocab_size=types, hidden_size=size.width, num_hidden_layers=size.layers,
            num_attention_heads=size.heads, intermediate_size=size.hidden, max_position_embeddings=size.positions,
            layer_norm_eps=1e-12, hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation='eager',
        )  # fmt: skip
        self.bert = transformers.BertModel(config)
        norm = lambda: torch.nn.LayerNorm(size.width, eps=1e-12)
        self.feature, self.feature_norm = torch.nn.Linear(2048, size.width), norm()
        self.location, self.location_norm, self.image_norm = torch.nn.Linear(7, size.width), norm(), norm()
        self.head = torch.nn.Sequential(
            torch.nn.Linear(size.width, 2 * size.width), activation(),
            torch.nn.LayerNorm(2 * size.width, eps=1e-12), torch.nn.Linear(2 * size.width, answers),
        )  # fmt: skip

    def load(self, model):
        p = parity
        bert = {
            **p.named({
                'embeddings.word_embeddings': p.table(model.text.word),
                'embeddings.position_embeddings': p.table(model.text.position),
                'embeddings.token_type_embeddings': p.table(model.text.type),
                'embeddings.LayerNorm': p.norm(model.text.norm),
                'pooler.dense': p.linear(model.pooler),
            }),
        }  # fmt: skip
        for l, block in enumerate(model.layers):
            bert |= p.prefixed(f'encoder.layer.{l}.', p.bert_layer(block))
        p.put(self.bert, bert)
        p.put(self.feature, p.linear(model.image.feature))
        p.put(self.feature_norm, p.norm(model.image.feature_norm))
        p.put(self.location, p.linear(model.image.location))
        p.put(self.location_norm, p.norm(model.image.location_norm))
        p.put(self.image_norm, p.norm(model.image.norm))
        head = model.head_vcr if model.choices else model.head
        p.put(self.head, p.named({'0': p.linear(head.up), '2': p.norm(head.norm), '3': p.linear(head.answer)}))
        return self

    def forward(self, batch, row):
        t, r = int(batch['text_length'][row]), int(batch['region_length'][row])
        text = self.bert.embeddings(input_ids=torch.from_numpy(batch['text'][row : row + 1, :t]))
        states = self.encode(text, self.regions(batch, row, r))
        return self.head(self.bert.pooler(states[-1])), states

    def regions(self, batch, row, r):
        features = torch.from_numpy(batch['features'][row : row + 1, :r])
        locations = torch.from_numpy(batch['locations'][row : row + 1, :r])
        image = self.feature_norm(self.feature(features)) + self.location_norm(self.location(locations))
        return self.image_norm(image + self.bert.embeddings.token_type_embeddings.weight[1])

    def encode(self, text, image, mask=None):
        states = [torch.cat([text, image], 1)]
        for layer in self.bert.encoder.layer:
            out = layer(states[-1], mask)
            states.append(out[0] if isinstance(out, tuple) else out)
        return states

    def linked(self, ids, types, tags, image):
        """Text embedding of one row, its linked words with their region's embedding behind the norm."""
        e = self.bert.embeddings
        x = e.word_embeddings(ids) + e.position_embeddings(torch.arange(len(ids))) + e.token_type_embeddings(types)
        return torch.stack([v if tag < 0 else v + image[0, tag] for v, tag in zip(e.LayerNorm(x), tags)])[None]


# As large as published: half a minute.
SIZES = [
    pytest.param(SMALL, id='small'),
    *(pytest.param(s, id=n, marks=[pytest.mark.acceptance] * (n == 'base')) for n, s in uniter.SIZES.items()),
]


@pytest.mark.parametrize('size', SIZES)
def test_equals_bert_with_regions(size):
    """Each layer <= 1e-5, logits <= 1e-4, gradients <= 1e-3 relative, in float32; ragged rows in one batch."""
    model, batch = make(size), make_batch(2)
    theirs = Reference(size).load(model).eval()
    graph, params = nnx.split(model, nnx.Param)

    def run(params):
        model = nnx.merge(graph, params)
        logits, context = model(batch)
        x, length, _ = model.embed(batch)
        states = [x]
        for block in model.layers:
            states.append(block(states[-1], length)[0])
        return (logits**2).sum(), (logits, context, states)

    with jax.default_matmul_precision('highest'):
        (_, (logits, context, states)), gradient = jax.jit(jax.value_and_grad(run, has_aux=True))(params)
    loss = 0.0
    for row in range(2):
        n = int(batch['text_length'][row] + batch['region_length'][row])
        wanted, wanted_states = theirs(batch, row)
        loss = loss + (wanted**2).sum()
        for layer, (got, want) in enumerate(zip(states, wanted_states)):
            assert np.abs(np.asarray(got[row, :n]) - want[0].detach().numpy()).max() <= 1e-5, f'layer {layer}'
        assert np.abs(np.asarray(logits[row]) - wanted[0].detach().numpy()).max() <= 1e-4
        assert not np.asarray(context.memory_BSD[row, n:]).any()
        assert int(context.length_B[row]) == n
    loss.backward()
    g = nnx.merge(graph, gradient)
    pairs = [
        (g.text.word.embedding[...], theirs.bert.embeddings.word_embeddings.weight.grad),
        (g.text.type.embedding[...], theirs.bert.embeddings.token_type_embeddings.weight.grad),
        (g.image.feature.kernel[...].T, theirs.feature.weight.grad),
        (g.image.location.bias[...], theirs.location.bias.grad),
        (g.layers[0].attention.value.kernel[...].T, theirs.bert.encoder.layer[0].attention.self.value.weight.grad),
        (g.layers[1].mlp_norm.scale[...], theirs.bert.encoder.layer[1].output.LayerNorm.weight.grad),
        (g.head.answer.kernel[...].T, theirs.head[3].weight.grad),
    ]
    for ours, want in pairs:
        assert parity.relative(ours, want.numpy()) <= 1e-3


def test_choices_equal_bert_with_each_pair_and_the_question_alone():
    """Each layer <= 1e-5, logits <= 1e-4, gradients <= 1e-3 relative: C + 1 passes a row, without padding."""
    model, batch = make(SMALL, choices=CHOICES, types=3), make_choices(3)
    theirs = Reference(SMALL, answers=2, types=3, activation=torch.nn.ReLU).load(model).eval()
    graph, params = nnx.split(model, nnx.Param)
    assert not hasattr(model, 'head')

    def run(params):
        model = nnx.merge(graph, params)
        logits, context = model(batch)
        x, length, _ = model.embed(batch)
        states = [x]
        for block in model.layers:
            states.append(block(states[-1], length)[0])
        return (logits**2).sum() + (context.memory_BSD**2).mean(), (logits, context, states)

    with jax.default_matmul_precision('highest'):
        (_, (logits, context, states)), gradient = jax.jit(jax.value_and_grad(run, has_aux=True))(params)
    assert logits.shape == (3, CHOICES) and (batch['choices_tags'] >= 0).any() and (batch['choices_tags'] < 0).any()
    loss, memory = 0.0, 0.0
    for row in range(3):
        r = int(batch['region_length'][row])
        image = theirs.regions(batch, row, r)
        for c in range(CHOICES + 1):
            pick = lambda n, c=c, row=row: batch[f'choices{n}'][row, c] if c < CHOICES else batch[f'text{n}'][row]
            t = int(pick('_length'))
            ids, types, tags = (torch.from_numpy(np.array(pick(n)[:t])).long() for n in ('', '_type', '_tags'))
            wanted = theirs.encode(theirs.linked(ids, types, tags.tolist(), image), image)
            for layer, (got, want) in enumerate(zip(states, wanted)):
                got = got[row * (CHOICES + 1) + c, : t + r]
                assert np.abs(np.asarray(got) - want[0].detach().numpy()).max() <= 1e-5, f'{c}, layer {layer}'
            pooled = theirs.bert.pooler(wanted[-1])
            if c < CHOICES:
                two = theirs.head(pooled)[0]
                loss = loss + (two[1] - two[0]) ** 2
                assert abs(float(logits[row, c]) - (two[1] - two[0]).item()) <= 1e-4
        # The last pass, of the question alone, is the context.
        np.testing.assert_allclose(context.memory_BSD[row, : t + r], wanted[-1][0].detach(), atol=1e-5)
        np.testing.assert_allclose(context.pooled_BD[row], pooled[0].detach(), atol=1e-5)
        assert int(context.length_B[row]) == t + r and not np.asarray(context.memory_BSD[row, t + r :]).any()
        assert [int(x[row]) for x in (*context.spans['text'], *context.spans['regions'])] == [0, t, t, r]
        memory = memory + (wanted[-1] ** 2).sum()
    (loss + memory / context.memory_BSD.size).backward()
    g = nnx.merge(graph, gradient)
    pairs = [
        (g.text.word.embedding[...], theirs.bert.embeddings.word_embeddings.weight.grad),
        (g.text.type.embedding[...], theirs.bert.embeddings.token_type_embeddings.weight.grad),
        (g.image.feature.kernel[...].T, theirs.feature.weight.grad),
        (g.image.norm.scale[...], theirs.image_norm.weight.grad),
        (g.layers[0].attention.value.kernel[...].T, theirs.bert.encoder.layer[0].attention.self.value.weight.grad),
        (g.head_vcr.up.kernel[...].T, theirs.head[0].weight.grad),
        (g.head_vcr.answer.kernel[...].T, theirs.head[3].weight.grad),
    ]
    for ours, want in pairs:
        assert parity.relative(ours, want.numpy()) <= 1e-3


def test_maps_of_choices_stand_by_example():
    model, batch = make(SMALL, choices=CHOICES, types=3), make_choices(2)
    taps = [jnp.zeros((2, CHOICES + 1, SMALL.heads, 14, 14))] * SMALL.layers
    fused, _ = jax.jit(model)(batch)
    logits, _, maps = jax.jit(model)(batch, taps=taps)
    np.testing.assert_allclose(logits, fused, atol=1e-5)
    for c in range(CHOICES + 1):
        text = batch['text_length'] if c == CHOICES else batch['choices_length'][:, c]
        for row, length in enumerate(text + batch['region_length']):
            np.testing.assert_allclose(maps[1][row, c, :, :, :length].sum(-1), 1, atol=1e-5)
            assert not np.asarray(maps[1][row, c, :, :, length:]).any()


def rows_of(batch, *rows):
    return {name: value[list(rows)] for name, value in batch.items()}


def their_padded_row(theirs, batch, row, regions, text_padding):
    """(logits, memory) of a row as e-UG computes it: text padded to Q, `regions` region slots, both in one sequence."""
    t, q = int(batch['text_length'][row]), batch['text'].shape[1]
    slots = np.arange(batch['features'].shape[1]) < batch['region_length'][row]
    batch = {**batch, 'features': batch['features'] * slots[:, None], 'locations': batch['locations'] * slots[:, None]}
    text = theirs.bert.embeddings(input_ids=torch.from_numpy(batch['text'][row : row + 1]))
    mask = torch.zeros(1, 1, 1, q + regions)
    mask[..., t:q] = -10_000
    states = theirs.encode(text, theirs.regions(batch, row, regions), mask)[-1]
    memory = states[0] if text_padding else torch.cat([states[0, :t], states[0, q:]])
    return theirs.head(theirs.bert.pooler(states))[0].detach(), memory.detach()


@pytest.mark.parametrize('pad_regions', [False, True])
@pytest.mark.parametrize('read_padding', [False, True])
def test_quirk_3_and_quirk_4_padding_as_the_published_code_reads_it(pad_regions, read_padding):
    """Quirks 3 and 4: equal to the padded sequence in PyTorch, with each, both and neither."""
    model, batch = make(SMALL, pad_regions=pad_regions, read_padding=read_padding), make_batch(4, seed=1)
    batch['text'][np.arange(9) >= batch['text_length'][:, None]] = 0  # the padding is one word piece
    counts = batch['region_length']
    assert len(set(counts.tolist())) > 2 and batch['text_length'].min() < 8
    theirs = Reference(SMALL).load(model).eval()
    logits, context = jax.jit(model)(batch)
    for row in range(4):
        t, regions = int(batch['text_length'][row]), int(counts.max() if pad_regions else counts[row])
        wanted, memory = their_padded_row(theirs, batch, row, regions, read_padding)
        np.testing.assert_allclose(logits[row], wanted, atol=1e-4)
        np.testing.assert_allclose(context.memory_BSD[row, : len(memory)], memory, atol=2e-5)
        assert (
            int(context.length_B[row]) == len(memory) and not np.asarray(context.memory_BSD[row, len(memory) :]).any()
        )
        first = 9 if read_padding else t
        assert [int(x[row]) for x in (*context.spans['text'], *context.spans['regions'])] == [0, t, first, regions]


def test_quirk_3_padded_regions_make_a_row_depend_on_its_batch():
    """Quirk 3: alone, or beside a picture with more regions. Without it the two are the same."""
    batch = make_batch(4, seed=1)
    small, large = np.argmin(batch['region_length']), np.argmax(batch['region_length'])
    for pad_regions in (False, True):
        model = jax.jit(make(SMALL, pad_regions=pad_regions))
        alone, beside = (model(rows_of(batch, *rows)) for rows in ((small,), (small, large)))
        assert np.allclose(alone[0][0], beside[0][0], atol=1e-5) == (not pad_regions)
        assert (alone[1].length_B[0] == beside[1].length_B[0]) == (not pad_regions)


@pytest.mark.parametrize('quirks', [{'pad_regions': True}, {'read_padding': True}])
def test_choices_with_padding_as_the_published_code_reads_it(quirks):
    """The question alone is read as a batch of questions without choices is; a pair sees what the question sees."""
    batch = make_choices(3, seed=2)
    batch['text_tags'] = np.full_like(batch['text_tags'], -1)
    model, plain = make(SMALL, choices=CHOICES, types=3, **quirks), make(SMALL, types=3, **quirks)
    for name in ('text', 'image', 'layers', 'pooler'):
        setattr(plain, name, getattr(model, name))
    run = jax.jit(model)
    logits, context = run(batch)
    _, wanted = jax.jit(plain)(batch)
    for got, want in zip(jax.tree.leaves(context), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)
    turned = {name: value[:, ::-1] if name.startswith('choices') else value for name, value in batch.items()}
    again, _ = run(turned)
    np.testing.assert_allclose(again, logits[:, ::-1], atol=1e-5)


QUIRKS = [('fixed', (False, False)), ('original', (True, True)), ('3', (True, False)), ('4', (False, True))]


@pytest.mark.parametrize(('compat', 'wanted'), QUIRKS)
def test_the_config_asks_for_quirks(compat, wanted):
    config = configs.base()
    config.compat, config.model.task.size = compat, 'tiny'
    assets = types.SimpleNamespace(word=range(WORDS), answers=('yes', 'no'))
    model = nnx.eval_shape(lambda: uniter.build_task(config, assets, rngs=nnx.Rngs(params=0)))
    assert (model.pad_regions, model.read_padding) == wanted
    assert model.text.type.embedding.shape[0] == 2 and model.head.answer.kernel.shape[1] == 2
    config.data.choices = 4
    model = nnx.eval_shape(lambda: uniter.build_task(config, assets, rngs=nnx.Rngs(params=0)))
    assert model.text.type.embedding.shape[0] == 3 and model.head_vcr.answer.kernel.shape[1] == 2


def test_padding_changes_nothing():
    """The same rows in a batch with more text and region slots, filled with junk, give the same answer and memory."""
    model, batch = make(SMALL), make_batch(3)
    wide = dict(batch)
    wide['text'] = np.concatenate([batch['text'], np.full((3, 4), 7)], 1)
    wide['text_type'] = np.zeros_like(wide['text'])
    wide['features'] = np.concatenate([batch['features'], np.full((3, 2, 2048), 9.0, np.float32)], 1)
    wide['locations'] = np.concatenate([batch['locations'], np.full((3, 2, 7), 9.0, np.float32)], 1)
    (a, x), (b, y) = model(batch), model(wide)
    np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(x.memory_BSD, y.memory_BSD[:, : x.memory_BSD.shape[1]], atol=1e-5)


def test_spans_point_at_words_and_regions():
    model, batch = make(SMALL), make_batch(3)
    _, context = model(batch)
    np.testing.assert_array_equal(context.spans['regions'][0], batch['text_length'])
    np.testing.assert_array_equal(context.spans['text'][1], batch['text_length'])
    np.testing.assert_array_equal(context.length_B, batch['text_length'] + batch['region_length'])


def test_taps_are_the_attention_maps_and_change_nothing():
    model, batch = make(SMALL), make_batch(2)
    size = batch['text'].shape[1] + batch['features'].shape[1]
    taps = [jnp.zeros((2, SMALL.heads, size, size))] * SMALL.layers
    fused, _ = model(batch)
    logits, _, maps = model(batch, taps=taps)
    np.testing.assert_allclose(logits, fused, atol=1e-5)
    np.testing.assert_allclose(maps[0].sum(-1), 1, atol=1e-5)
    assert float(maps[0][0, :, :, int(batch['text_length'][0] + batch['region_length'][0]) :].sum()) == 0


def test_dropout_and_remat():
    """Dropout acts only with a key; recomputing blocks changes neither value nor gradient."""
    kwargs = dict(words=WORDS, answers=ANSWERS, dropout=0.3, rngs=nnx.Rngs(params=0))
    plain, batch, key = uniter.Uniter(SMALL, **kwargs), make_batch(2), jax.random.key(3)
    again = uniter.Uniter(SMALL, **{**kwargs, 'remat': True, 'rngs': nnx.Rngs(params=0)})
    assert np.array_equal(plain(batch)[0], plain(batch)[0])
    assert not np.allclose(plain(batch)[0], plain(batch, key=key)[0], atol=1e-3)
    grads = []
    for model in (plain, again):
        graph, params = nnx.split(model, nnx.Param)
        f = lambda p, graph=graph: (nnx.merge(graph, p)(batch, key=key)[0] ** 2).sum()
        grads.append(jax.jit(jax.grad(f))(params))
    for a, b in zip(*map(jax.tree.leaves, grads)):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)
