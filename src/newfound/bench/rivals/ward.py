"""The cut of Ward's tree that agrees best with the labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from newfound.arrays import ArrayLike, Floats, Ints, LabelsLike, RandomStateLike
from newfound.bench.rivals.rival_input import prepare_input, require_labels
from newfound.labels import UNLABELLED
from newfound.mixture.alternatives import cut_tree, ward_merges
from newfound.mixture.kmeans import group_free_rows

#: More rows than this are grouped by k-means before Ward's tree is built.
N_WARD_LEAVES = 6000


def ward_labelled_score(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Cut Ward's tree where the labelled rows agree best with it.

    Choi et al., "Contrastive Mean-Shift Learning for Generalized Category Discovery" (CVPR
    2024), choose the K of agglomerative clustering by its score on rows with labels. Their code
    also scores rows of the unlabelled part by their true labels; here only the labelled rows are
    scored. Among equally good K the largest is chosen, as in `brent_search`.

    Parameters
    ----------
    X, y, n_max
        As in `brent_search`.
    random_state : int, RandomState or None, default=None
        Seed of the grouping of rows, which is done only for more than 6,000 rows.

    Returns
    -------
    int
        K^n.
    """
    rows = prepare_input(X, y, n_max, random_state)
    require_labels(rows, "ward_labelled_score")
    free = np.full(len(rows.V), UNLABELLED)
    generator = np.random.RandomState(rows.seed)
    leaves = group_free_rows(rows.V, free, 0, N_WARD_LEAVES, generator)
    best, best_accuracy = rows.n_known, -1.0
    for n_total, groups in nested_partitions(rows.V, leaves, rows.n_max):
        if n_total < rows.n_known:
            break
        accuracy = rows.accuracy(groups[leaves])
        # K falls from n_max, so `>` keeps the largest of equally good K
        if accuracy > best_accuracy:
            best, best_accuracy = n_total, accuracy
    return rows.novel(best)


def nested_partitions(V: Floats, leaves: Ints, n_max: int) -> Iterator[tuple[int, Ints]]:
    """Cut Ward's tree of groups of rows at every K from `n_max` to 1.

    Parameters
    ----------
    V : ndarray of shape (n, d)
        Rows.
    leaves : ndarray of int, shape (n,)
        Group of each row.
    n_max : int
        Largest K.

    Yields
    ------
    int, ndarray of shape (n_groups,)
        K, and the cluster of each group: K different numbers, not without gaps.
    """
    counts = np.bincount(leaves).astype(np.float64)
    means = np.zeros((len(counts), V.shape[1]))
    np.add.at(means, leaves, V)
    merges = sorted(ward_merges(means / counts[:, None], counts, 0))
    n_total = min(n_max, len(counts))
    labels = cut_tree(merges, len(counts), n_total)
    for _, first, second in merges[len(counts) - n_total :]:
        yield n_total, labels
        labels = np.where(labels == labels[second], labels[first], labels)
        n_total -= 1
    yield n_total, labels
