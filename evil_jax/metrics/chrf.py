"""chrF (Popovic, 2015) by sacrebleu: character n-grams up to 6 without blanks, beta 2. Scale 0..1, not 0..100.

With several references an example counts with the one that suits it best. An empty candidate, or only empty
references, gives 0.
"""

import numpy as np
import sacrebleu
from sacrebleu.metrics import CHRF

from evil_jax.metrics import base
from evil_jax.records import Score

NAMES = ('chrf',)


class _Counter(CHRF):
    """Opens the counts of one segment, which sacrebleu hands out only as a finished score."""

    def statistics(self, candidate: str, references: list[str]) -> list[int]:
        """(candidate n-grams, reference n-grams, matches) for n = 1..6, of the best reference."""
        return self._compute_segment_statistics(
            self._preprocess_segment(candidate),
            self._extract_reference_info([self._preprocess_segment(text) for text in references]),
        )


def table(predictions: base.Predictions, references: base.References) -> base.Table:
    """18 counts an example."""
    ids, candidates, reference_lists = base.join(predictions, references)
    counter = _Counter()
    statistics = np.zeros((len(ids), 3 * counter.char_order))
    for row, (candidate, texts) in enumerate(zip(candidates, reference_lists)):
        statistics[row] = counter.statistics(candidate, texts)
    signature = base.signature(
        'chrf', case='mixed', nrefs=base.nrefs(reference_lists), nc=counter.char_order, nw=counter.word_order,
        beta=counter.beta, space='no', eff='yes', scale='0..1', version=f'sacrebleu-{sacrebleu.__version__}',
    )  # fmt: skip
    return base.Table(
        ids=tuple(ids),
        statistics=statistics,
        sentence={'chrf': chrf(statistics, counter.beta)},
        corpus=lambda sums, counts: {'chrf': np.where(counts > 0, chrf(sums, counter.beta), np.nan)},
        signatures={'chrf': signature},
    )


def chrf(statistics: np.ndarray, beta: float = CHRF.BETA) -> np.ndarray:
    """chrF from (summed) counts [..., 18]: precision and recall are averaged over the orders that both texts have."""
    statistics = np.asarray(statistics, np.float64)
    candidate, reference, matches = statistics[..., 0::3], statistics[..., 1::3], statistics[..., 2::3]
    both = (candidate > 0) & (reference > 0)
    orders = np.maximum(both.sum(-1), 1)
    precision = np.where(both, matches / np.maximum(candidate, 1), 0).sum(-1) / orders
    recall = np.where(both, matches / np.maximum(reference, 1), 0).sum(-1) / orders
    f = base.ratio((1 + beta**2) * precision * recall, beta**2 * precision + recall)
    return np.where(precision + recall > 0, f, 0.0)


def score(predictions: base.Predictions, references: base.References) -> dict[str, Score]:
    """{'chrf': Score}. Raises ValueError as `base.join` does."""
    return table(predictions, references).scores()
