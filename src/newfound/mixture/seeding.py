"""Where semi-supervised k-means starts: class means, then k-means++ among the free rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from newfound.arrays import Floats, Ints
from newfound.mixture.lloyd import PinnedRows
from newfound.mixture.rows import (
    nearest_centre,
    recompute_cancelled,
    row_blocks,
    squared_distances,
    squared_to_own,
)

#: A copy of the free rows, shifted to their mean, is kept in memory if it is not larger than this.
_KEPT_BYTES = 2**28
#: Squared distances of equal rows may be this many times the rounding error of a column.
_CANCELLED = 64


def seed_centres(
    pinned: PinnedRows,
    n_clusters: int,
    random_state: np.random.RandomState,
    squared_to: Callable[[Ints], Floats],
) -> Floats:
    """Start from the class means and draw the other centres by greedy k-means++.

    The distance of each free row to its nearest centre is kept and lowered by each new centre,
    so that K centres cost K × n distances and not K² × n.

    Parameters
    ----------
    pinned : PinnedRows
        Rows.
    n_clusters : int
        K, at least K^l.
    random_state : RandomState
        Draws the candidates.
    squared_to : callable
        From `distances_to_free`; shared by all starts.

    Returns
    -------
    ndarray of shape (K, d)
        Centres, known classes first; fewer than K if every free row lies on one of them.
    """
    X, weights = pinned.X, pinned.weights[pinned.free].astype(np.float64)
    centres = np.empty((n_clusters, X.shape[1]))
    n_set = pinned.n_known
    centres[:n_set] = pinned.class_means()
    n_trials = 2 + int(np.log(n_clusters))  # as many candidates as scikit-learn takes
    closest = np.ones(len(pinned.free))  # without a class mean, the first draw is by weight alone
    if n_set:
        closest = _squared_to_nearest(pinned, centres[:n_set])
    while n_set < n_clusters:
        if n_set and closest.max(initial=0) <= _CANCELLED * X.shape[1] * pinned.rounding:
            closest = _without_rounding(pinned, centres[:n_set])
        cumulated = (weights * closest).cumsum()
        if len(cumulated) == 0 or cumulated[-1] <= 0:
            # every free row already lies on a centre: further clusters would stay empty
            return centres[:n_set] if n_set else X.mean(axis=0, keepdims=True)
        draws = random_state.random_sample(n_trials) * cumulated[-1]
        places = np.searchsorted(cumulated, draws, side="right").clip(max=len(cumulated) - 1)
        lowered = squared_to(places)
        if n_set:
            np.minimum(lowered, closest[:, None], out=lowered)
        best = int((weights @ lowered).argmin())
        closest = lowered[:, best]
        centres[n_set] = X[pinned.free[places[best]]]
        n_set += 1
    return centres


def distances_to_free(pinned: PinnedRows) -> Callable[[Ints], Floats]:
    """Return a function that measures how far all free rows are from some of them.

    It takes the places of some free rows among all free rows, and returns the squared distance of
    every free row to each of them, shape (n_free, n_places).
    """
    X, free = pinned.X, pinned.free
    if len(free) * X.shape[1] * X.itemsize > _KEPT_BYTES:

        def read_again(places: Ints) -> Floats:
            squared = np.empty((len(free), len(places)), dtype=X.dtype)
            for block in row_blocks(len(free), X.shape[1]):
                squared[block] = squared_distances(X[free[block]], X[free[places]])
            return squared

        return read_again
    rows = X[free]
    # rows are centred first: far from the origin, |x|² - 2x·c + |c|² would lose precision
    rows -= (rows.sum(axis=0, dtype=np.float64) / max(1, len(rows))).astype(rows.dtype)
    norms = np.einsum("ij,ij->i", rows, rows)[:, None]

    def by_one_product(places: Ints) -> Floats:
        squared = rows @ rows[places].T
        squared *= -2
        squared += norms
        squared += norms[places].T
        recompute_cancelled(squared, norms, rows, rows[places])
        return squared

    return by_one_product


def _squared_to_nearest(pinned: PinnedRows, centres: Floats) -> Floats:
    """Squared distance of each free row to the nearest of the centres, shape (n_free,)."""
    squared = np.empty(len(pinned.free), dtype=pinned.X.dtype)
    for block in row_blocks(len(pinned.free), pinned.X.shape[1]):
        rows = pinned.X[pinned.free[block]]
        squared[block] = nearest_centre(rows, centres.astype(rows.dtype))[1]
    return squared


def _without_rounding(pinned: PinnedRows, centres: Floats) -> Floats:
    """`_squared_to_nearest` by plain differences; 0 for rows that lie on their centre."""
    rows = pinned.X[pinned.free]
    labels = nearest_centre(rows, centres.astype(rows.dtype))[0]
    squared = squared_to_own(rows, centres, labels)
    return np.where(squared > pinned.rounding, squared, 0)
