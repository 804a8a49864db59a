import numpy as np
import pytest

from newfound.errors import InputError
from newfound.mixture import rows as rows_module
from newfound.mixture.stats import GaussianStats


def slow_stats(X):
    """Count, mean and scatter, one row at a time."""
    mean = sum(X) / len(X)
    scatter = sum(np.outer(row - mean, row - mean) for row in X)
    return len(X), mean, scatter


def assert_same(stats, expected, rtol=1e-10):
    count, mean, scatter = expected
    assert stats.count == count
    np.testing.assert_allclose(stats.mean, mean, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(stats.scatter, scatter, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 5), (40, 4)])
def test_points_match_the_slow_sum(n, d):
    X = np.random.default_rng(0).normal(size=(n, d))
    assert_same(GaussianStats.from_points(X), slow_stats(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_give_every_component_in_one_pass(dtype):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)).astype(dtype)
    labels = rng.integers(-1, 4, size=60)
    stacked = GaussianStats.from_labels(X, labels, 5)
    for component in range(4):
        expected = slow_stats(X[labels == component].astype(np.float64))
        assert_same(stacked[component], expected)
    assert stacked.count[4] == 0
    assert np.isfinite(stacked.mean).all()


def test_sum_of_parts_is_the_whole():
    X = np.random.default_rng(2).normal(size=(50, 4))
    parts = GaussianStats.from_points(X[:13]) + GaussianStats.from_points(X[13:])
    assert_same(parts, slow_stats(X))


def test_adding_nothing_changes_nothing():
    X = np.random.default_rng(3).normal(size=(7, 2))
    nothing = GaussianStats.from_labels(X, np.zeros(7, dtype=int), 2)[1]
    assert_same(GaussianStats.from_points(X) + nothing, slow_stats(X))
    both_empty = nothing + nothing
    assert both_empty.count == 0
    assert not np.isnan(both_empty.scatter).any()


def test_an_offset_costs_no_digits():
    X = np.random.default_rng(4).normal(size=(200, 3))
    near, far = GaussianStats.from_points(X), GaussianStats.from_points(X + 1e6)
    np.testing.assert_allclose(far.scatter, near.scatter, rtol=1e-7)
    halves = GaussianStats.from_points(X[:99] + 1e6) + GaussianStats.from_points(X[99:] + 1e6)
    np.testing.assert_allclose(halves.scatter, near.scatter, rtol=1e-7)


def test_blocks_do_not_change_the_result(monkeypatch):
    X = np.random.default_rng(5).normal(size=(300, 3))
    labels = np.arange(300) % 3
    whole = GaussianStats.from_labels(X, labels, 3)
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    pieces = GaussianStats.from_labels(X, labels, 3)
    np.testing.assert_allclose(pieces.scatter, whole.scatter, rtol=1e-10)


def test_stack_and_index_are_inverse():
    X = np.random.default_rng(6).normal(size=(9, 2))
    single = GaussianStats.from_points(X)
    stacked = GaussianStats.stack([single, single + single])
    assert len(stacked) == 2
    assert stacked[1].count == 18
    assert stacked.n_features == 2


def test_points_of_one_dimension_are_refused():
    with pytest.raises(InputError, match="shape"):
        GaussianStats.from_points(np.zeros(3))
