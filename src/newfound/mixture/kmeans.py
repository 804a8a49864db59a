"""Semi-supervised k-means: labelled rows are pinned to the cluster of their class (Sec. 3.2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from threadpoolctl import threadpool_limits

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.clustering import (
    PartiallyLabelledClusterMixin,
    check_positive_int,
    check_rows,
)
from newfound.mixture.rows import (
    assign_and_sum,
    content_order,
    mend_cancelled,
    nearest_centre,
    row_blocks,
    row_keys,
    squared_distances,
    sum_by_label,
)

#: Free rows that take no more than this are kept around their mean while centres are drawn.
_KEPT_BYTES = 2**28


class _Start(NamedTuple):
    """What every start shares: the rows, which of them are free, and the pinned sums."""

    X: Floats
    weights: Floats
    codes: Ints  # class of each row, -1 where it is free to move
    n_known: int
    known_sums: Floats  # (K^l, d), weighted sum of the labelled rows of each class
    known_weights: Floats  # (K^l,)
    free: Ints  # rows that may move, in the order of what they hold
    order: Ints  # all rows in that order


class _Partition(NamedTuple):
    labels: Ints
    centres: Floats
    inertia: float
    n_iter: int


class SemiSupervisedKMeans(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    PartiallyLabelledClusterMixin,
    BaseEstimator,
):
    """K-means in which labelled rows never leave the cluster of their class.

    The first K^l clusters are the known classes in sorted order, the others are novel. Two
    classes never share a cluster.

    Parameters
    ----------
    n_clusters : int, default=8
        Total number of clusters K. Two classes never share a cluster, so that with fewer
        clusters than known classes there is one per class, and a `DiscoveryWarning` says so.
    n_init : int, default=1
        Number of starts; the one with the smallest inertia is kept.
    max_iter : int, default=300
        Most iterations of one start.
    tol : float, default=1e-4
        A start ends when the centres move by less than this share of the data's variance.
    random_state : int, RandomState or None, default=None
        Seed of the starts. Rows are drawn by content: their order does not matter.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row; labelled rows have their class.
    cluster_centers_ : ndarray of shape (n_components_, d)
        Mean of the rows of each cluster, labelled and assigned.
    classes_ : ndarray of shape (K^l,)
        The known classes, as they were given.
    category_names_ : ndarray of object, shape (n_components_,)
        Name of each cluster: its class, or ``new-001`` … for novel ones.
    n_known_, n_novel_, n_components_ : int
        K^l, the number of other clusters, and their sum.
    prototypes_ : ndarray of shape (n_components_, d)
        The same as `cluster_centers_`, the name that all clusterings here share.
    inertia_ : float
        Weighted sum of squared distances of all rows to the centre of their cluster.
    n_iter_ : int
        Iterations of the start that was kept.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from newfound import SemiSupervisedKMeans
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
    >>> y = ["cat", None, None, None, "dog"]
    >>> SemiSupervisedKMeans(3, random_state=0).fit(X, y).labels_
    array([0, 0, 2, 2, 1])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: LabelsLike = None,
        sample_weight: ArrayLike | None = None,
    ) -> SemiSupervisedKMeans:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows to cluster; float32 stays float32.
        y : array-like of shape (n,), optional
            Partial labels; -1, None, NaN or an empty text where a row is unlabelled.
        sample_weight : array-like of shape (n,), optional
            Weight of each row. A weight of 2 is the same as the row twice.

        Returns
        -------
        SemiSupervisedKMeans
            This estimator.
        """
        for name in ("n_clusters", "n_init", "max_iter"):
            check_positive_int(name, getattr(self, name))
        X = check_rows(self, X)
        weights = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        partial = encode_labels(y, len(X))
        n_clusters = self._resolve_n_clusters(len(X), partial.n_known)
        start = _prepare(X, weights, partial.codes, partial.n_known)
        random_state = check_random_state(self.random_state)
        threshold = self.tol * _mean_variance(X, weights)

        squared_to = _distances_to_free(start)

        def run(random_state: np.random.RandomState) -> _Partition:
            centres = _seed_centres(start, n_clusters, random_state, squared_to)
            return lloyd(start, centres, self.max_iter, threshold)

        best = run(random_state)
        for found in _in_threads(run, self.n_init - 1, random_state):
            best = found if found.inertia < best.inertia else best
        self.labels_ = best.labels
        self.cluster_centers_ = best.centres.astype(X.dtype)
        self.prototypes_ = self.cluster_centers_
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter
        self.classes_ = partial.classes
        self.n_known_ = partial.n_known
        self.n_components_ = self._n_features_out = n_clusters
        self.n_novel_ = n_clusters - partial.n_known
        self._warn_if_degenerate()
        return self

    def predict(self, X: ArrayLike) -> Ints:
        """Give each row of X its nearest cluster."""
        return nearest_centre(self._check_rows(X), self.cluster_centers_)[0]

    def transform(self, X: ArrayLike) -> Floats:
        """Distances of the rows of X to the centres, shape (n, n_clusters)."""
        distances = squared_distances(self._check_rows(X), self.cluster_centers_)
        return np.sqrt(distances, out=distances)

    def score(
        self,
        X: ArrayLike,
        y: LabelsLike = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Minus the inertia of X when every row goes to its nearest centre; `y` is not used."""
        rows = self._check_rows(X)
        weights = _check_sample_weight(sample_weight, rows, dtype=rows.dtype)
        squared = nearest_centre(rows, self.cluster_centers_)[1]
        return -float(np.dot(squared.astype(np.float64), weights))

    def _check_rows(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return check_rows(self, X, reset=False)

    def _resolve_n_clusters(self, n_rows: int, n_known: int) -> int:
        if n_rows < self.n_clusters:
            raise InputError(
                f"n_samples={n_rows} should be >= n_clusters={self.n_clusters}: there cannot be "
                "more clusters than rows. Lower n_clusters or give more rows."
            )
        if self.n_clusters < n_known:
            warnings.warn(
                f"n_clusters={self.n_clusters}, but y names {n_known} known classes and two "
                f"classes never share a cluster: {n_known} clusters are used. "
                f"Set n_clusters to at least {n_known}.",
                DiscoveryWarning,
                stacklevel=3,
            )
        return max(self.n_clusters, n_known)

    def _warn_if_degenerate(self) -> None:
        n_used = len(np.unique(self.labels_))
        if n_used < self.n_components_:
            warnings.warn(
                f"Number of distinct clusters ({n_used}) found smaller than n_clusters "
                f"({self.n_components_}): X has too few different unlabelled rows.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _in_threads(
    run: Callable[[np.random.RandomState], _Partition],
    n_starts: int,
    random_state: np.random.RandomState,
) -> Iterator[_Partition]:
    """Further starts, one to a processor at a time; their seeds are drawn beforehand."""
    if n_starts < 1:
        return
    seeds = random_state.randint(np.iinfo(np.int32).max, size=n_starts)
    n_threads = effective_n_jobs(-1)
    with threadpool_limits(1), ThreadPoolExecutor(n_threads) as threads:
        for i in range(0, n_starts, n_threads):
            chances = [np.random.RandomState(seed) for seed in seeds[i : i + n_threads]]
            yield from threads.map(run, chances)


def fit_labels(
    X: Floats, codes: Ints, n_known: int, n_clusters: int, random_state: np.random.RandomState
) -> Ints:
    """One start of semi-supervised k-means on rows that were already checked; its labels."""
    weights = np.ones(len(X), X.dtype)
    start = _prepare(X, weights, codes, n_known)
    centres = _seed_centres(start, n_clusters, random_state, _distances_to_free(start))
    return lloyd(start, centres, 300, 1e-4 * _mean_variance(X, weights)).labels


def group_free_rows(
    X: Floats, codes: Ints, n_known: int, n_groups: int, random_state: np.random.RandomState
) -> Ints:
    """Group rows coarsely: one group a known class, free rows alone or in `n_groups` groups."""
    free = np.flatnonzero(codes == UNLABELLED)
    groups = codes.copy()
    groups[free] = n_known + np.arange(len(free))
    if len(free) > n_groups:
        alone = np.full(len(free), UNLABELLED, dtype=np.int64)
        start = _prepare(X[free], np.ones(len(free), X.dtype), alone, 0)
        drawn = random_state.permutation(len(free))[:n_groups]
        centres = X[free[start.free[drawn]]].astype(np.float64)
        found = lloyd(start, centres, max_iter=5, threshold=0.0).labels
        groups[free] = n_known + np.unique(found, return_inverse=True)[1]
    return groups


def _prepare(X: Floats, weights: Floats, codes: Ints, n_known: int) -> _Start:
    order = content_order(row_keys(X), codes)
    labelled, free = order[codes[order] != UNLABELLED], order[codes[order] == UNLABELLED]
    known_sums = np.zeros((n_known, X.shape[1]))
    for block in row_blocks(len(labelled), X.shape[1]):
        rows = labelled[block]
        known_sums += sum_by_label(X[rows], codes[rows], n_known, weights[rows])
    known_weights = np.bincount(codes[labelled], weights[labelled], minlength=n_known)
    return _Start(X, weights, codes, n_known, known_sums, known_weights, free, order)


def _mean_variance(X: Floats, weights: Floats) -> float:
    """Variance of a column, averaged over the columns."""
    whole = np.zeros(len(X), dtype=np.int64)
    total = float(weights.sum(dtype=np.float64)) or 1.0
    mean = sum_by_label(X, whole, 1, weights) / total
    squared = squared_distances(X, mean.astype(X.dtype))[:, 0]
    return float(np.dot(squared.astype(np.float64), weights)) / total / X.shape[1]


def _seed_centres(
    start: _Start,
    n_clusters: int,
    random_state: np.random.RandomState,
    squared_to: Callable[[Ints], Floats],
) -> Floats:
    """Greedy k-means++ on the free rows, seeded by the class means.

    The distance of each free row to its nearest centre is kept and lowered by each new centre,
    so that K centres cost K × n distances and not K² × n.
    """
    X, weights = start.X, start.weights[start.free].astype(np.float64)
    centres = np.empty((n_clusters, X.shape[1]))
    n_set = start.n_known
    centres[:n_set] = _class_means(start)
    n_trials = 2 + int(np.log(n_clusters))
    closest = np.ones(len(start.free))  # without a class mean, the first draw is by weight alone
    if n_set:
        closest = _squared_to_nearest(start, centres[:n_set])
    while n_set < n_clusters:
        cumulated = (weights * closest).cumsum()
        if len(cumulated) == 0 or cumulated[-1] <= 0:
            # every free row already sits on a centre: what is left stays empty
            centres[n_set:] = centres[0] if n_set else X.mean(axis=0)
            break
        draws = random_state.random_sample(n_trials) * cumulated[-1]
        places = np.searchsorted(cumulated, draws, side="right").clip(max=len(cumulated) - 1)
        lowered = squared_to(places)
        if n_set:
            np.minimum(lowered, closest[:, None], out=lowered)
        best = int((weights @ lowered).argmin())
        closest = lowered[:, best]
        centres[n_set] = X[start.free[places[best]]]
        n_set += 1
    return centres


def _squared_to_nearest(start: _Start, centres: Floats) -> Floats:
    """Squared distance of each free row to the nearest of the centres, shape (n_free,)."""
    squared = np.empty(len(start.free), dtype=start.X.dtype)
    for block in row_blocks(len(start.free), start.X.shape[1]):
        rows = start.X[start.free[block]]
        squared[block] = nearest_centre(rows, centres.astype(rows.dtype))[1]
    return squared


def _distances_to_free(start: _Start) -> Callable[[Ints], Floats]:
    """A function: places among the free rows → squared distances of all free rows to them."""
    X, free = start.X, start.free
    if len(free) * X.shape[1] * X.itemsize > _KEPT_BYTES:

        def read_again(places: Ints) -> Floats:
            squared = np.empty((len(free), len(places)), dtype=X.dtype)
            for block in row_blocks(len(free), X.shape[1]):
                squared[block] = squared_distances(X[free[block]], X[free[places]])
            return squared

        return read_again
    rows = X[free]
    rows -= (rows.sum(axis=0, dtype=np.float64) / max(1, len(rows))).astype(rows.dtype)
    norms = np.einsum("ij,ij->i", rows, rows)[:, None]

    def by_one_product(places: Ints) -> Floats:
        squared = rows @ rows[places].T
        squared *= -2
        squared += norms
        squared += norms[places].T
        mend_cancelled(squared, norms, rows, rows[places])
        return squared

    return by_one_product


def _class_means(start: _Start) -> Floats:
    """Mean of the labelled rows of each class; of all-zero weights, the plain mean."""
    weights = start.known_weights[:, None]
    means = start.known_sums / np.where(weights > 0, weights, 1)
    for code in np.flatnonzero(start.known_weights <= 0):
        means[code] = start.X[start.codes == code].mean(axis=0)
    return means


def lloyd(start: _Start, centres: Floats, max_iter: int, threshold: float) -> _Partition:
    """Alternate assignment and means until the centres rest; empty clusters are seeded anew."""
    labels = start.codes
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        previous = labels
        labels, sums, weights = _assign(start, centres)
        moved = _means(start, centres, labels, sums, weights)
        shift = float(((moved - centres) ** 2).sum())
        centres = moved
        if shift <= threshold or np.array_equal(previous, labels):
            break
    if not np.array_equal(previous, labels):
        labels, _, _ = _assign(start, centres)
    loss = _squared_to_own(start.X, centres, labels) * start.weights
    return _Partition(labels, centres, float(loss[start.order].sum()), n_iter)


def _assign(start: _Start, centres: Floats) -> tuple[Ints, Floats, Floats]:
    """Labels of all rows, and per cluster the weighted sum of its rows and their weight."""
    labels = start.codes.copy()
    labels[start.free], sums, weights = assign_and_sum(start.X, start.free, centres, start.weights)
    sums[: start.n_known] += start.known_sums
    weights[: start.n_known] += start.known_weights
    return labels, sums, weights


def _means(start: _Start, centres: Floats, labels: Ints, sums: Floats, weights: Floats) -> Floats:
    """Move the centres; an empty cluster moves to the free row that is worst served."""
    empty = np.flatnonzero(weights[start.n_known :] <= 0) + start.n_known
    if len(empty) and len(start.free):
        loss = (_squared_to_own(start.X, centres, labels) * start.weights)[start.free]
        worst = start.free[np.argsort(-loss, kind="stable")[: len(empty)]]
        worst = worst[: np.count_nonzero(loss > 0)]
        empty = empty[: len(worst)]
        moved = start.X[worst] * start.weights[worst, None]
        np.subtract.at(sums, labels[worst], moved)
        np.subtract.at(weights, labels[worst], start.weights[worst])
        sums[empty], weights[empty] = moved, start.weights[worst]
    filled = weights > 1e-12 * weights.max(initial=0)
    means = centres.copy()
    means[filled] = sums[filled] / weights[filled, None]
    return means


def _squared_to_own(X: Floats, centres: Floats, labels: Ints) -> Doubles:
    """Squared distance of each row to the centre of its own cluster."""
    squared = np.empty(len(X))
    for block in row_blocks(*X.shape):
        difference = X[block] - centres[labels[block]]
        squared[block] = np.einsum("ij,ij->i", difference, difference)
    return squared
