"""From tokens to lemmas, and from lemmas to the forms that a sentence wants."""

import hypothesis
import pytest
from hypothesis import strategies

from evil_jax.counterfactual import morphology


@pytest.mark.parametrize(
    'token, pos, lemmas',
    [
        ('dogs', 'n', [('dog', 's>')]),
        ('Dogs', 'n', [('dog', 's>')]),
        ('dishes', 'n', [('dish', 'shes>sh')]),
        ('buses', 'n', [('bus', 'ses>s')]),
        ('boxes', 'n', [('box', 'xes>x')]),
        ('ponies', 'n', [('pony', 'ies>y')]),
        ('policemen', 'n', [('policeman', 'men>man')]),
        ('children', 'n', [('child', 'exception')]),
        ('knives', 'n', [('knife', 'exception')]),
        ('mice', 'n', [('mouse', 'exception')]),
        ('windows', 'n', [('windows', 'entry'), ('window', 's>')]),
        ('glass', 'n', [('glass', 'entry')]),
        ('boss', 'n', [('boss', 'entry')]),  # although bos is an entry
        ('bus', 'n', [('bus', 'entry')]),
        ('fire hydrants', 'n', [('fire hydrant', 's>')]),
        ('baked potatoes', 'n', [('baked potato', 'exception')]),
        ('men-of-war', 'n', [('man-of-war', 'exception')]),
        ('mothers-in-law', 'n', [('mother-in-law', 's>')]),
        ('talking', 'v', [('talk', 'ing>')]),
        ('spoke', 'v', [('speak', 'exception')]),
        ('tries', 'v', [('try', 'ies>y')]),
        ('readied', 'v', [('ready', 'ied>y')]),
        ('unclipped', 'v', [('unclip', 'ped>')]),
        ('having on', 'v', [('have on', 'ing>e')]),
        ('bigger', 'a', [('bigger', 'entry'), ('big', 'exception')]),
        ('nicest', 'a', [('nice', 'est>e')]),
        ('stamina', 'n', [('stamina', 'entry'), ('stamen', 'exception')]),
        ('xyzzies', 'n', []),
        ('', 'n', []),
        ('dogs', 'r', []),
    ],
)
def test_lemmas(lexicon, token, pos, lemmas):
    assert morphology.lemmas(lexicon, token, pos) == lemmas


@pytest.mark.parametrize(
    'token, pos, lemma',
    [
        ('windows', 'n', 'window'),  # not the operating system
        ('cows', 'n', 'cow'),  # not cattle
        ('colors', 'n', 'color'),
        ('drawers', 'n', 'drawer'),
        ('legs', 'n', 'leg'),
        ('words', 'n', 'word'),
        ('hands', 'n', 'hand'),
        ('papers', 'n', 'paper'),
        ('glasses', 'n', 'glasses'),
        ('shorts', 'n', 'shorts'),
        ('pants', 'n', 'pants'),
        ('stamina', 'n', 'stamina'),
        ('people', 'n', 'people'),
        ('news', 'n', 'news'),
        ('gas', 'n', 'gas'),
        ('saw', 'v', 'see'),
        ('left', 'v', 'leave'),
        ('better', 'a', 'good'),
    ],
)
def test_the_likely_lemma(lexicon, token, pos, lemma):
    assert morphology.lemma(lexicon, token, pos)[0] == lemma


def test_no_lemma(lexicon):
    assert morphology.lemma(lexicon, 'xyzzies', 'n') is None


@pytest.mark.parametrize(
    'one, more',
    [
        ('dog', 'dogs'),
        ('canine', 'canines'),
        ('box', 'boxes'),
        ('church', 'churches'),
        ('city', 'cities'),
        ('boy', 'boys'),
        ('photo', 'photos'),
        ('potato', 'potatoes'),
        ('roof', 'roofs'),
        ('giraffe', 'giraffes'),
        ('knife', 'knives'),
        ('cloverleaf', 'cloverleaves'),
        ('stomach', 'stomachs'),
        ('quiz', 'quizzes'),
        ('waltz', 'waltzes'),
        ('oasis', 'oases'),
        ('lens', 'lenses'),
        ('glass', 'glasses'),
        ('bus', 'buses'),
        ('gas', 'gases'),
        ('child', 'children'),
        ('grandchild', 'grandchildren'),
        ('person', 'people'),
        ('ox', 'oxen'),
        ('fireman', 'firemen'),
        ('woman', 'women'),
        ('human', 'humans'),
        ('German', 'Germans'),
        ('blouse', 'blouses'),
        ('mongoose', 'mongooses'),
        ('Labrador retriever', 'Labrador retrievers'),
        ('fire hydrant', 'fire hydrants'),
        ('hot dog', 'hot dogs'),
        ('mother-in-law', 'mothers-in-law'),
        ('piece of cake', 'pieces of cake'),
        ('man-of-war', 'men-of-war'),
        ('jack-in-the-box', 'jack-in-the-boxes'),
        ('TV', 'TVs'),
        ('Wolf', 'Wolves'),
    ],
)
def test_plurals(one, more):
    assert morphology.plural(one) == more
    assert morphology.is_plural(more, one) and not morphology.is_plural(one, one)


@pytest.mark.parametrize(
    'word',
    ['glasses', 'jeans', 'pants', 'trousers', 'scissors', 'stairs', 'drawers', 'people', 'men', 'police', 'cattle'],
)
def test_plurals_stay(word):
    assert morphology.plural(word) == word and morphology.is_plural(word, word)


@pytest.mark.parametrize('word', ['sheep', 'aircraft', 'deer', 'goldfish', 'series', 'species'])
def test_one_and_many_alike(word):
    assert morphology.plural(word) == word and not morphology.is_plural(word, word)


@pytest.mark.parametrize('word', ['furniture', 'luggage', 'water', 'grass', 'tennis', 'gymnastics', 'tomato ketchup'])
def test_what_cannot_be_counted(word):
    assert morphology.is_mass(word) and morphology.plural(word) == word and not morphology.is_plural(word, word)


@pytest.mark.parametrize('word', ['dog', 'beer', 'light', 'glass', 'class', 'water bottle'])
def test_what_can_be_counted(word):
    assert not morphology.is_mass(word)


@pytest.mark.parametrize(
    'base, s, past, participle, ing',
    [
        ('talk', 'talks', 'talked', 'talked', 'talking'),
        ('speak', 'speaks', 'spoke', 'spoken', 'speaking'),
        ('visualize', 'visualizes', 'visualized', 'visualized', 'visualizing'),
        ('see', 'sees', 'saw', 'seen', 'seeing'),
        ('have', 'has', 'had', 'had', 'having'),
        ('be', 'is', 'was', 'been', 'being'),
        ('go', 'goes', 'went', 'gone', 'going'),
        ('try', 'tries', 'tried', 'tried', 'trying'),
        ('play', 'plays', 'played', 'played', 'playing'),
        ('catch', 'catches', 'caught', 'caught', 'catching'),
        ('stop', 'stops', 'stopped', 'stopped', 'stopping'),
        ('visit', 'visits', 'visited', 'visited', 'visiting'),
        ('admit', 'admits', 'admitted', 'admitted', 'admitting'),
        ('travel', 'travels', 'traveled', 'traveled', 'traveling'),
        ('layer', 'layers', 'layered', 'layered', 'layering'),
        ('equip', 'equips', 'equipped', 'equipped', 'equipping'),
        ('quit', 'quits', 'quit', 'quit', 'quitting'),
        ('picnic', 'picnics', 'picnicked', 'picnicked', 'picnicking'),
        ('sync', 'syncs', 'synced', 'synced', 'syncing'),
        ('dye', 'dyes', 'dyed', 'dyed', 'dyeing'),
        ('die', 'dies', 'died', 'died', 'dying'),
        ('canoe', 'canoes', 'canoed', 'canoed', 'canoeing'),
        ('whiz', 'whizzes', 'whizzed', 'whizzed', 'whizzing'),
        ('overrun', 'overruns', 'overran', 'overrun', 'overrunning'),
        ('outstrip', 'outstrips', 'outstripped', 'outstripped', 'outstripping'),
        ('rebuild', 'rebuilds', 'rebuilt', 'rebuilt', 'rebuilding'),
        ('relay', 'relays', 'relayed', 'relayed', 'relaying'),
        ('behave', 'behaves', 'behaved', 'behaved', 'behaving'),
        ('have on', 'has on', 'had on', 'had on', 'having on'),
        ('get dressed', 'gets dressed', 'got dressed', 'gotten dressed', 'getting dressed'),
    ],
)
def test_forms_of_verbs(base, s, past, participle, ing):
    forms = dict(zip(morphology.FORMS, (base, s, past, participle, ing)))
    for form, word in forms.items():
        assert morphology.verb_form(base, form) == word
        assert form in morphology.verb_forms(word, base)
    assert morphology.verb_forms(ing, base) == ('ing',)


def test_forms_that_are_not_written_are_told():
    assert morphology.verb_forms('travelling', 'travel') == ('ing',)
    assert morphology.verb_forms('burnt', 'burn') == ('past', 'participle')
    assert morphology.verb_forms('are', 'be') == ('base',) and morphology.verb_forms('were', 'be') == ('past',)
    with pytest.raises(ValueError, match=r"no form 'present' of a verb: there are base, s, past, participle, ing"):
        morphology.verb_form('see', 'present')


def test_forms_of_all_verbs_of_wordnet_lead_back(lexicon):
    """WordNet's own lists and rules are a second opinion on every form of 3,600 verbs."""
    wrong = total = 0
    for verb in lexicon._row['v']:
        if verb.isalpha() and lexicon.frequency(verb, 'v'):
            for form in ('s', 'past', 'participle', 'ing'):
                total += 1
                wrong += verb not in dict(morphology.lemmas(lexicon, morphology.verb_form(verb, form), 'v'))
    assert total > 14000 and wrong < 0.003 * total


def test_plurals_of_wordnets_common_nouns_lead_back(lexicon):
    wrong = total = 0
    for noun in lexicon._row['n']:
        if lexicon.frequency(noun, 'n') and noun.isalpha():
            total += 1
            wrong += noun not in dict(morphology.lemmas(lexicon, morphology.plural(noun), 'n'))
    assert total > 9000 and wrong < 0.005 * total


@pytest.mark.parametrize(
    'words',
    [
        *('apple', 'orange', 'umbrella', 'uncle', 'unusual dog', 'uninteresting', 'unidentified man', 'upper', 'usher'),
        *(
            'urn',
            'utter',
            'hour',
            'honest man',
            'honour',
            'heir',
            'hourglass',
            'herb',
            'MRI',
            'SUV',
            'FBI agent',
            'mp3',
        ),
        *('8-ball', '11', '18 wheeler', '8,000 people', '18th', '11-year-old', 'x-ray', 'L-shaped couch', 'F', 'onion'),
        *('"apple"', 'onerous', 'ear'),
    ],
)
def test_an(words):
    assert morphology.article(words) == 'an'


@pytest.mark.parametrize(
    'words',
    [
        *('dog', 'unicorn', 'uniform', 'university', 'unique', 'European', 'eulogy', 'ewe', 'one-way street', 'once'),
        *('use', 'used car', 'usual', 'utensil', 'ukulele', 'urinal', 'UFO', 'USB', 'TV', 'DVD', 'DOG', 'HAT', 'house'),
        *('herbivore', 'T-shirt', 'U-turn', '1', '10', '100', '1,100', '110', '180', 'year', ''),
    ],
)
def test_a(words):
    assert morphology.article(words) == 'a'


@pytest.mark.parametrize(
    'target, source, written, result',
    [
        ('canine', 'dog', 'dog', 'canine'),
        ('canine', 'Dog', 'dog', 'Canine'),
        ('canine', 'DOG', 'dog', 'CANINE'),
        ('motor vehicle', 'Car', 'car', 'Motor vehicle'),
        ('soft toy', 'Teddy Bear', 'teddy bear', 'Soft Toy'),
        ('Labrador retriever', 'dog', 'dog', 'Labrador retriever'),
        ('television receiver', 'TV', 'TV', 'television receiver'),
        ('disk', 'Frisbee', 'Frisbee', 'disk'),
        ('TV', 'monitor', 'monitor', 'TV'),
        ('', 'Dog', 'dog', ''),
    ],
)
def test_case(target, source, written, result):
    assert morphology.match_case(target, source, written) == result


@hypothesis.given(strategies.text(max_size=20), strategies.text(max_size=20))
@hypothesis.settings(max_examples=200, deadline=None)
def test_no_text_is_too_odd(lexicon, text, other):
    assert morphology.article(text) in ('a', 'an')
    assert isinstance(morphology.plural(text), str)
    assert isinstance(morphology.is_plural(text, other), bool) and isinstance(morphology.is_mass(text), bool)
    assert isinstance(morphology.match_case(text, other), str)
    for form in morphology.FORMS:
        assert isinstance(morphology.verb_form(text, form), str)
    assert morphology.verb_forms(text, other)
    for pos in 'nvar':
        assert all(pos in lexicon.parts(lemma) for lemma, _ in morphology.lemmas(lexicon, text, pos))


@pytest.mark.parametrize('words', ['²', '½ cup', '_', "'", '8²', '١'])
def test_odd_signs(words):
    assert morphology.article(words) in ('a', 'an')
