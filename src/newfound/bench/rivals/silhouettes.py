"""The K whose k-means has the best silhouette."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import silhouette_score

from newfound.arrays import ArrayLike, LabelsLike, RandomStateLike
from newfound.bench.rivals.grid import best_on_grid
from newfound.bench.rivals.rival_input import k_means_labels, prepare_input
from newfound.mixture.rows import squared_distances

#: Rows that the silhouette is measured on.
N_SILHOUETTE_ROWS = 2000


def silhouette(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Choose the K whose k-means has the best silhouette.

    Rousseeuw (1987), "Silhouettes". All rows are clustered by k-means without labels, for K on a
    geometric grid from max(2, K^l) to n_max and on a finer grid around its best point. The
    silhouette is measured on 2,000 rows.

    Parameters
    ----------
    X, n_max
        As in `brent_search`.
    y : array-like of shape (n,), optional
        Partial labels; only their number of classes K^l is used.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of the choice of rows that are measured.

    Returns
    -------
    int
        K^n.
    """
    rows = prepare_input(X, y, n_max, random_state)
    drawn = np.random.RandomState(rows.seed).permutation(len(rows.V))[:N_SILHOUETTE_ROWS]
    distances = np.sqrt(squared_distances(rows.V[drawn], rows.V[drawn]))
    np.fill_diagonal(distances, 0)

    def score(n_clusters: int) -> float:
        labels = k_means_labels(rows, n_clusters, n_starts=1)[drawn]
        if not 1 < len(np.unique(labels)) < len(labels):
            return -1.0  # the silhouette is not defined here; this is its smallest value
        return float(silhouette_score(distances, labels, metric="precomputed"))

    return rows.novel(best_on_grid(score, max(2, rows.n_known), rows.n_max))
