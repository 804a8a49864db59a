"""Which category each row belongs to, how certain that is, and how far out the row lies.

Everything here follows from a fitted mixture and the rows alone: nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.mixture.counting.calibration import ConfidenceMap
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.rows import row_blocks

Singles: TypeAlias = npt.NDArray[np.float32]

#: With fewer labelled rows than this, their distances say too little about what is usual.
ENOUGH_LABELS = 20


class Assigned(NamedTuple):
    """Category of each row.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Code of the category.
    confidence : ndarray of shape (n,)
        Probability of the category.
    runner_up : ndarray of shape (n,)
        Code of the most probable other category; -1 if there is no other.
    distance : ndarray of shape (n,)
        Distance from the prototype of the category, in the mixture's space; NaN if the prototypes
        are not known because a run folder has lost its model.
    """

    labels: Ints
    confidence: Doubles
    runner_up: Ints
    distance: Doubles


def assign(
    mixture: SplitMergeMixture, features: Floats, fixed: Ints | None = None
) -> tuple[Assigned, Singles]:
    """Assign rows to their most probable category, block by block.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted.
    features : ndarray of shape (n, d)
        The rows.
    fixed : ndarray of shape (n,), optional
        Category of the rows whose category is already known, -1 for the others.

    Returns
    -------
    assigned : Assigned
        Categories with their probabilities and distances.
    V : ndarray of shape (n, q), float32
        The rows in the mixture's space.
    """
    n, n_components = len(features), len(mixture.prototypes_)
    fixed = np.full(n, -1) if fixed is None else fixed
    labels, runner_up = np.empty(n, np.int64), np.empty(n, np.int64)
    confidence = np.empty(n)
    V = np.empty((n, mixture.n_directions_), np.float32)
    for block, projected in _projected_blocks(mixture, features):
        rows = np.arange(block.stop - block.start)
        probabilities = mixture.proba_of_projected(projected)
        best = np.where(fixed[block] >= 0, fixed[block], probabilities.argmax(axis=1))
        V[block], labels[block], confidence[block] = projected, best, probabilities[rows, best]
        probabilities[rows, best] = -1
        runner_up[block] = probabilities.argmax(axis=1) if n_components > 1 else -1
    distance = distances_from_prototypes(V, mixture.prototypes_, labels)
    return Assigned(labels, confidence.clip(0, 1), runner_up, distance), V


def project(mixture: SplitMergeMixture, features: Floats) -> Singles:
    """Rows in the mixture's space, shape (n, q): the same bits as from `assign`."""
    V = np.empty((len(features), mixture.n_directions_), np.float32)
    for block, projected in _projected_blocks(mixture, features):
        V[block] = projected
    return V


def _projected_blocks(
    mixture: SplitMergeMixture, features: Floats
) -> Iterator[tuple[slice, Floats]]:
    """Blocks of rows with their projection, in the precision of the features."""
    # The last bit of a matrix product depends on the number of its rows. One division into blocks
    # for all callers keeps a result that is read from its folder equal to the one written there.
    n_columns = max(features.shape[1], len(mixture.prototypes_))
    for block in row_blocks(len(features), n_columns):
        yield block, mixture.projection_.transform(features[block])


def distances_from_prototypes(V: Floats, prototypes: Floats, labels: Ints) -> Doubles:
    """Distance of each row of V from the prototype of its category, shape (n,)."""
    distances = np.empty(len(V))
    for block in row_blocks(len(V), V.shape[1]):
        differences = V[block] - prototypes[labels[block]]
        distances[block] = np.sqrt(np.square(differences).sum(axis=1))
    return distances


def unsure_items(
    confidence: Doubles, is_labelled: Bools, min_confidence: float | None
) -> Bools | None:
    """Which items are below the confidence that a person asked for.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probability of the category of each item.
    is_labelled : ndarray of bool, shape (n,)
        Items with a given label. They are never unsure: a person has said what they are.
    min_confidence : float or None
        The lowest confidence that is sure enough.

    Returns
    -------
    ndarray of bool, shape (n,), or None
        None if `min_confidence` is None.
    """
    if min_confidence is None:
        return None
    return ~is_labelled & ~(confidence >= min_confidence)


# ------------------------------------------------------------------------------ outlier scores


def outlier_scores(distance: Doubles, reference: Doubles) -> Doubles:
    """How far out rows lie: the share of reference distances that are smaller.

    Parameters
    ----------
    distance : ndarray of shape (n,)
        Distances of rows from the prototype of their category.
    reference : ndarray of shape (m,)
        Usual distances in ascending order, see `usual_distances`.

    Returns
    -------
    ndarray of shape (n,)
        Scores from 0 to 1; 1 is farther out than every reference distance.
    """
    scores: Doubles = np.searchsorted(reference, distance, side="left") / max(1, len(reference))
    return scores


def usual_distances(distance: Doubles, is_labelled: Bools) -> Doubles:
    """Reference for `outlier_scores`: distances of labelled rows, or of all if few are labelled.

    Parameters
    ----------
    distance : ndarray of shape (n,)
        Distances from `leave_one_out`.
    is_labelled : ndarray of bool, shape (n,)
        Rows with a given label.

    Returns
    -------
    ndarray of shape (m,)
        In ascending order.
    """
    # A distance of 0 is that of the only labelled row of a class: the row is its own prototype.
    labelled = distance[is_labelled & (distance > 0)]
    return np.sort(labelled if len(labelled) >= ENOUGH_LABELS else distance)


def calibrated(assigned: Assigned, calibration: ConfidenceMap | None) -> Assigned:
    """The same with confidences that say how often the category is right."""
    if calibration is None:
        return assigned
    return assigned._replace(confidence=calibration(assigned.confidence))


def leave_one_out(assigned: Assigned, is_labelled: Bools, n_known: int) -> Doubles:
    """Distances from prototypes that are computed without the row itself.

    A row pulls the mean that is its prototype towards itself, so its distance looks too small. If
    a row lies d from the mean of n rows, it lies d n / (n - 1) from the mean of the others. This
    is nearly true for weighted means too; prototypes are weighted means if sizes are expected.

    Parameters
    ----------
    assigned : Assigned
        Where the rows belong.
    is_labelled : ndarray of bool, shape (n,)
        Rows with a given label.
    n_known : int
        K^l, number of known classes.

    Returns
    -------
    ndarray of shape (n,)
        Infinite for an unlabelled row that is alone in its category; 0 for the only label of a
        class.
    """
    # The prototype of a known class is the mean of its labelled rows; that of a novel category is
    # the mean of all its rows.
    counts_for_prototype = is_labelled | (assigned.labels >= n_known)
    n = np.bincount(assigned.labels, counts_for_prototype)[assigned.labels]
    factor = np.where(counts_for_prototype & (n > 1), n / np.maximum(n - 1, 1), 1)
    is_alone = counts_for_prototype & ~is_labelled & (n == 1)
    return np.where(is_alone, np.inf, factor * assigned.distance)
