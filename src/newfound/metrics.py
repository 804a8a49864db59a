"""How good a partition is, by the protocol of generalized category discovery.

Clusters are matched to classes once, over ALL unlabelled rows. Then the share of correct rows is
taken over all, old and new classes ("old" and "new" are the protocol's words for known and novel).
Two separate matches, one for old and one for new rows, would give higher scores than are earned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from newfound.arrays import ArrayLike, Ints
from newfound.errors import InputError


@dataclass(frozen=True)
class DiscoveryScores:
    """Scores of one partition of the unlabelled rows (the paper's D^u).

    Attributes
    ----------
    n_correct_old, n_correct_new : int
        Rows whose cluster was matched to their class.
    n_old, n_new : int
        Rows of known and of novel classes.
    nmi, ari : float
        Normalised mutual information and adjusted Rand index, over the same rows.
    per_class : dict
        Accuracy for each class that occurs.
    """

    n_correct_old: int
    n_correct_new: int
    n_old: int
    n_new: int
    nmi: float
    ari: float
    per_class: dict[Any, float]

    @property
    def all(self) -> float:
        """Accuracy over all rows: ``w * old + (1 - w) * new`` with w the share of old rows."""
        return _share(self.n_correct_old + self.n_correct_new, self.n_old + self.n_new)

    @property
    def old(self) -> float:
        """Accuracy over rows of known classes; NaN if there are none."""
        return _share(self.n_correct_old, self.n_old)

    @property
    def new(self) -> float:
        """Accuracy over rows of novel classes; NaN if there are none."""
        return _share(self.n_correct_new, self.n_new)


def _share(part: int, whole: int) -> float:
    # NaN, not 0: where there are no rows, no score was measured.
    return part / whole if whole else float("nan")


def match_clusters(y_true: ArrayLike, labels: ArrayLike) -> dict[Any, Any]:
    """Match clusters to classes so that the most rows agree (the paper's g).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes.
    labels : array-like of shape (n,)
        Clusters.

    Returns
    -------
    dict
        Cluster → class. If there are more clusters than classes, the surplus clusters are
        missing, and their rows count as errors.
    """
    y_true, labels = _same_length(y_true, labels)
    classes, class_codes = np.unique(y_true, return_inverse=True)
    clusters, cluster_codes = np.unique(labels, return_inverse=True)
    matched = _match_codes(class_codes, cluster_codes)
    names = classes.tolist()
    return {
        cluster: names[code]
        for cluster, code in zip(clusters.tolist(), matched, strict=True)
        if code >= 0
    }


def _match_codes(class_codes: Ints, cluster_codes: Ints) -> Ints:
    """Class code of every cluster code under the optimal match, -1 for a surplus cluster."""
    # One bincount over pairs of codes fills the table of overlaps without a loop.
    n_classes, n_clusters = int(class_codes.max()) + 1, int(cluster_codes.max()) + 1
    overlap = np.bincount(
        cluster_codes * n_classes + class_codes, minlength=n_clusters * n_classes
    ).reshape(n_clusters, n_classes)
    matched = np.full(n_clusters, -1, dtype=np.int64)
    # The best of all matches; a greedy one would depend on the order of the clusters.
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    matched[rows] = columns
    return matched


def discovery_scores(
    y_true: ArrayLike, labels: ArrayLike, known_classes: ArrayLike
) -> DiscoveryScores:
    """Score a partition of the unlabelled rows.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes of the unlabelled rows.
    labels : array-like of shape (n,)
        Their clusters.
    known_classes : array-like
        The classes that had labels (Old); all others are New.

    Returns
    -------
    DiscoveryScores
        All / Old / New after one match over all rows, NMI, ARI, accuracy per class.
    """
    y_true, labels = _same_length(y_true, labels)
    classes, codes, sizes = np.unique(y_true, return_inverse=True, return_counts=True)
    cluster_codes = np.unique(labels, return_inverse=True)[1]
    correct = _match_codes(codes, cluster_codes)[cluster_codes] == codes
    is_old = np.isin(y_true, np.asarray(list(known_classes)))
    accuracies = np.bincount(codes, weights=correct) / sizes
    return DiscoveryScores(
        n_correct_old=int(correct[is_old].sum()),
        n_correct_new=int(correct[~is_old].sum()),
        n_old=int(is_old.sum()),
        n_new=int((~is_old).sum()),
        nmi=float(normalized_mutual_info_score(y_true, labels)),
        ari=float(adjusted_rand_score(y_true, labels)),
        per_class=dict(zip(classes.tolist(), accuracies.tolist(), strict=True)),
    )


def count_error(n_found: float, n_true: int, tolerance: float = 0.0) -> float:
    """Relative error of a number of categories, ``max(0, |found - true| - tolerance) / true``.

    Parameters
    ----------
    n_found : float
        Estimated number.
    n_true : int
        True number. If it is 0, the absolute error is returned.
    tolerance : float, default=0.0
        Absolute error that counts as none, for instance ½ for an estimate that is not an integer.

    Returns
    -------
    float
        The error; 0 if the number is right.
    """
    # max(1, …): without novel categories there is no relative error.
    return max(0.0, abs(n_found - n_true) - tolerance) / max(1, n_true)


def _same_length(y_true: ArrayLike, labels: ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    y_true, labels = np.asarray(y_true), np.asarray(labels)
    if y_true.ndim != 1 or y_true.shape != labels.shape or len(labels) == 0:
        raise InputError(
            "y_true and labels must both have shape (n,) with n > 0, one entry per unlabelled "
            f"row; got {y_true.shape} and {labels.shape}."
        )
    return y_true, labels
