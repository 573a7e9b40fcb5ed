"""All that a construction counts, in one pass over what the filters say: the numbers of its report."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.construction import assessment, checked, curves, funnel, samples, table1


class Summary:
    """Hands each pair to everything that counts; `report` puts the numbers together.

    Args:
      filters: those of `filters.make`; name, source, threshold, splits, classes and detail are used.
      captions: of all pictures: {image_id: texts}.
      explanation: 'first' or 'all' (`table1.Table1`).
      examples: removed pairs to show, of each filter and class.
      seed: of these examples.
      verdicts: hand-checked pairs (`checked.read`), or None.
    """

    def __init__(
        self,
        filters: Sequence,
        captions: Mapping[str, Sequence[str]],
        *,
        explanation: str = 'first',
        examples: int = 5,
        seed: int = 0,
        verdicts: checked.Checked | None = None,
    ):
        self._filters, self._captions = list(filters), captions
        self._table, self._funnel = table1.Table1(explanation), funnel.Funnel(filters)
        self._samples, self._curves = samples.Samples(filters, examples, seed), curves.Curves(filters)
        self._assessment = assessment.Assessment(filters, verdicts) if verdicts else None

    def add(self, judged) -> None:
        """Takes a `cleaning.Judged`, kept or removed."""
        if not judged.removing:
            self._table.add(judged.pair)
        self._funnel.add(judged)
        self._samples.add(judged, self._captions)
        self._curves.add(judged)
        if self._assessment:
            self._assessment.add(judged)

    def report(self) -> dict[str, Any]:
        """The part of `pages.construction`'s report that is counted here. It is JSON.

        Returns:
          'before', 'kept': {split: {class: n}}; 'table1' (of what is kept), 'table1_paper'; 'filters': a list with, of
          each, its settings, `Funnel`'s counts, `Curves`' histogram and curve, `Samples`' rows and, with hand-checked
          pairs, 'checked' of `Assessment`; with these also 'errors', 'bad_explanations' and 'checked', the rest of
          `Assessment`.
        """
        counts, curve, shown = self._funnel.to_json(), self._curves.to_json(self._assessment), self._samples.to_json()
        found = self._assessment.to_json() if self._assessment else {}
        judged = found.pop('filters', {})
        return {
            'before': counts['before'],
            'kept': counts['kept'],
            'table1': self._table.to_json(),
            'table1_paper': table1.PAPER,
            'filters': [
                {
                    'name': each.name,
                    'source': each.source,
                    'threshold': each.threshold,
                    'splits': list(each.splits),
                    'classes': list(each.classes),
                    **counts['filters'][each.name],
                    **curve.get(each.name, {}),
                    **({'checked': judged[each.name]} if judged else {}),
                    'samples': shown[each.name],
                }
                for each in self._filters
            ],
            **(
                {name: found.pop(name) for name in ('errors', 'bad_explanations')} | {'checked': found} if found else {}
            ),
        }
