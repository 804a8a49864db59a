"""More rows for a fitted mixture: its components stay, and new ones are found among the new rows.

A mixture that is fitted again finds nearly the same components, but not quite: borders move, and a
component may split while two others merge. `extended` changes nothing that was found. It adds a
component where added rows are in excess, see `excess`.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state

from newfound.arrays import Bools, Doubles, Floats, Ints, LabelsLike
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.assignment import N_FINAL_ROUNDS, mixture_parameters
from newfound.mixture.counting.count import CategoryCount, count_checked
from newfound.mixture.counting.neighbours import whiten_by_neighbours
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.excess import SMALLEST, largest_excess, neighbourhoods
from newfound.mixture.outcome import number_by_size
from newfound.mixture.rows import content_order, nearest_centre, row_keys, sum_by_label
from newfound.mixture.stats import GaussianStats

#: An excess of added rows counts if it is less probable than this by chance.
LEVEL = 0.01
#: Principal directions of the space in which neighbours are found.
_N_DIRECTIONS = 128


def extended(mixture: SplitMergeMixture, X: Floats, y: LabelsLike) -> SplitMergeMixture:
    """Add rows to a fitted mixture; add components for what only the added rows have.

    The projection, the prototypes and the offsets stay, so that earlier rows stay in their
    component, unless they are nearer to the prototype of a new one. Classes with more labels than
    before get the mean of all labelled rows as their prototype.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted, with ``assign="nearest"``; it is not changed.
    X : ndarray of shape (n, d)
        The rows it was fitted to, in their order, then the added ones.
    y : array-like of shape (n,)
        Partial labels, of the same known classes as before.

    Returns
    -------
    SplitMergeMixture
        A mixture of all rows. The interval of K^n is moved by the number of new components.
    """
    codes = encode_labels(y, len(X)).codes
    seed = int(check_random_state(mixture.random_state).randint(2**31))
    keys = row_keys(X)
    order = content_order(keys, codes)
    is_added = np.arange(len(X)) >= len(mixture.labels_)
    labels = mixture.labels_
    if is_added.any():
        labels = np.append(labels, mixture.predict(X[is_added]))
    labels = np.where(codes == UNLABELLED, labels, codes)
    # an added row with a label is of a known class: it is no part of an excess
    is_free = is_added & (codes == UNLABELLED)
    rng = np.random.default_rng(seed)
    labels[order] = find_new_categories(X[order], labels[order], is_free[order], rng)
    n_old, n_found = mixture.n_components_, int(labels.max()) + 1 - mixture.n_components_
    # a new component has no expected size; the mean keeps it on a par with the other novel ones
    typical = mixture.offsets_[mixture.n_known_ :] if mixture.n_novel_ else mixture.offsets_
    offsets = np.append(mixture.offsets_, np.full(n_found, typical.mean()))
    V = mixture.projection_.transform(X)
    fixed = _fixed_prototypes(mixture, V, codes, is_added)
    labels, prototypes = _settle(V, codes, labels, is_free, fixed, offsets)

    number_of, by_size = number_by_size(labels, np.arange(mixture.n_known_), keys)
    more = copy.copy(mixture)
    more.labels_ = number_of[labels]
    more.prototypes_, more.offsets_ = prototypes[by_size], offsets[by_size]
    more.stability_ = np.append(mixture.stability_, np.full(n_found, np.nan))[by_size]
    more.n_components_ = more._n_features_out = len(by_size)
    more.n_novel_ = len(by_size) - mixture.n_known_
    stats = GaussianStats.from_labels(V[order], more.labels_[order], len(by_size))
    parameters = mixture_parameters(stats, mixture.prior_)
    more.means_, more.covariances_, more.weights_ = parameters
    if mixture.count_ is not None:
        n_new = int((by_size >= n_old).sum())
        rates = count_checked(
            X,
            codes,
            order,
            level=mixture.count_.level,
            sizes=mixture.sizes or "alike",
            random_state=seed,
        )
        more.count_ = _count_more(mixture.count_, n_new, rates)
        more.n_novel_interval_ = more.count_.interval
    return more


def find_new_categories(X: Floats, labels: Ints, is_added: Bools, rng: np.random.Generator) -> Ints:
    """Find categories that only added rows have, one after the other, until none is significant.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, sorted by content.
    labels : ndarray of int, shape (n,)
        Category of each earlier row, and the nearest category of each added one.
    is_added : ndarray of bool, shape (n,)
        The added rows.
    rng : Generator
        Draws sampled rows and permutations.

    Returns
    -------
    ndarray of shape (n,)
        The same labels, with new numbers for added rows of new categories.
    """
    if is_added.sum() < SMALLEST or is_added.all():
        return labels
    # a space that is learnt without labels, because only earlier rows have them
    V = whiten_by_neighbours(X, _N_DIRECTIONS, rng)
    nearest = neighbourhoods(V)
    n_old = int(labels.max()) + 1
    centres = _follow(V[~is_added], labels[~is_added], np.zeros((n_old, V.shape[1])), 0)
    found = labels.copy()
    while True:
        excess = largest_excess(nearest, is_added, found, rng)
        rows = excess.rows[is_added[excess.rows] & (found[excess.rows] < n_old)]
        if excess.p_value > LEVEL or len(rows) == 0:
            return found
        centres = np.vstack([centres, V[rows].mean(axis=0)])
        places, centres = _nearest_with_new(V[is_added], centres, n_old)
        if len(np.unique(places[places >= n_old])) < len(centres) - n_old:
            return found  # one of the new categories has lost its rows: they are not distinct
        found[is_added] = np.where(places < n_old, labels[is_added], places)


def _nearest_with_new(V: Floats, centres: Doubles, n_old: int) -> tuple[Ints, Doubles]:
    """Assign added rows to the nearest centre, and let the centres of new categories follow."""
    places = np.full(len(V), -1)
    for _ in range(N_FINAL_ROUNDS):
        before, places = places, nearest_centre(V, centres.astype(V.dtype))[0]
        if np.array_equal(before, places):
            break
        centres = _follow(V, places, centres, n_old)
    return places, centres


def _settle(
    V: Floats, codes: Ints, labels: Ints, is_free: Bools, fixed: Doubles, offsets: Doubles
) -> tuple[Ints, Doubles]:
    """Assign unlabelled rows to the nearest prototype; prototypes of new components follow.

    These are means of added rows only: earlier rows have a component that fits them already.
    """
    prototypes = np.vstack([fixed, np.zeros((len(offsets) - len(fixed), V.shape[1]))])
    for _ in range(N_FINAL_ROUNDS):
        prototypes = _follow(V[is_free], labels[is_free], prototypes, len(fixed))
        nearest, before = nearest_centre(V, prototypes.astype(V.dtype), offsets)[0], labels
        labels = np.where(codes == UNLABELLED, nearest, codes)
        if np.array_equal(labels, before):
            break
    return labels, prototypes


def _follow(V: Floats, labels: Ints, centres: Doubles, n_fixed: int) -> Doubles:
    """Move the centres after the fixed ones to the means of their rows, if they have any."""
    counts = np.bincount(labels, minlength=len(centres))
    sums = sum_by_label(V, labels, len(centres), np.ones(len(V), V.dtype))
    moves = (counts > 0) & (np.arange(len(centres)) >= n_fixed)
    return np.where(moves[:, None], sums / np.maximum(counts, 1)[:, None], centres)


def _fixed_prototypes(
    mixture: SplitMergeMixture, V: Floats, codes: Ints, is_added: Bools
) -> Doubles:
    """Prototypes of the mixture; classes with more labels get the mean of all labelled rows."""
    labelled = codes != UNLABELLED
    means = _follow(V[labelled], codes[labelled], mixture.prototypes_, 0)
    has_more = np.isin(np.arange(len(means)), codes[labelled & is_added])
    return np.where(has_more[:, None], means, mixture.prototypes_)


def _count_more(count: CategoryCount, n_new: int, rates: CategoryCount) -> CategoryCount:
    """The count with K^n and its interval moved by the new components, and rates of all rows."""
    low, high = count.interval
    return replace(rates, n_novel=count.n_novel + n_new, interval=(low + n_new, high + n_new))
