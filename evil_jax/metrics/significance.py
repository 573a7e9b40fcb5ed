"""Whether systems differ: intervals, paired bootstrap and approximate randomisation, corrected for many comparisons.

Systems answer the same examples. Whole pictures are drawn or exchanged, since examples about one picture are not
independent; what a system answered and how it explained it travel together, and every score is recomputed from the
sums, so that s_o's uncertainty has both parts. All systems see the same draws.

* Interval: 95 % percentiles of the bootstrap (Efron and Tibshirani, 1993).
* Paired bootstrap (Koehn, 2004), in the form of Moses and sacrebleu (`--paired-bs`): of B resamples, those whose
  absolute difference, less the mean of all absolute differences, is at least the difference observed. It counts the
  far tail only, so it is the more lenient of the two.
* Approximate randomisation (Noreen, 1989; Riezler and Maxwell, 2005), sacrebleu's `--paired-ar`: each picture's
  outputs are exchanged between the two systems or not, by a coin; of all trials, those whose absolute difference is at
  least the one observed. Two-sided.

p = (c + 1) / (trials + 1). Where sacrebleu counts c by '>', we count by '>=' (up to rounding): scores made of few
counts tie often, and a system compared with itself has p = 1, not 1 / (trials + 1). A trial in which a score is
undefined counts as extreme.

A system may be several runs (seeds): its score is their mean, and its sample deviation tells how much they differ.
Intervals and tests are then about this mean for *these* runs, on other examples; they say nothing of other seeds.

Holm's step-down (1979) corrects, for each score, over the systems that are compared with the baseline.

Legend: B resamples or trials, P pictures.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evil_jax import stats
from evil_jax.metrics import _sheet

MAIN = _sheet.MAIN
# Counts held at once, 32 MB: few large products, since BLAS's threads wait for each other after each.
_CHUNK = 4_000_000
_ROUNDING = 1e-10  # differences nearer than this, relative to themselves, are equal

ONE_PICTURE = 'all examples are about one picture: nothing to draw'


@dataclasses.dataclass(frozen=True)
class Row:
    """One score of one system.

    Attributes:
      system: its label.
      metric: name of the score.
      subset: of the examples, as in scores.json; 'main' = s_* and accuracies over all examples, metrics of explanations
        over the correctly answered ones.
      value: mean over the runs; None where undefined, and `reason` says why.
      reason: why there is no value.
      runs: number of runs.
      sd: sample deviation over the runs; None of a single one.
      n: examples that the score is over; of several runs their mean.
      total: examples.
      ci95: interval of `value`.
      delta: difference to the baseline; None of the baseline itself, or where either has no value.
      delta_ci95: its interval.
      p_bootstrap: of the paired bootstrap.
      p_randomisation: of approximate randomisation.
      p_holm: corrected over the systems, of the test that `tested` names.
      tested: 'randomisation', or 'bootstrap' where that could not be; '' where nothing was tested.
      untested: why a p-value is missing.
    """

    system: str
    metric: str
    subset: str
    value: float | None
    reason: str | None = None
    runs: int = 1
    sd: float | None = None
    n: float = 0
    total: int = 0
    ci95: tuple[float, float] | None = None
    delta: float | None = None
    delta_ci95: tuple[float, float] | None = None
    p_bootstrap: float | None = None
    p_randomisation: float | None = None
    p_holm: float | None = None
    tested: str = ''
    untested: str = ''


def compare(
    systems: Mapping[str, Sequence[_sheet.Sheet]],
    *,
    subset: str = MAIN,
    bootstrap: int = 1000,
    trials: int = 10_000,
    seed: int = 12345,
) -> list[Row]:
    """Every score of every system, with intervals, and against the first system with tests.

    Args:
      systems: label -> its runs. The first is the baseline.
      subset: one that every sheet has, or `MAIN`.
      bootstrap: resamples of intervals and of the paired bootstrap; 0 = neither.
      trials: of approximate randomisation; 0 = none.
      seed: of both. The bootstrap's draws are those of the intervals in scores.json for the same seed.

    Returns:
      Rows in the order of the systems, then of the scores.

    Raises:
      ValueError: no system, one without runs, or sheets of different examples.
    """
    sheets = {label: list(runs) for label, runs in systems.items()}
    _check(sheets)
    first = next(iter(sheets.values()))[0]
    pictures = len(first.pictures)
    everything = np.ones((1, pictures))
    runs = {label: _values(own, everything, subset) for label, own in sheets.items()}
    points = {label: {m: float(v.mean()) for m, v in own.items()} for label, own in runs.items()}
    drawn, traded = ({label: {} for label in sheets} for _ in range(2))
    if pictures > 1:
        drawn = _bootstrap(sheets, subset, stats.resample(pictures, bootstrap, seed)) if bootstrap else drawn
        traded |= _randomise(sheets, subset, coins(pictures, trials, seed)) if trials else {}
    baseline, *others = sheets
    rows = {}
    for label in sheets:
        for metric in dict.fromkeys(name for own in runs.values() for name in own):
            rows[label, metric] = _row(label, metric, subset, sheets, runs, points, drawn, traded[label], baseline)
    for metric in {metric for _, metric in rows}:
        _correct(rows, [(label, metric) for label in others])
    return list(rows.values())


def coins(pictures: int, trials: int, seed: int) -> Iterator[np.ndarray]:
    """Yields [b, P] of 0 and 1 in chunks, `trials` rows together: whether a picture's outputs stay where they are."""
    generator = np.random.default_rng([seed, 1])  # not the draws of the bootstrap
    chunk = max(1, _CHUNK // pictures)
    for start in range(0, trials, chunk):
        yield generator.integers(2, size=(min(chunk, trials - start), pictures), dtype=np.int8).astype(np.float64)


def bootstrap_p(samples, baseline, delta: float) -> float | None:
    """p-value of the paired bootstrap.

    Args:
      samples: B values of a system.
      baseline: B values of the other, of the same resamples.
      delta: the difference of their scores.

    Returns:
      None where no resample has a difference.
    """
    gaps = np.abs(np.asarray(samples, np.float64) - np.asarray(baseline, np.float64))
    if np.isnan(gaps).all():
        return None
    return _p(int(_at_least(gaps - np.nanmean(gaps), delta).sum()), len(gaps))


def randomisation_p(gaps, delta: float) -> float:
    """p-value of approximate randomisation.

    Args:
      gaps: B differences of two systems' scores, after exchanging pictures between them.
      delta: the difference before.
    """
    return _p(int(_at_least(np.abs(gaps), delta).sum()), len(gaps))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down: the k-th smallest of m p-values times m - k + 1, never less than one before it, at most 1."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = largest
    return adjusted


def _p(extreme, trials):
    return (extreme + 1) / (trials + 1)


def _at_least(gaps, delta):
    """Where a gap is no smaller than the observed one; an undefined gap counts as such."""
    delta = abs(delta)
    return ~(gaps < delta - _ROUNDING * max(delta, 1e-3))


def _check(sheets):
    if not sheets:
        raise ValueError('no system to compare')
    label, runs = next(iter(sheets.items()))
    for other, own in sheets.items():
        if not own:
            raise ValueError(f'system {other!r} has no runs')
        for sheet in own:
            if sheet.ids != runs[0].ids or sheet.pictures != runs[0].pictures:
                here, there = set(sheet.ids), set(runs[0].ids)
                found = f'{len(here - there)} ids more and {len(there - here)} fewer' if here != there else 'others'
                raise ValueError(f'systems are compared on the same examples: {other!r} has {found} than {label!r}')


def _values(sheets, counts_BP, subset):
    """{score: [runs, B]} of what every run has."""
    found = [sheet.values(counts_BP, subset) for sheet in sheets]
    return {name: np.stack([values[name] for values in found]) for name in found[0] if all(name in f for f in found)}


def _bootstrap(sheets, subset, chunks):
    """{system: {score: [B]}}: means over runs, the same draws for all."""
    parts = {label: {} for label in sheets}
    for counts in chunks:
        for label, own in sheets.items():
            for name, values in _values(own, counts, subset).items():
                parts[label].setdefault(name, []).append(values.mean(0))
    return {label: {name: np.concatenate(p) for name, p in own.items()} for label, own in parts.items()}


def _randomise(sheets, subset, chunks):
    """{system: {score: [B]}}: differences to the baseline; systems with another number of runs are left out.

    Under the hypothesis, all runs of a system trade places with all runs of the baseline, picture by picture.
    """
    (_, first), *others = sheets.items()
    parts = {label: {} for label, own in others if len(own) == len(first)}
    for coin in chunks:
        swapped = 1 - coin
        for label, found in parts.items():
            pairs = list(zip(sheets[label], first))
            kept = [_sheet.mixed([(a, coin), (b, swapped)], subset) for a, b in pairs]
            traded = [_sheet.mixed([(a, swapped), (b, coin)], subset) for a, b in pairs]
            for name in kept[0]:
                if all(name in values for values in (*kept, *traded)):
                    gaps = np.mean([k[name] - t[name] for k, t in zip(kept, traded)], axis=0)
                    found.setdefault(name, []).append(gaps)
    return {label: {name: np.concatenate(p) for name, p in own.items()} for label, own in parts.items()}


def _row(label, metric, subset, sheets, runs, points, drawn, traded, baseline):
    own = runs[label].get(metric)
    value = points[label].get(metric, np.nan)
    sheet = sheets[label][0]
    facts = dict(
        system=label,
        metric=metric,
        subset=subset,
        runs=len(sheets[label]),
        n=float(np.mean([_scored(s, metric, subset) for s in sheets[label]])),
        total=len(sheet.ids),
    )
    if np.isnan(value):
        reasons = [_reason(s, metric, subset) for s in sheets[label]]
        unsaid = 'not computed' if own is None else 'undefined for these examples'
        return Row(value=None, reason=next(filter(None, reasons), unsaid), **facts)
    samples, base = drawn[label].get(metric), drawn[baseline].get(metric)
    delta = value - points[baseline].get(metric, np.nan)
    compared = label != baseline and not np.isnan(delta)
    return Row(
        value=value,
        sd=float(own[:, 0].std(ddof=1)) if len(own) > 1 else None,
        ci95=None if samples is None else stats.interval(samples),
        untested=_untested(label, baseline, sheets, compared, len(sheet.pictures)),
        **facts,
        **(_tests(samples, base, delta, traded.get(metric)) if compared else {}),
    )


def _tests(samples, base, delta, gaps):
    paired = samples is not None and base is not None
    return dict(
        delta=delta,
        delta_ci95=stats.interval(samples - base) if paired else None,
        p_bootstrap=bootstrap_p(samples, base, delta) if paired else None,
        p_randomisation=None if gaps is None else randomisation_p(gaps, delta),
    )


def _untested(label, baseline, sheets, compared, pictures):
    if label == baseline:
        return ''
    if pictures == 1:
        return ONE_PICTURE
    if not compared:
        return f'{baseline!r} has no such score'
    own, other = len(sheets[label]), len(sheets[baseline])
    return '' if own == other else f'randomisation needs equal numbers of runs: {own} here, {other} of {baseline!r}'


def _correct(rows, keys):
    """Adds p_holm to the rows of one score; a row that could not be randomised enters with its bootstrap."""
    found = {}
    for key in keys:
        for test in ('randomisation', 'bootstrap'):
            p = getattr(rows[key], f'p_{test}')
            if p is not None:
                found[key] = test, p
                break
    for (key, (test, _)), p in zip(found.items(), holm([p for _, p in found.values()])):
        rows[key] = dataclasses.replace(rows[key], p_holm=p, tested=test)


def _part(metric, subset):
    """The part of a sheet that a score is of; of a combination, that of its explanation metrics."""
    if metric in ('s_t', 'accuracy') or metric.startswith('vqa_'):
        return 'task'
    if metric.startswith(('s_e_', 's_o_')):
        return 'true' if metric.endswith('_true') else 'correct'
    return 'correct' if subset in (MAIN, 'correct') else 'all'


def _reason(sheet, metric, subset):
    """Why a sheet lacks a score, or None."""
    return sheet.absent.get(metric) or sheet.reasons.get(_part(metric, subset))


def _scored(sheet, metric, subset):
    """Number of examples that a score of a subset is over."""
    columns = [column for column in sheet.columns if column.part == _part(metric, subset)]
    columns.sort(key=lambda column: metric not in column.table.signatures)
    return int(sheet.inside(columns[0], subset).sum()) if columns else 0
