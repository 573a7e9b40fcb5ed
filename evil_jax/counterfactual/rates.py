"""Shares of rows by group, with intervals that know that rows of one image belong together."""

from collections.abc import Callable
from typing import Any

import numpy as np

from evil_jax import stats
from evil_jax.counterfactual import intervals


def by_group(hits_N, group_N, image_N, groups: int) -> list[dict[str, Any]]:
    """One row a group: Wilson's 95 % interval at the effective sample size (intervals.py), images being the clusters.

    Args:
      hits_N: bool, of N rows.
      group_N: group of each row, 0 to groups - 1.
      image_N: int code of each row's image.
      groups: number of groups.

    Returns:
      `{'k', 'n', 'images', 'value', 'ci95'}` each: hits, rows, their images, and the share; None where n is 0.
    """
    group_N, image_N = np.asarray(group_N, np.int64), np.asarray(image_N, np.int64)
    span = int(image_N.max(initial=0)) + 1
    cells, cell_N = np.unique(group_N * span + image_N, return_inverse=True)
    n_C = np.bincount(cell_N, minlength=len(cells))
    k_C = np.bincount(cell_N, np.asarray(hits_N, np.float64), len(cells))
    group_C = cells // span
    k_G, n_G = (np.bincount(group_C, x, groups) for x in (k_C, n_C))
    effective_G = intervals.effective_n(k_C, n_C, group_C, groups)
    low_G, high_G = stats.wilson(k_G * effective_G / np.maximum(n_G, 1), effective_G)
    images_G = np.bincount(group_C, minlength=groups)
    return [
        {
            'k': int(k),
            'n': int(n),
            'images': int(images),
            'value': float(k / n) if n else None,
            'ci95': [float(low), float(high)] if n else None,
        }
        for k, n, images, low, high in zip(k_G, n_G, images_G, low_G, high_G)
    ]


def of(hits_N, image_N) -> dict[str, Any]:
    """The share of all rows."""
    return by_group(hits_N, np.zeros(len(image_N), np.int64), image_N, 1)[0]


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray], images: int, seed: int, resamples: int) -> list | None:
    """[low, high] of `stats.bootstrap` over images; None of a single one, or without resamples."""
    ci = stats.bootstrap(statistic, images, seed=seed, resamples=resamples) if images > 1 and resamples else None
    return ci and list(ci)
