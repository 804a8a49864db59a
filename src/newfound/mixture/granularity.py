"""Coarser and finer: a tree over the components of a finished partition.

Below its K, novel components are merged, the least different first (Ward's criterion: the gap that
the mixture itself ranks moves by). Above its K, novel components are split into their halves, the
most different first. So levels are nested, and the level of K is the partition itself. Known
classes are neither merged nor split: a person has said what they are. Nor does a novel component
become part of a known class: how fine categories are is one question, what is new another.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from newfound.arrays import Doubles, Floats, Ints
from newfound.mixture.alternatives import cut_tree, ward_merges
from newfound.mixture.halves import halve
from newfound.mixture.rows import squared_distances
from newfound.mixture.split_merge import SMALLEST_HALF
from newfound.mixture.stats import GaussianStats


@dataclass(frozen=True)
class Join:
    """Two parts that are apart on one level and together on the next coarser one.

    Attributes
    ----------
    first, second : int
        The parts, by their smallest leaf; both together are called `first`.
    gap : float
        N_1 N_2 / (N_1 + N_2) |μ_1 - μ_2|²: how much better two means fit than one.
    distance : float
        |μ_1 - μ_2|.
    apart : float or None
        Share of the known classes whose own halves are nearer to each other than these parts. 1
        speaks for two categories. None with fewer than two known classes.
    nearer : float or None
        Share of the known classes whose nearest other class is farther away than these parts from
        each other. 1 speaks for one category.
    """

    first: int
    second: int
    gap: float
    distance: float
    apart: float | None = None
    nearer: float | None = None


@dataclass(frozen=True)
class CategoryTree:
    """Nested partitions, from fine to coarse.

    Attributes
    ----------
    leaves : ndarray of int, shape (n,)
        Part of each row on the finest level. The first K numbers are those of the components that
        the parts were split from, the others are second halves.
    joins : tuple of Join
        From fine to coarse: each makes one category fewer.
    n_known, n_components : int
        K^l, and the K of the partition that the tree was grown from.
    """

    leaves: Ints
    joins: tuple[Join, ...]
    n_known: int
    n_components: int

    @property
    def finest(self) -> int:
        """Largest number of categories."""
        return int(max(self.leaves.max(initial=-1) + 1, self.n_components))

    @property
    def coarsest(self) -> int:
        """Smallest number of categories."""
        return self.finest - len(self.joins)

    def join_at(self, k: int) -> Join | None:
        """The join that makes k categories of k + 1; None for the finest level."""
        return None if k >= self.finest else self.joins[self.finest - k - 1]

    def roots(self, k: int) -> Ints:
        """For each leaf, the smallest leaf of its category on the level of k categories."""
        root = np.arange(self.finest)
        for join in self.joins[: self.finest - k]:
            root[root == join.second] = join.first
        return root

    def cut(self, k: int) -> Ints:
        """Category of each row on the level of k categories, numbered without gaps."""
        numbers = np.unique(self.roots(k), return_inverse=True)[1]
        labels: Ints = numbers[self.leaves]
        return labels


def grow_tree(V: Floats, labels: Ints, n_known: int, n_components: int, most: int) -> CategoryTree:
    """Grow the tree of a finished partition.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows in the space of the mixture.
    labels : ndarray of shape (n,)
        Component of each row; the first `n_known` are known classes.
    n_known, n_components : int
        K^l and K.
    most : int
        Largest number of categories to split to. There are fewer where parts become too small.

    Returns
    -------
    CategoryTree
        Its coarsest level has one novel category.
    """
    leaves, splits = _split(V, labels, n_known, n_components, most)
    merges = _merge(V, labels, n_known, n_components)
    joins = [*reversed(splits), *merges]
    own, other = _known_distances(V, labels, n_known)
    if n_known > 1:
        joins = [_compared(join, own, other) for join in joins]
    return CategoryTree(leaves, tuple(joins), n_known, n_components)


def _split(
    V: Floats, labels: Ints, n_known: int, n_components: int, most: int
) -> tuple[Ints, list[Join]]:
    """Split novel components, always the one whose halves differ most."""
    leaves, joins = labels.copy(), []
    waiting: list[tuple[float, int, Join, Ints, Ints]] = []

    def propose(leaf: int, rows: Ints) -> None:
        halves = _halves_of(V, rows)
        if halves is not None:
            large, small, gap, distance = halves
            heapq.heappush(waiting, (-gap, leaf, Join(leaf, -1, gap, distance), large, small))

    for component in range(n_known, n_components):
        propose(component, np.flatnonzero(labels == component))
    for new in range(n_components, most):
        if not waiting:
            break
        _, leaf, join, large, small = heapq.heappop(waiting)
        joins.append(Join(leaf, new, join.gap, join.distance))
        leaves[small] = new
        propose(leaf, large)
        propose(new, small)
    return leaves, joins


def _halves_of(V: Floats, rows: Ints) -> tuple[Ints, Ints, float, float] | None:
    """The larger and the smaller half of some rows, and their gap; None if a half is too small."""
    if len(rows) <= 2 * SMALLEST_HALF:
        return None
    some = V[rows]
    one = np.zeros(len(rows), dtype=np.int64)
    stats = GaussianStats.from_labels(some, one, 1)
    is_second = halve(some, one, stats.scatter, stats.mean, np.array([0])) == 1
    parts = rows[~is_second], rows[is_second]
    if min(map(len, parts)) <= SMALLEST_HALF:
        return None
    large, small = sorted(parts, key=lambda part: (-len(part), part[0]))
    means = [V[part].mean(axis=0, dtype=np.float64) for part in (large, small)]
    squared = float(((means[0] - means[1]) ** 2).sum())
    gap = len(large) * len(small) / len(rows) * squared
    return large, small, gap, squared**0.5


def _merge(V: Floats, labels: Ints, n_known: int, n_components: int) -> list[Join]:
    """All merges of novel components, the least different first."""
    if n_components - n_known < 2:
        return []
    novel = [np.flatnonzero(labels == code) for code in range(n_known, n_components)]
    counts = np.array([len(rows) for rows in novel], dtype=np.float64)
    means = np.stack([V[rows].mean(axis=0, dtype=np.float64) for rows in novel])
    joins = []
    merges = ward_merges(means, counts, 0)
    for done, (gap, one, other) in enumerate(sorted(merges)):
        root = cut_tree(merges, len(novel), len(novel) - done)
        first, second = sorted((int(root[one]), int(root[other])))
        sizes = [counts[root == part].sum() for part in (first, second)]
        distance = (gap * sum(sizes) / (sizes[0] * sizes[1])) ** 0.5
        joins.append(Join(n_known + first, n_known + second, gap, float(distance)))
    return joins


def _known_distances(V: Floats, labels: Ints, n_known: int) -> tuple[Doubles, Doubles]:
    """For known classes, the distance of their halves, and that to their nearest other class."""
    known = [np.flatnonzero(labels == code) for code in range(n_known)]
    halves = [_halves_of(V, rows) for rows in known]
    own = np.array([found[3] for found in halves if found is not None])
    filled = [rows for rows in known if len(rows)]
    if len(filled) < 2:
        return own, np.zeros(0)
    means = np.stack([V[rows].mean(axis=0, dtype=np.float64) for rows in filled])
    squared = squared_distances(means, means)
    np.fill_diagonal(squared, np.inf)
    return own, np.sqrt(np.maximum(squared.min(axis=1), 0.0))


def _compared(join: Join, own: Doubles, other: Doubles) -> Join:
    """A join with what known classes say about its distance."""
    return Join(
        *(join.first, join.second, join.gap, join.distance),
        apart=float((own < join.distance).mean()) if len(own) else None,
        nearer=float((other > join.distance).mean()) if len(other) else None,
    )
