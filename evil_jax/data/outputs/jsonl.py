"""JSON lines of ours, `{"id": ..., "answer": ..., "explanation": ...}` and the other fields of records.Prediction.

Beyond what decoding writes: an id may be a number, and a line with an explanation may lack the answer.
"""

from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.data.sources import _files
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file. ValueError names file and line of what is no Prediction."""
    for where, row in _files.iter_json(path):
        row = _files.plain(_files.checked(row, dict, where), where)
        if 'id' in row:
            row['id'] = _fields.identifier(row, 'id', where)
        if 'explanation' in row:
            row.setdefault('answer', None)
        try:
            prediction = Prediction.from_json(row)
        except ValueError as error:
            raise ValueError(f'{where}: {error}') from error
        yield prediction
