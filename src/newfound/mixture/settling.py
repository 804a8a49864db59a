"""Prototypes that were found in a sample settle among all rows, pass by pass.

Each pass sends the prototypes to the blocks and adds up the rows that each one gets. Labels are
not kept between passes: they are what the prototypes say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from newfound.arrays import Doubles, Floats, Ints
from newfound.errors import InputError
from newfound.labels import UNLABELLED
from newfound.mixture.outcome import fit_variance
from newfound.mixture.rows import (
    SortedRows,
    nearest_centre,
    one_hot,
    row_blocks,
    row_keys,
    squared_to_own,
)
from newfound.mixture.sizes import SOFTNESS, share_by_distance
from newfound.mixture.space import Space, project_in_order
from newfound.mixture.stats import GaussianStats
from newfound.scale.blocks import Block, Statistics
from newfound.scale.rows import Rows

#: Maximum number of passes, and the mean squared movement of a prototype, as a share of the mean
#: squared distance of rows, below which they end.
MAX_PASSES, TOLERANCE = 10, 1e-5


class RowSums(NamedTuple):
    """Sums over all rows, by component."""

    free: Doubles  # (K, q) unlabelled rows, weighted by their shares
    n_free: Doubles  # (K,)
    labelled: Doubles  # (K^l, q)
    n_labelled: Doubles  # (K^l,)
    squared: Doubles  # (2,) squared distances to their prototypes of unlabelled, labelled rows

    @property
    def counts(self) -> Doubles:
        """Rows of each component, labelled and unlabelled."""
        counts = self.n_free.copy()
        counts[: len(self.n_labelled)] += self.n_labelled
        return counts

    @property
    def means(self) -> Doubles:
        """Mean of all rows of each component; 0 if it has none."""
        sums = self.free.copy()
        sums[: len(self.labelled)] += self.labelled
        return sums / np.maximum(self.counts, 1)[:, None]


class SettledComponents(NamedTuple):
    """The components of a sample after they have settled among all rows.

    Known ones come first, by name, then novel ones by falling size.
    """

    order: Ints  # (K,) number of each component before
    prototypes: Doubles  # (K, q)
    offsets: Doubles  # (K,)
    stats: GaussianStats  # counts and means of all rows, scatters of the sample
    spherical_variance: float
    labels: Any  # (n,) component of each row; a Dask array if the rows are one


def settle_components(
    every: Rows, sample: SortedRows, space: Space, prototypes: Doubles, offsets: Doubles
) -> SettledComponents:
    """Settle components among all rows, number them by size, and describe them.

    Parameters
    ----------
    every : Rows
        All rows.
    sample : SortedRows
        The projected rows in which the components were found.
    space, prototypes, offsets
        As in `settle`; prototypes of known classes come first, by name.
    """
    prototypes, sums = settle(every, space, prototypes, offsets, pinned=True)
    n_known, sizes = sample.n_known, sums.counts
    novel = np.argsort(-sizes[n_known:], kind="stable") + n_known
    order = np.concatenate([np.arange(n_known), novel[sizes[novel] > 0]])
    prototypes, offsets = prototypes[order], offsets[order]
    codes = sample.classes.number_by_name(sample.codes)
    nearest = nearest_prototype(sample.V, prototypes, offsets)[0]
    labels = np.where(codes == UNLABELLED, nearest, codes)
    stats = GaussianStats.from_labels(sample.V, labels, len(order))
    scale = sizes[order] / np.maximum(stats.count, 1)
    stats = GaussianStats(sizes[order], sums.means[order], stats.scatter * scale[:, None, None])
    variance = fit_variance(sample._replace(codes=codes), prototypes, offsets)
    arguments = (*as_arguments(space), prototypes, offsets, True)
    labels = every.vector(label_rows, *arguments, step="Labelling rows")
    return SettledComponents(order, prototypes, offsets, stats, variance, labels)


def settle(
    rows: Rows, space: Space | None, prototypes: Doubles, offsets: Doubles, *, pinned: bool
) -> tuple[Doubles, RowSums]:
    """Move prototypes to the means of their rows among all rows, until they stay.

    With offsets, rows are shared as in `fit_sizes`, with the weights that the offsets stand for.

    Parameters
    ----------
    rows : Rows
        All rows.
    space : Space or None
        Of the prototypes; None if rows are taken as they are.
    prototypes : ndarray of shape (K, q)
        To start from, known classes first.
    offsets : ndarray of shape (K,)
        Subtracted from squared distances.
    pinned : bool
        Whether prototypes of known classes are the means of their labelled rows, as in the
        mixture, or of all their rows, as in k-means.

    Returns
    -------
    prototypes : ndarray of shape (K, q)
        The settled ones.
    sums : RowSums
        Sums over the rows that are nearest to them.
    """
    start = prototypes = prototypes.astype(np.float64)
    for number in range(1, MAX_PASSES + 1):
        step = f"Settling categories (pass {number})"
        found = _sum(rows, space, prototypes, offsets, bool(offsets.any()), step)
        moved = _means(found, prototypes, pinned=pinned)
        squared = float(np.square(moved - prototypes).sum(axis=1).mean())
        prototypes = moved
        if squared <= TOLERANCE * found.squared[0] / max(1.0, found.n_free.sum()):
            break
    sums = _sum(rows, space, prototypes, offsets, False, "Adding up categories")
    lost = sums.counts == 0
    if lost.any():  # two that shared the same rows have become one: K is kept
        prototypes[lost] = start[lost]
        sums = _sum(rows, space, prototypes, offsets, False, "Adding up categories again")
    return prototypes, sums


def _sum(
    rows: Rows, space: Space | None, prototypes: Doubles, offsets: Doubles, shared: bool, step: str
) -> RowSums:
    """One pass over all rows."""
    arguments = (*as_arguments(space), prototypes, offsets, len(rows.classes), shared)
    groups = rows.run(sum_rows, *arguments, step=step)
    return RowSums(*(np.sum(arrays, axis=0) for arrays in zip(*groups, strict=True)))


def _means(sums: RowSums, prototypes: Doubles, *, pinned: bool) -> Doubles:
    """New prototypes; one without rows stays where it is."""
    n_known = len(sums.n_labelled)
    totals, counts = sums.free.copy(), sums.n_free.copy()
    if pinned:
        totals[:n_known], counts[:n_known] = sums.labelled, sums.n_labelled
    else:
        totals[:n_known] += sums.labelled
        counts[:n_known] += sums.n_labelled
    filled = counts > 1e-6
    moved = prototypes.copy()
    moved[filled] = totals[filled] / counts[filled, None]
    return moved


def sum_rows(blocks: Iterator[Block], *arguments: Any) -> Statistics:
    """Sums of one group of rows: the fields of `RowSums`.

    The arguments are the three of a space, prototypes, offsets, K^l and whether rows are shared.
    """
    *space, prototypes, offsets, n_known, shared = arguments
    k, q = prototypes.shape
    free, n_free, squared = np.zeros((k, q)), np.zeros(k), np.zeros(2)
    labelled, n_labelled = np.zeros((n_known, q)), np.zeros(n_known)
    for block in blocks:
        V = to_space(block.X, *space)
        is_free = block.codes == UNLABELLED
        pinned, codes = V[~is_free], block.codes[~is_free]
        labelled += one_hot(codes, n_known, np.ones(len(codes), V.dtype)).T @ pinned
        n_labelled += np.bincount(codes, minlength=n_known)
        squared[1] += float(squared_to_own(pinned, prototypes, codes).sum())
        V = V[is_free]
        if shared:
            held, sums = share_by_distance(V)(prototypes, offsets / SOFTNESS)
            n_free += held
            free += sums
            # enough to compare movements with, and cheaper than all distances again
            squared[0] += len(V) * float(nearest_prototype(V[:1024], prototypes, offsets)[1].mean())
            continue
        nearest, distances = nearest_prototype(V, prototypes, offsets)
        squared[0] += float(distances.sum(dtype=np.float64))
        for part in row_blocks(len(V), q):
            ones = np.ones(len(nearest[part]), V.dtype)
            free += one_hot(nearest[part], k, ones).T @ V[part]
        n_free += np.bincount(nearest, minlength=k)
    return free, n_free, labelled, n_labelled, squared


def label_rows(blocks: Iterator[Block], *arguments: Any) -> Statistics:
    """Component of each row of a group; labelled rows keep their class if `keeps` says so.

    The arguments are the three of a space, prototypes, offsets and `keeps`.
    """
    *space, prototypes, offsets, keeps = arguments
    parts = []
    for block in blocks:
        labels = nearest_prototype(to_space(block.X, *space), prototypes, offsets)[0]
        is_kept = (block.codes != UNLABELLED) & bool(keeps)
        parts.append(np.where(is_kept, block.codes, labels))
    return (np.concatenate(parts),)


def predict_rows(rows: Rows, space: Space | None, prototypes: Doubles, offsets: Doubles) -> Any:
    """Nearest prototype of each row, whatever its label; a Dask array if the rows are one."""
    d = prototypes.shape[1] if space is None else len(space.mean)
    if rows.shape[1] != d:
        raise InputError(
            f"X has {rows.shape[1]} features, but the estimator was fitted to {d} features."
        )
    arguments = (*as_arguments(space), prototypes, offsets, False)
    return rows.vector(label_rows, *arguments, step="Labelling rows")


def as_arguments(space: Space | None) -> tuple[Any, ...]:
    """A space as three arguments of a pass."""
    return (None, None, None) if space is None else tuple(space)


def to_space(X: Floats, mean: Any, directions: Any, whitening: Any) -> Floats:
    """Rows in the space of the prototypes, in the precision of X."""
    if mean is None:
        return X
    return project_in_order(X, np.arange(len(X)), Space(mean, directions, whitening))


def nearest_prototype(V: Floats, prototypes: Doubles, offsets: Doubles) -> tuple[Ints, Floats]:
    """Nearest prototype of each row and the squared distance to it.

    Prototypes are compared in an order in which names play no part; it decides ties.
    """
    order = np.argsort(row_keys(prototypes), kind="stable")
    centres = prototypes[order].astype(V.dtype)
    nearest, squared = nearest_centre(V, centres, offsets[order])
    return order[nearest], squared
