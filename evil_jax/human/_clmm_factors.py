"""The curvature of crossed random effects: H = 1 + sum over rows of weight * z z', where z of a row has the deviation
of each factor at the row's level of it and 0 elsewhere.

Levels of one factor never meet in a row, so the block of the largest factor is diagonal and is eliminated: what is left
is dense, but only as large as the levels of all other factors together. Nothing is ever as large as rows by rows.
"""

import numpy as np
from scipy import linalg, sparse


class Factors:
    """Random factors, the largest first.

    Args:
      index_FN: for each factor the level numbers of the rows.
      sizes: number of levels of each factor.
    """

    def __init__(self, index_FN, sizes):
        self.index = [np.asarray(index, np.int64) for index in index_FN]
        self.sizes = list(sizes)
        self.rest = sum(self.sizes[1:])
        # Columns of the rows in the part that is left.
        starts = np.cumsum([0, *self.sizes[1:]])
        self.columns = [index + start for index, start in zip(self.index[1:], starts)]
        if self.columns:
            self._cross = _Pattern(
                np.concatenate([self.index[0]] * len(self.columns)), np.concatenate(self.columns), self.rest
            )
            self._pairs = {
                (f, g): _Pattern(self.columns[f], self.columns[g], self.rest)
                for f in range(len(self.columns))
                for g in range(f)
            }

    def spread(self, effects, scale):
        """Sum over factors of scale * effect at the level of each row [N]; `effects` is one vector a factor."""
        return sum(s * e[index] for s, e, index in zip(scale, effects, self.index))

    def gather(self, rows_N):
        """Sums of the rows of each level, one vector a factor."""
        return [np.bincount(index, rows_N, size) for index, size in zip(self.index, self.sizes)]

    def curvature(self, weight_N, deviation):
        """H at these weights of the rows and standard deviations of the factors."""
        return Curvature(self, weight_N, deviation)


class Curvature:
    """H, factorised; see `Factors.curvature`.

    Attributes:
      log_det: log |H|.
    """

    def __init__(self, factors, weight_N, deviation):
        self.factors = factors
        self.deviation = deviation
        sums = factors.gather(weight_N)
        self.first = 1 + deviation[0] ** 2 * sums[0]  # the diagonal block
        self.log_det = float(np.log(self.first).sum())
        if not factors.rest:
            return
        self.cross = factors._cross.matrix(np.concatenate([deviation[0] * d * weight_N for d in deviation[1:]]))
        left = np.diag(np.concatenate([1 + d**2 * s for d, s in zip(deviation[1:], sums[1:])]))
        for (f, g), pattern in factors._pairs.items():
            rows, columns, values = pattern.entries(deviation[1 + f] * deviation[1 + g] * weight_N)
            left[rows, columns] = values
            left[columns, rows] = values
        scaled = sparse.csr_array(
            (
                self.cross.data / np.repeat(self.first, np.diff(self.cross.indptr)),
                self.cross.indices,
                self.cross.indptr,
            ),
            shape=self.cross.shape,
        )
        left -= (self.cross.T @ scaled).toarray()
        self.left = linalg.cho_factor(left, lower=True, overwrite_a=True, check_finite=False)
        self.log_det += 2 * float(np.log(np.diag(self.left[0])).sum())

    def solve(self, effects):
        """H^-1 times a vector, given and returned as one vector a factor."""
        if not self.factors.rest:
            return [effects[0] / self.first]
        others = np.concatenate(effects[1:]) - self.cross.T @ (effects[0] / self.first)
        others = linalg.cho_solve(self.left, others, check_finite=False)
        head = (effects[0] - self.cross @ others) / self.first
        return [head, *np.split(others, np.cumsum(self.factors.sizes[1:])[:-1])]

    def row_covariances(self):
        """Of factor f and each row, [F, N]: sum over factors g of deviation_g * H^-1 at the row's levels of f and g."""
        index, columns = self.factors.index, self.factors.columns
        if not self.factors.rest:
            return np.stack([self.deviation[0] / self.first[index[0]]])
        inverse = linalg.cho_solve(self.left, np.eye(self.factors.rest), check_finite=False)
        between = -(self.cross @ inverse) / self.first[:, None]  # H^-1 of the first factor and the others
        head = 1 / self.first - (self.cross * between).sum(1) / self.first
        found = np.zeros((len(index), len(index[0])))
        found[0] += self.deviation[0] * head[index[0]]
        for f, column in enumerate(columns):
            crossed = between[index[0], column]
            found[0] += self.deviation[1 + f] * crossed
            found[1 + f] += self.deviation[0] * crossed
            for g, other in enumerate(columns):
                found[1 + f] += self.deviation[1 + g] * inverse[column, other]
        return found


class _Pattern:
    """Which pairs of levels meet in a row; sums over the rows of each pair."""

    def __init__(self, rows, columns, width):
        pairs, self.place = np.unique(rows * width + columns, return_inverse=True)
        self.rows, self.columns = np.divmod(pairs, width)
        self.height, self.width = int(rows.max()) + 1, width
        self.starts = np.searchsorted(self.rows, np.arange(self.height + 1))

    def entries(self, values):
        return self.rows, self.columns, np.bincount(self.place, values, len(self.rows))

    def matrix(self, values):
        data = np.bincount(self.place, values, len(self.rows))
        return sparse.csr_array((data, self.columns, self.starts), shape=(self.height, self.width))
