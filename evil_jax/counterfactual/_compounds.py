"""Nouns of several words that WordNet has as one entry: fire hydrant, hot dog, license plate."""

from evil_jax.counterfactual import _function_words
from evil_jax.counterfactual._function_words import words
from evil_jax.counterfactual._vocabulary import Reading, Word
from evil_jax.counterfactual.lexicon import Lexicon

LONGEST = 3  # words

# What a picture may show of anything: an old man is a man who is old, not the boss that WordNet has under it.
_FREE = words(
    """
    little big small large great huge tall short long high low old young new good bad nice fine clean dirty wide open
    full empty free right left first second third last next top bottom front back real true human male female wild live
    bright dark light heavy strong hard soft wet dry hot cold warm cool extra professional famous beautiful pretty happy
    sad single double whole half plain common rainy sunny round square"""
)
# Things that are called so, whatever they are like.
_FIXED = words(
    """
    hot_dog hot_sauce hot_tub hot_plate hot_chocolate hot_spring hot_rod hard_hat hard_disk hard_drive hard_candy
    wet_suit dry_dock dry_ice wild_boar light_bulb light_beam light_meter top_hat soft_drink soft_pretzel high_school
    high_jump long_jump long_johns double_bed double_bass double_chin single_bed whole_milk free_throw cold_cuts
    cold_cream human_being"""
)
# With these, an entry that is a kind of what its last word is, and nobody: a black bear, red wine, but not a black box.
_COLOURS = words('black white red green blue yellow brown orange pink purple grey gray silver gold golden')


def entry(lexicon: Lexicon, text: str, last: Word) -> Reading | None:
    """The noun that a phrase of several words is an entry for, or None.

    Names (Wall Street) count where they begin with a capital; phrases with function words (the street) never do.

    Args:
      text: the phrase.
      last: its last word, which has a reading as a noun.
    """
    *first, end = text.lower().split()
    if any(word in _function_words.CLASS for word in first):
        return None
    noun = last.readings['n']
    for head, rule in ((end, 'entry'), (noun.lemma, noun.rule)):
        lemma = ' '.join([*first, head])
        senses = lexicon.senses(lemma, 'n')
        if not senses:
            continue
        is_name = all(lexicon.is_proper(lemma, sense) for sense in senses)
        if text[0].isupper() if is_name else not _is_free(lexicon, lemma, senses[0]):
            return Reading(lemma, rule, lexicon.frequency(lemma, 'n'), noun.forms)
    return None


def _is_free(lexicon, lemma, sense):
    """Whether the phrase says no more than its words, as far as pictures go."""
    first, last = lemma.split()[0], lemma.split()[-1]
    if first in _COLOURS:
        kinds = {kind for kind, _ in lexicon.ancestors(sense)}
        return 'person.n.01' in kinds or kinds.isdisjoint(lexicon.senses(last, 'n'))
    return first in _FREE and lemma.replace(' ', '_') not in _FIXED
