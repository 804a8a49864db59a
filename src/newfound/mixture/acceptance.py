"""Which of the proposed moves are carried out.

`accept_literal` is the paper's: each move on its own, with probability min(1, H). In 128
dimensions |log H| is in the hundreds and its sign is the prior's, so the default is
`SteeredAcceptance`: moves are ranked by the likelihood ratio under one covariance for all
components, that of the labelled classes, and one threshold for splits and merges alike is set
such that the number of components comes to agree with a count.
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
        What is proposed.
    parents : ndarray of int, shape (m, 1) or (m, 2)
        The component to split, or the two to merge.
    log_ratios : ndarray of shape (m,)
        log H of each.
    gaps : ndarray of shape (m,)
        N_1 N_2 / (N_1 + N_2) |μ_1 - μ_2|² of the two halves, or of the two to merge: by how much
        two means fit better than one. With a common covariance it is, up to a factor, the log
        of the likelihood ratio of two components and one.
    uniforms : ndarray of shape (m,)
        A draw from (0, 1] for each.
    """

    kind: Kind
    parents: Ints
    log_ratios: Doubles
    gaps: Doubles
    uniforms: Doubles


class Acceptance(Protocol):
    """Decides on the proposals of a pass; no component takes part in two moves."""

    def __call__(self, splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
        """Tell which splits and which merges are carried out, given the present K^n."""
        ...


def accept_literal(splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
    """Accept with the paper's probability min(1, H): splits first, then disjoint merges.

    Children of a split do not merge in the same pass; of two merges that share a component, the
    one with the larger ratio goes first.
    """
    del n_novel  # the paper's moves do not look at K
    split = np.log(splits.uniforms) < splits.log_ratios
    wanted = np.log(merges.uniforms) < merges.log_ratios
    choice = _Choice(splits.parents[split])
    merge = np.zeros(len(wanted), dtype=bool)
    for place in np.argsort(-merges.log_ratios, kind="stable"):
        if wanted[place]:
            merge[place] = choice.take(merges.parents[place])
    return split, merge


@dataclass(frozen=True)
class SteeredAcceptance:
    """Accept the moves that lead to a given number of novel components.

    All proposals are ranked by their gaps. The threshold is where the components that lie above
    it and are split, less the pairs that lie below it and are merged, make up what is missing to
    `n_novel`. At `n_novel`, a split is paid for by a merge across a smaller gap.

    Attributes
    ----------
    n_novel : int
        K^n to arrive at.
    """

    n_novel: int

    def __call__(self, splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
        """Accept what is missing to the target, then exchanges that are worth it."""
        choice = _Choice()
        split = np.zeros(len(splits.parents), dtype=bool)
        merge = np.zeros(len(merges.parents), dtype=bool)
        split_queue = list(np.argsort(-splits.gaps, kind="stable"))
        merge_queue = list(np.argsort(merges.gaps, kind="stable"))
        missing = self.n_novel - n_novel
        while split_queue and missing > 0:
            place = split_queue.pop(0)
            split[place] = choice.take(splits.parents[place])
            missing -= 1
        while merge_queue and missing < 0:
            place = merge_queue.pop(0)
            merge[place] = choice.take(merges.parents[place])
            missing += int(merge[place])
        while split_queue and merge_queue:
            if splits.gaps[split_queue[0]] <= merges.gaps[merge_queue[0]]:
                break
            if not choice.is_free(splits.parents[split_queue[0]]):
                split_queue.pop(0)
            elif not choice.is_free(merges.parents[merge_queue[0]]):
                merge_queue.pop(0)
            elif splits.parents[split_queue[0], 0] in merges.parents[merge_queue[0]]:
                merge_queue.pop(0)  # what is to be split is not to be merged
            else:
                first, second = split_queue.pop(0), merge_queue.pop(0)
                split[first] = choice.take(splits.parents[first])
                merge[second] = choice.take(merges.parents[second])
        return split, merge


class _Choice:
    """The components that take part in a move of this pass already."""

    def __init__(self, taken: Ints | None = None) -> None:
        self._taken: set[int] = set() if taken is None else set(taken.ravel().tolist())

    def is_free(self, components: Ints) -> bool:
        return self._taken.isdisjoint(components.tolist())

    def take(self, components: Ints) -> bool:
        """Take the components if all of them are free; tell whether they were."""
        free = self.is_free(components)
        if free:
            self._taken.update(components.tolist())
        return free
