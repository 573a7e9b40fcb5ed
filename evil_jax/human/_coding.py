"""Names of levels -> columns: treatment coding of fixed factors, numbered levels of random ones, and their faults."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

INTERCEPT = '(Intercept)'


@dataclasses.dataclass(frozen=True, slots=True)
class Grouping:
    """A random factor: `index` [n] says which of `levels` each row has."""

    name: str
    index: np.ndarray
    levels: tuple[Hashable, ...]


def grouping(name: str, values: Sequence[Hashable], n: int) -> Grouping:
    """Numbers the levels of a factor in the order of their first row.

    Raises:
      ValueError: another length than `n`.
    """
    if len(values) != n:
        raise ValueError(f'{name}: {len(values)} values for {n} ratings')
    place = {level: i for i, level in enumerate(dict.fromkeys(values))}
    return Grouping(name, np.fromiter((place[value] for value in values), np.int64, n), tuple(place))


def treatment(
    fixed: Mapping[str, Sequence[Hashable]], levels: Mapping[str, Sequence[Hashable]], n: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Columns [n, p] and their names: '(Intercept)', and factor + level, as R writes it, of all levels but the first.

    Args:
      fixed: {factor: its level in each row}.
      levels: {factor: its levels}; those that no row has are left out. Factors that are not there: sorted.
      n: rows.

    Raises:
      ValueError: a factor of another length, or a value that is not among the levels.
    """
    columns, names = [np.ones(n)], [INTERCEPT]
    for factor, values in fixed.items():
        found = grouping(factor, values, n)
        known = list(levels.get(factor, sorted(found.levels, key=str)))
        if strange := [level for level in found.levels if level not in known]:
            raise ValueError(f'{factor} is {strange[0]!r}, wanted one of {", ".join(map(str, known))}')
        place = {level: i for i, level in enumerate(found.levels)}
        for level in [level for level in known if level in place][1:]:
            columns.append((found.index == place[level]).astype(np.float64))
            names.append(f'{factor}{level}')
    return np.stack(columns, 1), tuple(names)


def why_not(fixed: Mapping[str, Sequence[Hashable]], x_NP: np.ndarray, random: Sequence[Grouping]) -> str | None:
    """Why no model can tell these factors' effects apart, or None."""
    n, p = x_NP.shape
    for factor, values in fixed.items():
        if len(set(values)) == 1:
            return f'{factor} is {values[0]!r} everywhere: nothing to compare it with'
    if np.linalg.matrix_rank(x_NP) < p:
        return f'{" and ".join(fixed)} cannot be told apart: each is known from the others'
    split = {}
    for group in random:
        if len(group.levels) < 2:
            return f'{group.name} is {group.levels[0]!r} everywhere: its effects cannot be told from the mean'
        if len(group.levels) == n:
            return f'{group.name} is another in each of {n} rows: its effects cannot be told from noise'
        # Levels are numbered in the order of their rows, so factors that split the rows alike have the same numbers.
        other = split.setdefault(group.index.tobytes(), group.name)
        if other != group.name:
            return f'{group.name} and {other} split the rows alike: their effects cannot be told apart'
        if len(group.levels) <= p:
            shown = np.eye(len(group.levels))[group.index]
            if np.abs(shown - x_NP @ np.linalg.lstsq(x_NP, shown)[0]).max() < 1e-9:
                return f'{group.name} is known from {" and ".join(fixed)}: its effects cannot be told apart'
    return None
