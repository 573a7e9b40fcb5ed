"""How many items and raters tell two systems apart.

A rating's variance has parts: the item (its picture and question), the explanation (what this system says there), the
rater, the rater on this item (what both explanations of it have in common), and the rest. If both systems are rated on
the same n items, r raters an explanation, no rater twice on an item, the difference of their S_E has the variance

    2 / n (explanation + (rater + item:rater + residual) / r),

and 2 / n item more if they are rated on different items. Raters count as strangers to each other, as they are where
the systems are mixed on pages at random. The test is that of two means of items, paired or not, two-sided: t with n - 1
or 2 (n - 1) degrees of freedom, and its power that of the noncentral t.

More raters help only with what raters differ in; more items help with everything.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence

from scipy import optimize
from scipy import stats as scipy_stats

from evil_jax.human import _observations, mixed
from evil_jax.human.responses import Response

_MOST = 1_000_000  # items that nobody will have


@dataclasses.dataclass(frozen=True, slots=True)
class Components:
    """Variances of ratings that are worth 0 to 1 (see above), and where they are from."""

    item: float
    explanation: float
    rater: float
    together: float  # item:rater
    residual: float
    source: str


# By `components` of the ratings that OFA-X's authors published (e-SNLI-VE and VQA-X, "large": one system and the gold
# explanations, five raters an item); those of other data sets are of both together.
_OFAX = 'ratings published with OFA-X (Plüster et al., 2022, arXiv 2212.04231)'
DEFAULTS = {
    'esnlive': Components(0.00122, 0.01450, 0.00976, 0.01753, 0.04534, f'{_OFAX}, e-SNLI-VE, n = 2208'),
    'vqax': Components(0.00338, 0.00361, 0.00282, 0.00967, 0.04241, f'{_OFAX}, VQA-X, n = 2924'),
}
OTHER = Components(0.00276, 0.00783, 0.00474, 0.01293, 0.04406, f'{_OFAX}, both data sets, n = 5132')


def components(responses: Iterable[Response], source: str = 'these ratings') -> Components:
    """Estimates variances by the linear mixed model score ~ system + dataset + all these random effects (REML).

    Args:
      responses: of one or several studies, gold explanations included; those that do not count are left out.
      source: told with the numbers.

    Raises:
      ValueError: too few ratings, or only one of each explanation.
    """
    data = _observations.observations(responses, 'score', True)
    # Of one system items are explanations: all of it counts as that, which helps no study of the same items.
    random, _ = _observations.usable(data.factors, ('explanation', 'item', 'rater', 'item:rater'))
    fixed = {f: data.factors[f] for f in ('system', 'dataset') if len(set(data.factors[f])) > 1}
    fit = mixed.fit(data.values, fixed, {factor: data.factors[factor] for factor in random})
    if fit.reason is not None or 'explanation' not in random:
        reason = fit.reason or 'no explanation has two ratings'
        raise ValueError(f'{source}: variances of ratings cannot be told: {reason}')
    of = lambda name: fit.sd.get(name, 0.0) ** 2
    return Components(
        of('item'), of('explanation'), of('rater'), of('item:rater'), of(mixed.RESIDUAL), f'{source}, n = {fit.n}'
    )


def standard_error(parts: Components, items: int, raters: int, *, same_items: bool = True) -> float:
    """Of the difference of two systems' S_E.

    Raises:
      ValueError: fewer than two items or one rater.
    """
    if items < 2 or raters < 1:
        raise ValueError(f'{items} items and {raters} raters, wanted two items and one rater at least')
    one = parts.explanation + (parts.rater + parts.together + parts.residual) / raters
    return math.sqrt(2 / items * (one + (0 if same_items else parts.item)))


def power(
    difference: float,
    parts: Components,
    items: int,
    raters: int,
    *,
    same_items: bool = True,
    alpha: float = 0.05,
    comparisons: int = 1,
) -> float:
    """Probability that the two systems are told apart.

    Args:
      difference: of their true S_E, from 0 to 1.
      parts: variances.
      items: of each system.
      raters: of each explanation.
      same_items: whether both systems are rated on the same ones.
      alpha: how often systems that are alike may be told apart.
      comparisons: that share alpha (Bonferroni; Holm needs no more).

    Raises:
      ValueError: a number outside its range.
    """
    if not 0 < alpha < 1 or comparisons < 1:
        raise ValueError(f'alpha is {alpha} for {comparisons} comparisons, wanted 0 < alpha < 1 and one at least')
    error = standard_error(parts, items, raters, same_items=same_items)
    df = items - 1 if same_items else 2 * (items - 1)
    critical = float(scipy_stats.t.isf(alpha / comparisons / 2, df))
    far = abs(difference) / error
    # The other tail is nothing where scipy can no longer compute it.
    other = scipy_stats.nct.cdf(-critical, df, far) if far < 5 else 0.0
    found = float(scipy_stats.nct.sf(critical, df, far) + other)
    # With very many degrees of freedom scipy has no number now and then; then t is normal.
    return float(scipy_stats.norm.sf(critical - far)) if math.isnan(found) else found


def items_needed(difference: float, parts: Components, raters: int, wanted: float = 0.8, **options) -> int | None:
    """The least number of items with this power; None = more than a million. Options are those of `power`.

    Raises:
      ValueError: a power that is not above alpha and below 1, or as `power`.
    """
    _check(wanted, options)
    enough = lambda items: power(difference, parts, items, raters, **options) >= wanted
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable(parts: Components, items: int, raters: int, wanted: float = 0.8, **options) -> float:
    """The least difference with this power; it may be more than 1, which no two systems differ by.

    Raises:
      ValueError: as `items_needed`.
    """
    _check(wanted, options)
    error = standard_error(parts, items, raters, same_items=options.get('same_items', True))
    short = lambda far: power(far * error, parts, items, raters, **options) - wanted
    far = 1.0
    while short(far) < 0:
        far *= 2
    return float(optimize.brentq(short, 0, far, xtol=1e-6)) * error


def plan(
    difference: float,
    parts: Components,
    *,
    wanted: float = 0.8,
    items: Sequence[int] = (50, 100, 200, 300, 500, 1000),
    raters: Sequence[int] = (1, 2, 3, 5),
    same_items: bool = True,
    alpha: float = 0.05,
    comparisons: int = 1,
) -> dict:
    """All of it as JSON: the question, {'needed': for each number of raters, 'table': for each of items and raters}.

    'ratings' are those of generated explanations, both systems together; the gold ones beside them are as many again.
    """
    options = dict(same_items=same_items, alpha=alpha, comparisons=comparisons)
    needed = []
    for number in raters:
        least = items_needed(difference, parts, number, wanted, **options)
        needed.append({'raters': number, 'items': least, 'ratings': least and 2 * least * number})
    table = [
        {
            'items': n,
            'raters': r,
            'ratings': 2 * n * r,
            'se': standard_error(parts, n, r, same_items=same_items),
            'power': power(difference, parts, n, r, **options),
            'detectable': detectable(parts, n, r, wanted, **options),
        }
        for n in items
        for r in raters
    ]
    asked = {'difference': difference, 'power': wanted, **options, 'components': dataclasses.asdict(parts)}
    return asked | {'needed': needed, 'table': table}


def _check(wanted, options):
    if not options.get('alpha', 0.05) < wanted < 1:
        raise ValueError(f'power is {wanted}, wanted more than alpha and less than 1')
