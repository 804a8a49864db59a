"""Rounds of hiding: how near rows are to known classes when some of these are hidden.

The evidence that `count_categories` draws its conclusions from. Labelled rows that are held out
behave like unlabelled rows of known classes, labelled rows of hidden classes like novel rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from newfound.arrays import Bools, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.counting.neighbours import (
    balanced_graph,
    class_sums,
    nearest_of,
    nearest_rows,
    whiten_by_classes,
    whiten_by_neighbours,
)
from newfound.mixture.projection import unit_rows

N_FOLDS = 5  # parts that the labelled rows are held out in
N_HIDINGS = 5  # groups that the classes are hidden in, one in each round
N_REPEATS = 3  # draws of the folds
_N_DIRECTIONS = 256
_N_CANDIDATES = 100  # nearest rows of a row, found once; each round chooses among them
_N_NEIGHBOURS = 30
_STEPS = (1, 2, 4)  # lengths of the walks on the graph


class Seen(NamedTuple):
    """Rows of one group, over all rounds."""

    affinity: Floats  # (m, 4) to the nearest class that is not hidden, by walks and by its mean
    own: Ints  # (m,) their class, -1 if it is unknown
    nearest: Ints  # (m,) the class that they are nearest to

    def only(self, chosen: Bools) -> Seen:
        """The chosen rows."""
        return Seen(self.affinity[chosen], self.own[chosen], self.nearest[chosen])


class Evidence(NamedTuple):
    """What the rounds have shown."""

    held_out: Seen  # labelled rows held out of the references
    hidden: Seen  # labelled rows of hidden classes
    unlabelled: Seen
    n_kept: float  # labelled rows of classes that are not hidden, on average over the rounds
    n_hidings: int  # groups that the classes were hidden in


def gather_evidence(
    X: Floats, codes: Ints, *, by_class: bool, rng: np.random.Generator
) -> Evidence | None:
    """Hide classes and hold out rows, round by round, and see how near all rows are to the rest.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    codes : ndarray of int, shape (n,)
        Known classes, -1 where a row is unlabelled; every class has a row.
    by_class : bool
        Whether labels were given to a fixed number of rows of each class, and not at random.
    rng : Generator
        Draws folds and hidden classes.

    Returns
    -------
    Evidence or None
        None where nothing can be seen: all rows are alike, or no row could be held out.
    """
    V = whiten_by_neighbours(X, _N_DIRECTIONS, rng)
    if not V.any():
        return None
    candidates, _ = nearest_rows(V, min(_N_CANDIDATES, len(V) - 1))
    rounds = list(_play(V, candidates, codes, by_class, rng))
    held_out, hidden, unlabelled = (
        Seen(*(np.concatenate(parts) for parts in zip(*(r[i] for r in rounds), strict=True)))
        for i in range(3)
    )
    if len(held_out.own) == 0 or len(hidden.own) == 0:
        return None
    n_kept = float(np.mean([r[3] for r in rounds]))
    return Evidence(held_out, hidden, unlabelled, n_kept, min(N_HIDINGS, int(codes.max()) + 1))


def _play(
    V: Floats, candidates: Ints, codes: Ints, by_class: bool, rng: np.random.Generator
) -> Iterator[tuple[Seen, Seen, Seen, int]]:
    """Yield the three groups and the number of kept labels, for each round."""
    labelled, free = np.flatnonzero(codes != UNLABELLED), np.flatnonzero(codes == UNLABELLED)
    classes, n_known = codes[labelled], int(codes.max()) + 1
    n_groups = min(N_HIDINGS, n_known)
    group = rng.permutation(np.arange(n_known) % n_groups)
    for number in range(N_REPEATS * N_FOLDS):
        if number % N_FOLDS == 0:
            fold = _draw_folds(classes, by_class, rng)
            if n_known > n_groups:  # otherwise the turns of single classes go on
                group = rng.permutation(group)
        is_hidden = group[classes] == number % n_groups
        is_out = fold == number % N_FOLDS
        chosen = ~is_hidden & ~is_out
        if not chosen.any():
            continue
        affinity, nearest = _affinity(V, candidates, labelled[chosen], classes[chosen])
        held_out, covered, other = (
            Seen(affinity[rows], codes[rows], nearest[rows])
            for rows in (labelled[~is_hidden & is_out], labelled[is_hidden], free)
        )
        yield held_out, covered, other, int((~is_hidden).sum())


def _draw_folds(classes: Ints, by_class: bool, rng: np.random.Generator) -> Ints:
    """Fold of every labelled row, drawn as the labels were.

    Then a held-out row has as many labelled fellows, on average, as an unlabelled one.
    """
    order = rng.permutation(len(classes))
    if by_class:
        order = order[np.argsort(classes[order], kind="stable")]
    fold = np.empty(len(classes), dtype=np.int64)
    fold[order] = np.arange(len(classes)) % N_FOLDS
    return fold


def _walk(graph: sparse.csr_array, references: Ints, classes: Ints, n_known: int) -> list[Floats]:
    """Chance that a walk from each row ends on a reference of each class, for each length."""
    mass = np.zeros((graph.shape[0], n_known), dtype=np.float32)
    mass[references, classes] = 1
    walks = []
    for step in range(1, _STEPS[-1] + 1):
        mass = graph @ mass
        if step in _STEPS:
            walks.append(mass)
    return walks


def _affinity(V: Floats, candidates: Ints, references: Ints, classes: Ints) -> tuple[Floats, Ints]:
    """How near all rows are to the nearest class of the references, and which class that is.

    The space is learnt from the references alone: held-out rows then lie in it as unlabelled
    rows of the same classes do, and rows of hidden classes as novel ones.
    """
    names, own = np.unique(classes, return_inverse=True)
    space = whiten_by_classes(V, references, own)
    graph = balanced_graph(*nearest_of(space, candidates, min(_N_NEIGHBOURS, candidates.shape[1])))
    walks = _walk(graph, references, own, len(names))
    centres = unit_rows(class_sums(space, references, own)).astype(np.float32)
    affinity = [np.sqrt(mass.max(axis=1)) for mass in walks]
    affinity.append((space @ centres.T).max(axis=1))
    return np.stack(affinity, axis=1), names[walks[-1].argmax(axis=1)]
