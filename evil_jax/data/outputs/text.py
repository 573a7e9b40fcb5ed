"""Plain text: one explanation a line, in the order of the references; no ids, no answers.

Lines end in a line feed, or carriage return and line feed; an empty line is an empty explanation.
"""

from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _sniff
from evil_jax.data.sources import _files
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file, one for each of `examples`.

    Raises:
      ValueError: another number of lines than of examples, or lines of JSON.
    """
    content = _files.read_text(path)
    lines = content.removesuffix('\n').split('\n') if content else []
    if _sniff.is_json(path):
        raise ValueError(f'{path}: holds JSON, wanted one explanation a line')
    if len(lines) != len(examples):
        raise ValueError(
            f'{path}: has {len(lines):,} lines, wanted {len(examples):,}: one for each example, in the order of the '
            'references'
        )
    for number, (line, example) in enumerate(zip(lines, examples), 1):
        yield Prediction(example.id, None, explanation=_files.text(line.removesuffix('\r'), f'{path}:{number}'))
