"""Rows in blocks, rows by content, and the nearest of a few centres.

`nearest_centre` and `assign_and_sum` work block by block, so that memory does not grow with
rows × centres. Random draws depend on the content of a row, not on its position, so that the
order of the rows does not change a result. The same holds for the names of the classes, by
`class_order`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from newfound.arrays import Doubles, Floats, Ints, Keys
from newfound.labels import UNLABELLED
from newfound.mixture.class_order import ClassOrder

#: Bytes of one block of intermediate results; small enough to stay in a core's cache.
BLOCK_BYTES = 1 << 22


class SortedRows(NamedTuple):
    """The projected rows of one fit, sorted by content with `content_order`.

    Floating-point sums depend on the order of their terms. Sorted rows are always added up in
    the same order, so that the order of the input has no influence, down to the last bit.
    """

    V: Floats  # (n, q) projected rows
    codes: Ints  # (n,) known class of each row, numbered by content; -1 if unlabelled
    n_known: int  # K^l, the number of known classes
    keys: Keys  # (n,) hash of the content of each row before the projection
    order: Ints  # (n,) position of each row in the input
    classes: ClassOrder  # to number the known classes by name again

    @property
    def free(self) -> Ints:
        """Positions of the unlabelled rows, which are free to change their component."""
        return np.flatnonzero(self.codes == UNLABELLED)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices over `n_rows` rows, each small enough for a float64 block of `n_columns`."""
    step = max(16, BLOCK_BYTES // (8 * max(1, n_columns)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def row_keys(X: Floats) -> Keys:
    """Hash the content of each row to 64 bits; equal rows of float32 and float64 agree."""
    # a fixed seed: the same row must have the same key in every fit and on every machine
    multipliers = np.random.default_rng(0x6E6577).integers(
        1, 2**63, size=X.shape[1], dtype=np.uint64
    ) * np.uint64(2) + np.uint64(1)
    keys = np.empty(len(X), dtype=np.uint64)
    for block in row_blocks(*X.shape):
        # -0.0 and 0.0 are equal, but their bits differ; adding 0.0 turns both into 0.0
        words = (X[block].astype(np.float64) + 0.0).view(np.uint64)
        keys[block] = mix((mix(words) * multipliers).sum(axis=1, dtype=np.uint64))
    return keys


def content_order(keys: Keys, codes: Ints | None = None) -> Ints:
    """Sort rows by content, and rows of equal content by class; all sums run in this order."""
    return np.argsort(keys, kind="stable") if codes is None else np.lexsort((codes, keys))


def mix(keys: Keys) -> Keys:
    """Scramble 64-bit keys (the finaliser of splitmix64); wraps around on purpose."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def nearest_centre(
    X: Floats, centres: Floats, offsets: Doubles | None = None
) -> tuple[Ints, Floats]:
    """Find the centre nearest to each row.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    centres : ndarray of shape (K, d)
        Centres.
    offsets : ndarray of shape (K,), optional
        Subtracted from the squared distance to each centre before distances are compared.

    Returns
    -------
    labels : ndarray of shape (n,)
        Index of the nearest centre.
    squared_distances : ndarray of shape (n,)
        Squared Euclidean distance to it.
    """
    labels = np.empty(len(X), dtype=np.int64)
    squared = np.empty(len(X), dtype=X.dtype)
    origin, shifted, half_norms = _around_origin(centres, X.dtype)
    bonus = np.zeros_like(half_norms) if offsets is None else (offsets / 2).astype(X.dtype)
    for block in row_blocks(len(X), max(centres.shape)):
        rows = X[block] - origin
        scores = rows @ shifted.T
        # the largest x·c - |c|²/2 belongs to the smallest |x - c|²
        scores -= half_norms - bonus
        best = scores.argmax(axis=1)
        labels[block] = best
        own = scores[np.arange(len(best)), best] - bonus[best]
        squared[block] = (np.einsum("ij,ij->i", rows, rows) - 2 * own).clip(min=0)
    return labels, squared


def squared_distances(X: Floats, centres: Floats) -> Floats:
    """Squared Euclidean distances of all rows to a few centres, shape (n, K)."""
    squared = np.empty((len(X), len(centres)), dtype=X.dtype)
    origin, shifted, half_norms = _around_origin(centres, X.dtype)
    for block in row_blocks(len(X), max(centres.shape)):
        rows = X[block] - origin
        out = squared[block]
        np.matmul(rows, shifted.T, out=out)
        out -= half_norms
        out *= -2
        norms = np.einsum("ij,ij->i", rows, rows)[:, None]
        out += norms
        recompute_cancelled(out, norms, rows, shifted)
    return squared


def squared_to_own(X: Floats, centres: Floats, labels: Ints) -> Doubles:
    """Squared distance of each row to the centre of its own cluster."""
    squared = np.empty(len(X))
    for block in row_blocks(*X.shape):
        difference = X[block] - centres[labels[block]]
        squared[block] = np.einsum("ij,ij->i", difference, difference)
    return squared


def recompute_cancelled(out: Floats, norms: Floats, rows: Floats, centres: Floats) -> None:
    """Replace distances for which |x|² - 2x·c + |c|² lost its digits by plain differences."""
    cancelled = out <= np.sqrt(np.finfo(out.dtype).eps) * norms
    which, centre = np.nonzero(cancelled)
    for part in row_blocks(len(which), rows.shape[1]):
        difference = rows[which[part]] - centres[centre[part]]
        out[which[part], centre[part]] = np.einsum("ij,ij->i", difference, difference)
    np.maximum(out, 0, out=out)


def _around_origin(centres: Floats, dtype: npt.DTypeLike) -> tuple[Floats, Floats, Floats]:
    """Move the origin to the mean of the centres, so that |x - c|² does not cancel digits."""
    origin = centres.mean(axis=0, dtype=np.float64).astype(dtype)
    shifted = (centres.astype(np.float64) - origin).astype(dtype)
    return origin, shifted, np.einsum("ij,ij->i", shifted, shifted) / 2


def assign_and_sum(
    X: Floats, chosen: Ints, centres: Floats, weights: Floats | None = None
) -> tuple[Ints, Floats, Floats]:
    """Assign the chosen rows to their nearest centres and add up the rows of each centre.

    Both happen in one pass: each block is assigned and added up while it is in the cache.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    chosen : ndarray of int, shape (m,)
        Positions of the rows to assign.
    centres : ndarray of shape (K, d)
        Centres.
    weights : ndarray of shape (n,), optional
        Weight of each row, 1 by default.

    Returns
    -------
    labels : ndarray of shape (m,)
        Nearest centre of each chosen row.
    sums : ndarray of shape (K, d)
        Weighted sum of the rows of each centre, float64.
    totals : ndarray of shape (K,)
        Total weight of the rows of each centre.
    """
    labels = np.empty(len(chosen), dtype=np.int64)
    sums, totals = np.zeros(centres.shape), np.zeros(len(centres))
    origin, shifted, half_norms = _around_origin(centres, X.dtype)
    for block in row_blocks(len(chosen), max(centres.shape)):
        rows = X[chosen[block]]
        rows -= origin
        scores = rows @ shifted.T
        scores -= half_norms
        best = scores.argmax(axis=1)
        labels[block] = best
        weight = np.ones(len(best), X.dtype) if weights is None else weights[chosen[block]]
        sums += one_hot(best, len(centres), weight).T @ rows
        totals += np.bincount(best, weight, minlength=len(centres))
    sums += totals[:, None] * origin
    return labels, sums, totals


def sum_by_label(X: Floats, labels: Ints, n_labels: int, weights: Floats) -> Floats:
    """Add up the weighted rows of each label; float64, shape (n_labels, d)."""
    sums = np.zeros((n_labels, X.shape[1]))
    for block in row_blocks(*X.shape):
        sums += one_hot(labels[block], n_labels, weights[block]).T @ X[block]
    return sums


def one_hot(labels: Ints, n_labels: int, weights: Floats) -> sparse.csr_array:
    """Sparse (rows × labels) matrix of weights; its transpose times X adds up rows."""
    return sparse.csr_array(
        (weights, labels, np.arange(len(labels) + 1)), shape=(len(labels), n_labels)
    )
