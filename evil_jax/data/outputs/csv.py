"""CSV: a first line with names of columns, one prediction a line. Commas, semicolons or tabs, whichever the names show.

Columns, whatever their case, blanks and underscores; others are passed over:

- id: `id`, `question_id`, `qid`, `pairID`, `annot_id`, `example_id`, or without any of them `image_id`;
- answer: `answer`, `prediction`, `predicted_answer`, `pred_answer`, `generated_answer`, `chosen_answer`;
- explanation: `explanation`, `generated_explanation`, `predicted_explanation`, `pred_explanation`, `rationale`,
  `caption`.

One of the last two may be absent. An empty cell is an empty text.
"""

import csv
import itertools
from collections.abc import Collection, Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.data.sources import _files
from evil_jax.records import Example, Prediction

DELIMITERS = ',;\t'
_NAMES = {
    'id': ('id', 'questionid', 'qid', 'pairid', 'annotid', 'exampleid'),
    'answer': ('answer', 'prediction', 'predictedanswer', 'predanswer', 'generatedanswer', 'chosenanswer'),
    'explanation': (
        'explanation', 'generatedexplanation', 'predictedexplanation', 'predexplanation', 'rationale', 'caption',
    ),
}  # fmt: skip
_INSTEAD_OF_ID = 'imageid'  # COCO's name for it; elsewhere a picture's, which several questions share


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file.

    Raises:
      ValueError: no column of ids, neither answers nor explanations, two columns for one of them, a line with another
        number of cells, an empty id; file and line are named.
    """
    return (prediction for prediction, _ in read_carried(path))


def read_carried(path, carried: Collection[str] = ()) -> Iterator[tuple[Prediction, str | None]]:
    """Yields (prediction, the cell of its line in the column `text`, None without one)."""
    lines, start = _files.iter_lines(path), []
    for line in lines:
        start.append(line)
        if line.strip('\r\n'):
            break
    columns, question = None, None
    for where, row in _files.csv_rows(path, itertools.chain(start, lines), delimiter(''.join(start))):
        if columns is None:
            columns = _columns(row, where)
            names = [_fields.plain_name(name) for name in row]
            question = names.index('text') if 'text' in carried and 'text' in names else None
            continue
        cells = {role: _files.text(row[column], f'{where}: {role}') for role, column in columns.items()}
        identifier = cells['id'].strip()
        if not identifier:
            raise ValueError(f'{where}: the id is empty')
        prediction = Prediction(identifier, cells.get('answer'), explanation=cells.get('explanation'))
        yield prediction, None if question is None else row[question]


def delimiter(content: str) -> str:
    """The one of DELIMITERS that gives the first line the most known columns."""
    return max(DELIMITERS, key=lambda mark: len(roles(_first_row(content, mark))))


def known(content: str) -> bool:
    """Whether the first line names columns of predictions."""
    found = roles(_first_row(content, delimiter(content)))
    return 'id' in found and len(found) > 1


def roles(header: Sequence[str]) -> dict[str, list[int]]:
    """'id', 'answer' and 'explanation' -> the columns that may be it; those without any are left out."""
    names = [_fields.plain_name(name) for name in header]
    found = {role: [i for i, name in enumerate(names) if name in known] for role, known in _NAMES.items()}
    found['id'] = found['id'] or [i for i, name in enumerate(names) if name == _INSTEAD_OF_ID]
    return {role: columns for role, columns in found.items() if columns}


def _first_row(content: str, mark: str) -> list[str]:
    line = content.lstrip('\r\n').partition('\n')[0].rstrip('\r')
    return next(csv.reader([line], delimiter=mark), []) if len(line) <= _files.MAX_TEXT else []


def _columns(header: Sequence[str], where: str) -> dict[str, int]:
    found = roles(header)
    have = ', '.join(_files.keys(dict.fromkeys(filter(None, header)))) or 'none'
    if 'id' not in found:
        raise ValueError(f'{where}: has no column of ids ({", ".join(_NAMES["id"])}); it has: {have}')
    if len(found) == 1:
        raise ValueError(f'{where}: has neither a column answer nor a column explanation; it has: {have}')
    for role, columns in found.items():
        if len(columns) > 1:
            names = ' and '.join(repr(header[i]) for i in columns)
            raise ValueError(f'{where}: which column is the {role}, {names}? Rename the others')
    return {role: columns[0] for role, columns in found.items()}
