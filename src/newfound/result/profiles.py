"""Profiles of the categories: size, certainty, nearest category, and items to look at."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.rows import squared_distances
from newfound.result.assign import Assigned
from newfound.result.evidence import MoveEvidence, weigh_moves

#: Number of exemplars, and of borderline items, of each category.
N_EXAMPLES = 6


class CategoryProfiles(NamedTuple):
    """What there is to know about the categories, as arrays over their codes.

    Attributes
    ----------
    sizes, n_labelled : ndarray of int, shape (K,)
        Number of items, and of items with a given label.
    stability : ndarray of shape (K,)
        How far the starts of the mixture agree on the category; NaN for a single start.
    mean_confidence : ndarray of shape (K,)
        Mean of the confidence of its items; NaN without any.
    nearest : ndarray of int, shape (K,)
        Code of the category with the nearest prototype, -1 if there is no other.
    exemplars : tuple of ndarray of int
        For each category, rows of the items nearest to its prototype.
    borderline : tuple of ndarray of int
        For each category, rows of the unlabelled items of least confidence.
    evidence : MoveEvidence or None
        Why it is neither split nor merged; None if a run folder does not say.
    """

    sizes: Ints
    n_labelled: Ints
    stability: Doubles
    mean_confidence: Doubles
    nearest: Ints
    exemplars: tuple[Ints, ...]
    borderline: tuple[Ints, ...]
    evidence: MoveEvidence | None


def profile_categories(
    mixture: SplitMergeMixture, V: Floats, assigned: Assigned, is_labelled: Bools
) -> CategoryProfiles:
    """Describe each category of a mixture.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted.
    V : ndarray of shape (n, q)
        The items in its space.
    assigned : Assigned
        Category of each item.
    is_labelled : ndarray of bool, shape (n,)
        Items with a given label.

    Returns
    -------
    CategoryProfiles
        In the order of the mixture's components.
    """
    labels, n = assigned.labels, len(mixture.prototypes_)
    sizes = np.bincount(labels, minlength=n)
    sums = np.bincount(labels, assigned.confidence, minlength=n)
    unlabelled = np.flatnonzero(~is_labelled)
    return CategoryProfiles(
        sizes=sizes,
        n_labelled=np.bincount(labels[is_labelled], minlength=n),
        stability=np.asarray(mixture.stability_, dtype=np.float64),
        mean_confidence=np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan),
        nearest=_nearest_prototypes(mixture.prototypes_),
        exemplars=_first_rows(np.arange(len(labels)), labels, assigned.distance, n),
        # The category of a labelled item is certain, however unlikely it looks.
        borderline=_first_rows(unlabelled, labels, assigned.confidence, n),
        evidence=weigh_moves(mixture, V, labels),
    )


def _nearest_prototypes(prototypes: Floats) -> Ints:
    """The prototype nearest to each, -1 for a single one."""
    if len(prototypes) < 2:
        return np.full(len(prototypes), -1, dtype=np.int64)
    # No category is its own neighbour.
    distances = squared_distances(prototypes, prototypes)
    np.fill_diagonal(distances, np.inf)
    return distances.argmin(axis=1)


def _first_rows(rows: Ints, labels: Ints, values: Doubles, n: int) -> tuple[Ints, ...]:
    """For each of the `n` categories, at most `N_EXAMPLES` of its rows: the smallest values."""
    labels, values = labels[rows], values[rows]
    order = np.lexsort((values, labels))
    starts = np.searchsorted(labels[order], np.arange(n + 1))
    return tuple(
        rows[order[start : min(start + N_EXAMPLES, end)]]
        for start, end in itertools.pairwise(starts)
    )
