"""What all rivals work on: checked, projected and sorted rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.metrics import discovery_scores
from newfound.mixture.clustering import check_positive_int
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.mixture.projection import Projection
from newfound.mixture.rows import content_order, row_keys

#: Directions that rows are projected on, as in `SplitMergeMixture`.
N_DIRECTIONS = 128
#: Largest total K by default, as in the code of Vaze et al. (2022).
LARGEST_TOTAL = 1000
#: Smallest average number of rows in a component of scikit-learn's mixtures.
ROWS_EACH = 16


class RivalInput(NamedTuple):
    """The data of a rival, in the order of the rows' content.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Features as given.
    V : ndarray of shape (n, q)
        Projected features; the directions are sorted by their variance.
    codes : ndarray of int, shape (n,)
        Known class of each row or -1.
    n_known : int
        K^l.
    n_max : int
        Largest total K.
    seed : int
        Seed for all random numbers.
    """

    X: Floats
    V: Floats
    codes: Ints
    n_known: int
    n_max: int
    seed: int

    @property
    def labelled(self) -> Ints:
        """Row numbers of the labelled rows."""
        return np.flatnonzero(self.codes != UNLABELLED)

    def accuracy(self, labels: Ints) -> float:
        """Hungarian accuracy of a partition of all rows, measured on the labelled ones."""
        codes = self.codes[self.labelled]
        return discovery_scores(codes, labels[self.labelled], codes).all

    def novel(self, n_total: int) -> int:
        """K^n for a total K."""
        return max(0, n_total - self.n_known)


def prepare_input(
    X: ArrayLike,
    y: LabelsLike,
    n_max: int | None,
    random_state: RandomStateLike,
    rows_each: int = 2,
) -> RivalInput:
    """Check the data, then project and sort the rows.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features.
    y : array-like of shape (n,)
        Partial labels.
    n_max : int or None
        Largest total K; by default 1,000, or n / `rows_each` where that is less.
    random_state : int, RandomState or None
        Seed.
    rows_each : int, default=2
        Smallest average number of rows in a category.
    """
    X = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    partial = encode_labels(y, len(X))
    if n_max is None:
        n_max = max(1, partial.n_known, min(LARGEST_TOTAL, len(X) // rows_each))
    check_positive_int("n_max", n_max)
    if n_max < partial.n_known:
        raise InputError(
            f"n_max={n_max}, but y names {partial.n_known} known classes, and n_max is the "
            f"largest total of known and novel ones. Set n_max to at least {partial.n_known}."
        )
    # sorted by content, so that the order of the rows does not change the answer (rule R7)
    order = content_order(row_keys(X), partial.codes)
    V = Projection(N_DIRECTIONS).fit_in_order(X, None, order).transform_in_order(X, order)
    seed = int(check_random_state(random_state).randint(2**31))
    codes = partial.codes[order]
    return RivalInput(X[order], V, codes, partial.n_known, min(n_max, len(X)), seed)


def require_labels(rows: RivalInput, name: str) -> None:
    """Raise if no row is labelled, for rivals that compare partitions with labels."""
    if rows.n_known == 0:
        raise InputError(
            f"{name} measures partitions on the labelled rows, but y labels none of the "
            f"{len(rows.V)} rows. Label some rows, or use a rival that needs no label: "
            "silhouette, bic_mixture, dirichlet_process or deep_dpm_rule."
        )


def k_means_labels(rows: RivalInput, n_clusters: int, n_starts: int) -> Ints:
    """Clusters of plain k-means on all rows, without labels."""
    k_means = SemiSupervisedKMeans(n_clusters, n_init=n_starts, random_state=rows.seed)
    with without_warnings(DiscoveryWarning):
        return k_means.fit(rows.V).labels_


def ridge(V: Doubles) -> float:
    """A thousandth of the mean variance of a column, to be added to variances."""
    return 1e-3 * float(V.var(axis=0).mean()) or 1e-6


@contextmanager
def without_warnings(category: type[Warning]) -> Iterator[None]:
    """Drop warnings of one category: the failures of a rival are part of its result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
