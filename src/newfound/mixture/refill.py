"""Keep a given number of components: one that has lost all its rows gets new ones.

As in k-means, it starts again at the row that is farthest from its prototype.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from newfound.arrays import Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.assignment import nearest_labels, prototypes_of
from newfound.mixture.rows import nearest_centre, squared_to_own
from newfound.mixture.split_merge import number_components

#: Attempts to let the rows settle after components were refilled.
_MAX_ATTEMPTS = 10


def nearest_in_k(
    V: Floats, codes: Ints, labels: Ints, n_known: int, n_rounds: int, n_components: int
) -> Ints:
    """Assign rows to the nearest prototype, and keep the number of components.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows, at unit length.
    codes : ndarray of int, shape (n,)
        Known class of each row, -1 if unlabelled.
    labels : ndarray of int, shape (n,)
        Component of each row, known classes first, all below `n_components`.
    n_known : int
        K^l, the number of known classes.
    n_rounds : int
        Maximum number of rounds of `nearest_labels`.
    n_components : int
        K to keep.

    Returns
    -------
    ndarray of shape (n,)
        Component of each row, from 0 to K - 1. Some are empty if too few rows are distinct.
    """

    def assign(labels: Ints) -> Ints:
        number_of = number_components(labels, n_known, n_components)
        found = nearest_labels(V, codes, number_of[labels], n_known, n_rounds)
        return np.flatnonzero(number_of >= 0)[found]

    return keep_k(assign, V, codes, assign(labels), n_known, n_components)


def keep_k(
    assign: Callable[[Ints], Ints],
    V: Floats,
    codes: Ints,
    labels: Ints,
    n_known: int,
    n_components: int,
) -> Ints:
    """Refill empty components and assign the rows again, until none is empty.

    Parameters are those of `nearest_in_k`; `assign` takes labels and returns new ones. If some
    component loses its rows again and again, the rows stay where the last refill has put them.
    """
    for _ in range(_MAX_ATTEMPTS):
        filled = refill_empty(V, codes, labels, n_known, n_components)
        if np.array_equal(filled, labels):
            return labels
        labels = assign(filled)
    return refill_empty(V, codes, labels, n_known, n_components)


def refill_empty(V: Floats, codes: Ints, labels: Ints, n_known: int, n_components: int) -> Ints:
    """Fill each empty novel component with rows that are far from their prototype.

    The unlabelled row that is farthest from its prototype goes to the empty component, and with it
    all unlabelled rows of the same component that are nearer to this row than to the prototype.
    Components stay empty if all unlabelled rows lie on their prototypes.
    """
    empty = np.flatnonzero(np.bincount(labels, minlength=n_components) == 0)
    empty = empty[empty >= n_known]
    if len(empty) == 0:
        return labels
    labels, is_free = labels.copy(), codes == UNLABELLED
    squared = squared_to_own(V, prototypes_of(V, codes, labels, n_known), labels)
    squared[~is_free] = 0
    for component in empty:
        farthest = int(squared.argmax())
        # at unit length, rows that are nearer to each other than this differ by rounding only
        if squared[farthest] <= np.finfo(V.dtype).eps:
            break
        donor = int(labels[farthest])
        rows = np.flatnonzero(is_free & (labels == donor))
        moves = np.square(V[rows] - V[farthest]).sum(axis=1) < squared[rows]
        labels[rows[moves]] = component
        parts = [rows[moves]] if donor < n_known else [rows[moves], rows[~moves]]
        for part in parts:  # the prototype of a known class does not move
            squared[part] = np.square(V[part] - V[part].mean(axis=0)).sum(axis=1)
    return labels


def give_up_smallest(V: Floats, codes: Ints, labels: Ints, n_known: int, n_components: int) -> Ints:
    """Leave `n_components` components; rows of the smallest novel ones go to the nearest others.

    Labels have no gaps, before and after.
    """
    sizes = np.bincount(labels, minlength=n_known)
    by_size = n_known + np.argsort(-sizes[n_known:], kind="stable")
    kept = np.concatenate([np.arange(n_known), np.sort(by_size[: n_components - n_known])])
    is_lost = ~np.isin(labels, kept)
    if not is_lost.any():
        return labels
    centres = prototypes_of(V, codes, labels, n_known)[kept].astype(V.dtype)
    labels = labels.copy()
    labels[is_lost] = kept[nearest_centre(V[is_lost], centres)[0]]
    return number_components(labels, n_known)[labels]
