"""JSON lines of ours, `{"id": ..., "answer": ..., "explanation": ...}` and the other fields of records.Prediction.

Beyond what decoding writes: an id may be a number, and a line with an explanation may lack the answer.
"""

from collections.abc import Collection, Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.data.sources import _files
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file. ValueError names file and line of what is no Prediction."""
    return (prediction for prediction, _ in read_carried(path, ()))


def read_carried(path, carried: Collection[str]) -> Iterator[tuple[Prediction, str | None]]:
    """Yields (prediction, the `text` that its line carries, None without); fields in `carried` may be there, too."""
    for where, row in _files.iter_json(path):
        row = _files.plain(_files.checked(row, dict, where), where)
        text = _files.optional_text(row, 'text', where) if 'text' in carried else None
        row = {name: value for name, value in row.items() if name == 'id' or name not in carried}
        if 'id' in row:
            row['id'] = _fields.identifier(row, 'id', where)
        if 'explanation' in row:
            row.setdefault('answer', None)
        try:
            prediction = Prediction.from_json(row)
        except ValueError as error:
            raise ValueError(f'{where}: {error}') from error
        yield prediction, text
