"""BLEU-1..4 as coco-caption computes them (Papineni et al., 2002), counted by sacrebleu. Scale 0..1.

Texts are split on white space and nothing else: tokens of another tokeniser come joined by blanks.

Sacrebleu counts (tokenize='none': clipped matches, candidate n-grams, closest reference length, ties to the shorter);
the last formula is ours, with coco-caption's two constants. On a corpus with a match in every order the result equals
sacrebleu's own (smooth_method='none', force=True) within 1e-9. Without a match sacrebleu gives 0 where coco-caption
gives a small number, for BLEU-4 up to the order of 1e-4; sentence scores, where missing orders are the rule, differ by
up to 1e-2. Golden values of coco-caption decide, so the constants are used everywhere.
"""

import numpy as np
import sacrebleu
from sacrebleu.metrics import BLEU

from evil_jax.metrics import base
from evil_jax.records import Score

ORDERS = 4
TINY = 1e-15  # added to matches and to the candidate length
SMALL = 1e-9  # added to the number of n-grams and to the reference length
NAMES = tuple(f'bleu{n}' for n in range(1, ORDERS + 1))


def table(predictions: base.Predictions, references: base.References) -> base.Table:
    """Statistics per example: candidate length, reference length, 4 match counts, 4 n-gram counts."""
    ids, candidates, reference_lists = base.join(predictions, references)
    # effective_order only silences sacrebleu's advice about sentence scores; the counts do not depend on it.
    counter = BLEU(tokenize='none', smooth_method='none', force=True, effective_order=True, max_ngram_order=ORDERS)
    statistics = np.zeros((len(ids), 2 + 2 * ORDERS))
    for row, (candidate, texts) in enumerate(zip(candidates, reference_lists)):
        counts = counter.sentence_score(candidate, texts)
        statistics[row] = (counts.sys_len, counts.ref_len, *counts.counts, *counts.totals)
    options = dict(
        tok='none(blanks)', case='mixed', nrefs=base.nrefs(reference_lists), smooth=f'coco({TINY:g},{SMALL:g})',
        reflen='closest', scale='0..1', version=f'sacrebleu-{sacrebleu.__version__}',
    )  # fmt: skip
    return base.Table(
        ids=tuple(ids),
        statistics=statistics,
        sentence=bleu(statistics),
        corpus=lambda sums, counts: {n: np.where(counts > 0, v, np.nan) for n, v in bleu(sums).items()},
        signatures={name: base.signature(name, **options) for name in NAMES},
    )


def bleu(statistics: np.ndarray) -> dict[str, np.ndarray]:
    """BLEU-1..4 from (summed) statistics [..., 10]."""
    statistics = np.asarray(statistics, np.float64)
    length, reference_length = statistics[..., 0], statistics[..., 1]
    matches, totals = statistics[..., 2 : 2 + ORDERS], statistics[..., 2 + ORDERS :]
    precisions = (matches + TINY) / (totals + SMALL)
    ratio = (length + TINY) / (reference_length + SMALL)
    brevity = np.exp(np.minimum(0.0, 1 - 1 / ratio))
    return {
        name: np.prod(precisions[..., :n], -1) ** (1 / n) * brevity for n, name in enumerate(NAMES, 1)
    }  # fmt: skip


def score(predictions: base.Predictions, references: base.References) -> dict[str, Score]:
    """Corpus BLEU-1..4; `per_example` has sentence BLEU. Raises ValueError as `base.join` does."""
    return table(predictions, references).scores()
