"""Metrics beside human ratings: how well each one agrees with people (Kayser et al., 2021, Table 6)."""

import pathlib
from collections.abc import Mapping, Sequence

from evil_jax import records
from evil_jax.human import ratings, summary
from evil_jax.metrics import evil
from evil_jax.modes import _metrics, _scoring, _systems, _terminal
from evil_jax.records import Example, Prediction


def write(config, workdir, sheets: Mapping[str, Sequence[evil.Sheet]]) -> dict:
    """Correlates metrics with the ratings in `evaluate.ratings`, prints that and writes `<workdir>/human.json`.

    Where the ratings come with the explanations and references that were rated, these are scored, a data set at a time.
    Otherwise the ratings are of the systems under evaluation, found by their labels.

    Args:
      config: `evaluate` and `seed` are read.
      workdir: of the run.
      sheets: system -> one sheet a run, under the main protocol; {} = there are no predictions.

    Returns:
      What `summary.summarise` does.

    Raises:
      ValueError: malformed ratings, or ratings of something that was not evaluated.
    """
    options = config.evaluate
    found, left_out = ratings.read_files(_systems.paths(options.ratings), options.ratings_format)
    items = ratings.aggregate(found)
    values: dict[str, dict[str, float]] = {}
    if texts := ratings.texts(items):
        for predictions, references in texts.values():
            _add(values, _values(_of_texts(config, predictions, references)))
    else:
        labels = {item.system for item in items if not item.gold}
        of = sheets if labels & set(sheets) else dict(list(sheets.items())[:1])
        if not of:
            raise ValueError(
                f'{options.ratings}: the ratings come without the explanations that were rated, and there are no '
                'predictions: name them in evaluate.predictions'
            )
        for label, runs in of.items():
            system = label if label in labels else None
            _add(values, ratings.keyed(_values(runs[0]), items, system=system))
    part = summary.summarise(found, values, left_out=left_out, resamples=options.bootstrap, seed=config.seed)
    records.write_json(pathlib.Path(workdir) / 'human.json', {'schema': 1, **part})
    for table in summary.tables(part):
        _terminal.show(*table)
    print(f'human ratings: {pathlib.Path(workdir) / "human.json"}')
    return part


def numbers(part: dict) -> dict[str, float]:
    """'rho_<metric>', pooled over the data sets, of what `write` returned."""
    rows = {row['metric']: row for row in part['correlation']}  # pooled rows come last
    return {f'rho_{metric}': row['rho'] for metric, row in rows.items() if row['rho'] is not None}


def _of_texts(config, predictions, references) -> evil.Sheet:
    return evil.sheet(
        [Prediction(i, None, explanation=line) for i, line in predictions.items()],
        [Example(i, i, '', explanations=lines) for i, lines in references.items()],
        judge=lambda answer, example: 0.0,
        metrics=_metrics.scorers(config),
        protocol=_scoring.protocols(config)[0],
        tokenise=_metrics.tokenise(config),
    )


def _values(sheet: evil.Sheet) -> dict[str, dict[str, float]]:
    """{metric: {id: value}} of single explanations, right answers' and wrong ones'."""
    return {
        name: dict(zip(column.table.ids, values.tolist()))
        for column in sheet.columns
        if column.part == 'all'
        for name, values in column.table.sentence.items()
    }


def _add(values, more) -> None:
    for name, found in more.items():
        values.setdefault(name, {}).update(found)
