"""What people said, in the form of scores.json, and as tables to print: scores, metrics against people, agreement."""

from evil_jax import stats
from evil_jax.human import agreement, correlation
from evil_jax.human.ratings import Item, Rating, aggregate

# Both ordinal alphas, so that a reader of another paper finds the one used there; Gwet's, because alpha and kappa are
# low where nearly everybody says yes, however often they agree.
AGREEMENT = (
    'krippendorff_nominal', 'krippendorff_ordinal', 'krippendorff_ordinal_weights', 'krippendorff_interval', 'fleiss',
    'gwet_ac1', 'gwet_ac2_ordinal', 'gwet_ac2_quadratic', 'brennan_prediger_quadratic',
)  # fmt: skip
_SHORT = ('krippendorff_ordinal', 'krippendorff_ordinal_weights', 'krippendorff_interval', 'fleiss', 'gwet_ac2_ordinal')
NOTES = {
    'scores': 's_e_human: mean over explanations of their mean rating (the paper); s_e_human_ratings: mean over '
    'ratings; ci95: bootstrap of s_e_human over pictures',
    'correlation': 'Spearman on exact means of ratings, ties kept; p two-sided, for independent items, not corrected '
    'for several metrics; ci95: bootstrap over pictures; ci95_z: Fisher z (Bonett-Wright); all: data sets pooled',
    'agreement': 'unit: one explanation; se and p over units; ci95: bootstrap over pictures',
}


def summarise(
    ratings: list[Rating],
    metrics: dict[str, dict[str, float | None]] | None = None,
    *,
    left_out: dict[str, int] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> dict:
    """The part `human` of scores.json.

    Args:
      ratings: those that count, of any number of files (`ratings.read`).
      metrics: {metric: {`Item.key`: value}}; see `ratings.texts` and `ratings.keyed`.
      left_out: how many ratings did not count, by reason.
      resamples: of every bootstrap; 0 = no such intervals.
      seed: of every bootstrap.

    Returns:
      JSON: {'ratings': number, 'left_out': {reason: number}, 'notes': ..., 'scores': rows, 'correlation': rows,
      'agreement': rows}. Each row has a `dataset`; without ratings or metrics a list is empty.
    """
    items = aggregate(ratings)
    options = dict(resamples=resamples, seed=seed)
    rows = correlation.table(metrics or {}, items, **options)
    return {
        'ratings': len(ratings),
        'left_out': dict(left_out or {}),
        'notes': NOTES,
        'scores': scores(items, **options),
        'correlation': [row.to_json() for row in rows],
        'agreement': agreements(items, **options),
    }


def scores(items: list[Item], *, resamples: int = 1000, seed: int = 0) -> list[dict]:
    """A row for each data set and system: S_E of people, and the share of ratings with each shortcoming."""
    rows = []
    for (dataset, system), members in _groups(items, lambda i: (i.dataset, i.system)):
        number = sum(len(i.scores) for i in members)
        row = {
            'dataset': dataset,
            'system': system,
            'items': len(members),
            'ratings': number,
            's_e_human': float(sum(i.mean for i in members) / len(members)),
            's_e_human_ratings': sum(i.total for i in members) / (number * members[0].out_of),
        }
        if resamples:
            means = [float(i.mean) for i in members]
            row['ci95'] = list(stats.mean_interval(means, clusters=_pictures(members), resamples=resamples, seed=seed))
        flags = sorted({flag for i in members for flag in i.flags})
        if flags:
            row['flags'] = {flag: sum(i.flags.get(flag, 0) for i in members) / number for flag in flags}
        rows.append(row)
    return rows


def agreements(items: list[Item], *, resamples: int = 0, seed: int = 0) -> list[dict]:
    """Rows of `agreement.table` by data set, generated and gold explanations together, on the whole scale."""
    return [
        {'dataset': dataset} | found.to_json()
        for dataset, members in _groups(items, lambda i: i.dataset)
        for found in agreement.table(
            [i.scores for i in members],
            range(members[0].out_of + 1),
            names=AGREEMENT,
            clusters=_pictures(members),
            resamples=resamples,
            seed=seed,
        )
    ]


def tables(part: dict) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, column names, rows of cells) to print, of what `summarise` returned. A table without rows is left out."""
    found = []
    if part['scores']:
        cells = [
            [
                row['dataset'], row['system'], str(row['items']), str(row['ratings']),
                _cell(row['s_e_human'], row.get('ci95')), f'{row["s_e_human_ratings"]:.4f}',
            ]
            for row in part['scores']
        ]  # fmt: skip
        columns = ['data set', 'system', 'items', 'ratings', 's_e_human', 'over ratings']
        found.append(('Human scores', columns, cells))
    if part['correlation']:
        names = list(dict.fromkeys(row['dataset'] for row in part['correlation']))
        by = {(row['metric'], row['dataset']): row for row in part['correlation']}
        # Pooled first, as in the paper.
        names.sort(key=lambda name: name != correlation.POOLED)
        counts = {name: max(row['n'] for row in part['correlation'] if row['dataset'] == name) for name in names}
        cells = [
            [metric, *(_rho(by[metric, name], counts[name]) for name in names)]
            for metric in dict.fromkeys(row['metric'] for row in part['correlation'])
        ]
        title = "Spearman's rho with human ratings (95 % interval; *: p < .05, two-sided, not corrected)"
        found.append((title, ['metric', *(f'{name} (n = {counts[name]})' for name in names)], cells))
    if part['agreement']:
        names = list(dict.fromkeys(row['dataset'] for row in part['agreement']))
        by = {(row['name'], row['dataset']): row for row in part['agreement']}
        cells = [[short, *(_agreed(by[short, name]) for name in names)] for short in _SHORT]
        found.append(('Agreement between annotators (95 % interval)', ['coefficient', *names], cells))
    return found


def _groups(items, of):
    groups: dict = {}
    for item in items:
        groups.setdefault(of(item), []).append(item)
    return groups.items()


def _pictures(items):
    """Explanations about one picture, or for one question, are drawn together."""
    return [i.image or i.item for i in items]


def _rho(row, n):
    if row['rho'] is None:
        return row['reason']
    star = '*' if row['p'] < 0.05 else ''
    fewer = f', n = {row["n"]}' if row['n'] != n else ''
    ci = row.get('ci95') or row.get('ci95_z')
    return f'{row["rho"]:.3f}{star}' + (f' ({ci[0]:.3f} to {ci[1]:.3f})' if ci else '') + fewer


def _agreed(row):
    return row['reason'] if row['value'] is None else _cell(row['value'], row.get('ci95'), 3, ' to ')


def _cell(value, ci=None, digits=4, dash='-'):
    return f'{value:.{digits}f}' + (f' ({ci[0]:.{digits}f}{dash}{ci[1]:.{digits}f})' if ci else '')
