"""What filters say of pairs, and whether an NLI model means by its classes what its config says."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from evil_jax.construction._filter import Filter
from evil_jax.construction.pairs import CLASSES, Pair

CHUNK = 20_000
_LEAST, _LEAST_OF_A_CLASS, _BETTER = 100, 10, 0.2  # of `check_order`


@dataclasses.dataclass(slots=True)
class Judged:
    """A pair and what the filters say of it.

    Attributes:
      pair: as it was.
      values: {filter: what it measured (NaN: it could not)} of each filter that looks at this pair.
      scores_C3: the NLI model's probabilities, a row for each caption; None where no filter asked for them, or where
        the picture has no captions.
      removed_by: the first filter that removes the pair; '' = it stays.
      removing: all filters that do.
    """

    pair: Pair
    values: dict[str, float]
    scores_C3: np.ndarray | None
    removed_by: str
    removing: list[str]


def clean(
    pairs: Iterable[Pair],
    filters: Sequence[Filter],
    captions: Mapping[str, Sequence[str]],
    scored: Callable[[list[tuple[str, str]]], np.ndarray] | None = None,
    *,
    chunk: int = CHUNK,
) -> Iterator[Judged]:
    """Yields each pair, judged, in the order of `pairs`.

    Every filter is measured wherever it looks, also if another one removes the pair: a changed order of the filters
    changes `removed_by` alone.

    Args:
      pairs: streamed; as many are in memory as `chunk` pairs of texts need.
      filters: of `filters.make`, in order.
      captions: {image_id: texts}. Filters that ask for scores let pass what has none.
      scored: n (caption, hypothesis) -> [n, 3], such as `scores.Cache.scored` with a model; may be None where no
        filter asks for it.
      chunk: pairs of texts to ask for at once, about: enough to be sorted by length.
    """
    asking = [each for each in filters if each.needs_scores]
    if asking and scored is None:
        raise ValueError(f'the filter {asking[0].name} needs an NLI model, and there is none')
    for batch in _chunks(pairs, asking, captions, chunk):
        text_pairs = [(text, pair.hypothesis) for pair, texts in batch for text in texts]
        said = scored(text_pairs) if text_pairs else np.zeros((0, 3), np.float32)
        ends = np.cumsum([len(texts) for _, texts in batch])
        for (pair, texts), end in zip(batch, ends):
            yield _judged(pair, filters, said[end - len(texts) : end] if texts else None)


def _chunks(pairs, asking, captions, chunk):
    """Lists of (pair, captions to ask the model about)."""
    batch, size = [], 0
    for pair in pairs:
        asks = any(each.applies(pair) for each in asking)
        texts = tuple(captions.get(pair.image_id, ())) if asks else ()
        batch.append((pair, texts))
        size += max(1, len(texts))
        if size >= chunk:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _judged(pair, filters, scores_C3):
    values = {each.name: each.measure(pair, scores_C3) for each in filters if each.applies(pair)}
    removing = [each.name for each in filters if each.name in values and each.removes(values[each.name])]
    return Judged(pair, values, scores_C3, removing[0] if removing else '', removing)


def label_order(scores_N3: np.ndarray, labels: Sequence[str]) -> tuple[float, tuple[int, int, int], float]:
    """How well a model agrees with labels, and how well it would if its classes had other names.

    Agreement is the mean over the classes of the share of pairs that get their label, so a model or data with one
    frequent class is no better for it.

    Args:
      scores_N3: of (premise, hypothesis).
      labels: of CLASSES.

    Returns:
      (agreement, order, agreement of `scores_N3[:, order]`), where order is the best of the six; of equals the first,
      and the one as it is before all others.
    """
    given, wanted = np.asarray(scores_N3).argmax(1), np.array([CLASSES.index(label) for label in labels])
    counts = np.zeros((3, 3))
    np.add.at(counts, (wanted, given), 1)
    present = counts.sum(1) > 0
    shares = counts[present] / counts[present].sum(1, keepdims=True)
    classes = np.flatnonzero(present)
    found = {
        order: float(np.mean([row[order[i]] for i, row in zip(classes, shares)])) if len(classes) else 0.0
        for order in itertools.permutations(range(3))
    }
    best = max(found, key=found.get)
    return found[0, 1, 2], best, found[best]


def check_order(scores_N3: np.ndarray, labels: Sequence[str], id2label: Sequence[str] = ()) -> None:
    """Finds a config.json with the classes in a wrong order.

    Fewer than 100 pairs, or than 10 of a class, say nothing.

    Args:
      scores_N3: of (premise, hypothesis), in the order of CLASSES as the config has it.
      labels: of these pairs, of CLASSES.
      id2label: classes, of CLASSES, by the model's outputs, as the config has them; for the message.

    Raises:
      ValueError: another order agrees better with the labels, by more than .2.
    """
    if len(labels) < _LEAST or min(list(labels).count(label) for label in CLASSES) < _LEAST_OF_A_CLASS:
        return
    stated, order, best = label_order(scores_N3, labels)
    if best <= stated + _BETTER:
        return
    means = {CLASSES[order[i]]: label for i, label in enumerate(CLASSES)}  # what it calls so -> what that is
    told = ', '.join(f'what it calls {called} is {is_}' for called, is_ in means.items() if called != is_)
    right = ', '.join(f'"{i}": "{means[label]}"' for i, label in enumerate(id2label))
    raise ValueError(
        f'the NLI model agrees with {stated:.1%} of the labels of {len(labels):,} pairs (mean over the classes) as its '
        f'config.json names the classes, and with {best:.1%} in another order: {told}.'
        + (f' id2label should be {{{right}}}' if right else ' Correct id2label in config.json')
    )
