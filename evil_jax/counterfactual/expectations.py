"""What a sound model does when a word is exchanged: keeps its answer (INV), changes it (CHANGE), or either (FREE).

Who knows the picture decides (oracles.py): the right answer is still the same, or another one. Where nobody does,
`TABLE` says what follows from the words alone, after the expectations of Stoikou et al. (2023): a synonym or a more
general noun keeps the answer, a colour that looks alike too, a colour as far away as can be changes it. More general is
not always the same: there may be more vehicles than cars, and where there is no car there may be a vehicle.

For statements with a label (e-SNLI-VE) it is natural logic (MacCartney and Manning, 2007): which labels the new
statement can have, given the label of the old one. `LABELS` holds where the noun stands upward monotone; nothing
follows where it stands under a negation or a downward quantifier, or where the label is not known.

INV holds in every picture, CHANGE without an oracle in most: where a white car is there may be a black one as well,
parked on the same street. Of Visual Genome's scene graphs 13 % have the thing in the other colour, too; in the built-in
world 8 % of the answers are the same. So much stability is no fault.
"""

from collections.abc import Callable
from typing import NamedTuple

from evil_jax.counterfactual import _gold, colours
from evil_jax.counterfactual.edits import Edit
from evil_jax.records import Example

INV, CHANGE, FREE = 'INV', 'CHANGE', 'FREE'
Oracle = Callable[[Example, str], str | None]

E, N, C = 'entailment', 'neutral', 'contradiction'
_ANY = (E, N, C)
_SYNONYMS = ('synonym_verb', 'synonym_adjective')
_FAR = ('colour_max_common', 'colour_max_uncommon')
_NEAR = ('colour_min_common', 'colour_min_uncommon')


class Row(NamedTuple):
    """One row of the table; the first that fits an edit holds.

    Attributes:
      families: of the edit.
      expectation: INV, CHANGE or FREE.
      why: in words; {source} and {target} are the words that were exchanged.
      asks: what the question asks for (phrases.py); () is anything.
      gold: right answers to the original question, '' if not known; () is any.
      roles: of the noun (phrases.py); () is any.
      behind: the word that the noun stands directly behind; '' is any.
    """

    families: tuple[str, ...]
    expectation: str
    why: str
    asks: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    behind: str = ''


_YES_NO, _COUNT = ('yes/no',), ('count',)
TABLE = (
    Row(_SYNONYMS, INV, '{target} asks for the same as {source}'),
    Row(('hypernym',), INV, 'what is so of {source} is so of {target}, which is more general', _YES_NO, ('yes',)),
    Row(('hypernym',), FREE, 'what is not so of {source} may be so of other {target}', _YES_NO),
    Row(('hypernym',), FREE, 'there may be more {target} than {source}', _COUNT),
    Row(('hypernym',), FREE, 'which {target} is asked, no longer which {source}', ('which',)),
    Row(('hypernym',), FREE, 'what {target} it is is asked, no longer what {source}', roles=('of',)),
    Row(('hypernym',), FREE, 'what {target} it is is asked, no longer what {source}', roles=('head',), behind='what'),
    Row(('hypernym',), INV, '{target} is more general than {source} and means it, too'),
    Row(('hyponym',), INV, 'what is so of no {source} is so of no {target}, which is more special', _YES_NO, ('no',)),
    Row(('hyponym',), FREE, 'whether {source} may be called {target} is for the picture to say'),
    Row(('sibling',), FREE, 'whether there is {target} as well is for the picture to say'),
    Row(_FAR, CHANGE, 'what is {source} is not {target}', _YES_NO, ('yes',)),
    Row(_FAR, FREE, 'what is not {source} need not be {target}', _YES_NO),
    Row(_FAR, FREE, 'what is not {source} need not be {target}', _COUNT, ('0', 'none')),
    Row(_FAR, CHANGE, 'what is {source} is not {target}'),
    Row(_NEAR, INV, '{target} and {source} look alike'),
    Row(('delete',), FREE, 'without {source} more may be meant', _COUNT),
    Row(('delete',), INV, 'what is so of something with {source} is so without', _YES_NO, ('yes',), ('modifier',)),
    Row(('delete',), FREE, 'without {source} more may be meant', _YES_NO),
    Row(('delete',), INV, '{source} only describes the noun behind it', roles=('modifier',)),
    Row(('delete',), FREE, 'how much depends on {source} is for the picture to say'),
)

_WEAKER = {E: (E,), N: (E, N), C: _ANY}
_STRONGER = {E: _ANY, N: (N, C), C: (C,)}
_OTHER = {E: (N, C), N: _ANY, C: _ANY}
_ALIKE = {E: (E, N), N: _ANY, C: _ANY}
_SAME = {E: (E,), N: (N,), C: (C,)}
# Family -> label of the original statement -> labels that the edited one can have.
LABELS = {
    **dict.fromkeys(_SYNONYMS, _SAME),
    'hypernym': _WEAKER,
    'hyponym': _STRONGER,
    'sibling': _OTHER,
    **dict.fromkeys(_FAR, _OTHER),
    **dict.fromkeys(_NEAR, _ALIKE),
    'delete': _WEAKER,
}
_SAYS = (
    (_SAME, 'the statement says the same'),
    (_WEAKER, 'the statement says less than before'),
    (_STRONGER, 'the statement says more than before'),
    (_OTHER, 'what is {source} is not {target}'),
    (_ALIKE, '{target} and {source} look alike'),
)


def expect(edit: Edit, example: Example, oracle: Oracle | None = None) -> Edit:
    """Fills `expectation`, `expected` and `why` of an edit.

    Args:
      edit: of a text of `example`; changed in place. One of a family without expectations (a baseline) stays as it is.
      example: as it was before the edit.
      oracle: the right answer to a text about the example's picture, None where it does not know (oracles.py). Where it
        contradicts the example's own right answer, or what follows from the words, it is not believed.

    Returns:
      The edit. `expected` holds the right new answers: what an oracle knows, or the labels that are possible; None
      where they are not known.
    """
    if edit.family in LABELS:
        gold = _gold.Gold(example, 'strict').answer
        found = _joint(edit) or _by_colour(edit) or _by_logic(edit, example) or _by_table(edit, gold)
        if oracle is not None and edit.choices is None:
            seen = _known(edit, example, gold, oracle) or _shown(edit, example, gold, oracle) or found
            # A couch is a seat: an oracle with another answer for the seat has another one in mind.
            denied = found[0] == INV and seen[0] == CHANGE and edit.family not in _NEAR
            found = found if denied else seen
        edit.expectation, edit.expected, why = found
        edit.why = why.replace('{source}', edit.source).replace('{target}', edit.target)
    return edit


def _joint(edit):
    if edit.choices is not None:
        return INV, None, 'question, choices and explanations are renamed together'
    return None


def _known(edit, example, gold, oracle):
    """By the right answers before and after, if the oracle knows both."""
    after = oracle(example, edit.text)
    before = oracle(example, edit.original) if after is not None else None
    if before is None or (gold and gold not in map(_normalise, _spellings(before))):
        return None
    if _normalise(after) == _normalise(before):
        return INV, _spellings(after), f'"{after}" is still right: {_why(oracle)}'
    return CHANGE, _spellings(after), f'"{after}" is right, no longer "{before}": {_why(oracle)}'


def _shown(edit, example, gold, oracle):
    """By whether the picture has the new thing at all, if the oracle knows that."""
    shows = getattr(oracle, 'shows', None)
    if shows is None or edit.negated or edit.family not in ('sibling', *_FAR) or _label(example) is not None:
        return None
    seen = shows(edit, example)
    if seen is None:
        return None
    if seen:
        return FREE, None, f'what is asked about now is in the picture as well: {_why(oracle)}'
    lacking = {'yes/no': 'no', 'count': '0'}.get(edit.asks)  # the answer of what is not there
    if gold == lacking or (edit.asks in _YES_NO and gold != 'yes'):
        return FREE, None, f'"{lacking}" may be right of what the picture lacks, too: {_why(oracle)}'
    return CHANGE, None, f'the picture lacks what is asked about now: {_why(oracle)}'


def _by_colour(edit):
    """The nearest of a few colours may be another one to everybody, as brown is to red."""
    names = [lemma.lower().replace(' ', '') for lemma in (edit.source_lemma, edit.target_lemma)]
    if edit.family not in (*_FAR, *_NEAR) or not colours.NAMES.keys() >= set(names):
        return None
    alike = bool(colours.basics(names[0]) & colours.basics(names[1]))
    if alike == (edit.family in _NEAR):
        return None
    return (
        FREE,
        None,
        '{target} may be called {source}' if alike else '{target} is near to {source}, but another colour',
    )


def _by_logic(edit, example):
    label = _label(example)
    if edit.negated and edit.family not in _SYNONYMS:
        return FREE, None, 'nothing follows under a negation or a downward quantifier'
    if label is None:
        unknown = edit.asks == 'statement' and edit.family not in _SYNONYMS
        return (FREE, None, 'nothing follows of a statement whose label is not known') if unknown else None
    possible = LABELS[edit.family][label]
    says = next(why for table, why in _SAYS if table is LABELS[edit.family])
    if possible == _ANY:
        return FREE, None, f'{says}, so that any label is possible'
    expectation = INV if possible == (label,) else FREE if label in possible else CHANGE
    becomes = 'stays' if expectation == INV else f'becomes {" or ".join(possible)}'
    return expectation, possible, f'{says}, so that {label} {becomes}'


def _by_table(edit, gold):
    row = next(row for row in TABLE if _fits(row, edit, gold))
    return row.expectation, None, row.why


def _fits(row: Row, edit: Edit, gold: str) -> bool:
    return (
        edit.family in row.families
        and (not row.asks or edit.asks in row.asks)
        and (not row.gold or gold in row.gold)
        and (not row.roles or edit.role in row.roles)
        and (not row.behind or edit.original[: edit.span[0]].lower().split()[-1:] == [row.behind])
    )


def _label(example: Example) -> str | None:
    """The class of a statement; None of questions."""
    return example.label if example.choices is None and example.label in _ANY else None


def _normalise(answer: str) -> str:
    return _gold.normalise(answer, True)


def _spellings(answer: str) -> tuple[str, ...]:
    """Annotators write gray as well as grey."""
    return tuple(dict.fromkeys([answer, answer.replace('grey', 'gray'), answer.replace('gray', 'grey')]))


def _why(oracle) -> str:
    return getattr(oracle, 'why', 'says the oracle')
