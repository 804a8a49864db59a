"""Nested levels: coarser by Ward's merges, finer by halves; the level of K is the partition."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from newfound.mixture.granularity import grow_tree

N_KNOWN, K = 2, 6


@pytest.fixture(scope="module")
def rows():
    """Six groups of 40 rows, the first two known; every group has two halves."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(K), 40)
    V = 6 * rng.normal(size=(K, 5))[labels] + rng.normal(size=(240, 5))
    V[:, 4] += np.tile([-2.0, 2.0], 120)
    return V, labels


@pytest.fixture(scope="module")
def tree(rows):
    return grow_tree(*rows, N_KNOWN, K, 12)


def test_the_level_of_k_is_the_partition_itself(rows, tree):
    np.testing.assert_array_equal(tree.cut(K), rows[1])
    assert (tree.coarsest, tree.finest) == (N_KNOWN + 1, 12)


def test_levels_are_nested_and_have_as_many_categories_as_they_say(tree):
    for k in range(tree.coarsest, tree.finest):
        coarse, fine = tree.cut(k), tree.cut(k + 1)
        assert len(np.unique(coarse)) == k
        pairs = np.unique(np.stack([fine, coarse]), axis=1)
        assert pairs.shape[1] == k + 1  # each fine category lies in one coarse category


def test_known_classes_are_the_same_on_all_levels(rows, tree):
    for k in range(tree.coarsest, tree.finest + 1):
        is_known = rows[1] < N_KNOWN
        np.testing.assert_array_equal(tree.cut(k) < N_KNOWN, is_known)
        np.testing.assert_array_equal(tree.cut(k)[is_known], rows[1][is_known])


def test_coarser_levels_are_those_of_ward_with_equal_sizes(rows, tree):
    V, labels = rows
    means = np.stack([V[labels == code].mean(axis=0) for code in range(N_KNOWN, K)])
    reference = fcluster(linkage(means, "ward"), 2, "maxclust")
    novel = labels >= N_KNOWN
    assert adjusted_rand_score(tree.cut(N_KNOWN + 2)[novel], reference[labels[novel] - 2]) == 1


def test_gaps_are_those_of_the_two_parts(rows, tree):
    V = rows[0]
    for k in range(tree.coarsest, tree.finest):
        join, coarse, fine = tree.join_at(k), tree.cut(k), tree.cut(k + 1)
        split = next(c for c in range(k) if len(np.unique(fine[coarse == c])) == 2)
        one, other = (V[fine == part] for part in np.unique(fine[coarse == split]))
        squared = ((one.mean(axis=0) - other.mean(axis=0)) ** 2).sum()
        assert join.distance == pytest.approx(squared**0.5)
        gap = len(one) * len(other) / (len(one) + len(other)) * squared
        assert join.gap == pytest.approx(gap)


def test_real_groups_are_farther_apart_than_halves_of_known_classes(tree):
    assert tree.join_at(K - 1).apart == 1
    assert tree.join_at(tree.finest - 1).nearer == 1


def test_without_novel_components_there_is_one_level(rows):
    V, labels = rows
    tree = grow_tree(V, labels, K, K, 12)
    assert tree.coarsest == tree.finest == K
