import numpy as np
import pytest

from newfound.mixture import rows as rows_module
from newfound.mixture.counting.neighbours import (
    balanced_graph,
    class_sums,
    nearest_of,
    nearest_rows,
    whiten_by_classes,
    whiten_by_neighbours,
)
from newfound.mixture.projection import unit_rows


@pytest.fixture
def V():
    return unit_rows(np.random.default_rng(0).normal(size=(60, 5)))


def test_neighbours_are_the_most_similar_other_rows(V, monkeypatch):
    similar = V @ V.T
    np.fill_diagonal(similar, -np.inf)
    expected = np.argsort(-similar, axis=1)[:, :4]
    for block_bytes in (rows_module.BLOCK_BYTES, 1):
        monkeypatch.setattr(rows_module, "BLOCK_BYTES", block_bytes)
        neighbours, cosines = nearest_rows(V, 4)
        np.testing.assert_array_equal(neighbours, expected)
        np.testing.assert_allclose(cosines, np.take_along_axis(similar, expected, axis=1))


def test_neighbours_of_chosen_rows_only(V):
    chosen = np.array([7, 3])
    np.testing.assert_array_equal(nearest_rows(V, 2, chosen)[0], nearest_rows(V, 2)[0][chosen])


def test_every_row_of_the_graph_weighs_the_same(V):
    graph = balanced_graph(*nearest_rows(V, 5)).toarray()
    np.testing.assert_allclose(graph, graph.T, atol=1e-7)
    np.testing.assert_allclose(graph.sum(axis=1), 1, atol=0.02)
    plain = np.bincount(nearest_rows(V, 5)[0].ravel(), minlength=60)
    assert plain.std() > 0.2 * plain.mean()  # before, some rows were neighbours of many


def test_whitening_shrinks_directions_in_which_neighbours_differ():
    rng = np.random.default_rng(1)
    truth = np.repeat(np.arange(8), 60)
    spread = np.array([0.05] * 8 + [0.4] * 4)
    X = np.pad(np.eye(8)[truth], ((0, 0), (0, 4))) + spread * rng.normal(size=(480, 12))

    def purity(rows):
        return (truth[nearest_rows(rows, 5)[0]] == truth[:, None]).mean()

    whitened = whiten_by_neighbours(X, 12, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(whitened, axis=1), 1, rtol=1e-5)
    assert purity(whitened) >= purity(unit_rows(X - X.mean(axis=0)))


def test_the_nearest_of_all_rows_are_the_nearest_rows(V, monkeypatch):
    everything = np.array([np.delete(np.arange(60), i) for i in range(60)])
    for block_bytes in (rows_module.BLOCK_BYTES, 1):
        monkeypatch.setattr(rows_module, "BLOCK_BYTES", block_bytes)
        neighbours, cosines = nearest_of(V, everything, 4)
        np.testing.assert_array_equal(neighbours, nearest_rows(V, 4)[0])
        np.testing.assert_allclose(cosines, nearest_rows(V, 4)[1])
    few = everything[:, :6]
    neighbours, _ = nearest_of(V, few, 3)
    assert all(set(a) <= set(b) for a, b in zip(neighbours, few, strict=True))


def test_sums_of_classes(V):
    rows, classes = np.array([3, 9, 4]), np.array([2, 0, 2])
    expected = np.stack([V[9], np.zeros(5), V[3] + V[4]])
    np.testing.assert_allclose(class_sums(V, rows, classes), expected)


def test_whitening_by_classes_carries_over_to_other_classes():
    rng = np.random.default_rng(1)
    truth = np.repeat(np.arange(8), 60)
    spread = np.array([0.05] * 8 + [1.5] * 4)
    X = np.pad(np.eye(8)[truth], ((0, 0), (0, 4))) + spread * rng.normal(size=(480, 12))
    V = unit_rows(X - X.mean(axis=0)).astype(np.float32)
    rows = np.flatnonzero(truth < 4)[::4]
    whitened = whiten_by_classes(V, rows, truth[rows])
    np.testing.assert_allclose(np.linalg.norm(whitened, axis=1), 1, rtol=1e-5)

    def purity(V):
        same = truth[nearest_rows(V, 5)[0]] == truth[:, None]
        return same[truth >= 4].mean()

    assert purity(whitened) > purity(V) + 0.05


def test_classes_without_two_different_rows_leave_the_space_as_it_is(V):
    assert whiten_by_classes(V, np.array([3, 5]), np.array([0, 1])) is V
    assert whiten_by_classes(np.ones((4, 2)), np.arange(4), np.zeros(4, dtype=int)).shape == (4, 2)
