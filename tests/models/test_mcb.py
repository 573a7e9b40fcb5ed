"""PJ-X's answering half against a twin in PyTorch, one row at a time: no padding anywhere."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import parity
import pytest
import torch
from flax import nnx

from evil_jax import config as configs
from evil_jax.models import mcb

WORDS, ANSWERS, CHOICES, CELLS, TOKENS = 50, 5, 3, 6, 7
SMALL = mcb.Size(embedding=6, width=16, sketch=64, hidden=12, glimpses=2, places=True)
PUBLISHED = dataclasses.replace(SMALL, places=False)
FUSIONS = ('mcb', 'product')


def make(fusion='mcb', size=SMALL, **kwargs):
    kwargs = {'answers': ANSWERS} | kwargs
    return parity.randomise(mcb.Pjx(size, words=WORDS, fusion=fusion, **kwargs, rngs=nnx.Rngs(params=0)))


def make_batch(rows=3, seed=0):
    """Ragged rows; the first is full. Padding is not zero: nothing may read it."""
    r = np.random.default_rng(seed)
    full = lambda n, least: np.append(n, r.integers(least, n, rows - 1)).astype(np.int32)
    return {
        'text': r.integers(0, WORDS, (rows, TOKENS)),
        'text_length': full(TOKENS, 2),
        'choices': r.integers(0, WORDS, (rows, CHOICES, TOKENS)),
        'choices_length': r.integers(2, TOKENS + 1, (rows, CHOICES)),
        'features': r.normal(size=(rows, CELLS, 2048)).astype(np.float32),
        'locations': r.random((rows, CELLS, 7), np.float32),
        'region_length': full(CELLS, 1),
    }


class Twin(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        size, nn = model.size, torch.nn
        self.word = nn.Embedding(WORDS, size.embedding)
        self.lstm = nn.LSTM(size.embedding, size.width // 2, num_layers=2, batch_first=True)
        self.image = nn.Linear(2048, size.width)
        if size.places:
            self.location, self.location_norm = nn.Linear(7, size.width), nn.LayerNorm(size.width, eps=1e-5)
        self.is_mcb = isinstance(model.fuse, mcb.Mcb)
        inner = size.sketch if self.is_mcb else size.width
        glimpses = size.glimpses if self.is_mcb else 1
        self.hidden, self.score = nn.Linear(inner, size.hidden), nn.Linear(size.hidden, glimpses)
        if self.is_mcb:
            self.norms = nn.ModuleList([nn.LayerNorm(inner, eps=1e-5) for _ in range(2)])
        else:
            self.map = nn.Linear(size.width, size.width)
        head = model.head_vcr if model.choices else model.head
        self.answer = nn.Linear(inner, head.answer.kernel.shape[1])
        self.sketches = []
        p = parity
        p.put(self.word, p.table(model.question.word))
        lstm = {}
        for n, layer in enumerate(model.question.layers):
            lstm |= {f'{k}_ih_l{n}': v for k, v in p.linear(layer.input).items()}
            lstm |= {f'{k}_hh_l{n}': v for k, v in p.linear(layer.recurrent).items()}
        p.put(self.lstm, lstm)
        p.put(self.image, p.linear(model.image))
        if size.places:
            p.put(self.location, p.linear(model.location))
            p.put(self.location_norm, p.norm(model.location_norm))
        p.put(self.hidden, p.linear(model.attention.hidden))
        p.put(self.score, p.linear(model.attention.score))
        p.put(self.answer, p.linear(head.answer))
        for n, fuse in enumerate((model.fuse, model.fuse_again)):
            if self.is_mcb:
                p.put(self.norms[n], p.norm(fuse.norm))
                parts = fuse.bilinear.first, fuse.bilinear.second
                self.sketches.append([np.asarray(x[...], np.int64) for s in parts for x in (s.hash, s.sign)])
            elif n:
                p.put(self.map, p.linear(fuse.map))
            else:
                assert fuse.map is None
        self.size = size

    def question(self, ids):
        _, (h, _) = self.lstm(torch.tanh(self.word(torch.as_tensor(ids).long()[None])))
        return torch.cat([h[0], h[1]], -1)[0]

    def cells(self, features, locations):
        features, locations = torch.from_numpy(features), torch.from_numpy(locations)
        whole = features / features.norm() * features.numel() ** 0.5
        where = self.location_norm(self.location(locations)) if self.size.places else 0
        return self.image(whole) + where

    def bilinear(self, x, q, number):
        """The outer product, each element added where its hash says."""
        h, s, h2, s2 = map(torch.from_numpy, self.sketches[number])
        outer = (x * s)[..., :, None] * (q * s2)[..., None, :]
        place = (h[:, None] + h2[None]) % self.size.sketch
        out = torch.zeros(*x.shape[:-1], self.size.sketch)
        return out.index_add(-1, place.flatten(), outer.flatten(-2))

    def normed(self, x, number):
        return self.norms[number](x / torch.sqrt(x.abs() + 1e-8))

    def fuse(self, x, q, number):
        if self.is_mcb:
            return self.normed(self.bilinear(x, q, number), number)
        if number:
            x = self.map(x)
        fused = x * q
        root = fused / torch.sqrt(fused.abs() + 1e-8)
        return root / root.norm(dim=-1, keepdim=True)

    def attend(self, fused, cells):
        weights = torch.softmax(self.score(torch.relu(self.hidden(fused))), 0)
        return (weights.T @ cells).flatten(), weights.T

    def forward(self, ids, features, locations):
        question, cells = self.question(ids), self.cells(features, locations)
        attended, _ = self.attend(self.fuse(cells, question.expand(len(cells), -1), 0), cells)
        return self.answer(self.fuse(attended, question, 1)), cells, question


def row_of(batch, row):
    r = int(batch['region_length'][row])
    return batch['features'][row, :r], batch['locations'][row, :r]


def ids_of(batch, row, choice=None):
    name, where = ('text', row) if choice is None else ('choices', (row, choice))
    return batch[name][where][: int(batch[f'{name}_length'][where])]


@pytest.mark.parametrize('fusion', FUSIONS)
def test_each_layer_equals_torch(fusion):
    """<= 1e-5. The root of a number near 0 turns 1e-8 into 1e-4: each layer gets what ours gave the one before."""
    model, batch = make(fusion), make_batch()
    twin = Twin(model).eval()
    near = lambda ours, theirs: np.testing.assert_allclose(ours, theirs.detach(), atol=1e-5)

    @jax.jit
    def run():
        cells, valid = model.cells(batch)
        question = model.question(batch['text'], batch['text_length'])
        fused = model.fuse(cells, question[:, None])
        attended, weights = model.attention(fused[:, None], cells, valid)
        answering = model.fuse_again(attended[:, 0], question)
        bilinear = []
        if fusion == 'mcb':
            bilinear += [model.fuse.bilinear(cells, question[:, None])]
            bilinear += [model.fuse_again.bilinear(attended[:, 0], question)]
        return cells, question, fused, attended[:, 0], weights[:, 0], answering, model.head(answering), bilinear

    with jax.default_matmul_precision('highest'):
        cells, question, fused, attended, weights, answering, logits, bilinear = run()
    given = lambda x: torch.from_numpy(np.array(x))
    for row in range(3):
        r = int(batch['region_length'][row])
        near(question[row], twin.question(ids_of(batch, row)))
        near(cells[row, :r], twin.cells(*row_of(batch, row)))
        q, v = given(question[row]), given(cells[row, :r])
        want, want_weights = twin.attend(given(fused[row, :r]), v)
        near(attended[row], want)
        near(weights[row, :, :r], want_weights)
        assert not np.asarray(weights[row, :, r:]).any()
        near(logits[row], twin.answer(given(answering[row])))
        stages = [(v, q.expand(r, -1), fused[row, :r]), (given(attended[row]), q, answering[row])]
        for number, (x, y, got) in enumerate(stages):
            if fusion == 'product':
                near(got, twin.fuse(x, y, number))
                continue
            ours = bilinear[number][row][:r] if number == 0 else bilinear[number][row]
            near(ours, twin.bilinear(x, y, number))
            near(got, twin.normed(given(ours), number))


@pytest.mark.parametrize('fusion', FUSIONS)
def test_the_model_equals_torch(fusion):
    """Logits <= 1e-4, gradients <= 1e-3 relative."""
    model, batch = make(fusion), make_batch()
    twin = Twin(model).eval()
    graph, params, constants = nnx.split(model, lambda path, x: jnp.issubdtype(x.dtype, jnp.floating), ...)

    def run(params):
        logits, context = nnx.merge(graph, params, constants)(batch)
        return (logits**2).sum() + (context.memory_BSD**2).mean(), (logits, context)

    with jax.default_matmul_precision('highest'):
        (_, (logits, context)), gradient = jax.jit(jax.value_and_grad(run, has_aux=True))(params)
    loss, memory = 0.0, 0.0
    for row in range(3):
        want, cells, question = twin(ids_of(batch, row), *row_of(batch, row))
        r = len(cells)
        assert np.abs(np.asarray(logits[row]) - want.detach().numpy()).max() <= 1e-4
        np.testing.assert_allclose(context.memory_BSD[row, :r], cells.detach(), atol=1e-5)
        np.testing.assert_allclose(context.pooled_BD[row], question.detach(), atol=1e-5)
        assert not np.asarray(context.memory_BSD[row, r:]).any() and int(context.length_B[row]) == r
        loss, memory = loss + (want**2).sum(), memory + (cells**2).sum()
    assert [x.tolist() for x in context.spans['regions']] == [[0, 0, 0], batch['region_length'].tolist()]
    (loss + memory / context.memory_BSD.size).backward()
    g = nnx.merge(graph, gradient, constants)
    pairs = [
        (g.question.word.embedding[...], twin.word.weight.grad),
        (g.question.layers[0].input.kernel[...].T, twin.lstm.weight_ih_l0.grad),
        (g.question.layers[1].recurrent.kernel[...].T, twin.lstm.weight_hh_l1.grad),
        (g.image.kernel[...].T, twin.image.weight.grad),
        (g.location.kernel[...].T, twin.location.weight.grad),
        (g.attention.hidden.kernel[...].T, twin.hidden.weight.grad),
        (g.head.answer.kernel[...].T, twin.answer.weight.grad),
    ]
    if fusion == 'mcb':
        pairs += [(g.fuse.norm.scale[...], twin.norms[0].weight.grad)]
    else:
        pairs += [(g.fuse_again.map.kernel[...].T, twin.map.weight.grad)]
    for ours, want in pairs:
        assert parity.relative(ours, want.numpy()) <= 1e-3


@pytest.mark.parametrize(('fusion', 'size'), [('mcb', mcb.SIZES['tiny']), *((fusion, PUBLISHED) for fusion in FUSIONS)])
def test_other_sizes_equal_torch(fusion, size):
    """The one for laptops, and cells without places, as published."""
    assert not mcb.SIZES['base'].places
    model, batch = make(fusion, size), make_batch(2)
    twin = Twin(model).eval()
    with jax.default_matmul_precision('highest'):
        logits, context = jax.jit(model)(batch)
    for row in range(2):
        want, cells, question = twin(ids_of(batch, row), *row_of(batch, row))
        assert np.abs(np.asarray(logits[row]) - want.detach().numpy()).max() <= 1e-4
        np.testing.assert_allclose(context.memory_BSD[row, : len(cells)], cells.detach(), atol=1e-5)
        np.testing.assert_allclose(context.pooled_BD[row], question.detach(), atol=1e-5)


@pytest.mark.parametrize('fusion', FUSIONS)
def test_choices_are_answered_one_by_one_and_explained_by_the_question_alone(fusion):
    model, batch = make(fusion, choices=CHOICES), make_batch()
    assert not hasattr(model, 'head') and model.head_vcr.answer.kernel.shape[1] == 1
    twin = Twin(model).eval()
    with jax.default_matmul_precision('highest'):
        logits, context = jax.jit(model)(batch)
    assert logits.shape == (3, CHOICES)
    for row in range(3):
        for choice in range(CHOICES):
            want, _, _ = twin(ids_of(batch, row, choice), *row_of(batch, row))
            assert abs(float(logits[row, choice]) - want.item()) <= 1e-4
        _, cells, question = twin(ids_of(batch, row), *row_of(batch, row))
        np.testing.assert_allclose(context.memory_BSD[row, : len(cells)], cells.detach(), atol=1e-5)
        np.testing.assert_allclose(context.pooled_BD[row], question.detach(), atol=1e-5)


def test_choices_share_the_work_on_the_picture():
    """Of the picture the program has arrays for each picture only, up to where a question meets it."""
    model, batch = make(choices=CHOICES), make_batch()
    program = str(jax.make_jaxpr(model)(batch))
    assert f'f32[3,{CELLS},2048]' in program and f'f32[3,{CHOICES},{CELLS},2048]' not in program
    assert f'c64[3,1,{CELLS},33]' in program  # the sketches of cells


@pytest.mark.parametrize('fusion', FUSIONS)
def test_padding_changes_nothing(fusion):
    model, batch = make(fusion), make_batch()
    wider = lambda x, axis, n: np.concatenate([x, np.full_like(np.take(x, range(n), axis), 3)], axis)
    padded = batch | {
        'text': wider(batch['text'], 1, 3),
        'features': wider(batch['features'], 1, 2),
        'locations': wider(batch['locations'], 1, 2),
    }
    (a, b), (c, d) = jax.jit(model)(batch), jax.jit(model)(padded)
    np.testing.assert_allclose(a, c, atol=1e-5)
    np.testing.assert_allclose(b.memory_BSD, d.memory_BSD[:, :CELLS], atol=1e-6)
    np.testing.assert_allclose(b.pooled_BD, d.pooled_BD, atol=1e-6)
    assert not np.asarray(d.memory_BSD[:, CELLS:]).any()
    alone = {name: value[1:2] for name, value in batch.items()}
    np.testing.assert_allclose(jax.jit(model)(alone)[0][0], a[1], atol=1e-5)


@pytest.mark.parametrize('fusion', FUSIONS)
def test_a_picture_without_cells_is_answered_by_the_question(fusion):
    """Neither values nor gradients are large there, nor where a cell is all zero."""
    model, batch = make(fusion), make_batch()
    batch['region_length'] = np.int32([0, 2, 3])
    batch['features'][1], batch['features'][2, 0] = 0, 0
    graph, params, constants = nnx.split(model, lambda path, x: jnp.issubdtype(x.dtype, jnp.floating), ...)
    loss = lambda params, batch: (nnx.merge(graph, params, constants)(batch)[0] ** 2).sum()
    norm = jax.jit(lambda params, batch: optax.tree.norm(jax.grad(loss)(params, batch)))
    usual = norm(params, make_batch())
    blind = batch | {'features': 0 * batch['features'], 'locations': 0 * batch['locations']}
    for less in (batch, blind):
        assert norm(params, less) < 10 * usual, 'one picture of nothing must not drown the others'
    logits, context = jax.jit(model)(batch)
    other, _ = jax.jit(model)(batch | {'features': batch['features'][::-1].copy()})
    np.testing.assert_array_equal(logits[0], other[0])
    assert np.isfinite(np.asarray(logits)).all() and not np.asarray(context.memory_BSD[0]).any()


def test_only_the_size_of_a_whole_picture_is_lost():
    model, batch = make(), make_batch()
    logits, _ = jax.jit(model)(batch)
    louder, _ = jax.jit(model)(batch | {'features': 7 * batch['features']})
    np.testing.assert_allclose(louder, logits, atol=1e-4)
    one = batch | {'features': batch['features'] * np.where(np.arange(CELLS) == 0, 7, 1).astype(np.float32)[:, None]}
    assert np.abs(jax.jit(model)(one)[0] - logits).max() > 1e-3


@pytest.mark.parametrize('fusion', FUSIONS)
def test_dropout_needs_a_key(fusion):
    batch, key = make_batch(), jax.random.key(0)
    plain, dropping = make(fusion), make(fusion, dropout=0.5)
    run = jax.jit(lambda model, key: model(batch, key=key)[0])
    np.testing.assert_allclose(run(dropping, None), run(plain, key), atol=1e-6)
    first, again, other = (np.asarray(run(dropping, k)) for k in (key, key, jax.random.key(1)))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.acceptance
def test_remat_computes_the_same():
    batch, key = make_batch(), jax.random.key(0)

    def gradients(remat):
        is_number = lambda path, x: jnp.issubdtype(x.dtype, jnp.floating)
        graph, params, constants = nnx.split(make(dropout=0.5, remat=remat), is_number, ...)
        return jax.value_and_grad(lambda p: (nnx.merge(graph, p, constants)(batch, key=key)[0] ** 2).sum())(params)

    kept, again = jax.jit(lambda: (gradients(False), gradients(True)))()
    for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-4)


def test_build_task_reads_the_config():
    config = configs.base()
    config.model.task.update(name='mcb', size='tiny', fusion='product')
    config.model.update(dtype='float32', dropout=0.25)
    assets = type('Assets', (), {'word': range(WORDS), 'answers': ('a', 'b')})()
    model = mcb.build_task(config, assets, rngs=nnx.Rngs(params=0))
    assert model.width == mcb.SIZES['tiny'].width and isinstance(model.fuse, mcb.Product)
    assert model.head.answer.kernel.shape[1] == 2 and model.fuse.dropout == model.question.dropout == 0.25
    config.model.task.fusion, config.data.choices = 'mcb', 4
    model = mcb.build_task(config, assets, rngs=nnx.Rngs(params=0))
    assert isinstance(model.fuse, mcb.Mcb) and model.choices == 4
