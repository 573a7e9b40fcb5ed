"""Whether explanations follow an edit: figures of a few pairs by hand, and of simulated answerers."""

import csv
import math

import numpy as np
import pytest

from evil_jax import records
from evil_jax.counterfactual import colours, consistency, judged, mentions, tagging
from evil_jax.counterfactual.edits import Edit


@pytest.fixture(scope='module')
def finder(lexicon):
    return mentions.Finder(lexicon)


def edit(family, source, target, synsets=('', ''), lemmas=None, **more):
    source_lemma, target_lemma = lemmas or (source, target)
    return Edit(
        f'q#{family}', 'q', 'image', family, source, target, (0, len(source)), (0, len(target)), source, target,
        source_lemma=source_lemma, target_lemma=target_lemma, source_synset=synsets[0], target_synset=synsets[1],
    )  # fmt: skip


ZEBRA = dict(synsets=('horse.n.01', 'zebra.n.01'), lemmas=('horse', 'zebra'))


def test_words_that_stand_for_an_edit(lexicon):
    assert mentions.terms(edit('sibling', 'Horses', 'zebras', **ZEBRA), lexicon) == (
        'n', ('horses', 'horse'), ('zebras', 'zebra'), ('equine', 'equid'),
    )  # fmt: skip
    # A dog is what a hunting dog is a kind of, but it is also the word that went.
    dogs = ('dog.n.01', 'hunting_dog.n.01')
    assert mentions.terms(edit('hyponym', 'dog', 'hunting dog', dogs), lexicon).related == ()
    colour = mentions.terms(edit('colour_max_common', 'violet', 'deepskyblue'), lexicon)
    assert colour == ('a', ('violet',), ('deepskyblue', 'deep sky blue'), ('blue',))
    assert mentions.terms(edit('colour_min_common', 'blue', 'deep sky blue'), lexicon).related == ()
    assert mentions.terms(edit('delete', 'dog', '', ('dog.n.01', '')), lexicon)[1:] == (('dog',), (), ())
    assert mentions.terms(edit('synonym_verb', 'talking', 'speaking', lemmas=('talk', 'speak')), lexicon).pos == 'v'


@pytest.mark.parametrize('text,new,old', [
    ('Two ZEBRAS, not horses!', True, True),
    ('an equine stands there', True, False),
    ("the horse's ears", False, True),
    ('a horsebox and some zeal', False, False),
    ('', False, False),
])  # fmt: skip
def test_texts_name_words_in_any_inflection(lexicon, finder, text, new, old):
    words = mentions.terms(edit('sibling', 'horse', 'zebra', **ZEBRA), lexicon)
    found = finder.named(mentions.tokens(text), words)
    assert tuple(map(bool, found)) == (new, old)


def test_a_word_inside_of_the_other_is_not_named(lexicon, finder):
    sky = mentions.terms(edit('colour_min_common', 'blue', 'sky blue'), lexicon)
    named = lambda text, words: tuple(map(bool, finder.named(mentions.tokens(text), words)))
    assert named('it is sky blue', sky) == (True, False)
    assert named('it is sky blue, not blue', sky) == (True, True)
    dog = mentions.terms(edit('sibling', 'hot dog', 'dog'), lexicon)
    assert named('he eats hot dogs', dog) == (False, True)


def test_distance_of_texts():
    assert consistency.distance([], []) == 0
    assert consistency.distance(['a'], []) == 1
    # Three tokens of four and of five are common: F1 = 2 * 3 / 9.
    assert consistency.distance(list('abbc'), list('bbcde')) == pytest.approx(1 - 6 / 9)


WORDS = mentions.Terms('n', ('horse',), ('zebra',), ('equine',))


def pair(n, kept, before, after, family='sibling', words=WORDS, **more):
    return consistency.Pair(f'q{n}#{family}', family, f'image{n}', words, kept, before, after, **more)


def measure(pairs, finder, **more):
    return consistency.measure(iter(pairs), finder, **({'resamples': 100} | more))


def test_figures_of_a_few_pairs(finder):
    pairs = [
        pair(0, False, 'a horse stands', 'a zebra stands', label='entailment'),
        pair(1, False, 'a horse stands', 'an equine stands', label='entailment'),
        pair(2, False, 'a horse stands', 'a horse stands', label='neutral'),
        pair(3, False, 'a zebra stands', 'a zebra, not a horse', label='neutral'),
        pair(4, True, 'a horse stands', 'it is a zebra and not a horse'),
        # Of a deletion there is no new word, but an old one.
        pair(5, False, 'a horse', 'a horse', 'delete', mentions.Terms('n', ('horse',), (), ())),
    ]
    found = measure(pairs, finder)
    row = found['families']['sibling']
    shares = {name: (row[name]['k'], row[name]['n']) for name in consistency.RATES}
    assert shares == {
        'reflected': (3, 4), 'by_chance': (1, 4), 'named': (4, 5), 'named_before': (4, 5),
        'stale': (1, 4), 'contrast': (1, 4), 'stable': (0, 0),
    }  # fmt: skip
    assert row['reflected']['value'] == 0.75 and row['stable']['value'] is None and row['images'] == 5
    low, high = row['reflected']['ci95']
    assert 0.1 < low < 0.75 < high < 1
    deleted = found['families']['delete']
    assert deleted['reflected']['n'] == 0 and (deleted['stale']['k'], deleted['stale']['n']) == (1, 1)
    assert found['all']['n'] == 6 and found['all']['stale']['k'] == 2
    assert found['labels'].keys() == {'entailment', 'neutral'} and found['labels']['neutral']['named']['k'] == 1
    assert found['examples'] == {'unfaithful': ['q2#sibling'], 'stale': ['q2#sibling'], 'drift': []}


def test_an_explanation_is_stable_but_for_the_word_and_the_noise(finder):
    same = dict(kept=True, expectation='INV')
    pairs = [
        pair(0, before='the horses run fast', after='the zebras run fast', **same),
        pair(1, before='the horses run fast', after='the animals sleep', **same),
        pair(2, before='a b c d', after='a b c e', **same),
        pair(3, False, 'a', 'b', expectation='INV'),
        pair(4, before='the horses run fast', after='the horses run fast', **same),
    ]
    row = measure(pairs, finder)['families']['sibling']
    assert (row['stable']['k'], row['stable']['n']) == (2, 4)
    moved = [0, 1 - 2 / 7, 1 / 4, 0]
    assert row['drift']['n'] == 4 and row['drift']['value'] == pytest.approx(np.mean(moved))
    assert row['moved']['n'] == 5 and row['moved']['value'] == pytest.approx((sum(moved) + 1) / 5)
    assert row['drift']['ci95'][0] <= row['drift']['value'] <= row['drift']['ci95'][1]
    # A model that decodes at random moves by a quarter although nothing was asked anew.
    noise = [pair(9, True, 'a b c d', 'a b c f', 'repeat', consistency.NO_WORDS)]
    found = measure([*pairs, *noise], finder)
    assert found['noise'] == pytest.approx(0.25) and found['families']['sibling']['stable']['k'] == 3
    assert found['families'].keys() == {'sibling'} and found['all']['n'] == 5


def test_one_picture_and_no_resamples_have_no_interval(finder):
    pairs = [pair(i, True, 'a b', 'a ' * i, expectation='INV', shift=i / 9) for i in range(8)]
    one_picture = [one._replace(image_id='image') for one in pairs]
    for given, resamples in ((one_picture, 10), (pairs, 0)):
        found = measure(given, finder, resamples=resamples)
        assert found['all']['drift']['value'] > 0 and found['all']['drift']['ci95'] is None
        assert found['coupling'].get('ci95') is None


def answerer(n, coupled, generator):
    """Pairs whose explanations move as far as the answers, or as they like."""
    for i in range(n):
        shift = generator.random()
        moved = round(10 * (shift if coupled else generator.random()))
        after = ' '.join(['new'] * moved + ['old'] * (10 - moved))
        yield pair(i // 3, shift < 0.5, ' '.join(['old'] * 10), after, words=consistency.NO_WORDS, shift=shift)


def test_coupling_of_answers_and_explanations_against_chance(finder):
    coupled = measure(answerer(300, True, np.random.default_rng(0)), finder)['coupling']
    assert coupled['value'] > 0.99 and coupled['p'] == pytest.approx(1 / 1001)
    assert coupled['n'] == 300 and coupled['one_an_image']['n'] == 100
    assert coupled['ci95'][0] > 0.99 and -0.3 < coupled['null95'][0] < 0 < coupled['null95'][1] < 0.3
    free = [measure(answerer(150, False, np.random.default_rng(i)), finder)['coupling']['p'] for i in range(20)]
    assert sum(p < 0.05 for p in free) <= 4 and min(free) > 0.001
    still = measure([pair(i, True, 'a', 'a') for i in range(5)], finder)['coupling']
    assert still['value'] is None and 'never move' in still['reason']


def test_families_that_differ_are_no_coupling(finder):
    generator = np.random.default_rng(3)

    def pairs():
        for i in range(200):
            family = ('sibling', 'hypernym')[i % 2]
            far = i % 2 == 0
            moved = int(generator.integers(5, 10)) if far else int(generator.integers(0, 4))
            shift = generator.uniform(0.5, 1) if far else generator.uniform(0, 0.4)
            after = ' '.join(['new'] * moved + ['old'] * (10 - moved))
            yield pair(i, True, ' '.join(['old'] * 10), after, family, consistency.NO_WORDS, shift=shift)

    coupling = measure(pairs(), finder)['coupling']
    assert coupling['value'] > 0.5 and coupling['p'] > 0.01 and coupling['null95'][0] > 0.3


def test_answers_without_probabilities_move_by_all_or_nothing(finder):
    pairs = [pair(i, i % 2 == 0, 'a b', 'a b' if i % 2 == 0 else 'c d') for i in range(20)]
    assert math.isnan(pairs[0].shift)
    assert measure(pairs, finder)['coupling']['value'] == pytest.approx(1)


def test_same_seed_same_figures_and_nothing_of_nothing(finder):
    pairs = lambda: answerer(60, False, np.random.default_rng(1))
    assert measure(pairs(), finder, seed=5) == measure(pairs(), finder, seed=5)
    assert consistency.measure([], finder) is None


def test_pairs_of_the_judged_edits_in_the_order_of_their_file(lexicon):
    horse = edit('sibling', 'horse', 'zebra', **ZEBRA)
    same = edit('noop', 'horse', 'horse')
    more = dict(family='sibling', example='q', image='image', gold='neutral')
    rows = [more | dict(offset=10, kept=False, shift=0.25), more | dict(offset=30, family='noop')]
    said = {'q': 'a horse', 'q#sibling': 'a zebra', 'q#noop': ''}
    edits = [(0, edit('delete', 'horse', '')), (10, horse), (20, horse), (30, same), (40, horse)]
    table = judged.of_rows(rows, labels=('entailment', 'neutral'))
    found = list(consistency.pairs(table, edits, said.get, lexicon))
    assert [(p.id, p.kept, p.explanation, p.edited, p.shift, p.label) for p in found[:1]] == [
        ('q#sibling', False, 'a horse', 'a zebra', 0.25, 'neutral')
    ]
    assert found[0].words == mentions.terms(horse, lexicon)
    assert len(found) == 2 and found[1].words == consistency.NO_WORDS and math.isnan(found[1].shift)
    assert [p.id for p in consistency.pairs(judged.of_rows(rows), edits, {'q': 'a'}.get, lexicon)] == []
    assert next(consistency.pairs(judged.of_rows(rows), edits, said.get, lexicon)).label == ''


def test_people_repeat_words_of_their_text(finder):
    example = lambda n, text, label, *explanations: records.Example(
        str(n), 'image', text, label=label, explanations=list(explanations)
    )
    examples = [
        example(0, 'Two dogs run on red grass', 'neutral', 'A dog may sleep.', 'Grass is green.'),
        example(1, 'A cat', 'entailment', 'There are cats.'),
        example(2, 'A horse', 'entailment'),
    ]
    nouns = {'Two dogs run on red grass': ['dog', 'grass'], 'A cat': ['cat']}
    colours = lambda text: ['red'] if 'red' in text else []
    found = consistency.human_rates(examples, finder, lambda text: nouns[text], colours)
    assert found == {
        'noun': {
            'all': {'k': 3, 'n': 5, 'value': 0.6},
            'neutral': {'k': 2, 'n': 4, 'value': 0.5},
            'entailment': {'k': 1, 'n': 1, 'value': 1.0},
        },
        'colour': {'all': {'k': 0, 'n': 2, 'value': 0.0}, 'neutral': {'k': 0, 'n': 2, 'value': 0.0}},
    }
    assert consistency.human_rates(examples[2:], finder, nouns.get, colours) == {}


@pytest.mark.acceptance
def test_what_people_repeat_in_e_snli_ve(lexicon, finder, shared, measured):
    tagger = tagging.make_tagger('heuristic', lexicon)
    nouns = lambda text: [token.lemma for token in tagger(text) if token.pos == 'n']
    named = lambda text: [name for _, _, name in colours.find(tagger(text), text)]
    for split in ('dev', 'test'):
        with open(shared / f'data/esnlive/esnlive_{split}.csv', encoding='utf-8', newline='') as file:
            examples = [
                records.Example(
                    str(i), '', row['hypothesis'], label=row['gold_label'], explanations=[row['explanation']]
                )
                for i, row in enumerate(csv.DictReader(file))
            ]
        found = consistency.human_rates(examples, finder, nouns, named)
        for kind, (low, high) in consistency.HUMAN.items():
            share = round(found[kind]['all']['value'], 2)
            measured(f'e-SNLI-VE {split}: share of {kind}s that people repeat', '>=', low, share)
            measured(f'e-SNLI-VE {split}: share of {kind}s that people repeat', '<=', high, share)
        assert found['noun']['contradiction']['value'] < 0.6 < found['noun']['entailment']['value']
