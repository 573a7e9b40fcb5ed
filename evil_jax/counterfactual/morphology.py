"""Forms of English words: from a token to its lemma, and from a lemma to the form that a slot of a sentence wants.

Lemmas come from WordNet's exception lists and rules of detachment (morphy(7WN)), with two rules more for verbs that the
lists do not have (remedied, blogging); forms come from rules and the tables of _inflections.py.
"""

import re

from evil_jax.counterfactual import _inflections, _sounds
from evil_jax.counterfactual.lexicon import Lexicon

# Rules of detachment: the end of a form > what stands there in the base.
_RULES = {
    'n': ('s>', 'ses>s', 'xes>x', 'zes>z', 'ches>ch', 'shes>sh', 'men>man', 'ies>y'),
    'v': ('s>', 'ied>y', 'ies>y', 'es>e', 'es>', 'ed>e', 'ed>', 'ing>e', 'ing>'),
    'a': ('er>', 'est>', 'er>e', 'est>e'),
    'r': (),
}
FORMS = ('base', 's', 'past', 'participle', 'ing')

_DOUBLED_FORM = re.compile(r'(.*[^aeiou][aeiouy]([bdgklmnprtvz]))\2(ed|ing)$')  # blogging
_VOWELS = 'aeiou'
# Words between the head of a noun and what belongs to it: piece of cake, mother-in-law, lily of the valley.
_AFTER_HEAD = re.compile(r'^(.+?)((?:[ -](?:of|in|at|on|to|by|for|with|from|de)[ -]).+)$')


def lemmas(lexicon: Lexicon, token: str, pos: str) -> list[tuple[str, str]]:
    """Entries of which a token may be a form, the token itself first.

    Args:
      token: one word, or a phrase ('fire hydrants': its head is inflected).
      pos: 'n', 'v', 'a' or 'r'.

    Returns:
      (lemma in lower case, rule) of each; the rule is 'entry' (the token is one as it stands), 'exception' (WordNet's
      lists) or the end that was exchanged: 's>', 'ies>y'.
    """
    token = token.lower()
    before, head, after = _split(token, pos)
    found = {token: 'entry'}
    for base in lexicon.exceptions(head, pos):
        found.setdefault(f'{before}{base}{after}', 'exception')
    # The s of glass and boss is no plural's (bos is an entry), nor is that of a word as short as is.
    if not (pos == 'n' and (head.endswith('ss') or len(head) <= 2)):
        for rule in _RULES[pos]:
            end, _, instead = rule.partition('>')
            if head.endswith(end):
                found.setdefault(f'{before}{head.removesuffix(end)}{instead}{after}', rule)
    if pos == 'v' and (doubled := _DOUBLED_FORM.match(head)):
        found.setdefault(f'{before}{doubled[1]}{after}', f'{doubled[2]}{doubled[3]}>')
    return [(lemma, rule) for lemma, rule in found.items() if pos in lexicon.parts(lemma)]


def lemma(lexicon: Lexicon, token: str, pos: str) -> tuple[str, str] | None:
    """The one of `lemmas` that a token most likely is: that which SemCor has most often, the token itself if in doubt.

    WordNet has windows as an operating system and cows as cattle: the commoner window and cow are meant. Glasses,
    shorts, jeans and pants are what they are, however common glass, short, jean and pant may be; and stamina is no
    stamens, though WordNet's lists say so.

    Returns:
      (lemma in lower case, rule); None if the token is no form of an entry.
    """
    found = lemmas(lexicon, token, pos)
    if pos == 'n' and found and found[0][1] == 'entry':
        if _split(found[0][0], 'n')[1] in _inflections.OWN_SENSE:
            return found[0]
        found = [pair for pair in found if pair is found[0] or plural(pair[0]) == found[0][0]]
    return max(found, key=lambda pair: lexicon.frequency(pair[0], pos), default=None)


def plural(lemma: str) -> str:
    """Plural of a noun; itself where it has no other (sheep, furniture, trousers, people)."""
    before, head, after = _split(lemma, 'n')
    return f'{before}{_plural(head)}{after}'


def is_plural(token: str, lemma: str) -> bool:
    """Whether a form of a noun is its plural, or the noun has only a plural (trousers). Sheep may be one: False."""
    return token.lower() != lemma.lower() or _only_plural(_split(lemma.lower(), 'n')[1])


def is_mass(lemma: str) -> bool:
    """Whether a noun cannot be counted: no plural, and no 'a' before it."""
    head = _split(lemma.lower(), 'n')[1]
    return head in _inflections.MASS or head.endswith('ics')


def verb_form(lemma: str, form: str) -> str:
    """A form of a verb; of a phrase, its first word's: ('have on', 'ing') is 'having on'.

    Args:
      form: 'base', 's' (sees), 'past' (saw), 'participle' (seen) or 'ing' (seeing).

    Raises:
      ValueError: no such form.
    """
    if form not in FORMS:
        raise ValueError(f'no form {form!r} of a verb: there are {", ".join(FORMS)}')
    _, head, after = _split(lemma, 'v')
    return _verb(head, form) + after


def verb_forms(token: str, lemma: str) -> tuple[str, ...]:
    """Every form in which a token can be that of a verb: ('past', 'participle') for walked; the order is that of FORMS.

    Forms that verb_form would not write (travelled, dreamt) are told by their ends.
    """
    token, lemma = token.lower(), lemma.lower()
    if lemma == 'be' and token in ('am', 'are', 'were'):
        return ('past',) if token == 'were' else ('base',)
    found = tuple(form for form in FORMS if verb_form(lemma, form) == token)
    if found:
        return found
    head = _split(token, 'v')[1]
    return ('ing',) if head.endswith('ing') else ('s',) if head.endswith('s') else ('past', 'participle')


def article(next_words: str) -> str:
    """'a' or 'an', as the words that follow it want: by their sound, American where the two differ (an herb)."""
    word = re.search(r'\w\S*', next_words)
    return 'an' if word and _sounds.begins_with_vowel(word[0]) else 'a'


def match_case(target: str, source: str, written: str = '') -> str:
    """`target` in the case of the word it stands in for: a capital at the start, everything in capitals, or as it is.

    Args:
      written: the source as the lexicon writes it; capitals that it has there (TV, Frisbee) say nothing about the slot.
    """
    if source == written:
        return target
    words = source.split()
    if len(source) > 1 and source.isupper():
        return target.upper()
    if len(words) > 1 and all(word[0].isupper() for word in words):
        return ' '.join(word[:1].upper() + word[1:] for word in target.split(' '))
    return target[:1].upper() + target[1:] if source[:1].isupper() else target


def _split(words, pos):
    """(before, head, after) of a word or a phrase: the head is what is inflected."""
    if pos == 'v':
        head, blank, after = words.partition(' ')
        return '', head, blank + after
    after = ''
    if pos == 'n' and words.lower() not in _inflections.PLURALS and (match := _AFTER_HEAD.match(words)):
        words, after = match.groups()
    before, blank, head = words.rpartition(' ')
    return before + blank, head, after


def _plural(word):
    low = word.lower()
    if low in _inflections.PLURALS:
        plural = _inflections.PLURALS[low]
        return plural.capitalize() if word[:1].isupper() else plural
    if is_mass(low) or low in _inflections.UNCHANGED or low.endswith('fish') or _only_plural(low):
        return word
    if low.endswith(_inflections.PLURAL_ENDS) and low not in _inflections.REGULAR_MEN:
        end = next(end for end in _inflections.PLURAL_ENDS if low.endswith(end))
        return word[: -len(end)] + _inflections.PLURALS[end]
    if low.endswith('sis'):
        return word[:-2] + 'es'
    return _with_s(word)


def _only_plural(word):
    """Whether a lemma is a plural itself: trousers, stairs, drawers, people."""
    if word in _inflections.ONLY_PLURAL or word in _inflections.PLURALS.values():
        return True
    if is_mass(word) or word in _inflections.UNCHANGED or word in _inflections.SINGULAR_S:
        return False
    # Gas, virus, iris, cosmos and glass are singular; other letters before an s belong to a plural.
    return len(word) > 2 and word[-1] == 's' and word[-2] not in "aious'"


def _with_s(word):
    low = word.lower()
    if re.search('^(?:[^aeiou]+|qu)[aeiou]z$', low):
        return word + 'zes'
    if low.endswith(('s', 'x', 'z', 'ch', 'sh')):
        return word + 'es'
    if low.endswith('y') and low[-2:-1] not in _VOWELS and len(word) > 1:
        return word[:-1] + 'ies'
    return word + 's'


def _verb(word, form):
    if form == 'base':
        return word
    if word == 'be':
        return {'s': 'is', 'past': 'was', 'participle': 'been', 'ing': 'being'}[form]
    if form == 's':
        if word == 'have':
            return 'has'
        return word + 'es' if word.endswith('o') and word[-2:-1] not in _VOWELS else _with_s(word)
    if form == 'ing':
        return _before_vowel(word, 'ing')
    prefix, root = _prefixed(word)
    if root in _inflections.VERBS and word not in _inflections.REGULAR_VERBS:
        return prefix + _inflections.VERBS[root][form == 'participle']
    return _before_vowel(word, 'ed')


def _prefixed(verb):
    """('over', 'run') of overrun; ('', verb) of a verb that is irregular by itself or has no prefix."""
    if verb not in _inflections.VERBS:
        for prefix in _inflections.PREFIXES:
            if verb.startswith(prefix) and verb.removeprefix(prefix) in _inflections.VERBS:
                return prefix, verb.removeprefix(prefix)
    return '', verb


def _before_vowel(word, end):
    """A verb with -ed or -ing, by the rules."""
    if word.endswith('ie') and end == 'ing':
        return word[:-2] + 'ying'
    if word.endswith('e'):
        keeps = end == 'ing' and (
            word.endswith(('ee', 'oe', 'ye')) or word in ('be', 'singe', 'swinge', 'tinge', 'binge')
        )
        return word + end if keeps else word[:-1] + end
    if word.endswith('y') and word[-2:-1] not in _VOWELS and end == 'ed':
        return word[:-1] + 'ied'
    if word.endswith(('ac', 'ic')):
        return word + 'k' + end
    return word + word[-1] + end if _doubles(word) else word + end


def _doubles(word):
    if word in _inflections.DOUBLED:
        return True
    root = re.sub('^(?:out|over|under|un|up|mis)(?=.{3})', '', word)
    if not re.search('(?:[^aeiou]|qu)[aeiouy][bdfgklmnprstvz]$', root):
        return False
    return len(re.findall('(?:(?<=q)u)?(?:[aeiou]+|(?<![aeiou])y(?![aeiou]))', root)) == 1
