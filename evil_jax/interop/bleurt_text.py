"""Pairs of texts as BLEURT reads them: [CLS] reference [SEP] candidate [SEP], reference first.

As google-research/bleurt does it. Where a pair is too long the longer text loses its last tokens until both are equally
long, then both in turn, the candidate first. (The tokenizers library cuts otherwise where the room is odd, as it is
with 128 or 512 tokens: it may leave the candidate the one more.) Words of the form '[SEP]' in a text are letters and
punctuation. Half a surrogate pair, which is no character, counts as U+FFFD.
"""

import abc
import hashlib
import pathlib
from collections.abc import Sequence

from tokenizers import models

from evil_jax.data.tokenizers import CLS, SEP, WordTokenizer
from evil_jax.interop import _folder
from evil_jax.metrics import resources

SPECIAL = 3  # tokens of a pair that are of neither text
_LONGEST_WORD = 200  # characters, as BERT's own code has it; the tokenizers library has 100


class Cutter(abc.ABC):
    """How a folder cuts texts.

    Attributes:
      kind: for a signature.
      size: entries of the vocabulary.
      cls, sep: ids.
      digest: 64 hex digits; two that cut alike have the same.
    """

    def __init__(self, kind: str, size: int, cls: int, sep: int, digest: str):
        self.kind, self.size, self.cls, self.sep, self.digest = kind, size, cls, sep, digest

    @abc.abstractmethod
    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text."""

    def pair(self, reference: Sequence[int], candidate: Sequence[int], most: int) -> tuple[list[int], list[int]]:
        """(ids, types) of a pair of at most `most` tokens."""
        r, c = kept(len(reference), len(candidate), most - SPECIAL)
        ids = [self.cls, *reference[:r], self.sep, *candidate[:c], self.sep]
        return ids, [0] * (r + 2) + [1] * (c + 1)


def kept(reference: int, candidate: int, most: int) -> tuple[int, int]:
    """How many of their tokens two texts keep that may have `most` together."""
    if reference + candidate <= most:
        return reference, candidate
    if candidate <= most // 2:
        return most - candidate, candidate
    if reference <= most // 2:
        return reference, most - reference
    return most - most // 2, most // 2


class _WordPieces(Cutter):
    def __init__(self, word: WordTokenizer):
        content = repr((word.vocabulary, word.lowercase))
        super().__init__(
            f'wordpiece-{"uncased" if word.lowercase else "cased"}', len(word), word.cls, word.sep, _sha(content)
        )
        self._tokenizer = _folder.word_pieces(word, _LONGEST_WORD)

    def cut(self, texts):
        return [e.ids for e in self._tokenizer.encode_batch(list(map(_whole, texts)), add_special_tokens=False)]


class _SentencePieces(Cutter):
    def __init__(self, path: pathlib.Path):
        try:
            import sentencepiece
        except ImportError as error:
            raise resources.Unavailable(
                f"{path}: reading it needs sentencepiece: pip install 'evil_jax[scores]' (or pip install sentencepiece)"
            ) from error
        if not path.is_file():
            raise ValueError(f'{path} does not exist; wanted a model of SentencePiece')
        data = path.read_bytes()
        try:
            self._model = sentencepiece.SentencePieceProcessor(model_proto=data)
            size, unknown = self._model.get_piece_size(), self._model.unk_id()
        except (RuntimeError, OSError, ValueError) as error:
            raise ValueError(f'{path}: not a model of SentencePiece: {error}') from error
        cls, sep = (self._model.piece_to_id(piece) for piece in (CLS, SEP))
        if unknown in (cls, sep) or size < 1:
            raise ValueError(f'{path}: of its {size} pieces none is {CLS!r}, or none {SEP!r}; wanted both')
        super().__init__('sentencepiece', size, cls, sep, _sha(data))

    def cut(self, texts):
        # By way of the pieces: an unknown run of characters is looked up as it stands, as the original does.
        return [[self._model.piece_to_id(p) for p in pieces]
                for pieces in self._model.encode(list(map(_whole, texts)), out_type=str)]  # fmt: skip


def word_pieces(path, lowercase: bool | None = None) -> Cutter:
    """WordPiece (Wu et al. 2016) by a vocab.txt, or by that of the tokenizer.json of a folder.

    Args:
      path: the file vocab.txt, or a folder.
      lowercase: None: as the folder says, see `WordTokenizer.load`.

    Raises:
      ValueError: there is none, or it is not BERT's; names the file.
    """
    path = pathlib.Path(path)
    described = path / 'tokenizer.json'
    if path.is_dir() and not (path / 'vocab.txt').is_file() and described.is_file():
        return _WordPieces(_described(described, lowercase))
    return _WordPieces(WordTokenizer.load(path, lowercase))


def _described(path, lowercase):
    found = _folder.described(path, models.WordPiece)
    vocabulary = found.get_vocab(with_added_tokens=False)
    entries = sorted(vocabulary, key=vocabulary.__getitem__)
    if list(map(vocabulary.get, entries)) != list(range(len(entries))):
        raise ValueError(f"{path}: the ids of its WordPiece are not 0, 1, ...; wanted BERT's")
    return WordTokenizer(entries, found.normalizer.lowercase if lowercase is None else lowercase, str(path))


def sentence_pieces(path) -> Cutter:
    """SentencePiece (Kudo and Richardson 2018) by a model file that has the pieces [CLS] and [SEP].

    Raises:
      resources.Unavailable: the package sentencepiece is not installed.
      ValueError: no such file; names it.
    """
    return _SentencePieces(pathlib.Path(path))


def _whole(text):
    """Without halves of surrogate pairs, which no file of text can hold (JSON can)."""
    return text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')


def _sha(content):
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode('utf-8')).hexdigest()
