"""A given K is kept, or the warning says why it cannot be."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from newfound import SplitMergeMixture
from newfound.errors import DiscoveryWarning
from newfound.mixture import outcome
from newfound.mixture.refill import give_up_smallest, keep_k, nearest_in_k, refill_empty

pytestmark = pytest.mark.filterwarnings("ignore:No row is labelled", "ignore:Only .* known")


def repeated_rows(n_distinct, n=200, dtype=np.float64):
    """Few distinct rows, each many times, and their numbers."""
    rng = np.random.default_rng(n_distinct)
    distinct = rng.normal(size=(n_distinct, 6)).astype(dtype)
    which = rng.integers(0, n_distinct, size=n)
    return distinct[which], which


def partial(which, labelled):
    """Labels of about half of the rows of the first two kinds, or of no row."""
    half = np.random.default_rng(0).random(len(which)) < 0.5
    return np.where(labelled & half & (which < 2), which, -1)


def fit_or_refit(how, X, y, **settings):
    mixture = SplitMergeMixture(random_state=0, **settings)
    if how == "fit":
        return mixture.fit(X, y)
    return mixture.refit(X, y, np.arange(len(X)) % 15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("assign", ["nearest", "soft"])
@pytest.mark.parametrize("how", ["fit", "refit"])
@pytest.mark.parametrize("n_distinct", [3, 6, 12])
def test_k_above_the_number_of_distinct_rows(n_distinct, how, assign, labelled, dtype):
    X, which = repeated_rows(n_distinct, dtype=dtype)
    y = partial(which, labelled)
    text = rf"n_components=15, .* only {n_distinct} .* have {n_distinct} distinct values"
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # no division by 0 on the way
        with pytest.warns(DiscoveryWarning, match=text):
            mixture = fit_or_refit(how, X, y, n_components=15, assign=assign)
    assert mixture.n_components_ == n_distinct
    assert adjusted_rand_score(mixture.labels_, which) == 1
    for value in (mixture.prototypes_, mixture.means_, mixture.predict_proba(X)):
        assert np.isfinite(value).all()


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("assign", ["nearest", "soft"])
@pytest.mark.parametrize("how", ["fit", "refit"])
@pytest.mark.parametrize("n_distinct", [16, 40, 200])
def test_a_given_k_is_kept(n_distinct, how, assign, labelled):
    X, which = repeated_rows(n_distinct)
    mixture = fit_or_refit(how, X, partial(which, labelled), n_components=15, assign=assign)
    assert mixture.n_components_ == 15
    assert set(mixture.labels_) == set(range(15))
    assert len(mixture.prototypes_) == len(mixture.stability_) == len(mixture.offsets_) == 15


@pytest.mark.parametrize("n_given", [1, 5, 15, 60])
def test_a_partition_of_another_number_of_components_is_brought_to_k(digits, n_given):
    X, _, y = digits
    mixture = SplitMergeMixture(n_components=20, random_state=0)
    mixture.refit(X, y, np.arange(len(X)) % n_given)
    assert mixture.n_components_ == 20


@pytest.mark.parametrize(("n_starts", "stability"), [(3, [1, 1, 0, 1]), (1, 4 * [np.nan])])
def test_k_is_kept_when_a_component_is_lost_after_the_vote(monkeypatch, n_starts, stability):
    """A component of one row of each kind: all of them are nearer to other prototypes."""
    kind = np.repeat(np.arange(4), 30)
    X = np.eye(4)[kind] + 0.01 * np.random.default_rng(0).normal(size=(120, 4))
    y = np.where((kind == 0) & (np.arange(120) < 9), 0, -1)

    original = outcome._settle

    def settle(rows, labels, found, n_components):
        # kinds 2 and 3 together, and one row of each of the three novel kinds
        blob = np.unique(labels, return_index=True)[1]
        labels = np.where(labels == 3, 2, labels)
        labels[blob[1:]] = 3
        return original(rows, labels, np.full(4, np.nan if n_starts == 1 else 1.0), n_components)

    monkeypatch.setattr(outcome, "_settle", settle)
    mixture = SplitMergeMixture(n_components=4, random_state=0, sizes=None, n_init=n_starts)
    mixture.fit(X, y)
    assert mixture.n_components_ == 4
    assert adjusted_rand_score(mixture.labels_, kind) == 1
    # no start has found the component that took the place of the lost one
    np.testing.assert_array_equal(np.sort(mixture.stability_), np.sort(stability))


# The steps


def test_an_empty_component_gets_the_farthest_row_and_those_near_it():
    V = np.array([[1.0, 0.0], [1.0, 0.1], [0.9, 0.0], [-1.0, 0.0], [-1.0, 0.1], [0.0, 9.0]])
    codes = np.array([-1, -1, -1, -1, -1, 0])
    labels = refill_empty(V, codes, np.array([2, 2, 2, 2, 2, 0]), n_known=1, n_components=3)
    np.testing.assert_array_equal(labels, [2, 2, 2, 1, 1, 0])


def test_labelled_rows_and_equal_rows_fill_nothing():
    V = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    labels = np.zeros(3, int)
    np.testing.assert_array_equal(refill_empty(V, np.array([0, 0, -1]), labels, 1, 2), labels)
    V = np.tile(np.random.default_rng(0).normal(size=7), (50, 1))
    labels = np.zeros(50, int)
    np.testing.assert_array_equal(refill_empty(V, np.full(50, -1), labels, 0, 4), labels)


def test_a_component_that_is_lost_again_and_again_is_filled_in_the_end():
    V = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    labels = keep_k(np.zeros_like, V, np.full(3, -1), np.zeros(3, int), 0, 2)
    assert set(labels) == {0, 1}


def test_numbers_of_components_stay():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 20)
    V = np.eye(4)[truth] + 0.01 * rng.normal(size=(80, 4))
    codes = np.where(np.arange(80) < 5, 0, -1)
    # component 1 has no row, 2 and 3 have theirs, and two kinds are in class 0
    labels = np.where(truth < 2, 0, truth)
    found = nearest_in_k(V, codes, labels, n_known=1, n_rounds=5, n_components=4)
    np.testing.assert_array_equal(found, truth)


def test_the_smallest_components_are_given_up():
    V = np.array([[0.0], [0.1], [5.0], [5.1], [5.2], [9.0], [9.1], [9.2], [0.2]])
    labels = np.array([0, 0, 1, 1, 1, 3, 3, 3, 2])
    codes = np.array([0, 0, -1, -1, -1, -1, -1, -1, -1])
    kept = give_up_smallest(V, codes, labels, n_known=1, n_components=3)
    np.testing.assert_array_equal(kept, [0, 0, 1, 1, 1, 2, 2, 2, 0])
    np.testing.assert_array_equal(give_up_smallest(V, codes, labels, 1, 4), labels)
