"""Which of the proposed moves are carried out.

`accept_literal` is the paper's rule: each move on its own, with the probability min(1, H), where
H is its Hastings ratio. In 128 dimensions |log H| is in the hundreds, and its sign depends on the
prior more than on the data. The default is therefore `SteeredAcceptance` (deviation D8 in
docs/deviations.md): it ranks moves by the gap between two means, and makes those that lead to a
given number of novel components. It does not look at H.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from newfound.arrays import Bools, Doubles, Ints

Kind = Literal["split", "merge"]


@dataclass(frozen=True)
class Proposals:
    """Proposed moves of one kind.

    Attributes
    ----------
    kind : {"split", "merge"}
        Kind of the moves.
    parents : ndarray of int, shape (m, 1) or (m, 2)
        The component to split, or the two to merge.
    log_ratios : ndarray of shape (m,)
        log H of each move; NaN where it has not been computed, because the acceptance does not
        read it.
    gaps : ndarray of shape (m,)
        N_1 N_2 / (N_1 + N_2) |μ_1 - μ_2|² of the two halves, or of the two to merge: by how much
        two means fit better than one. If all components share one covariance, this is, up to a
        factor, the logarithm of the likelihood ratio of two components against one.
    uniforms : ndarray of shape (m,)
        A random number from (0, 1] for each move.
    """

    kind: Kind
    parents: Ints
    log_ratios: Doubles
    gaps: Doubles
    uniforms: Doubles


class Acceptance(Protocol):
    """Decides on the proposals of a pass; no component takes part in two moves."""

    def __call__(self, splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
        """Decide which splits and which merges are carried out.

        `n_novel` is the present K^n, the number of novel components.
        """
        ...


def accept_literal(splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
    """Accept with the paper's probability min(1, H): splits first, then disjoint merges.

    Children of a split do not merge in the same pass. Of two merges that share a component, the
    one with the larger ratio goes first.
    """
    del n_novel  # the paper's rule does not depend on K
    split = np.log(splits.uniforms) < splits.log_ratios
    wanted = np.log(merges.uniforms) < merges.log_ratios
    busy = _BusyComponents(splits.parents[split])
    merge = np.zeros(len(wanted), dtype=bool)
    for place in np.argsort(-merges.log_ratios, kind="stable"):
        if wanted[place]:
            merge[place] = busy.take(merges.parents[place])
    return split, merge


@dataclass(frozen=True)
class SteeredAcceptance:
    """Accept the moves that lead to a given number of novel components.

    All proposals are ranked by their gaps. If components are missing, those with the largest gap
    between their halves are split. If there are too many, the pairs with the smallest gap are
    merged. Then splits and merges are made in pairs, which keeps the number, as long as the gap of
    the split is larger than the gap of the merge: each such exchange improves the fit.

    Attributes
    ----------
    n_novel : int
        K^n to arrive at, the number of novel components.
    """

    n_novel: int

    def __call__(self, splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
        """Accept the moves that reach the target, then exchanges that improve the fit."""
        busy = _BusyComponents()
        split = np.zeros(len(splits.parents), dtype=bool)
        merge = np.zeros(len(merges.parents), dtype=bool)
        split_queue = list(np.argsort(-splits.gaps, kind="stable"))
        merge_queue = list(np.argsort(merges.gaps, kind="stable"))
        missing = self.n_novel - n_novel
        # a component can only be split once, so that no parent is busy here
        while split_queue and missing > 0:
            place = split_queue.pop(0)
            split[place] = busy.take(splits.parents[place])
            missing -= 1
        while merge_queue and missing < 0:
            place = merge_queue.pop(0)
            # two pairs may share a component: only the one with the smaller gap is merged
            merge[place] = busy.take(merges.parents[place])
            missing += int(merge[place])
        while split_queue and merge_queue:
            # gaps fall along one queue and rise along the other: no later exchange pays, either
            if splits.gaps[split_queue[0]] <= merges.gaps[merge_queue[0]]:
                break
            if not busy.is_free(splits.parents[split_queue[0]]):
                split_queue.pop(0)
            elif not busy.is_free(merges.parents[merge_queue[0]]):
                merge_queue.pop(0)
            elif splits.parents[split_queue[0], 0] in merges.parents[merge_queue[0]]:
                merge_queue.pop(0)  # the split is worth more than this merge of its parent
            else:
                first, second = split_queue.pop(0), merge_queue.pop(0)
                split[first] = busy.take(splits.parents[first])
                merge[second] = busy.take(merges.parents[second])
        return split, merge


class _BusyComponents:
    """The components that already take part in a move of this pass."""

    def __init__(self, taken: Ints | None = None) -> None:
        self._taken: set[int] = set() if taken is None else set(taken.ravel().tolist())

    def is_free(self, components: Ints) -> bool:
        return self._taken.isdisjoint(components.tolist())

    def take(self, components: Ints) -> bool:
        """Take the components if all of them are free; return whether they were."""
        free = self.is_free(components)
        if free:
            self._taken.update(components.tolist())
        return free
