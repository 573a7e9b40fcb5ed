"""OFA-X's `<split>_predict.json` (Plüster et al. 2022): one object of lists, `{"id": [...], "answer": [...],
"explanation": ["because ...", ...]}`.

An explanation begins with 'because', or is empty where the model wrote none. Just that word is taken off: OFA-X's own
evaluation removes every letter of it from the beginning ("because a cat eats" became "t eats"), which is not repeated.
Answers are words of the model: yes, no and maybe for e-SNLI-VE's classes, answer0 to answer3 for VCR's choices. Boxes
in VCR's explanations, "person0 ( <bin_1> ... )", are left there.
"""

import re
from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.data.sources import _files, esnlive
from evil_jax.records import Example, Prediction

CLASSES = {'yes': 'entailment', 'no': 'contradiction', 'maybe': 'neutral'}
_COLUMNS = ('id', 'answer', 'explanation')
_CHOICE = re.compile(r'answer([0-9])')


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file.

    Args:
      path: of the file.
      examples: of those whose label is a class of e-SNLI-VE, or that have choices, the answers become classes or
        choices; all others stay as they are (yes is an answer of VQA-X).

    Raises:
      ValueError: no such object, lists of different lengths, an entry that is no text.
    """
    document = _files.read_json(path)
    if isinstance(document, list) and document[:3] == list(_COLUMNS):
        raise ValueError(
            f'{path}: holds the names of the lists and not the lists: OFA-X loses them when it evaluates with several '
            'processes (use one)'
        )
    document = _files.checked(document, dict, f'{path}: the document')
    columns = {name: _files.field(document, name, list, str(path)) for name in _COLUMNS}
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) > 1:
        found = ', '.join(f'{name} has {n}' for name, n in zip(_COLUMNS, lengths))
        raise ValueError(f'{path}: the lists are of different lengths: {found}')
    known = {example.id: example for example in examples}
    for number, values in enumerate(zip(*columns.values()), 1):
        where, row = f'{path}: record {number}', dict(zip(_COLUMNS, values))
        identifier = _fields.identifier(row, 'id', where)
        answer = _files.field(row, 'answer', str, where).strip()
        explanation = _files.field(row, 'explanation', str, where).strip().removeprefix(_fields.BECAUSE).strip()
        answer, index = _named(answer, known.get(identifier))
        yield Prediction(identifier, answer, answer_index=index, explanation=explanation)


def _named(answer: str, example: Example | None) -> tuple[str, int | None]:
    """(the answer in the example's words, its index among the choices)."""
    if example is None:
        return answer, None
    choice = _CHOICE.fullmatch(answer)
    if example.choices is not None and choice and int(choice[1]) < len(example.choices):
        return example.choices[int(choice[1])], int(choice[1])
    if example.choices is None and example.label in esnlive.CLASSES:
        return CLASSES.get(answer, answer), None
    return answer, None
