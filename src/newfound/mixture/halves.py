"""The two sub-components of every component, by 2-means inside each (Sec. 3.2)."""

from __future__ import annotations

import numpy as np

from newfound.arrays import Doubles, Floats, Ints
from newfound.mixture.rows import row_blocks, sum_by_label

#: Maximum rounds of 2-means and of the power iteration. Halves are proposals: near is enough.
_MAX_ITERATIONS = 20


def halve(V: Floats, labels: Ints, scatter: Doubles, mean: Doubles, chosen: Ints) -> Ints:
    """Divide each chosen component into two halves.

    2-means starts from the two sides of the component's first principal axis (deviation D5).
    No starting points are drawn, so that the same rows give the same halves. All components are
    halved at the same time.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows.
    labels : ndarray of shape (n,)
        Component of each row.
    scatter : ndarray of shape (K, q, q)
        Scatter of every component.
    mean : ndarray of shape (K, q)
        Mean of every component.
    chosen : ndarray of int, shape (C,)
        The components to halve.

    Returns
    -------
    ndarray of shape (n,)
        ``2 * i + side`` for a row of the component ``chosen[i]``, -1 for all other rows. A side
        is empty if all rows of a component are equal.
    """
    slot_of = np.full(len(mean), -1, dtype=np.int64)
    slot_of[chosen] = np.arange(len(chosen))
    slots = slot_of[labels]
    halves = np.full(len(labels), -1, dtype=np.int64)
    rows = np.flatnonzero(slots >= 0)
    slots = slots[rows]
    direction = _principal_axes(scatter[chosen])
    middle = mean[chosen]
    sides = np.zeros(len(rows), dtype=np.int64)
    for _ in range(_MAX_ITERATIONS):
        # of two centres, the nearer one is on the same side of the plane halfway between them
        threshold = np.einsum("ij,ij->i", direction, middle)
        previous, sides = sides, _sides(V, rows, slots, direction, threshold)
        if np.array_equal(previous, sides):
            break
        centres = _side_means(V, rows, 2 * slots + sides, len(chosen))
        direction = centres[:, 1] - centres[:, 0]
        middle = centres.mean(axis=1)
    halves[rows] = 2 * slots + sides
    return halves


def _sides(V: Floats, rows: Ints, slots: Ints, direction: Doubles, threshold: Doubles) -> Ints:
    """1 for the rows beyond the threshold along the direction of their component, else 0."""
    sides = np.empty(len(rows), dtype=np.int64)
    for block in row_blocks(len(rows), V.shape[1]):
        along = np.einsum("ij,ij->i", V[rows[block]], direction[slots[block]])
        sides[block] = along > threshold[slots[block]]
    return sides


def _side_means(V: Floats, rows: Ints, sub_labels: Ints, n_chosen: int) -> Doubles:
    """Means of both sides, shape (n_chosen, 2, q); an empty side has the mean of the other."""
    counts = np.bincount(sub_labels, minlength=2 * n_chosen).reshape(n_chosen, 2)
    sums = np.zeros((2 * n_chosen, V.shape[1]))
    for block in row_blocks(len(rows), V.shape[1]):
        ones = np.ones(len(sub_labels[block]), V.dtype)
        sums += sum_by_label(V[rows[block]], sub_labels[block], 2 * n_chosen, ones)
    means = sums.reshape(n_chosen, 2, -1) / np.maximum(counts, 1)[:, :, None]
    for side in (0, 1):
        empty = counts[:, side] == 0
        means[empty, side] = means[empty, 1 - side]
    return means


def _principal_axes(scatter: Doubles) -> Doubles:
    """First principal axis of each scatter matrix by power iteration, shape (C, q)."""
    # a fixed start, so that the same rows give the same axis
    widest = np.diagonal(scatter, axis1=1, axis2=2).argmax(axis=1)
    axes = scatter[np.arange(len(scatter)), widest]
    for _ in range(_MAX_ITERATIONS):
        norms = np.linalg.norm(axes, axis=1, keepdims=True)
        axes = np.matmul(scatter, (axes / np.where(norms > 0, norms, 1))[:, :, None])[:, :, 0]
    return axes
