"""The answers in a row of MTurk's results, as fields of the form.

Three ways to say that somebody ticked 0 and 2 of field 1-f1:

* a plain form: `Answer.1-f1` is `0|2`; a column that nobody filled in may not be there;
* a crowd-form: `Answer.1-f1.0`, `Answer.1-f1.1`, ... are true or false; where a box has a name of its own,
  `Answer.1-f1-0.on`; where it is a list, `Answer.1-e1.value` or `.label` is the value;
* `Answer.taskAnswers` is one JSON object (in a list): {"1-f1": {"0": true, "1": false, ...}, ...}, or with the names of
  OFA-X: task1_answer, task1_explanation1_explanation_justifies_answer, task1_explanation1_shortcomings_..., ....

Other names are passed over, such as those of the examples in the instructions (q1, ex1, example3); so is the comment.
"""

import re
from collections.abc import Mapping, Sequence

from evil_jax.data.sources import _files
from evil_jax.human import form
from evil_jax.human.study import SHORTCOMINGS, Item

JSON = 'taskAnswers'
# Field, perhaps a value, perhaps how it is said: '1-e1', '1-e1.w_yes', '1-f1-0.on', 'c1.value'.
_SAID = r'(?:[-_.](?!(?:on|value|label)$)(\w+))?(?:\.(on|value|label))?'
_NAME = re.compile(rf'(c\d+|\d+-[ef]\d){_SAID}')
_LABELLED = re.compile(rf'(c\d+|\d+-w){_SAID}')  # of `label_form`
_WRITTEN = re.compile(r'((\d+)-x)(?:\.value)?')
_OFAX = re.compile(r'task(\d+)_(?:explanation(\d)_(explanation_justifies_answer|shortcomings_(\w+))|(\w+))')
_BOOLEANS = {'true': True, 'on': True, '1': True, 'false': False, 'off': False, '0': False, '': False}
_ROUNDED = re.compile(r'(\d+)\.0')  # what tables with empty cells make of numbers


def fields(
    answers: Mapping[str, str], items: Sequence[Item]
) -> tuple[dict[str, list[str]], dict[tuple[int, int], str]]:
    """Fields for `form.parse`, and {(item, explanation), from 1: preference} of surveys that ask which is better.

    Args:
      answers: values of the columns Answer.*, by their names without that.
      items: of the page.

    Raises:
      ValueError: a value that is none of those above, or no field at all among the columns.
    """
    if JSON in answers:
        return _json(answers[JSON], items)
    found: dict[str, list[str]] = {}
    known = False
    for name, value in answers.items():
        known = _add(found, name, value, len(items)) or known
    if not known:
        raise ValueError(f'answers are {", ".join(_files.keys(answers)) or "none"}, wanted c1, 1-e1, 1-f1, ...')
    return found, {}


def _add(found, name: str, value, number: int, names=_NAME) -> bool:
    """Adds the values of a column or key, if it is a field of one of so many items."""
    match = names.fullmatch(name)
    if not match or int(re.search(r'\d+', name)[0]) > number:  # a filler behind the last item
        return False
    field, own, said = match.groups()
    if own is not None:
        values = [own] if _boolean(name, value) else []
    elif said == 'on':  # which of its values is on does not say
        return False
    else:
        values = _values(name, value)
    if values:
        found.setdefault(field, []).extend(values)
    return True


def _boolean(name: str, value) -> bool:
    if isinstance(value, dict) and len(value) == 1:  # {"on": true}
        (value,) = value.values()
    if isinstance(value, str) and value.strip().casefold() in _BOOLEANS:
        return _BOOLEANS[value.strip().casefold()]
    if not isinstance(value, bool):
        raise ValueError(f'{name} is {_files.shown(value)}, wanted true or false')
    return value


def _values(name: str, value) -> list[str]:
    """'0|2', 0, ['0', '2'] or {'0': true, '1': false, '2': true}."""
    if isinstance(value, dict):
        return [key for key, on in value.items() if _boolean(name, on)]
    if isinstance(value, int) and not isinstance(value, bool):
        return [str(value)]
    if isinstance(value, str):
        value = [part.strip() for part in value.split('|') if part.strip()]
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise ValueError(f'{name} is {_files.shown(value)}, wanted values')
    return [_ROUNDED.sub(r'\1', part) for part in value]


def labelled(answers: Mapping[str, str], number: int) -> dict[str, list[str]]:
    """Fields for `label_form.parse` of a page of so many items, in any of the three ways.

    Raises:
      ValueError: as `fields`.
    """
    answers = _object(answers[JSON]) if JSON in answers else answers
    found: dict[str, list[str]] = {}
    known = False
    for name, value in answers.items():
        match = _WRITTEN.fullmatch(name)
        if match and int(match[2]) <= number and isinstance(value, str):  # as it is: a | divides nothing in it
            found[match[1]], known = [value], True
        else:
            known = _add(found, name, value, number, _LABELLED) or known
    if not known:
        raise ValueError(f'answers are {", ".join(_files.keys(answers)) or "none"}, wanted c1, 1-w, 1-x, ...')
    return found


def _object(text: str) -> dict:
    answers = _files.parse_json(text, JSON, lines=False)
    if isinstance(answers, list) and len(answers) == 1:
        (answers,) = answers
    return _files.checked(answers, dict, JSON)


def _json(text: str, items) -> tuple[dict[str, list[str]], dict[tuple[int, int], str]]:
    answers = _object(text)
    if not any(_OFAX.fullmatch(name) for name in answers):
        found: dict[str, list[str]] = {}
        if not sum(_add(found, name, value, len(items)) for name, value in answers.items()):
            raise ValueError(f'{JSON} has {", ".join(_files.keys(answers)) or "nothing"}, wanted c1, 1-e1, 1-f1, ...')
        return found, {}
    return _ofax(answers, items)


def _ofax(answers, items) -> tuple[dict[str, list[str]], dict[tuple[int, int], str]]:
    found: dict[str, list[str]] = {}
    preferences: dict[tuple[int, int], str] = {}
    words = {rating: word for word, rating in form.WORDS.items()}
    asked = set()
    for name, value in answers.items():
        match = _OFAX.fullmatch(name)
        k = int(match[1]) if match else 0
        if not 1 <= k <= len(items):
            continue
        e, shortcoming, other = match[2], match[4], match[5]
        if shortcoming:
            if shortcoming not in SHORTCOMINGS:
                raise ValueError(f'{name}: wanted one of {", ".join(SHORTCOMINGS)}')
            asked.add(f'{k}-f{e}')
            if _boolean(name, value):
                found.setdefault(f'{k}-f{e}', []).append(str(SHORTCOMINGS.index(shortcoming)))
        elif e:
            found[f'{k}-e{e}'] = [words.get(rating, rating) for rating in _values(name, value)]
        elif other in ('answer', 'image_statement_relationship'):
            found[f'c{k}'] = [_number(name, text, items[k - 1]) for text in _values(name, value)]
        elif other == 'preference':
            preferences |= _preferred(k, _values(name, value), len(items[k - 1].explanations))
    for field in asked:
        found.setdefault(field, [str(form.TICKS.index(form.NONE))])
    return found, preferences


def _number(name: str, text: str, item: Item) -> str:
    if text.strip() in item.choices:
        return str(item.choices.index(text.strip()))
    names = [f'answer{i}' for i in range(len(item.choices))]  # of VCR
    if text not in names:
        raise ValueError(f'{name} is {text[:80]!r}, wanted one of {", ".join(item.choices)}')
    return str(names.index(text))


def _preferred(k: int, values: list[str], number: int) -> dict[tuple[int, int], str]:
    """expl_1, ... or no_preference -> what that means for each explanation."""
    if not values:
        return {}
    chosen = values[0].removeprefix('expl_')
    return {
        (k, e): 'none' if values[0] == 'no_preference' else 'this' if chosen == str(e) else 'other'
        for e in range(1, number + 1)
    }
