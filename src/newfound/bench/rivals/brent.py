"""Brent's search for the K whose k-means agrees best with the labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from newfound.arrays import ArrayLike, LabelsLike, RandomStateLike
from newfound.bench.rivals.rival_input import k_means_labels, prepare_input, require_labels

#: Evaluations of Brent's search, and starts of k-means in each.
N_EVALUATIONS, N_STARTS = 15, 5


def brent_search(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Search for the K whose plain k-means agrees best with the labelled rows.

    Vaze et al., "Generalized Category Discovery" (CVPR 2022), Sec. 3.3: cluster all rows by
    k-means without labels, measure the Hungarian accuracy on the labelled rows, and maximise it by
    Brent's bounded search over K in [K^l, n_max].

    Two things differ from their code, both in its favour. The search runs over log K: over K, its
    first steps compare values of several hundreds, where noise decides, and it often stays there
    (it found 133 for 8 on scikit-learn's digits). Among equally good K the largest is chosen,
    because no label contradicts it. Their k-means has 10 starts, this one 5.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, labelled and unlabelled rows together.
    y : array-like of shape (n,)
        Partial labels; at least one row is labelled.
    n_max : int, optional
        Largest total K. By default 1,000, or half of the rows where that is less.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Returns
    -------
    int
        K^n.
    """
    rows = prepare_input(X, y, n_max, random_state)
    require_labels(rows, "brent_search")
    k = best_k(lambda k: rows.accuracy(k_means_labels(rows, k, N_STARTS)), rows.n_known, rows.n_max)
    return rows.novel(k)


def best_k(accuracy: Callable[[int], float], least: int, largest: int) -> int:
    """The K with the highest accuracy, by Brent's search over log K; of equal ones the largest.

    Parameters
    ----------
    accuracy : callable
        Accuracy for a K.
    least, largest : int
        Bounds of K.
    """
    accuracies: dict[int, float] = {}

    def loss(log_k: float) -> float:
        k = round(np.exp(log_k))
        if k not in accuracies:
            accuracies[k] = accuracy(k)
        return -accuracies[k]

    options = {"maxiter": N_EVALUATIONS, "xatol": 0.01}
    minimize_scalar(loss, bounds=np.log([least, largest]), method="bounded", options=options)
    return max(accuracies, key=lambda k: (accuracies[k], k))
