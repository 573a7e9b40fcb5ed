"""BERT and DistilBERT: Hugging Face's names of their parameters, with or without `bert.` or `distilbert.` before them.

    --config.model.task.init=hf:FOLDER      bert-base-uncased, distilbert-base-uncased, a fine-tuned classifier ...

Heads of pre-training are of no use here. A classifier is taken where the labels in the folder's config.json are our
answers, in whatever order (where each example has choices of its own: where it has one output); else the head stays
fresh. DistilBERT has its pooler in classifiers alone.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from evil_jax.data import answers as answers_lib
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
EPS = 1e-12  # of our norms, UNITER's too
_HEADS = ('head/answer', 'head_vcr/answer')
_UNUSED = (r'cls\..*', r'vocab_(transform|layer_norm|projector)\..*', r'embeddings\.position_ids')


def load(path, shapes: Mapping, assets, size=None) -> dict[str, np.ndarray]:
    """M_T's parameters from a Hugging Face folder or a file.

    Args:
      path: see `weights.read`.
      shapes: {our path: something with a shape}.
      assets: `data.tokenizers.Assets`: its word pieces have to be those of the file. Outputs of a classifier are put
        into the order of its answers.
      size: `models.bert.Size`; with it the folder's config.json is compared, whose number of heads no array shows.

    Returns:
      {our path: array}; without the answer head, and DistilBERT's pooler, where the file has none that fits.

    Raises:
      ValueError: everything that does not fit, in one message.
    """
    there = _read(path)
    distil = any(name.startswith('transformer.layer.') for name in there)
    columns, _ = _classifier(path, there, shapes, assets)
    fresh = [f'{name}/.*' for name in _HEADS] if columns is None else []
    ignored = [r'classifier\..*'] if columns is None else []
    if distil and 'pre_classifier.weight' not in there:
        fresh.append('pooler/.*')
    found = table.load(
        DISTIL if distil else TABLE, there, shapes, ignored=(*_UNUSED, *ignored), fresh=fresh,
        differing=[*config_faults(path, size, None if distil else EPS), *vocabulary.word_faults(path, assets.word)],
        advice=advice(there, assets), origin='DistilBERT' if distil else 'BERT', where=path,
    )  # fmt: skip
    return found | {name: x[..., columns] for name, x in found.items() if name.startswith(_HEADS)}


def why_fresh(path, shapes: Mapping, assets) -> str:
    """Why `load` does not take the classifier of a file, in words; '' where it does, or where there is none."""
    return _classifier(path, _read(path), shapes, assets)[1]


def _read(path):
    return table.renamed(weights.read(path), ((r'^(bert|distilbert)\.', ''), *OLD), path)


def _classifier(path, there, shapes, assets):
    """(for each of our outputs that of the file's classifier, or None where our head stays fresh; why it does)."""
    head = next((name for name in _HEADS if f'{name}/kernel' in shapes), None)
    if head is None or any(name not in there for name in ('classifier.weight', 'classifier.bias')):
        return None, ''
    wanted = tuple(shapes[f'{head}/kernel'].shape)[::-1]
    if there['classifier.weight'].shape != wanted or there['classifier.bias'].shape != wanted[:1]:
        return None, f'the classifier there is {there["classifier.weight"].shape}, wanted {wanted}'
    if head != _HEADS[0]:  # one number for a pair means the same everywhere
        return np.arange(1), ''
    return columns(config_labels(path), assets.answers)


def columns(labels: Sequence[str] | None, answers: Sequence[str]) -> tuple[np.ndarray | None, str]:
    """(For each answer the number of the same label, or None; why not.) The shape says nothing of the order.

    Args:
      labels: of `config_labels`.
      answers: ours.
    """
    if labels is not None and list(labels) == list(answers):  # also where two classes have one name
        return np.arange(len(labels)), ''
    if labels is None or all(re.fullmatch(r'LABEL_\d+', label) for label in labels):
        return None, 'no config.json with id2label says which answers the outputs of the classifier mean'
    for fold in (str, str.casefold):
        ours, theirs = [fold(answer) for answer in answers], [fold(label) for label in labels]
        if len(ours) == len(set(ours)) == len(theirs) and set(ours) == set(theirs):
            return answers_lib.remap(ours, theirs), ''
    some = lambda words: ', '.join(map(repr, words[:3])) + (', ...' if words[3:] else '')
    return None, f"the classifier's labels in config.json, {some(labels)}, are not our answers, {some(answers)}"


def config_labels(path) -> list[str] | None:
    """`id2label` of a folder's config.json, in order; None where it has none.

    Raises:
      ValueError: an id2label of another form.
    """
    table_there = (weights.find_config(path) or {}).get('id2label')
    if not table_there:
        return None
    try:
        labels = [table_there[str(n)] for n in range(len(table_there))]
    except (KeyError, TypeError):
        labels = None
    if labels is None or not all(isinstance(label, str) for label in labels):
        path = weights.folder_of(path) / 'config.json'
        raise ValueError(f'{path}: id2label is no object {{"0": label, "1": label, ...}}')
    return labels


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
        sizes = encoder_config(size) | {'type_vocab_size': size.types, 'hidden_act': 'gelu', 'layer_norm_eps': EPS}
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


def config_faults(path, size, eps: float | None = None) -> list[str]:
    """What differs between a folder's config.json and a model: no array shows the number of heads.

    Args:
      path: see `weights.folder_of`.
      size: `models.bert.Size`; None: nothing is compared.
      eps: of the model's norms; None where the folder's kind of model has no choice (DistilBERT).
    """
    there = weights.find_config(path)
    if size is None or there is None:
        return []
    names = {'dim': 'hidden_size', 'n_layers': 'num_hidden_layers', 'n_heads': 'num_attention_heads',
             'hidden_dim': 'intermediate_size', 'activation': 'hidden_act'}  # fmt: skip
    there = {names.get(key, key): value for key, value in there.items()}
    wanted = encoder_config(size) | {'hidden_act': 'gelu'}
    if eps is not None:
        # Where config.json does not say, transformers takes 1e-12, for RoBERTa as well.
        there = {'layer_norm_eps': 1e-12, **there}
        wanted |= {'layer_norm_eps': eps, 'position_embedding_type': 'absolute'}
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
