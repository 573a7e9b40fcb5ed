"""BERT, DistilBERT and RoBERTa against Hugging Face's modules with the same random weights; the heads; the context."""

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

from evil_jax import config as configs
from evil_jax.models import bert, roberta
from evil_jax.nn import ops

WORDS, ANSWERS, CHOICES, Q = 120, 7, 4, 9
SMALL = bert.Size(layers=2, width=32, heads=4, hidden=64, positions=24, std=0.1, word_std=0.1)
DISTIL = dataclasses.replace(SMALL, types=0, pool='relu')
ROBERTA = dataclasses.replace(SMALL, types=1)


# One program instead of a hundred small ones: tests compile more than they compute.
run = nnx.jit(lambda model, batch: model(batch))


def make_batch(rows=3, seed=0, choices=0):
    """Ragged rows; behind a text there is junk."""
    r = np.random.default_rng(seed)
    row = lambda *shape: {
        '': r.integers(0, WORDS, (*shape, Q)),
        '_type': r.integers(0, 2, (*shape, Q)),
        '_length': r.integers(3, Q + 1, shape),
    }
    batch = {f'text{name}': x for name, x in row(rows).items()}
    return batch | ({f'choices{name}': x for name, x in row(rows, choices).items()} if choices else {})


def hf_config(size, **more):
    return transformers.BertConfig(
        vocab_size=WORDS, type_vocab_size=2, hidden_size=size.width, num_hidden_layers=size.layers,
        num_attention_heads=size.heads, intermediate_size=size.hidden, max_position_embeddings=size.positions,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation='eager', **more,
    )  # fmt: skip


def distil_config(size, **more):
    return transformers.DistilBertConfig(
        vocab_size=WORDS, dim=size.width, n_layers=size.layers, n_heads=size.heads, hidden_dim=size.hidden,
        max_position_embeddings=size.positions, dropout=0, attention_dropout=0, seq_classif_dropout=0,
        attn_implementation='eager', **more,
    )  # fmt: skip


def roberta_config(size, **more):
    return transformers.RobertaConfig(
        vocab_size=WORDS, type_vocab_size=1, hidden_size=size.width, num_hidden_layers=size.layers,
        num_attention_heads=size.heads, intermediate_size=size.hidden, max_position_embeddings=size.positions,
        layer_norm_eps=1e-5, pad_token_id=1, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
        attn_implementation='eager', **more,
    )  # fmt: skip


def bert_tensors(model, prefix=''):
    """The encoder without its pooler, as BertModel and RobertaModel name it."""
    p = parity
    parts = {
        'embeddings.word_embeddings': p.table(model.text.word),
        'embeddings.position_embeddings': p.table(model.text.position),
        'embeddings.token_type_embeddings': p.table(model.text.type),
        'embeddings.LayerNorm': p.norm(model.text.norm),
    }
    tensors = p.named(parts)
    for l, block in enumerate(model.layers):
        tensors |= p.prefixed(f'encoder.layer.{l}.', p.bert_layer(block))
    return p.prefixed(prefix, tensors)


def distil_tensors(model, prefix=''):
    p = parity
    tensors = p.named({
        'embeddings.word_embeddings': p.table(model.text.word),
        'embeddings.position_embeddings': p.table(model.text.position),
        'embeddings.LayerNorm': p.norm(model.text.norm),
    })  # fmt: skip
    for l, block in enumerate(model.layers):
        parts = p.named({
            'attention.q_lin': p.linear(block.attention.query),
            'attention.k_lin': p.linear(block.attention.key),
            'attention.v_lin': p.linear(block.attention.value),
            'attention.out_lin': p.linear(block.attention.out),
            'sa_layer_norm': p.norm(block.attention_norm),
            'ffn.lin1': p.linear(block.mlp.up),
            'ffn.lin2': p.linear(block.mlp.down),
            'output_layer_norm': p.norm(block.mlp_norm),
        })  # fmt: skip
        tensors |= p.prefixed(f'transformer.layer.{l}.', parts)
    return p.prefixed(prefix, tensors)


def theirs(kind, model):
    """The classifier of a kind with our parameters, and what its encoder is called."""
    p, size = parity, model.size
    head = getattr(model, 'head_vcr' if getattr(model, 'choices', 0) else 'head').answer
    labels = {} if getattr(model, 'choices', 0) else {'num_labels': ANSWERS}
    if kind == 'bert':
        make = transformers.BertForSequenceClassification if labels else transformers.BertForMultipleChoice
        net = make(hf_config(size, **labels))
        tensors = bert_tensors(model, 'bert.') | p.named({
            'bert.pooler.dense': p.linear(model.pooler), 'classifier': p.linear(head)
        })  # fmt: skip
        inner = net.bert
    elif kind == 'distilbert':
        make = transformers.DistilBertForSequenceClassification if labels else transformers.DistilBertForMultipleChoice
        net = make(distil_config(size, **labels))
        tensors = distil_tensors(model, 'distilbert.') | p.named({
            'pre_classifier': p.linear(model.pooler), 'classifier': p.linear(head)
        })  # fmt: skip
        inner = net.distilbert
    else:
        net = transformers.RobertaForSequenceClassification(roberta_config(size, **labels))
        tensors = bert_tensors(model, 'roberta.') | p.named({
            'classifier.dense': p.linear(model.pooler), 'classifier.out_proj': p.linear(head)
        })  # fmt: skip
        inner = net.roberta
    p.put(net, tensors)
    return net.eval(), inner


def inputs(batch, name='text', types=True):
    """Ids, types and mask for Hugging Face. Junk behind a text is masked there, too."""
    ids, length = batch[name], batch[f'{name}_length']
    mask = np.arange(ids.shape[-1]) < length[..., None]
    found = {'input_ids': torch.from_numpy(ids), 'attention_mask': torch.from_numpy(mask.astype(np.int64))}
    return found | ({'token_type_ids': torch.from_numpy(batch[f'{name}_type'])} if types else {})


def check_states(model, ids, kinds, length, hidden):
    """Each layer's vectors <= 1e-5 relative, where there is text."""
    x = model.text(ids, kinds)
    states = [x]
    for block in model.layers:
        states.append(block(states[-1], length)[0])
    assert len(states) == len(hidden)
    valid = np.arange(ids.shape[1]) < length[:, None]
    for layer, (ours, want) in enumerate(zip(states, hidden)):
        assert parity.relative(np.asarray(ours)[valid], want.detach().numpy()[valid]) <= 1e-5, f'layer {layer}'


@pytest.mark.parametrize(('kind', 'size'), [('bert', SMALL), ('distilbert', DISTIL), ('bert', bert.SIZES['tiny'])])
def test_sequence_classification(kind, size):
    """Layers <= 1e-5, logits <= 1e-4, gradients <= 1e-3 relative; ragged rows in one batch."""
    model, batch = (
        parity.randomise(bert.Bert(size, words=WORDS, answers=ANSWERS, rngs=nnx.Rngs(params=0))),
        make_batch(),
    )
    net, inner = theirs(kind, model)
    out = net(**inputs(batch, types=kind == 'bert'), output_hidden_states=True)
    (out.logits**2).mean().backward()
    graph, params = nnx.split(model, nnx.Param)

    def loss(params):
        logits, context = nnx.merge(graph, params)(batch)
        return (logits**2).mean(), (logits, context)

    with jax.default_matmul_precision('highest'):
        (_, (logits, context)), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
        check_states(model, batch['text'], batch['text_type'], batch['text_length'], out.hidden_states)
    assert logits.dtype == jnp.float32
    np.testing.assert_allclose(logits, out.logits.detach(), atol=1e-4, rtol=0)
    assert context.memory_BSD.shape == (3, 0, size.width) and context.length_B.tolist() == [0, 0, 0]
    if kind == 'bert':
        pooled = inner(**inputs(batch)).pooler_output.detach()
        np.testing.assert_allclose(context.pooled_BD, pooled, atol=1e-5)
    g = nnx.merge(graph, gradient)
    pairs = [(g.text.word.embedding[...], inner.embeddings.word_embeddings.weight.grad),
             (g.text.position.embedding[...], inner.embeddings.position_embeddings.weight.grad),
             (g.head.answer.kernel[...], net.classifier.weight.grad.T)]  # fmt: skip
    for ours, want in pairs:
        assert parity.relative(ours, want.numpy()) <= 1e-3


@pytest.mark.parametrize(('kind', 'size'), [('bert', SMALL), ('distilbert', DISTIL)])
def test_multiple_choice(kind, size):
    """One number a pair; the context is that of the question alone."""
    model = parity.randomise(bert.Bert(size, words=WORDS, choices=CHOICES, rngs=nnx.Rngs(params=0)))
    batch = make_batch(choices=CHOICES)
    net, _ = theirs(kind, model)
    with torch.no_grad():
        want = net(**inputs(batch, 'choices', types=kind == 'bert')).logits
    logits, context = run(model, batch)
    assert logits.shape == (3, CHOICES)
    np.testing.assert_allclose(logits, want, atol=1e-4, rtol=0)
    alone = parity.randomise(bert.Bert(size, words=WORDS, answers=2, rngs=nnx.Rngs(params=1)))
    for name in ('text', 'layers', 'pooler'):
        setattr(alone, name, getattr(model, name))
    np.testing.assert_allclose(context.pooled_BD, run(alone, batch)[1].pooled_BD, atol=1e-6)


@pytest.mark.parametrize('classes', [0, ANSWERS])
def test_roberta(classes):
    """RobertaModel, whose positions begin at 2, and RobertaForSequenceClassification."""
    model = parity.randomise(roberta.Roberta(ROBERTA, words=WORDS, classes=classes, rngs=nnx.Rngs(params=0)))
    batch = make_batch()
    ids, length = batch['text'], batch['text_length']
    ids[:] = np.maximum(ids, 2)  # theirs takes id 1 for padding wherever it stands
    for row, n in enumerate(length):
        ids[row, n:] = roberta.PAD
    if classes:
        net, _ = theirs('roberta', model)
    else:
        net = transformers.RobertaModel(roberta_config(ROBERTA)).eval()
        parity.put(net, bert_tensors(model) | parity.named({'pooler.dense': parity.linear(model.pooler)}))
    with torch.no_grad():
        out = net(**inputs(batch, types=False), output_hidden_states=True)
    check_states(model, ids, None, length, out.hidden_states)
    logits, context = model(batch)
    states, pooled = context.memory_BSD, context.pooled_BD
    assert states.shape == (3, Q, 32) and pooled.shape == (3, 32)
    for row, n in enumerate(length):
        np.testing.assert_allclose(states[row, :n], out.hidden_states[-1][row, :n], atol=1e-4)
        assert not np.asarray(states[row, n:]).any()
    if classes:
        np.testing.assert_array_equal(model.classify(ids, length), logits)
        np.testing.assert_allclose(model.classify(ids, length), out.logits, atol=1e-4, rtol=0)
    else:
        assert logits is None
        np.testing.assert_allclose(pooled, out.pooler_output, atol=1e-5)
        with pytest.raises(ValueError, match='made without classes'):
            model.classify(ids, length)


def count(module):
    return sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(nnx.state(module, nnx.Param)))


@pytest.mark.parametrize('name', ['base', 'distilbert', 'roberta'])
def test_published_sizes(name):
    """As many parameters as Hugging Face's classes have by default: those of the published models."""
    with torch.device('meta'):
        net = {
            'base': lambda: transformers.BertModel(transformers.BertConfig()),
            'distilbert': lambda: transformers.DistilBertModel(transformers.DistilBertConfig()),
            'roberta': lambda: transformers.RobertaModel(
                transformers.RobertaConfig(
                    vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5
                )
            ),
        }[name]()
    if name == 'roberta':
        make = lambda: roberta.Roberta(roberta.SIZES['base'], words=50_265, rngs=nnx.Rngs(params=0))
    else:
        make = lambda: bert.Bert(bert.SIZES[name], words=30_522, answers=3, rngs=nnx.Rngs(params=0))
    model = nnx.eval_shape(make)
    ours = count(model) - (0 if name == 'roberta' else count(model.head))
    if name == 'distilbert':
        ours -= count(model.pooler)  # which belongs to the classifier there
    assert ours == sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize('choices', [0, CHOICES])
def test_padding_and_the_rest_of_the_batch_change_nothing(choices):
    model = parity.randomise(bert.Bert(SMALL, words=WORDS, answers=ANSWERS, choices=choices, rngs=nnx.Rngs(params=0)))
    batch = make_batch(choices=choices)
    logits, context = run(model, batch)
    changed = dict(batch)
    for name in ('text', 'choices') if choices else ('text',):
        past = np.arange(Q) >= batch[f'{name}_length'][..., None]
        changed[name] = np.where(past, 5, batch[name])
    alone = {name: x[1:2] for name, x in changed.items()}
    for other, rows in ((changed, slice(None)), (alone, slice(1, 2))):
        found, new = run(model, other)
        np.testing.assert_allclose(found, logits[rows], atol=1e-6)
        np.testing.assert_allclose(new.pooled_BD, context.pooled_BD[rows], atol=1e-6)
    shorter = {name: x - 1 if name.endswith('length') else x for name, x in alone.items()}
    assert np.abs(np.asarray(run(model, shorter)[0]) - np.asarray(logits[1:2])).max() > 1e-4


def test_types_beyond_the_table_are_the_second_segment():
    """Pairs with names have types 0, 2 and 1 (data/transforms.py); BERT's published table has two rows."""
    model = parity.randomise(bert.Bert(SMALL, words=WORDS, answers=ANSWERS, rngs=nnx.Rngs(params=0)))
    batch = make_batch()
    logits, _ = run(model, batch)
    np.testing.assert_array_equal(run(model, {**batch, 'text_type': 2 * batch['text_type']})[0], logits)
    assert np.abs(np.asarray(run(model, {**batch, 'text_type': 0 * batch['text_type']})[0] - logits)).max() > 1e-3


def test_taps_give_attention_maps():
    model = parity.randomise(bert.Bert(SMALL, words=WORDS, choices=CHOICES, rngs=nnx.Rngs(params=0)))
    batch = make_batch(choices=CHOICES)
    taps = [jnp.zeros((3, CHOICES + 1, SMALL.heads, Q, Q)) for _ in range(SMALL.layers)]
    logits, _, maps = model(batch, taps=taps)
    np.testing.assert_allclose(logits, run(model, batch)[0], atol=1e-5)
    assert [m.shape for m in maps] == [t.shape for t in taps]
    length = np.concatenate([batch['choices_length'], batch['text_length'][:, None]], axis=1)
    np.testing.assert_allclose(np.asarray(maps[1]).sum(-1), 1, atol=1e-5)
    assert (
        np.asarray(maps[0])[..., None, :] * (np.arange(Q) >= length[:, :, None, None, None])[..., None, :] == 0
    ).all()


def test_dropout_needs_a_key():
    model = parity.randomise(bert.Bert(SMALL, words=WORDS, answers=ANSWERS, dropout=0.3, rngs=nnx.Rngs(params=0)))
    batch, key = make_batch(), jax.random.key(0)
    np.testing.assert_array_equal(run(model, batch)[0], run(model, batch)[0])
    np.testing.assert_array_equal(model(batch, key=key)[0], model(batch, key=key)[0])
    assert np.abs(np.asarray(model(batch, key=key)[0] - run(model, batch)[0])).max() > 1e-3


def test_dropout_of_the_steps_is_that_of_the_encoder_and_its_head():
    """A run that was begun when this was written out goes on with the same masks."""
    model = parity.randomise(bert.Bert(SMALL, words=WORDS, answers=ANSWERS, dropout=0.3, rngs=nnx.Rngs(params=0)))
    rng, key = np.random.default_rng(0), jax.random.key(1)
    length = jnp.asarray([5, 7])
    batch = {'text': jnp.asarray(rng.integers(0, WORDS, (2, 7))), 'text_length': length,
             'text_type': jnp.zeros((2, 7), jnp.int32)}  # fmt: skip
    fold = jax.random.fold_in
    x, _ = model.encode(batch['text'], batch['text_type'], length, key=fold(key, 0))
    want = model.head(ops.dropout(model.pool(x), 0.3, fold(key, 1)))
    np.testing.assert_array_equal(model(batch, key=key)[0], want)


def test_of_a_config():
    config = configs.base()
    config.model.task.update(name='bert', size='tiny')
    assets = types.SimpleNamespace(word=range(50), answers=('a', 'b', 'c'))
    build = lambda: bert.build_task(config, assets, rngs=nnx.Rngs(params=0))
    model = nnx.eval_shape(build)
    assert model.width == 128 and model.head.answer.bias.shape == (3,) and not hasattr(model, 'head_vcr')
    config.data.choices = 4
    model = nnx.eval_shape(build)
    assert model.head_vcr.answer.bias.shape == (1,) and not hasattr(model, 'head')
    config.data.max_text = 129
    with pytest.raises(ValueError, match='max_text 129 exceeds the 128 positions of BERT'):
        build()
    model = roberta.Roberta(ROBERTA, words=WORDS, rngs=nnx.Rngs(params=0))
    texts = lambda tokens: {'text': np.ones((1, tokens), int), 'text_length': np.array([tokens])}
    assert model(texts(22))[1].pooled_BD.shape == (1, 32)
    with pytest.raises(ValueError, match='texts have up to 23 tokens, the model has 22 positions'):
        model(texts(23))
