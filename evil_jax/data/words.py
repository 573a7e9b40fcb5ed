"""Which word of a text each piece of its encoding belongs to. Words are what white space separates: `text.split()`.

The pieces' places in the text decide, so nothing depends on how they are spelled: an unknown word is one piece, and so
is each unknown character that BERT takes for a word; a word of which BERT drops every character (control characters, a
lone accent) has no piece.
"""

import re

import numpy as np

from evil_jax.data.tokenizers import WordTokenizer

BORDER = ' [SEP] '  # between the texts of a pair
_WORD = re.compile(r'\S+')


def joined(first: str, second: str) -> str:
    """A pair of texts as the one text of an Example: with [SEP] between them, which is then in neither."""
    return BORDER.join(half.replace(BORDER, ' ') for half in (first, second))


def halves(text: str) -> tuple[str, str]:
    """The pair of `joined`.

    Raises:
      ValueError: there is no [SEP], or more of them.
    """
    found = text.split(BORDER)
    if len(found) != 2:
        raise ValueError(f"wanted a pair of texts as 'premise{BORDER}hypothesis', found {text[:80]!r}")
    return found[0], found[1]


def shares(first: int, second: int, maximum: int) -> tuple[int, int]:
    """How many pieces of the two texts of a pair are kept, where a row has `maximum` positions.

    The longer text loses its end, and where that is not enough they get a half each: 'longest_first' of transformers'
    fast tokenizers.

    Raises:
      ValueError: no room for the three markers.
    """
    room = maximum - 3
    if room < 0:
        raise ValueError(f'a row of {maximum} positions cannot hold [CLS] and two [SEP]')
    if first + second <= room:
        return first, second
    short = min(first, second, room // 2)
    return (room - short, short) if first > second else (short, room - short)


def pieces(text: str, tokenizer: WordTokenizer, maximum: int, pair: bool = False) -> tuple[np.ndarray, int]:
    """The words behind the row that `data.transforms.text` makes: `[CLS] words [SEP]`, cut to Q = `maximum` and padded.

    BERT drops some characters at which Python splits (a form feed, say) and so reads two words as one. A piece of both
    belongs to the first.

    Args:
      text: of W words.
      maximum: positions of the row, at least 2.
      pair: whether it is two texts, so that the row is that of `data.transforms.pair`; the [SEP] between them is a
        word.

    Returns:
      word_Q int32: index of the word that a position belongs to, rising; -1 at [CLS], at the last [SEP] and behind it.
      cut: how many words have pieces in the whole text, but none in the row.

    Raises:
      ValueError: no room for the markers, or no pair.
    """
    if pair:
        first, second = (_words(half, tokenizer) for half in halves(text))
        kept = shares(len(first), len(second), maximum)
        inner = len(halves(text)[0].split())
        whole = np.concatenate([first, [inner], second + inner + 1])
        row = np.concatenate([first[: kept[0]], [inner], second[: kept[1]] + inner + 1])
        return _row(row, maximum), len(np.setdiff1d(whole, row))
    if maximum < 2:
        raise ValueError(f'a row of {maximum} positions cannot hold [CLS] and [SEP]')
    word_P = _words(text, tokenizer)
    kept = word_P[: maximum - 2]
    return _row(kept, maximum), len(np.setdiff1d(word_P, kept))


def _words(text, tokenizer) -> np.ndarray:
    """Index of the word of each piece."""
    start_W = [match.start() for match in _WORD.finditer(text)]
    start_P = [start for start, _ in tokenizer.spans(text)]
    return np.searchsorted(start_W, start_P, side='right') - 1


def _row(word_P, maximum) -> np.ndarray:
    word_Q = np.full(maximum, -1, np.int32)
    word_Q[1 : len(word_P) + 1] = word_P
    return word_Q


def shown(word_Q: np.ndarray) -> np.ndarray:
    """Indices of the words with a piece in a row of `pieces`, rising, int32 [n]."""
    return np.unique(word_Q[word_Q >= 0])
