"""ROUGE-L as coco-caption computes it (Lin, 2004, with two deviations). Scale 0..1.

F = (1 + b^2) P R / (R + b^2 P) with b = 1.2. Precision and recall are maximised over the references *independently*, so
they may come from different ones. Texts are split on single blanks: two blanks in a row make an empty token, which can
match, and an empty text is one empty token, so '' against '' scores 1. The corpus score is the mean.
"""

import numpy as np

from evil_jax.metrics import base
from evil_jax.records import Score

NAMES = ('rouge_l',)
BETA = 1.2


def table(predictions: base.Predictions, references: base.References) -> base.Table:
    """One row an example: its F."""
    ids, candidates, reference_lists = base.join(predictions, references)
    values = np.array([rouge_l(c, texts) for c, texts in zip(candidates, reference_lists)], np.float64)
    signature = base.signature(
        NAMES[0], tok='none(single blanks)', case='mixed', nrefs=base.nrefs(reference_lists), beta=BETA, scale='0..1'
    )
    return base.mean_table(ids, NAMES[0], values, signature)


def rouge_l(candidate: str, references: list[str]) -> float:
    """ROUGE-L of one text."""
    tokens = candidate.split(' ')
    positions: dict[str, int] = {}
    for i, token in enumerate(tokens):
        positions[token] = positions.get(token, 0) | 1 << i
    precision = recall = 0.0
    for reference in references:
        other = reference.split(' ')
        common = _longest_common_subsequence(positions, len(tokens), other)
        precision = max(precision, common / len(tokens))
        recall = max(recall, common / len(other))
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def _longest_common_subsequence(positions: dict[str, int], length: int, other: list[str]) -> int:
    """Bit-parallel length of the longest common subsequence (Hyyro, 2004): one integer is a row of the usual table.

    A 0 bit at i says that the table grows by one at token i. `positions` has, by token, the bits where it stands.
    """
    mask = (1 << length) - 1
    row = mask
    for token in other:
        hits = row & positions.get(token, 0)
        row = ((row + hits) | (row - hits)) & mask
    return length - row.bit_count()


def score(predictions: base.Predictions, references: base.References) -> dict[str, Score]:
    """{'rouge_l': Score}. Raises ValueError as `base.join` does."""
    return table(predictions, references).scores()
