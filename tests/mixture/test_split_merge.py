import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from newfound.mixture.acceptance import accept_literal
from newfound.mixture.halves import halve
from newfound.mixture.hastings import log_merge_ratio, log_split_ratio
from newfound.mixture.prior import NIWPrior
from newfound.mixture.rows import row_keys
from newfound.mixture.split_merge import (
    SMALLEST_HALF,
    Components,
    Rules,
    number_components,
    split_merge_pass,
)
from newfound.mixture.stats import GaussianStats

D = 3
PRIOR = NIWPrior(np.zeros(D), 0.05, D + 2.0, np.eye(D) / (D + 2))


def blobs(centres, n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n, D)) + np.asarray(c) for c in centres])
    return X, np.repeat(np.arange(len(centres)), n)


def run_pass(X, labels, n_known, accept=accept_literal, seed=0, *, reads_ratios=True):
    rules = Rules(PRIOR, accept, reads_ratios=reads_ratios)
    components = Components.of(X, labels, n_known, rules, row_keys(X))
    return split_merge_pass(X, components, rules, seed)


def only(*kinds):
    """Accept every proposal of these kinds that is not ruled out by another move."""

    def accept(splits, merges, n_novel):
        certain = [
            replace(proposals, log_ratios=proposals.log_ratios + (1e6 if wanted else -1e6))
            for proposals, wanted in ((splits, "split" in kinds), (merges, "merge" in kinds))
        ]
        return accept_literal(*certain, n_novel)

    return accept


always = only("split", "merge")


FAR = [(0, 0, 0), (20, 0, 0), (0, 20, 0), (0, 0, 20)]


def test_two_blobs_in_one_component_are_split():
    X, truth = blobs(FAR[:2])
    labels, moves = run_pass(X, np.zeros(60, dtype=int), n_known=0)
    assert len(set(labels[truth == 0])) == len(set(labels[truth == 1])) == 1
    assert set(labels) == {0, 1}
    assert [(m.kind, m.parents, m.children, m.accepted) for m in moves] == [
        ("split", (0,), (0, 1), True)
    ]


def test_one_blob_in_two_components_is_merged():
    X, _ = blobs([FAR[0], FAR[1]])
    labels = np.where(np.arange(60) < 30, np.arange(60) % 2, 2)

    def literal_merges(splits, merges, n_novel):
        none = replace(splits, log_ratios=np.full(len(splits.log_ratios), -np.inf))
        return accept_literal(none, merges, n_novel)

    merged, moves = run_pass(X, labels, 0, literal_merges)
    assert set(merged) == {0, 1}
    accepted = [m for m in moves if m.accepted]
    assert [(m.kind, m.parents, m.children) for m in accepted] == [("merge", (0, 1), (0,))]


def test_a_component_with_labels_is_never_split():
    X, _ = blobs(FAR[:2])
    labels, moves = run_pass(X, np.zeros(60, dtype=int), n_known=1, accept=always)
    assert (labels == 0).all()
    assert not [m for m in moves if m.kind == "split"]


def test_two_known_components_are_never_merged():
    X, labels = blobs([(0, 0, 0), (0.1, 0, 0)])
    after, moves = run_pass(X, labels, n_known=2, accept=always)
    np.testing.assert_array_equal(after, labels)
    assert moves == []


def test_a_novel_component_may_merge_into_a_known_one():
    X, labels = blobs([(0, 0, 0), (0.1, 0, 0)])
    after, moves = run_pass(X, labels, n_known=1, accept=only("merge"))
    assert (after == 0).all()
    assert [m.children for m in moves if m.accepted] == [(0,)]


def test_children_of_a_split_do_not_merge_in_the_same_pass():
    X, labels = blobs(FAR)
    after, moves = run_pass(X, labels, n_known=0, accept=always)
    assert len(set(after)) == 8  # all four split, none was left to merge
    assert not [m for m in moves if m.kind == "merge" and m.accepted]


def test_merging_pairs_are_disjoint_and_the_best_goes_first():
    X, labels = blobs([(0, 0, 0), (0.5, 0, 0), (1.5, 0, 0)])
    after, moves = run_pass(X, labels, n_known=0, accept=only("merge"))
    merges = [m for m in moves if m.kind == "merge"]
    assert len(merges) == 3
    accepted = [m for m in merges if m.accepted]
    assert len(accepted) == 1
    assert accepted[0].log_ratio == max(m.log_ratio for m in merges)
    assert len(set(after)) == 2


def test_small_halves_veto_a_split():
    X = np.concatenate([blobs(FAR[:1])[0], blobs(FAR[1:2])[0][:SMALLEST_HALF]])
    _, moves = run_pass(X, np.zeros(len(X), dtype=int), n_known=0)
    assert not [m for m in moves if m.kind == "split"]


def test_empty_components_are_dropped_but_known_ones_keep_their_number():
    np.testing.assert_array_equal(
        number_components(np.array([1, 1, 5, 3]), 2), [0, 1, -1, 2, -1, 3]
    )


def test_the_ledger_holds_the_ratios_of_the_paper():
    X, labels = blobs([(0, 0, 0), (3, 0, 0), (6, 0, 0)])
    _, moves = run_pass(X, labels, n_known=1, accept=only())
    stats = GaussianStats.from_labels(X, labels, 3)
    for move in moves:
        assert move.children == ()
        assert not move.accepted
        if move.kind == "merge":
            i, j = move.parents
            assert move.log_ratio == pytest.approx(log_merge_ratio(stats[i], stats[j], PRIOR))
    for move in (m for m in moves if m.kind == "split"):
        own = X[labels == move.parents[0]]
        whole = GaussianStats.stack([GaussianStats.from_points(own)])
        side = halve(own, np.zeros(len(own), int), whole.scatter, whole.mean, np.array([0]))
        low, high = (GaussianStats.from_points(own[side == s]) for s in (0, 1))
        expected = log_split_ratio(low + high, low, high, PRIOR)
        assert move.log_ratio == pytest.approx(float(expected))


def test_ratios_computed_for_accepted_moves_only_are_the_same():
    X, labels = blobs([(0, 0, 0), (3, 0, 0), (6, 0, 0), (20, 0, 0), (23, 0, 0)])
    labels[labels == 4] = 3

    def accept(splits, merges, n_novel):
        split = splits.parents[:, 0] == 3
        return split, (merges.parents == [0, 1]).all(axis=1)

    every, some = (
        run_pass(X, labels, 1, accept, reads_ratios=reads_ratios) for reads_ratios in (True, False)
    )
    np.testing.assert_array_equal(every[0], some[0])
    assert [move.kind for move in some[1] if move.accepted] == ["split", "merge"]
    for one, other in zip(every[1], some[1], strict=True):
        assert (one.kind, one.parents, one.children) == (other.kind, other.parents, other.children)
        expected = pytest.approx(one.log_ratio, rel=1e-12) if one.accepted else None
        assert other.log_ratio == expected


def test_a_pass_copies_no_scatters_to_read_means():
    rng = np.random.default_rng(0)
    q, n_components = 40, 60
    X = rng.normal(size=(20 * n_components, q)) + np.repeat(rng.normal(size=(60, q)), 20, axis=0)
    prior = NIWPrior(np.zeros(q), 0.05, q + 2.0, np.eye(q) / (q + 2))

    def refuse(splits, merges, n_novel):
        return np.zeros(len(splits.gaps), bool), np.zeros(len(merges.gaps), bool)

    rules = Rules(prior, refuse, reads_ratios=False)
    labels = np.repeat(np.arange(n_components), 20)
    components = Components.of(X, labels, 0, rules, row_keys(X))
    tracemalloc.start()
    split_merge_pass(X, components, rules, seed=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # the statistics of the two halves of each component, and the scatters to halve them by
    assert peak < 4.5 * components.stats.scatter.nbytes


def test_draws_follow_the_rows_not_their_order():
    X, labels = blobs([(0, 0, 0), (4, 0, 0), (0, 4, 0), (4, 4, 0), (9, 9, 9)], n=20)

    def coin(splits, merges, n_novel):
        tossed = [
            replace(p, log_ratios=np.full(len(p.gaps), np.log(0.5))) for p in (splits, merges)
        ]
        return accept_literal(*tossed, n_novel)

    order = np.random.default_rng(5).permutation(len(X))
    swapped = np.array([0, 3, 1, 4, 2])[labels]  # and the components renumbered
    before, _ = run_pass(X, labels, n_known=0, accept=coin, seed=3)
    after, _ = run_pass(X[order], swapped[order], n_known=0, accept=coin, seed=3)
    pairs = set(zip(before[order].tolist(), after.tolist(), strict=True))
    assert len(pairs) == len(set(before)) == len(set(after))


def test_another_seed_draws_otherwise():
    X, labels = blobs([(4 * i, 0, 0) for i in range(12)], n=20)
    seen = []

    def watch(splits, merges, n_novel):
        seen.extend([splits.uniforms, merges.uniforms])
        return np.zeros(len(splits.gaps), dtype=bool), np.zeros(len(merges.gaps), dtype=bool)

    run_pass(X, labels, 0, watch, seed=1)
    run_pass(X, labels, 0, watch, seed=2)
    assert not np.intersect1d(seen[0], seen[2]).size
    assert all(((u > 0) & (u <= 1)).all() for u in seen)


def test_gaps_are_what_a_merge_loses_in_fit():
    """The inertia of the union less the inertias of the parts, for splits and merges alike."""
    X, labels = blobs([(0, 0, 0), (3, 0, 0), (6, 1, 0)], n=25)
    seen = []

    def watch(splits, merges, n_novel):
        seen.extend([splits, merges])
        return np.zeros(len(splits.gaps), dtype=bool), np.zeros(len(merges.gaps), dtype=bool)

    run_pass(X, labels, 0, watch)
    stats = GaussianStats.from_labels(X, labels, 3)

    def inertia(part):
        return np.trace(part.scatter)

    for (i, j), gap in zip(seen[1].parents, seen[1].gaps, strict=True):
        lost = inertia(stats[i] + stats[j]) - inertia(stats[i]) - inertia(stats[j])
        assert gap == pytest.approx(lost)
    for (i,), gap in zip(seen[0].parents, seen[0].gaps, strict=True):
        own = X[labels == i]
        whole = GaussianStats.stack([GaussianStats.from_points(own)])
        side = halve(own, np.zeros(len(own), int), whole.scatter, whole.mean, np.array([0]))
        parts = sum(inertia(GaussianStats.from_points(own[side == s])) for s in (0, 1))
        assert gap == pytest.approx(inertia(whole[0]) - parts)
