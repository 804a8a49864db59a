"""Rounds of hiding: how near rows are to known classes when some known classes are hidden.

This is the evidence on which `count_categories` rests. Labelled rows that are held out of a round
behave like unlabelled rows of known classes. Labelled rows of classes that are hidden in a round
behave like rows of novel classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from newfound.arrays import Bools, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.counting.neighbours import (
    Surroundings,
    balanced_graph,
    class_sums,
    nearest_of,
    whiten_by_classes,
)
from newfound.mixture.projection import unit_rows

#: Parts of the labelled rows; each round holds out one part. Fewer if classes have fewer labels.
_N_FOLDS = 5
#: Groups of the known classes; each round hides one group.
N_HIDINGS = 5
#: Least number of rounds.
N_ROUNDS = 15
#: Neighbours of a row in the graph of one round, chosen among the candidates.
_N_NEIGHBOURS = 30
#: Lengths of the walks on the graph.
_STEPS = (1, 2, 4)


class Affinities(NamedTuple):
    """How near the rows of one group are to known classes, over all rounds.

    A row appears once for each round in which it belonged to the group.
    """

    affinity: Floats  # (m, 4) to the nearest class that is not hidden: three walks, and its mean
    own: Ints  # (m,) class of the row, -1 if unlabelled
    nearest: Ints  # (m,) the class to which the row is nearest
    row: Ints  # (m,) index of the row

    def select(self, chosen: Bools) -> Affinities:
        """Keep the chosen rows."""
        return Affinities(*(values[chosen] for values in self))


class Evidence(NamedTuple):
    """What the rounds have shown."""

    held_out: Affinities  # labelled rows that were held out
    hidden: Affinities  # labelled rows of hidden classes
    unlabelled: Affinities
    n_kept: float  # labelled rows of classes that are not hidden, on average over the rounds
    n_hidings: int  # groups in which the classes were hidden
    n_folds: int  # parts of the labelled rows
    n_repeats: int  # how often the parts were drawn

    def by_shortest_walk(self) -> Evidence:
        """The same evidence with one measure of nearness, that of the shortest walk."""
        groups = {
            name: getattr(self, name)._replace(affinity=getattr(self, name).affinity[:, :1])
            for name in ("held_out", "hidden", "unlabelled")
        }
        return self._replace(**groups)


def gather_evidence(
    near: Surroundings,
    codes: Ints,
    *,
    by_class: bool,
    rng: np.random.Generator,
    n_rounds: int = N_ROUNDS,
) -> Evidence | None:
    """Measure how near all rows are to known classes while others are hidden, round by round.

    Parameters
    ----------
    near : Surroundings
        Rows of unit length, not all of them equal.
    codes : ndarray of int, shape (n,)
        Known classes, -1 where a row is unlabelled; every class has a row.
    by_class : bool
        Whether each class got a fixed number of labels. Otherwise labels were given at random.
    rng : Generator
        Draws the folds and the hidden classes.
    n_rounds : int, default=15
        Least number of rounds.

    Returns
    -------
    Evidence or None
        None if there is nothing to measure, because no row could be held out.
    """
    n_folds = _N_FOLDS
    if by_class:  # each part then has one label of every class, or nearly so
        n_folds = min(n_folds, int(np.bincount(codes[codes != UNLABELLED]).min()))
    if n_folds < 2:
        return None
    n_repeats = -(-n_rounds // n_folds)
    draws = _Draws(by_class, n_folds, n_repeats)
    rounds = list(_run_rounds(near, codes, draws, rng))
    held_out, hidden, unlabelled = (
        Affinities(*(np.concatenate(parts) for parts in zip(*(r[i] for r in rounds), strict=True)))
        for i in range(3)
    )
    if len(held_out.own) == 0 or len(hidden.own) == 0:
        return None
    n_kept = float(np.mean([r[3] for r in rounds]))
    n_hidings = min(N_HIDINGS, int(codes.max()) + 1)
    return Evidence(held_out, hidden, unlabelled, n_kept, n_hidings, n_folds, n_repeats)


class _Draws(NamedTuple):
    """How labelled rows are held out."""

    by_class: bool
    n_folds: int
    n_repeats: int


def _run_rounds(
    near: Surroundings, codes: Ints, draws: _Draws, rng: np.random.Generator
) -> Iterator[tuple[Affinities, Affinities, Affinities, int]]:
    """Yield held-out, hidden and unlabelled rows and the number of kept labels, for each round."""
    labelled, free = np.flatnonzero(codes != UNLABELLED), np.flatnonzero(codes == UNLABELLED)
    classes, n_known = codes[labelled], int(codes.max()) + 1
    n_groups = min(N_HIDINGS, n_known)
    group = rng.permutation(np.arange(n_known) % n_groups)
    for number in range(draws.n_repeats * draws.n_folds):
        if number % draws.n_folds == 0:
            fold = _draw_folds(classes, draws, rng)
            # with one class per group, a new draw would hide some classes more often than others
            if n_known > n_groups:
                group = rng.permutation(group)
        is_hidden = group[classes] == number % n_groups
        is_out = fold == number % draws.n_folds
        chosen = ~is_hidden & ~is_out
        if not chosen.any():
            continue
        affinity, nearest = _affinity(near, labelled[chosen], classes[chosen])
        held_out, covered, other = (
            Affinities(affinity[rows], codes[rows], nearest[rows], rows)
            for rows in (labelled[~is_hidden & is_out], labelled[is_hidden], free)
        )
        yield held_out, covered, other, int((~is_hidden).sum())


def _draw_folds(classes: Ints, draws: _Draws, rng: np.random.Generator) -> Ints:
    """Draw the fold of every labelled row in the way in which the labels were given.

    A held-out row then has, on average, as many labelled rows of its class around it as an
    unlabelled row has.
    """
    order = rng.permutation(len(classes))
    if draws.by_class:
        order = order[np.argsort(classes[order], kind="stable")]
    fold = np.empty(len(classes), dtype=np.int64)
    fold[order] = np.arange(len(classes)) % draws.n_folds
    return fold


def _walk(graph: sparse.csr_array, references: Ints, classes: Ints, n_known: int) -> list[Floats]:
    """Probability that a walk from each row ends at a reference of each class, by length."""
    mass = np.zeros((graph.shape[0], n_known), dtype=np.float32)
    mass[references, classes] = 1
    walks = []
    for step in range(1, _STEPS[-1] + 1):
        mass = graph @ mass
        if step in _STEPS:
            walks.append(mass)
    return walks


def _affinity(near: Surroundings, references: Ints, classes: Ints) -> tuple[Floats, Ints]:
    """Measure how near all rows are to the nearest class of the references; name that class.

    The space is learnt from the references alone. Held-out rows then lie in it as unlabelled
    rows of the same classes do, and rows of hidden classes as rows of novel classes do.
    """
    names, own = np.unique(classes, return_inverse=True)
    space = whiten_by_classes(near.V, references, own)
    n_neighbours = min(_N_NEIGHBOURS, near.candidates.shape[1])
    graph = balanced_graph(*nearest_of(space, near.candidates, n_neighbours))
    walks = _walk(graph, references, own, len(names))
    centres = unit_rows(class_sums(space, references, own)).astype(np.float32)
    # the square root makes differences between small probabilities visible
    affinity = [np.sqrt(mass.max(axis=1)) for mass in walks]
    affinity.append((space @ centres.T).max(axis=1))
    return np.stack(affinity, axis=1), names[walks[-1].argmax(axis=1)]
