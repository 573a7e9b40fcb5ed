"""Tokenisers of Hugging Face folders of BERT, DistilBERT and RoBERTa, with the library `tokenizers` alone.

Read is tokenizer.json, else vocab.txt, or vocab.json + merges.txt. What tokenizer_config.json says of the case, accents
and Chinese characters comes before what tokenizer.json does, as in transformers. A special token that stands in a text
('[SEP]') is that token.
"""

import dataclasses
import pathlib

import tokenizers
from tokenizers import models, pre_tokenizers, processors

from evil_jax.data.tokenizers import WordTokenizer
from evil_jax.interop import _folder, weights
from evil_jax.metrics.resources import Unavailable

_SPECIAL = {
    'words': {'cls': '[CLS]', 'sep': '[SEP]', 'pad': '[PAD]', 'unk': '[UNK]', 'mask': '[MASK]'},
    'bytes': {'cls': '<s>', 'sep': '</s>', 'pad': '<pad>', 'unk': '<unk>', 'mask': '<mask>'},
}
# What stands around two texts, with token types; RoBERTa has one type.
_PAIR = {'words': '{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1', 'bytes': '{cls}:0 $A:0 {sep}:0 {sep}:0 $B:0 {sep}:0'}
_LONGEST_WORD = 100  # characters, as transformers has it
# tokenizer_config.json -> attribute of the normaliser.
_CASE = {'do_lower_case': 'lowercase', 'strip_accents': 'strip_accents',
         'tokenize_chinese_chars': 'handle_chinese_chars'}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Text -> ids with the two special tokens around, cut to `longest` in all.

    Attributes:
      cls, sep: ids of the special tokens.
      kind: in words, for signatures.
    """

    tokenizer: tokenizers.Tokenizer
    cls: int
    sep: int
    longest: int
    kind: str

    def __len__(self) -> int:
        return 1 + max(self.tokenizer.get_vocab().values())

    def __call__(self, texts) -> tuple[list[list[int]], list[int]]:
        """(ids of each text, numbers of the texts that were cut)."""
        found = self.tokenizer.encode_batch_fast(list(texts))
        return [x.ids for x in found], _cut(found)

    def pairs(self, pairs) -> tuple[list[list[int]], list[list[int]], list[int]]:
        """(ids of each pair of texts, their token types, numbers of the pairs that were cut, the longer text first)."""
        found = self.tokenizer.encode_batch_fast(list(pairs))
        return [x.ids for x in found], [x.type_ids for x in found], _cut(found)


def _cut(found):
    return [n for n, x in enumerate(found) if x.overflowing]


def read(folder, kind: str, longest: int) -> Tokens:
    """The tokeniser of a folder.

    Args:
      kind: 'words' (WordPiece) or 'bytes' (byte-level BPE).
      longest: most tokens that the model can read; model_max_length of tokenizer_config.json may be less.

    Raises:
      Unavailable: there are no such files.
      ValueError: they are of another kind, or contradict each other.
    """
    folder = pathlib.Path(folder)
    path = folder / 'tokenizer_config.json'
    config = weights.read_json(path) if path.is_file() else {}
    stated = config.get('model_max_length')
    if isinstance(stated, int | float) and 2 < stated < longest:  # absent in words is an enormous number
        longest = int(stated)
    tokenizer, name = (_words if kind == 'words' else _bytes)(folder, config)
    special = {role: _named(config, f'{role}_token', default) for role, default in _SPECIAL[kind].items()}
    ids = {role: tokenizer.token_to_id(token) for role, token in special.items()}
    for role in ('cls', 'sep'):
        if ids[role] is None:
            raise ValueError(f'{folder}: the vocabulary has no {special[role]!r}, which begins or ends every text')
    tokenizer.add_special_tokens([special[role] for role, number in ids.items() if number is not None])
    _add(tokenizer, folder / 'added_tokens.json')
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[special['cls'], '$A', special['sep']],
        pair=[part.format(**special) for part in _PAIR[kind].split()],
        special_tokens=[(special[role], ids[role]) for role in ('cls', 'sep')],
    )
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return Tokens(tokenizer, ids['cls'], ids['sep'], longest, name)


def _words(folder, config):
    if (folder / 'tokenizer.json').is_file():
        tokenizer = _folder.described(folder / 'tokenizer.json', models.WordPiece)
    elif (folder / 'vocab.txt').is_file():
        tokenizer = _folder.word_pieces(WordTokenizer.load(folder), _LONGEST_WORD)
    else:
        raise Unavailable(f'needs the tokeniser of the encoder: {folder} has neither tokenizer.json nor vocab.txt')
    for key, attribute in _CASE.items():
        if key not in config:
            continue
        if not isinstance(config[key], bool) and not (config[key] is None and key == 'strip_accents'):
            raise ValueError(f'{folder / "tokenizer_config.json"}: {key} is {config[key]!r}, wanted true or false')
        setattr(tokenizer.normalizer, attribute, config[key])
    return tokenizer, f'wordpiece({"lower" if tokenizer.normalizer.lowercase else "mixed"})'


def _bytes(folder, config):
    vocabulary, merges = folder / 'vocab.json', folder / 'merges.txt'
    if (folder / 'tokenizer.json').is_file():
        tokenizer = _folder.described(folder / 'tokenizer.json', models.BPE)
    elif vocabulary.is_file() and merges.is_file():
        try:
            tokenizer = tokenizers.Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
        except Exception as error:  # the library has no class of its own for its errors
            raise ValueError(f'{vocabulary} and {merges.name}: not a byte-level vocabulary: {error}') from error
        prefix = config.get('add_prefix_space', False) is True
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    else:
        raise Unavailable(
            f'needs the tokeniser of the encoder: {folder} has neither tokenizer.json nor vocab.json and merges.txt'
        )
    return tokenizer, 'bpe(bytes)'


def _named(config, key, default) -> str:
    """A special token, which is text or an object with text."""
    value = config.get(key) or default
    value = value.get('content') if isinstance(value, dict) else value
    if not isinstance(value, str):
        raise ValueError(f'tokenizer_config.json: {key} is {value!r}, wanted text')
    return value


def _add(tokenizer, path) -> None:
    """Tokens behind the vocabulary, whose numbers are given."""
    for token, number in sorted((weights.read_json(path) if path.is_file() else {}).items(), key=lambda item: item[1]):
        tokenizer.add_tokens([token])
        if tokenizer.token_to_id(token) != number:
            raise ValueError(f'{path}: {token!r} is {number}, but {tokenizer.token_to_id(token)} by the vocabulary')
