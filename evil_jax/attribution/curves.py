"""From what perturbation measured to numbers with intervals: accuracy curves, areas, erasure, effects of single items.

    result = summarise(measured, fractions, images=ids)  # JSON

`measured` is what `perturbation.measure` gives, batches joined along the first axis. Nothing here needs JAX.

Area under a curve of points (share removed x, accuracy y):

    auc         trapezoid over all points, the untouched one at x = 0 included. On x = 0, .05, .1 ... .9 it is AUCTP
                (Liu et al., ICML 2022).
    auc_author  the same times 100 on x = 0, .1 ... .9: what the author of Chefer et al. (CVPR 2021) computed for its
                tables, whose text says 10 % to 90 %. At most 90 times the accuracy at 0: 72.3 of .803.
    auc_card    100 times the trapezoid over .1 ... .9, without the untouched point, as cards of the benchmark have it.
                At most 80; auc_author = auc_card + 5 (y(0) + y(.1)).

All are means over examples of a number of each example, so intervals come from bootstraps over examples or pictures.

Legend: N examples, F shares, T = F + 1 points (the first is the untouched input), M single items, K numbers.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import scipy.stats

from evil_jax import stats

_TENTHS = np.arange(10) / 10


def weights(x) -> np.ndarray:
    """Weights of points in the trapezoid rule: `y @ weights(x)` is the area.

    Raises:
      ValueError: fewer than two points, or x that does not increase.
    """
    x = np.asarray(x, np.float64)
    width = np.diff(x)
    if x.ndim != 1 or len(x) < 2 or (width <= 0).any():
        raise ValueError(f'an area needs at least two increasing points, found {x.tolist()}')
    return (np.append(width, 0) + np.append(0, width)) / 2


def areas(y, fractions) -> dict[str, np.ndarray]:
    """auc, and where the fractions are .1 ... .9 auc_author and auc_card (see the module), each of shape [...].

    Args:
      y: values at 0 and at the fractions, [..., T], accuracies in 0..1.
      fractions: F shares removed, without 0.
    """
    x, y = np.append(0, fractions), np.asarray(y, np.float64)
    found = {'auc': y @ weights(x)}
    if len(x) == len(_TENTHS) and np.allclose(x, _TENTHS):
        found |= {'auc_author': 100 * found['auc'], 'auc_card': 100 * (y[..., 1:] @ weights(x[1:]))}
    return found


def estimate(
    values_NK, *, images: Sequence[Hashable] | None = None, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> list[dict]:
    """Means over examples and their bootstrap intervals: K times {'value', 'ci95', 'n'}.

    Args:
      values_NK: numbers of each example; NaN: this example does not count for that number.
      images: picture of each example; pictures are drawn whole. None: examples are drawn.
      resamples: 0 = no intervals. One picture has none either: drawn again it is itself.

    Raises:
      ValueError: no examples, or not one picture an example.
    """
    if len(values_NK if images is None else set(images)) == 1:
        resamples = 0
    values_NK = np.asarray(values_NK, np.float64)
    counted_NK = ~np.isnan(values_NK)
    sums_NK, counted_NK = np.where(counted_NK, values_NK, 0), counted_NK.astype(np.float64)

    def means(counts_BN):
        with np.errstate(invalid='ignore'):
            return (counts_BN @ sums_NK) / (counts_BN @ counted_NK)

    drawn = [means(counts) for counts in stats.resample(len(values_NK), resamples, seed, images)]
    value_K, n_K = means(np.ones((1, len(values_NK))))[0], counted_NK.sum(0)
    rows = []
    for k, (value, n) in enumerate(zip(value_K, n_K)):
        interval = stats.interval(np.concatenate([part[:, k] for part in drawn]), level) if drawn else None
        rows.append({'value': float(value) if n else None, 'ci95': interval and list(interval), 'n': int(n)})
    return rows


def summarise(measured: Mapping[str, np.ndarray], fractions, **bootstrap) -> dict:
    """Curves and areas of positive and negative perturbation, with intervals.

    Args:
      measured: of `perturbation.measure`, [N, 2, T] each, over all examples.
      fractions: F shares, as in `perturbation.Steps`.
      **bootstrap: images, resamples, seed, level of `estimate`; all numbers share their resamples.

    Returns:
      JSON: 'n', 'fractions' (with 0), and for 'positive' and 'negative' a dict: 'score' (the curve: a list of
      estimates), the areas, 'log_odds' (a list), 'max_logit_change' and 'max_probability_change' (lists, against the
      untouched input). 'difference': areas of negative minus positive; above 0, relevant items matter more. 'correct':
      the areas again, of the examples whose score was above 0 at first.

    Raises:
      ValueError: another number of points than of fractions.
    """
    measured = {name: _points(values, fractions) for name, values in measured.items()}
    score = measured['score']
    right_N = np.where(score[:, 0, 0] > 0, 1.0, np.nan)
    both = [areas(score[:, d], fractions) for d in range(2)]
    both.append({area: both[1][area] - both[0][area] for area in both[0]})
    columns = {}
    for name, area_of in zip(('positive', 'negative', 'difference'), both):
        for area, value_N in area_of.items():
            columns[name, area], columns['correct', name, area] = value_N, value_N * right_N
    for d, name in enumerate(('positive', 'negative')):
        columns[name, 'score'], columns[name, 'log_odds'] = score[:, d], measured['log_odds'][:, d]
        for m in ('max_logit', 'max_probability'):
            columns[name, f'{m}_change'] = measured[m][:, d] - measured[m][:, d, :1]
    result = _estimated(columns, bootstrap)
    result['correct']['n'] = int(np.nansum(right_N))
    return {'n': len(score), 'fractions': [0.0, *map(float, fractions)]} | result


def erasure(measured: Mapping[str, np.ndarray], fractions, **bootstrap) -> dict:
    """Comprehensiveness and sufficiency (DeYoung et al. 2020, eq. 1 and 2) of steps whose second half is 'kept'.

    Comprehensiveness is p(x) - p(x without the most relevant items), large where they were needed; sufficiency
    p(x) - p(those items only), small where they are enough; p is of the answer that was likeliest at first. AOPC is the
    plain mean over the fractions, as in ERASER's code (the paper divides by one more, for a step of nothing).

    Args:
      measured, fractions, **bootstrap: see `summarise`.

    Returns:
      JSON: 'n', 'fractions', 'comprehensiveness' and 'sufficiency' (lists of estimates), and each with `_aopc`.
    """
    probability, columns = _points(measured['probability'], fractions), {}
    for d, name in enumerate(('comprehensiveness', 'sufficiency')):
        drop_NF = probability[:, d, :1] - probability[:, d, 1:]
        columns[name,], columns[f'{name}_aopc',] = drop_NF, drop_NF.mean(1)
    return {'n': len(probability), 'fractions': [*map(float, fractions)]} | _estimated(columns, bootstrap)


def effects(single: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """How the relevance of single items agrees with what they do (Liu et al., ICML 2022), float64 N each.

    violation: 1 where the item of largest absolute relevance has the sign opposite to its effect; 0 where not, also
      where one of the two is 0; NaN without items. Chance: .5.
    rank_correlation: Spearman's, of absolute relevance and the mean absolute change of all answers' probabilities, over
      the items that were removed (in the published numbers the 20 of largest absolute relevance). NaN: see `spearman`.

    Args:
      single: of `perturbation.singles`, NM each.
    """
    values_NM, drop_NM = np.asarray(single['values'], np.float64), np.asarray(single['drop'], np.float64)
    valid_NM, size_NM = np.asarray(single['valid'], bool), np.abs(values_NM)
    return {
        'violation': np.where(valid_NM[:, 0], values_NM[:, 0] * drop_NM[:, 0] < 0, np.nan),
        'rank_correlation': spearman(size_NM, single['change'], valid_NM),
    }


def spearman(a_NM, b_NM, valid_NM=None) -> np.ndarray:
    """Spearman's rank correlation of each row, float64 N; equal values share their mean rank.

    NaN where a row has fewer than two valid items, or all of them are the same.
    """
    a_NM, b_NM = np.asarray(a_NM), np.asarray(b_NM)
    found_N = np.full(len(a_NM), np.nan)
    for n, (a, b) in enumerate(zip(a_NM, b_NM)):
        if valid_NM is not None:
            a, b = a[valid_NM[n]], b[valid_NM[n]]
        if len(a) > 1 and np.ptp(a) > 0 and np.ptp(b) > 0:
            found_N[n] = np.corrcoef(scipy.stats.rankdata(a), scipy.stats.rankdata(b))[0, 1]
    return found_N


def _points(measured, fractions):
    measured = np.asarray(measured, np.float64)
    if measured.ndim != 3 or measured.shape[1:] != (2, len(fractions) + 1):
        wanted = f'examples, 2 and {len(fractions)} fractions with the untouched input'
        raise ValueError(f'measured numbers have shape {measured.shape}, wanted {wanted}')
    return measured


def _estimated(columns, bootstrap) -> dict:
    """Estimates of {path: values N, or NK} as nested dicts; all of them share their resamples."""
    values = [value if value.ndim == 2 else value[:, None] for value in columns.values()]
    rows = iter(estimate(np.concatenate(values, axis=1), **bootstrap))
    result = {}
    for path, value in columns.items():
        place = result
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = next(rows) if value.ndim == 1 else [next(rows) for _ in range(value.shape[1])]
    return result
