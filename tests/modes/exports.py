"""Small models of every kind with random parameters, exported, and what they say in JAX, for test_export.py."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np

from evil_jax.data import tokenizers
from evil_jax.data.features.regions import Regions
from evil_jax.decoding import generate
from evil_jax.models import bert, lstm_decoder, mcb, updown, vlnle
from evil_jax.modes import export
from evil_jax.records import Example
from evil_jax.tasks import base
from evil_jax.training import checkpoint, sharding, state

bert.SIZES['toy'] = bert.Size(layers=1, width=32, heads=2, hidden=64, positions=32, std=0.1, word_std=0.1)
bert.SIZES['distil'] = dataclasses.replace(bert.SIZES['toy'], types=0, pool='relu')
mcb.SIZES['toy'] = mcb.Size(embedding=16, width=32, sketch=48, hidden=8, glimpses=2, places=True)
mcb.SIZES['plain'] = mcb.Size(embedding=16, width=32, sketch=48, hidden=8, glimpses=2)
updown.SIZES['toy'] = updown.Size(embedding=16, width=32, hidden=24, glimpses=2, locations=True, norms=True)
updown.SIZES['plain'] = updown.Size(embedding=16, width=32, hidden=24)
lstm_decoder.SIZES['toy'] = lstm_decoder.Size(embedding=16, width=24, hidden=8, fused=24, beside=True)
lstm_decoder.SIZES['plain'] = lstm_decoder.Size(embedding=16, width=24, hidden=8, fused=40)
NAMES = ('dog', 'red ball,ball', 'person,human', 'man')
# name -> (M_T, M_E, whether there are choices, other settings)
CASES = {
    'eug': ('uniter', 'gpt2', False, {}),
    'eug_vcr': ('uniter', 'gpt2', True, {}),
    'eug_published': ('uniter', 'gpt2', False, {'compat': 'original'}),
    'eug_published_vcr': (
        'uniter', 'gpt2', True, {'compat': 'original', 'data.tags': 'det', 'data.tag_regions': False}),
    'rvt': ('bert', 'gpt2', False, {'data.objects': 'detected', 'model.expl.image': 'tags'}),
    'rvt_vcr': ('bert', 'gpt2', True, {'data.objects': 'annotated', 'model.expl.image': 'tags'}),
    'qa_gpt2': ('bert', 'gpt2', False, {'model.task.size': 'distil', 'model.expl.image': 'none'}),
    'pjx': ('mcb', 'lstm_decoder', False, {'model.expl.attend': 'answer'}),
    'pjx_vcr': (
        'mcb', 'lstm_decoder', True,
        {'model.expl.attend': 'answer', 'model.task.fusion': 'product', 'model.task.size': 'plain',
         'model.expl.size': 'plain'}),
    'fme': ('updown', 'lstm_decoder', False, {}),
    'fme_vcr': ('updown', 'lstm_decoder', True, {'model.task.gate': 'relu', 'model.task.size': 'plain'}),
    'answers': ('bert', '', False, {}),
}  # fmt: skip


def make_config(toy, name):
    task, expl, choices, settings = CASES[name]
    config = toy.make_config()
    config.model.task.name, config.model.expl.name = task, expl
    config.data.update(max_objects=8, max_text=14, max_explanation=9)
    if choices:
        config.data.update(builder='vcr', task='vcr', choices=3)
    config.update_from_flattened_dict(settings)
    return config


def examples(toy, choices):
    """Six of ragged lengths, one without a picture; the longest text is cut."""
    found = []
    for i, text in enumerate((*toy.TEXTS[:5], toy.TEXTS[6])):
        row = Example(id=f'q{i}', image_id=f'image{i % 4}', text=text, explanations=[toy.TEXTS[-1][i:].strip()])
        if choices:
            row.text = f'<|det2|> {text} <|det1|>' if i % 2 else f'{text} <|det9|>'
            row.choices, row.label = ['left <|det1|>', toy.TEXTS[i], 'no'], i % 3
            row.objects = ['person', 'dog', 'person', 'tree, bush']
            row.extra = {'boxes': [[11, 20, 61, 90], [12, 21, 60, 92], [0, 0, 5, 5], [3, 3, 9, 9]], 'size': [120, 100]}
        found.append(row)
    return found


def regions(toy, example) -> Regions:
    found = toy.make_reader()[example.image_id]
    n = len(found)
    kinds = np.arange(n) % len(NAMES)
    return dataclasses.replace(
        found, conf=np.float32([0.5, 0.9, 0.5, 0.7, 0.2][:n]), classes=kinds.astype(np.int32), names=NAMES
    )


def make_params(shapes, end) -> dict:
    """Random, but explanations end somewhere."""
    rng, params = np.random.default_rng(3), {}
    for path, leaf in shapes.items():
        noise = rng.normal(size=leaf.shape).astype(np.float32)
        if path.endswith('hash'):
            noise = rng.integers(0, 48, leaf.shape)
        elif path.endswith('sign'):
            noise = rng.integers(0, 2, leaf.shape) * 2 - 1
        elif path.endswith('kernel'):
            noise *= 2 / leaf.shape[0] ** 0.5
        elif path.endswith('scale'):
            noise = 1 + 0.1 * noise if leaf.shape else np.float32(3)
        elif not path.endswith('word/embedding'):
            noise *= 0.1
        params[path] = np.asarray(noise, leaf.dtype)
    if 'expl/wte/embedding' in params:
        params['expl/wte/embedding'][end] *= 2
    if 'expl/out/bias' in params:
        params['expl/out/bias'][end] += 1
    return params


def make(toy, name, case) -> dict:
    """Writes export/, expl/, examples.json, regions.npz; returns arrays of JAX: batch, logits, explanations."""
    config, choices = make_config(toy, name), CASES[name][2]
    word = tokenizers.train_word([*toy.TEXTS, *NAMES, 'Casey Riley'], case / 'word')
    expl = tokenizers.train_expl([*toy.TEXTS, *NAMES], case / 'expl')
    assets = tokenizers.Assets(word, expl, () if choices else toy.ANSWERS)
    task = base.make_task(config, assets)
    net = state.abstract(lambda key: vlnle.build(config, assets, key), config, sharding.make_mesh(config))
    params = make_params(net.shapes, expl.id('<|e_rtnl|>'))
    trained = {k: v for k, v in checkpoint.settings(checkpoint.plain(config)).items() if k != 'decode.checkpoint'}
    export.pack(case / 'export', config.lock(), task, params, {'trained': trained, 'data': None, 'step': 1})
    rows = examples(toy, choices)
    pictures = [None if n == 4 else regions(toy, row) for n, row in enumerate(rows)]
    _write_examples(case, config, rows, pictures)
    batch = [task.transform(row, picture) for row, picture in zip(rows, pictures, strict=True)]
    batch = {key: np.stack([row[key] for row in batch]) for key in batch[0]} | {'mask': np.ones(len(rows), bool)}
    tokens = np.stack([expl.piece('rtnl', row.explanations[0], config.data.max_explanation)[0][:8] for row in rows])
    say = lambda params, batch: _say(net, task, config, params, batch, tokens)
    # Compiled in a third of the time, which is all that counts here.
    found = jax.jit(say, compiler_options={'xla_backend_optimization_level': 0})(params, batch)
    return {f'batch.{key}': x for key, x in batch.items()} | {key: np.asarray(x) for key, x in found.items()}


def _say(net, task, config, params, batch, tokens):
    model, expl = net.merge(params), task.assets.expl
    logits, context = model.task(batch)
    index, probability = task.predict(logits)
    found = {'logits': logits, 'index': index, 'probability': probability}
    if model.expl is None:
        return found
    others = jnp.arange(len(tokens)) % logits.shape[-1]
    found['explanation_logits'] = model.expl(batch, context, task.condition(batch, others), tokens)[..., : expl.size]
    condition = task.condition(batch, index)
    found['generated'], found['length'], _ = generate.generate(
        model.expl, batch, context, condition, max_tokens=config.data.max_explanation, end_id=expl.id('<|e_rtnl|>'),
        pad_id=expl.end_of_text, vocabulary=expl.size,
    )  # fmt: skip
    return found


def _write_examples(case, config, rows, pictures):
    asked, arrays = [], {}
    for n, (row, picture) in enumerate(zip(rows, pictures, strict=True)):
        ask = {'text': row.text, 'choices': row.choices, 'objects': row.objects}
        if config.data.choices:
            ask |= {'object_boxes': row.extra['boxes'], 'object_size': row.extra['size']}
        document = {'ask': ask, 'explanation': row.explanations[0], 'names': None}
        if picture is not None:
            parts = {'features': picture.features, 'boxes': picture.boxes, 'size': np.asarray(picture.size)}
            parts |= {'confidence': picture.conf, 'classes': picture.classes}
            arrays |= {f'{n}.{name}': value for name, value in parts.items()}
            document['names'] = [picture.names[kind] for kind in picture.classes]
        asked.append(document)
    (case / 'examples.json').write_text(json.dumps(asked))
    np.savez(case / 'regions.npz', **arrays)
