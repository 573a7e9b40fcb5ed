"""Metrics of explanations that people rated, where the ratings come with the texts: of each one, and of each system."""

from collections.abc import Mapping, Sequence

from evil_jax.human import ratings
from evil_jax.metrics import evil
from evil_jax.modes import _metrics, _scoring
from evil_jax.records import Example, Prediction


def by_item(config, items: Sequence[ratings.Item]) -> dict[str, dict[str, float]]:
    """{metric: {`Item.key`: value}}, a data set at a time: CIDEr counts words in all of it."""
    found: dict[str, dict[str, float]] = {}
    for predictions, references in ratings.texts(items).values():
        add(found, values(_sheet(config, predictions, references)))
    return found


def by_system(config, items: Sequence[ratings.Item]) -> dict[str, dict[str, dict[str, float]]]:
    """{data set: {system: {score name: value}}} over the explanations that were rated; what cannot run is not in it."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    groups: dict[tuple[str, str], list[ratings.Item]] = {}
    for item in items:
        groups.setdefault((item.dataset, item.system), []).append(item)
    for (dataset, system), members in groups.items():
        for predictions, references in ratings.texts(members).values():
            rows = evil.scores(_sheet(config, predictions, references), 0)['all']
            known = {name: row.value for name, row in rows.items() if row.value is not None}
            found.setdefault(dataset, {})[system] = known
    return found


def values(sheet: evil.Sheet) -> dict[str, dict[str, float]]:
    """{metric: {id: value}} of single explanations, right answers' and wrong ones'."""
    return {
        name: dict(zip(column.table.ids, values.tolist()))
        for column in sheet.columns
        if column.part == 'all'
        for name, values in column.table.sentence.items()
    }


def add(found: dict[str, dict[str, float]], more: Mapping[str, Mapping[str, float]]) -> None:
    """Joins values of other items."""
    for name, some in more.items():
        found.setdefault(name, {}).update(some)


def _sheet(config, predictions, references) -> evil.Sheet:
    return evil.sheet(
        [Prediction(i, None, explanation=line) for i, line in predictions.items()],
        [Example(i, i, '', explanations=lines) for i, lines in references.items()],
        judge=lambda answer, example: 0.0,
        metrics=_metrics.scorers(config),
        protocol=_scoring.protocols(config)[0],
        tokenise=_metrics.tokenise(config),
    )
