"""Explanations before and after the edit, as counterfactual.html shows them."""

from collections.abc import Mapping
from typing import Any

from evil_jax.pages import _edit_summary, _rates

# (figure, its title, what it is of), in the order of the columns.
COLUMNS = (
    (
        'reflected',
        'reflected',
        'of changed answers: the explanation names the new word, or a synonym or hypernym of it',
    ),
    ('by_chance', 'by chance', 'of the same: the explanation before the edit named it already'),
    ('stale', 'stale', 'of explanations that named the old word: they still do, and do not name the new one'),
    ('contrast', 'contrast', 'of the same: they name both'),
    ('stable', 'stable', 'of answers kept under an edit that keeps the meaning: the explanation stays as well'),
    ('drift', 'drift', 'of the same: how far the explanation moves, 1 - F1 of its words'),
    ('moved', 'moves', 'of all pairs: how far the explanation moves'),
    ('named', 'names it', 'of all edits: the explanation names the new word'),
    ('named_before', 'named it', 'of all edits: the explanation before the edit names the old word'),
)


def section(document: Mapping[str, Any] | None, human: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Rows of the table, and sentences on coupling and people.

    Args:
      document: of `consistency.measure`, or None.
      human: `{'colour' or 'noun': {label or 'all': {'k', 'n', 'value'}}}` of the user's own gold explanations, or
        `{'colour' or 'noun': (low, high)}` as quoted; None leaves people out.

    Returns:
      'columns', 'rows' ({'name', 'n', 'cells'}) of families, of all and of labels, 'coupling' and 'human' (texts),
      'noise' (text). None without a document.
    """
    if not document:
        return None
    order = [*_edit_summary.NAMES]
    families = sorted(document['families'].items(), key=lambda item: order.index(item[0]) if item[0] in order else 99)
    rows = [(_edit_summary.name(family), row) for family, row in (*families, ('all', document['all']))]
    rows += [(f'of {label} questions', row) for label, row in document.get('labels', {}).items()]
    shown = [{'name': name, 'n': row['n'], 'cells': [_rates.cell(row[f]) for f, _, _ in COLUMNS]} for name, row in rows]
    return {
        'columns': COLUMNS,
        'rows': shown,
        'coupling': _coupling(document['coupling']),
        'human': _human(human),
        'noise': _rates.percent(document['noise']),
    }


def _coupling(found):
    if found['value'] is None:
        return f'Coupling is not known: {found["reason"]}.'
    one, null = found['one_an_image'], found['null95']
    ci = f' [{found["ci95"][0]:.2f}, {found["ci95"][1]:.2f}]' if found.get('ci95') else ''
    text = (
        f'Coupling: explanations move with answers with a correlation of {found["value"]:.2f}{ci}, over {found["n"]:,} '
        f'edits. Of one edit a picture, {one["n"]:,} of them, it is {one["value"]:.2f}; by chance it would lie between '
        f'{null[0]:.2f} and {null[1]:.2f} (p {_rates.p_value(found["p"])}, permuted within families).'
    )
    return text.replace('-', '−')


def _human(human):
    """What people do, kind by kind."""
    if not human:
        return ''
    told = []
    for kind, found in human.items():
        if isinstance(found, Mapping):
            labels = [f'{label} {_rates.percent(row["value"])}' for label, row in found.items() if label != 'all']
            more = f' ({", ".join(labels)})' if labels else ''
            told.append(f'{kind}s in {_rates.percent(found["all"]["value"])} of {found["all"]["n"]:,}{more}')
        else:
            told.append(f'{kind}s in {100 * found[0]:.0f} to {100 * found[1]:.0f} %')
    own = all(isinstance(found, Mapping) for found in human.values())
    source = 'the explanations of this data set' if own else 'e-SNLI-VE'
    return f'People, in {source}, repeat words of the text: {"; ".join(told)}. So 100 % is not what to expect.'
