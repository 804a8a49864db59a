"""Lloyd's iterations with pinned rows: the inner loop of semi-supervised k-means (Sec. 3.2).

Labelled rows are pinned: they stay in the cluster of their class, whatever centre is nearest.
All other rows are free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from newfound.arrays import Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.rows import (
    assign_and_sum,
    content_order,
    row_blocks,
    row_keys,
    squared_distances,
    squared_to_own,
    sum_by_label,
)


@dataclass(frozen=True)
class PinnedRows:
    """Rows to cluster; the labelled ones are pinned. The same object serves every start.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Rows.
    weights : ndarray of shape (n,)
        Weight of each row.
    codes : ndarray of int, shape (n,)
        Class of each row, -1 if it is free.
    n_known : int
        K^l, the number of known classes.
    known_sums : ndarray of shape (K^l, d)
        Weighted sum of the labelled rows of each class. These rows never change cluster, so they
        are added up only once.
    known_weights : ndarray of shape (K^l,)
        Total weight of these rows.
    free : ndarray of int, shape (n_free,)
        Positions of the free rows, sorted by content.
    order : ndarray of int, shape (n,)
        Positions of all rows, sorted by content.
    """

    X: Floats
    weights: Floats
    codes: Ints
    n_known: int
    known_sums: Floats
    known_weights: Floats
    free: Ints
    order: Ints

    @classmethod
    def of(
        cls,
        X: Floats,
        codes: Ints,
        n_known: int,
        *,
        weights: Floats | None = None,
        order: Ints | None = None,
    ) -> PinnedRows:
        """Sort the rows by content and add up the labelled ones; weights are 1 by default.

        If X is derived from other rows, give the `order` of these. Draws follow the order, and
        must not depend on the last digits of X.
        """
        weights = np.ones(len(X), X.dtype) if weights is None else weights
        order = content_order(row_keys(X), codes) if order is None else order
        labelled, free = order[codes[order] != UNLABELLED], order[codes[order] == UNLABELLED]
        known_sums = np.zeros((n_known, X.shape[1]))
        for block in row_blocks(len(labelled), X.shape[1]):
            rows = labelled[block]
            known_sums += sum_by_label(X[rows], codes[rows], n_known, weights[rows])
        known_weights = np.bincount(codes[labelled], weights[labelled], minlength=n_known)
        return cls(X, weights, codes, n_known, known_sums, known_weights, free, order)

    @cached_property
    def mean_variance(self) -> float:
        """Variance of a column, averaged over the columns; the scale of the tolerance."""
        X, weights = self.X, self.weights
        whole = np.zeros(len(X), dtype=np.int64)
        total = float(weights.sum(dtype=np.float64)) or 1.0
        mean = sum_by_label(X, whole, 1, weights) / total
        squared = squared_distances(X, mean.astype(X.dtype))[:, 0]
        return float(np.dot(squared.astype(np.float64), weights)) / total / X.shape[1]

    @property
    def rounding(self) -> float:
        """Squared distances up to this are due to rounding: the two rows are equal."""
        return float(np.finfo(self.X.dtype).eps) * self.mean_variance

    def class_means(self) -> Floats:
        """Mean of the labelled rows of each class; the plain mean if all their weights are 0."""
        weights = self.known_weights[:, None]
        means = self.known_sums / np.where(weights > 0, weights, 1)
        for code in np.flatnonzero(self.known_weights <= 0):
            means[code] = self.X[self.codes == code].mean(axis=0)
        return means


class Partition(NamedTuple):
    """Clusters of all rows, as one start found them."""

    labels: Ints  # (n,)
    centres: Floats  # (K, d)
    inertia: float
    n_iter: int


def run_lloyd(pinned: PinnedRows, centres: Floats, max_iter: int, threshold: float) -> Partition:
    """Alternate assignment and means until the centres rest.

    A novel cluster that loses all its rows is restarted at the row farthest from its centre.

    Parameters
    ----------
    pinned : PinnedRows
        Rows.
    centres : ndarray of shape (K, d)
        Centres to start from, known classes first.
    max_iter : int
        Maximum number of iterations.
    threshold : float
        Stop when the squared movement of all centres together is not larger than this.

    Returns
    -------
    Partition
        Labels that belong to the final centres, and their inertia.
    """
    labels = pinned.codes
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        previous = labels
        labels, sums, weights = _assign(pinned, centres)
        moved = _means(pinned, centres, labels, sums, weights)
        shift = float(((moved - centres) ** 2).sum())
        centres = moved
        if shift <= threshold or np.array_equal(previous, labels):
            break
    # the centres have moved since the last assignment
    if not np.array_equal(previous, labels):
        labels, _, _ = _assign(pinned, centres)
    loss = squared_to_own(pinned.X, centres, labels) * pinned.weights
    # summed in content order: starts that tie must tie whatever the order of the rows
    return Partition(labels, centres, float(loss[pinned.order].sum()), n_iter)


def _assign(pinned: PinnedRows, centres: Floats) -> tuple[Ints, Floats, Floats]:
    """Labels of all rows; weighted sum and total weight of the rows of each cluster."""
    labels = pinned.codes.copy()
    labels[pinned.free], sums, weights = assign_and_sum(
        pinned.X, pinned.free, centres, pinned.weights
    )
    sums[: pinned.n_known] += pinned.known_sums
    weights[: pinned.n_known] += pinned.known_weights
    return labels, sums, weights


def _means(
    pinned: PinnedRows, centres: Floats, labels: Ints, sums: Floats, weights: Floats
) -> Floats:
    """Move the centres; an empty cluster moves to the free row with the largest loss."""
    empty = np.flatnonzero(weights[pinned.n_known :] <= 0) + pinned.n_known
    if len(empty) and len(pinned.free):
        loss = (squared_to_own(pinned.X, centres, labels) * pinned.weights)[pinned.free]
        worst = pinned.free[np.argsort(-loss, kind="stable")[: len(empty)]]
        # not a row that lies on its centre: the new cluster would duplicate the old one
        worst = worst[: np.count_nonzero(loss > pinned.rounding)]
        empty = empty[: len(worst)]
        moved = pinned.X[worst] * pinned.weights[worst, None]
        np.subtract.at(sums, labels[worst], moved)
        np.subtract.at(weights, labels[worst], pinned.weights[worst])
        sums[empty], weights[empty] = moved, pinned.weights[worst]
    # subtraction above may leave a rounding error instead of 0
    filled = weights > 1e-12 * weights.max(initial=0)
    means = centres.copy()
    means[filled] = sums[filled] / weights[filled, None]
    return means
