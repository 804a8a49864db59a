"""Evidence for the categories: what one more pass of split and merge moves would bring.

These are numbers. `newfound.result.sentences` puts them into words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.mixture.acceptance import Proposals
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.split_merge import Components, Rules, split_merge_pass


class MoveEvidence(NamedTuple):
    """How much the fit would change if each category were split, or merged with another.

    A gap is N_1 N_2 / (N_1 + N_2) |μ_1 - μ_2|²: how much better two means fit than one. A log ratio
    is log H, the log of the paper's Hastings ratio (Eqs. 5 and 6) of the move.

    Attributes
    ----------
    split_gap, split_log_ratio : ndarray of shape (K,)
        For the two halves of a category; NaN where no split was proposed, because the category is
        known or too small.
    merge_gap, merge_log_ratio : ndarray of shape (K,)
        For a category and its partner; NaN where no merge was proposed.
    merge_partner : ndarray of int, shape (K,)
        Code of the category that it differs from least among those proposed, -1 for none.
    """

    split_gap: Doubles
    split_log_ratio: Doubles
    merge_gap: Doubles
    merge_log_ratio: Doubles
    merge_partner: Ints


class _RecordingRefusal:
    """An acceptance that keeps all proposals of a pass and refuses every one of them."""

    def __call__(self, splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
        del n_novel
        self.splits, self.merges = splits, merges
        return np.zeros(len(splits.parents), bool), np.zeros(len(merges.parents), bool)


def weigh_moves(mixture: SplitMergeMixture, V: Floats, labels: Ints) -> MoveEvidence:
    """Propose one more pass of moves over the finished partition and keep the numbers.

    The mixture's own record of its last pass describes the components as they were before the
    starts were combined and the rows re-assigned. The numbers here describe the final categories.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted.
    V : ndarray of shape (n, q)
        The rows in its space.
    labels : ndarray of shape (n,)
        Category of each row.

    Returns
    -------
    MoveEvidence
        Numbers for each category.
    """
    refusal = _RecordingRefusal()
    rules = Rules(mixture.prior_, refusal, mixture.count_term)
    # Row keys only seed the draws that decide on a move, and nothing is decided here.
    no_keys = np.zeros(len(V), dtype=np.uint64)
    components = Components.of(V, labels, mixture.n_known_, rules, no_keys)
    split_merge_pass(V, components, rules, seed=0)
    return _numbers_of(refusal.splits, refusal.merges, len(mixture.prototypes_))


def _numbers_of(splits: Proposals, merges: Proposals, n_categories: int) -> MoveEvidence:
    """The proposals by category; of several merges, the one with the smallest gap."""
    gaps, log_ratios = np.full((2, n_categories), np.nan), np.full((2, n_categories), np.nan)
    partner = np.full(n_categories, -1, dtype=np.int64)
    parents = splits.parents[:, 0]
    gaps[0, parents], log_ratios[0, parents] = splits.gaps, splits.log_ratios
    for place in np.argsort(-merges.gaps, kind="stable"):  # the last one written is the smallest
        pair = merges.parents[place]
        gaps[1, pair], log_ratios[1, pair] = merges.gaps[place], merges.log_ratios[place]
        partner[pair] = pair[::-1]
    return MoveEvidence(gaps[0], log_ratios[0], gaps[1], log_ratios[1], partner)
