"""e-ViL's `gen_test.json` (Kayser et al. 2021; e-UG's code): JSON lines `{"question_id", "generated_explanation",
"prediction", "gt", "correct", "question", "correct_explanations", ...}`.

That code explains right answers only and writes "None" for all others: they have no explanation, not an empty one.
The same file may serve as references (`data/references.py`).
"""

from collections.abc import Iterator, Sequence

from evil_jax import text
from evil_jax.data.outputs import _fields
from evil_jax.data.sources import _files
from evil_jax.records import Example, Prediction

NO_EXPLANATION = 'None'


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file.

    Args:
      path: of the file.
      examples: of those with choices (VCR), the answer becomes one of them, whose object tags may be written in another
        way. Where several read the same, `correct` tells whether the right one is meant.

    Raises:
      ValueError: a malformed line; file and line are named.
    """
    known = {example.id: example for example in examples}
    for where, row in _files.iter_json(path):
        row = _files.checked(row, dict, where)
        identifier = _fields.identifier(row, 'question_id', where)
        answer, index = _files.field(row, 'prediction', str, where), None
        explanation = _files.field(row, 'generated_explanation', str, where)
        example = known.get(identifier)
        if example is not None and example.choices is not None:
            answer, index = _choice(answer, example, row.get('correct'))
        explanation = None if explanation == NO_EXPLANATION else explanation
        yield Prediction(identifier, answer, answer_index=index, explanation=explanation)


def _choice(answer: str, example: Example, correct) -> tuple[str, int | None]:
    """(the choice that an answer is, its index where it is the only one)."""
    wanted = text.tags_to_numbers(answer)
    alike = [i for i, choice in enumerate(example.choices) if text.tags_to_numbers(choice) == wanted]
    if correct in (0, 1) and isinstance(example.label, int):
        alike = [i for i in alike if (i == example.label) == bool(correct)] or alike
    if not alike:
        return answer, None
    return example.choices[alike[0]], alike[0] if len(alike) == 1 else None
