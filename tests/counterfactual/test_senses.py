"""Which sense of a word is meant, also against what Visual Genome says of 100 pictures."""

import collections
import random

import pytest

from evil_jax.counterfactual import _visual, morphology, senses

# Labels of Visual Genome's that no picture can show, or hardly any: WordNet's first sense, put in by a machine. Only of
# words that _visual.SENSES has: other errors are not excused.
IMPOSSIBLE = {
    ('lid', 'eyelid.n.01'),
    ('reflection', 'contemplation.n.02'),
    ('balcony', 'balcony.n.01'),  # in an auditorium
    ('tv', 'television.n.01'),  # broadcasting
    ('television', 'television.n.01'),
    ('plant', 'plant.n.01'),  # a factory
    ('writing', 'writing.n.01'),  # an act
    ('letter', 'letter.n.01'),  # sent by post
    ('outlet', 'mercantile_establishment.n.01'),
    ('socket', 'mercantile_establishment.n.01'),
    ('cable', 'cable.n.01'),  # a telegram
    ('lettuce', 'boodle.n.01'),  # money
    ('charger', 'charger.n.01'),  # a horse
    ('case', 'case.n.01'),  # an occurrence
    ('stroller', 'saunterer.n.01'),
    ('calendar', 'calendar.n.01'),  # a system of timekeeping
    ('calculator', 'calculator.n.01'),  # a person
    ('coaster', 'coaster.n.01'),  # a person
    ('speaker', 'speaker.n.01'),  # a person
    ('crane', 'crane.n.01'),  # Stephen Crane
    ('soda', 'sodium_carbonate.n.01'),
    ('design', 'design.n.01'),  # an act
    ('light', 'light.n.01'),  # radiation
    ('spot', 'topographic_point.n.01'),
}


@pytest.fixture(scope='module')
def mentions(shared):
    """Mentions of objects in Visual Genome: their (name, synset), as often as they occur."""
    path = shared / 'data' / 'counterfactual' / 'vg_name_synset_counts_half.tsv'
    rows = [line.split('\t') for line in path.read_text().split('\n') if line]
    return [(name, synset) for name, synset, count in rows for _ in range(int(count))]


def accuracy(lexicon, mentions, policy, overrides=_visual.SENSES):
    chosen = {name: senses.choose(lexicon, name, 'n', policy, overrides) for name, _ in mentions}
    return sum(chosen[name] is not None and chosen[name].synset == synset for name, synset in mentions) / len(mentions)


def learned(lexicon, mentions):
    """The commonest synset of every noun."""
    counts = collections.defaultdict(collections.Counter)
    for name, synset in mentions:
        if found := senses.choose(lexicon, name, 'n'):
            counts[found.lemma][synset] += 1
    return {noun: of_noun.most_common(1)[0][0] for noun, of_noun in counts.items()}


def test_first_senses(lexicon):
    assert senses.choose(lexicon, 'dog', 'n') == ('dog.n.01', 'dog', 1, 7, 'first')
    assert senses.choose(lexicon, 'dogs', 'n') == ('dog.n.01', 'dog', 1, 7, 'first')
    assert senses.choose(lexicon, 'Windows', 'n') == ('window.n.01', 'window', 1, 8, 'plural')
    assert senses.choose(lexicon, 'glasses', 'n') == ('spectacles.n.01', 'glasses', 1, 1, 'first')
    assert senses.choose(lexicon, 'talking', 'v').synset == 'talk.v.01'
    assert senses.choose(lexicon, 'saw', 'v') == ('see.v.01', 'see', 1, 24, 'base')
    assert senses.choose(lexicon, 'delicious', 'a').synset == 'delightful.s.01'
    assert senses.choose(lexicon, 'xyzzy', 'n') is None


def test_any_sense_comes_in_order_of_rank(lexicon):
    found = senses.choices(lexicon, 'Air', 'n', 'any')
    assert [sense.synset for sense in found] == list(lexicon.senses('air', 'n'))
    assert [sense.rank for sense in found] == list(range(1, 10)) and {sense.senses for sense in found} == {9}
    assert [sense.how for sense in found] == ['first'] + ['any'] * 8
    # Stoikou et al. (2023) put water in the place of air: both are elements of the ancients, air in its sixth sense.
    assert 'water.n.03' in lexicon.siblings(found[5].synset)


def test_what_pictures_show(lexicon):
    assert senses.choose(lexicon, 'tables', 'n', 'lexicon') == ('table.n.02', 'table', 2, 6, 'override')
    assert senses.choose(lexicon, 'bike', 'n', 'lexicon').synset == 'bicycle.n.01'
    assert senses.choose(lexicon, 'bike', 'n', 'first').synset == 'motorcycle.n.01'
    assert senses.choose(lexicon, 'pants', 'n', 'lexicon') == ('trouser.n.01', 'pant', 2, 3, 'override')
    assert senses.choose(lexicon, 'Hot dogs', 'n', 'lexicon').synset == 'hotdog.n.02'
    assert senses.choose(lexicon, 'dog', 'n', 'lexicon').how == 'first'
    assert senses.choose(lexicon, 'table', 'v', 'lexicon').how == 'first'
    mine = {'dog': 'frank.n.02'}
    assert senses.choose(lexicon, 'dogs', 'n', 'lexicon', mine) == ('frank.n.02', 'dog', 5, 7, 'override')


@pytest.mark.parametrize(
    'phrase, lemma',
    [
        ('two tall men', 'man'),
        ('arm of a person', 'arm'),
        ('screens are off.', 'screen'),
        ('white street sign', 'street sign'),
        ('on sidewalk', 'sidewalk'),
        ('dog "Rex"', None),
        ('', None),
        (' . ', None),
    ],
)
def test_heads_of_phrases(lexicon, phrase, lemma):
    found = senses.choose(lexicon, phrase, 'n')
    assert (found and found.lemma) == lemma


def test_unknown_policy(lexicon):
    with pytest.raises(ValueError, match="no policy 'best' of senses: there are first, any, lexicon"):
        senses.choose(lexicon, 'dog', 'n', 'best')


def test_every_override_is_a_sense_and_not_the_first(lexicon):
    for noun, synset in _visual.SENSES.items():
        of_noun = [lexicon.senses(lemma, 'n') for lemma, _ in morphology.lemmas(lexicon, noun, 'n')]
        assert any(synset in ranked for ranked in of_noun), noun
        assert synset != of_noun[0][0], noun


def test_senses_that_visual_genome_gives(lexicon, mentions):
    assert accuracy(lexicon, mentions, 'first') >= 0.89
    assert accuracy(lexicon, mentions, 'lexicon') >= 0.92


def possible(lexicon, mentions):
    """Mentions whose label a picture can show."""
    chosen = {name: senses.choose(lexicon, name, 'n') for name, _ in mentions}
    return [(name, label) for name, label in mentions if (chosen[name] and chosen[name].lemma, label) not in IMPOSSIBLE]


@pytest.mark.acceptance
def test_accuracy_of_senses(lexicon, mentions, measured):
    """The table learned from one half of the mentions is tested on the other, over 20 random halves."""
    measured('senses of Visual Genome: first with the plural rule', '>=', 0.89, accuracy(lexicon, mentions, 'first'))
    found = []
    for seed in range(20):
        shuffled = random.Random(seed).sample(mentions, len(mentions))
        half = len(mentions) // 2
        overrides = learned(lexicon, shuffled[:half])
        found.append(accuracy(lexicon, shuffled[half:], 'lexicon', overrides))
    measured('senses of Visual Genome: overrides learned on one half, the other half', '>=', 0.94, sum(found) / 20)
    measured('  worst of 20 halves', '>=', 0.93, min(found))
    measured('senses of Visual Genome: overrides as shipped', '>=', 0.92, accuracy(lexicon, mentions, 'lexicon'))
    kept = possible(lexicon, mentions)
    measured('  without labels that no picture can show', '>=', 0.94, accuracy(lexicon, kept, 'lexicon'))
    measured('  mentions with such labels, share', '<=', 0.05, 1 - len(kept) / len(mentions))
