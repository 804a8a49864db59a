"""Several starts, one result: the vote, the final partition, and what is derived from it.

The starts vote over the rows, the rows settle at their nearest prototypes, sizes are adjusted
where they are expected to be alike, and the novel components are numbered by size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.arrays import Doubles, Ints, Keys
from newfound.labels import UNLABELLED
from newfound.mixture.assignment import (
    N_FINAL_ROUNDS,
    nearest_labels,
    prototypes_of,
    spherical_variance,
)
from newfound.mixture.counting.novel_size import Sizes
from newfound.mixture.refill import nearest_in_k
from newfound.mixture.rows import SortedRows, nearest_centre, squared_distances
from newfound.mixture.search import Assignment, FinishedStart
from newfound.mixture.sizes import expect_sizes, fit_sizes, share_by_distance
from newfound.mixture.split_merge import number_components
from newfound.mixture.stats import GaussianStats

#: This many labelled rows are enough to fit the one variance of `predict_proba`.
_ROWS_FOR_VARIANCE = 4000


@dataclass(frozen=True)
class Outcome:
    """The final partition and what `predict` needs.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Component of each row, in the order of the input.
    stability : ndarray of shape (K,)
        Agreement of the starts on each component; NaN if there was one start.
    stats : GaussianStats
        Stacked statistics of the K components.
    prototypes : ndarray of shape (K, q)
        Prototype of each component.
    offsets : ndarray of shape (K,)
        Subtracted from the squared distances to the prototypes before they are compared.
    spherical_variance : float
        Common variance of the components in `predict_proba`.
    """

    labels: Ints
    stability: Doubles
    stats: GaussianStats
    prototypes: Doubles
    offsets: Doubles
    spherical_variance: float


def best_start(starts: list[FinishedStart], *, same_k: bool) -> FinishedStart:
    """Choose the best start.

    If all have the same K, it is the one with the smallest inertia, the sum of squared distances to
    the prototypes; otherwise the most probable one.
    """
    # inertia falls with every further component, so it can only compare partitions of equal K
    return max(
        starts,
        key=lambda start: -start.components.inertia if same_k else start.components.log_likelihood,
    )


def conclude(
    rows: SortedRows,
    partitions: list[Ints],
    *,
    n_components: int | None,
    assign: Assignment,
    sizes: Sizes | None,
    n_novel_rows: float,
) -> Outcome:
    """Make one result of the partitions that the starts ended with.

    Parameters
    ----------
    rows : SortedRows
        The projected rows.
    partitions : list of ndarray of shape (n,)
        Partition of each start; that of the best start comes first.
    n_components : int or None
        K to keep, if it is given.
    assign : {"nearest", "soft"}
        How rows find their components.
    sizes : {"unknown", "alike"}, float or None
        What is known about the mean size of novel categories; None to expect nothing.
    n_novel_rows : float
        How many rows are novel; NaN if nobody has counted.

    Returns
    -------
    Outcome
        The result, known components first, by name, then novel ones by falling size.
    """
    labels, stability = vote(partitions[0], partitions[1:], rows.n_known)
    if assign == "nearest":
        labels, stability = _settle(rows, labels, stability, n_components)
    labels, prototypes, offsets = _adjust_to_sizes(rows, labels, sizes, n_novel_rows)
    variance = fit_variance(rows, prototypes, offsets)
    number_of, order = number_by_size(labels, rows.classes.by_content, rows.keys)
    labels = number_of[labels]
    prototypes, offsets = prototypes[order], offsets[order]
    in_given_order = np.empty_like(labels)
    in_given_order[rows.order] = labels
    return Outcome(
        in_given_order,
        stability[order],
        GaussianStats.from_labels(rows.V, labels, len(order)),
        prototypes,
        offsets,
        variance,
    )


def vote(reference: Ints, others: list[Ints], n_known: int) -> tuple[Ints, Doubles]:
    """Let several partitions of the same rows vote (deviation D10).

    Every other partition is matched to the reference: known classes with themselves, novel
    components one to one by their common rows. Then each row goes where most partitions put it;
    in case of a tie, where the reference puts it. If the vote would leave a component of the
    reference without rows, the reference is returned: the partitions differ too much to agree.

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
        The partition that most agree on.
    stability : ndarray of shape (K,)
        For each component of the reference, the mean Jaccard index with its match in the other
        partitions, between 0 and 1; NaN if there is no other partition.
    """
    n_components = max(int(reference.max()) + 1, n_known)
    stability = np.full(n_components, np.nan)
    if not others:
        return reference, stability
    candidates = [reference]
    jaccards = np.zeros((len(others), n_components))
    for index, labels in enumerate(others):
        overlap = _overlap(reference, labels, n_components)
        match = _match(overlap, n_known)
        number_of = np.full(overlap.shape[1], -1)
        number_of[match[match >= 0]] = np.flatnonzero(match >= 0)
        candidates.append(number_of[labels])
        common = np.where(match >= 0, overlap[np.arange(n_components), match], 0)
        sizes = overlap.sum(axis=1) + np.where(match >= 0, overlap.sum(axis=0)[match], 0)
        jaccards[index] = common / np.maximum(sizes - common, 1)
    labels = _most_voted(np.stack(candidates), n_components)
    if len(np.unique(labels)) < len(np.unique(reference)):
        labels = reference
    return labels, jaccards.mean(axis=0)


def _most_voted(candidates: Ints, n_components: int) -> Ints:
    """The component with most votes for each row; of several, the one with the smallest number.

    `candidates` (S, n) has the component that each partition votes for, -1 for none; the first
    partition is the reference. Memory grows with S × n, not with n × K.
    """
    votes = np.zeros(candidates.shape, dtype=np.float32)
    for index, voted in enumerate(candidates):
        # the reference decides ties, but does not outvote two others
        votes += (candidates == voted) * np.float32(1.5 if index == 0 else 1.0)
    votes[candidates < 0] = 0
    most: Ints = np.where(votes == votes.max(axis=0), candidates, n_components).min(axis=0)
    return most


def _overlap(reference: Ints, labels: Ints, n_components: int) -> Ints:
    """Number of common rows of every two components, shape (K, K')."""
    n_labels = max(int(labels.max()) + 1, n_components)
    flat = np.bincount(reference * n_labels + labels, minlength=n_components * n_labels)
    return flat.reshape(n_components, n_labels)


def _match(overlap: Ints, n_known: int) -> Ints:
    """Partner of each component of the reference, -1 for none; a known class is its own partner."""
    match = np.full(len(overlap), -1)
    match[:n_known] = np.arange(n_known)
    rows, columns = linear_sum_assignment(overlap[n_known:, n_known:], maximize=True)
    found = overlap[n_known + rows, n_known + columns] > 0
    match[n_known + rows[found]] = n_known + columns[found]
    return match


def _settle(
    rows: SortedRows, labels: Ints, stability: Doubles, n_components: int | None
) -> tuple[Ints, Doubles]:
    """Re-assign rows until none moves, so that `predict` repeats `labels_`; keep a given K."""
    V, codes, n_known, k = rows.V, rows.codes, rows.n_known, n_components or len(stability)
    agreement = np.full(k, np.nan if np.isnan(stability).all() else 0.0)
    agreement[: len(stability)] = stability
    labels = nearest_labels(V, codes, labels, n_known, N_FINAL_ROUNDS)
    is_lost = np.bincount(labels, minlength=k) == 0
    if n_components is not None and is_lost.any():
        labels = nearest_in_k(V, codes, labels, n_known, N_FINAL_ROUNDS, n_components)
        agreement[is_lost] *= 0  # none of the starts has found what takes its place
    number_of = number_components(labels, n_known, k)
    return number_of[labels], agreement[number_of >= 0]


def _adjust_to_sizes(
    rows: SortedRows, labels: Ints, sizes: Sizes | None, n_novel_rows: float
) -> tuple[Ints, Doubles, Doubles]:
    """Labels, prototypes and offsets, with components of the expected sizes (deviation D28)."""
    prototypes = prototypes_of(rows.V, rows.codes, labels, rows.n_known)
    unadjusted = labels, prototypes, np.zeros(len(prototypes))
    expected = expect_sizes(rows.codes, labels, len(prototypes), sizes, n_novel_rows)
    if expected is None:
        return unadjusted
    free = rows.free
    V = rows.V[free]
    fitted = fit_sizes(share_by_distance(V), prototypes, rows.n_known, expected)
    labels = rows.codes.copy()
    labels[free] = nearest_centre(V, fitted.prototypes.astype(V.dtype), fitted.offsets)[0]
    # K was decided before; a component that would lose all its rows rules the adjustment out
    if len(np.unique(labels)) < len(prototypes) or not fitted.converged:
        return unadjusted
    return labels, fitted.prototypes, fitted.offsets


def number_by_size(labels: Ints, known: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """New number of each component, and the components in the order of these numbers.

    Known ones come first, in the order given, then novel ones by falling size; empty novel ones
    get -1.
    """
    n_known = len(known)
    sizes = np.bincount(labels, minlength=n_known)
    # components of equal size are ordered by content, not by the order of the rows
    content = np.zeros(len(sizes), dtype=np.uint64)
    np.add.at(content, labels, keys)
    novel = np.lexsort((content[n_known:], -sizes[n_known:])) + n_known
    order = np.concatenate([known, novel[sizes[novel] > 0]])
    number_of = np.full(len(sizes), -1)
    number_of[order] = np.arange(len(order))
    return number_of, order


def fit_variance(rows: SortedRows, prototypes: Doubles, offsets: Doubles) -> float:
    """Fit the one variance that makes the probabilities of `predict_proba` honest."""
    centres = prototypes.astype(rows.V.dtype)
    mean_square = nearest_centre(rows.V, centres, offsets)[1].mean()
    labelled = np.flatnonzero(rows.codes != UNLABELLED)
    # rows are sorted by their hashes, so that every k-th row is as good as a random sample
    some = labelled[:: max(1, -(-len(labelled) // _ROWS_FOR_VARIANCE))]
    return spherical_variance(
        squared_distances(rows.V[some], centres),
        rows.codes[some],
        np.bincount(rows.codes[labelled], minlength=rows.n_known),
        float(mean_square) / rows.V.shape[1] or 1.0,
        offsets,
    )
