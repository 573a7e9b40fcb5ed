"""Which reading of a word fits its place: rules of English word order, for questions first of all."""

from evil_jax.counterfactual._function_words import words
from evil_jax.counterfactual._places import (
    AUXILIARIES,
    BEGINS_OBJECT,
    BEHIND_PREDICATE,
    COPULAS,
    IN_NOUN_PHRASE,
    SUBJECTS,
    Place,
)
from evil_jax.counterfactual._vocabulary import Word

# Adjectives before a noun, whatever SemCor has more of: the bottom shelf.
_PLACES = words('top bottom front back left right rear')
_JOINED = {'plural': 'n', 'tag': 'n', 'pron': 'n', 'copula': 'v', 'done': 'v'}
# A word that is adjective and noun is an adjective before a noun if that is at least this common of it, compared with
# the noun (front wheel), and as a predicate if it is at least that common (is it light).
_MODIFIER, _PREDICATE = 0.4, 0.25


def choose(word: Word, place: Place) -> str:
    """'n', 'v', 'a' or 'r' of a word with several readings; 'f' where it is the function word that it may be."""
    if word.kind:
        return _function_or_not(word, place)
    before = place.before
    if before.startswith('and '):
        place = place._replace(before=before[4:])
        return _joined(word, place) or choose(word, place)
    if before in IN_NOUN_PHRASE:
        if before in ('dem', 'dems', 'wh') and _is_verb_of_pronoun(word, place):
            return 'v'
        if before in ('dem', 'dems', 'quant') and place.waits == 'be' and _is_predicate(word, place):
            return 'a'
        return _in_noun_phrase(word, place)
    return _RULES.get(before, _elsewhere)(word, place)


def is_compound(first: Word, last: Word, place: Place) -> bool:
    """Whether an entry of several words is one noun here, and not in "is the zebra crossing the road".

    Args:
      first, last: of its words.
      place: of the entry as a whole.
    """
    if last.is_verb('ing'):
        return False
    if first.is_verb('ing') and first.count('v') > first.count('n'):
        return place.before in IN_NOUN_PHRASE or place.before in ('prep', 'gerund', 'there', '^')
    if place.waits in ('do', 'modal'):
        if first.is_verb('base') and place.before in ('plural', 'pron', 'do', 'modal'):  # do they | water ski
            return False
        if last.is_verb('base'):  # does the bus stop | here, does the coffee table | have
            return 'B' in place.after or place.after in AUXILIARIES
    if place.open == 'verb' and last.is_verb('s') and last.count('v') > last.count('n'):  # a cat | sleeps
        return 'B' in place.after or place.after in AUXILIARIES
    return True


def _function_or_not(word, place):
    before, after = place.before, place.after
    if 'v' in word.readings:  # like
        due = place.waits in ('do', 'modal') and before in SUBJECTS | {'modal', 'do', 'r'}
        return 'v' if due or before == 'to' or (before == 'pron' and place.waits not in AUXILIARIES) else 'f'
    if word.kind == 'modal' and after in ('be', 'have', 'pron'):
        return 'f'
    if before in ('det', 'poss'):
        return 'n'
    # The trash can is full; how many people can | fit.
    can = word.text == 'can' and before in ('n', 'a') and (after in ('$', 'prep', 'and') or place.open == 'be+')
    return 'n' if can else 'f'


def _is_predicate(word, place):
    return place.after in BEHIND_PREDICATE and word.count('a') > 0 and word.count('a') >= _PREDICATE * word.count('n')


def _is_passive(word):
    common = word.count('v') > max(word.count('a'), word.count('n'))
    return common and word.is_verb('participle') and word.text not in _PLACES


def _is_modifier(word):
    return word.count('a') > 0 and word.count('a') >= _MODIFIER * word.count('n')


def _joined(word, place):
    """The reading that a conjunction asks for, that of what it joins the word to; '' where there is none."""
    pos = _JOINED.get(place.before, place.before)
    active = word.is_verb('ing', 'base') and (pos != 'n' or word.count('v') > word.count('n'))
    if active and place.after in BEGINS_OBJECT:  # turn around and see his reflection
        return 'v'
    if pos == 'n' and place.after.startswith('N') and _is_modifier(word):
        return 'a'
    return pos if pos in word.readings else ''


def _is_verb_of_pronoun(word, place):
    """Whether "this", "what" or the like before the word was a pronoun, and the word is its verb."""
    n, v, after = word.count('n'), word.count('v'), place.after
    if place.waits == 'be':
        return word.is_verb('ing') and not word.thing and v > n
    if place.before != 'dems' and word.is_verb('s') and after not in AUXILIARIES:  # what covers the floor
        return after in BEGINS_OBJECT or v > 4 * n
    if place.waits not in AUXILIARIES or not word.is_verb('base') or 'B' in after or after in AUXILIARIES:
        return False
    return n == 0 or after in BEGINS_OBJECT or after == '$' or v > n


def _in_noun_phrase(word, place):
    """Behind a determiner or an adjective: a modifier, or the head of the phrase."""
    n, a, v = (word.count(pos) for pos in 'nav')
    if place.after == 'and' and 'A' in place.later and _is_modifier(word):  # black and white
        return 'a'
    if _goes_on(place):
        if _is_modifier(word) or (a and word.text in _PLACES):
            return 'a'
        if word.is_verb('ing', 'past', 'participle') and v > n and not word.thing:
            return 'v'
    elif word.is_verb('ing') and not word.thing and v > 4 * n and place.before not in ('det', 'a', 'poss', 'wh'):
        return 'v'
    elif place.before == 'prep' and place.after in ('$', 'adv') and max(a, word.count('r')) > 10 * n:
        return word.first('ra')  # standing up straight
    return word.first('navr')


def _goes_on(place):
    """Whether the next word belongs to the same noun phrase."""
    after, later = place.after, place.later
    if 'S' in after and later in BEGINS_OBJECT and place.waits not in AUXILIARIES:  # a female | takes a picture
        return False
    # The verb is still to come, and the next word is the last that may be it: the subject ends here.
    if place.waits in ('do', 'modal') and 'B' in after and 'B' not in later and later not in ('have', 'do', 'be'):
        return False
    if place.open == 'be' and place.before != 'dem':
        if later == '$' and ('A' in after or 'E' in after) and 'G' not in after:  # is the light | green
            return False
        if 'E' in after and 'N' not in after:
            return 'N' in later
    return 'N' in after or after in ('A', 'num') or ('A' in after and 'N' in later)


def _behind_noun(word, place):
    n, a, v, after = word.count('n'), word.count('a'), word.count('v'), place.after
    if place.waits in ('do', 'modal') and word.is_verb('base'):
        # The verb, unless there is one behind it: "does the dog house | look".
        more = n and 10 * n >= v and ('B' in after or after in ('have', 'be', 'do'))
        looks = word.readings['v'].lemma in COPULAS and 'A' in after
        return 'n' if more and not looks else 'v'
    if word.is_verb('ing') and (after in BEGINS_OBJECT or (place.open and not word.thing)):
        return 'v'
    if place.waits == 'be':
        return _behind_subject_of_be(word, place)
    if word.is_verb('ing', 'past', 'participle') and v > max(n, a) and not word.thing:
        return 'v'
    if place.waits not in AUXILIARIES and after not in AUXILIARIES and _is_finite(word, place):
        return 'v'
    if a > 10 * n:  # two stories tall
        return 'a'
    return word.first('navr')


def _is_finite(word, place):
    """Whether it is the verb of a subject that has no auxiliary."""
    n, v = word.count('n'), word.count('v')
    if word.is_verb('base' if place.before == 'plural' else 's'):
        return place.after in BEGINS_OBJECT or v > 4 * n or (v >= n and place.open == 'verb')
    return word.is_verb('base') and v > 4 * n and place.open == 'verb'  # he and his dog | walk, the crowd | walk


def _behind_subject_of_be(word, place):
    n, a, after = word.count('n'), word.count('a'), place.after
    if (word.is_verb('ing') and after in ('$', 'and')) or _is_passive(word):
        return 'v'
    if after == 'adv' and 'r' in word.readings:  # right now
        return 'r'
    if _is_predicate(word, place) or (after in ('A', 'E') and a > n):
        return 'a'
    if word.is_verb('base') and word.count('v') > 10 * n:  # is this somewhere that people | go
        return 'v'
    return word.first('narv')


def _behind_pronoun(word, place):
    if place.waits in ('do', 'modal') and word.is_verb('base'):
        return 'v'
    if place.waits == 'have' and word.is_verb('participle'):
        return 'v'
    if place.waits == 'be':
        return _behind_be(word, place)
    return 'v' if place.waits not in AUXILIARIES and 'v' in word.readings else _in_noun_phrase(word, place)


def _behind_be(word, place):
    told = place.open == 'be+'  # the woman is | knitting, the house is | painted blue
    if word.is_verb('ing') and (not word.thing or place.after in BEGINS_OBJECT or (told and place.after != 'N')):
        return 'v'
    if _is_passive(word) and (told or 'N' not in place.after):
        return 'v'
    return 'a' if _is_predicate(word, place) else _in_noun_phrase(word, place)


def _behind_auxiliary(word, place):
    n, after = word.count('n'), place.after
    due = word.is_verb('participle' if place.waits == 'have' else 'base') and not (n and 'B' in after)
    if due and (not n or after in BEGINS_OBJECT or word.count('v') > n):
        return 'v'
    return _in_noun_phrase(word, place)


def _behind_verb(word, place):
    if place.after in ('$', 'and') and 'r' in word.readings and word.count('r') >= _MODIFIER * word.count('n'):
        return 'r'
    if word.is_verb('ing') and not word.thing and 'N' not in place.after:  # go surfing
        return 'v'
    return _in_noun_phrase(word, place)


def _behind_copula(word, place):
    if _is_predicate(word, place):
        return 'a'
    return _behind_for(word, place)


def _behind_preposition(word, place):
    if word.is_verb('ing') and (place.after in BEGINS_OBJECT or word.count('v') > 10 * word.count('n')):
        return 'v'
    return _in_noun_phrase(word, place)


def _behind_for(word, place):
    if word.is_verb('ing') and word.count('v') > word.count('n'):
        return 'v'
    return _in_noun_phrase(word, place)


def _behind_to(word, place):
    if word.is_verb('base') and (place.after in BEGINS_OBJECT or 20 * word.count('v') >= word.count('n')):
        return 'v'
    return _in_noun_phrase(word, place)


def _behind_degree(word, place):
    return word.first('arnv')


def _elsewhere(word, place):
    """At the start, behind a pause, an adverb or a question word."""
    n, v, before = word.count('n'), word.count('v'), place.before
    if before == 'who' and v:
        return 'v'
    if word.is_verb('base') and ((before == 'where' and v > n) or (before == '^' and place.after in BEGINS_OBJECT)):
        return 'v'  # why wear a hat, name the toppings
    if before in ('^', 'r') and word.is_verb('base', 'past', 'participle') and v > n and 'N' not in place.after:
        return 'v'
    return _behind_for(word, place)


_RULES = {
    'n': _behind_noun,
    'plural': _behind_noun,
    'tag': _behind_noun,
    'pron': _behind_pronoun,
    'there': _in_noun_phrase,
    'be': _behind_be,
    'do': _behind_auxiliary,
    'have': _behind_auxiliary,
    'modal': _behind_auxiliary,
    'v': _behind_verb,
    'done': _behind_copula,
    'copula': _behind_copula,
    'prep': _behind_preposition,
    'gerund': _behind_for,
    'to': _behind_to,
    'degree': _behind_degree,
    'how': _behind_degree,
}
