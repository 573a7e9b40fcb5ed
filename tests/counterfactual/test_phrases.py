"""What a question asks for, parts of nouns, negation, fixed phrases, other languages."""

import collections
import gzip
import json
import types

import pytest

from evil_jax.counterfactual import phrases, tagging


@pytest.mark.parametrize(
    ('text', 'asked'),
    [
        ('What color is the dog?', 'colour'),
        ('What is the main colour of the car?', 'colour'),
        ('Which two colors are on the flag?', 'colour'),
        ('Is the picture in color?', 'yes/no'),
        ('What is in color?', 'what'),
        ('How many dogs are brown?', 'count'),
        ('What is the number of dogs?', 'count'),
        ('What number is on the bus?', 'what'),
        ('Where is the dog?', 'where'),
        ("Where's the dog?", 'where'),
        ('Whose dog is it?', 'who'),
        ("who's there", 'who'),
        ('What time is it?', 'when'),
        ('When was this taken?', 'when'),
        ('Why is he sad?', 'why'),
        ('How old is the man?', 'how'),
        ('Which dog is bigger?', 'which'),
        ('What kind of dog is this?', 'what'),
        ('In what city is this?', 'what'),
        ('Name the toppings?', 'what'),
        ('Is it raining?', 'yes/no'),
        ("Isn't it raining", 'yes/no'),
        ('The sign is red?', 'yes/no'),
        ('Is it red or blue?', 'which'),
        ('Sunny or overcast?', 'which'),
        ('Is it raining or not?', 'yes/no'),
        ('A man is sleeping.', 'statement'),
        ('The man who sleeps is old.', 'statement'),
        ('', 'statement'),
    ],
)
def test_what_is_asked_for(text, asked):
    assert phrases.asks(text) == asked
    assert asked in phrases.ASKS


def test_real_answers_are_of_the_kind_that_is_asked_for(shared):
    kinds = collections.defaultdict(collections.Counter)
    with gzip.open(shared / 'data/vqav2/small_2962.jsonl.gz', 'rt') as file:
        for row in map(json.loads, file):
            kinds[phrases.asks(row['question'])][row['answer_type']] += 1
    for asked, kind in (('yes/no', 'yes/no'), ('count', 'number'), ('colour', 'other')):
        assert kinds[asked][kind] / kinds[asked].total() > 0.98
    assert kinds['yes/no'].total() > 900
    assert kinds['which']['yes/no'] <= 0.03 * kinds['which'].total()


@pytest.mark.parametrize(
    ('text', 'roles'),
    [
        ('Is the fire truck red?', {'fire truck': 'head'}),
        ('Is the brick wall high?', {'brick': 'modifier', 'wall': 'head'}),
        ("What color is the dog's big collar?", {'color': 'head', 'dog': 'modifier', 'collar': 'head'}),
        ("The dog's sleeping.", {'dog': 'head'}),
        ('What color shirt is that?', {'color': 'head', 'shirt': 'head'}),
        ('What kind of dog is it?', {'kind': 'determiner', 'dog': 'of'}),
        ('Is it a glass of cold red wine?', {'glass': 'determiner', 'red wine': 'of'}),
        ('Is it a picture of the two dogs?', {'picture': 'determiner', 'dogs': 'of'}),
        ('What is the color of the wall?', {'color': 'head', 'wall': 'head'}),
        ('The dog, cat and bird', {'dog': 'head', 'cat': 'head', 'bird': 'head'}),
        ('What kind of?', {'kind': 'head'}),
    ],
)
def test_roles_of_nouns(lexicon, text, roles):
    tokens = tagging.tag(lexicon, text)
    found = {token.text: phrases.role(tokens, at) for at, token in enumerate(tokens) if token.pos == 'n'}
    assert found == roles
    assert set(roles.values()) <= set(phrases.ROLES)


@pytest.mark.parametrize(
    ('text', 'negated', 'downward'),
    [
        ('A man has no DOG', True, False),
        ("The man isn't near a DOG", True, False),
        ('The man doesn’t see a DOG', True, False),
        ('Nobody sees the DOG', True, False),
        ('A man without a DOG', True, False),
        ('A DOG is not there', False, False),
        ('It is not red. A DOG runs', False, False),
        ('A few men see a DOG', False, False),
        ('Few men see a DOG', False, True),
        ('Fewer than two DOG', False, True),
        ('Only a DOG', False, True),
        ('Every DOG', False, True),
        ('At most three DOG', False, True),
        ('All men have no DOG', True, True),
        ('The note on the knot: a DOG', False, False),
    ],
)
def test_negators_and_downward_quantifiers_before_a_place(text, negated, downward):
    at = text.index('DOG')
    assert phrases.negated(text, at) is negated
    assert phrases.downward(text, at) is downward
    if negated or downward:
        assert not phrases.is_calm([types.SimpleNamespace(text=text[slice(*span)]) for span in tagging.tokenise(text)])


def test_twins(lexicon):
    def twins(text):
        return {token.text: phrases.twin(lexicon, token) for token in tagging.tag(lexicon, text)}

    assert twins('What is pictured?')['pictured']
    assert not twins('Is she eating?')['eating']
    assert twins('Is the light green?') == {'Is': False, 'the': False, 'light': False, 'green': True}


@pytest.mark.parametrize(
    ('text', 'family', 'kept'),
    [
        ('Is the dog in front of a car?', 'hypernym', ['in front of']),
        ('In Front Of what?', 'delete', ['In Front Of']),
        ('A storefront of glass', 'hypernym', []),
        ('Is the plane taking off?', 'synonym_verb', ['taking off']),
        ('Is the plane taking off?', 'hypernym', []),
        ('Is it next to it?', 'synonym_adjective', ['next to']),
        ('Is it going to rain?', 'synonym_verb', []),
        ('It is going to rain.', 'synonym_verb', ['is going to']),
        ('It’s 5 o’clock', 'hyponym', ['o’clock']),
        ('<|det1|> is on top of <|det12|>', 'sibling', ['<|det1|>', 'on top of', '<|det12|>']),
        ('<|det1|> is in front of it', 'colour_max_common', ['<|det1|>']),
        ('İ İ İ in front of', 'hypernym', ['in front of']),
        ('', 'hypernym', []),
    ],
)
def test_what_is_left_alone(text, family, kept):
    assert [text[start:end] for start, end in phrases.protected(text, family)] == kept


@pytest.mark.parametrize(
    ('text', 'english'),
    [
        ('Is the dog happy?', True),
        ('What umpyre is this', True),
        ('Wieters back?', True),
        ('<|det1|> ?', True),
        ('Was ist das für ein Tier?', False),
        ('¿De qué color es el coche?', False),
        ('Quelle est la couleur du chien ?', False),
        ('Welke kleur heeft de hond?', False),
        ('Di che colore è il cane?', False),
        ('你好吗', False),
        ('asdf qwer', False),
    ],
)
def test_other_languages(lexicon, text, english):
    assert phrases.is_english(tagging.tag(lexicon, text), lexicon) is english
