"""Metrics beside human ratings: how well each one agrees with people (Kayser et al., 2021, Table 6)."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from evil_jax import records
from evil_jax.human import ratings, summary
from evil_jax.metrics import base, evil
from evil_jax.modes import _rated_texts, _systems, _terminal


@dataclasses.dataclass(frozen=True)
class Rated:
    """What people said, read before anything is scored.

    Attributes:
      ratings: those that count.
      left_out: how many do not, by reason.
      items: the rated explanations.
      labels: system under evaluation -> what the ratings call it; {} = the ratings have the texts that were rated.
    """

    ratings: list[ratings.Rating]
    left_out: Mapping[str, int]
    items: list[ratings.Item]
    labels: Mapping[str, str]


def read(config, files: Sequence[tuple[str, str, pathlib.Path]]) -> Rated | None:
    """The ratings in `evaluate.ratings`, None where no file is named.

    Args:
      config: `evaluate` is read.
      files: of the systems under evaluation, as `_systems.listed` gives them; () = there are none.

    Raises:
      ValueError: malformed ratings, or ratings that do not say of which of these systems they are.
    """
    options = config.evaluate
    if not options.ratings:
        return None
    found, left_out = ratings.read_files(_systems.paths(options.ratings), options.ratings_format)
    items = ratings.aggregate(found)
    labels = {} if ratings.texts(items) else _labels(options.ratings, items, files)
    return Rated(found, left_out, items, labels)


def _labels(path, items, files) -> dict[str, str]:
    rated = {item.system for item in items if not item.gold}
    names = [label for label, *_ in files]
    if not names:
        raise ValueError(
            f'{path}: the ratings come without the explanations that were rated, and there are no predictions: name '
            'them in evaluate.predictions'
        )
    if len(rated) == len(set(names)) == 1:  # whatever it is called
        labels = {names[0]: rated.pop()}
    else:
        labels = {name: name for name in names if name in rated}
    if not labels:
        whose = ', '.join(map(repr, sorted(rated - {''}))) or 'a system that no column names'
        systems = ', '.join(map(repr, dict.fromkeys(names)))
        raise ValueError(f'{path}: the ratings are of {whose}, and the systems under evaluation are {systems}')
    if several := [name for name in labels if names.count(name) > 1]:
        raise ValueError(f'{path}: people rated one explanation an example, and {several[0]!r} has several runs')
    return labels


def write(config, workdir, rated: Rated, sheets: Mapping[str, Sequence[evil.Sheet]]) -> dict:
    """Correlates metrics with ratings, prints that and writes `<workdir>/correlation.json`.

    Where the ratings come with the explanations and references that were rated, these are scored, a data set at a time.
    Otherwise the ratings are of systems under evaluation; those that nobody rated are left out.

    Args:
      config: `evaluate` and `seed` are read.
      workdir: of the run.
      rated: of `read`.
      sheets: system -> one sheet a run, under the main protocol; {} = there are no predictions.

    Returns:
      What `summary.summarise` does.

    Raises:
      ValueError: ratings of examples that were not scored, unless `evaluate.allow` has 'extra'.
    """
    values: dict[str, dict[str, float]] = {} if rated.labels else _rated_texts.by_item(config, rated.items)
    for label, name in rated.labels.items():
        sheet = sheets[label][0]
        _check_ids(config, [i.item for i in rated.items if i.system == name and not i.gold], sheet.ids, label)
        _rated_texts.add(values, ratings.keyed(_rated_texts.values(sheet), rated.items, system=name))
    options = config.evaluate
    part = summary.summarise(
        rated.ratings, values, left_out=rated.left_out, resamples=options.bootstrap, seed=config.seed
    )
    records.write_json(pathlib.Path(workdir) / 'correlation.json', {'schema': 1, **part})
    for table in summary.tables(part):
        _terminal.show(*table)
    print(f'human ratings: {pathlib.Path(workdir) / "correlation.json"}')
    return part


def _check_ids(config, ids, scored, label) -> None:
    """Ratings of unknown examples are counted, listed and refused, as predictions are."""
    unknown = sorted(set(ids) - set(scored))
    if not unknown:
        return
    said = f'{config.evaluate.ratings}: no prediction of {label!r} for {base.some(unknown)} of {len(set(ids)):,} rated'
    if len(unknown) == len(set(ids)) or 'extra' not in _systems.allowed(config)[0]:
        raise ValueError(f'{said}. To leave them out, allow extra')
    print(f'{said}: left out')


def numbers(part: dict) -> dict[str, float]:
    """'rho_<metric>', pooled over the data sets, of what `write` returned."""
    rows = {row['metric']: row for row in part['correlation']}  # pooled rows come last
    return {f'rho_{metric}': row['rho'] for metric, row in rows.items() if row['rho'] is not None}
