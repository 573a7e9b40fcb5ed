"""Words, parts of speech and lemmas of questions, statements and texts with tags of objects."""

import collections
import concurrent.futures
import gzip
import importlib
import itertools
import json
import random
import sys
import time
import types

import pytest

from evil_jax.counterfactual import _heuristic, tagging


def tagged(lexicon, text):
    """'Is/f the/f dog/n': what the tests compare."""
    return ' '.join(f'{token.text}/{token.pos}' for token in tagging.tag(lexicon, text))


def lemmas(lexicon, text, pos):
    return [token.lemma for token in tagging.tag(lexicon, text) if token.pos == pos]


# What stands where: nouns, verbs and adjectives of each text, in order.
@pytest.mark.parametrize(
    ('text', 'nouns', 'verbs', 'adjectives'),
    [
        ('Is the light green?', 'light', '', 'green'),
        ('What does the picture show?', 'picture', 'show', ''),
        ('What does this say?', '', 'say', ''),
        ('Does this sign say stop?', 'sign stop', 'say', ''),
        ('Do people water the plants?', 'people plants', 'water', ''),
        ('Is the water cold?', 'water', '', 'cold'),
        ('Is the brick building tall?', 'brick building', '', 'tall'),
        ('What is the man building?', 'man', 'building', ''),
        ('How many people are skiing?', 'people', 'skiing', ''),
        ('Who is in red?', 'red', '', ''),
        ('Is that a red or blue bus?', 'bus', '', 'red blue'),
        ('Is it light outside?', '', '', 'light'),
        ('Is the door to the building open?', 'door building', '', 'open'),
        ('What color is the bottom shelf?', 'color shelf', '', 'bottom'),
        ('Are these saws?', 'saws', '', ''),
        ('Is the trash can full?', 'trash can', '', 'full'),
        ('How many people can fit in the bus?', 'people bus', 'fit', ''),
        ('Do they like the food?', 'food', 'like', ''),
        ('What does it look like?', '', 'look', ''),
        ('What covers the floor?', 'floor', 'covers', ''),
        ('Is it going to rain?', '', 'going rain', ''),
        ('Is the cup next to the water?', 'cup water', '', 'next'),
        ('Name the toppings on the pizza.', 'toppings pizza', 'Name', ''),
        ('Is this a bird-shaped T-shirt?', 'T-shirt', '', 'bird-shaped'),
        ('A man eats an apple.', 'man apple', 'eats', ''),
        ('Four men play tubas in a park.', 'men tubas park', 'play', ''),
        ('A woman walks home and sings.', 'woman', 'walks sings', ''),
        ('The dogs are painted blue.', 'dogs', 'painted', 'blue'),
        ('The man wearing a hat holds a sign.', 'man hat sign', 'wearing holds', ''),
        ('<|det1|> thinks that <|det2|> is lying to her.', '', 'thinks lying', ''),
        ('<|det1|>, <|det2|> and <|det3|> look happy.', '', 'look', 'happy'),
        ('Why is <|det1|> pointing at <|det2|> ?', '', 'pointing', ''),
    ],
)
def test_readings_fit_their_places(lexicon, text, nouns, verbs, adjectives):
    tokens = tagging.tag(lexicon, text)
    for pos, words in (('n', nouns), ('v', verbs), ('a', adjectives)):
        assert ' '.join(token.text for token in tokens if token.pos == pos) == words, tagged(lexicon, text)


def test_function_words_are_no_nouns(lexicon):
    """WordNet has every one of these as a noun."""
    words = 'a in at as it he who are have can will no or so one two over out i'
    for word in words.split():
        assert 'n' in lexicon.parts(word)
        assert tagged(lexicon, word) == f'{word}/f'


def test_tags_figures_and_contractions(lexicon):
    text = "Isn't <|det12|>'s dog at No. 23 o'clock, and what's <|det1|>’s?"
    assert tagged(lexicon, text) == (
        "Isn't/f <|det12|>/x 's/f dog/n at/f No/f 23/x o'clock/r and/f what/f 's/f <|det1|>/x ’s/f"
    )
    assert tagged(lexicon, 'why is person0 near cup12?') == 'why/f is/f person0/x near/f cup12/x'
    assert tagged(lexicon, 'Is there CO2?') == 'Is/f there/f CO2/n'
    lemmas_of_s = [token.lemma for token in tagging.tag(lexicon, "What's in the dog's bowl?") if token.text == "'s"]
    assert lemmas_of_s == ['be', "'s"]


@pytest.mark.parametrize(
    ('text', 'found'),
    [
        ('Is the fire hydrant red?', [('fire hydrant', False)]),
        ('How many Fire Hydrants?', [('fire hydrant', True)]),
        ('Do teddy bears wear jackets?', [('teddy bear', True), ('jacket', True)]),
        ('Is this the New York City skyline?', [('new york city', False), ('skyline', False)]),
        ('Is this a new york?', [('york', False)]),  # a name is written as one
        ('Is this a black bear or a black box?', [('black bear', False), ('box', False)]),
        ('Is the old man near the white horse?', [('man', False), ('horse', False)]),
        ('Is the hot dog hot?', [('hot dog', False)]),
        ('Is the zebra crossing the road?', [('zebra', False), ('road', False)]),
        ('Why are they riding horses?', [('horse', True)]),
        ('Does the bus stop here?', [('bus', False)]),
        ('Is there a bus stop?', [('bus stop', False)]),
        ('A cat sleeps.', [('cat', False)]),
        ('Are they looking at the street?', [('street', False)]),
        ('Is that fire, hydrant?', [('fire', False), ('hydrant', False)]),
        ('teddy-bear', [('teddy bear', False)]),
    ],
)
def test_nouns_of_several_words(lexicon, text, found):
    assert [(token.lemma, token.plural) for token in tagging.tag(lexicon, text) if token.pos == 'n'] == found


def test_lemmas_with_the_rule_that_found_them(lexicon):
    def noun(word):
        (token,) = tagging.tag(lexicon, word)
        return token.lemma, token.rule, token.plural

    assert noun('dogs') == ('dog', 's>', True)
    assert noun('children') == ('child', 'exception', True)
    assert noun('stamina') == ('stamina', 'entry', False)
    assert noun('windows') == ('window', 's>', True)  # not the operating system
    assert noun('glasses') == ('glasses', 'entry', True)
    assert noun('umpyres') == ('umpyres', 'unknown', True)
    assert noun('tee-ball') == ('tee-ball', 'unknown', False)


@pytest.mark.parametrize(
    ('text', 'form'),
    [
        ('Does he walk?', 'base'),
        ('He walks.', 's'),
        ('He walked.', 'past'),
        ('Has he walked?', 'participle'),
        ('Is the dog walked?', 'participle'),
        ('The dogs ate.', 'past'),
        ('Is he walking?', 'ing'),
        ('Did he cut the cake?', 'base'),
        ('Is the cake cut by him?', 'participle'),
    ],
)
def test_forms_of_verbs(lexicon, text, form):
    assert [token.form for token in tagging.tag(lexicon, text) if token.pos == 'v'] == [form]


def test_every_word_has_its_place(lexicon):
    random.seed(0)
    pieces = [
        'the',
        'Dogs',
        "dog's",
        '<|det3|>',
        'İstanbul',
        'naïve',
        '你好',
        '’s',
        '4',
        '-',
        '"',
        '☃',
        '\n',
        '  ',
        ', ',
    ]
    for _ in range(300):
        text = ''.join(random.choices([*pieces, ' ', '/', '?'], k=random.randrange(12)))
        tokens = tagging.tag(lexicon, text)
        assert all(token.text == text[token.start : token.end] and token.text for token in tokens)
        assert all(one.end <= two.start for one, two in itertools.pairwise(tokens))
        words = [text[start:end] for start, end in tagging.tokenise(text)]
        assert ' '.join(words).split() == ' '.join(token.text for token in tokens).split()
    assert tagging.tag(lexicon, '') == tagging.tag(lexicon, ' ?! ') == []


def nouns_found(lexicon, shared):
    """(right, found, marked) tokens of the marked questions."""
    right, found, marked = 0, 0, 0
    for line in (shared / 'data/counterfactual/noun_gold_60.jsonl').read_text().splitlines():
        row = json.loads(line)
        gold = collections.Counter(row['nouns'])
        nouns = [token.text for token in tagging.tag(lexicon, row['q']) if token.pos == 'n']
        ours = collections.Counter(word for noun in nouns for word in noun.split())
        right, found, marked = right + (gold & ours).total(), found + ours.total(), marked + gold.total()
    return right, found, marked


def test_nouns_of_marked_questions(lexicon, shared):
    right, found, marked = nouns_found(lexicon, shared)
    assert marked == 118
    assert right / found >= 0.98
    assert right / marked >= 0.96


def test_what_is_remembered_changes_nothing(lexicon, monkeypatch):
    texts = ['Is the fire hydrant red?', 'Does the bus stop here?', 'Is it light?', 'Is the light on?'] * 3
    fresh = [_heuristic.Heuristic(lexicon)(text) for text in texts]
    monkeypatch.setattr(_heuristic, '_REMEMBERED', 3)
    small = _heuristic.Heuristic(lexicon)
    assert [small(text) for text in texts] == fresh
    assert max(map(len, (small._words, small._phrases, small._decisions))) <= 3


def test_threads_see_the_same(lexicon):
    words = 'is the dog water bus stop light man painting fire hydrant red looking show open in of'
    random.seed(1)
    texts = [' '.join(random.choices(words.split(), k=8)) for _ in range(400)]
    alone = [tagging.tag(lexicon, text) for text in texts]
    together = _heuristic.Heuristic(lexicon)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(together, texts)) == alone


def test_unknown_tagger(lexicon):
    with pytest.raises(ValueError, match='heuristic'):
        tagging.make_tagger('heurstic', lexicon)


@pytest.mark.parametrize(('name', 'package'), [('spacy', 'spacy'), ('hanta', 'HanTa'), ('vote', 'spacy')])
def test_a_tagger_that_is_not_installed(lexicon, monkeypatch, name, package):
    def missing(module):
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(importlib, 'import_module', missing)
    with pytest.raises(ValueError, match=f'pip install {package}'):
        tagging.TAGGERS[name](lexicon)


class Packages:
    """spaCy and HanTa as far as they are used: they look words up in a table of tags."""

    def __init__(self, monkeypatch, penn, claws):
        spacy = types.SimpleNamespace(
            util=types.SimpleNamespace(get_installed_models=lambda: ['de_core_news_sm', 'en_core_web_sm']),
            tokens=types.SimpleNamespace(Doc=lambda vocabulary, words: words),
            load=self._load,
        )
        hanta = types.SimpleNamespace(HanoverTagger=lambda model: types.SimpleNamespace(tag_sent=self._tag))
        self._penn, self._claws, self.spacy = penn, claws, spacy
        monkeypatch.setitem(sys.modules, 'spacy', spacy)
        monkeypatch.setitem(sys.modules, 'HanTa.HanoverTagger', hanta)

    def _load(self, name, exclude):
        assert name == 'en_core_web_sm'

        class Model:
            vocab = None

            def __call__(_, words):
                return [types.SimpleNamespace(tag_=self._penn.get(word, 'X')) for word in words]

        return Model()

    def _tag(self, words):
        return [(word, word, self._claws.get(word, 'X')) for word in words]


def test_taggers_of_other_packages(lexicon, monkeypatch):
    Packages(
        monkeypatch,
        {'Is': 'VBZ', 'Pat': 'NNP', 'hot': 'JJ', 'dogs': 'NNS', ',': ',', 'walked': 'VBN', 'red': 'NN', '?': '.'},
        {'Pat': 'NP0', 'hot': 'AJ0', 'dogs': 'NN2', 'walked': 'VVD', 'red': 'AJ0'},
    )
    text = "Is <|det1|>'s hot dogs, walked red?"

    def seen(name):
        return [(t.text, t.lemma, t.pos, t.plural, t.form) for t in tagging.TAGGERS[name](lexicon)(text)]

    same = [
        *(('Is', 'is', 'f', False, ''), ('<|det1|>', '<|det1|>', 'x', False, ''), ("'s", "'s", 'f', False, '')),
        ('hot dogs', 'hot dog', 'n', True, ''),
    ]
    assert seen('spacy') == [*same, ('walked', 'walk', 'v', False, 'participle'), ('red', 'red', 'n', False, '')]
    assert seen('hanta') == [*same, ('walked', 'walk', 'v', False, 'past'), ('red', 'red', 'a', False, '')]
    assert [row[2] for row in seen('vote')] == [*'fxfnv', 'n' if tagged(lexicon, text).endswith('red/n') else 'a']


def test_spacy_without_a_model(lexicon, monkeypatch):
    Packages(monkeypatch, {}, {}).spacy.util.get_installed_models = lambda: ['de_core_news_sm']
    with pytest.raises(ValueError, match='English model'):
        tagging.TAGGERS['spacy'](lexicon)


@pytest.mark.acceptance
def test_sixty_thousand_questions(lexicon, shared, measured):
    questions = []
    for split in ('train', 'valid', 'test'):
        with gzip.open(shared / f'data/vqav2/vqa_questions_{split}.gzip') as file:
            questions += [row['question'] for row in json.load(file)['questions']]
    rates = []
    for _ in range(3):
        tagger, start = _heuristic.Heuristic(lexicon), time.process_time()
        nouns = [sum(token.pos == 'n' for token in tagger(text)) for text in questions]
        rates.append(len(questions) / (time.process_time() - start))
    measured('questions tagged a second, one core', '>=', 30_000, max(rates))
    measured('questions without a noun', '<=', 0.04, nouns.count(0) / len(nouns))
    right, found, marked = nouns_found(lexicon, shared)
    measured('noun_gold_60: precision of nouns', '>=', 0.98, right / found)
    measured('noun_gold_60: recall of nouns', '>=', 0.96, right / marked)
