"""What is asked beside the edits: the same question, random words of one class, no picture."""

import pytest

from evil_jax.counterfactual import baselines, exchange
from evil_jax.counterfactual.edits import FAMILIES, Edit
from evil_jax.counterfactual.tagging import Token
from evil_jax.records import Example

POS = {
    'dog': ('n', False, ''), 'cat': ('n', False, ''), 'owl': ('n', False, ''), 'dogs': ('n', True, ''),
    'cats': ('n', True, ''), 'runs': ('v', False, 's'), 'sits': ('v', False, 's'), 'red': ('a', False, ''),
    'orange': ('a', False, ''), 'Rex': ('n', False, ''), 'zork': ('n', False, ''),
}  # fmt: skip
QUESTIONS = ['a dog runs', 'the cat sits', 'an owl', 'dogs, cats', 'Rex red', 'orange zork']


def tagger(text):
    tokens, at = [], 0
    for word in text.replace(',', ' ').replace('?', ' ').split():
        at = text.index(word, at)
        pos, plural, form = POS.get(word, ('f', False, ''))
        tokens.append(
            Token(word, at, at + len(word), word, pos, 'unknown' if word == 'zork' else 'base', plural, form)
        )  # fmt: skip
        at += len(word)
    return tokens


WORDS = baselines.Words(QUESTIONS, tagger)


def edit_of(example, family, source, target='x', start=None):
    at = example.text.index(source)
    start = at if start is None else start
    text = example.text[:at] + target + example.text[at + len(source) :]
    return Edit(
        f'{example.id}#{family}', example.id, example.image_id, family, example.text, text, (start, at + len(source)),
        (start, at + len(target)), source, target,
    )  # fmt: skip


def make(text, *edits, names=baselines.NAMES, **more):
    example = Example('7', 'p', text)
    made = list(baselines.Maker(names, WORDS, tagger, **more)(example, [edit_of(example, *edit) for edit in edits]))
    for edit in made:
        (start, end), (low, high) = edit.span, edit.target_span
        assert edit.text == text[:start] + edit.text[low:high] + text[end:] and edit.id == f'7#{edit.family}'
        assert edit.original == text and edit.example_id == '7' and edit.image_id == 'p'
    return {edit.family: edit for edit in made}


def test_all_of_them():
    found = make('A  dog runs,\nis it red?', ('sibling', 'dog'), ('synonym_verb', 'runs'), ('colour_max_common', 'red'))
    assert list(found) == ['noop', 'random_noun', 'random_verb', 'random_adjective', 'blank', 'repeat']
    assert set(found) == set(baselines.FAMILIES)
    for name in ('noop', 'blank', 'repeat'):
        assert found[name].text == 'A  dog runs,\nis it red?'
    assert (found['noop'].source, found['noop'].target, found['noop'].span) == ('dog', 'dog', (3, 6))
    assert found['random_verb'].text == 'A  dog sits,\nis it red?'
    assert found['random_adjective'].text == 'A  dog runs,\nis it orange?'


def test_the_word_is_another_of_its_class_and_form():
    drawn = {make('Are dogs dogs?', ('sibling', 'dogs'), seed=seed)['random_noun'].target for seed in range(20)}
    assert drawn == {'cats'}
    drawn = {make('One dog?', ('sibling', 'dog', 'cat'), seed=seed)['random_noun'].target for seed in range(20)}
    assert drawn == {'owl'}  # not the edit's own word, no name, nothing that is no word
    drawn = [make('One dog?', ('sibling', 'dog'), seed=seed)['random_noun'].target for seed in range(40)]
    assert set(drawn) == {'cat', 'owl'} and drawn == [
        make('One dog?', ('sibling', 'dog'), seed=seed)['random_noun'].target for seed in range(40)
    ]


def test_there_may_be_no_other_word():
    words = baselines.Words(['a dog'], tagger)
    example = Example('7', 'p', 'a dog')
    made = baselines.Maker(['random'], words, tagger)(example, [edit_of(example, 'hypernym', 'dog')])
    assert list(made) == []


def test_articles_and_case_fit():
    text = 'Is it an owl or a Dog?'
    texts = {make(text, ('sibling', 'owl'), seed=seed)['random_noun'].text for seed in range(20)}
    assert texts == {'Is it a dog or a Dog?', 'Is it a cat or a Dog?'}
    texts = {make(text, ('sibling', 'owl'), seed=seed, agree=False)['random_noun'].text for seed in range(20)}
    assert texts == {'Is it an dog or a Dog?', 'Is it an cat or a Dog?'}
    texts = {make('A Dog?', ('sibling', 'Dog', 'Wolf'), seed=seed)['random_noun'].text for seed in range(20)}
    assert texts == {'A Cat?', 'An Owl?'}


def test_one_of_each_class_where_the_first_edit_is():
    found = make('dog or cat?', ('hypernym', 'cat'), ('sibling', 'dog'), names=['random'])
    assert list(found) == ['random_noun'] and found['random_noun'].text.startswith('dog or ')


def test_a_span_with_more_than_the_word():
    example = Example('7', 'p', 'Is a dog a dog?')
    edit = edit_of(example, 'sibling', 'dog', start=3)
    made = list(baselines.Maker(['noop', 'random', 'noop'], WORDS, tagger)(example, [edit]))
    assert len(made) == 2 and made[0].span == (5, 8) and made[0].text == example.text
    assert made[1].text in ('Is a cat a dog?', 'Is an owl a dog?')


def test_every_family_has_its_random_baseline():
    assert {family: baselines.random_of(family) for family in FAMILIES if family not in ('hypernym', 'hyponym')} == {
        'synonym_verb': 'random_verb',
        'synonym_adjective': 'random_adjective',
        'colour_max_common': 'random_adjective',
        'colour_max_uncommon': 'random_adjective',
        'colour_min_common': 'random_adjective',
        'colour_min_uncommon': 'random_adjective',
        'sibling': 'random_noun',
        'delete': 'random_noun',
    }


def test_unknown_name():
    with pytest.raises(ValueError, match=r"baseline is 'blnk'\. Did you mean 'blank'"):
        baselines.Maker(['blnk'], WORDS, tagger)


def test_they_are_asked(tmp_path):
    example = Example('7', 'p', 'a dog runs')
    maker = baselines.Maker(baselines.NAMES, WORDS, tagger)
    rows = list(exchange.write(tmp_path, [example], lambda e: [edit_of(e, 'delete', 'dog', '')], maker).rows())
    assert [row['id'] for row in rows] == ['7', '7#delete', '7#noop', '7#random_noun', '7#blank', '7#repeat']
    assert rows[4] == {'id': '7#blank', 'image_id': 'p', 'text': 'a dog runs', 'image': 'blank'}
    assert rows[5] == {'id': '7#repeat', 'image_id': 'p', 'text': 'a dog runs', 'repeat': 1}
