"""One start of the mixture: from a first partition, pass by pass, to its end (Sec. 3.2).

A pass proposes splits and merges, carries out those that are accepted, and then lets the rows find
their components again. The estimator runs several starts; `outcome` makes one result of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from newfound.arrays import Ints
from newfound.errors import InputError
from newfound.mixture.acceptance import SteeredAcceptance, accept_literal
from newfound.mixture.assignment import N_ROUNDS, assign_soft, nearest_labels
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.hastings import CountTerm
from newfound.mixture.prior import NIWPrior
from newfound.mixture.refill import keep_k
from newfound.mixture.rows import SortedRows
from newfound.mixture.split_merge import (
    Components,
    Move,
    Rules,
    number_components,
    split_merge_pass,
)
from newfound.mixture.stats import GaussianStats

Assignment = Literal["nearest", "soft"]


@dataclass(frozen=True)
class Pass:
    """Record of one pass of split and merge moves.

    Attributes
    ----------
    n_components : int
        K, the number of components after the pass.
    log_likelihood : float or None
        Σ log [Γ(N_i) h(Z_i; θ)] over the components after the pass. Its difference between two
        partitions is log H, the logarithm of the Hastings ratio. None if H decides nothing.
    n_reassigned : int
        Number of rows that changed their component in the re-assignment after the moves.
    moves : list of Move
        All proposals, accepted or not.
    """

    n_components: int
    log_likelihood: float | None
    n_reassigned: int
    moves: list[Move]


@dataclass(frozen=True)
class SearchSettings:
    """What one start may do.

    Attributes
    ----------
    n_novel : int or None
        K^n to arrive at, the number of novel components. None to accept each move on its own,
        with the paper's probability.
    n_components : int or None
        K to keep, if it is given: then components neither split nor merge. None to make moves.
    max_passes : int
        Maximum number of passes.
    assign : {"nearest", "soft"}
        How rows find their components.
    count_term : {"gamma", "factorial"}
        What Γ stands for in Eq. 5 and 6.
    prior : NIWPrior or None
        θ; None to fit it to the labelled classes.
    verbose : bool
        Whether to print one line per pass.
    callback : callable or None
        Called with the `Pass` after each pass.
    """

    n_novel: int | None
    n_components: int | None
    max_passes: int
    assign: Assignment
    count_term: CountTerm
    prior: NIWPrior | None
    verbose: bool
    callback: Callable[[Pass], object] | None


class FinishedStart(NamedTuple):
    """One start at its end."""

    components: Components
    prior: NIWPrior
    history: list[Pass]
    converged: bool


def search(
    rows: SortedRows,
    labels: Ints,
    settings: SearchSettings,
    random_state: np.random.RandomState,
) -> FinishedStart:
    """Alternate moves and re-assignment until they change nothing.

    With a K^n to arrive at, a start also ends when a pass at that K^n has not improved the fit.
    Partitions with the same number of components can be compared by their inertia.

    Parameters
    ----------
    rows : SortedRows
        The projected rows.
    labels : ndarray of int, shape (n,)
        First partition; the first K^l components are the known classes.
    settings : SearchSettings
        What the start may do.
    random_state : RandomState
        Draws a seed for each pass.

    Returns
    -------
    FinishedStart
        The last partition, or the one with the best fit at the K^n to arrive at.
    """
    target = settings.n_novel
    accept = accept_literal if target is None else SteeredAcceptance(target)
    prior = _resolve_prior(rows, labels, settings.prior)
    # log H takes most of the time of a pass, and a steered acceptance does not look at it
    rules = Rules(prior, accept, settings.count_term, reads_ratios=target is None)
    components = _describe(rows, _assign(rows, labels, settings, prior), rules)
    history: list[Pass] = []
    best: Components | None = None
    converged = settings.n_components is not None
    while not converged and len(history) < settings.max_passes:
        seed = int(random_state.randint(2**31))
        moved, moves = split_merge_pass(rows.V, components, rules, seed)
        labels = _assign(rows, moved, settings, prior)
        n_reassigned = int(np.count_nonzero(labels != moved))
        converged = n_reassigned == 0 and not any(move.accepted for move in moves)
        components = _describe(rows, labels, rules)
        moves = [_by_name(move, rows.classes) for move in moves]
        log_likelihood = components.log_likelihood if rules.reads_ratios else None
        history.append(Pass(len(components.stats), log_likelihood, n_reassigned, moves))
        _report(history[-1], settings)
        # exchanges (a split for a merge) keep K^n, so the moves alone might go on for ever
        if len(components.stats) - rows.n_known == target:
            if best is None or components.inertia < best.inertia:
                best = components
            else:
                converged = True
    return FinishedStart(best or components, rules.prior, history, converged)


def _by_name(move: Move, classes: ClassOrder) -> Move:
    """A move with the numbers of the known classes that users see."""
    parents, children = (
        tuple(classes.number_by_name(np.array(numbers, dtype=np.int64)).tolist())
        for numbers in (move.parents, move.children)
    )
    return replace(move, parents=parents, children=children)


def _report(finished: Pass, settings: SearchSettings) -> None:
    """Print a line about a pass and call the callback, if these are wanted."""
    if settings.verbose:
        n_accepted = sum(move.accepted for move in finished.moves)
        line = f"K = {finished.n_components}, {n_accepted} moves"
        if finished.log_likelihood is not None:
            line += f", log-likelihood {finished.log_likelihood:.6g}"
        print(line)
    if settings.callback is not None:
        settings.callback(finished)


def _describe(rows: SortedRows, labels: Ints, rules: Rules) -> Components:
    """Statistics and evidence of the components of a partition."""
    return Components.of(rows.V, labels, rows.n_known, rules, rows.keys)


def _assign(rows: SortedRows, labels: Ints, settings: SearchSettings, prior: NIWPrior) -> Ints:
    """Let the rows find their components again; number these without gaps."""
    V, codes, n_known, k = rows.V, rows.codes, rows.n_known, settings.n_components

    def assign(labels: Ints) -> Ints:
        labels = number_components(labels, n_known)[labels]
        if settings.assign == "soft":
            return assign_soft(V, codes, labels, n_known, prior)
        return nearest_labels(V, codes, labels, n_known, N_ROUNDS)

    labels = assign(labels)
    if k is not None:
        labels = keep_k(assign, V, codes, labels, n_known, k)
    return number_components(labels, n_known)[labels]


def _resolve_prior(rows: SortedRows, labels: Ints, prior: NIWPrior | None) -> NIWPrior:
    """Take the given prior, or fit one to the labelled classes (deviation D3)."""
    n_directions = rows.V.shape[1]
    if prior is not None:
        if prior.n_features != n_directions:
            raise InputError(
                f"prior has {prior.n_features} dimensions, but the rows are projected "
                f"on {n_directions} directions; give a prior of that size."
            )
        return prior
    # without a known class, the first partition stands for the classes
    codes = rows.codes if rows.n_known else labels
    n_classes = int(codes.max()) + 1
    classes = GaussianStats.from_labels(rows.V, codes, n_classes)
    return NIWPrior.from_classes(classes, GaussianStats.from_points(rows.V))
