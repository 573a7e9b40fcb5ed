"""UNITER against Hugging Face's BertModel, which gets the region embeddings added here, in PyTorch."""

import jax
import jax.numpy as jnp
import numpy as np
import parity
import pytest
from flax import nnx

from evil_jax.models import uniter

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')

WORDS, ANSWERS = 120, 7
SMALL = uniter.Size(layers=2, width=32, heads=4, hidden=64, positions=24, std=0.1, word_std=0.1)


def make(size):
    return parity.randomise(uniter.Uniter(size, words=WORDS, answers=ANSWERS, rngs=nnx.Rngs(params=0)))


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


class Reference(torch.nn.Module):
    """BertModel plus region embeddings and answer head, one row at a time: no padding anywhere."""

    def __init__(self, size):
        super().__init__()
        config = transformers.BertConfig(
            vocab_size=WORDS, hidden_size=size.width, num_hidden_layers=size.layers, num_attention_heads=size.heads,
            intermediate_size=size.hidden, max_position_embeddings=size.positions, layer_norm_eps=1e-12,
            hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation='eager',
        )  # fmt: skip
        self.bert = transformers.BertModel(config)
        norm = lambda: torch.nn.LayerNorm(size.width, eps=1e-12)
        self.feature, self.feature_norm = torch.nn.Linear(2048, size.width), norm()
        self.location, self.location_norm, self.image_norm = torch.nn.Linear(7, size.width), norm(), norm()
        self.head = torch.nn.Sequential(
            torch.nn.Linear(size.width, 2 * size.width), torch.nn.GELU(),
            torch.nn.LayerNorm(2 * size.width, eps=1e-12), torch.nn.Linear(2 * size.width, ANSWERS),
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
        head = {'0': p.linear(model.head.up), '2': p.norm(model.head.norm), '3': p.linear(model.head.answer)}
        p.put(self.head, p.named(head))
        return self

    def forward(self, batch, row):
        t, r = int(batch['text_length'][row]), int(batch['region_length'][row])
        text = self.bert.embeddings(input_ids=torch.from_numpy(batch['text'][row : row + 1, :t]))
        features = torch.from_numpy(batch['features'][row : row + 1, :r])
        locations = torch.from_numpy(batch['locations'][row : row + 1, :r])
        image = self.feature_norm(self.feature(features)) + self.location_norm(self.location(locations))
        image = self.image_norm(image + self.bert.embeddings.token_type_embeddings.weight[1])
        states = [torch.cat([text, image], 1)]
        for layer in self.bert.encoder.layer:
            out = layer(states[-1])
            states.append(out[0] if isinstance(out, tuple) else out)
        return self.head(self.bert.pooler(states[-1])), states


SIZES = [pytest.param(SMALL, id='small'), *(pytest.param(s, id=n) for n, s in uniter.SIZES.items())]


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
