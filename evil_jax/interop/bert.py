"""BERT and DistilBERT: Hugging Face's names of their parameters, with or without `bert.` or `distilbert.` before them.

    --config.model.task.init=hf:FOLDER      bert-base-uncased, distilbert-base-uncased, a fine-tuned classifier ...

Heads of pre-training are of no use here. A classifier is taken where it has as many outputs as there are answers (one,
where each example has choices of its own); else the head stays fresh. DistilBERT has its pooler in classifiers alone.
"""

from collections.abc import Mapping

import numpy as np

from evil_jax.interop import table, vocabulary, weights

TEXT = table.rows(
    ('text/word', 'embeddings.word_embeddings', table.EMBEDDING),
    ('text/position', 'embeddings.position_embeddings', table.EMBEDDING),
    ('text/type', 'embeddings.token_type_embeddings', table.EMBEDDING),
    ('text/norm', 'embeddings.LayerNorm', table.NORM),
)
LAYERS = table.rows(
    (r'layers/(\d+)/attention/(query|key|value)', r'encoder.layer.\1.attention.self.\2', table.LINEAR),
    (r'layers/(\d+)/attention/out', r'encoder.layer.\1.attention.output.dense', table.LINEAR),
    (r'layers/(\d+)/attention_norm', r'encoder.layer.\1.attention.output.LayerNorm', table.NORM),
    (r'layers/(\d+)/mlp/up', r'encoder.layer.\1.intermediate.dense', table.LINEAR),
    (r'layers/(\d+)/mlp/down', r'encoder.layer.\1.output.dense', table.LINEAR),
    (r'layers/(\d+)/mlp_norm', r'encoder.layer.\1.output.LayerNorm', table.NORM),
)
ENCODER = TEXT + LAYERS
POOLER = table.rows(('pooler', 'pooler.dense', table.LINEAR))
_HEAD = table.rows(('(?:head|head_vcr)/answer', 'classifier', table.LINEAR))
TABLE = ENCODER + POOLER + _HEAD
DISTIL = (
    *TEXT[:2],
    *TEXT[3:],
    *table.rows(
        (r'layers/(\d+)/attention/query', r'transformer.layer.\1.attention.q_lin', table.LINEAR),
        (r'layers/(\d+)/attention/key', r'transformer.layer.\1.attention.k_lin', table.LINEAR),
        (r'layers/(\d+)/attention/value', r'transformer.layer.\1.attention.v_lin', table.LINEAR),
        (r'layers/(\d+)/attention/out', r'transformer.layer.\1.attention.out_lin', table.LINEAR),
        (r'layers/(\d+)/attention_norm', r'transformer.layer.\1.sa_layer_norm', table.NORM),
        (r'layers/(\d+)/mlp/up', r'transformer.layer.\1.ffn.lin1', table.LINEAR),
        (r'layers/(\d+)/mlp/down', r'transformer.layer.\1.ffn.lin2', table.LINEAR),
        (r'layers/(\d+)/mlp_norm', r'transformer.layer.\1.output_layer_norm', table.NORM),
        ('pooler', 'pre_classifier', table.LINEAR),
    ),
    *_HEAD,
)
OLD = ((r'\bLayerNorm\.gamma$', 'LayerNorm.weight'), (r'\bLayerNorm\.beta$', 'LayerNorm.bias'))  # TensorFlow's names
WORD = 'text/word/embedding'
_HEADS = ('head/answer', 'head_vcr/answer')
_UNUSED = (r'cls\..*', r'vocab_(transform|layer_norm|projector)\..*', r'embeddings\.position_ids')


def load(path, shapes: Mapping, assets, size=None) -> dict[str, np.ndarray]:
    """M_T's parameters from a Hugging Face folder or a file.

    Args:
      path: see `weights.read`.
      shapes: {our path: something with a shape}.
      assets: `data.tokenizers.Assets`: its word pieces have to be those of the file.
      size: `models.bert.Size`; with it the folder's config.json is compared, whose number of heads no array shows.

    Returns:
      {our path: array}; without the answer head, and DistilBERT's pooler, where the file has none that fits.

    Raises:
      ValueError: everything that does not fit, in one message.
    """
    there = table.renamed(weights.read(path), ((r'^(bert|distilbert)\.', ''), *OLD), path)
    distil = any(name.startswith('transformer.layer.') for name in there)
    fresh, ignored = _head(there, shapes)
    if distil and 'pre_classifier.weight' not in there:
        fresh.append('pooler/.*')
    return table.load(
        DISTIL if distil else TABLE, there, shapes, ignored=(*_UNUSED, *ignored), fresh=fresh,
        differing=[*config_faults(path, size), *vocabulary.word_faults(path, assets.word)],
        advice=advice(there, assets), origin='DistilBERT' if distil else 'BERT', where=path,
    )  # fmt: skip


def _head(there, shapes):
    """([our answer head, where it stays fresh], [their classifier, where it is of no use])."""
    head = next((name for name in _HEADS if f'{name}/kernel' in shapes), None)
    fits = head and all(
        name in there and there[name].shape == tuple(shapes[f'{head}/{leaf}'].shape)[::-1]
        for name, leaf in (('classifier.weight', 'kernel'), ('classifier.bias', 'bias'))
    )
    return ([], []) if fits else ([f'{name}/.*' for name in _HEADS], [r'classifier\..*'])


def save(params: Mapping, prefix: str = 'bert.') -> dict[str, np.ndarray]:
    """BERT's or DistilBERT's names for all of M_T's parameters; the classifier's has no prefix.

    Args:
      params: {our path: array}.
      prefix: what stands before the encoder's names: 'bert.' or 'distilbert.' in Hugging Face's models with a head, ''
        in those without.
    """
    rows = TABLE if 'text/type/embedding' in params else DISTIL
    found = table.save(rows, params, where='BERT')
    bare = ('classifier.', 'pre_classifier.')
    return {name if name.startswith(bare) else prefix + name: array for name, array in found.items()}


def hf_config(size, words: int, labels: int = 0) -> dict:
    """config.json of transformers for a `models.bert.Size`. `labels`: outputs of a classifier; 0 = none."""
    common = {'vocab_size': words, 'max_position_embeddings': size.positions, 'pad_token_id': 0}
    if size.types:
        kind, model = 'bert', 'Bert'
        sizes = encoder_config(size) | {'type_vocab_size': size.types, 'hidden_act': 'gelu', 'layer_norm_eps': 1e-12}
    else:
        kind, model = 'distilbert', 'DistilBert'
        sizes = {'dim': size.width, 'n_layers': size.layers, 'n_heads': size.heads, 'hidden_dim': size.hidden}
        sizes |= {'activation': 'gelu', 'sinusoidal_pos_embds': False}
    head = {'id2label': {str(n): f'LABEL_{n}' for n in range(labels)}} if labels else {}
    architecture = f'{model}ForSequenceClassification' if labels else f'{model}Model'
    return {'model_type': kind, 'architectures': [architecture], **common, **sizes, **head}


def encoder_config(size) -> dict:
    """The sizes of an encoder by the names that BERT and its relatives have in config.json."""
    return {
        'hidden_size': size.width,
        'num_hidden_layers': size.layers,
        'num_attention_heads': size.heads,
        'intermediate_size': size.hidden,
    }


def config_faults(path, size) -> list[str]:
    """What differs between a folder's config.json and a model's size: no array shows the number of heads."""
    if size is None or not (path.is_dir() and (path / 'config.json').is_file()):
        return []
    there = weights.read_config(path)
    names = {'dim': 'hidden_size', 'n_layers': 'num_hidden_layers', 'n_heads': 'num_attention_heads',
             'hidden_dim': 'intermediate_size', 'activation': 'hidden_act'}  # fmt: skip
    there = {names.get(key, key): value for key, value in there.items()}
    wanted = encoder_config(size) | {'hidden_act': 'gelu'}
    return compared(there, wanted)


def compared(there: Mapping, wanted: Mapping) -> list[str]:
    """The entries of a config.json that are others than wanted; absent ones are no fault."""
    return [
        f'config.json: {key} is {there[key]!r}, wanted {value!r}'
        for key, value in wanted.items()
        if key in there and there[key] != value
    ]


def advice(there: Mapping, assets, name: str = 'embeddings.word_embeddings.weight') -> str:
    """What to do where the file has another number of word pieces."""
    if name not in there or there[name].ndim != 2 or len(there[name]) == len(assets.word):
        return ''
    return (
        f'\n  The vocabularies differ: {len(there[name])} word pieces in the file, {len(assets.word)} in the data set. '
        "Build the data set with the file's own: data.word_vocab, the vocab.txt of the same model"
    )
