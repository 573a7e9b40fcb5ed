"""What the metrics' own models share: sizes of a config.json, WordPiece, models that are built without values."""

import hashlib
import pathlib
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
import tokenizers
from flax import nnx
from tokenizers import models, normalizers, pre_tokenizers

from evil_jax.data.tokenizers import UNK, WordTokenizer


def number(config: Mapping, key: str, faults: list[str], default=None) -> int:
    """A size in a config.json; 1, and a fault, where there is none: all faults are told at once."""
    value = config.get(key, default)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10**7:
        return value
    faults.append(f'{key} is {value!r}, wanted a number from 1')
    return 1


def word_pieces(words: WordTokenizer, longest: int) -> tokenizers.Tokenizer:
    """BERT's tokeniser without special tokens around. Words of more than `longest` characters are unknown."""
    ids = {token: n for n, token in enumerate(words.vocabulary)}
    found = tokenizers.Tokenizer(models.WordPiece(ids, unk_token=UNK, max_input_chars_per_word=longest))
    found.normalizer = normalizers.BertNormalizer(lowercase=words.lowercase)
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return found


def described(path: pathlib.Path, kind: type) -> tokenizers.Tokenizer:
    """The tokeniser of a tokenizer.json.

    Args:
      kind: class of its model; of `models.WordPiece` the normaliser has to be BERT's.

    Raises:
      ValueError: not such a tokeniser; names the file.
    """
    try:
        found = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library has no class of its own for its errors
        raise ValueError(f'{path}: not a tokeniser: {error}') from error
    if not isinstance(found.model, kind):
        raise ValueError(f'{path}: its model is {type(found.model).__name__}, wanted {kind.__name__}')
    if kind is models.WordPiece and not isinstance(found.normalizer, normalizers.BertNormalizer):
        raise ValueError(f'{path}: its normalizer is {type(found.normalizer).__name__}, wanted BertNormalizer')
    return found


def flat(model) -> dict:
    """{path: something with a shape} of a model."""
    return {'/'.join(map(str, path)): leaf.get_value() for path, leaf in nnx.to_flat_state(nnx.state(model, nnx.Param))}


def filled(model, params: Mapping):
    """The model with these values in place of its own, which it need not have."""
    graph, state = nnx.split(model, nnx.Param)
    pairs = [(p, leaf.replace(jnp.array(params['/'.join(map(str, p))]))) for p, leaf in nnx.to_flat_state(state)]
    return nnx.merge(graph, nnx.from_flat_state(pairs))


def digest(params: Mapping, more=()) -> str:
    """12 hex digits of parameters and of what else decides: the same for the same numbers, whatever file holds them."""
    found = hashlib.sha256(repr(more).encode())
    for path in sorted(params):
        array = np.asarray(params[path], np.float32, order='C')
        found.update(f'{path}{array.shape}'.encode())
        found.update(array.reshape(-1).view(np.uint8))
    return found.hexdigest()[:12]
