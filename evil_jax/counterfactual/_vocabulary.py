"""What a word may be: the readings that WordNet, its counts in SemCor and its ending leave open."""

import re
from typing import NamedTuple

from evil_jax.counterfactual import _function_words, morphology
from evil_jax.counterfactual.lexicon import Lexicon

# A reading this much rarer than another one is left out, unless the other is too rare itself to tell. Nouns stay:
# SemCor has no bear and no saw.
_RARE = 0.03
_ENOUGH = 20

_LETTER = {'n': 'N', 'a': 'A', 'r': 'R', 'base': 'B', 's': 'S', 'past': 'E', 'participle': 'E', 'ing': 'G'}
# What a word that WordNet does not have is by its end; without one of these it is a noun.
_BY_END = {'ly': 'r', 'ed': 'a', 'ing': 'v'}
_PAST = ('past', 'participle')
_REGULAR = {'s': ('s',), 'es': ('s',), 'ies': ('s',), 'ed': _PAST, 'ing': ('ing',)}  # by the end that was detached
_VAGUE = frozenset('ABSE')  # signs of words that may end a noun phrase or go on with it
_NUMBER = re.compile(r'\d[\w.,:/-]*$')
_TAG = re.compile(r'<.*|[a-z]{3,}\d+')  # also as NLX-GPT writes the objects of VCR: person0


class Reading(NamedTuple):
    """A word as one part of speech.

    Attributes:
      lemma: its dictionary form, in lower case.
      rule: how that was found (morphology.lemmas), 'unknown' for a guess.
      count: of the lemma in SemCor.
      forms: of a verb, each form that the word may be (morphology.FORMS); of a noun ('plural',) or ().
    """

    lemma: str
    rule: str
    count: int
    forms: tuple[str, ...] = ()


class Word(NamedTuple):
    """A word of a text, whatever stands around it.

    Attributes:
      text: in lower case.
      kind: class of a function word (_function_words.py), 'tag' of an object, 'num' of a figure; '' of other words.
      readings: 'n', 'v', 'a', 'r' -> Reading.
      thing: of a form in -ing, whether it names a thing, as building and railing do, and not what somebody does.
      sign: what the words before may know of it: `kind`, or one capital for each reading: N noun, A adjective, R
        adverb, verbs by form: B base, S sees, E saw and seen, G seeing, which is no N unless a thing.
      ahead: how many of the words behind it have a say in what it is, or in what may come next: 0, 1 or 2.
      vague: whether the word behind it helps to tell what it is to the word before.
    """

    text: str
    kind: str
    readings: dict[str, Reading]
    thing: bool
    sign: str
    ahead: int
    vague: bool

    def count(self, pos: str) -> int:
        """How common a reading is; 0 of none, at least 1 of one."""
        return self.readings[pos].count + 1 if pos in self.readings else 0

    def is_verb(self, *forms: str) -> bool:
        """Whether it may be one of these forms of a verb."""
        return 'v' in self.readings and not set(forms).isdisjoint(self.readings['v'].forms)

    def first(self, order: str) -> str:
        """The first pos of an order that it may be."""
        return next(pos for pos in order if pos in self.readings)


def word(lexicon: Lexicon, text: str) -> Word:
    """What `text`, one token, may be."""
    low = text.lower().replace('’', "'")
    kind = '' if text == 'US' else _kind(low)
    if not kind:
        readings = _entries(lexicon, low) or _guess(lexicon, low)
    else:
        wanted = 'n' * (low in _function_words.NOUNS) + 'v' * (low in _function_words.VERBS)
        readings = {pos: reading for pos, reading in _entries(lexicon, low).items() if pos in wanted} if wanted else {}
    thing = low.endswith('ing') and 'n' in readings and _is_thing(lexicon, readings)
    sign = kind or _sign(readings, thing)
    if len(readings) + bool(kind) > 1:
        ahead = 2
    else:
        ahead = int(kind in ("'s", 'have') if kind else not readings.keys() & {'n', 'v'})
    return Word(low, kind, readings, thing, sign, ahead, kind == 'and' or not _VAGUE.isdisjoint(sign))


def _kind(low):
    if _TAG.fullmatch(low):
        return 'tag'
    if low[0] == "'":
        return low
    return 'num' if _NUMBER.match(low) else _function_words.CLASS.get(low, '')


def _entries(lexicon, low):
    found = {}
    for pos in 'nvar':
        lemma, rule = morphology.lemma(lexicon, low, pos) or ('', '')
        if not lemma or (pos == 'v' and lemma in ('be', 'do', 'have')):  # bed is no form of be
            continue
        forms = ()
        if pos == 'v':
            forms = _REGULAR.get(rule.partition('>')[0]) or morphology.verb_forms(low, lemma)
        elif pos == 'n' and morphology.is_plural(low, lemma):
            forms = ('plural',)
        found[pos] = Reading(lemma, rule, lexicon.frequency(lemma, pos), forms)
    _drop_accidents(found, low)
    most = max((reading.count for reading in found.values()), default=0)
    return {pos: r for pos, r in found.items() if pos == 'n' or most < _ENOUGH or r.count >= _RARE * most}


def _drop_accidents(found, low):
    """Readings that only the rules of inflection see."""
    if 'n' not in found:
        return
    if 'v' in found and found['n'].lemma == low and found['n'].forms and found['v'].count < _ENOUGH:
        del found['v']  # pants and shorts are no verbs; SemCor, which does not have them, has to pant
    if 'a' in found and found['a'].rule.startswith('e') and found['a'].lemma != low and found['n'].count:
        del found['a']  # number is no comparative of numb, nor owner of own


def _guess(lexicon, low):
    """Readings of a word that is no entry: by its last part after a hyphen, or by its ending."""
    if '-' in low:
        return _compound(lexicon, low)
    for end, pos in _BY_END.items():
        if low.endswith(end) and len(low) > len(end) + 2:
            return {pos: Reading(low, 'unknown', 0, ('ing',) * (pos == 'v'))}
    return {'n': Reading(low, 'unknown', 0, ('plural',) * (low[-1] == 's' and low[-2:] != 'ss'))}


def _compound(lexicon, low):
    last = low.split('-')[-1]
    for whole in (low.replace('-', ' '), low.replace('-', '')):  # teddy-bear, side-walk
        for lemma, rule in morphology.lemmas(lexicon, whole, 'n'):
            forms = ('plural',) * morphology.is_plural(last, lemma.split()[-1])
            return {'n': Reading(lemma, rule, lexicon.frequency(lemma, 'n'), forms)}
    readings = _entries(lexicon, last)
    verb = readings.get('v')
    if 'n' not in readings or (verb and {'participle', 'ing'} & set(verb.forms)):
        return {'a': Reading(low, 'unknown', 0)}  # bird-shaped, good-looking, two-sided
    return {'n': readings['n']._replace(lemma=low, rule='unknown', count=0)}


def _is_thing(lexicon, readings):
    """A building is, but not wearing, first of all a process; nor a hanging, much rarer than to hang."""
    noun = readings['n']
    senses = lexicon.senses(noun.lemma, 'n')
    if not senses or ('v' in readings and readings['v'].count > 10 * (noun.count + 1)):
        return False
    kinds = {kind for kind, _ in lexicon.ancestors(senses[0])}
    return 'physical_entity.n.01' in kinds and 'process.n.06' not in kinds


def _sign(readings, thing):
    forms = readings['v'].forms if 'v' in readings else ()
    parts = [pos for pos in readings if pos != 'v' and not (pos == 'n' and 'ing' in forms and not thing)]
    return ''.join(dict.fromkeys(_LETTER[name] for name in (*parts, *forms)))
