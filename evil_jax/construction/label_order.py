"""Whether an NLI model means by its classes what its config.json says, by pairs whose labels are known."""

import itertools
from collections.abc import Sequence

import numpy as np

from evil_jax.construction.pairs import CLASSES

_LEAST, _LEAST_OF_A_CLASS = 100, 10  # pairs
_BETTER, _ERRORS = 0.2, 3  # by how much another order agrees better: share, and standard errors


def best(scores_N3: np.ndarray, labels: Sequence[str]) -> tuple[float, tuple[int, int, int], float]:
    """How well a model agrees with labels, and how well it would if its classes had other names.

    Agreement is the mean over the classes of the share of pairs that get their label, so a model or data with one
    frequent class is no better for it.

    Args:
      scores_N3: of (premise, hypothesis).
      labels: of CLASSES, at least one.

    Returns:
      (agreement, order, agreement of `scores_N3[:, order]`), where order is the best of the six; of equals the first,
      and the one as it is before all others.
    """
    counts = _counts(scores_N3, labels)
    present = counts.sum(1) > 0
    shares = counts[present] / counts[present].sum(1, keepdims=True)
    classes = np.flatnonzero(present)
    found = {
        order: float(np.mean([row[order[i]] for i, row in zip(classes, shares)]))
        for order in itertools.permutations(range(3))
    }
    order = max(found, key=found.get)
    return found[0, 1, 2], order, found[order]


def _counts(scores_N3, labels):
    """How many pairs of each label (rows) get each class (columns)."""
    counts = np.zeros((3, 3))
    np.add.at(counts, ([CLASSES.index(label) for label in labels], np.asarray(scores_N3).argmax(1)), 1)
    return counts


def check(scores_N3: np.ndarray, labels: Sequence[str], id2label: Sequence[str] = ()) -> None:
    """Finds a config.json with the classes in a wrong order.

    Fewer than 100 pairs, or than 10 of a class, say nothing. Nor does what a model may say by chance: of few pairs of a
    class, one that cannot tell the classes agrees better with another order than with its own, sometimes by much.

    Args:
      scores_N3: of (premise, hypothesis), in the order of CLASSES as the config has it.
      labels: of these pairs, of CLASSES.
      id2label: classes, of CLASSES, by the model's outputs, as the config has them; for the message.

    Raises:
      ValueError: another order agrees better with the labels, by more than .2 and by more than three standard errors.
    """
    if len(labels) < _LEAST or min(list(labels).count(label) for label in CLASSES) < _LEAST_OF_A_CLASS:
        return
    stated, order, agreement = best(scores_N3, labels)
    if agreement <= stated + max(_BETTER, _ERRORS * _error(_counts(scores_N3, labels), order)):
        return
    means = {CLASSES[order[i]]: label for i, label in enumerate(CLASSES)}  # what it calls so -> what that is
    told = ', '.join(f'what it calls {called} is {is_}' for called, is_ in means.items() if called != is_)
    right = ', '.join(f'"{i}": "{means[label]}"' for i, label in enumerate(id2label))
    raise ValueError(
        f'the NLI model agrees with {stated:.1%} of the labels of {len(labels):,} pairs (mean over the classes) as its '
        f'config.json names the classes, and with {agreement:.1%} in another order: {told}.'
        + (f' id2label should be {{{right}}}' if right else ' Correct id2label in config.json')
    )


def _error(counts, order) -> float:
    """Standard error of how much better an order agrees, if in truth neither did (as in McNemar's test)."""
    changed = [i for i in range(3) if order[i] != i]
    return float(np.sqrt(sum((counts[i, i] + counts[i, order[i]]) / counts[i].sum() ** 2 for i in changed)) / 3)
