"""Search for the best K on a geometric grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Points of the coarse grid of K, and of the fine one around its best point.
N_COARSE, N_FINE = 16, 8


def best_on_grid(
    score: Callable[[int], float], low: int, high: int, n_worse: int | None = None
) -> int:
    """The K with the highest score on a geometric grid, refined once around its best point.

    Parameters
    ----------
    score : callable
        Gives the score of a K.
    low, high : int
        Ends of the grid.
    n_worse : int, optional
        Stop the coarse grid after this many points in a row that do not improve on the best.
    """
    scores: dict[int, float] = {}
    best = low
    for k in _grid(low, high, N_COARSE):
        scores[k] = score(k)
        best = max(scores, key=scores.__getitem__)
        # fits take longer as K grows, so the grid stops when scores only get worse
        if n_worse is not None and len(scores) - list(scores).index(best) > n_worse:
            break
    tried = list(scores)
    place = tried.index(best)
    for k in _grid(tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)], N_FINE + 2):
        if k not in scores:
            scores[k] = score(k)
    return max(sorted(scores), key=scores.__getitem__)


def _grid(low: int, high: int, n_points: int) -> list[int]:
    """Whole numbers from low to high in about equal ratios."""
    points = np.geomspace(low, max(low, high), n_points).round().astype(int)
    grid: list[int] = np.unique(points).tolist()
    return grid
