"""The matrix of answers before and after an edit, as counterfactual.html shows it."""

from collections.abc import Mapping
from typing import Any

from evil_jax.pages import _rates

OTHERS = 'all others'


def matrix(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Cells with a shade each.

    Args:
      document: 'answers' and 'counts', numbers of edits, rows before and columns after; with one row and column more
        than there are answers, the last ones are all other answers. 'changed', a rate of each row, if it is known. Or
        None.

    Returns:
      'columns' and 'rows' ({'answer', 'cells', 'changed'}), without rows of nothing; None where there is nothing.
    """
    if not document or not sum(map(sum, document['counts'])):
        return None
    answers, counts = list(document['answers']), document['counts']
    if len(counts) > len(answers) and not sum(counts[-1]) + sum(row[-1] for row in counts):
        counts = [row[:-1] for row in counts[:-1]]
    names = [answer or '(empty)' for answer in answers] + [OTHERS] * (len(counts) - len(answers))
    changed = document.get('changed') or [_changed(row, i) for i, row in enumerate(counts)]
    rows = [
        {
            'answer': names[i],
            'cells': [_cell(answers, i, j, n, sum(row)) for j, n in enumerate(row)],
            'changed': _rates.cell(changed[i]),
        }
        for i, row in enumerate(counts)
        if sum(row)
    ]
    return {'columns': names, 'rows': rows}


def _changed(row, place):
    n = sum(row)
    return {'value': (n - row[place]) / n if n else None, 'k': n - row[place], 'n': n}


def _cell(answers, before, after, n, total):
    """`find` is what the script looks for: nothing where one of them is any other answer."""
    known = max(before, after) < len(answers)
    return {
        'n': n,
        'heat': round(10 * n / total),
        'same': known and before == after,
        'find': (answers[before], answers[after]) if known else None,
    }
