"""What each rater did, beside what the others said of the same explanations."""

import statistics
from collections.abc import Iterable

from evil_jax.human.responses import CHECK, Response
from evil_jax.human.study import RATINGS

_BEST = len(RATINGS) - 1


def table(rows: Iterable[Response]) -> list[dict]:
    """A row for each data set and rater, those with most ratings first; raters that are not known have none.

    Args:
      rows: marked, also those that do not count.

    Returns:
      Rows of `scores.summary`, key 'raters'.
    """
    raters: dict[tuple[str, str], list[Response]] = {}
    units: dict[tuple, list[Response]] = {}
    for row in rows:
        if row.rater:
            raters.setdefault((row.dataset, row.rater), []).append(row)
        if row.counts:
            units.setdefault(row.unit, []).append(row)
    found = [_about(*name, own, units) for name, own in raters.items()]
    return sorted(found, key=lambda row: (row['dataset'], -row['ratings'], row['rater']))


def _about(dataset, rater, own, units):
    counted = [row for row in own if row.counts]
    others = [(row, [o.score for o in units[row.unit] if o is not row]) for row in counted]
    others = [(row.score, scores) for row, scores in others if scores]
    judged = [row for row in own if not row.trusted]
    tasks = {row.pair: row.correct for row in judged if row.correct is not None}
    checks = {(row.page, row.item): False for row in own if row.trusted}
    checks |= {(row.page, row.item): True for row in own if row.trusted and row.reason == CHECK}
    seconds = {row.page: row.seconds for row in own if row.seconds is not None}
    mean = lambda values: statistics.fmean(values) / _BEST if values else None
    apart = mean([abs(score - other) for score, scores in others for other in scores])
    return {
        'dataset': dataset,
        'rater': rater,
        'pages': len({row.page for row in own}),
        'ratings': len(counted),
        'left_out': len(judged) - len(counted),
        'mean': mean([row.score for row in counted]),
        'bias': mean([score - statistics.fmean(scores) for score, scores in others]),
        'agreement': None if apart is None else 1 - apart,
        'wrong': sum(not correct for correct in tasks.values()) / len(tasks) if tasks else None,
        'checks': len(checks),
        'checks_failed': sum(checks.values()),
        'seconds': statistics.median(seconds.values()) if seconds else None,
    }
