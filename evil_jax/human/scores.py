"""What raters said, in numbers: S_E of each system and of the gold explanations, and all that Tables 2 and 5 show.

`summary` returns JSON of this shape; shares and scores are in [0, 1]:

    {'datasets': ['esnlive', 'vqax'],
     'systems': ['A', 'B'],                                    # sorted, without 'gt'
     'counts': {'ratings': 3600, 'counted': 3391, 'left_out': {'answered otherwise': 180, 'failed check': 29}},
     'scores': [                                               # by data set: the systems, then 'gt'; at last 'all'
       {'dataset': 'esnlive', 'system': 'A',
        'items': 298, 'lost': 2,                               # explanations; those without a rating that counts
        'ratings': 871, 'raters': 61, 'pictures': 298,
        's_e': 0.689, 's_e_ci95': [0.65, 0.72],                # mean of an item's raters, then of items
        's_e_ratings': 0.690, 's_e_median': 0.71, 's_e_majority': 0.78,
        's_t': 0.795, 's_o': 0.548, 's_o_ci95': [0.52, 0.57],  # None where S_T is not known, as of 'gt'
        'shares': {'no': 0.1, 'weak_no': 0.07, 'weak_yes': 0.28, 'yes': 0.55},
        'shortcomings': {'incorrect_description': 0.16, 'insufficient_justification': 0.25, 'confusing_sentence': 0.07},
        'comparative': {'value': 0.61, 'ci95': [0.57, 0.65], 'pairs': 870, 'items': 298,
                        'better': 0.15, 'same': 0.46, 'worse': 0.39},           # None of 'gt', or without pairs
        'preference': {'ratings': 870, 'this': 0.4, 'other': 0.35, 'none': 0.25}},  # None where not asked
       {'dataset': 'all', 'system': 'A', 'datasets': 2, ...}],  # means over data sets, of systems in all of them
     'differences': [                                          # a - b; b may be 'gt': only the gold ones beside a
       {'dataset': 'esnlive', 'a': 'A', 'b': 'B', 'difference': 0.09, 'ci95': [0.04, 0.14], 'pictures_shared': 280}],
     'agreement': [{'dataset': 'esnlive', 'name': 'krippendorff_ordinal', 'value': 0.31, ...}],  # agreement.Agreement
     'raters': [                                               # most ratings first
       {'dataset': 'esnlive', 'rater': 'r0123456789ab', 'pages': 4, 'ratings': 74, 'left_out': 6,
        'mean': 0.71, 'bias': 0.02,                            # bias: own rating - mean of the others', None: no others
        'agreement': 0.84,                                     # 1 - |own - another's rating|, mean; None: no others
        'wrong': 0.05,                                         # share of task questions answered otherwise
        'checks': 4, 'checks_failed': 0, 'seconds': 412.0}],   # seconds: median of a page, or None
     'notes': {'s_e': '...', ...}}

The keys 's_e_ci95', 's_o_ci95', 'ci95' are None without resamples, and of one picture. `disagreements` (whose `ratings`
are one for each rater; 'gold_rating' is None where it does not count) returns

    [{'why': 'spread', 'dataset': 'esnlive', 'system': 'A', 'item': '12.jpg#1r1', 'image_id': '12.jpg',
      'explanation': 'a man is outside', 'mean': 0.5, 'gold_explanation': 'a park is outside', 'gold_mean': 0.89,
      'ratings': [{'rater': 'r01', 'rating': 'yes', 'shortcomings': [], 'gold_rating': 'weak_yes',
                   'gold_shortcomings': []}]}]                 # why: 'spread', or 'better' (than the gold one)
"""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from evil_jax.human import _raters, agreement, responses
from evil_jax.human._disagreements import disagreements as disagreements
from evil_jax.human._twoway import Means
from evil_jax.human.responses import Response
from evil_jax.human.study import GOLD, PREFERENCES, RATINGS, SHORTCOMINGS
from evil_jax.human.summary import AGREEMENT

ALL = 'all'
_BEST = len(RATINGS) - 1
_THIRDS = [Fraction(score, _BEST) for score in range(_BEST + 1)]  # exact, as floats are not
NOTES = {
    's_e': 'mean over explanations of the mean of their ratings (yes 1, weak yes 2/3, weak no 1/3, no 0); a gold '
    'explanation is one for each system beside which it was rated; s_e_ratings: mean over ratings; s_e_median: of the '
    "median of an explanation's ratings; s_e_majority: share of explanations that most raters rate yes or weak yes, a "
    'tie is a half',
    's_o': 's_t * s_e; s_t, how right all answers are, is taken as known',
    'ci95': 'bootstrap over pictures and raters together, scaled to the variance between pictures plus that between '
    'raters, less that within both; where raters are not known each page is of another one, or each rating',
    'comparative': '1 if a rater rates the explanation at least as high as the gold one beside it, mean over raters, '
    'then explanations; better, same, worse: shares of these pairs',
    'all': 'mean over data sets, of systems that were rated in all of them; numbers are sums',
    'agreement': 'unit: one explanation beside another; se and p over units; ci95: bootstrap over pictures',
}


def summary(
    rows: Iterable[Response],
    *,
    s_t: Mapping[tuple[str, str], float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> dict:
    """All scores, of marked rows (`responses.mark`); the shape is at the top of this file.

    Args:
      rows: of any number of data sets and systems.
      s_t: {(data set, system): how right its answers are, on all examples, in [0, 1]}.
      resamples: of every bootstrap; 0 = no intervals.
      seed: of every bootstrap.

    Raises:
      ValueError: no rating counts; the message says why.
    """
    rows = list(rows)
    counts = responses.counts(rows)
    if not counts['counted']:
        why = ', '.join(f'{number} {reason}' for reason, number in counts['left_out'].items()) or 'there are none'
        raise ValueError(f'no rating counts: {why}')
    units: dict[tuple, list[Response]] = {}
    for row in rows:
        if row.counts:
            units.setdefault(row.unit, []).append(row)
    lost = Counter(unit[:2] for unit in {row.unit for row in rows if not row.trusted} if unit not in units)
    groups: dict[tuple[str, str], list[list[Response]]] = {}
    for unit in sorted(units):
        groups.setdefault(unit[:2], []).append(units[unit])
    datasets = sorted({dataset for dataset, _ in groups})
    systems = sorted({system for _, system in groups} - {GOLD})
    pairs = _pairs(rows)
    means = Means(_weighed(units, pairs), resamples=resamples, seed=seed)
    of = {
        (dataset, system): _score(dataset, system, groups[dataset, system], lost, pairs, means, s_t or {})
        for dataset, system in itertools.product(datasets, [*systems, GOLD])
        if (dataset, system) in groups
    }
    everywhere = [system for system in [*systems, GOLD] if all((dataset, system) in of for dataset in datasets)]
    found = list(of.values())
    if len(datasets) > 1:
        found += [_overall([of[dataset, system] for dataset in datasets], means) for system in everywhere]
    return {
        'datasets': datasets,
        'systems': systems,
        'counts': counts,
        'scores': found,
        'differences': _differences(groups, datasets, systems, everywhere, means),
        'agreement': _agreements(units, datasets, resamples, seed),
        'raters': _raters.table(rows),
        'notes': NOTES,
    }


def cost(pages: int, raters: int, reward: float, fee: float = 0.2) -> dict:
    """What a study costs: {'assignments', 'reward', 'fee', 'total'}.

    Args:
      pages: of the study.
      raters: of each page.
      reward: for a page.
      fee: of the platform, as a share of the reward.
    """
    return _bill(pages * raters, reward, fee)


def paid(rows: Iterable[Response], reward: float, fee: float = 0.2) -> dict:
    """As `cost`, of the pages of a table whose work was not rejected, whether their ratings count or not."""
    return _bill(len({row.page for row in rows if row.assignment and row.status != 'rejected'}), reward, fee)


def _bill(assignments, reward, fee):
    rewards = assignments * reward
    return {'assignments': assignments, 'reward': rewards, 'fee': rewards * fee, 'total': rewards * (1 + fee)}


def _pairs(rows):
    """(rating, the same rater's rating of the gold explanation beside it) of each generated explanation."""
    golds = {row.pair: row for row in rows if row.counts and row.system == GOLD}
    found: dict[tuple[str, str], list[tuple[Response, Response]]] = {}
    for row in rows:
        if row.counts and row.system != GOLD and _who(row):
            gold = golds.get(row.pair) or golds.get((row.page, row.item, GOLD))
            if gold:
                found.setdefault((row.dataset, row.system), []).append((row, gold))
    return found


def _picture(row):
    return row.dataset, row.image_id or row.item


def _who(row):
    """The rater; who does a page is one person, even where it is not known who. None where that is not known either."""
    return row.rater or (row.page if row.assignment else None)


def _weighed(units, pairs):
    """Rows of `Means`: groups (data set, system), (data set, gold, beside), and ('pairs', data set, system)."""
    for unit, ratings in units.items():
        dataset, system, _, beside = unit
        for number, row in enumerate(ratings):
            rest = _picture(row), _who(row) or (unit, number), _THIRDS[row.score]
            yield ((dataset, system), unit, *rest)
            if system == GOLD:
                yield ((dataset, GOLD, beside), ('beside', unit), *rest)
    for key, both in pairs.items():
        for row, gold in both:
            yield ('pairs', *key), ('pairs', row.unit), _picture(row), _who(row), Fraction(row.score >= gold.score)


def _score(dataset, system, items, lost, pairs, means, s_t):
    ratings = [row for item in items for row in item]
    share = lambda some: sum(some) / len(ratings)
    group, right = (dataset, system), s_t.get((dataset, system))
    right = None if right is None else float(right)
    interval = means.interval({group: 1})
    scores = [[row.score for row in item] for item in items]
    return {
        'dataset': dataset,
        'system': system,
        'items': len(items),
        'lost': lost[group],
        'ratings': len(ratings),
        'raters': len({row.rater for row in ratings if row.rater}),
        'pictures': len({_picture(row) for row in ratings}),
        's_e': means.value[group],
        's_e_ci95': interval,
        's_e_ratings': share(row.score for row in ratings) / _BEST,
        's_e_median': statistics.fmean(statistics.median(some) for some in scores) / _BEST,
        's_e_majority': statistics.fmean(_majority(some) for some in scores),
        's_t': right,
        's_o': None if right is None else right * means.value[group],
        's_o_ci95': None if right is None or interval is None else [right * end for end in interval],
        'shares': {rating: share(row.rating == rating for row in ratings) for rating in RATINGS},
        'shortcomings': {name: share(name in row.shortcomings for row in ratings) for name in SHORTCOMINGS},
        'comparative': _comparative(pairs.get(group), ('pairs', *group), means),
        'preference': _preference(ratings) if system != GOLD else None,
    }


def _majority(scores):
    good = sum(2 * score > _BEST for score in scores)
    return (2 * good > len(scores)) + (2 * good == len(scores)) / 2


def _comparative(both, group, means):
    if not both:
        return None
    than = Counter((row.score > gold.score) - (row.score < gold.score) for row, gold in both)
    shares = {name: than[sign] / len(both) for name, sign in (('better', 1), ('same', 0), ('worse', -1))}
    about = {'pairs': len(both), 'items': len({row.unit for row, _ in both})}
    return {'value': means.value[group], 'ci95': means.interval({group: 1}), **about, **shares}


def _preference(ratings):
    asked = Counter(row.preference for row in ratings if row.preference)
    number = asked.total()
    return {'ratings': number} | {name: asked[name] / number for name in PREFERENCES} if number else None


def _overall(rows, means):
    """The row `all` of one system."""
    groups = [(row['dataset'], row['system']) for row in rows]
    interval = lambda of, factors: means.interval({(*of, *g): f / len(rows) for g, f in zip(groups, factors)})
    even = [1] * len(rows)
    mean = {name: _mean([row[name] for row in rows]) for name in rows[0] if name not in ('dataset', 'system')}
    mean['s_e_ci95'] = interval((), even)
    mean['s_o_ci95'] = None if mean['s_t'] is None else interval((), [row['s_t'] for row in rows])
    if mean['comparative']:
        mean['comparative']['ci95'] = interval(('pairs',), even)
    return {'dataset': ALL, 'system': rows[0]['system'], 'datasets': len(rows)} | mean


def _mean(values):
    """Of numbers (whole ones are summed), or of the values of dictionaries; None where one is None, or an interval."""
    if any(value is None or isinstance(value, list) for value in values):
        return None
    if isinstance(values[0], dict):
        return {name: _mean([value[name] for value in values]) for name in values[0]}
    return sum(values) if all(isinstance(value, int) for value in values) else statistics.fmean(values)


def _differences(groups, datasets, systems, everywhere, means):
    found = []
    parts = [([dataset], [s for s in systems if (dataset, s) in groups]) for dataset in datasets]
    if len(datasets) > 1:
        parts.append((datasets, [s for s in systems if s in everywhere]))
    pictures = {group: {_picture(item[0]) for item in items} for group, items in groups.items()}
    for some, names in parts:
        gold = all((dataset, GOLD) in groups for dataset in some)
        for a, b in (*itertools.combinations(names, 2), *((name, GOLD) for name in names if gold)):
            factors = {}
            for dataset in some:
                beside = (dataset, GOLD, a)
                other = beside if b == GOLD and beside in means.value else (dataset, b)
                factors |= {(dataset, a): 1 / len(some), other: -1 / len(some)}
            found.append(
                {
                    'dataset': some[0] if len(some) == 1 else ALL,
                    'a': a,
                    'b': b,
                    'difference': means.of(factors),
                    'ci95': means.interval(factors, low=-1),
                    'pictures_shared': sum(len(pictures[d, a] & pictures[d, b]) for d in some),
                }
            )
    return found


def _agreements(units, datasets, resamples, seed):
    """Of each data set, and of all together where there are several; generated and gold explanations alike."""
    found = []
    for name in [*datasets, *([ALL] if len(datasets) > 1 else [])]:
        some = [ratings for unit, ratings in sorted(units.items()) if name in (unit[0], ALL)]
        coefficients = agreement.table(
            [[row.score for row in ratings] for ratings in some],
            range(_BEST + 1),
            names=AGREEMENT,
            clusters=[_picture(ratings[0]) for ratings in some],
            resamples=resamples,
            seed=seed,
        )
        found += [{'dataset': name} | row.to_json() for row in coefficients]
    return found
