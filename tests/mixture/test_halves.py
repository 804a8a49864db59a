import numpy as np

from newfound.mixture import rows as rows_module
from newfound.mixture.halves import halve
from newfound.mixture.stats import GaussianStats


def halves_of(X, labels, chosen):
    stats = GaussianStats.from_labels(X, labels, labels.max() + 1)
    return halve(X, labels, stats.scatter, stats.mean, np.asarray(chosen))


def slow_two_means(X):
    """2-means of one component by plain loops, from the two sides of its principal axis."""
    centred = X - X.mean(axis=0)
    axis = np.linalg.svd(centred)[2][0]
    side = centred @ axis > 0
    for _ in range(100):
        low, high = X[~side].mean(axis=0), X[side].mean(axis=0)
        moved = np.array([((x - high) ** 2).sum() < ((x - low) ** 2).sum() for x in X])
        if (moved == side).all():
            return side
        side = moved
    raise AssertionError("2-means did not settle")


def test_each_component_is_divided_as_2_means_would():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(30, 4)) + 3 * shift for shift in np.repeat(np.eye(4)[:3] * 4, 2, axis=0)]
    )
    X += np.where(np.arange(len(X))[:, None] % 2, 2.0, -2.0) * np.eye(4)[3]
    labels = np.repeat(np.arange(3), 60)
    halves = halves_of(X, labels, [0, 2])
    assert (halves[labels == 1] == -1).all()
    for slot, component in enumerate([0, 2]):
        own = halves[labels == component]
        assert set(own) == {2 * slot, 2 * slot + 1}
        side = slow_two_means(X[labels == component])
        agree = (own == 2 * slot + 1) == side
        assert agree.all() or not agree.any()


def test_equal_rows_give_an_empty_half_and_no_nan():
    X = np.ones((8, 3))
    halves = halves_of(X, np.zeros(8, dtype=int), [0])
    assert len(set(halves)) == 1


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(200, 5)), rng.integers(0, 4, 200)
    whole = halves_of(X, labels, [0, 1, 2, 3])
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    np.testing.assert_array_equal(halves_of(X, labels, [0, 1, 2, 3]), whole)
