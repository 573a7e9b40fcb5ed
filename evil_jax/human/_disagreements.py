"""Explanations to look at: those that raters see differently, and those that they like better than the gold one."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from evil_jax.human.responses import Response
from evil_jax.human.study import GOLD, RATINGS

_BEST = len(RATINGS) - 1


def disagreements(rows: Iterable[Response], n: int = 20) -> list[dict]:
    """At most n generated explanations whose ratings are furthest apart, then at most n that beat the gold one most.

    Args:
      rows: marked; of generated explanations, and of the gold ones beside them.
      n: of each kind, all data sets and systems together.

    Returns:
      Rows as at the top of scores.py; ties in the order of data sets, systems and items.
    """
    found: dict[tuple, tuple[list[Response], list[Response]]] = {}
    for row in rows:
        if row.counts:
            place = row.dataset, row.unit[-1], row.item
            found.setdefault(place, ([], []))[row.system == GOLD].append(row)
    both = [(own, gold) for _, (own, gold) in sorted(found.items()) if own]
    apart = [(pair, _spread(pair[0])) for pair in both]
    better = [(pair, _mean(pair[0]) - _mean(pair[1])) for pair in both if pair[1]]
    return [*_most('spread', apart, n), *_most('better', better, n)]


def _most(why, scored, n):
    ranked = sorted((some for some in scored if some[1] > 0), key=lambda some: -some[1])
    return [{'why': why} | _row(*pair) for pair, _ in ranked[:n]]


def _mean(rows: Sequence[Response]) -> Fraction:
    return Fraction(sum(row.score for row in rows), len(rows) * _BEST)


def _spread(rows):
    """Mean square distance of two different ratings, exactly."""
    scores = [row.score for row in rows]
    n = len(scores)
    return Fraction(n * sum(s * s for s in scores) - sum(scores) ** 2, n * (n - 1)) if n > 1 else 0


def _row(own, gold):
    first = own[0]
    beside = {row.pair: row for row in gold}
    return {
        'dataset': first.dataset,
        'system': first.system,
        'item': first.item,
        'image_id': first.image_id,
        'explanation': first.explanation,
        'mean': float(_mean(own)),
        'gold_explanation': gold[0].explanation if gold else '',
        'gold_mean': float(_mean(gold)) if gold else None,
        'ratings': [_rating(row, beside.get(row.pair)) for row in own],
    }


def _rating(row, gold):
    return {
        'rater': row.rater,
        'rating': row.rating,
        'shortcomings': list(row.shortcomings),
        'gold_rating': gold.rating if gold else None,
        'gold_shortcomings': list(gold.shortcomings) if gold else [],
    }
