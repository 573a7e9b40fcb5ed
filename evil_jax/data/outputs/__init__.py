"""Predictions of any system, from the files that systems write. A format is a file here: `read(path, examples)`.

Ids may be wrong in all the ways that ids are wrong: what `read` returns is in file order and may repeat ids; `match`
decides.
"""

from collections.abc import Collection, Iterator, Sequence

from evil_jax import lookup
from evil_jax.data.outputs import _sniff
from evil_jax.data.outputs._match import ALLOW, Counts, match
from evil_jax.records import Example, Prediction

__all__ = ['ALLOW', 'FOLDER', 'Counts', 'iterate', 'match', 'read']

FOLDER = 'data/outputs'


def read(path, format: str = 'jsonl', examples: Sequence[Example] = ()) -> list[Prediction]:
    """The predictions in a file, in its order; an id may appear twice.

    Args:
      path: of the file; UTF-8, with or without a byte order mark.
      format: name of a file in this folder.
      examples: what is predicted, in the order of the references. Some formats need them: `text` has no ids, `ofax` and
        `gen_test` have names of their own for classes and choices.

    Raises:
      ValueError: an unknown format, a malformed record, no record at all; the file and the line or record are named,
        and where the file looks like another format, that format.
    """
    return [prediction for prediction, _ in iterate(path, format, examples)]


def iterate(
    path, format: str = 'jsonl', examples: Sequence[Example] = (), carried: Collection[str] = ()
) -> Iterator[tuple[Prediction, str | None]]:
    """As `read`, one after the other; formats of lines (`jsonl`, `csv`) have one line at a time in memory.

    Args:
      path, format, examples: as of `read`.
      carried: fields of the asked rows, which lines may have beside those of a prediction.

    Yields:
      (prediction, the `text` that its line carries, None where it carries none).
    """
    module, found = lookup.module(FOLDER, format), False
    try:
        if carried and hasattr(module, 'read_carried'):
            rows = module.read_carried(path, carried)
        else:
            rows = ((prediction, None) for prediction in module.read(path, examples))
        for row in rows:
            found = True
            yield row
        if not found:
            raise ValueError(f'{path}: holds no predictions')
    except ValueError as error:
        raise ValueError(f'{error}{_sniff.hint(path, format)}') from error
