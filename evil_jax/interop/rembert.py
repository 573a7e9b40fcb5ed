"""RemBERT: Hugging Face's names of its parameters, with or without `rembert.` before them.

The heads of pre-training and of classifiers are of no use here; BLEURT's is in interop/bleurt.py.
"""

from collections.abc import Mapping

import numpy as np

from evil_jax.interop import bert, table, weights

UP = table.rows(('text/up', 'encoder.embedding_hidden_mapping_in', table.LINEAR))
TABLE = bert.ENCODER + UP + bert.POOLER
EPS = 1e-12  # of our norms
_UNUSED = (r'cls\..*', r'classifier\..*', r'qa_outputs\..*', r'embeddings\.position_ids')


def load(path, shapes: Mapping, size=None) -> dict[str, np.ndarray]:
    """{our path: array} from a Hugging Face folder or a file. Arguments and errors are those of `roberta.load`."""
    there = table.renamed(weights.read(path), ((r'^rembert\.', ''), *bert.OLD), path)
    return table.load(
        TABLE, there, shapes, ignored=_UNUSED, differing=bert.config_faults(path, size, EPS), origin='RemBERT',
        where=path,
    )  # fmt: skip


def save(params: Mapping, prefix: str = 'rembert.') -> dict[str, np.ndarray]:
    """Hugging Face's names for all parameters.

    Args:
      params: {our path: array}.
      prefix: what stands before the names: 'rembert.' in models with a head, '' in RemBertModel.
    """
    return {prefix + name: array for name, array in table.save(TABLE, params, where='RemBERT').items()}


def hf_config(size, words: int, inputs: int) -> dict:
    """config.json of transformers for a `models.bert.Size`, `words` of the vocabulary and their width `inputs`."""
    return {
        'model_type': 'rembert',
        'architectures': ['RemBertModel'],
        'vocab_size': words,
        'input_embedding_size': inputs,
        'max_position_embeddings': size.positions,
        'type_vocab_size': size.types,
        'pad_token_id': 0,
        'hidden_act': 'gelu',
        'layer_norm_eps': EPS,
        **bert.encoder_config(size),
    }
