"""What every metric shares: ids that must agree, statistics per example, signatures.

A metric is a `Table`: for each example a row of statistics, and a function from sums of rows to the corpus score. One
table gives the score of any subset and, with `stats.resample`, its bootstrap distribution, by one matrix product.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import evil_jax
from evil_jax.records import Score

Predictions = Mapping[str, str]
References = Mapping[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Table:
    """Statistics of one metric (or of a family, such as BLEU-1..4) on N examples.

    Attributes:
      ids: N example ids.
      statistics: [N, K] float64; what the corpus scores are computed from.
      sentence: score name -> N values of single examples.
      corpus: (sums [..., K], counts [...]) -> score name -> [...]: corpus scores from summed statistics and the
        number of examples they sum over. NaN where a score is undefined.
      signatures: score name -> signature of the table as a whole.
      select: rows -> Table, for a metric whose rows depend on the set they are scored in (CIDEr's document
        frequency). None: rows are simply picked.
    """

    ids: tuple[str, ...]
    statistics: np.ndarray
    sentence: dict[str, np.ndarray]
    corpus: Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]
    signatures: dict[str, str]
    select: Callable[[np.ndarray], 'Table'] | None = None

    def take(self, rows: np.ndarray) -> 'Table':
        """The table that scoring only these rows (integer indices) would have given."""
        if self.select is not None:
            return self.select(rows)
        return dataclasses.replace(
            self,
            ids=tuple(self.ids[i] for i in rows),
            statistics=self.statistics[rows],
            sentence={name: values[rows] for name, values in self.sentence.items()},
        )

    def scores(self) -> dict[str, Score]:
        """Corpus scores of all rows. Without rows each is absent with a reason."""
        n = len(self.ids)
        values = self.corpus(self.statistics.sum(0), np.float64(n))
        return {
            name: Score(
                value=float(values[name]) if n else None,
                per_example=dict(zip(self.ids, self.sentence[name].tolist())),
                n=n,
                signature=self.signatures[name],
                reason=None if n else 'no examples',
            )
            for name in self.signatures
        }


def mean_table(ids, name: str, values: np.ndarray, signature: str, select=None) -> Table:
    """The table of a score that is the mean of its per-example values."""
    values = np.asarray(values, np.float64)
    return Table(
        ids=tuple(ids),
        statistics=values[:, None],
        sentence={name: values},
        corpus=lambda sums, counts: {name: ratio(sums[..., 0], counts)},
        signatures={name: signature},
        select=select,
    )


def ratio(numerator, denominator) -> np.ndarray:
    """Division that gives NaN, without a warning, where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, np.float64), np.asarray(denominator, np.float64))
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator != 0)


def join(predictions: Predictions, references: References) -> tuple[list[str], list[str], list[list[str]]]:
    """Ids in sorted order, their predictions, their references. The order of the arguments so never matters.

    An empty prediction or an empty reference is a text like any other. An id without references is an error.

    Raises:
      ValueError: ids that only one side has, an id without any reference, or something that is not text.
    """
    same_ids(predictions, references, 'prediction', 'references')
    ids = sorted(predictions)
    without = [i for i in ids if not len(references[i])]
    if without:
        raise ValueError(f'no reference at all for {some(without)}: leave these examples out')
    for i in ids:
        if isinstance(references[i], str):
            raise ValueError(f'references of {i!r}: found one text, wanted a list of texts')
        for text in (predictions[i], *references[i]):
            if not isinstance(text, str):
                raise ValueError(f'{i!r}: found {text!r} ({type(text).__name__}), wanted text')
    return ids, [predictions[i] for i in ids], [list(references[i]) for i in ids]


def same_ids(left, right, left_name: str, right_name: str) -> None:
    """Raises ValueError naming the ids that only one of two mappings has."""
    parts = []
    for name, missing in ((left_name, right.keys() - left.keys()), (right_name, left.keys() - right.keys())):
        if missing:
            parts.append(f'no {name} for {some(missing)}')
    if parts:
        raise ValueError('; '.join(parts))


def some(ids, most: int = 10) -> str:
    """'3 ids: a, b, c', cut after `most`."""
    ids = sorted(ids, key=str)
    shown = ', '.join(repr(i) for i in ids[:most])
    return f'{len(ids)} id{"s" if len(ids) != 1 else ""}: {shown}{", ..." if len(ids) > most else ""}'


def signature(metric: str, **options) -> str:
    """'metric:cider|tok:none|...|version:0.1.0': everything a number depends on. Options keep their order."""
    parts = {'metric': metric} | options
    parts['version'] = '+'.join(filter(None, (f'evil_jax-{evil_jax.__version__}', parts.get('version'))))
    return '|'.join(f'{key}:{value}' for key, value in parts.items())


def nrefs(references: Sequence[Sequence[str]]) -> str:
    """'1', '3', or '1-3' where examples differ."""
    numbers = {len(r) for r in references}
    return '-'.join(str(n) for n in sorted({min(numbers), max(numbers)})) if numbers else '0'
