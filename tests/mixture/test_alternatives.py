import numpy as np
import pytest
from scipy.cluster import hierarchy
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from newfound import ConstrainedDBSCAN, ConstrainedWard, SemiSupervisedKMeans
from newfound.errors import InputError
from newfound.mixture import alternatives


@parametrize_with_checks([ConstrainedWard(), ConstrainedDBSCAN()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:600], truth[:600]
    rng = np.random.default_rng(0)
    y = np.where((truth < 5) & (rng.random(len(truth)) < 0.5), truth, -1)
    return X, truth, y


def test_ward_without_labels_is_ward(digits):
    X, _, _ = digits
    expected = hierarchy.fcluster(hierarchy.ward(X), 10, "maxclust")
    assert adjusted_rand_score(expected, ConstrainedWard(10).fit(X).labels_) == 1


def slow_constrained_ward(X, y, n_components):
    """Merge the nearest pair that the labels allow, one at a time, by the loss of variance."""
    groups = [[i for i in range(len(X)) if y[i] == code] for code in sorted(set(y) - {-1})]
    known = [True] * len(groups) + [False] * int((y == -1).sum())
    groups += [[i] for i in range(len(X)) if y[i] == -1]
    while len(groups) > n_components:
        costs = {}
        for a in range(len(groups)):
            for b in range(a):
                if not (known[a] and known[b]):
                    n_a, n_b = len(groups[a]), len(groups[b])
                    gap = X[groups[a]].mean(axis=0) - X[groups[b]].mean(axis=0)
                    costs[a, b] = n_a * n_b / (n_a + n_b) * (gap @ gap)
        a, b = min(costs, key=costs.get)
        groups[b] += groups.pop(a)
        known[b] = known.pop(a) or known[b]
    labels = np.empty(len(X), dtype=int)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def test_constrained_ward_matches_a_slow_reference():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = np.where(np.arange(40) < 8, np.arange(40) % 2, -1)
    found = ConstrainedWard(5).fit(X, y).labels_
    assert adjusted_rand_score(slow_constrained_ward(X, y, 5), found) == 1


@pytest.mark.parametrize(
    "estimator", [ConstrainedWard(10), ConstrainedDBSCAN(), SemiSupervisedKMeans(10)]
)
def test_all_share_one_interface_and_respect_the_labels(estimator, digits):
    X, _, y = digits
    estimator.fit(X, y)
    labelled = y != -1
    np.testing.assert_array_equal(estimator.labels_[labelled], y[labelled])
    assert estimator.labels_.min() >= 0
    assert estimator.n_known_ == 5
    assert estimator.n_components_ == 5 + estimator.n_novel_ == len(estimator.prototypes_)
    assert len(estimator.category_names_) == estimator.n_components_
    assert np.isfinite(estimator.prototypes_).all()
    assert set(estimator.predict(X)) <= set(range(estimator.n_components_))


def test_many_rows_are_grouped_before_ward(digits, monkeypatch):
    X, truth, y = digits
    monkeypatch.setattr(alternatives, "N_LEAVES", 100)
    coarse = ConstrainedWard(10, random_state=0).fit(X, y)
    np.testing.assert_array_equal(coarse.labels_[y != -1], y[y != -1])
    assert coarse.n_components_ == 10
    assert adjusted_rand_score(truth, coarse.labels_) > 0.5


def test_dbscan_noise_only_ends_in_one_component():
    X = np.arange(20.0)[:, None] * 100
    assert set(ConstrainedDBSCAN(eps=1.0).fit(X).labels_) == {0}


def test_dbscan_shares_a_mixed_cluster_among_its_classes():
    X = np.linspace(0, 1, 21)[:, None]
    y = np.full(21, -1)
    y[0], y[20] = 0, 1
    labels = ConstrainedDBSCAN(eps=0.2).fit(X, y).labels_
    np.testing.assert_array_equal(labels[:10], 0)
    np.testing.assert_array_equal(labels[11:], 1)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ConstrainedWard(0), "n_components must be a whole number"),
        (ConstrainedWard(99), "n_components=99 is more than n_samples=10"),
        (ConstrainedDBSCAN(eps=-1.0), "eps must be greater than 0"),
        (ConstrainedDBSCAN(min_samples=0), "min_samples must be a whole number"),
    ],
)
def test_bad_settings(estimator, message):
    with pytest.raises(InputError, match=message):
        estimator.fit(np.random.default_rng(0).normal(size=(10, 2)))
