"""Which word of a text each piece of its encoding belongs to. Words are what white space separates: `text.split()`.

The pieces' places in the text decide, so nothing depends on how they are spelled: an unknown word is one piece, and so
is each unknown character that BERT takes for a word; a word of which BERT drops every character (control characters, a
lone accent) has no piece.
"""

import re

import numpy as np

from evil_jax.data.tokenizers import WordTokenizer

_WORD = re.compile(r'\S+')


def pieces(text: str, tokenizer: WordTokenizer, maximum: int) -> tuple[np.ndarray, int]:
    """The words behind the row that `data.transforms.text` makes: `[CLS] words [SEP]`, cut to Q = `maximum` and padded.

    BERT drops some characters at which Python splits (a form feed, say) and so reads two words as one. A piece of both
    belongs to the first.

    Args:
      text: of W words.
      maximum: positions of the row, at least 2.

    Returns:
      word_Q int32: index of the word that a position belongs to, rising; -1 at [CLS], at [SEP] and behind it.
      cut: how many words have pieces in the whole text, but none in the row.

    Raises:
      ValueError: no room for the two markers.
    """
    if maximum < 2:
        raise ValueError(f'a row of {maximum} positions cannot hold [CLS] and [SEP]')
    start_W = [match.start() for match in _WORD.finditer(text)]
    start_P = [start for start, _ in tokenizer.spans(text)]
    word_P = np.searchsorted(start_W, start_P, side='right') - 1
    kept = word_P[: maximum - 2]
    word_Q = np.full(maximum, -1, np.int32)
    word_Q[1 : len(kept) + 1] = kept
    return word_Q, len(np.setdiff1d(word_P, kept))


def shown(word_Q: np.ndarray) -> np.ndarray:
    """Indices of the words with a piece in a row of `pieces`, rising, int32 [n]."""
    return np.unique(word_Q[word_Q >= 0])
