"""Scores of judged edits: accuracy before and after, flips, what they turn into, and how sure all this is.

Of each family (Stoikou et al. 2023; expectations and intervals are ours):

    acc, acc_star     mean accuracy of a and of a*, both for the ORIGINAL question: acc_Q and acc*_Q.
    difference        acc_star - acc, with a bootstrap interval over pictures: edits of one picture are not independent.
    flips             share of edits with a* != a after normalisation.
    transitions       flips and kept answers by what was right: 'right->wrong', 'wrong->right', 'wrong->other', ...
    mcnemar           exact McNemar test of 'right->wrong' against 'wrong->right': p that a coin falls so unevenly.
                      It takes edits for independent; the interval of the difference does not.
    unwarranted_stability
                      of edits that should change the answer, those where it stayed: the word is not read.
    unwarranted_flips of edits that should not change the answer, those where it changed: the wording decides.
    baselines         flips of what was asked beside the same questions (baselines.py).

Shares have Wilson intervals at the effective sample size (rates.py), means and differences percentile intervals of a
bootstrap that draws pictures.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special

from evil_jax import stats
from evil_jax.counterfactual import baselines, rates
from evil_jax.counterfactual.judged import TRANSITIONS, Judged

_GRADED, _UNGRADED = TRANSITIONS[:6], TRANSITIONS[6:]


def summary(judged: Judged, *, seed: int = 0, resamples: int = 1000) -> dict[str, Any]:
    """Scores of each family and of all edits together, as a JSON document.

    Args:
      judged: the edits, and their baselines if there are any.
      seed: of the bootstrap.
      resamples: of the bootstrap; 0 leaves its intervals out.

    Returns:
      `{'families': [row, ...], 'all': row, 'left_out', 'signature', 'seed', 'resamples'}`. A row has 'family', 'n'
      edits, 'questions', 'images' and, None where nothing is known: 'acc', 'acc_star', 'difference', 'flips',
      'transitions' ({name: share}), 'mcnemar' ({'lost', 'gained', 'p'}), 'uncertain' and 'was_uncertain' (of a* and of
      a), 'shift' and 'log_odds' (judged.Judged, means), 'unwarranted_stability', 'unwarranted_flips', 'expected_right'
      (a* is the right new answer), 'baselines' ({name: flips}), 'beyond_random' (flips less those of the random
      baseline) and 'labels' (`label_matrices`). A share is `{'k', 'n', 'images', 'value', 'ci95'}`, a mean or a
      difference `{'value', 'ci95'}`.
    """
    of = lambda family: judged.take(judged.where(family=family))
    return {
        'families': [_row(family, of(family), seed, resamples) for family in judged.families()],
        'all': _row('all', judged, seed, resamples),
        'left_out': dict(judged.left_out),
        'signature': judged.signature,
        'seed': seed,
        'resamples': resamples,
    }


def mcnemar(lost: int, gained: int) -> float:
    """Two-sided exact McNemar test (1947): p of so uneven a split of lost + gained pairs, each as likely either way.

    Twice the smaller binomial tail, at most 1 (as in statsmodels' `mcnemar(exact=True)`).
    """
    return min(1.0, 2 * float(special.bdtr(min(lost, gained), lost + gained, 0.5))) if lost + gained else 1.0


def label_matrices(judged: Judged) -> dict[str, Any] | None:
    """How often class i became class j, where answers are classes (e-SNLI-VE); else None.

    Returns:
      `{'labels': [C], 'counts': [C][C], 'by_gold': {label: [C][C]}, 'outside': n}`: rows are a, columns a*, and
      `outside` counts edits with an answer that is no class.
    """
    if not judged.labels:
        return None
    codes = [judged.code('answer', label) for label in judged.labels]
    before, after, gold = (_positions(column, codes) for column in (judged.answer, judged.answer_star, judged.gold))
    count, inside = len(codes), (before >= 0) & (after >= 0)
    matrix = lambda rows: np.bincount(before[rows] * count + after[rows], minlength=count**2).reshape(count, count)
    return {
        'labels': list(judged.labels),
        'counts': matrix(inside).tolist(),
        'by_gold': {label: matrix(inside & (gold == i)).tolist() for i, label in enumerate(judged.labels)},
        'outside': int((~inside).sum()),
    }


def lines(document: Mapping[str, Any]) -> list[str]:
    """`summary` as a table for terminals."""
    head = ('family', 'edits', 'acc', 'acc*', 'difference [95 %]', 'flips [95 %]', 'random', 'McNemar p')
    table = [head, *map(_cells, [*document['families'], document['all']])]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    return ['  '.join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table]


def _row(name: str, table: Judged, seed: int, resamples: int) -> dict[str, Any]:
    graded, moved = ~np.isnan(table.right), ~np.isnan(table.shift)
    share = lambda hits, among=slice(None): rates.of(hits[among], table.image[among])
    change, stay, known = table.where(expectation='CHANGE'), table.where(expectation='INV'), table.expected_right >= 0
    some = lambda hits, among: share(hits, among) if among.any() else None
    beside = _beside(table)
    names = _GRADED if graded.any() else _UNGRADED
    transitions = {name: share(table.where(transition=name)) for name in names}
    return {
        'family': name,
        'n': len(table),
        'questions': len(np.unique(table.example)),
        'images': len(np.unique(table.image)),
        'acc': _mean(table.right[graded]),
        'acc_star': _mean(table.right_star[graded]),
        'flips': share(~table.kept),
        'transitions': transitions,
        'mcnemar': _mcnemar(transitions) if graded.any() else None,
        'uncertain': share(table.uncertain),
        'was_uncertain': share(table.was_uncertain),
        'unwarranted_stability': some(table.met == 0, change),
        'unwarranted_flips': some(table.met == 0, stay),
        'expected_right': some(table.expected_right == 1, known),
        'baselines': {name: rates.of(~rows.kept, rows.image) for name, rows in beside.items()},
        'labels': label_matrices(table),
        **_bootstrapped(table, graded, moved, _random(name, beside), seed, resamples),
    }


def _mcnemar(transitions):
    lost, gained = transitions['right->wrong']['k'], transitions['wrong->right']['k']
    return {'lost': lost, 'gained': gained, 'p': mcnemar(lost, gained)}


def _beside(table: Judged) -> dict[str, Judged]:
    """Each baseline's rows of the same questions; those without any are left out."""
    if table.baselines is None:
        return {}
    same = table.baselines.take(np.isin(table.baselines.example, np.unique(table.example)))
    found = {name: same.take(same.where(family=name)) for name in baselines.FAMILIES}
    return {name: rows for name, rows in found.items() if len(rows)}


def _random(name, beside) -> Judged | None:
    return beside.get(baselines.random_of(name)) if name != 'all' else None


def _bootstrapped(table, graded, moved, random, seed, resamples) -> dict[str, Any]:
    """Means and differences of per-picture sums; all of them are drawn together."""
    images, image_N = np.unique(table.image, return_inverse=True)
    total = lambda values_N, rows_N=slice(None): np.bincount(image_N[rows_N], values_N[rows_N], len(images))
    ones = np.ones(len(table))
    sums = {
        'graded': total(ones, graded),
        'gain': total(table.right_star.astype(float) - table.right, graded),
        'moved': total(ones, moved),
        'shift': total(table.shift.astype(float), moved),
    }
    listed = ~np.isnan(table.log_odds)
    sums |= {'listed': total(ones, listed), 'log_odds': total(table.log_odds.astype(float), listed)}
    if random is not None:
        place = np.searchsorted(images, random.image)
        sums |= {'n': total(ones), 'flips': total((~table.kept).astype(float))}
        sums['random_n'] = np.bincount(place, minlength=len(images))
        sums['random_flips'] = np.bincount(place, (~random.kept).astype(float), len(images))
    sums_IK, names = np.stack([*sums.values()], 1).astype(float), list(sums)
    point = _ratios(dict(zip(names, sums_IK.sum(0))))
    drawn = {name: [] for name in point}
    if len(images) > 1 and resamples:
        for counts_BI in stats.resample(len(images), resamples, seed):
            for name, values_B in _ratios(dict(zip(names, (counts_BI @ sums_IK).T))).items():
                drawn[name].append(values_B)
    found = {}
    for name, value in point.items():
        ci95 = stats.interval(np.concatenate(drawn[name])) if drawn[name] else None
        known = not np.isnan(value)
        found[name] = {'value': float(value), 'ci95': list(ci95) if ci95 else None} if known else None
    return {'beyond_random': None} | found


def _ratios(sums: Mapping[str, Any]) -> dict[str, Any]:
    with np.errstate(divide='ignore', invalid='ignore'):
        found = {
            'difference': np.divide(sums['gain'], sums['graded']),
            'shift': np.divide(sums['shift'], sums['moved']),
            'log_odds': np.divide(sums['log_odds'], sums['listed']),
        }
        if 'random_n' in sums:
            found['beyond_random'] = sums['flips'] / sums['n'] - sums['random_flips'] / sums['random_n']
    return found


def _positions(codes_N: np.ndarray, wanted: list[int]) -> np.ndarray:
    """Place of each code in `wanted`, -1 where it is not."""
    table = np.full(max([-1, *wanted, int(codes_N.max(initial=-1))]) + 2, -1)
    table[wanted] = np.arange(len(wanted))  # a code of -1, which is nowhere, falls on the entry behind all others
    return table[codes_N]


def _mean(values) -> float | None:
    return float(values.mean(dtype=np.float64)) if len(values) else None


def _cells(row) -> tuple[str, ...]:
    decimal = lambda value: '' if value is None else f'{value:.3f}'
    given = lambda part, sign='': '' if part is None else f'{part["value"]:{sign}.3f}{_interval(part["ci95"], sign)}'
    random = row['baselines'].get(baselines.random_of(row['family'])) if row['family'] != 'all' else None
    return (
        row['family'],
        f'{row["n"]:,}',
        decimal(row['acc']),
        decimal(row['acc_star']),
        given(row['difference'], '+'),
        given(row['flips']),
        '' if random is None else decimal(random['value']),
        '' if row['mcnemar'] is None else f'{row["mcnemar"]["p"]:.2g}',
    )


def _interval(ci95, sign):
    return '' if ci95 is None else f' [{ci95[0]:{sign}.3f}, {ci95[1]:{sign}.3f}]'
