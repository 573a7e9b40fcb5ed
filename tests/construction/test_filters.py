import math

import judgements
import numpy as np
import pytest

from evil_jax import config as config_lib
from evil_jax.construction import filters


@pytest.fixture
def construct():
    return config_lib.base().construct


def one(construct, name, **settings):
    construct.filters = (name,)
    construct[name].update(settings)
    return filters.make(construct)[0]


def entailed(*probabilities):
    """Captions with these P(entailment), the rest neutral."""
    return np.array([[0, 1 - p, p] for p in probabilities], np.float32)


def test_the_config_has_all_filters_in_its_order(construct):
    made = filters.make(construct)
    assert [each.name for each in made] == list(construct.filters)
    assert sorted(filters.NAMES) == sorted(construct.filters)
    assert [each.needs_scores for each in made] == [True, False, False, True]


def test_false_neutral_is_of_one_class_and_of_five_captions(construct):
    rule = one(construct, 'false_neutral')
    looks = {
        (split, label)
        for split in ('train', 'dev', 'test')
        for label in ('contradiction', 'neutral', 'entailment')
        if rule.applies(judgements.pair(0, label, split))
    }
    assert looks == {('train', 'neutral')}
    measure = lambda scores: rule.measure(judgements.pair(0), scores)
    assert measure(entailed(1, 1, 0.25, 0, 0)) == pytest.approx(2.25)
    assert measure(entailed(1, 1, 0.25, 0, 0)[:, ::-1]) == pytest.approx(2.25)  # contradiction
    assert measure(np.array([[0.5, 0, 0.5]] * 3 + [[0, 1, 0]] * 2)) == pytest.approx(1.5)  # the two do not add up
    assert measure(entailed(1, 0)) == pytest.approx(2.5)  # half of five
    assert math.isnan(measure(None))
    assert not rule.removes(2.0)
    assert rule.removes(np.nextafter(2.0, 3))
    assert not rule.removes(math.nan)


def test_keywords_in_any_case_inside_words_and_in_the_explanations_that_are_used(construct):
    texts = ['A dog is there.', 'Sentence 2 is a Rephrase of it.']
    pair = judgements.pair(0, explanations=texts)
    assert one(construct, 'keywords').measure(pair) == 0
    construct.explanation = 'all'
    rule = one(construct, 'keywords')
    assert rule.measure(pair) == 2
    assert rule.removes(1)
    assert not rule.removes(0)
    assert rule.detail(pair, 2.0) == "an explanation has 'rephras', 'sentence'"
    assert math.isnan(rule.measure(judgements.pair(0, explanations=[])))


def test_similarity_without_a_premise_is_unknown(construct):
    rule = one(construct, 'similarity', threshold=0.5)
    pair = judgements.pair(0, premise='a dog', hypothesis='A dog runs fast.')
    value = rule.measure(pair)
    assert value == pytest.approx(2 / 3)
    assert rule.removes(value)
    assert rule.detail(pair, value) == 'ROUGE-1 of premise and hypothesis is 0.667, more than 0.5'
    assert math.isnan(rule.measure(judgements.pair(0, premise=' ')))


@pytest.mark.parametrize(
    ('formula', 'label', 'wanted'),
    [
        ('label', 'entailment', 0.5),  # of 1, 0: population deviation
        ('label', 'contradiction', 0),
        ('classes', 'contradiction', 0.5),
        ('disagreement', 'contradiction', math.log(2)),
    ],
)
def test_uncertainty_formulas(construct, formula, label, wanted):
    rule = one(construct, 'uncertainty', formula=formula)
    pair = judgements.pair(0, label)
    assert rule.measure(pair, entailed(1, 0)) == pytest.approx(wanted)
    assert rule.measure(pair, entailed(0.3, 0.3, 0.3)) == pytest.approx(0)
    assert math.isnan(rule.measure(pair, entailed(1)))
    assert math.isnan(rule.measure(pair, None))


def test_disagreement_equals_the_definition(construct):
    rule = one(construct, 'uncertainty', formula='disagreement')
    scores = np.random.default_rng(0).dirichlet([1, 1, 1], 5)
    mean = scores.mean(0)
    wanted = np.mean([(p * np.log(p / mean)).sum() for p in scores])  # mean Kullback-Leibler divergence from the mean
    assert rule.measure(judgements.pair(0), scores) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ('name', 'settings', 'message'),
    [
        ('false_neutral', {'splits': ('val',)}, "construct.false_neutral.splits has 'val', wanted some of train, dev"),
        ('similarity', {'classes': ('entail',)}, "construct.similarity.classes has 'entail', wanted some of contra"),
        ('similarity', {'threshold': math.nan}, 'construct.similarity.threshold is nan'),
        ('keywords', {'words': ('a', ' ')}, r"construct.keywords.words is \('a', ' '\), wanted words"),
        ('keywords', {'words': ()}, 'leave keywords out of construct.filters'),
        ('uncertainty', {'formula': 'labels'}, "construct.uncertainty.formula is 'labels'. Did you mean 'label'"),
    ],
)
def test_settings_that_make_no_sense(construct, name, settings, message):
    with pytest.raises(ValueError, match=message):
        one(construct, name, **settings)


def test_unknown_and_repeated_filters(construct):
    construct.filters = ('keyword',)
    with pytest.raises(ValueError, match=r"'keyword'\. Did you mean 'keywords'"):
        filters.make(construct)
    construct.filters = ('keywords', 'similarity', 'keywords')
    with pytest.raises(ValueError, match="has 'keywords' more than once"):
        filters.make(construct)
