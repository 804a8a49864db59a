import numpy as np
import pytest

from newfound.mixture.acceptance import Proposals, SteeredAcceptance, accept_literal


def proposals(kind, parents, gaps=None, log_ratios=None):
    """Proposals of which only one of the two measures matters."""
    nothing = np.zeros(len(parents))
    return Proposals(
        kind,
        np.asarray(parents, dtype=int).reshape(len(parents), 1 if kind == "split" else 2),
        nothing if log_ratios is None else np.asarray(log_ratios, float),
        nothing if gaps is None else np.asarray(gaps, float),
        np.full(len(parents), 0.5),
    )


def test_literal_acceptance_has_probability_min_1_h():
    uniforms = np.linspace(0.0005, 0.9995, 1000)
    none = proposals("merge", [])
    for ratio in (0.1, 0.5, 1.0, 7.0):
        splits = Proposals(
            "split", np.arange(1000)[:, None], np.full(1000, np.log(ratio)), np.ones(1000), uniforms
        )
        split, _ = accept_literal(splits, none, 5)
        assert split.mean() == pytest.approx(min(1, ratio), abs=0.002)


def test_literal_merges_are_disjoint_and_spare_what_was_split():
    splits = proposals("split", [4], log_ratios=[1.0])
    pairs = [(0, 1), (1, 2), (2, 3), (4, 5)]
    merges = proposals("merge", pairs, log_ratios=[1.0, 3.0, 2.0, 9.0])
    split, merge = accept_literal(splits, merges, 0)
    assert split.tolist() == [True]
    assert merge.tolist() == [False, True, False, False]


def test_too_few_components_split_the_most_divided():
    splits = proposals("split", [0, 1, 2, 3], [0.1, 0.9, 0.5, 0.3])
    merges = proposals("merge", [(0, 2)], [0.95])
    split, merge = SteeredAcceptance(6)(splits, merges, 4)
    assert split.tolist() == [False, True, True, False]
    assert not merge.any()


def test_too_many_components_merge_the_least_divided_disjoint_pairs():
    splits = proposals("split", [0, 1], [0.0, 0.0])
    merges = proposals("merge", [(0, 1), (1, 2), (2, 3)], [0.3, 0.1, 0.2])
    split, merge = SteeredAcceptance(3)(splits, merges, 5)
    assert merge.tolist() == [False, True, False]  # the others share a component with it
    assert not split.any()


def test_at_the_target_a_split_is_paid_for_by_a_merge_across_a_smaller_gap():
    splits = proposals("split", [0, 1, 2], [0.9, 0.4, 0.1])
    merges = proposals("merge", [(3, 4), (5, 6)], [0.2, 0.6])
    split, merge = SteeredAcceptance(7)(splits, merges, 7)
    assert split.tolist() == [True, False, False]
    assert merge.tolist() == [True, False]


def test_what_is_to_be_split_is_not_merged():
    splits = proposals("split", [0], [0.9])
    merges = proposals("merge", [(0, 1), (2, 3)], [0.1, 0.2])
    split, merge = SteeredAcceptance(4)(splits, merges, 4)
    assert split.tolist() == [True]
    assert merge.tolist() == [False, True]


def test_nothing_to_propose_is_no_move():
    empty_splits, empty_merges = proposals("split", []), proposals("merge", [])
    for target in (0, 3, 9):
        split, merge = SteeredAcceptance(target)(empty_splits, empty_merges, 3)
        assert len(split) == len(merge) == 0
