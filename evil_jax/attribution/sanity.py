"""Does a heat map depend on the model, and on the class? (Adebayo et al., NeurIPS 2018, arXiv 1810.03292)

Model randomisation: parameters are drawn anew, all at once or group by group from the head down, and the maps compared
with those of the trained model. A method whose maps stay the same explains the input, not the model. Class sensitivity:
the maps of the likeliest and of the least likely class are compared; a method whose maps are the same for both says
nothing about a class.

    for name, found in randomise(maps, trained, fresh, head_down(trained)):
        rows[name] = summarise(found, images=ids)

`maps` makes arrays of relevance from parameters, `{path: array} -> values_NS`, with the targets held fixed: those of
the trained model. Parameters are dicts by path, such as 'layers/0/attention/query/kernel'.

Legend: N examples, S items of a map, A classes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from evil_jax.attribution import curves

ALL_AT_ONCE = (('all', ''),)
_HEAD = r'(task/)?(head|head_vcr|answer|pooler|norm)/'
_LAYER = re.compile(r'(?:task/)?layers/(\d+)/')


def head_down(paths) -> tuple[tuple[str, str], ...]:
    """Groups of a cascade for our models, (name, path regex) each: the head, layers from the last one, the input."""
    layers = sorted({int(found[1]) for found in map(_LAYER.match, paths) if found}, reverse=True)
    return (('head', _HEAD), *((f'layers/{l}', rf'(task/)?layers/{l}/') for l in layers), ('input', ''))


def cascade(trained: Mapping, fresh: Mapping, groups: Sequence[tuple[str, str]]) -> Iterator[tuple[str, dict]]:
    """Yields (name of the group, parameters): those of this group and of all before it are fresh.

    Args:
      trained, fresh: {path: array}; the fresh ones are initial values of another seed.
      groups: (name, regex that a path begins with), first match wins; '' takes what is left. Groups without a parameter
        are left out.

    Raises:
      ValueError: other paths or shapes in one than in the other, parameters that no group takes.
    """
    if differing := sorted(trained.keys() ^ fresh.keys()):
        raise ValueError(f'parameters of the trained or the fresh model only: {", ".join(differing)}')
    if other := [path for path in trained if np.shape(trained[path]) != np.shape(fresh[path])]:
        path = other[0]
        raise ValueError(f'{path} has shape {np.shape(trained[path])}, the fresh one {np.shape(fresh[path])}')
    group_of = {path: next((i for i, g in enumerate(groups) if re.match(g[1], path)), None) for path in trained}
    if left := [path for path, group in group_of.items() if group is None]:
        raise ValueError(f'no group of the cascade takes {", ".join(left)}')
    for i, (name, _) in enumerate(groups):
        if i in group_of.values():
            yield name, {path: fresh[path] if group_of[path] <= i else trained[path] for path in trained}


def randomise(
    maps: Callable, trained: Mapping, fresh: Mapping, groups=ALL_AT_ONCE, *, valid_NS=None, top: float = 0.1
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yields (name of the group, similarity of maps to those of the trained model) as `cascade` goes down.

    The last step of a cascade is the model with all parameters redrawn.

    Args:
      maps: `{path: array} -> values_NS`.
      trained, fresh, groups: see `cascade`.
      valid_NS, top: see `similarity`.
    """
    reference_NS = np.asarray(maps(trained))
    for name, parameters in cascade(trained, fresh, groups):
        yield name, similarity(reference_NS, maps(parameters), valid_NS, top)


def extremes(logits_NA) -> np.ndarray:
    """Targets of the class-sensitivity check, int N2: the likeliest and the least likely class."""
    logits_NA = np.asarray(logits_NA)
    return np.stack([logits_NA.argmax(1), logits_NA.argmin(1)], axis=1)


def similarity(a_NS, b_NS, valid_NS=None, top: float = 0.1) -> dict[str, np.ndarray]:
    """How alike two maps of each example are, float64 N each; NaN where one of them is the same everywhere.

    spearman: rank correlation of the values; absolute: of their absolute values.
    overlap: share that the most relevant items of both have in common; by chance `top`. Ties: the lower index first.

    Args:
      valid_NS: items that an example has; None: all.
      top: share of its items, at least one.

    Raises:
      ValueError: maps of different shapes, a share outside (0, 1].
    """
    a_NS, b_NS = np.asarray(a_NS, np.float64), np.asarray(b_NS, np.float64)
    if a_NS.shape != b_NS.shape or a_NS.ndim != 2:
        raise ValueError(f'maps have shapes {a_NS.shape} and {b_NS.shape}, wanted examples x items in both')
    if not 0 < top <= 1:
        raise ValueError(f'top {top}: wanted a share above 0 and up to 1')
    valid_NS = np.ones(a_NS.shape, bool) if valid_NS is None else np.asarray(valid_NS, bool)
    spearman_N = curves.spearman(a_NS, b_NS, valid_NS)
    overlap_N = np.array([_overlap(a[v], b[v], top) for a, b, v in zip(a_NS, b_NS, valid_NS)])
    return {
        'spearman': spearman_N,
        'absolute': curves.spearman(np.abs(a_NS), np.abs(b_NS), valid_NS),
        'overlap': np.where(np.isnan(spearman_N), np.nan, overlap_N),
    }


def summarise(found: Mapping[str, np.ndarray], **bootstrap) -> dict[str, dict]:
    """Mean and interval of each similarity, and 'n', of how many examples it is defined; see `curves.estimate`."""
    return dict(zip(found, curves.estimate(np.stack(list(found.values()), axis=1), **bootstrap)))


def _overlap(a_S, b_S, top):
    number = max(1, int(len(a_S) * top))
    most = lambda x_S: set(np.argsort(-x_S, kind='stable')[:number].tolist())
    return len(most(a_S) & most(b_S)) / number
