"""Sufficient statistics of Gaussians: all that a split or a merge needs to know about its rows.

They are centred and merged by Chan's formula, so that an offset of the data costs no digits. The
statistics of a merged component are ``a + b``, without a pass over the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from newfound.arrays import ArrayLike, Bools, Doubles, Floats, Ints
from newfound.errors import InputError
from newfound.mixture.rows import row_blocks


@dataclass(frozen=True)
class GaussianStats:
    """Count, mean and centred scatter of one set of rows, or of K sets stacked.

    Attributes
    ----------
    count : ndarray of shape (...)
        Number of rows N.
    mean : ndarray of shape (..., d)
        Mean of the rows; 0 if there are none.
    scatter : ndarray of shape (..., d, d)
        Σ (z - mean)(z - mean)ᵀ.
    """

    count: Doubles
    mean: Doubles
    scatter: Doubles

    @classmethod
    def from_points(cls, X: ArrayLike) -> GaussianStats:
        """Statistics of all rows of X, shape (n, d)."""
        X = np.asarray(X)
        if X.ndim != 2:
            raise InputError(f"X must have shape (n, d); got shape {X.shape}.")
        stacked = cls.from_labels(X, np.zeros(len(X), dtype=np.int64), 1)
        return stacked[0]

    @classmethod
    def from_labels(cls, X: Floats, labels: Ints, n_components: int) -> GaussianStats:
        """Statistics of every component, stacked; rows with a negative label are left out.

        The rows of a component are gathered block by block, cast to float64 and multiplied. This
        takes n·d² operations in all, and one block of memory beside the result.
        """
        d = X.shape[1]
        count = np.bincount(labels[labels >= 0], minlength=n_components).astype(np.float64)
        mean, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
        # a stable sort: the rows of a component are added up in the order in which they are given
        order = np.argsort(labels, kind="stable")[len(labels) - int(count.sum()) :]
        ends = np.cumsum(count).astype(np.int64)
        for component in np.flatnonzero(count):
            rows = order[ends[component] - int(count[component]) : ends[component]]
            parts = (_of_block(X[rows[block]]) for block in row_blocks(len(rows), d))
            whole = reduce(GaussianStats.__add__, parts)
            mean[component], scatter[component] = whole.mean, whole.scatter
        return cls(count, mean, scatter)

    @classmethod
    def stack(cls, items: Iterable[GaussianStats]) -> GaussianStats:
        """Stack the statistics of single sets along a new first axis."""
        items = list(items)
        return cls(
            np.stack([item.count for item in items]),
            np.stack([item.mean for item in items]),
            np.stack([item.scatter for item in items]),
        )

    def __add__(self, other: GaussianStats) -> GaussianStats:
        """Statistics of both sets of rows together (Chan, Golub and LeVeque)."""
        count = self.count + other.count
        # where both sets are empty there is no share to compute
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        difference = other.mean - self.mean
        mean = self.mean + share[..., None] * difference
        between = (self.count * share)[..., None, None] * (
            difference[..., :, None] * difference[..., None, :]
        )
        return GaussianStats(count, mean, self.scatter + other.scatter + between)

    def __getitem__(self, index: int | slice | Ints | Bools) -> GaussianStats:
        """Statistics of some of the stacked sets."""
        return GaussianStats(self.count[index], self.mean[index], self.scatter[index])

    def __iter__(self) -> Iterator[GaussianStats]:
        """Iterate over the stacked sets."""
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        """Return the number of stacked sets."""
        return len(self.count)

    @property
    def n_features(self) -> int:
        """Dimension d."""
        return self.mean.shape[-1]


def _of_block(rows: Floats) -> GaussianStats:
    """Statistics of one block of rows."""
    rows = rows.astype(np.float64)
    mean = rows.mean(axis=0)
    rows -= mean
    return GaussianStats(np.asarray(float(len(rows))), mean, rows.T @ rows)
