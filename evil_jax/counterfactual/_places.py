"""What a tagger remembers of the words before a place in a text, and sees of those behind it."""

from typing import NamedTuple

from evil_jax.counterfactual._function_words import words
from evil_jax.counterfactual._vocabulary import Reading, Word


class Place(NamedTuple):
    """Where a word stands.

    Attributes:
      before: class of the word before: that of a function word, 'tag', or of other words 'n', 'plural', 'a', 'r',
        'v', 'done' (a participle), 'copula'; '^' at the start, ',' behind a pause, 'and n' behind a noun and "and".
      open: the auxiliary that still waits for its verb: 'be', 'do', 'have', 'modal', with a + once its subject has
        come: 'do+' in "do the curtains | match". 'verb' where no auxiliary and no verb has come yet, as in the subject
        of a statement; '' behind them, and behind a question word.
      after, later: signs (Word.sign) of the next word and of the one behind it, '$' where the clause ends; '' where
        they have no say (Word.ahead, Word.vague).
    """

    before: str
    open: str
    after: str
    later: str

    @property
    def waits(self) -> str:
        """`open` without the +."""
        return self.open.removesuffix('+')


START = '^', 'verb'  # `before` and `open` there
AUXILIARIES = words('be do have modal')
SUBJECTS = words('n plural pron tag who num dem dems quant')
# Behind these a noun phrase goes on.
IN_NOUN_PHRASE = words('det dem dems poss num quant wh a')
# These follow a predicate: "is it light outside", "is it red or blue".
BEHIND_PREDICATE = words('$ and prep gerund to because adv quant where R')

BEGINS_OBJECT = words('det dem dems poss pron num quant tag')

# They say what their subject is like.
COPULAS = words('look seem appear feel smell taste sound become get stay remain turn go')
# With these, to is a preposition.
_WITH_TO = words('next close near similar due adjacent opposite parallel')
_CONTRACTED = {"'ll": 'modal', "'d": 'modal', "'ve": 'have', "'re": 'be', "'m": 'be'}


def follow(word: Word, pos: str, reading: Reading | None, place: Place) -> tuple[str, str]:
    """`before` and `open` of the next place, once a word, or a phrase that begins with it, has been read.

    Args:
      word: at `place`.
      pos: what it was read as; 'f' of function words.
      reading: the one of that pos; None for 'f'.
    """
    before, open = place.before, place.open
    if pos == 'f':
        return _behind_function_word(word.kind, place)
    if pos == 'n':
        return ('plural' if reading.forms else 'n'), _with_subject(open)
    if pos == 'v':
        modifier = before in ('det', 'poss', 'a', 'num')  # the parked cars
        modifier = modifier or (open == 'verb' and reading.forms == ('ing',))  # a man wearing a hat | stands
        return _kind_of_verb(reading, place), open if modifier else ''
    if place.after == 'to' and word.text in _WITH_TO:
        return 'prep', open
    if pos == 'a':
        return 'a', '' if open.endswith('+') and place.after in BEHIND_PREDICATE else open
    return (before if before in SUBJECTS | AUXILIARIES else 'r'), open


def behind_gap(gap: str, before: str, open: str) -> tuple[str, str]:
    """`before` and `open` behind what stands between two words: '.' the end of a sentence, ',' a pause, '/' a slash."""
    if gap == '.':
        return START
    if gap == '/' or (gap == ',' and before == 'a'):
        return 'and ' + before, open
    return (',', open) if gap else (before, open)


def verb_form(reading: Reading, place: Place) -> str:
    """Which of the forms that a verb may have it has here."""
    forms = reading.forms
    if 'base' in forms and (place.waits in ('do', 'modal') or place.before == 'to'):
        return 'base'
    if 'participle' in forms and (place.open not in ('', 'verb') or place.before not in SUBJECTS):
        return 'participle'
    return 'past' if 'past' in forms else forms[0]


def _kind_of_verb(reading, place):
    if reading.lemma in COPULAS:
        return 'copula'
    return 'done' if verb_form(reading, place) == 'participle' else 'v'


def _with_subject(open):
    return open + '+' if open in AUXILIARIES else open


def _behind_function_word(kind, place):
    before, open = place.before, place.open
    if kind == "'s":
        return _behind_s(place)
    if kind in _CONTRACTED:
        return _CONTRACTED[kind], _CONTRACTED[kind] + '+'
    if kind in AUXILIARIES:
        return _behind_auxiliary(kind, place)
    # Words in passing: the very bottom; do they all wear; is it still.
    passing = {'degree': IN_NOUN_PHRASE, 'quant': ('pron', 'plural'), 'adv': SUBJECTS | AUXILIARIES}
    if before in passing.get(kind, ()):
        return before, open
    if kind == 'to':
        return ('prep' if before == 'prep' else 'to'), open
    if kind == 'and':
        return 'and ' + before.removeprefix('and '), open
    if kind in ('because', 'who', 'where', 'wh', 'how'):
        return kind, ''
    if kind == 'det' and open == 'be+' and before in SUBJECTS:  # is that | a brick building
        return kind, ''
    if kind == 'pron' and open.endswith('+') and before in ('n', 'plural'):  # the colour that is | we see
        return kind, ''
    return kind, _with_subject(open) if kind in ('pron', 'dem', 'dems', 'tag', 'num', 'there') else open


def _behind_s(place):
    """A possessive, or short for is."""
    owner = place.before in ('n', 'plural', 'tag', 'a', 'v')
    owner = owner or (place.before in ('pron', 'num', 'quant') and 'N' in place.after)
    if owner and place.after not in ('det', 'dem', 'adv', 'prep', 'G'):
        return 'poss', place.open
    return 'be', 'be+'


def _behind_auxiliary(kind, place):
    open = place.open
    if kind in ('do', 'have') and (open.endswith('+') or open == 'be'):  # does he | have, what is she | doing
        return 'v', ''
    if open == 'verb' and place.before in SUBJECTS:  # a statement
        return ('v', '') if kind == 'have' and place.after in BEGINS_OBJECT else (kind, kind + '+')
    return kind, 'be+' if kind == 'be' and place.waits in AUXILIARIES else kind
