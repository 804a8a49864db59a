"""Semi-supervised k-means: labelled rows are pinned to the cluster of their class (Sec. 3.2).

The iterations are in `lloyd`, the first centres in `seeding`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from threadpoolctl import threadpool_limits

from newfound.arrays import ArrayLike, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.clustering import (
    PartiallyLabelledClusterMixin,
    check_positive_int,
    check_rows,
)
from newfound.mixture.lloyd import Partition, PinnedRows, run_lloyd
from newfound.mixture.rows import nearest_centre, row_keys, squared_distances
from newfound.mixture.sampling import rows_and_sample
from newfound.mixture.seeding import distances_to_free, seed_centres
from newfound.mixture.settling import as_arguments, label_rows, predict_rows, settle
from newfound.mixture.split_merge import number_components
from newfound.scale.rows import Rows, as_rows

#: Iterations and tolerance when another estimator runs k-means: the defaults of
#: `SemiSupervisedKMeans`.
_MAX_ITER, _TOLERANCE = 300, 1e-4
#: Iterations of a coarse grouping; the groups need not be final.
_COARSE_ITERATIONS = 5


class SemiSupervisedKMeans(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    PartiallyLabelledClusterMixin,
    BaseEstimator,
):
    """K-means in which labelled rows never leave the cluster of their class.

    The first K^l clusters are the known classes in sorted order (K^l is their number), the
    others are novel. Two classes never share a cluster.

    Parameters
    ----------
    n_clusters : int, default=8
        Total number of clusters K. If it is smaller than the number of known classes, there is
        one cluster per class, with a `DiscoveryWarning`. If X has too few distinct rows for K
        clusters, there are fewer, with the same warning.
    n_init : int, default=1
        Number of starts; the one with the smallest inertia is kept.
    max_iter : int, default=300
        Maximum number of iterations of one start.
    tol : float, default=1e-4
        A start ends when the squared movement of the centres is below this share of the data's
        variance.
    random_state : int, RandomState or None, default=None
        Seed of the starts. Draws depend on the content of the rows, not on their order, nor on
        the names of the classes.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row; labelled rows have their class.
    cluster_centers_ : ndarray of shape (n_components, d)
        Mean of the rows of each cluster, labelled and unlabelled.
    classes_ : ndarray of shape (K^l,)
        The known classes, as they were given.
    category_names_ : ndarray of object, shape (n_components,)
        Name of each cluster: its class, or ``new-001`` … for novel ones.
    n_known_, n_novel_, n_components_ : int
        K^l, the number of novel clusters, and their sum.
    prototypes_ : ndarray of shape (n_components, d)
        The same as `cluster_centers_`, under the name that all clusterings here share.
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
        X : array-like of shape (n, d), Dask array or rows from `newfound.scale`
            Rows to cluster; float32 stays float32. From 65,536 rows on, the first centres are
            found in a sample, and then settle among all rows (deviation D29).
        y : array-like of shape (n,), optional
            Partial labels; -1, None, NaN or an empty text where a row is unlabelled.
        sample_weight : array-like of shape (n,), optional
            Weight of each row. A weight of 2 has the same effect as the row given twice.

        Returns
        -------
        SemiSupervisedKMeans
            This estimator.
        """
        for name in ("n_clusters", "n_init", "max_iter"):
            check_positive_int(name, getattr(self, name))
        random_state = check_random_state(self.random_state)
        every, sample = rows_and_sample(
            X,
            y,
            random_state,
            functools.partial(check_rows, self),
            n_categories=self.n_clusters,
            needs_all=sample_weight is not None,
        )
        self.n_features_in_ = sample.X.shape[1]
        X, partial = sample.X, sample.partial
        weights = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        n_clusters = self._resolve_n_clusters(len(X), partial.n_known)
        order = ClassOrder.of(partial, row_keys(X), weights)
        codes = order.number_by_content(partial.codes)
        pinned = PinnedRows.of(X, codes, partial.n_known, weights=weights)
        threshold = self.tol * pinned.mean_variance
        squared_to = distances_to_free(pinned)

        def run(random_state: np.random.RandomState) -> Partition:
            centres = seed_centres(pinned, n_clusters, random_state, squared_to)
            return run_lloyd(pinned, centres, self.max_iter, threshold)

        best = run(random_state)
        for found in _run_in_threads(run, self.n_init - 1, random_state):
            best = found if found.inertia < best.inertia else best
        number_of = number_components(best.labels, partial.n_known, len(best.centres))
        self.labels_ = order.number_by_name(number_of[best.labels])
        centres = order.sort_by_name(best.centres[number_of >= 0])
        self.cluster_centers_ = centres.astype(X.dtype)
        self.prototypes_ = self.cluster_centers_
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter
        self.classes_ = partial.classes
        self.n_known_ = partial.n_known
        self.n_components_ = self._n_features_out = len(centres)
        self.n_novel_ = len(centres) - partial.n_known
        if len(centres) < n_clusters:
            self._warn_of_equal_rows(X[pinned.free])
        if every is not None:
            self._settle(every, len(X))
        return self

    def _settle(self, every: Rows, n_searched: int) -> None:
        """Run Lloyd's iterations over all rows, from the centres of the sample."""
        if n_searched == len(every):  # there was no need for a sample
            self.labels_ = every.as_vector(self.labels_)
            return
        offsets = np.zeros(self.n_components_)
        found, sums = settle(every, None, self.cluster_centers_, offsets, pinned=False)
        found = found.astype(self.cluster_centers_.dtype)
        self.labels_ = every.vector(
            label_rows, *as_arguments(None), found, offsets, True, step="Labelling rows"
        )
        self.cluster_centers_ = self.prototypes_ = found
        self.inertia_ = float(sums.squared.sum())

    def predict(self, X: ArrayLike) -> Ints:
        """Cluster whose centre is nearest, for each row of X; labels are not used.

        X may be a Dask array or rows from `newfound.scale`.
        """
        rows = as_rows(X)
        if rows is None:
            return nearest_centre(self._check_rows(X), self.cluster_centers_)[0]
        check_is_fitted(self)
        return predict_rows(rows, None, self.cluster_centers_, np.zeros(self.n_components_))

    def transform(self, X: ArrayLike) -> Floats:
        """Distances of the rows of X to the centres, shape (n, n_components)."""
        distances = squared_distances(self._check_rows(X), self.cluster_centers_)
        return np.sqrt(distances, out=distances)

    def score(
        self,
        X: ArrayLike,
        y: LabelsLike = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Negative inertia of X with every row at its nearest centre; `y` is not used."""
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

    def _warn_of_equal_rows(self, free: Floats) -> None:
        warnings.warn(
            f"n_clusters={self.n_clusters}, but there are only {self.n_components_} clusters: the "
            f"{len(free)} unlabelled rows of X have {len(np.unique(row_keys(free)))} distinct "
            "values. Lower n_clusters, or give rows that differ.",
            DiscoveryWarning,
            stacklevel=3,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _run_in_threads(
    run: Callable[[np.random.RandomState], Partition],
    n_starts: int,
    random_state: np.random.RandomState,
) -> Iterator[Partition]:
    """Run further starts, one per processor at a time."""
    if n_starts < 1:
        return
    # all seeds are drawn here, so that results do not depend on which thread is faster
    seeds = random_state.randint(np.iinfo(np.int32).max, size=n_starts)
    n_threads = effective_n_jobs(-1)
    with threadpool_limits(1), ThreadPoolExecutor(n_threads) as threads:
        for i in range(0, n_starts, n_threads):
            generators = [np.random.RandomState(seed) for seed in seeds[i : i + n_threads]]
            yield from threads.map(run, generators)


def fit_labels(pinned: PinnedRows, n_clusters: int, random_state: np.random.RandomState) -> Ints:
    """Run one start of semi-supervised k-means and return its labels.

    Parameters
    ----------
    pinned : PinnedRows
        Rows that were already checked. Prepared by the caller, who may need several starts.
    n_clusters : int
        K, at least K^l.
    random_state : RandomState
        Draws the first centres.

    Returns
    -------
    ndarray of shape (n,)
        Cluster of each row, known classes first.
    """
    centres = seed_centres(pinned, n_clusters, random_state, distances_to_free(pinned))
    return run_lloyd(pinned, centres, _MAX_ITER, _TOLERANCE * pinned.mean_variance).labels


def group_free_rows(
    X: Floats, codes: Ints, n_known: int, n_groups: int, random_state: np.random.RandomState
) -> Ints:
    """Reduce rows to groups: one per known class, and at most `n_groups` of free rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    codes : ndarray of int, shape (n,)
        Class of each row, -1 if it is free.
    n_known : int
        K^l, the number of known classes.
    n_groups : int
        If there are more free rows than this, they are grouped by a coarse k-means; otherwise
        each is a group of its own.
    random_state : RandomState
        Draws the centres of that k-means.

    Returns
    -------
    ndarray of shape (n,)
        Group of each row, known classes first.
    """
    free = np.flatnonzero(codes == UNLABELLED)
    groups = codes.copy()
    groups[free] = n_known + np.arange(len(free))
    if len(free) > n_groups:
        no_class = np.full(len(free), UNLABELLED, dtype=np.int64)
        pinned = PinnedRows.of(X[free], no_class, n_known=0)
        drawn = random_state.permutation(len(free))[:n_groups]
        centres = X[free[pinned.free[drawn]]].astype(np.float64)
        found = run_lloyd(pinned, centres, _COARSE_ITERATIONS, threshold=0.0).labels
        # some centres may have stayed without rows; groups are numbered without gaps
        groups[free] = n_known + np.unique(found, return_inverse=True)[1]
    return groups
