"""Several starts, one partition: what most of them agree on, and how far they do."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.arrays import Doubles, Ints


def agree(reference: Ints, others: list[Ints], n_known: int) -> tuple[Ints, Doubles]:
    """Vote over partitions of the same rows.

    Every other partition is matched to the reference, known classes with themselves and novel
    components one to one by their common rows; then each row goes where most partitions put
    it, in case of a tie where the reference does. The vote is void if it would leave a component
    of the reference without rows: partitions that differ so much have no consensus.

    Parameters
    ----------
    reference : ndarray of shape (n,)
        The partition whose numbers are kept.
    others : list of ndarray of shape (n,)
        Further partitions.
    n_known : int
        K^l; the first K^l numbers mean the same in all partitions.

    Returns
    -------
    labels : ndarray of shape (n,)
        The consensus.
    stability : ndarray of shape (K,)
        Per component of the reference the mean Jaccard index with its match in the other
        partitions, between 0 and 1; NaN if there is no other partition.
    """
    n_components = max(int(reference.max()) + 1, n_known)
    stability = np.full(n_components, np.nan)
    if not others:
        return reference, stability
    rows = np.arange(len(reference))
    votes = np.zeros((len(reference), n_components), dtype=np.float32)
    votes[rows, reference] = 1.5
    jaccards = np.zeros((len(others), n_components))
    for index, labels in enumerate(others):
        overlap = _overlap(reference, labels, n_components)
        match = _match(overlap, n_known)
        number_of = np.full(overlap.shape[1], -1)
        number_of[match[match >= 0]] = np.flatnonzero(match >= 0)
        aligned = number_of[labels]
        np.add.at(votes, (rows[aligned >= 0], aligned[aligned >= 0]), 1.0)
        common = np.where(match >= 0, overlap[np.arange(n_components), match], 0)
        sizes = overlap.sum(axis=1) + np.where(match >= 0, overlap.sum(axis=0)[match], 0)
        jaccards[index] = common / np.maximum(sizes - common, 1)
    labels = votes.argmax(axis=1)
    if len(np.unique(labels)) < len(np.unique(reference)):
        labels = reference
    return labels, jaccards.mean(axis=0)


def _overlap(reference: Ints, labels: Ints, n_components: int) -> Ints:
    """Number of common rows of every two components, shape (K, K')."""
    n_labels = max(int(labels.max()) + 1, n_components)
    flat = np.bincount(reference * n_labels + labels, minlength=n_components * n_labels)
    return flat.reshape(n_components, n_labels)


def _match(overlap: Ints, n_known: int) -> Ints:
    """Partner of each reference component, -1 for none; known classes keep to themselves."""
    match = np.full(len(overlap), -1)
    match[:n_known] = np.arange(n_known)
    rows, columns = linear_sum_assignment(overlap[n_known:, n_known:], maximize=True)
    found = overlap[n_known + rows, n_known + columns] > 0
    match[n_known + rows[found]] = n_known + columns[found]
    return match
