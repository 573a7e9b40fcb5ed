"""RoBERTa: Hugging Face's names of its parameters, with or without `roberta.` before them.

A model with classes takes the classifier of a fine-tuned file, whose classes have to be as many; from a file without
one its two last layers stay fresh. A model without classes takes the pooler.
"""

from collections.abc import Mapping

import numpy as np

from evil_jax.interop import bert, table, weights

HEAD = table.rows(('pooler', 'classifier.dense', table.LINEAR), ('head/answer', 'classifier.out_proj', table.LINEAR))
TABLE = bert.ENCODER + bert.POOLER  # of a model without classes
CLASSIFIER = bert.ENCODER + HEAD  # of one with them
EPS = 1e-5  # of our norms
_UNUSED = (r'lm_head\..*', r'embeddings\.position_ids')


def load(path, shapes: Mapping, size=None) -> dict[str, np.ndarray]:
    """Parameters from a Hugging Face folder or a file.

    Args:
      path: see `weights.read`.
      shapes: {our path: something with a shape}.
      size: `models.bert.Size`; with it the folder's config.json is compared, whose number of heads no array shows.

    Returns:
      {our path: array}; without `pooler` and `head` where the model has classes and the file none.

    Raises:
      ValueError: everything that does not fit, in one message.
    """
    there = table.renamed(weights.read(path), ((r'^roberta\.', ''), *bert.OLD), path)
    classes, has = 'head/answer/kernel' in shapes, any(name.startswith('classifier.') for name in there)
    ignored = (*_UNUSED, *((r'pooler\..*',) if classes else (r'classifier\..*',)))
    return table.load(
        CLASSIFIER if classes else TABLE, there, shapes, ignored=ignored,
        fresh=('pooler/.*', 'head/.*') if classes and not has else (), differing=bert.config_faults(path, size, EPS),
        origin='RoBERTa', where=path,
    )  # fmt: skip


def save(params: Mapping, prefix: str = 'roberta.') -> dict[str, np.ndarray]:
    """Hugging Face's names for all parameters; a classifier's have no prefix.

    Args:
      params: {our path: array}.
      prefix: what stands before the encoder's names: 'roberta.' in models with a classifier, '' in those without.
    """
    rows = CLASSIFIER if 'head/answer/kernel' in params else TABLE
    found = table.save(rows, params, where='RoBERTa')
    return {name if name.startswith('classifier.') else prefix + name: array for name, array in found.items()}


def hf_config(size, words: int, labels: int = 0) -> dict:
    """config.json of transformers for a `models.bert.Size`. `labels`: outputs of a classifier; 0 = none."""
    return {
        'model_type': 'roberta',
        'architectures': ['RobertaForSequenceClassification' if labels else 'RobertaModel'],
        'vocab_size': words,
        'max_position_embeddings': size.positions,
        'type_vocab_size': size.types,
        'pad_token_id': 1,
        'bos_token_id': 0,
        'eos_token_id': 2,
        'hidden_act': 'gelu',
        'layer_norm_eps': EPS,
        **bert.encoder_config(size),
        **({'id2label': {str(n): f'LABEL_{n}' for n in range(labels)}} if labels else {}),
    }
