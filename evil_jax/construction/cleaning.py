"""What filters say of pairs."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from evil_jax.construction._filter import Filter
from evil_jax.construction.pairs import Pair

CHUNK = 20_000


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
