"""Other ways to find prototypes, for comparison with the mixture (the paper's Table 7a).

Ward's agglomeration and DBSCAN, with the same label constraints as the mixture and
`SemiSupervisedKMeans`: rows of one class are in one component, rows of two classes are not, and the
first K^l components are the K^l known classes. Every row gets a component.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.cluster import DBSCAN
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import InputError
from newfound.labels import UNLABELLED, PartialLabels, encode_labels
from newfound.mixture.assignment import prototypes_of
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.clustering import (
    PartiallyLabelledClusterMixin,
    check_positive_int,
    check_rows,
    default_n_components,
)
from newfound.mixture.kmeans import group_free_rows
from newfound.mixture.rows import nearest_centre, row_keys, squared_distances
from newfound.mixture.split_merge import number_components

#: Ward compares all pairs of leaves, so more free rows than this are first grouped by k-means.
N_LEAVES = 4096


class _PrototypeClusterer(PartiallyLabelledClusterMixin, BaseEstimator):
    """What the two clusterers share: the checks, the fitted attributes, and `predict`."""

    n_components_: int

    def _check(self, X: ArrayLike, y: LabelsLike) -> tuple[Floats, PartialLabels]:
        rows = check_rows(self, X, ensure_min_samples=2)
        partial = encode_labels(y, len(rows))
        order = ClassOrder.of(partial, row_keys(rows))
        # the classes by content, so that their names decide nothing
        return rows, replace(
            partial,
            codes=order.number_by_content(partial.codes),
            classes=partial.classes[order.by_name],
        )

    def _finish(self, X: Floats, partial: PartialLabels, labels: Ints) -> None:
        labels = np.where(partial.is_labelled, partial.codes, labels)
        labels = number_components(labels, partial.n_known)[labels]
        prototypes = prototypes_of(X, partial.codes, labels, partial.n_known)
        by_content = np.argsort(partial.classes)
        order = ClassOrder(by_content, by_name=np.argsort(by_content))
        self.labels_ = order.number_by_name(labels)
        self.prototypes_ = order.sort_by_name(prototypes)
        self.classes_ = order.sort_by_name(partial.classes)
        self.n_known_, self.n_components_ = partial.n_known, len(prototypes)
        self.n_novel_ = self.n_components_ - self.n_known_

    def predict(self, X: ArrayLike) -> Ints:
        """Component whose prototype is nearest, for each row of X."""
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        return nearest_centre(rows, self.prototypes_.astype(rows.dtype))[0]


class ConstrainedWard(_PrototypeClusterer):
    """Ward's agglomerative clustering in which known classes never merge.

    Parameters
    ----------
    n_components : int, optional
        Total number of components K. By default K^l + max(1, K^l // 2), and 10 without labels.
    random_state : int, RandomState or None, default=None
        Seed of the k-means that groups the unlabelled rows if there are more than 4,096.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Component of each row.
    prototypes_ : ndarray of shape (K, d)
        Mean of the labelled rows of a known class, of all rows of a novel component.
    n_known_, n_novel_, n_components_ : int
        Number of known classes K^l, of novel components K^n, and their sum K.
    classes_ : ndarray of shape (K^l,)
        The known classes.
    category_names_ : ndarray of object, shape (K,)
        Name of each component.
    """

    def __init__(
        self, n_components: int | None = None, *, random_state: RandomStateLike = None
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> ConstrainedWard:
        """Cluster the rows of X, partially labelled by y."""
        if self.n_components is not None:
            check_positive_int("n_components", self.n_components)
        X, partial = self._check(X, y)
        n_known = partial.n_known
        n_components = self.n_components or min(default_n_components(n_known), len(X))
        if n_components > len(X):
            raise InputError(f"n_components={n_components} is more than n_samples={len(X)}.")
        random_state = check_random_state(self.random_state)
        leaves = group_free_rows(X, partial.codes, n_known, N_LEAVES, random_state)
        counts = np.bincount(leaves).astype(np.float64)
        means = np.zeros((len(counts), X.shape[1]))
        np.add.at(means, leaves, X)
        means /= counts[:, None]
        merges = ward_merges(means, counts, n_known)
        roots = cut_tree(merges, len(counts), max(n_components, n_known))
        self._finish(X, partial, roots[leaves])
        return self


class ConstrainedDBSCAN(_PrototypeClusterer):
    """DBSCAN whose clusters respect the labels.

    The rows of a cluster that holds labelled rows go to the classes of these rows: each to the
    class with the nearest labelled mean. The other clusters are novel. Rows that DBSCAN calls
    noise go to the nearest prototype.

    Parameters
    ----------
    eps : float, optional
        Radius. By default the median distance of a labelled row to its `min_samples`-th
        neighbour (of any row without labels).
    min_samples : int, default=5
        Neighbours that make a core point.

    Attributes
    ----------
    labels_, prototypes_, n_known_, n_novel_, n_components_, classes_, category_names_
        As in `ConstrainedWard`.
    eps_ : float
        The radius that was used.
    """

    def __init__(self, eps: float | None = None, *, min_samples: int = 5) -> None:
        self.eps = eps
        self.min_samples = min_samples

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> ConstrainedDBSCAN:
        """Cluster the rows of X, partially labelled by y."""
        check_positive_int("min_samples", self.min_samples)
        if self.eps is not None and not self.eps > 0:
            raise InputError(f"eps must be greater than 0; got {self.eps!r}.")
        X, partial = self._check(X, y)
        self.eps_ = self.eps if self.eps is not None else self._median_radius(X, partial)
        found = DBSCAN(eps=self.eps_, min_samples=self.min_samples).fit(X).labels_
        self._finish(X, partial, _respect_labels(X, partial, found))
        return self

    def _median_radius(self, X: Floats, partial: PartialLabels) -> float:
        asked = X[partial.is_labelled] if partial.n_known else X
        neighbours = NearestNeighbors(n_neighbors=min(self.min_samples + 1, len(X))).fit(X)
        return float(np.median(neighbours.kneighbors(asked)[0][:, -1])) or 1.0


def _respect_labels(X: Floats, partial: PartialLabels, found: Ints) -> Ints:
    """Turn DBSCAN's clusters (-1 is noise) into components, known classes first."""
    codes, n_known = partial.codes, partial.n_known
    labels = np.where(found >= 0, found + n_known, UNLABELLED)
    labels[partial.is_labelled] = codes[partial.is_labelled]
    for cluster in np.unique(found[partial.is_labelled & (found >= 0)]):
        members = np.flatnonzero((found == cluster) & (codes == UNLABELLED))
        classes = np.unique(codes[(found == cluster) & partial.is_labelled])
        means = np.stack([X[codes == code].mean(axis=0) for code in classes])
        labels[members] = classes[nearest_centre(X[members], means.astype(X.dtype))[0]]
    noise = labels == UNLABELLED
    if noise.all():
        return np.zeros(len(X), dtype=np.int64)
    placed = number_components(labels[~noise], n_known)[labels[~noise]]
    prototypes = prototypes_of(X[~noise], codes[~noise], placed, n_known)
    labels[~noise] = placed
    if noise.any():
        labels[noise] = nearest_centre(X[noise], prototypes.astype(X.dtype))[0]
    return labels


def ward_merges(means: Doubles, counts: Doubles, n_known: int) -> list[tuple[float, int, int]]:
    """Find all merges of Ward's tree by the nearest-neighbour chain.

    Two known classes are infinitely far from each other. Ward's distance stays reducible with
    that, so the chain finds the same tree as always merging the nearest pair.

    Parameters
    ----------
    means : ndarray of shape (n_leaves, d)
        Mean of each leaf; the first `n_known` leaves are the known classes.
    counts : ndarray of shape (n_leaves,)
        Number of rows of each leaf.
    n_known : int
        K^l, the number of known classes.

    Returns
    -------
    list of (float, int, int)
        Height and two leaves of each merge, for `cut_tree`.
    """
    distances = squared_distances(means, means)
    distances *= counts[:, None] * counts[None, :] / (counts[:, None] + counts[None, :])
    distances[:n_known, :n_known] = np.inf
    np.fill_diagonal(distances, np.inf)
    counts = counts.copy()
    is_active = np.ones(len(counts), dtype=bool)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while True:
        if not chain:
            # only a novel leaf can merge with any other; without one there is nothing left to do
            free = np.flatnonzero(is_active[n_known:])
            if is_active.sum() < 2 or (len(free) == 0):
                return merges
            chain.append(int(free[0]) + n_known)
        top = chain[-1]
        nearest = int(distances[top].argmin())
        # in case of a tie go back, or the chain would run in a circle
        if len(chain) > 1 and distances[top, chain[-2]] <= distances[top, nearest]:
            nearest = chain[-2]
        if len(chain) == 1 or nearest != chain[-2]:
            chain.append(nearest)
            continue
        chain = chain[:-2]
        keep, gone = min(top, nearest), max(top, nearest)
        merges.append((float(distances[keep, gone]), keep, gone))
        _absorb(distances, counts, keep, gone)
        is_active[gone] = False


def _absorb(distances: Doubles, counts: Doubles, keep: int, gone: int) -> None:
    """Merge `gone` into `keep`, by Lance and Williams' formula for Ward's distance."""
    total = counts[keep] + counts[gone] + counts
    merged = (
        (counts[keep] + counts) * distances[keep]
        + (counts[gone] + counts) * distances[gone]
        - counts * distances[keep, gone]
    ) / total
    merged[[keep, gone]] = np.inf
    distances[keep], distances[:, keep] = merged, merged
    distances[gone], distances[:, gone] = np.inf, np.inf
    counts[keep] += counts[gone]


def cut_tree(merges: list[tuple[float, int, int]], n_leaves: int, n_components: int) -> Ints:
    """Component of each leaf after the lowest merges; known leaves keep their numbers."""
    parents = np.arange(n_leaves)

    def root(leaf: int) -> int:
        while parents[leaf] != leaf:
            parents[leaf] = parents[parents[leaf]]
            leaf = int(parents[leaf])
        return leaf

    for _, first, second in sorted(merges)[: max(0, n_leaves - n_components)]:
        low, high = sorted((root(first), root(second)))
        parents[high] = low
    return np.array([root(leaf) for leaf in range(n_leaves)])
