import numpy as np
import pytest

from newfound.mixture import rows as rows_module
from newfound.mixture.neighbours import balanced_graph, nearest_rows, whiten_by_neighbours
from newfound.projection import unit_rows


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
