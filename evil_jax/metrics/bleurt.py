"""BLEURT (Sellam et al., ACL 2020; BLEURT-20: Pu et al., EMNLP 2021) with a regressor that is passed in. No bounds.

`regress` takes references and candidates, pair by pair, and gives a score for each; interop/bleurt.py makes one of a
checkpoint. Scores of different checkpoints are different metrics: bleurt-base's are standardised ratings, often below
0; BLEURT-20's lie mostly between 0 and 1.

Neither paper nor code says what several references mean. Here an example has the score of its best reference, as with
METEOR and BERTScore; the signature says so. The score of a set is the mean over its examples. An empty text is scored
like any other: the regressor reads a pair in which nothing stands on that side.
"""

from collections.abc import Callable, Sequence

import numpy as np

from evil_jax.metrics import base
from evil_jax.records import Score

NAMES = ('bleurt',)
Regress = Callable[[Sequence[str], Sequence[str]], np.ndarray]


def table(
    predictions: base.Predictions, references: base.References, *, regress: Regress, name: str = ''
) -> base.Table:
    """One row an example: its score against its best reference.

    Args:
      predictions, references: by example id. Both may be empty: then `regress` is not called.
      regress: (references, candidates) -> [N] floats, one a pair.
      name: of the regressor, for the signature; '' = its attribute `name`, where it has one.

    Raises:
      ValueError: as `base.join` does, or `regress` gives something other than a finite number a pair.
    """
    ids, candidates, reference_lists = base.join(predictions, references)
    owners = [i for i, texts in enumerate(reference_lists) for _ in texts]
    best = np.full(len(ids), -np.inf)
    if owners:
        found = np.asarray(regress([r for texts in reference_lists for r in texts], [candidates[i] for i in owners]))
        if found.shape != (len(owners),):
            raise ValueError(f'BLEURT: scores of shape {found.shape} for {len(owners)} pairs, wanted one number a pair')
        wrong = sorted({ids[owners[n]] for n in np.flatnonzero(~np.isfinite(found))})
        if wrong:
            raise ValueError(f'BLEURT: the score is NaN or infinite for {base.some(wrong)}')
        np.maximum.at(best, owners, found.astype(np.float64))
    signature = base.signature(
        'bleurt', model=name or getattr(regress, 'name', 'unnamed'), nrefs=base.nrefs(reference_lists), refs='max',
        order='reference-candidate', case='mixed', scale='unbounded',
    )  # fmt: skip
    return base.mean_table(ids, NAMES[0], best, signature)


def score(
    predictions: base.Predictions, references: base.References, *, regress: Regress, name: str = ''
) -> dict[str, Score]:
    """{'bleurt': Score}; see `table`."""
    return table(predictions, references, regress=regress, name=name).scores()
