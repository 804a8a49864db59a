"""A fitted mixture after a person has changed its partition: what was not touched stays.

A mixture that is fitted again moves borders everywhere. A person who merges two categories expects
that the others stay as they are. So only the components that were touched get new prototypes.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints, LabelsLike
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.assignment import mixture_parameters
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.outcome import number_by_size
from newfound.mixture.rows import content_order, nearest_centre, row_keys, sum_by_label
from newfound.mixture.stats import GaussianStats


def revised(
    mixture: SplitMergeMixture, X: Floats, y: LabelsLike, start: Ints, is_held: Bools
) -> tuple[SplitMergeMixture, Ints]:
    """Change the partition of a fitted mixture.

    The projection and the prior stay. So do prototypes and offsets of novel components whose rows
    are the same as before. The prototype of a class is the mean of its labelled rows, that of a
    changed novel component the mean of its rows. Then unlabelled rows go to the nearest prototype.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted, with ``assign="nearest"``; it is not changed.
    X : ndarray of shape (n, d)
        The rows that it was fitted to, in their order.
    y : array-like of shape (n,)
        Partial labels; classes may be others than before.
    start : ndarray of int, shape (n,)
        The new partition: the first K^l numbers are the classes in sorted order, the others are
        novel components. -1 for rows that shall find their component anew.
    is_held : ndarray of bool, shape (n,)
        Unlabelled rows that stay where they start.

    Returns
    -------
    mixture : SplitMergeMixture
        With the new partition. The interval of K^n moves with K^n.
    number_of : ndarray of int
        The new number of each component of `start`; -1 for one that is empty.
    """
    partial = encode_labels(y, len(X))
    codes, n_known = partial.codes, partial.n_known
    labels = np.where(codes == UNLABELLED, start, codes)
    V = mixture.projection_.transform(X)
    prototypes, offsets = _components(mixture, V, codes, labels, n_known)
    nearest = nearest_centre(V, prototypes.astype(V.dtype), offsets)[0]
    is_free = (codes == UNLABELLED) & ~(is_held & (labels >= 0))
    labels = np.where(is_free, nearest, labels)

    keys = row_keys(X)
    number_of, by_size = number_by_size(labels, np.arange(n_known), keys)
    number_of = np.append(number_of, np.full(len(prototypes) - len(number_of), -1))
    more = copy.copy(mixture)
    more.classes_, more.n_known_ = partial.classes, n_known
    more.labels_ = number_of[labels]
    more.prototypes_, more.offsets_ = prototypes[by_size], offsets[by_size]
    more.stability_ = _stability(mixture, start, len(prototypes))[by_size]
    more.n_components_ = more._n_features_out = len(by_size)
    more.n_novel_ = len(by_size) - n_known
    order = content_order(keys, codes)
    stats = GaussianStats.from_labels(V[order], more.labels_[order], len(by_size))
    more.means_, more.covariances_, more.weights_ = mixture_parameters(stats, mixture.prior_)
    if mixture.count_ is not None:
        more.count_ = _moved_count(mixture.count_, more.n_novel_ - mixture.n_novel_)
        more.n_novel_interval_ = more.count_.interval
    return more, number_of


def _components(
    mixture: SplitMergeMixture, V: Floats, codes: Ints, labels: Ints, n_known: int
) -> tuple[Doubles, Doubles]:
    """Prototypes and offsets of the new partition."""
    n = max(n_known, int(labels.max()) + 1)
    # a class is described by its labelled rows only
    counts = (codes != UNLABELLED) | (labels >= n_known)
    sizes = np.maximum(np.bincount(labels[counts], minlength=n), 1)[:, None]
    rows, where = V[counts], labels[counts]
    prototypes = sum_by_label(rows, where, n, np.ones(len(rows), V.dtype)) / sizes
    offsets = np.zeros(n)
    np.add.at(offsets, where, mixture.offsets_[mixture.labels_[counts]])
    offsets /= sizes[:, 0]
    for new, old in enumerate(_unchanged(mixture.labels_, labels, n)):
        if new >= n_known and old >= mixture.n_known_:
            prototypes[new], offsets[new] = mixture.prototypes_[old], mixture.offsets_[old]
    return prototypes, offsets


def _unchanged(before: Ints, now: Ints, n: int) -> Ints:
    """For each component the earlier one with exactly the same rows, -1 if there is none."""
    shared = np.zeros((n, int(before.max()) + 1), dtype=np.int64)
    placed = now >= 0
    np.add.at(shared, (now[placed], before[placed]), 1)
    best = shared.argmax(axis=1)
    n_shared = shared[np.arange(n), best]
    same = (n_shared == shared.sum(axis=1)) & (n_shared == np.bincount(before)[best])
    return np.where(same & (n_shared > 0), best, -1)


def _stability(mixture: SplitMergeMixture, start: Ints, n: int) -> Doubles:
    """How far the starts agreed on the components that are unchanged; NaN for the others."""
    unchanged = _unchanged(mixture.labels_, start, n)
    return np.where(unchanged >= 0, np.asarray(mixture.stability_)[unchanged], np.nan)


def _moved_count(count: CategoryCount, difference: int) -> CategoryCount:
    """The count with K^n and its interval moved, and never below 0."""
    n_novel, low, high = (max(0.0, x + difference) for x in (count.n_novel, *count.interval))
    return replace(count, n_novel=n_novel, interval=(low, high))
