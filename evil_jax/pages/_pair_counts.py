"""Counts of pairs by split and class, as rows of tables and stacked bars: what was merged, what each filter left."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import _rates

CLASSES = ('contradiction', 'neutral', 'entailment')

Counts = Mapping[str, Mapping[str, int]]


def total(counts: Counts | None) -> int:
    """Pairs of all splits and classes."""
    return sum(sum(classes.values()) for classes in (counts or {}).values())


def row(name: str, classes: Mapping[str, int], whole: int) -> dict[str, Any]:
    """A row of a table with a bar.

    Args:
      name: of the row.
      classes: {class: pairs}.
      whole: pairs that a full bar stands for.

    Returns:
      'name', 'n', 'cells' (of each class 'n' and 'text', its share of the row), 'parts' ({'name', 'x', 'width'}; x and
      width of 100) and 'told', all in a sentence.
    """
    n = sum(classes.values())
    parts, cells, x = [], [], 0.0
    for place, label in enumerate(CLASSES):
        count = classes.get(label, 0)
        width = 100 * count / whole if whole else 0.0
        parts.append({'place': place, 'x': round(x, 2), 'width': round(min(width, 100 - x), 2)})
        cells.append({'n': count, 'text': _rates.percent(count / n if n else None)})
        x = min(100.0, x + width)
    told = ', '.join(f'{label} {cell["n"]:,}' for label, cell in zip(CLASSES, cells))
    return {'name': name, 'n': n, 'cells': cells, 'parts': parts, 'told': told}


def merged(counts: Counts | None, published: Mapping[str, Mapping[str, int]] | None) -> list[dict[str, Any]]:
    """Rows of the merged splits, with what SNLI-VE's authors counted where that is known ('paper', 'gap')."""
    counts, published = counts or {}, published or {}
    whole = max((sum(classes.values()) for classes in counts.values()), default=0)
    rows = []
    for split in [*counts, *(name for name in published if name not in counts)]:
        paper = (published.get(split) or {}).get('paper')
        found = row(split, counts.get(split) or {}, whole)
        # The published number is of the join before people's explanations are asked for.
        ours = (published.get(split) or {}).get('ours', found['n'])
        rows.append(found | {'ours': ours, 'paper': paper, 'gap': None if paper is None else ours - paper})
    return rows


def dropped(reasons: Mapping[str, Mapping[str, int]] | None) -> dict[str, Any] | None:
    """{'splits', 'rows': [(reason, [n of each split], sum)]}; None where nothing was dropped."""
    reasons = {name: counts for name, counts in (reasons or {}).items() if sum(counts.values())}
    if not reasons:
        return None
    splits = list(dict.fromkeys(split for counts in reasons.values() for split in counts))
    rows = [
        (name, [counts.get(split, 0) for split in splits], sum(counts.values())) for name, counts in reasons.items()
    ]
    return {'splits': [split or 'no split' for split in splits], 'rows': rows}


def funnel(
    before: Counts | None, filters: Sequence[Mapping[str, Any]], kept: Counts | None, name: str = 'merged'
) -> list:
    """(split, rows) after each filter in turn, of the splits that anything is known of. `name` is that of the first.

    The steps in between are there where each filter says what it takes away first ('first').
    """
    # Whoever has no count of its own from before the filters has at least the end.
    start, kept = before or {}, kept or {}
    steps = all('first' in each for each in filters)
    found = []
    for split in dict.fromkeys([*start, *kept]):
        left = {label: (start.get(split) or {}).get(label, 0) for label in CLASSES}
        whole = sum(left.values()) or sum((kept.get(split) or {}).values())
        rows = [row(name, left, whole)] if split in start else []
        if split in start and steps:
            for each in filters:
                taken = each['first'].get(split) or {}
                left = {label: n - taken.get(label, 0) for label, n in left.items()}
                rows.append(row(f'after {each["name"]}', left, whole))
        if not (split in start and steps and filters):
            rows.append(row('kept', kept.get(split) or {}, whole))
        found.append((split, rows))
    return found


def removed(filters: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of each filter and split: 'name', 'split', 'seen', 'cells' ({'n', 'cell'} of each class and of all; a cell
    of `_rates`), 'alone'.
    """
    rows = []
    for each in filters:
        for split, seen in (each.get('seen') or each.get('removed') or {}).items():
            gone = (each.get('removed') or {}).get(split) or {}
            known = bool(each.get('seen'))
            share = _share if known else lambda k, n: _rates.cell(None)
            cells = [
                {'n': gone.get(label, 0), 'cell': share(gone.get(label, 0), seen.get(label, 0))} for label in CLASSES
            ]
            n, looked = sum(gone.values()), sum(seen.values())
            alone = (each.get('alone') or {}).get(split)
            rows.append(
                {
                    'name': each['name'],
                    'split': split,
                    'seen': looked if known else None,
                    'cells': [{'n': n, 'cell': share(n, looked)}, *cells],
                    'alone': None if each.get('alone') is None else sum((alone or {}).values()),
                }
            )
    return rows


def _share(k, n):
    return _rates.cell({'value': k / n if n else None, 'k': k, 'n': n})


def table1(ours: Mapping[str, Any] | None, paper: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Rows of Table 1: each split of ours, below it the paper's; nothing where we have none."""
    rows = []
    for split, found in (ours or {}).items():
        rows.append(_table1(split, found, False))
        if split in (paper or {}):
            rows.append(_table1(split, paper[split], True))
    return rows


def _table1(split, found, published):
    shares = found.get('shares') or {}
    lengths = [_length(found.get(name)) for name in ('hypothesis', 'explanation')]
    return {
        'split': split,
        'published': published,
        'instances': found.get('instances'),
        'images': found.get('images'),
        'shares': [f'{shares[label]:.1f}' if shares.get(label) is not None else '' for label in CLASSES],
        'lengths': lengths,
    }


def _length(pair):
    mean, median = pair or (None, None)
    return '' if mean is None else f'{mean:.1f} ({median:g})'
